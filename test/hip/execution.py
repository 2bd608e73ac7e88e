#!/usr/bin/env python3
"""Execution tests on the stand-in for libamdhip64, from the code object to what a kernel wrote.

usage: execution.py --bin FOLDER --double LIBRARY [--all] [--sim] [FILE.qir...]

All launches that a file asks for, each file on another chip and wave, or with --all on all of them. Examples are
compiled to bundles before and run as a program that ships them would; what stands in test/ is compiled where it runs.
The machine code is carried out as it is (test/amdgcn), or with --sim the QIR that the bundle holds beside it. A process
that misuses HIP's interface, or leaves memory or handles behind, is a failure.
"""
import argparse
import glob
import itertools
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import executors  # noqa: E402
import remote  # noqa: E402
import run  # noqa: E402

# Chips, and waves that they are asked for. The first machine's other device must not matter.
CHIPS = [("gfx942:sramecc+:xnack-", 64), ("gfx1100", 32), ("gfx90a:sramecc+:xnack-", 64), ("gfx1030", 64),
         ("gfx1200", 32), ("gfx1030", 32), ("gfx1100", 64), ("gfx1200", 64)]
# Options that stand with a process, not with a launch.
COMPILED = ("-block=", "-bind=", "-O", "--subgroup-size")
FOLDERS = ["test/ops", "test/launch", "test/faults", "docs/examples"]


def executor(chip, lanes, double, on_sim):
    """Through the second of two devices, so that every call must reach the right one."""
    other = "gfx1100" if chip.startswith("gfx9") else "gfx942"
    env = {"LD_LIBRARY_PATH": os.path.dirname(double), "QDC_COMPILER_LIBRARY": double, "QD_HIP_STRICT": "1",
           "QD_HIP_DEVICES": other + "," + chip, "QD_HIP_EXECUTE": "sim" if on_sim else "code"}
    return executors.Executor("hip:1", lanes, ["--subgroup-size=%d" % lanes], env)


def applies(chosen, chip, lanes):
    """A line leaves out what it leaves out of sim."""
    device = "sim:" + chip.split(":")[0]
    names = {"sim", device, "%s@%d" % (device, lanes), "hip"}
    if "only" in chosen and not names & set(chosen["only"].split(",")):
        return False
    if names & set(chosen.get("except", "").split(",")):
        return False
    return "sizes" not in chosen or str(lanes) in chosen["sizes"].split(",")


def choose(path, turn, on_all):
    """(options, launches, chip, lanes): those that compile the file alike together, each set on the next chip that
    takes it or on all of them."""
    sets = {}
    for chosen, arguments in remote.run_lines(path):
        key = (tuple(sorted(chosen.items())), tuple(w for w in arguments if w.startswith(COMPILED)))
        sets.setdefault(key, []).append([w for w in arguments if not w.startswith(COMPILED)])
    for (chosen, compiled), launches in sets.items():
        first = next(turn)
        taking = [CHIPS[(first + step) % len(CHIPS)] for step in range(len(CHIPS))]
        taking = [(chip, lanes) for chip, lanes in taking if applies(dict(chosen), chip, lanes)]
        for chip, lanes in taking if on_all else taking[:1]:
            yield list(compiled), launches, chip, lanes


def bundle(qdc, path, chip, lanes, folder):
    target = "amdgcn:%s@%d" % (chip.split(":")[0], lanes)
    output = os.path.join(folder, os.path.basename(path) + ".qdb")
    subprocess.run([qdc, path, "-target=" + target, "-o", output], check=True)
    return output


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--double", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    files = options.files or [path for folder in FOLDERS
                              for path in sorted(glob.glob(os.path.join(ROOT, folder, "*.qir")))]
    turn = itertools.count()
    count = failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            for compiled, launches, chip, lanes in choose(path, turn, options.all):
                where = executor(chip, lanes, os.path.abspath(options.double), options.sim)
                program, listed = path, os.path.join(folder, "launches")
                if os.sep + "examples" + os.sep in path:
                    program = bundle(os.path.join(options.bin, "qdc"), path, chip, lanes, folder)
                    where.env["QD_HIP_BUNDLES"] = program
                with open(listed, "w") as file:
                    file.writelines(" ".join(words) + "\n" for words in launches)
                failure = run.run(os.path.join(options.bin, "qdc-run"), where,
                                  [program, "--launches=" + listed] + compiled)
                count += len(launches)
                if failure:
                    failures += 1
                    print("FAILED: %s on %s in waves of %d %s:\n  %s" % (
                        os.path.relpath(path, ROOT), chip, lanes, " ".join(compiled), failure.replace("\n", "\n  ")))
    print("%d launches, %d processes failed" % (count, failures))
    return not count or failures


if __name__ == "__main__":
    sys.exit(main())
