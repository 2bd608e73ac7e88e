#!/usr/bin/env python3
"""The kernels of docs/examples on random data of awkward sizes, on every executor, against NumPy.

usage: examples.py --bin FOLDER [--only LIST] [--repeat N] [--seed N] [--venv FOLDER]

--only names executors as run.py does; --repeat launches everything N times (1), to look for what is right only mostly.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import with_numpy  # noqa: E402

with_numpy.ensure()
import numpy as np  # noqa: E402

import executors  # noqa: E402

EXAMPLES = os.path.join(HERE, "..", "docs", "examples")


class Launch:
    """One launch of a kernel of an example: its scalars, its arrays, and what the arrays hold afterwards. `expected`
    maps a name to an array, with a tolerance beside it, or to a function of what came out that gives an error or
    None."""

    def __init__(self, example, grid, scalars, arrays, expected, kernel=None):
        self.example, self.grid, self.scalars, self.arrays = example, grid, scalars, arrays
        self.expected, self.kernel = expected, kernel


# ---- the examples, and what they should give --------------------------------------------------------------------

def blocks(count, size):
    return (count + size - 1) // size


def histogram(random):
    for n, grid in ((1, 1), (1000, 3), (100003, 7)):
        x = random.integers(0, 256, n).astype(np.uint8)
        x[n // 2:] //= 16  # many of the same
        yield Launch("histogram", (grid,), {}, {"x": x.view(np.int8), "bins": np.zeros(256, np.int32)},
                     {"bins": np.bincount(x, minlength=256).astype(np.int32)})


def equalize(random):
    for n in (1, 5, 4099):
        x = (random.normal(90, 20, n).clip(0, 255)).astype(np.uint8)
        bins = np.bincount(x, minlength=256)
        upto = np.cumsum(bins)
        least = upto[x.min()]
        spread = max(int(n - least), 1)
        table = np.array([0 if c < least else ((int(c) - int(least)) * 255 + spread // 2) // spread for c in upto])
        table = table.astype(np.uint8)
        yield Launch("equalize", (1,), {}, {"bins": bins.astype(np.int32), "table": np.zeros(256, np.int8)},
                     {"table": table.view(np.int8)}, "spread")
        yield Launch("equalize", (blocks(n, 512),), {},
                     {"x": x.view(np.int8), "table": table.view(np.int8), "y": np.zeros(n, np.int8)},
                     {"y": table[x].view(np.int8)}, "apply")


def softmax(random):
    for rows, columns in ((3, 1), (5, 77), (4, 1000)):
        x = random.normal(0, 8, (rows, columns)).astype(np.float32)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        yield Launch("softmax", (rows,), {"columns": columns}, {"x": x, "y": np.zeros_like(x)},
                     {"y": ((e / e.sum(axis=1, keepdims=True)).astype(np.float32), 2e-6)})


def transpose(random):
    for rows, columns in ((1, 1), (31, 70), (100, 33)):
        x = random.normal(size=(rows, columns)).astype(np.float32)
        yield Launch("transpose", (blocks(columns, 32), blocks(rows, 32)), {"rows": rows, "columns": columns},
                     {"x": x, "y": np.zeros((columns, rows), np.float32)}, {"y": np.ascontiguousarray(x.T)})


def matmul(random):
    for rows, inner, columns in ((1, 1, 1), (35, 20, 17), (16, 48, 64)):
        # Products of small whole numbers are exact.
        a = random.integers(-8, 8, (rows, inner)).astype(np.float32)
        b = random.integers(-8, 8, (inner, columns)).astype(np.float32)
        yield Launch("matmul", (blocks(columns, 16), blocks(rows, 16)),
                     {"rows": rows, "inner": inner, "columns": columns},
                     {"a": a, "b": b, "c": np.zeros((rows, columns), np.float32)}, {"c": a @ b})


def compact(random):
    size = 200  # threads of a block
    for n in (1, 199, 5003):
        x = random.normal(size=n).astype(np.float32)
        kept = [part[part > 0.25] for part in np.split(x, range(size, n, size))]

        def check(y, kept=kept):
            """The blocks' parts stand behind each other in any order."""
            total = sum(map(len, kept))
            found, rest = y[:total], [part for part in kept if len(part)]
            while len(found):
                part = next((p for p in rest if np.array_equal(found[:len(p)], p)), None)
                if part is None:
                    return "no block's values begin with %s" % found[:4]
                found = found[len(part):]
                rest = [p for p in rest if p is not part]
            return "written past the end" if (y[total:] != -9).any() else None

        yield Launch("compact", (blocks(n, size),), {"least": 0.25},
                     {"x": x, "y": np.full(n, -9, np.float32), "count": np.zeros(1, np.int32)},
                     {"y": check, "count": np.array([sum(map(len, kept))], np.int32)})


def block_sort(random):
    for n in (1, 1000, 2500):
        keys = random.integers(-2**31, 2**31, n).astype(np.int32)
        keys[::3] %= 8
        values = np.arange(n, dtype=np.int32)
        order = np.concatenate([start + np.argsort(keys[start:start + 1024], kind="stable")
                                for start in range(0, n, 1024)])
        yield Launch("block_sort", (blocks(n, 1024),), {}, {"keys": keys, "values": values},
                     {"keys": keys[order], "values": values[order]})


