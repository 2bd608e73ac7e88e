"""Building kernels: every op of the table compiles, values compute what Python computes, and mistakes are refused."""
import contextlib
import copy
import os
import pickle
import re
import unittest

import numpy as np
import qdc
from qdc import ops

import kernels

HERE = os.path.dirname(os.path.abspath(__file__))


def run(device, build, x, y, **arguments):
    """Builds a kernel of one block over x and y, and launches it."""
    module = qdc.Builder()
    types = {"x": qdc.buffer(x.dtype.name.replace("int", "i").replace("float", "f")),
             "y": qdc.buffer(y.dtype.name.replace("int", "i").replace("float", "f"))}
    kernel = module.kernel("k", types, arguments.pop("block", 32))
    build(kernel)
    qdc.Device(device, **arguments).load(module)["k"](x, y, grid=1)
    return y


class Table(unittest.TestCase):
    def test_documented(self):
        """The table has the ops that the documentation has, by the same names."""
        with open(os.path.join(HERE, "..", "..", "docs", "ops.md")) as file:
            documented = set(re.findall(r"^### (qd\.\S+)$", file.read(), re.M))
        self.assertEqual(documented, {name for name in ops.OPS if name.startswith("qd.")})

    # What an op is tried with, by the kind of its parameter.
    def operand(self, kernel, parameter, name):
        if parameter.kind in "TU":
            return kernel.f
        if parameter.kind == "F":
            return kernel.f
        if parameter.kind in ("I", "i32", "i32|n"):
            return kernel.i
        if parameter.kind == "i1":
            return kernel.i < 3
        if parameter.kind == "i64":
            return kernel.subgroup.active_mask()
        if parameter.kind == "n":
            return 8
        if parameter.kind == "dim":
            return "y"
        if parameter.kind == "type":
            return qdc.i64
        if parameter.kind == "flag":
            return parameter.name not in ("unsigned", "unsigned_values")  # floats have no sign to ignore
        if parameter.name == "fastmath":
            return "contract"
        return "subgroup"

    def test_all(self):
        """Each row, with its optional parameters and without them, is what the compiler reads."""
        count = 0
        for name, row in ops.OPS.items():
            if row.form in ("custom", "combine"):
                continue
            for full in (False, True):
                module = qdc.Builder()
                k = module.kernel("k", {"i": qdc.i32, "f": qdc.f32}, 64)
                given = {p.name: self.operand(k, p, name) for p in row.parameters if full or not p.optional}
                if {"members", "tile"} <= set(given):
                    del given["tile"]
                if {"lane", "tile"} <= set(given) and "lanemask" in name:
                    del given["lane"]
                k.call_op(name, **given)
                with self.subTest(op=name, operands=sorted(given)):
                    self.assertIn(name, qdc.compile(module, "nvptx", emit="qir").text)
                    count += 1
        self.assertGreater(count, 200)

    def test_combine(self):
        for name, row in ops.OPS.items():
            if row.form != "combine":
                continue
            module = qdc.Builder()
            k = module.kernel("k", {"i": qdc.i32, "f": qdc.f32}, 64)
            options = {"head": k.i < 2} if "segmented" in name else {}
            if name.endswith("segmented_scan"):
                options["exclusive"] = True
            tile = {} if ".block." in name else {"tile": 16}
            k.call_op(name, "add", k.f, **options, **tile)
            more = dict(options, identity=(0.0, 7)) if "exclusive" in name or "exclusive" in options else options
            k.call_op(name, lambda a, b: (a[0] + b[0], k.select(a[1] < b[1], a[1], b[1])), k.f, k.i, **more)
            with self.subTest(op=name):
                self.assertEqual(2, qdc.compile(module, "nvptx", emit="qir").text.count(name + " "))

    def test_own_forms(self):
        """The rest, by their names in QIR, in one kernel."""
        module = qdc.Builder()
        k = module.kernel("k", {"x": qdc.buffer("i32"),
                                "m": qdc.buffer("f32", 2, readonly=True, noalias=True, align=16)}, 64,
                          resizable=True, min_blocks=2, max_registers=64)
        i = k.thread_index()
        s = k.call_op("qd.shared.alloc", "i32", 64)
        p = k.call_op("qd.private.alloc", "f32", (2, 2))
        t = k.call_op("qd.constant", [[1.5, 2.0], [-0.5, 4.0]], "f16", "numbers")
        k.call_op("qd.store", 1.5, p, (0, i & 1))
        v = k.call_op("qd.load", p, (0, i & 1), where=i < 3, otherwise=2.5)
        k.call_op("qd.store", k.cast(v, qdc.i32), k.x, i, where=i < 5)
        k.x.store(k.x.load(0, lanes=4, align=16), 4, align=16)
        k.x.store(k.x.load(i, volatile=True), i, volatile=True)
        k.x[0] = k.cast(t[1, i & 1], qdc.i32)
        k.call_op("qd.atomic_rmw", "add", 1, k.x, 0, where=i < 3, order="acq_rel", scope="block")
        old, done = k.call_op("qd.atomic_cas", 0, 1, k.x, i, order="acquire")
        k.call_op("qd.atomic_store", k.call_op("qd.atomic_load", k.x, 0, where=done, otherwise=old), k.x, 1,
                  order="release")
        part = k.call_op("qd.view", k.m, (0, i), (2, 2))
        row = k.m.view((i, 0), 3)
        k.x[k.call_op("qd.size", part, 1)] = k.cast(row[0], qdc.i32)
        k.x.view(i, (4, 2), strides=(2, 1))
        k.x[2] = k.call_op("qd.reinterpret", k.m, "i32").load(0)
        k.async_copy(k.x, i, s, i, where=i < 60)
        k.async_commit()
        k.async_wait(0)
        k.block.sync_shared()
        bins = k.shared("i32", 16)
        rank = k.block.radix_rank(s[i], radix_bits=4, num_bits=3, begin=2, bins=bins)
        a, b = k.block.radix_sort(rank, values=(v,), descending=True, unsigned=True, begin=0, end=8)
        low, high = k.unpack_bits(k.pack_bits(a < 3, b < 1.0), 2)
        k.print_("{} of 100% \"{{}}\"\n", a, where=low)
        k.print_("{} and {}", a, k.vector(1.0, 2.5))
        k.assert_(high | low | (i >= 0), "häufig")
        sine, cosine = k.math.sincos(v)
        k.x[3] = k.cast(k.math.clampf(sine, cosine, 1.0), qdc.i32)
        text = qdc.compile(module, "nvptx", emit="qir").text
        for name in ("sync_shared", "radix_rank", "strides(", "align(16)", "volatile", "acq_rel", "@numbers",
                     "min_blocks(2)"):
            self.assertIn(name, text)
        qdc.compile(module, "nvptx:sm_90", emit="ptx")


