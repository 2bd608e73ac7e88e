#!/usr/bin/env python3
"""Packs the sweep of subgroup and block ops for a machine that has a GPU but neither compiler nor NumPy.

usage: pack.py --bin FOLDER OUTPUT [--targets LIST] [--size N] [--sample N] [--ops LIST] [--seed N] [--jobs N]
               [--no-subnormals TYPES]

Writes the folder OUTPUT and OUTPUT.tar.xz: qdc-run, run.py, and for each of some hundred batches of kernels a bundle a
target, the list of its launches and NumPy files with inputs and expected outputs. There `python3 run.py cuda vulkan`
runs all and ends with "N passed, M failed". LIST is by default cuda=nvptx:sm_90,vulkan=spirv@32, the subgroup size 32.
Vulkan devices may flush subnormals; NVIDIA's flush those of f32, and so of bf16, which is computed in it:
--no-subnormals f32,bf16.
"""
import argparse
import collections
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import cases  # noqa: E402
import launches  # noqa: E402
import scalars  # noqa: E402
import subgroup  # noqa: E402

BATCH = 64  # kernels a bundle


def batches(options):
    """Rows of the same types side by side: a device that lacks a type refuses only those."""
    wanted = tuple(filter(None, options.ops.split(",")))
    names = [name for name in subgroup.OPS if name.startswith(wanted or "")]
    rows = [row for row in subgroup.rows(names, [options.size])
            if subgroup.turn(options.seed, *row) // 2 % options.sample == 0]
    by_types = collections.defaultdict(list)
    for row in rows:
        by_types[row[1]].append(row)
    for types in sorted(by_types):
        ordered = sorted(by_types[types], key=lambda row: (str(row[2:]), row[0]))
        for start in range(0, len(ordered), BATCH):
            yield ordered[start:start + BATCH]


def compile_bundle(qdc, base, target, made):
    """Writes bundles of the cases that the target takes; gives (bundle, cases) and (case, reason)."""
    with open(base + ".qir", "w") as file:
        file.write("".join(case.text for case in made))
    bundle = base + ".qdb"
    done = subprocess.run([qdc, base + ".qir", "-target=" + target, "--strip-qir", "--emit=qdb", "-o", bundle],
                          stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
    os.remove(base + ".qir")
    if done.returncode == 0:
        return [(bundle, made)], []
    if len(made) == 1:
        return [], [(made[0], done.stderr.strip())]
    half = len(made) // 2
    first, second = (compile_bundle(qdc, base + letter, target, part)
                     for letter, part in (("a", made[:half]), ("b", made[half:])))
    return first[0] + second[0], first[1] + second[1]


def pack_batch(job):
    """The lines of the index, how many cases there are, and what is left out."""
    number, rows, options = job
    scalars.without_subnormals.update(options.no_subnormals.split(","))
    made = [case for case in (cases.build(("subgroup", row), options.seed, None) for row in rows) if case]
    if not made:
        return [], 0, []
    base = os.path.join(options.output, "%03d" % number)
    arrays = launches.Arrays(base)
    lines = {case.name: launches.expecting(case, arrays) for case in made}
    assert len(lines) == len(made), "two cases of one name"
    arrays.write()
    index, left_out = [], []
    for device, target in options.devices:
        bundles, refused = compile_bundle(os.path.join(options.bin, "qdc"), "%s.%s" % (base, device), target, made)
        for bundle, chosen in bundles:
            with open(bundle + ".list", "w") as file:
                file.writelines(lines[case.name] + "\n" for case in chosen)
            index.append("%s %s" % (device, os.path.basename(bundle)))
        left_out += ["%s: %s: %s" % (device, case.name, reason) for case, reason in refused]
    return index, len(made), left_out


def compress(folder, archive):
    """Files of one kind side by side, which compresses best."""
    kind = lambda name: (name.split(".")[-1], name.split(".")[1:], name)
    with tarfile.open(archive, "w:xz", preset=2) as tar:
        for name in sorted(os.listdir(folder), key=kind):
            tar.add(os.path.join(folder, name), os.path.join(os.path.basename(os.path.abspath(folder)), name))


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("output")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--targets", default="cuda=nvptx:sm_90,vulkan=spirv@32")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--ops", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-subnormals", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.devices = [pair.split("=") for pair in options.targets.split(",")]
    os.makedirs(options.output)
    shutil.copy(os.path.join(options.bin, "qdc-run"), options.output)
    shutil.copy(os.path.join(HERE, "run_pack.py"), os.path.join(options.output, "run.py"))
    total, left_out = 0, []
    jobs = [(number, rows, options) for number, rows in enumerate(batches(options))]
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool, \
            open(os.path.join(options.output, "index"), "w") as index:
        for lines, count, reasons in pool.map(pack_batch, jobs):
            index.writelines(line + "\n" for line in lines)
            total += count
            left_out += reasons
    for line in left_out:
        print("left out: " + line)
    archive = options.output.rstrip("/") + ".tar.xz"
    compress(options.output, archive)
    print("%d cases, %d left out of a target, %.1f MiB" % (
        total, len(left_out), os.path.getsize(archive) / 2 ** 20))
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
