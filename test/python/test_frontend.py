"""The example frontend: Python's meaning of statements and expressions, on devices."""
import math
import os
import subprocess
import sys
import unittest

import numpy as np
import python_frontend as fe
import qdc
from python_frontend import __main__ as examples
from python_frontend import (block, buffer, cast, elements, f32, f64, grid_stride, i32, i64, kernel, private, select,
                             shared, subgroup, table, thread_index, unroll, vector)

import kernels

SCALE = 3
FACTORS = (2, 3, 5)


class Examples(unittest.TestCase):
    def test_all(self):
        for device in kernels.DEVICES:
            for check in examples.CHECKS:
                with self.subTest(device=device, check=check.__name__):
                    check(device, np.random.default_rng(2))

    def test_subgroups(self):
        """The same kernels where subgroups are of other sizes."""
        for name, size in (("cpu", 4), ("cpu", 64), ("interp", 8), ("sim:gfx1100", 64)):
            device = qdc.Device(name, subgroup_size=size)
            for check in examples.CHECKS:
                with self.subTest(device=name, size=size, check=check.__name__):
                    check(device, np.random.default_rng(4))
        if any("llvmpipe" in entry.text for entry in qdc.devices()):
            for width in ("128", "512"):
                done = subprocess.run([sys.executable, "-m", "python_frontend", "vulkan"], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, universal_newlines=True, env=dict(
                                          os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                                          LP_NATIVE_VECTOR_WIDTH=width))
                self.assertEqual(0, done.returncode, done.stdout)

    def test_targets(self):
        for target, emit in (("nvptx:sm_90", "ptx"), ("amdgcn:gfx942", "hsaco"), ("spirv@32", "spirv")):
            self.assertGreater(len(examples.kernels.softmax.compile(target, emit=emit)), 100)


# What kernels below and Python compute alike: functions of an integer that are called in both.

def early(v):
    if v > 20:
        return 1
    if v > 10:
        if v == 15:
            return 2
        v += 100
    elif v == 3:
        return -v
    return v * 2


def loops(v):
    total, rounds = 0, 0
    while True:
        if rounds >= v:
            break
        rounds += 1
        if rounds % 3 == 0:
            continue
        total += rounds
    for j in range(v, 0, -2):
        if j == 5:
            continue
        for k in range(j):
            if k * j > 40:
                break
            total += k
        else_ = total
        if else_ > 500:
            break
    for j in range(2, v, 3):
        total ^= j
    return total


def steps(v):
    step = 3 - v % 7
    if step == 0:
        step = -4
    total = 0
    for j in range(v, 20, step):
        total = total * 3 + j
        if total > 100000:
            break
    for j in range(20, v, -step):
        total ^= j
    return total


def tuples(v):
    a, (b, c) = v, (v + 1, v * 2)
    if v % 2:
        a, b = b, a
    pair = (a, b)
    for _ in range(3):
        pair = (pair[1], pair[0] + 1)
    return pair[0] * 100 + pair[1] + c + sum(pair) + max(pair) - min(pair[0], 5)


