"""Runs all tests of a build folder: what ctest lists, GoogleTest programs case by case, and the lit suites.

Prints the output of what fails; the last line is "N passed, N failed". Exit status 0 only where something ran
and nothing failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

# Far above what any program takes; a hanging one fails instead of holding everything up.
TIME_LIMIT = 900


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []

    def add(self, name, ok):
        if ok:
            self.passed += 1
        else:
            self.failures.append(name)


def run(command, cwd):
    """The exit status, or None past the time limit, and the output."""
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIME_LIMIT)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        return None, (expired.stdout or b"").decode(errors="replace") + f"\nstopped after {TIME_LIMIT} s\n"


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def run_gtest(name, command, cwd, tally):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        status, output = run(command + ["--gtest_output=json:" + report, "--gtest_brief=1"], cwd)
        suites = read_json(report)
    failed = 0
    for suite in (suites or {}).get("testsuites", []):
        for case in suite["testsuite"]:
            if case["result"] == "COMPLETED":
                tally.add(f"{name}: {case['classname']}.{case['name']}", not case.get("failures"))
                failed += bool(case.get("failures"))
    # A program that died has no report, and takes all its cases with it.
    if status != 0 and not failed:
        tally.add(f"{name}: exit status {status}", False)
    if status != 0:
        print(output)


def run_ctest_list(build, tally):
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, stdout=subprocess.PIPE)
    for test in json.loads(listing.stdout)["tests"]:
        if "command" not in test:
            tally.add(f"{test['name']}: not built", False)
            continue
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        cwd = properties.get("WORKING_DIRECTORY", build)
        before, start = len(tally.failures), time.time()
        passed = tally.passed
        if os.path.basename(test["command"][0]).endswith("-unit"):
            run_gtest(test["name"], test["command"], cwd, tally)
        else:
            status, output = run(test["command"], cwd)
            tally.add(test["name"], status == 0)
            if status != 0:
                print(output)
        print(f"{test['name']}: {tally.passed - passed} passed, {len(tally.failures) - before} failed, "
              f"{time.time() - start:.1f} s", flush=True)


def run_lit(build, tally):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        start = time.time()
        suites = [os.path.join(build, "test", "lit", name) for name in ("test", "examples")]
        # Each run of a kernel has a time limit of its own.
        status = subprocess.run(["lit-22", "-q", "--output=" + report] + suites).returncode
        results = read_json(report)
    before, passed = len(tally.failures), tally.passed
    unsupported = 0
    for test in (results or {}).get("tests", []):
        if test["code"] in ("UNSUPPORTED", "EXCLUDED"):
            unsupported += 1
        else:
            tally.add(test["name"], test["code"] in ("PASS", "FLAKYPASS", "XFAIL"))
    if results is None or (status != 0 and len(tally.failures) == before):
        tally.add(f"lit: exit status {status}", False)
    print(f"lit: {tally.passed - passed} passed, {len(tally.failures) - before} failed, {unsupported} need what this "
          f"machine lacks, {time.time() - start:.1f} s", flush=True)


def main():
    build = os.path.abspath(sys.argv[1])
    tally = Tally()
    run_ctest_list(build, tally)
    run_lit(build, tally)
    for name in tally.failures:
        print(f"failed: {name}")
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 0 if tally.passed and not tally.failures else 1


if __name__ == "__main__":
    sys.exit(main())
