#!/usr/bin/env python3
"""Every op on every type, tile and subgroup size, on every executor, against NumPy references.

usage: sweep.py --bin FOLDER [--all] [--only LIST] [--ops LIST] [--programs N] [--seed N] [--jobs N] [--keep FOLDER] [--venv FOLDER] [-v]

The quick run takes a subset in which every two of op, type, tile, block shape and executor meet; --all takes
everything. --only names executors as run.py does, --ops beginnings of op names. --programs is how many random programs each
executor runs beside (programs.py). A kernel that an executor refuses
with a diagnostic is counted by its reason; a wrong result, a crash or a failed launch is a failure.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def restart_with_numpy():
    """Where Python has no NumPy, a virtual environment gets it (--venv FOLDER, kept for the next time)."""
    folder = sys.argv[sys.argv.index("--venv") + 1] if "--venv" in sys.argv[:-1] else None
    python = os.path.join(folder or "", "bin", "python")
    if not folder or os.path.realpath(sys.prefix) == os.path.realpath(folder):
        sys.exit("the sweep needs NumPy; with --venv FOLDER it is installed there")
    if not os.path.exists(python) or subprocess.run([python, "-c", "import numpy"]).returncode:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy"], check=True)
    os.execv(python, [python] + sys.argv)


try:
    import numpy as np
except ImportError:
    restart_with_numpy()

sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import elementwise  # noqa: E402
import executors  # noqa: E402
import pairwise  # noqa: E402
import programs  # noqa: E402
import scalars  # noqa: E402
import subgroup  # noqa: E402
import worker  # noqa: E402

HOST_FAMILIES = ("interp", "cpu", "sim")
BATCH = 24  # kernels a module
Result = collections.namedtuple("Result", "executor case status text")


# ---- which cases ------------------------------------------------------------------------------------------

def seeded(*words):
    """A generator that depends on the words alone, so that one case can be run again."""
    return np.random.default_rng(abs(hash_text(" ".join(map(str, words)))))


def hash_text(text):
    value = 1469598103934665603
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return value


def subgroup_rows(ops, present):
    for op in ops:
        for type in op.types:
            for tile in op.tiles:
                for executor in present:
                    for partial in (False, True):
                        block = subgroup.block_size(executor.size, tile, partial)
                        if block <= 1024 and not (tile and partial and block == subgroup.block_size(executor.size, tile, False)):
                            yield op.name, type, tile, partial, executor.name


def choose_programs(options, present, library):
    """Random programs: the same for all executors of one subgroup size."""
    compiler = worker.Compiler(library)
    made = {}
    for executor in present:
        if executor.family == "interp":
            continue
        for number in range(options.programs):
            if (number, executor.size) not in made:
                case = programs.make_case(number, executor.size, options.seed)
                made[number, executor.size] = worker.interpret(compiler, case, executor.size)
            yield executor.name, made[number, executor.size]


def choose_cases(options, present):
    """Executor name to its cases."""
    chosen = collections.defaultdict(list)
    by_name = {executor.name: executor for executor in present}
    wanted = tuple(filter(None, options.ops.split(",")))

    ops = {op.name: op for op in subgroup.make_ops() if op.name.startswith(wanted or "")}
    rows = list(subgroup_rows(ops.values(), present))
    if not options.all:
        rows = pairwise.cover(rows, random.Random(options.seed))
    for row in sorted(rows):
        name, type, tile, partial, executor = row
        case = subgroup.make_case(ops[name], type, tile, by_name[executor].size, partial, seeded(options.seed, *row))
        chosen[executor].append(case)

    flat = [(op, type, case) for op, type, case in elementwise.cases(np.random.default_rng(options.seed))
            if op.startswith(wanted or "")]
    # These have no subgroup size: one executor of each device will do.
    devices = {executor.device: executor for executor in reversed(present)}
    rows = [(index, op, type, device) for index, (op, type, _) in enumerate(flat) for device in devices]
    if not options.all:
        # An op, a type and an executor each two at a time, and every case on the interpreter.
        pairs = pairwise.cover([row[1:] for row in rows], random.Random(options.seed))
        rows = [row for row in rows if row[1:] in set(pairs) or row[3] == "interp"]
    for index, _, _, device in rows:
        chosen[devices[device].name].append(flat[index][2])
    return chosen


# ---- running them -----------------------------------------------------------------------------------------

def run_host(library, executor, cases, folder):
    """In worker processes: when one ends early, the case it was at is to blame and the rest goes on in another."""
    results, cases = [], list(cases)
    while cases:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".pickle", delete=False) as job:
            pickle.dump((executor.device, executor.size, cases, BATCH), job)
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py"), library, job.name],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        try:
            output, errors = process.communicate(timeout=60 + 5 * len(cases))
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            errors = "did not come to an end"
        done, at, phase = {}, cases[0].name, None
        for line in output.splitlines():
            name, status, text = json.loads(line)
            if name:
                done[name] = (status, text)
            else:
                at, phase = text, status
        if phase is None:
            raise RuntimeError("the worker did not start: " + errors)
        results += [Result(executor.name, c, *done[c.name]) for c in cases if c.name in done]
        rest = [c for c in cases if c.name not in done]
        if rest and process.returncode == 0:
            raise RuntimeError("the worker ended without a result for " + rest[0].name)
        if rest and len(cases) > 1 and phase == "loading" and BATCH > 1:
            # Which kernel of the module it was is found by loading each alone.
            batch = rest[:BATCH]
            for case in batch:
                results += run_host(library, executor, [case], folder)
            rest = rest[len(batch):]
        elif rest:
            culprit = next((c for c in rest if c.name == at), rest[0])
            last = errors.strip().splitlines()[-1:] or [""]
            results.append(Result(executor.name, culprit, "crashed", "exit status %s while %s: %s" % (
                process.returncode, phase, last[0])))
            rest.remove(culprit)
        cases = rest
    return results


def run_device(qdc_run, executor, cases, folder):
    """Through qdc-run and NumPy files, a process a kernel."""
    results = []
    for case in cases:
        base = os.path.join(folder, "%s.%s" % (executor.name.replace(":", "_"), case.name))
        with open(base + ".qir", "w") as file:
            file.write(case.text)
        command = [qdc_run, base + ".qir", "-device=" + executor.device] + list(executor.options)
        command.append("-grid=%d,%d,%d" % case.grid)
        for name, type, values in case.inputs:
            np.save("%s.%s.npy" % (base, name), scalars.to_storage(type, values))
            command.append("%s=@%s.%s.npy" % (name, base, name))
        for name, type, value in case.scalars:
            command.append("%s=%s" % (name, value))
        size = scalars.storage(case.type).itemsize
        filled = np.full(case.expected.size * size, 0 if case.type == "i1" else worker.FILL, np.uint8)
        np.save(base + ".y.npy", filled.view(scalars.storage(case.type)))
        command += ["y=@%s.y.npy" % base, "-out", "y=%s.out.npy" % base]
        done = subprocess.run(command, env={**os.environ, **executor.env}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
        if done.returncode < 0:
            results.append(Result(executor.name, case, "crashed", "signal %d" % -done.returncode))
        elif done.returncode:
            results.append(Result(executor.name, case, "refused", done.stdout.strip()))
        else:
            output = np.load(base + ".out.npy").view(np.uint8)
            if case.type == "i1" and case.compared is not None:
                output = np.where(case.compared, output, worker.FILL).astype(np.uint8)
            failure = worker.compare(case, output, executor.family == "vulkan")
            results.append(Result(executor.name, case, "failed" if failure else "passed", failure or ""))
    return results


# ---- the report -------------------------------------------------------------------------------------------

def reason(text):
    """A refusal without what differs from kernel to kernel."""
    lines = text.splitlines() or ["no reason"]
    line = next((line for line in reversed(lines) if "error: " in line), lines[0])
    return re.sub(r"^.*error: ", "", line)


def print_report(results, verbose):
    refusals = collections.Counter((r.executor, reason(r.text)) for r in results if r.status == "refused")
    for (executor, text), count in sorted(refusals.items()):
        print("refused: %s: %d: %s" % (executor, count, text))
    bad = [r for r in results if r.status in ("failed", "crashed")]
    for r in bad if verbose else bad[:40]:
        print("%s: %s: %s: %s" % (r.status.upper(), r.executor, r.case.name, r.text))
    if len(bad) > 40 and not verbose:
        print("... and %d more" % (len(bad) - 40))
    by_executor = collections.defaultdict(collections.Counter)
    for r in results:
        by_executor[r.executor][r.status] += 1
    for executor, counts in sorted(by_executor.items()):
        print("%-16s %s" % (executor, ", ".join("%d %s" % (n, s) for s, n in sorted(counts.items()))))
    return not bad


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--ops", default="")
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    parser.add_argument("--venv")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if options.programs is None:
        options.programs = 0 if options.ops else 200 if options.all else 20
    qdc_run = os.path.join(options.bin, "qdc-run")
    library = os.environ.get("QDC_COMPILER_LIBRARY") or os.path.join(options.bin, "..", "lib", "libqdcompiler.so")
    present, absent = executors.discover(qdc_run)
    for name, text in absent:
        print("absent: %s: %s" % (name, text))
    only = set(filter(None, options.only.split(",")))
    present = [e for e in present if not only or {e.family, e.device, e.name} & only]
    if not present:
        sys.exit("none of the executors asked for is present")

    folder = options.keep or tempfile.mkdtemp(prefix="qdc-sweep-")
    os.makedirs(folder, exist_ok=True)
    chosen = choose_cases(options, present)
    for name, case in choose_programs(options, present, library):
        chosen[name].append(case)
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = []
        for executor in present:
            cases = chosen[executor.name]
            part = -(-len(cases) // options.jobs) or 1
            part = max(part, BATCH)
            for start in range(0, len(cases), part):
                run, program = ((run_host, library) if executor.family in HOST_FAMILIES else (run_device, qdc_run))
                jobs.append(pool.submit(run, program, executor, cases[start:start + part], folder))
        for job in jobs:
            results += job.result()
    if not options.keep:
        shutil.rmtree(folder)
    ok = print_report(results, options.verbose)
    ran = sum(r.status != "refused" for r in results)
    print("%d cases on %d executors, %d ran" % (len(results), len(present), ran))
    sys.exit(0 if ok and ran else 1)


if __name__ == "__main__":
    main()