class Values(unittest.TestCase):
    def test_integers(self):
        """Operators round and shift as Python's do."""
        x = np.array([-2**31, -7, -3, -1, 0, 1, 2, 6, 7, 2**31 - 1] * 3 + [5, -5], np.int32)
        operators = (lambda a: a // 3, lambda a: a // -3, lambda a: a % 3, lambda a: a % -3, lambda a: a // 4,
                     lambda a: a % 8,
                     lambda a: a & 6, lambda a: a | 1, lambda a: a ^ -1, lambda a: ~a, lambda a: a >> 2,
                     lambda a: 5 - (a >> 3),
                     lambda a: abs(a >> 1), lambda a: -(a >> 1), lambda a: 100 // ((a & 7) + 1),
                     lambda a: 100 % ((a & 7) + 1), lambda a: (a & 3) ** 3, lambda a: 2 << (a & 3))
        for number, operator in enumerate(operators):
            def build(k):
                i = k.thread_index()
                k.y[i] = operator(k.x[i])
            with self.subTest(operator=number):
                expected = [operator(int(v)) for v in x]
                np.testing.assert_array_equal(run("interp", build, x.copy(), np.zeros(32, np.int32)), expected)

    def test_floats(self):
        x = np.linspace(-4, 4, 32).astype(np.float32)
        operators = (lambda a: a // 0.75, lambda a: a % 0.75, lambda a: a % -0.75, lambda a: 2.0 / (a + 0.01),
                     lambda a: -a, lambda a: abs(a) ** 2.0, lambda a: 1 - a * 2)
        for number, operator in enumerate(operators):
            def build(k):
                i = k.thread_index()
                k.y[i] = operator(k.x[i])
            with self.subTest(operator=number):
                expected = np.array([operator(v) for v in x], np.float32)
                np.testing.assert_allclose(run("interp", build, x.copy(), np.zeros(32, np.float32)), expected,
                                           rtol=1e-5)

    def test_comparisons(self):
        x = np.array([-1.5, 0, 2, np.nan] * 8, np.float32)

        def build(k):
            i = k.thread_index()
            v = k.x[i]
            tests = (v < 0, v <= 0, v > 0, v >= 0, v == 0, v != 0, 0 < v, v != v)
            k.y[i] = k.pack_bits(*tests)

        expected = [sum(int(t) << n
                        for n, t in enumerate((v < 0, v <= 0, v > 0, v >= 0, v == 0, v != 0, 0 < v, v != v)))
                    for v in x]
        np.testing.assert_array_equal(run("interp", build, x, np.zeros(32, np.int32)), expected)

    def test_conversions(self):
        types = [qdc.i1, qdc.i8, qdc.i16, qdc.i32, qdc.i64, qdc.f16, qdc.bf16, qdc.f32, qdc.f64]

        def build(k):
            i = k.thread_index()
            total = k.cast(0, qdc.i32)
            for source in types:
                for target in types:
                    total = total + k.x[i].to(source).to(target).to(qdc.i32, unsigned=target is qdc.i1)
            k.y[i] = total

        x = np.array([0, 1, 2, 5] * 8, np.int32)
        count = len(types) ** 2
        bools = 2 * len(types) - 1  # pairs of which one is i1: these give 0 or 1
        expected = [0 if v == 0 else (count - bools) * v + bools for v in x]
        np.testing.assert_array_equal(run("interp", build, x, np.zeros(32, np.int32)), expected)

    def test_constants(self):
        values = {"f32": [0.1, -1e300, 1e-45, float("inf"), 3, 1e22], "f64": [0.1, 1e300, 5e-324, -0.0],
                  "i64": [-2**63, 2**64 - 1], "i8": [255, -128]}
        for name, rows in values.items():
            def build(k):
                for n, value in enumerate(rows):
                    k.y[n] = value
            dtype = np.dtype({"f": "float", "i": "int"}[name[0]] + name[1:])
            y = run("interp", build, np.zeros(1, np.int32), np.zeros(len(rows), dtype), block=1)
            with np.errstate(all="ignore"):
                expected = [np.int64(v - 2**64 if v >= 2**63 else v) if dtype.kind == "i" else v for v in rows]
                np.testing.assert_array_equal(y, np.array(expected).astype(dtype))

    def test_vectors(self):
        def build(k):
            i = k.thread_index()
            v = k.vector(k.x[i], 2.0, 3.0, 4.0) * 2.0
            k.y[i] = v[0] + v[3] + k.math.sqrt(v * v)[1]

        x = np.arange(32, dtype=np.float32)
        np.testing.assert_array_equal(run("cpu", build, x, np.zeros(32, np.float32)), 2 * x + 12)


