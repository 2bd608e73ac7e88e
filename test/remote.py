#!/usr/bin/env python3
"""Packs the execution tests for a machine that has a GPU but no compiler.

usage: remote.py [--launches N] BIN FOLDER [TARGETS]

Compiles every kernel file with a `RUN: %run` line to a bundle (TARGETS, by default nvptx:sm_90,spirv@32) and writes
FOLDER: qdc-run, the bundles, and `run.sh DEVICE...`, which runs them all on each device (cuda, vulkan, hip) and ends
with `N passed, N failed`. Each test launches N (100) times and compares each time. A test whose kernels a target
refuses is left out for that target, and listed.
"""
import argparse
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
if output=$(timeout -k 5 120 sh -c "$1" 2>&1); then echo "PASSED: $1"
else echo "FAILED: $1: exit status $?
$output"; fi
"""

LANES = {"cuda": 32, "vulkan": 32, "hip": 64}
BACKENDS = {"cuda": "nvptx", "vulkan": "spirv", "hip": "amdgcn"}
FOLDERS = ["test/ops", "test/faults", "test/launch", "docs/examples"]


def run_lines(path):
    """The arguments of each `%run` line, with the options that choose executors and what it sets for them ("env")
    apart."""
    with open(path) as file:
        text = re.sub(r"\\\n\s*//\s*RUN:\s*", "", file.read())
    for env, line in re.findall(r"RUN:\s*(?:env (\S+) )?%run\s+(.*)", text):
        words = shlex.split(re.sub(r"(--(?:sizes|only|except))\s+", r"\1=", line))
        chosen = dict(word[2:].split("=", 1) for word in words if re.match(r"--(sizes|only|except|launches)=", word))
        if env:
            chosen["env"] = env
        arguments = [w for w in words if w != "%s" and not re.match(r"--(sizes|only|except|launches)=", w)]
        yield chosen, arguments


def applies(chosen, device):
    lanes = str(LANES[device])
    families = {device, "%s@%s" % (device, lanes)}
    if "only" in chosen and not families & set(chosen["only"].split(",")):
        return False
    if families & set(chosen.get("except", "").split(",")):
        return False
    return "sizes" not in chosen or lanes in chosen["sizes"].split(",")


def compile_bundle(qdc, path, targets, options, bundle):
    """The targets that take the file's kernels, which the bundle is then for, and why the others do not."""
    def run(wanted):
        return subprocess.run([qdc, path, "-target=" + ",".join(wanted), "--emit=qdb", "--strip-qir", "-o", bundle]
                              + options, stderr=subprocess.PIPE, universal_newlines=True)
    if run(targets).returncode == 0:
        return targets, []
    done = {target: run([target]) for target in targets}
    for target in targets:
        if done[target].returncode < 0:
            sys.exit("%s ends by signal %d on %s for %s" % (qdc, -done[target].returncode, path, target))
    taken = [target for target in targets if done[target].returncode == 0]
    if taken:
        run(taken)
    return taken, ["%s: %s" % (target, done[target].stderr.strip().splitlines()[0]) for target in targets
                   if target not in taken]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("binaries")
    parser.add_argument("folder")
    parser.add_argument("targets", nargs="?", default="nvptx:sm_90,spirv@32")
    options = parser.parse_args()
    binaries, folder, targets = options.binaries, options.folder, options.targets
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(binaries, "qdc-run"), folder)
    files = [path for part in FOLDERS for path in sorted(glob.glob(os.path.join(root, part, "*.qir")))]
    commands = {device: [] for device in LANES}
    for path in files:
        # Files of different folders may share a name; other block sizes are bundles of their own.
        stem = "-".join(os.path.splitext(os.path.relpath(path, root))[0].split(os.sep)[-2:])
        bundles = {}
        for chosen, arguments in run_lines(path):
            blocks = [word for word in arguments if word.startswith("-block=")]
            name = "".join([stem] + [re.sub(r"\W", "-", word) for word in blocks]) + ".qdb"
            if name not in bundles:
                bundles[name], refusals = compile_bundle(os.path.join(binaries, "qdc"), path, targets.split(","),
                                                         blocks, os.path.join(folder, name))
                for refusal in refusals:
                    print("left out: %s for %s" % (name, refusal))
            for device in LANES:
                if applies(chosen, device) and any(t.startswith(BACKENDS[device]) for t in bundles[name]):
                    words = ["./qdc-run", name, "-device=" + device, "--repeat=%d" % options.launches]
                    words += [w for w in arguments if w not in blocks]
                    commands[device].append(" ".join(map(shlex.quote, words)))
    for device, lines in commands.items():
        with open(os.path.join(folder, "tests." + device), "w") as file:
            file.writelines(line + "\n" for line in lines)
    for name, text in (("run.sh", RUN), ("one.sh", ONE)):
        with open(os.path.join(folder, name), "w") as script:
            script.write(text)
        os.chmod(os.path.join(folder, name), 0o755)
    print({device: len(lines) for device, lines in commands.items()})


if __name__ == "__main__":
    main()
