#!/usr/bin/env python3
"""Launches every execution test many times, and compares each time.

usage: repeated.py --bin FOLDER [--launches N] [--only LIST] [--except LIST] [--sizes LIST] [--threads LIST]
                   [--compiler LIBRARY] [--jobs N] [FILE.qir...]

All `RUN: %run` lines of test/ops, test/faults, test/launch and docs/examples, or of the files named, on each executor
present that they ask for. What compiles a file alike is one process, which launches each line N (100) times with its
inputs restored. LISTs are as in run.py; --threads has numbers of workers of the cpu device, each an executor.
--compiler is a library in place of libqdcompiler. The last line is "N passed, N failed", counting lines by executor.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import executors  # noqa: E402
import remote  # noqa: E402
import run  # noqa: E402

# Options that stand with a process, not with a launch.
COMPILED = ("-block=", "-bind=", "-O")
TIME_LIMIT = 900


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--except", dest="leave_out", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--threads", default="")
    parser.add_argument("--compiler", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="*")
    return parser.parse_args()


def with_threads(executor, threads):
    """The executors that one of the cpu device stands for."""
    if executor.family != "cpu" or not threads:
        return [executor]
    return [executor._replace(options=list(executor.options) + ["--threads=" + number])
            for number in threads.split(",")]


def collect(path, present):
    """{(executor's place, options that compile, a variable that is set): its launches}"""
    sets = {}
    for chosen, arguments in remote.run_lines(path):
        wanted = argparse.Namespace(only=chosen.get("only", ""), leave_out=chosen.get("except", ""),
                                    sizes=chosen.get("sizes", ""))
        compiled = tuple(word for word in arguments if word.startswith(COMPILED))
        taking = run.choose(wanted, present)
        for place, executor in enumerate(present):
            if executor in taking:
                sets.setdefault((place, compiled, chosen.get("env", "")), []).append(
                    " ".join(word for word in arguments if not word.startswith(COMPILED)))
    return sets


def launch(qdc_run, executor, path, compiled, env, lines, number):
    """How many lines fail, and what to say about them."""
    executor = executor._replace(env={**executor.env, **dict(filter(None, [env and env.split("=", 1)]))})
    with tempfile.NamedTemporaryFile("w", suffix=".launches") as listed:
        listed.writelines(line + "\n" for line in lines)
        listed.flush()
        failure = run.run(qdc_run, executor,
                          [path, "--launches=" + listed.name, "--repeat=%d" % number] + list(compiled), TIME_LIMIT)
    if failure is None:
        return 0, ""
    failed = len(lines) - len(re.findall("^passed: ", failure, re.MULTILINE))
    failure = re.sub("^passed: .*\n", "", failure, flags=re.MULTILINE)
    return failed, "FAILED: %s on %s %s:\n  %s" % (os.path.relpath(path, ROOT), executor.name,
                                                  " ".join(list(executor.options) + list(compiled)),
                                                  failure.replace("\n", "\n  "))


def main():
    options = parse()
    qdc_run = os.path.join(options.bin, "qdc-run")
    if options.compiler:
        os.environ["QDC_COMPILER_LIBRARY"] = os.path.abspath(options.compiler)
    present, _ = executors.discover(qdc_run)
    chosen = [each for executor in run.choose(options, present) for each in with_threads(executor, options.threads)]
    files = [os.path.abspath(path) for path in options.files] or [
        path for part in remote.FOLDERS for path in sorted(glob.glob(os.path.join(ROOT, part, "*.qir")))]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [(pool.submit(launch, qdc_run, chosen[place], path, compiled, env, lines, options.launches), len(lines))
                for path in files for (place, compiled, env), lines in collect(path, chosen).items()]
        for future, count in work:
            failures, text = future.result()
            passed += count - failures
            failed += failures
            if text:
                print(text, flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
