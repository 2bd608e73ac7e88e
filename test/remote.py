#!/usr/bin/env python3
"""Packs the execution tests for a machine that has a GPU but no compiler.

usage: remote.py BIN FOLDER [TARGETS]

Compiles every kernel file with a `RUN: %run` line to a bundle (TARGETS, by default nvptx:sm_90,spirv@32) and writes
FOLDER: qdc-run, the bundles, and `run.sh DEVICE...`, which runs them all on each device (cuda, vulkan, hip) and ends
with `N passed, N failed`. A test whose kernels a target refuses is left out for that target, and listed.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

# Runs the tests of each device, eight at a time, and counts them.
RUN = """#!/bin/sh
cd "$(dirname "$0")"
for device; do
  xargs -d '\\n' -P 8 -n 1 ./one.sh <"tests.$device"
done >results
grep -v '^PASSED' results
echo "$(grep -c '^PASSED' results) passed, $(grep -c '^FAILED' results) failed"
! grep -q '^FAILED' results
"""

# Runs one test, a line of shell. A kernel that hangs ends with its process.
ONE = """#!/bin/sh
if output=$(timeout -k 5 60 sh -c "$1" 2>&1); then echo "PASSED: $1"
else echo "FAILED: $1: exit status $?
$output"; fi
"""

LANES = {"cuda": 32, "vulkan": 32, "hip": 64}


def run_lines(path):
    """The arguments of each `%run` line, with the options that choose executors apart."""
    with open(path) as file:
        text = re.sub(r"\\\n\s*//\s*RUN:\s*", "", file.read())
    for line in re.findall(r"RUN:\s*(?:env \S+ )?%run\s+(.*)", text):
        words = shlex.split(re.sub(r"(--(?:sizes|only|except))\s+", r"\1=", line))
        chosen = dict(word[2:].split("=", 1) for word in words if re.match(r"--(sizes|only|except)=", word))
        arguments = [w for w in words if w != "%s" and not re.match(r"--(sizes|only|except)=", w)]
        yield chosen, arguments


def applies(chosen, device):
    lanes = str(LANES[device])
    families = {device, "%s@%s" % (device, lanes)}
    if "only" in chosen and not families & set(chosen["only"].split(",")):
        return False
    if families & set(chosen.get("except", "").split(",")):
        return False
    return "sizes" not in chosen or lanes in chosen["sizes"].split(",")


def main():
    binaries, folder = sys.argv[1:3]
    targets = sys.argv[3] if len(sys.argv) > 3 else "nvptx:sm_90,spirv@32"
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(binaries, "qdc-run"), folder)
    files = sorted(glob.glob(root + "/test/ops/*.qir") + glob.glob(root + "/test/faults/*.qir") + glob.glob(root + "/docs/examples/*.qir"))
    commands = {device: [] for device in LANES}
    for path in files:
        lines = list(run_lines(path))
        if not lines:
            continue
        # Files of different folders may share a name.
        name = "-".join(os.path.splitext(os.path.relpath(path, root))[0].split(os.sep)[-2:]) + ".qdb"
        bundle = os.path.join(folder, name)
        done = subprocess.run([os.path.join(binaries, "qdc"), path, "-target=" + targets, "--strip-qir", "-o", bundle],
                              stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode:
            print("left out: %s: %s" % (name, done.stderr.strip().splitlines()[0]))
            continue
        for chosen, arguments in lines:
            for device in LANES:
                if applies(chosen, device):
                    words = ["./qdc-run", name, "-device=" + device] + arguments
                    commands[device].append(" ".join(map(shlex.quote, words)))
    for device, lines in commands.items():
        with open(os.path.join(folder, "tests." + device), "w") as file:
            file.writelines(line + "\n" for line in lines)
    for name, text in (("run.sh", RUN), ("one.sh", ONE)):
        with open(os.path.join(folder, name), "w") as script:
            script.write(text)
        os.chmod(os.path.join(folder, name), 0o755)
    print({device: len(lines) for device, lines in commands.items()})


main()