def sort_contacts(random):
    counts = np.array([0, 1, 5, 31, 32], np.int32)
    keys = random.integers(0, 9, 32 * len(counts)).astype(np.float32)
    contacts = random.integers(0, 99, len(keys)).astype(np.int32)
    sorted_keys, sorted_contacts = keys.copy(), contacts.copy()
    for scene, count in enumerate(counts):
        part = slice(32 * scene, 32 * scene + count)
        order = np.lexsort((contacts[part], keys[part]))
        sorted_keys[part], sorted_contacts[part] = keys[part][order], contacts[part][order]
    yield Launch("sort_contacts", (len(counts),), {}, {"counts": counts, "keys": keys, "contacts": contacts},
                 {"keys": sorted_keys, "contacts": sorted_contacts})


def cumsum(random):
    for n in (1, 63, 1000):
        a = random.integers(-999, 999, n).astype(np.int32)
        sums = np.concatenate([np.cumsum(part) for part in np.split(a, range(32, n, 32))]).astype(np.int32)
        yield Launch("cumsum", (blocks(n, 64),), {}, {"a": a}, {"a": sums})


def lookback_scan(random):
    for n in (1, 64, 12345):
        src = random.integers(-9, 9, n).astype(np.int32)
        yield Launch("lookback_scan", (blocks(n, 64),), {"n": n},
                     {"src": src, "dst": np.zeros(n, np.int32), "ticket": np.zeros(1, np.int32),
                      "states": np.zeros(blocks(n, 64), np.int64)},
                     {"dst": (np.cumsum(src) - src).astype(np.int32)})


ALL = (histogram, equalize, softmax, transpose, matmul, compact, block_sort, sort_contacts, cumsum, lookback_scan)


# ---- running them -----------------------------------------------------------------------------------------------

def write(launches, folder):
    """Writes the inputs and returns the lines of qdc-run's list, by example."""
    lists = {}
    for number, launch in enumerate(launches):
        words = ["-grid=" + ",".join(map(str, launch.grid))]
        words += ["-kernel=" + launch.kernel] if launch.kernel else []
        words += ["%s=%s" % pair for pair in launch.scalars.items()]
        for name, array in launch.arrays.items():
            path = os.path.join(folder, "%d-%s.npy" % (number, name))
            np.save(path, array)
            words.append("%s=@%s" % (name, path))
        for name in launch.expected:
            words += ["-out", "%s=%s" % (name, os.path.join(folder, "%d-%s.out.npy" % (number, name)))]
        lists.setdefault(launch.example, []).append((number, launch, " ".join(words)))
    return lists


def differs(found, expected):
    """None, or how an output differs from what is expected of it."""
    if callable(expected):
        return expected(found)
    expected, tolerance = expected if isinstance(expected, tuple) else (expected, None)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return "found %s of %s, expected %s of %s" % (found.dtype, found.shape, expected.dtype, expected.shape)
    same = np.abs(found - expected) <= tolerance if tolerance else found == expected
    if same.all():
        return None
    place = np.argwhere(~same)[0]
    return "at %s: found %s, expected %s" % (list(place), found[tuple(place)], expected[tuple(place)])


def run(qdc_run, executor, example, rows, folder, repeat):
    """The failures of one example on one executor."""
    path = os.path.join(folder, "list")
    outputs = [os.path.join(folder, "%d-%s.out.npy" % (number, name)) for number, launch, _ in rows
               for name in launch.expected]
    failures = []
    for _ in range(repeat):
        for output in filter(os.path.exists, outputs):
            os.remove(output)
        with open(path, "w") as file:
            file.write("".join(line + "\n" for _, _, line in rows))
        command = [qdc_run, os.path.join(EXAMPLES, example + ".qir"), "-device=" + executor.device,
                   "--launches=" + path]
        # Waits between blocks end there only where one block runs after the other.
        env = dict(executor.env, LP_NUM_THREADS="1") if example == "lookback_scan" else executor.env
        done = subprocess.run(command + executor.options, env={**os.environ, **env}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
        if done.returncode:
            failures.append(done.stdout.strip())
            continue
        for number, launch, line in rows:
            for name, expected in launch.expected.items():
                output = os.path.join(folder, "%d-%s.out.npy" % (number, name))
                error = differs(np.load(output), expected) if os.path.exists(output) else "not written"
                if error:
                    failures.append("%s %s: %s" % (line.split(" -out")[0], name, error))
    return failures


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--venv")
    options = parser.parse_args()
    qdc_run = os.path.join(options.bin, "qdc-run")
    present, absent = executors.discover(qdc_run)
    for name, why in absent:
        print("absent: %s: %s" % (name, why))
    only = set(filter(None, options.only.split(",")))
    present = [e for e in present if not only or only & {e.family, e.device, e.name}]
    if not present:
        sys.exit("none of the executors asked for is present")
    random = np.random.default_rng(options.seed)
    launches = [launch for example in ALL for launch in example(random)]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for example, rows in write(launches, folder).items():
            for executor in present:
                failures = run(qdc_run, executor, example, rows, folder, options.repeat)
                passed += len(rows) * options.repeat - min(len(failures), len(rows) * options.repeat)
                failed += len(failures)
                for failure in failures[:3]:
                    print("FAILED: %s on %s: %s" % (example, executor.name, failure))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
