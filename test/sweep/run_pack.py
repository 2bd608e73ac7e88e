#!/usr/bin/env python3
"""Runs a packed sweep on this machine's devices.

usage: run.py DEVICE... [-j N] [--match TEXT]

DEVICE is cuda, vulkan or hip, as qdc-run names them (vulkan:1 is the second). --match runs only kernels whose names
hold TEXT. Prints each failure, and at last "N passed, M failed". A launch that fails otherwise than by its numbers may
take the process's device with it: it is run again alone, and so are those behind it.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIME_LIMIT = 300


def launch(device, bundle, lines):
    """Each line's name with None or its failure, as far as the process comes; and the process's own last words."""
    with tempfile.NamedTemporaryFile("w", dir=HERE, suffix=".list") as file:
        file.writelines(lines)
        file.flush()
        command = ["./qdc-run", bundle, "-device=" + device, "--launches=" + os.path.basename(file.name)]
        try:
            done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT)
            output, errors, ending = done.stdout, done.stderr, "exit status %d" % done.returncode
        except subprocess.TimeoutExpired as expired:
            output, errors = expired.stdout or b"", expired.stderr or b""
            ending = "still running after %d s" % TIME_LIMIT
    results = []
    for line in output.decode(errors="replace").splitlines():
        match = re.match(r"(passed|FAILED): (\w+)(?:: (.*))?$", line)
        if match:
            results.append((match.group(2), None if match.group(1) == "passed" else match.group(3) or "failed"))
    return results, ("%s: %s" % (ending, errors.decode(errors="replace").strip()))[:400]


def name_of(line):
    return re.search(r"-kernel=(\w+)", line).group(1)


def is_mismatch(failure):
    return "values differ" in failure


def run_bundle(device, bundle, match):
    with open(os.path.join(HERE, bundle + ".list")) as file:
        lines = [line for line in file if match in name_of(line)]
    outcomes = {}
    while lines:
        results, ending = launch(device, bundle, lines)
        bad = next((k for k, (_, failure) in enumerate(results) if failure and not is_mismatch(failure)), None)
        if bad is not None:
            results = results[:bad + (len(lines) == 1 or bad == 0)]
        if not results:
            # Refused as a whole, or ended by the first: alone it says why.
            if len(lines) > 1:
                alone, why = launch(device, bundle, lines[:1])
                outcomes[name_of(lines[0])] = alone[0][1] if alone else why
            else:
                outcomes[name_of(lines[0])] = ending
            lines = lines[1:]
        else:
            outcomes.update(results)
            lines = lines[len(results):]
    return device, outcomes


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("devices", nargs="+")
    parser.add_argument("-j", type=int, default=min(os.cpu_count(), 12))
    parser.add_argument("--match", default="")
    options = parser.parse_args()
    with open(os.path.join(HERE, "index")) as file:
        bundles = [line.split() for line in file]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        jobs = [pool.submit(run_bundle, device, bundle, options.match)
                for device in options.devices for family, bundle in bundles if family == device.split(":")[0]]
        for job in jobs:
            device, outcomes = job.result()
            for name, failure in outcomes.items():
                passed += failure is None
                failed += failure is not None
                if failure:
                    print("FAILED: %s: %s: %s" % (device, name, failure), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