def static(v):
    total = 0
    for f in FACTORS:
        if f == 3:
            continue
        for n, g in enumerate(FACTORS):
            if n == 2:
                break
            total += f * g * v
    for n in range(4) if False else (1, 2):
        total += n
    squares = [n * n for n in range(5) if n % 2]
    return total + squares[1] + len(squares) + (1 if SCALE == 3 else v // 0)


def logic(v):
    a = v > 3 and v < 9 or v == 20
    b = not a and (v % 2 == 0)
    c = 2 < v <= 7
    d = v in (1, 4, 6)
    return int(a) + 2 * int(b) + 4 * int(c) + 8 * int(d) + (16 if a and b or c else 0)


def returns_from_loops(v):
    for i in range(2, 50):
        for j in range(50):
            if i * j == v + 6:
                return i * 100 + j
            if j > i:
                break
    if v > 30:
        while True:
            v -= 7
            if v < 20:
                return v
    return -1


def pairs_from_loops(v):
    def find(n):
        for f in FACTORS:
            if n % f == 0:
                return f, n // f
        return 1, n

    a, b = find(v + 1)
    return a * 1000 + b


def closures(v):
    offset = v + 1

    def add(a):
        return a + offset

    return add(add(SCALE))


FUNCTIONS = (early, loops, steps, tuples, static, closures, logic, returns_from_loops, pairs_from_loops)


def over(function):
    @kernel(block=32)
    def apply(x: buffer(i32, readonly=True), y: buffer(i32)):
        for i in elements(x.size()):
            y[i] = function(x[i])
    return apply


class Meaning(unittest.TestCase):
    def test_as_python(self):
        x = np.arange(40, dtype=np.int32)
        for function in FUNCTIONS:
            expected = [function(int(v)) for v in x]
            compiled = over(function)
            for device in kernels.DEVICES:
                with self.subTest(function=function.__name__, device=device):
                    y = np.full(40, -1, np.int32)
                    compiled(x, y, grid=2, device=device)
                    np.testing.assert_array_equal(y, expected)

    def test_guards(self):
        """`and` reads no memory where its left side has decided; return leaves a kernel."""
        @kernel(block=32)
        def guarded(x: buffer(i32, readonly=True), y: buffer(i32)):
            i = thread_index()
            if i >= y.size():
                return
            y[i] = -1
            for j in range(100):
                if i < x.size() and x[i] == j:
                    y[i] = j
                    return
            y[i] = -2

        x, y = np.array([3, 200, 0], np.int32), np.zeros(5, np.int32)
        guarded(x, y, grid=1, device="interp")
        np.testing.assert_array_equal(y, [3, -2, 0, -2, -2])

    def test_arrays(self):
        @kernel(block=16)
        def arrays(y: buffer(i32, 2), z: buffer(f32)):
            t = thread_index()
            s, p, primes = shared(i32, (4, 4)), private(i32, 4), table((2, 3, 5, 7), i32)
            s[t // 4, t % 4] = t
            block.sync()
            for j in unroll(range(4), "full"):
                p[j] = s[j, t // 4] * primes[j]
            for row, column in elements((y.size(0), y.shape[1])):
                y[row, column] = p[row]
            v = vector(1.0, 2.0, cast(t, f32), 4.0)
            z[t] = (v * v)[2] + len(p)

        y, z = np.zeros((3, 20), np.int32), np.zeros(16, np.float32)
        arrays(y, z, grid=(2, 1), device="interp")
        t = np.arange(16)
        expected = np.zeros((3, 20), np.int32)
        expected[0] = ((np.arange(20) % 16) // 4) * 2
        np.testing.assert_array_equal(y[0], expected[0])
        np.testing.assert_array_equal(z, t * t + 4)

    def test_types(self):
        @kernel(block=32)
        def typed(n: int, k: float, p: bool, y: buffer(f64), z: buffer(i64)):
            for i in grid_stride(y.size()):
                total: f64 = 0
                wide = i64(n) << 33
                for j in range(3):
                    total += math.sin(f64(k)) if p else 1
                y[i] = total + select(i > 2, f64(1), f64(2))
                z[i] = wide + int(5.7) + i64(math.floor(k))

        y, z = np.zeros(5), np.zeros(5, np.int64)
        for device in kernels.DEVICES:
            typed(3, 2.5, True, y, z, grid=1, device=device)
            np.testing.assert_allclose(y, 3 * np.sin(2.5) + np.array([2, 2, 2, 1, 1]), rtol=1e-15)
            np.testing.assert_array_equal(z, (3 << 33) + 7)

    def test_collectives(self):
        @kernel(block=64)
        def collect(x: buffer(f32, readonly=True), sums: buffer(f32), at: buffer(i32)):
            i = thread_index()
            total = block.reduce_all(lambda a, b: a + b, x[i])
            least, place = subgroup.reduce_all(lambda a, b: b if b[0] < a[0] else a, x[i], i, tile=16)
            rank = subgroup.exclusive_scan("add", 1, tile=16)
            if subgroup.elect(tile=16):
                sums[i // 16] = total
                at[i // 16] = place
            assert rank == i % 16, "ranks count up"

        x = np.random.default_rng(3).integers(0, 99, 64).astype(np.float32)
        for device in kernels.DEVICES:
            sums, at = np.zeros(4, np.float32), np.zeros(4, np.int32)
            collect(x, sums, at, grid=1, device=device)
            np.testing.assert_array_equal(sums, x.sum())
            np.testing.assert_array_equal(at, [16 * j + x[16 * j:16 * j + 16].argmin() for j in range(4)])

    def test_names(self):
        """All ops of the table can be named."""
        from qdc import ops
        for name in ops.OPS:
            place = fe
            path = name[len("qd."):] if name.startswith("qd.") else name
            if path in ("kernel", "return", "yield", "constant", "constant.get", "print", "assert", "shared.alloc",
                        "private.alloc"):
                continue  # a decorator, statements, and table, shared and private
            for part in path.split("."):
                place = getattr(place, part)
            self.assertEqual(name, place.name)
        with self.assertRaisesRegex(qdc.ArgumentError, "is for kernels"):
            fe.subgroup.shuffle(1, 2)

    def test_names_of_parameters(self):
        """Those that the builder has for something else."""
        @kernel(block=1)
        def sums(value: i32, name: i32, math: i32, if_: buffer(i32)):
            if value > 2:
                if_[0] = value + name * math
        out = np.zeros(1, np.int32)
        sums(3, 4, 5, out, grid=1, device="interp")
        self.assertEqual(23, out[0])


if __name__ == "__main__":
    unittest.main()