class ControlFlow(unittest.TestCase):
    def test_regions(self):
        def build(k):
            i = k.thread_index()
            low, high = k.if_(i < 4, lambda: (i, 1.5), lambda: (3, 2.5))
            total, = k.for_(0, i, 1, lambda j, s: s + j, [0], unroll=2)
            steps, n = k.while_(lambda c, n: n > 1, lambda c, n: (c + 1, n // 2), [0, i])
            with k.if_(i % 2 == 0):
                k.y[i] = low + k.cast(high, qdc.i32) + total + steps + n
            with k.otherwise():
                with k.for_(0, 2) as j:
                    k.y[i] = j

        expected = []
        for i in range(32):
            low, high = (i, 1.5) if i < 4 else (3, 2.5)
            steps, n = 0, i
            while n > 1:
                steps, n = steps + 1, n // 2
            expected.append(low + int(high) + sum(range(i)) + steps + n if i % 2 == 0 else 1)
        for device in kernels.DEVICES:
            np.testing.assert_array_equal(run(device, build, np.zeros(1, np.int32), np.zeros(32, np.int32)), expected)

    def test_functions(self):
        module = qdc.Builder()
        double = module.function("double", {"v": qdc.i32})
        double.returns(double.v * 2, double.v + 1)
        k = module.kernel("k", {"y": qdc.buffer(qdc.i32)}, 8)
        i = k.thread_index()
        a, b = k.call(double, i)
        k.y[i] = a + b
        y = np.zeros(8, np.int32)
        qdc.Device("cpu").load(module)["k"](y, grid=1)
        np.testing.assert_array_equal(y, 3 * np.arange(8) + 1)

    def test_places(self):
        """Diagnostics name the places that were given."""
        module = qdc.Builder()
        k = module.kernel("k", {"f": qdc.f32}, 32)
        k.at("model \"a\".py", 12, 5)
        with k.if_(k.thread_index() < 3):
            k.at("model \"a\".py", 13, 9)
            k.subgroup.reduce_all("add", k.f)
        with self.assertRaises(qdc.CompileError) as caught:
            qdc.compile(module, "nvptx")
        first = caught.exception.diagnostics[0]
        self.assertEqual(('model "a".py', 13, 9), (first.file, first.line, first.column))


class Mistakes(unittest.TestCase):
    def test_refused(self):
        module = qdc.Builder()
        k = module.kernel("k", {"i": qdc.i32, "j": qdc.i64, "f": qdc.f32, "x": qdc.buffer(qdc.f32)}, 32)
        other = module.kernel("other", {"i": qdc.i32}, 32)
        for build, text in (
                (lambda: k.i + k.f, r"found %f of f32, expected i32"), (lambda: k.i + k.j, r"expected i32; it can be converted, as in v.to\(qdc.i32\)$"),
                (lambda: k.f + k.vector(k.f, k.f), r"of vector<2xf32>, expected f32$"),
                (lambda: k.vector(k.f, k.f) + k.vector(k.i, k.i), r"of vector<2xi32>, .*v.to\(qdc.f32\)$"),
                (lambda: k.i + other.i, "belongs to another kernel"), (lambda: k.i + 2**40, "does not fit i32"),
                (lambda: k.i + 0.5, "expected an integer"), (lambda: k.f & 1, "no such operator"),
                (lambda: k.i / 2, "use //"),
                (lambda: k.x + 1, "is an array"), (lambda: k.f + k.x, "is an array"),
                (lambda: bool(k.i < 3), "known only when"),
                (lambda: list(k.i), "iterated"), (lambda: k.x[0, 1], "takes 1 subscripts, got 2"),
                (lambda: k.x[k.f], "a subscript is"), (lambda: k.x[0.5], "a subscript is"),
                (lambda: k.i[0], "no elements"),
                (lambda: k.x.store(1, 0, where=k.i), "expected i1"), (lambda: k.math.exp(k.i), "expected a float"),
                (lambda: k.math.exp(), "lacks its operand 'a'"), (lambda: k.math.exp(k.f, b=2), "no operand 'b'"),
                (lambda: k.math.exp(k.f, k.f, k.f, k.f), "takes 2 operands"),
                (lambda: k.subgroup.shuffle(k.f, 1, value=k.f), "twice"),
                (lambda: k.subgroup.reduce("add"), "at least one"),
                (lambda: k.subgroup.reduce("add", k.f, k.f), "one value"),
                (lambda: k.subgroup.reduce(3, k.f), "a kind or a function"),
                (lambda: k.subgroup.reduce("add }", k.f), "a word"),
                (lambda: k.subgroup.reduce(lambda a, b: (a, b), k.f), "gives 2 values, expected 1"),
                (lambda: k.subgroup.reduce("add", k.f, tile=k.i), "known beforehand"),
                (lambda: k.subgroup.reduce("add", k.f, identity=(1, 2)), "1 values, and 2 identities"),
                (lambda: k.thread_id("x y"), "a word"), (lambda: k.otherwise(), "right behind"),
                (lambda: k.if_(k.i < 3, lambda: 1, lambda: (1, 2)), "give 1 and 2 values"),
                (lambda: k.if_(k.i < 3, lambda: k.i, lambda: None), "give 1 and 0 values"),
                (lambda: k.if_(k.i < 3, lambda: None, lambda: k.i), "give 0 and 1 values"),
                (lambda: k.vector(1.0), "2, 3, 4"),
                (lambda: k.for_(0, k.i, 1, lambda i: 1, []), "gives 1 values, expected 0"),
                (lambda: k.for_(k.i, 0, -1), "a loop's step is at least 1, got -1"),
                (lambda: k.for_(0, 9, np.int32(0)), "at least 1"),
                (lambda: module.kernel("q4", ["a"], 32), "arguments map names to types, got list"),
                (lambda: k.shared("f33", 3), "unknown type"), (lambda: k.shared("f32", 0), "from 1"),
                (lambda: k.shared("f32", k.i), "from 1"), (lambda: k.table([], "i32"), "not empty"),
                (lambda: k.table([[1], [2, 3]], "i32"), "one length"),
                (lambda: k.table([2**40], "i32"), "does not fit"),
                (lambda: k["q"], "no argument 'q'"), (lambda: k.call(k), "takes a function"),
                (lambda: module.kernel("k", {}, 32), "has a 'k' already"),
                (lambda: module.kernel("a b", {}, 32), "a name is"),
                (lambda: module.kernel("q", {"a-b": qdc.i32}, 32), "a name is"),
                (lambda: module.kernel("q2", {}, 0.5), "integer"),
                (lambda: module.kernel("q3", {"a": int}, 32), "unknown type"), (lambda: k.print_(3), "expected a text"),
                (lambda: k.async_copy(k.f, 0, k.f, 0), "is an array"), (lambda: k.call_op("qd.return"), "'qd.return'"),
                (lambda: k.call_op("qd.load", k.f, 0), "is an array"), (lambda: qdc.buffer("f32", 4), "1 to 3"),
                (lambda: qdc.vector("f32", 5), "2, 3, 4, 8 or 16")):
            with self.subTest(text=text), self.assertRaisesRegex(qdc.ArgumentError, text):
                build()
        module.kernel("k2", {"y": qdc.f32, "x": qdc.buffer(qdc.f32)}, 32).x.store(1, 0)
        for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            self.assertEqual(module.to_qir(), again.to_qir())
        with contextlib.ExitStack() as stack, self.assertRaisesRegex(qdc.Error, "nested"):
            for _ in range(5000):
                stack.enter_context(other.if_(other.i < 3))
            qdc.compile(module, "nvptx")
        with self.assertRaises(AttributeError):
            k.subgroup.nothing
        with self.assertRaises(AttributeError):
            k.nothing

    def test_regions_that_ended(self):
        """What a region made for itself is not known behind it, nor in the region beside it."""
        module = qdc.Builder()
        k = module.kernel("k", {"n": qdc.i32, "f": qdc.f32, "x": qdc.buffer(qdc.i32)}, 32)
        made = {}

        def keep(name, value):
            made[name] = value
            return value

        with k.if_(k.n < 3):
            keep("if", k.n + 1)
            keep("array", k.private("i32", 4))
            keep("view", k.x.view(k.n, 2))
            keep("vector", k.vector(k.n, k.n))
            with k.for_(0, keep("if", k.n + 2)) as i:
                keep("for", i)
                inner = keep("nested", i + made["if"])
                k.x[i] = inner
                self.assertIs(made["if"], k.value(made["if"]))
            with self.assertRaisesRegex(qdc.ArgumentError, r"^%i belongs to a region that has ended; if_, for_"):
                k.x[0] = made["for"]
        with k.otherwise():
            keep("else", k.n + 3)
            with self.assertRaisesRegex(qdc.ArgumentError, "a region that has ended"):
                k.x[0] = made["if"]
        k.if_(k.n < 3, lambda: keep("then", k.n + 4), lambda: keep("side", k.n + 5))
        k.for_(0, k.n, 1, lambda i, v: (keep("counter", i) + keep("carried", v),), [0])

        def body(v):
            with self.assertRaisesRegex(qdc.ArgumentError, "a region that has ended"):
                k.x[0] = made["condition"]
            return keep("round", v) + 1

        k.while_(lambda v: keep("condition", keep("before", v) * 2) < 9, body, [0])
        k.subgroup.reduce_all(lambda a, b: keep("sum", keep("a", a) + b), k.n)
        array, view, vector = made.pop("array"), made.pop("view"), made.pop("vector")
        uses = [(name, lambda v=v: k.x.store(v, 0)) for name, v in made.items()]
        value = made["then"]
        uses += [("operator", lambda: value + 1), ("other side", lambda: k.n + value),
                 ("comparison", lambda: value < 1), ("conversion", lambda: value.to(qdc.f32)),
                 ("subscript", lambda: k.x[value]),
                 ("clause", lambda: k.subgroup.shuffle(k.n, value)), ("element", lambda: vector[0]),
                 ("vector", lambda: k.x.store(vector, 0)), ("load", lambda: array[0]),
                 ("array", lambda: array.store(1, 0)), ("size", lambda: view.size()),
                 ("view", lambda: view.view(0, 1)), ("reinterpret", lambda: view.reinterpret("f32")),
                 ("yield", lambda: k.if_(k.n < 3, lambda: value, lambda: 0)),
                 ("else", lambda: k.if_(k.n < 3, lambda: 0, lambda: value)),
                 ("round", lambda: k.for_(0, 3, 1, lambda i, v: value, [0])),
                 ("first", lambda: k.for_(0, 3, 1, lambda i, v: v, [value])),
                 ("combine", lambda: k.subgroup.reduce_all(lambda a, b: a + value, k.n)),
                 ("print", lambda: k.print_("{}", value))]
        for name, use in uses:
            with self.subTest(name), self.assertRaisesRegex(qdc.ArgumentError, "belongs to a region that has ended"):
                use()
        with self.assertRaises(RuntimeError):
            with k.if_(k.n < 3):
                left = k.n + 1
                raise RuntimeError
        with self.assertRaisesRegex(qdc.ArgumentError, "a region that has ended"):
            k.value(left)

    def test_names_of_arguments(self):
        """An argument hides nothing that a kernel has anyway, and is not hidden by it."""
        module = qdc.Builder()
        names = [name for name in dir(module.kernel("k", {"n": qdc.i32}, 32)) if name != "n"]
        self.assertLess({"subgroup", "block", "grid", "math", "arith", "if_", "for_", "value", "name", "arguments",
                         "_lines", "_clauses", "__class__"}, set(names))
        for name in names:
            with self.subTest(name), self.assertRaisesRegex(
                    qdc.ArgumentError, "argument '%s' of 'q' has the name of an attribute that 'q' has anyway" % name):
                module.kernel("q", {"n": qdc.i32, name: qdc.i32}, 32)
        with self.assertRaisesRegex(qdc.ArgumentError, "argument 'returns' of 'q' has the name"):
            module.function("q", {"returns": qdc.i32})
        function = module.function("f", {"block": qdc.i32}, attributes=False)
        function.returns(function["block"] + 1)
        k = module.kernel("q", {"block": qdc.buffer(qdc.i32), "if_": qdc.i32, "n": qdc.i32}, 1, attributes=False)
        with self.assertRaises(AttributeError):
            k.n
        k.block.sync()
        with k.if_(k["if_"] > 2):
            k["block"][0] = k.call(function, k["if_"] + k["n"])
        out = np.zeros(1, np.int32)
        qdc.Device("interp").load(module)["q"](out, 5, 7, grid=1)
        self.assertEqual(13, out[0])

    def test_arrays_of_other_kernels(self):
        module = qdc.Builder()
        k = module.kernel("k", {"x": qdc.buffer(qdc.i32)}, 32)
        other = module.kernel("other", {"x": qdc.buffer(qdc.i32)}, 32)
        function = module.function("f", {"x": qdc.buffer(qdc.i32)})
        shared = other.shared("i32", 32)
        for name, use in (("call", lambda: k.call(function, other.x)),
                          ("source", lambda: k.async_copy(other.x, 0, k.shared("i32", 32), 0)),
                          ("target", lambda: k.async_copy(k.x, 0, shared, 0)),
                          ("bins", lambda: k.block.radix_rank(k.thread_index(), radix_bits=4, bins=shared)),
                          ("op", lambda: k.call_op("qd.load", other.x, 0))):
            with self.subTest(name), self.assertRaisesRegex(qdc.ArgumentError, "belongs to another kernel"):
                use()


if __name__ == "__main__":
    unittest.main()
