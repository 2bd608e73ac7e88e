"""The example frontend: Python's meaning of statements and expressions, on devices, and errors with their lines."""
import inspect
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
                             shared, static_range, subgroup, table, thread_index, unroll, vector)

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


class Errors(unittest.TestCase):
    """Each kernel below is wrong in the line that ends in `# !`."""

    def refused(self, function, text):
        with self.assertRaisesRegex(fe.FrontendError, text) as caught:
            kernel(block=32)(function).qir
        error = caught.exception
        self.assertTrue(error.source.endswith("# !"), error)
        with open(__file__) as file:
            self.assertEqual(file.read().split("\n")[error.line - 1], error.source)
        self.assertEqual(__file__, error.diagnostics[0].file)

    def test_types(self):
        def mixed(n: i32, x: buffer(f32)):
            x[0] = x[0] * n  # !
        self.refused(mixed, "the operands are f32 and i32: convert one, as in f32")

        def changes(n: i32, x: buffer(f32)):
            total = 0
            for i in range(n):  # !
                total = x[i]
            x[0] = total
        self.refused(changes, r"'total' is i32 before the loop and f32 after a round of it.*total: f32 = ")

        def begins(n: i32, x: buffer(f32)):
            total = 0
            for i in range(n):
                total += x[i]  # !
            x[0] = total
        self.refused(begins, r"i32 and f32: convert one, as in f32\(x\); a local keeps the type")

        def sides(n: i32, x: buffer(f32)):
            v = n
            if n > 3:  # !
                v = x[0]
            x[1] = v
        self.refused(sides, "'v' is f32 on one way and i32 on the other")

        def stored(n: i32, x: buffer(f32)):
            x[0] = n  # !
        self.refused(stored, r"found i32, expected f32: convert it, as in f32\(x\)\n")

        def narrowed(n: i32, x: buffer(i32), y: buffer(f32)):
            x[0] = y[0]  # !
        self.refused(narrowed, r"error: found f32, expected i32: convert it, as in i32\(x\)\n")

        def lanes(n: i32, x: buffer(f32)):
            x[0] = subgroup.shuffle(vector(x[1], x[2]), 0) + x[1]  # !
        self.refused(lanes, "the operands are vector<2xf32> and f32")

        def whole(n: i32, x: buffer(f32)):
            x.atomic("add", x, 0)  # !
        self.refused(whole, "found an array of !qd.buffer<f32>, expected f32\n")

        def function(n: i32, x: buffer(f32)):
            x[0] = lambda: 1.0  # !
        self.refused(function, "found a function, expected f32\n")

        def nothing(n: i32, x: buffer(f32)):
            x[0] = None  # !
        self.refused(nothing, "found None, expected f32\n")

        def a_type(n: i32, x: buffer(f32)):
            x[0] = i32  # !
        self.refused(a_type, "found the type i32, expected f32\n")

        def an_op(n: i32, x: buffer(f32)):
            x[0] = thread_index  # !
        self.refused(an_op, "found an op, expected f32\n")

        def tuples(n: i32, x: buffer(i32)):
            if (n, 1) == (1, n):  # !
                x[0] = 1
        self.refused(tuples, r"a tuple of \(i32, the number 1\) and a tuple of \(the number 1, i32\) are not compared")

        def negated(n: i32):
            n = -"a"  # !
        self.refused(negated, "found a text, expected a value")

        def rounds(f: f32):
            for i in range(f):  # !
                pass
        self.refused(rounds, "a range is of integers, found f32")

        def element(n: i32):
            n = n[0]  # !
        self.refused(element, "error: i32 cannot be subscripted")

        def part(n: i32):
            t = (1, 2, 3)[n:]  # !
        self.refused(part, "a slice of a tuple is known beforehand")

        def message(n: i32):
            assert n > 2, n  # !
        self.refused(message, "found i32, expected a text")

        def matrix(n: i32):
            n = n @ n  # !
        self.refused(matrix, "'@' is not supported")

        def with_none(n: i32):
            while n == None:  # noqa: E711  # !
                pass
        self.refused(with_none, "i32 and None are not compared")

        def subscript(n: f32, x: buffer(f32)):
            x[n] = 1.0  # !
        self.refused(subscript, "a subscript is an i32 or i64")

        def divided(n: i32, x: buffer(f32)):
            x[0] = f32(n / 2)  # !
        self.refused(divided, "use //")

        def number(n: i32, x: buffer(f32)):
            m = n + 2**40  # !
        self.refused(number, "does not fit i32")

        def condition(n: i32, x: buffer(f32)):
            if x:  # !
                pass
        self.refused(condition, "no condition")

    def test_names(self):
        def unknown(n: i32):
            m = nothing  # noqa: F821  # !
        self.refused(unknown, "'nothing' is not defined")

        def partly(n: i32, x: buffer(i32)):
            if n > 3:
                v = 1
            x[0] = v  # !
        self.refused(partly, "'v' is assigned on some ways")

        def after(n: i32, x: buffer(i32)):
            for i in range(n):
                v = i
            x[0] = v  # !
        self.refused(after, "'v' is assigned on some ways")

        def op(n: i32):
            subgroup.nonsense(n)  # !
        self.refused(op, "no op 'qd.subgroup.nonsense'")

        def attribute(n: i32, x: buffer(i32)):
            n.size()  # !
        self.refused(attribute, "i32 has no 'size' in a kernel")

    def test_calls(self):
        def foreign(n: i32):
            open("file")  # !
        self.refused(foreign, "open cannot be called in a kernel")

        def of_value(n: i32):
            n()  # !
        self.refused(of_value, "error: i32 cannot be called in a kernel")

        def without_index(x: buffer(f32)):
            x.load()  # !
        self.refused(without_index, "error: load: missing a required argument: 'index'")

        def option(x: buffer(f32)):
            x.load(0, foo=1)  # !
        self.refused(option, "error: load: got an unexpected keyword argument 'foo'")

        def count(n: i32):
            early(n, n)  # !
        self.refused(count, "'early' takes 1 arguments, got 2")

        def keyword(n: i32):
            early(w=n)  # !
        self.refused(keyword, "no parameter 'w'")

        def lacking(n: i32):
            early()  # !
        self.refused(lacking, "lacks its argument 'v'")

        def operands(n: i32):
            subgroup.shuffle(n)  # !
        self.refused(operands, "lacks its operand 'lane'")

        def recursive(n: i32):
            descend(n)
        with self.assertRaisesRegex(fe.FrontendError, "a kernel cannot call itself"):
            kernel(block=32)(recursive).qir

        def nested(n: i32):
            examples.kernels.saxpy(n)  # !
        self.refused(nested, "a kernel cannot launch a kernel")

    def test_statements(self):
        def with_(n: i32):
            with n:  # !
                pass
        self.refused(with_, "'with' is not supported")

        def try_(n: i32):
            try:  # !
                pass
            except ValueError:
                pass
        self.refused(try_, "'try' is not supported")

        def class_(n: i32):
            class A:  # !
                pass
        self.refused(class_, "'class' is not supported")

        def global_(n: i32):
            global SCALE  # !
            SCALE = 3
        self.refused(global_, "'global' is not supported")

        def else_(n: i32):
            for i in range(n):
                pass
            else:
                n = n + 1  # !
        self.refused(else_, "'else' of a loop")

        def value(n: i32):  # !
            return n
        self.refused(value, "a kernel gives no value")

        def iterate(n: i32, x: buffer(i32)):
            for v in x:  # !
                pass
        self.refused(iterate, "a loop goes over")

        def step(n: i32):
            for i in range(0, n, 0):  # !
                pass
        self.refused(step, "step 0")

        def dictionary(n: i32):
            d = {1: n}  # !
        self.refused(dictionary, "a dictionary is not supported")

        def text(n: i32):
            f"{n}"  # !
        self.refused(text, "an f-string is not supported")

        def walrus(n: i32):
            if (m := n) > 2:  # !
                pass
        self.refused(walrus, "':=' is not supported")

        def generator(n: i32):
            yield n  # !
        self.refused(generator, "'yield' is not supported")

        def chain(n: i32):
            yield from (n,)  # !
        self.refused(chain, "'yield from' is not supported")

        def unordered(n: i32):
            n = {n}  # !
        self.refused(unordered, "a set is not supported")

        def slices(n: i32, m: buffer(i32, 2)):
            n = m[0:2, 1]  # !
        self.refused(slices, "a slice among several subscripts is not supported")

        def of_function(n: i32):
            thread_index.size  # !
        self.refused(of_function, "an op has no 'size' in a kernel")

        def long(n: i32):
            for i in static_range(10**9):  # !
                pass
        self.refused(long, "is not unrolled")

        def dynamic(n: i32):
            for i in static_range(n):  # !
                pass
        self.refused(dynamic, "known beforehand")

        def unpack(n: i32):
            a, b = n  # !
        self.refused(unpack, "expected a tuple of 2 values, found i32")

    def test_signatures(self):
        def untyped(n):  # !
            pass
        self.refused(untyped, "needs a type")

        def wrong(n: str):  # !
            pass
        self.refused(wrong, "expected a scalar type or buffer")

        def default(n: i32 = 3):  # !
            pass
        self.refused(default, "plain parameters")
        with self.assertRaisesRegex(qdc.ArgumentError, "needs the block's size"):
            kernel(untyped)
        with self.assertRaisesRegex(qdc.ArgumentError, "is for functions"):
            kernel(block=32)(3)
        with self.assertRaisesRegex(qdc.CompileError, "source"):
            space = {"i32": i32}
            exec("def made(n: i32):\n    pass\n", space)
            kernel(block=32)(space["made"]).qir

    def test_of_the_compiler(self):
        """What the compiler refuses points at the Python, too; so does what fails when it runs."""
        @kernel(block=32)
        def divergent(x: buffer(f32)):
            if thread_index() < 3:
                x[0] = subgroup.reduce_all("add", x[1])  # here
        with self.assertRaisesRegex(qdc.CompileError, "uniform") as caught:
            divergent.compile("nvptx")
        first = caught.exception.diagnostics[0]
        self.assertTrue(first.source.endswith("# here"), first)
        self.assertIn("if thread_index() < 3", first.notes[0].source)

        @kernel(block=32)
        def outside(x: buffer(f32)):
            x[thread_index()] = 1.0
        with self.assertRaisesRegex(qdc.LaunchError, r"test_frontend.py:\d+:\d+: 'qd.store' op subscript 5"):
            outside(np.zeros(5, np.float32), grid=1, device="interp")
        with self.assertRaisesRegex(qdc.ArgumentError, "elements are f64, expected f32"):
            outside(np.zeros(5), grid=1)
        with self.assertRaises(qdc.DeviceError):
            outside(np.zeros(5, np.float32), grid=1, device="nothing")


class Anything(unittest.TestCase):
    def test_functions_of_python(self):
        """Functions that were never meant for it are refused at their lines, or compile."""
        import bisect, colorsys, copy, difflib, fractions, heapq, random, statistics, textwrap  # noqa: E401
        from python_frontend.kernel import parse
        from python_frontend.lowering import Function, Lowering
        count = 0
        for module in (bisect, colorsys, copy, difflib, fractions, heapq, random, statistics, textwrap):
            owners = [module] + [value for value in vars(module).values() if inspect.isclass(value)]
            for function in filter(inspect.isfunction, (value for owner in owners for value in vars(owner).values())):
                for type in (i32, f32, buffer(f32)):
                    count += 1
                    module_text = qdc.Builder()
                    try:
                        node, file = parse(function)
                        types = {argument.arg: type for argument in node.args.args}
                        built = module_text.kernel("k", types, 32, attributes=False)
                        Lowering(built).run_kernel(Function(function, node, file),
                                                   {name: built[name] for name in types})
                        qdc.compile(module_text, "nvptx", emit="qir")
                    except qdc.Error as error:
                        self.assertTrue(str(error))
        self.assertGreater(count, 300)


def descend(v):
    return descend(v - 1)


if __name__ == "__main__":
    unittest.main()
