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

LANES = {"cuda": 32, "vulkan": 32, "hip": 64}


def run_lines(path):
    """The arguments of each `%run` line, with the options that choose executors apart."""
    with open(path) as file:
        text = re.sub(r"\\\n\s*//\s*RUN:\s*", "", file.read())
    for line in re.findall(r"RUN:\s*%run\s+(.*)", text):
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
        name = os.path.splitext(os.path.basename(path))[0] + ".qdb"
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
    with open(os.path.join(folder, "run.sh"), "w") as script:
        script.write('#!/bin/sh\ncd "$(dirname "$0")"\npassed=0 failed=0\n'
                     'check() {\n  if output=$("$@" 2>&1); then passed=$((passed + 1))\n'
                     '  else failed=$((failed + 1)); echo "FAILED: $*"; echo "$output"; fi\n}\n'
                     'for device; do\n  case $device in\n')
        for device, lines in commands.items():
            script.write("  %s)\n    %s ;;\n" % (device, "\n    ".join("check " + line for line in lines)))
        script.write('  esac\ndone\necho "$passed passed, $failed failed"\n[ $failed = 0 ]\n')
    os.chmod(os.path.join(folder, "run.sh"), 0o755)
    print({device: len(lines) for device, lines in commands.items()})


main()
