#!/usr/bin/env python3
"""Every op on every type, tile and subgroup size, on every executor, against NumPy references.

usage: sweep.py --bin FOLDER [--all] [--only LIST] [--ops LIST] [--sample N] [--programs N] [--seed N] [--jobs N]
                [--no-subnormals TYPES] [--journal FILE] [--show NAME] [--double LIBRARY]
                [--venv FOLDER] [-v]

The quick run takes a subset in which every two of op, types, tile, block shape and executor meet; --all takes
everything, with --sample N one in N. --only names executors as run.py does, --ops beginnings of op names. --programs
is how many random programs each executor runs beside (programs.py). --show prints the kernel of that name.
A kernel that an executor refuses, but for what report.py knows, is a failure as a wrong result, a crash or a failed
launch is one. --all ends with a table by op and executor. --no-subnormals leaves out
operands and results that are subnormal, of the types named, on all executors: devices of Vulkan may take them for
zeros, and NVIDIA's do for f32, and so for bf16, which is computed in it (f32,bf16). Random programs stay as they are;
their floats are of middling size. --journal writes down the results of each part as it ends;
a run with the journal of one that was stopped takes them from there, if it is of the same library and cases.
--double takes, instead of the executors that are present, the machine code of AMD's chips, which the stand-in for
HIP's library carries out.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import with_numpy  # noqa: E402

with_numpy.ensure()
import cases  # noqa: E402
import executors  # noqa: E402
import pairwise  # noqa: E402
import report  # noqa: E402
import scalars  # noqa: E402
import subgroup  # noqa: E402

BATCH = 24  # kernels a module
CHUNK = 120  # items a process: each is made once for all the executors that run it
Result = collections.namedtuple("Result", "executor op name status text")


# ---- which cases ------------------------------------------------------------------------------------------

def choose_units(options, present):
    """(executor, item) pairs, those of one item side by side."""
    wanted = tuple(filter(None, options.ops.split(",")))
    names = [name for name in subgroup.OPS if name.startswith(wanted or "")]
    by_size = collections.defaultdict(list)
    for executor in present:
        by_size[executor.size].append(executor)
    rows = [(row, executor) for row in subgroup.rows(names, sorted(by_size)) for executor in by_size[row[4]]]
    if options.all:
        rows = [pair for pair in rows if subgroup.turn(options.seed, *pair[0]) // 2 % options.sample == 0]
    else:
        # The size is the executor's, but sizes meet all else by themselves too.
        named = {executor.name: executor for executor in present}
        rows = pairwise.cover([(*row, executor.name) for row, executor in rows], random.Random(options.seed))
        rows = [(row[:-1], named[row[-1]]) for row in rows]
    for row, executor in sorted(rows, key=lambda pair: (pair[0][4], subgroup.turn(pair[0][0]), pair[0], pair[1].name)):
        yield executor, ("subgroup", row)

    for kind, make in cases.FLAT.items():
        flat = [(number, op, type) for number, (op, type, _) in enumerate(make(options.seed))
                if op.startswith(wanted or "")]
        # These have no subgroup size: one executor of each device will do, but for atomic accesses on processors.
        devices = {executor.device if kind == "elementwise" else executor.name: executor
                   for executor in reversed(present)}
        rows = [(number, op, type, device) for number, op, type in flat for device in devices]
        if not options.all:
            # An op, a type and an executor each two at a time, and every case on the interpreter.
            pairs = set(pairwise.cover([row[1:] for row in rows], random.Random(options.seed)))
            rows = [row for row in rows if row[1:] in pairs or devices[row[3]].family == "interp"]
        for number, _, _, device in rows:
            yield devices[device], (kind, number)

    # Random programs: the same for all executors of one subgroup size.
    for size in sorted(by_size):
        for number in range(options.programs):
            for executor in by_size[size]:
                if executor.family != "interp":
                    yield executor, ("program", number, size)


def chunks(units):
    """Units of about as many items as a process makes, ordered by executor."""
    items, chunk = set(), []
    for unit in units:
        if unit[1] not in items and len(items) == CHUNK:
            yield sorted(chunk, key=lambda unit: unit[0].name)
            items, chunk = set(), []
        items.add(unit[1])
        chunk.append(unit)
    if chunk:
        yield sorted(chunk, key=lambda unit: unit[0].name)


# ---- running them -----------------------------------------------------------------------------------------

def run_chunk(settings, chunk):
    """In worker processes: when one ends early, the case it was at is to blame and the rest goes on in another."""
    results = []
    left = dict(enumerate(chunk))
    batch = BATCH
    while left:
        job = {**settings, "batch": batch, "units": [(number, *unit) for number, unit in left.items()]}
        with tempfile.NamedTemporaryFile(dir=settings["folder"], suffix=".pickle", delete=False) as file:
            pickle.dump(job, file)
        done = subprocess.run([sys.executable, os.path.join(HERE, "worker.py"), file.name], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
        at, phase, batch = [], None, BATCH
        for line in done.stdout.splitlines():
            number, status, name, *text = json.loads(line)
            if number is None:
                phase, at = status, name
            else:
                executor, item = left.pop(number)
                results.append(Result(executor.name, cases.op_of(item, settings["seed"]), name, status, text[0]))
        at = [number for number in at if number in left]
        if left and (done.returncode == 0 or not at):
            raise RuntimeError("a worker ended without results: " + done.stderr)
        if left and len(at) > 1:
            # Which kernel of the module it was is found by loading each alone.
            results += [r for number in at for r in run_chunk(settings, [left.pop(number)])]
        elif left:
            executor, item = left.pop(at[0])
            last = done.stderr.strip().splitlines()[-1:] or [""]
            results.append(Result(executor.name, cases.op_of(item, settings["seed"]), str(item), "crashed",
                                  "exit status %s while %s: %s" % (done.returncode, phase, last[0])))
    return results


class Journal:
    """The parts that are done, one JSON line each after a line that says of what."""

    def __init__(self, path, settings, parts):
        with open(settings["library"], "rb") as file:
            digest = hashlib.sha256(file.read())
        digest.update(repr((parts, settings["no_subnormals"])).encode())
        head = {"of": digest.hexdigest(), "parts": len(parts)}
        self.done, lines = {}, []
        if os.path.exists(path):
            with open(path) as file:
                # The last line may have been cut.
                lines = [json.loads(line) for line in file if line.endswith("\n")]
            if lines and lines[0] != head:
                sys.exit("%s: a journal of another library or of other cases" % path)
            self.done = {number: [Result(*r) for r in results] for number, results in lines[1:]}
        with open(path, "w") as file:
            for line in [head, *self.done.items()]:
                file.write(json.dumps(line) + "\n")
        self.file = open(path, "a", buffering=1)

    def add(self, number, results):
        self.file.write(json.dumps([number, results]) + "\n")


def run_parts(options, settings, parts):
    journal = Journal(options.journal, settings, parts) if options.journal else None

    def run(number):
        if journal and number in journal.done:
            return journal.done[number]
        results = run_chunk(settings, parts[number])
        if journal:
            journal.add(number, results)
        return results

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [result for part in pool.map(run, range(len(parts))) for result in part]


def show(options, present):
    for size in sorted({executor.size for executor in present}):
        for row in subgroup.rows(subgroup.OPS, [size]):
            if options.show.startswith(row[0].replace(".", "_")):
                case = cases.build(("subgroup", row), options.seed, None)
                if case and case.name == options.show:
                    print(case.text)
                    return


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--ops", default="")
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-subnormals", default="")
    parser.add_argument("--journal")
    parser.add_argument("--show")
    parser.add_argument("--double")
    parser.add_argument("--venv")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    no_subnormals = sorted(set(filter(None, options.no_subnormals.split(","))))
    if not set(no_subnormals) <= set(scalars.FORMATS):
        parser.error("--no-subnormals=%s: expected types of %s" % (options.no_subnormals, ", ".join(scalars.FORMATS)))
    scalars.without_subnormals.update(no_subnormals)
    if options.programs is None:
        options.programs = 0 if options.ops else 200 if options.all else 20
    binaries = os.path.abspath(options.bin)
    qdc_run = os.path.join(binaries, "qdc-run")
    library = os.environ.get("QDC_COMPILER_LIBRARY") or os.path.join(binaries, "..", "lib", "libqdcompiler.so")
    present, absent = (executors.machine_code(options.double), []) if options.double else executors.discover(qdc_run)
    for name, text in absent:
        print("absent: %s: %s" % (name, text))
    only = set(filter(None, options.only.split(",")))
    present = [e for e in present if not only or {e.family, e.device, e.name} & only]
    if not present:
        sys.exit("none of the executors asked for is present")
    if options.show:
        return show(options, present)

    if subgroup.missing():
        sys.exit("no cases for " + ", ".join(sorted(subgroup.missing())))
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="qdc-sweep-") as folder:
        settings = {"library": library, "qdc_run": qdc_run, "seed": options.seed, "folder": folder,
                    "no_subnormals": no_subnormals}
        results = run_parts(options, settings, list(chunks(choose_units(options, present))))
    results = [r for r in results if r.status != "none"]
    ok = report.print_report(results, options.all, options.verbose)
    ran = sum(r.status != "refused" for r in results)
    print("%d cases on %d executors, %d ran, %.0f s" % (len(results), len(present), ran, time.time() - start))
    return 0 if ok and ran else 1


if __name__ == "__main__":
    sys.exit(main())
