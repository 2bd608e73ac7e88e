#!/usr/bin/env python3
"""Runs a kernel on every executor present, and says which of them failed.

usage: run.py [--qdc-run PROGRAM] [--launches N] [--only LIST] [--except LIST] [--sizes LIST] FILE.qir ARGS...

ARGS are qdc-run's own (-grid=, NAME=VALUE, -expect ...). A LIST has commas: executors by family (sim), device
(sim:gfx1100) or both device and size (sim:gfx1100@64); sizes are lanes of a subgroup. An executor that the lists
leave out is not run; one that is absent here is reported as absent. With --launches each executor's process launches N
times, with the inputs restored, and compares each time.
"""
import argparse
import os
import subprocess
import sys

import executors


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--qdc-run", default="qdc-run")
    parser.add_argument("--only", default="")
    parser.add_argument("--except", dest="leave_out", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--launches", type=int, default=1)
    options, arguments = parser.parse_known_args()
    if not any(word.startswith("-expect") or word.startswith("--expect") for word in arguments):
        parser.error("expected at least one -expect: a run that compares nothing shows nothing")
    return options, arguments + (["--repeat=%d" % options.launches] if options.launches != 1 else [])


def names(executor):
    return {executor.family, executor.device, executor.name}


def choose(options, present):
    only = set(filter(None, options.only.split(",")))
    leave_out = set(filter(None, options.leave_out.split(",")))
    sizes = {int(size) for size in filter(None, options.sizes.split(","))}
    return [e for e in present
            if (not only or names(e) & only) and not names(e) & leave_out and (not sizes or e.size in sizes)]


def run(qdc_run, executor, arguments, time_limit=120):
    """The failure's text, or None."""
    command = [qdc_run, "-device=" + executor.device] + list(executor.options) + arguments
    try:
        done = subprocess.run(command, env={**os.environ, **executor.env}, timeout=time_limit, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "still running after %d s" % time_limit
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return "ended by signal %d\n%s" % (-done.returncode, done.stdout)
    return done.stdout.strip()


def main():
    options, arguments = parse()
    if executors.VARIABLE in os.environ:
        present, absent = executors.unpack(os.environ[executors.VARIABLE]), []
    else:
        present, absent = executors.discover(options.qdc_run)
    chosen = choose(options, present)
    failures = 0
    for name, reason in absent:
        print("absent: %s: %s" % (name, reason))
    for executor in chosen:
        failure = run(options.qdc_run, executor, arguments)
        print("%s: %s" % ("FAILED" if failure else "passed", executor.name))
        if failure:
            failures += 1
            print("  " + failure.replace("\n", "\n  "))
    if not chosen:
        print("FAILED: none of the executors that this run asks for is present")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
