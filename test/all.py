"""Runs all tests of a build folder: what ctest lists, GoogleTest programs case by case, and the lit suites.

Prints the output of what fails; the last line is "N passed, N failed". Exit status 0 only where something ran
and nothing failed.
"""

import concurrent.futures
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


def run(command, cwd, environment):
    """The exit status, or None past the time limit, and the output."""
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
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


def run_gtest(name, command, cwd, environment, tally):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        status, output = run(command + ["--gtest_output=json:" + report, "--gtest_brief=1"], cwd, environment)
        suites = read_json(report)
    for suite in (suites or {}).get("testsuites", []):
        for case in suite["testsuite"]:
            if case["result"] == "COMPLETED":
                tally.add(f"{name}: {case['classname']}.{case['name']}", not case.get("failures"))
    # A program that died has no report, and takes all its cases with it.
    if status != 0 and not tally.failures:
        tally.add(f"{name}: exit status {status}", False)
    return status, output


def run_ctest(test, build):
    """What passed and failed of one of ctest's tests, and its output where anything did, and the seconds it took."""
    tally = Tally()
    start = time.time()
    properties = {p["name"]: p["value"] for p in test.get("properties", [])}
    cwd = properties.get("WORKING_DIRECTORY", build)
    environment = {**os.environ, **dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))}
    if "command" not in test:
        tally.add(f"{test['name']}: not built", False)
        return tally, "", 0
    if os.path.basename(test["command"][0]).endswith("-unit"):
        status, output = run_gtest(test["name"], test["command"], cwd, environment, tally)
    else:
        status, output = run(test["command"], cwd, environment)
        tally.add(test["name"], status == 0)
    return tally, "" if status == 0 else output, time.time() - start


def run_ctest_list(build, tally):
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, stdout=subprocess.PIPE)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(run_ctest, test, build): test["name"] for test in json.loads(listing.stdout)["tests"]}
        for done in concurrent.futures.as_completed(runs):
            one, output, seconds = done.result()
            tally.passed += one.passed
            tally.failures += one.failures
            print(f"{output}{runs[done]}: {one.passed} passed, {len(one.failures)} failed, {seconds:.1f} s", flush=True)


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
