"""Launching: arrays in place where the device reaches them, and everything that may be wrong with them."""
import array
import ctypes
import os
import signal
import threading
import unittest

import numpy as np
import qdc
from qdc.interface import parse_interface
from qdc.types import scalar_bits

import kernels

DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16,
          "f32": np.float32, "f64": np.float64}


COUNT = """\
qd.kernel @count(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %old = qd.atomic_rmw add %one, %x[%zero] : !qd.buffer<i32>
  qd.return
}
"""

SPIN = """\
qd.kernel @spin(%x: !qd.buffer<i32>) block(64) {
  %one = arith.constant 1 : i32
  %yes = arith.constant true
  scf.while : () -> () {
    %old = qd.atomic_rmw add %one, %x[0] : !qd.buffer<i32>
    scf.condition(%yes)
  } do {
    scf.yield
  }
  qd.return
}
"""


class EndedEarly(unittest.TestCase):
    """Launches of more blocks than anybody waits for."""

    def blocks(self, device):
        """AMD's chips take less than 2^32 threads in x; a block has 64."""
        return 2**26 - 1 if device.startswith("sim:gfx") else 2**31 - 1

    def setUp(self):
        # Who starts the tests may have them ignore Ctrl-C, as shells do in the background.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_time_limit(self):
        for device in kernels.HOSTS:
            with self.subTest(device=device):
                kernel = qdc.Device(device, launch_time_limit=0.1).load(COUNT)["count"]
                x = np.zeros(1, np.int32)
                with self.assertRaisesRegex(qdc.LaunchError, "takes longer than its limit of 100 ms"):
                    kernel(x, grid=self.blocks(device))
                x[0] = 0
                kernel(x, grid=2)
                self.assertEqual(x[0], 128)
        with self.assertRaisesRegex(qdc.Error, "cannot be ended|absent|cannot be opened"):
            qdc.Device("vulkan", launch_time_limit=0.1)

    def test_ctrl_c(self):
        for device in kernels.HOSTS:
            with self.subTest(device=device):
                opened = qdc.Device(device)
                kernel = opened.load(COUNT)["count"]
                x = np.zeros(1, np.int32)
                kernel(x, grid=1)
                prepared = kernel.prepare(x, grid=self.blocks(device))
                for launch in (lambda: kernel(x, grid=self.blocks(device)), lambda: prepared.launch(opened.stream())):
                    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                    with self.assertRaises(KeyboardInterrupt):
                        launch()
                x[0] = 0
                kernel(x, grid=2)
                self.assertEqual(x[0], 128)

    def test_ctrl_c_inside_a_block(self):
        for device in kernels.HOSTS:
            with self.subTest(device=device):
                kernel = qdc.Device(device).load(SPIN)["spin"]
                x = np.zeros(1, np.int32)
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    kernel(x, grid=1)

    def test_handler_that_goes_on(self):
        seen = []
        before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
        try:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaisesRegex(qdc.LaunchError, "was interrupted by its caller"):
                qdc.Device("interp").load(COUNT)["count"](np.zeros(1, np.int32), grid=self.blocks("interp"))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(seen, [signal.SIGINT])

    def test_isolated(self):
        for device in ("cpu", "interp", "sim:sm_90"):
            x = np.zeros(1, np.int32)
            qdc.Device(device, isolate=True).load(COUNT)["count"](x, grid=2)
            self.assertEqual(x[0], 128)
            # So many that they take longer, and no cache has them.
            many = "".join(COUNT.replace("@count", "@count_%d" % i) for i in range(100))
            with self.assertRaisesRegex(qdc.Error, "longer than its limit of 1 ms"):
                qdc.Device(device, time_limit=0.001).load(many)


class Launches(unittest.TestCase):
    def test_devices(self):
        for device in kernels.DEVICES:
            with self.subTest(device=device):
                x = np.arange(300, dtype=np.float32)
                kernel = qdc.Device(device).load(kernels.SCALE)["scale"]
                kernel(299, 2.5, x, grid=3)
                expected = np.arange(300, dtype=np.float32) * np.float32(2.5)
                expected[299] = 299
                np.testing.assert_array_equal(x, expected)

    def test_arguments_of_any_name(self):
        text = "qd.kernel @k(%self: i32, %kernel: i32, %y: !qd.buffer<i32>) block(1) {\n" \
               "  %s = arith.addi %self, %kernel : i32\n  qd.store %s, %y[0] : !qd.buffer<i32>\n  qd.return\n}\n"
        module = qdc.Device("interp").load(text)
        y = np.zeros(1, np.int32)
        module["k"](**{"self": 3, "kernel": 4, "y": y}, grid=1)
        self.assertEqual(7, y[0])
        module.launch("k", **{"self": 5, "kernel": 4, "y": y}, grid=1)
        self.assertEqual(9, y[0])

    def test_names(self):
        module = qdc.Device("cpu").load(kernels.SCALE)
        x = np.ones(3, np.float32)
        module["scale"](3, x=x, k=3, grid=(1, 1))
        module.launch("scale", 3, k=np.float64(2), x=x, grid=np.int64(1))
        np.testing.assert_array_equal(x, 6)
        self.assertEqual(["scale"], list(module))
        self.assertIn("scale", module)
        self.assertEqual((128, 1, 1), module["scale"].block)

    def test_types(self):
        device = qdc.Device("cpu")
        for name, dtype in DTYPES.items():
            with self.subTest(type=name):
                x = (np.arange(40) % 2).astype(dtype)
                y = np.zeros_like(x)
                device.load(kernels.copy(name))["copy"](x, y, grid=2)
                np.testing.assert_array_equal(x, y)
                if np.dtype(dtype).kind == "i":
                    unsigned = np.zeros(40, np.dtype(dtype.__name__.replace("int", "uint")))
                    device.load(kernels.copy(name))["copy"](x, unsigned, grid=2)
                    np.testing.assert_array_equal(unsigned, x)

    def test_bfloat(self):
        x = np.arange(32, dtype=np.uint16)
        y = np.zeros(32, np.uint16)
        kernel = qdc.Device("cpu").load(kernels.copy("bf16"))["copy"]
        kernel(qdc.view(x, "bf16"), qdc.view(y, qdc.bf16), grid=1)
        np.testing.assert_array_equal(x, y)
        with self.assertRaisesRegex(qdc.ArgumentError, r"elements are i16, expected bf16; qdc.view\(array, 'bf16'\)"):
            kernel(x, y, grid=1)
        with self.assertRaisesRegex(qdc.ArgumentError, "cannot be read as bf16"):
            kernel(qdc.view(np.zeros(3), "bf16"), y, grid=1)

        class OfPyTorch:
            """Whose interface has no code for bfloat16, and whose dtype has no name."""
            def __init__(self, array, dtype):
                self.__array_interface__, self.dtype = {**array.__array_interface__, "typestr": "<V2"}, dtype

        class DType:
            def __init__(self, text):
                self.text = text

            def __str__(self):
                return "torch." + self.text

        y[:] = 0
        kernel(OfPyTorch(x, DType("bfloat16")), OfPyTorch(y, DType("bfloat16")), grid=1)
        np.testing.assert_array_equal(x, y)
        with self.assertRaisesRegex(qdc.ArgumentError, "an array of dtype float8_e5m2"):
            kernel(OfPyTorch(x, DType("float8_e5m2")), y, grid=1)

    def test_vectors(self):
        for shape in ((8, 4), (32,), (2, 16)):
            x = np.arange(32, dtype=np.float32).reshape(shape)
            y = np.zeros_like(x)
            qdc.Device("cpu").load(kernels.copy("vector<4xf32>"))["copy"](x, y, grid=1)
            np.testing.assert_array_equal(x, y)
        with self.assertRaisesRegex(qdc.ArgumentError, "holds no elements of vector<4xf32>"):
            qdc.Device("cpu").load(kernels.copy("vector<4xf32>"))["copy"](np.zeros(7, np.float32), y, grid=1)

    def test_dimensions(self):
        text = """\
qd.kernel @corner(%x: !qd.buffer<?x?xf32>, %s: !qd.buffer<i32>) block(1) {
  %r = qd.size %x, 0 : !qd.buffer<?x?xf32> -> i32
  %c = qd.size %x, 1 : !qd.buffer<?x?xf32> -> i32
  qd.store %r, %s[0] : !qd.buffer<i32>
  qd.store %c, %s[1] : !qd.buffer<i32>
  %v = arith.constant 7.0 : f32
  qd.store %v, %x[1, 2] : !qd.buffer<?x?xf32>
  qd.return
}
"""
        for device in kernels.DEVICES:
            x, s = np.zeros((3, 5), np.float32), np.zeros(2, np.int32)
            kernel = qdc.Device(device).load(text)["corner"]
            kernel(x, s, grid=1)
            self.assertEqual([3, 5], list(s))
            self.assertEqual(7, x[1, 2])
            with self.assertRaisesRegex(qdc.ArgumentError, "expected 2 dimensions"):
                kernel(np.zeros(15, np.float32), s, grid=1)

    def test_protocols(self):
        kernel = qdc.Device("cpu").load(kernels.SCALE)["scale"]
        own = array.array("f", [1, 2])
        kernel(2, 2, own, grid=1)
        self.assertEqual([2, 4], list(own))
        raw = (ctypes.c_float * 2)(1, 2)
        kernel(2, 2, raw, grid=1)
        self.assertEqual([2, 4], list(raw))
        data = bytearray(8)
        kernel(2, 2, memoryview(data).cast("f"), grid=1)

        class Lent:
            """Tells by DLPack alone."""
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

        class Older(Lent):
            def __dlpack__(self):
                return self.array.__dlpack__()

        x = np.ones(4, np.float32)
        kernel(4, 3, Lent(x), grid=1)
        kernel(4, 2, Older(x), grid=1)
        np.testing.assert_array_equal(x, 6)
        with self.assertRaisesRegex(qdc.ArgumentError, "not contiguous"):
            kernel(2, 3, Lent(x[::2]), grid=1)
        with self.assertRaisesRegex(qdc.ArgumentError, "elements are f64, expected f32"):
            kernel(2, 3, Lent(np.ones(4)), grid=1)
        fixed = np.ones(4, np.float32)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(qdc.ArgumentError, "read-only|readonly"):
            kernel(2, 3, Lent(fixed), grid=1)

        class OnGpu:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}

        with self.assertRaisesRegex(qdc.ArgumentError, "argument 'x' of kernel 'scale': the array lies on a GPU"):
            kernel(2, 3, OnGpu(), grid=1)
        with self.assertRaisesRegex(qdc.ArgumentError, "lies on a GPU"):
            kernel.module.device.upload(OnGpu())
        with self.assertRaisesRegex(qdc.ArgumentError, "type code 5"):
            kernel(2, 3, Lent(np.ones(4, complex)), grid=1)

    def test_threads(self):
        """A module serves many threads."""
        kernel = qdc.Device("cpu").load(kernels.SCALE)["scale"]
        arrays = [np.ones(1000, np.float32) for _ in range(8)]

        def work(x):
            for _ in range(5):
                kernel(1000, 2, x, grid=8)

        threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for x in arrays:
            np.testing.assert_array_equal(x, 32)


class Spans(unittest.TestCase):
    """Arrays with gaps, for kernels that make a view."""
    text = """\
qd.kernel @twice(%rows: i32, %columns: i32, %down: i32, %across: i32, %x: !qd.buffer<f32>) block(64) {
  %m = qd.view %x[0], %rows, %columns strides(%down, %across) : !qd.buffer<f32> to !qd.buffer<?x?xf32>
  %i = qd.global_thread_id x : i32
  %r = arith.divui %i, %columns : i32
  %c = arith.remui %i, %columns : i32
  %inside = arith.cmpi ult, %r, %rows : i32
  scf.if %inside {
    %v = qd.load %m[%r, %c] : !qd.buffer<?x?xf32>
    %w = arith.addf %v, %v : f32
    qd.store %w, %m[%r, %c] : !qd.buffer<?x?xf32>
  }
  qd.return
}
"""
    picks = (lambda a: a.T, lambda a: a[:, ::3], lambda a: a[1::2, 1::2], lambda a: a, lambda a: a[2:3, ::2],
             lambda a: a[:0], lambda a: a.T[:1])

    class Lent:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    def test_devices(self):
        base = np.arange(60, dtype=np.float32).reshape(6, 10)
        for device in kernels.DEVICES:
            kernel = qdc.Device(device).load(self.text)["twice"]
            for number, pick in enumerate(self.picks):
                for form in (lambda a: a, self.Lent, memoryview):
                    with self.subTest(device=device, pick=number, form=form):
                        x, expected = base.copy(), base.copy()
                        pick(expected)[...] *= 2
                        part = qdc.span(form(pick(x)))
                        kernel(*part.shape, *part.strides, part, grid=1)
                        np.testing.assert_array_equal(x, expected)

    def test_buffers(self):
        device = qdc.Device("cpu")
        x = device.upload(np.ones((3, 4), np.float32))
        part = qdc.span(x)
        self.assertEqual((part.shape, part.strides), ((3, 4), (4, 1)))
        device.load(self.text)["twice"](*part.shape, *part.strides, part, grid=1)
        np.testing.assert_array_equal(x.numpy(), 2)

    def test_refused(self):
        class Broken:
            def __init__(self, strides):
                self.__array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False),
                                            "strides": strides}

        x = np.ones((4, 6), np.float32)
        for value, text in ((x[::-1], "strides (-24, 4) bytes, expected multiples of 4 from 0"),
                            (np.zeros(5, [("a", "u1"), ("b", "f4")])["b"],
                             "strides (5,) bytes, expected multiples of 4 from 0"),
                            (3, "expected an array, got int"),
                            (Broken((4,)), "strides (4,), expected one for each dimension"),
                            (Broken("ab"), "expected one for each dimension"),
                            (Broken(7), "expected one for each dimension")):
            with self.subTest(text=text), self.assertRaises(qdc.ArgumentError) as caught:
                qdc.span(value)
            self.assertIn(text, str(caught.exception))
        shown = np.broadcast_to(np.float32(1), (3, 3))
        self.assertEqual(qdc.span(shown).strides, (0, 0))
        kernel = qdc.Device("cpu").load(self.text)["twice"]
        with self.assertRaisesRegex(qdc.ArgumentError, "read-only"):
            kernel(3, 3, 0, 0, qdc.span(shown), grid=1)


class Scalars(unittest.TestCase):
    def test_values(self):
        device = qdc.Device("interp")
        for name, values in (("i1", [True, False, 1, np.bool_(True)]), ("i8", [-128, 127, 255]), ("i16", [-5]),
                             ("i32", [2**31 - 1, -2**31, 2**32 - 1, np.int64(5), np.uint8(7)]), ("i64", [-1, 2**63]),
                             ("f16", [0.5, 70000.0, -1e9]), ("f32", [0.1, 1e39, np.float32(2), 3, -1e300]),
                             ("f64", [0.1, np.float16(0.5)])):
            kernel = device.load(kernels.scalar(name))["put"]
            for value in values:
                y = np.zeros(1, DTYPES[name])
                kernel(value, y, grid=1)
                with np.errstate(all="ignore"):
                    expected = np.array(value).astype(DTYPES[name])
                self.assertEqual(expected, y[0], (name, value))

    def test_bfloat(self):
        """Rounded once, from f64: to the nearest, ties to even."""
        for value, bits in ((1.0, 0x3f80), (-2.0, 0xc000), (1.00390625, 0x3f80), (1.01171875, 0x3f82),
                            (1.00390625 + 2**-40, 0x3f81), (1.01171875 - 2**-40, 0x3f81), (float("inf"), 0x7f80),
                            (-1e300, 0xff80), (3.4e38, 0x7f80), (0.0, 0), (-0.0, 0x8000), (1e-45, 0), (2**-133, 1)):
            self.assertEqual(bits, scalar_bits(qdc.bf16, value), value)
        self.assertEqual(0x7f80, scalar_bits(qdc.bf16, float("nan")) & 0x7f80)

    def test_wrong(self):
        for name, value, text in (("i32", 2**32, "does not fit i32"), ("i32", 1.5, "expected an integer"),
                                  ("i1", 2, "does not fit i1"), ("i32", "1", "expected an integer"),
                                  ("i8", -129, "does not fit i8"), ("f32", "1", "expected a number"),
                                  ("f32", 1j, "expected a number"), ("f32", None, "expected a number"),
                                  ("f64", 10**400, "does not fit f64"), ("i64", 10**5000, "does not fit i64"),
                                  ("i32", np.ones(3), "expected an integer"), ("f32", np.ones(3), "expected a number")):
            with self.subTest(type=name, value=type(value).__name__), self.assertRaisesRegex(qdc.ArgumentError, text):
                qdc.Device("cpu").load(kernels.scalar(name))["put"](value, np.zeros(1, DTYPES[name]), grid=1)


class Arguments(unittest.TestCase):
    def setUp(self):
        self.module = qdc.Device("cpu").load(kernels.SCALE)
        self.kernel = self.module["scale"]
        self.x = np.ones(8, np.float32)

    def refused(self, text, *args, grid=1, **named):
        with self.assertRaisesRegex(qdc.ArgumentError, text):
            self.kernel(*args, grid=grid, **named)
        np.testing.assert_array_equal(self.x, 1)

    def test_number(self):
        self.refused("takes 3 arguments, missing: k, x", 3)
        self.refused(r"takes 3 arguments \(n, k, x\), got 4", 3, 2, self.x, 1)
        self.refused("has no parameter 'xx'; did you mean 'x'", 3, 2, xx=self.x)
        self.refused("argument 'n' of kernel 'scale' is given twice", 3, 2, n=3)
        with self.assertRaises(TypeError):
            self.kernel(3, 2, self.x)

    def test_arrays(self):
        for value, text in (
                (self.x.astype(np.float64), "elements are f64, expected f32"), (self.x[::2], "not contiguous"),
                (np.ones((4, 6), np.float32).T,
                 r"not contiguous: shape \(6, 4\), strides \(4, 24\) bytes, expected \(16, 4\)"),
                (np.ones(4, ">f4"), "foreign byte order"),
                (np.ones(4, complex), "dtype complex128"), (np.array(["a"]), "dtype str"),
                (np.array([None]), "dtype object"), (np.zeros(3, [("a", "f4")]), "dtype"),
                (3, "expected an array, got int"),
                (None, "expected an array, got NoneType"), ([1.0], "expected an array, got list"),
                ("text", "expected an array, got str"), (np.float32, "expected an array, got type"),
                (np.frombuffer(bytes(16), np.float32), "read-only"), (b"12345678", "elements are i8"),
                (np.frombuffer(bytearray(9), np.int8)[1:].view(np.float32), "expected a multiple of 4 bytes"),
                (self.kernel, "expected an array, got Kernel"),
                (np.float32(1), "expected an array, got the number float32"),
                (np.ma.masked_array(self.x, self.x > 1), "an array with a mask"),
                (memoryview(bytearray(16)).cast("f")[::2], "not contiguous")):
            with self.subTest(value=repr(value)[:60]):
                self.refused("argument 'x' of kernel 'scale': .*" + text, 3, 2, value)

    def test_anything(self):
        """Whatever is handed in ends in a result or an error of this package, or in one that the value raises
        itself."""
        class Raising:
            def __getattr__(self, name):
                raise RuntimeError(name)

        class NoIndex:
            def __index__(self):
                return "x"

            __float__ = __index__

        values = [0, -1, 2**200, 1.5, float("nan"), True, None, "", "x", "\0", "\ud800", b"x", [], [1], (), {}, {1: 2},
                  set(),
                  object(), type, len, lambda: 1, self.x, np.zeros((2, 2), np.int32), np.float32(3), np.array(5),
                  np.array([None]),
                  array.array("d", [1]), bytearray(8), Raising(), NoIndex(), qdc.f32, qdc, 1j, range(3), ...,
                  np.bool_(True),
                  np.datetime64("2020-01-01"), qdc.view(np.zeros(4, np.uint16), "bf16"), qdc.buffer("f32"), self.module]
        device = self.module.device
        for value in values:
            for call in (lambda: self.kernel(value, 1.0, self.x.copy(), grid=1),
                         lambda: self.kernel(1, value, self.x.copy(), grid=1),
                         lambda: self.kernel(1, 1.0, value, grid=1),
                         lambda: self.kernel(1, 1.0, self.x.copy(), grid=value),
                         lambda: self.module[value], lambda: qdc.Device(value), lambda: qdc.Device("cpu", blocks=value),
                         lambda: qdc.Device("cpu", threads=value),
                         lambda: qdc.Device("interp", checks=value).load(kernels.SCALE),
                         lambda: qdc.compile(value, "nvptx"), lambda: qdc.compile(kernels.SCALE, value),
                         lambda: qdc.compile(kernels.SCALE, "nvptx", emit=value),
                         lambda: qdc.compile(kernels.SCALE, "nvptx", blocks=value),
                         lambda: qdc.compile(kernels.SCALE, "nvptx", name=value),
                         lambda: qdc.compile(kernels.SCALE, "nvptx", bind=value),
                         lambda: device.load(value), lambda: device.upload(value), lambda: device.allocate(4, value),
                         lambda: device.allocate(value), lambda: device.allocate(2, "f32").upload(value)):
                try:
                    call()
                except (qdc.Error, TypeError) as error:
                    self.assertTrue(str(error))
                except RuntimeError as error:
                    self.assertIsInstance(value, Raising, error)

    def test_broken_protocols(self):
        class Broken:
            def __init__(self, interface):
                self.__array_interface__ = interface

        good = {"shape": (2,), "typestr": "<f4", "data": (self.x.ctypes.data, False), "version": 3}
        for change in ({"shape": None}, {"shape": ("a",)}, {"shape": (-1,)}, {"typestr": None}, {"typestr": "<f"},
                       {"typestr": "<q9"}, {"data": None}, {"data": (0, False)}, {"data": ("x", False)},
                       {"strides": (8,)}, {"strides": (-4,)}):
            with self.subTest(change=change):
                self.refused(".", 2, 2, Broken(dict(good, **change)))
        for value in ({}, {"shape": (1,)}):
            self.refused(".", 2, 2, Broken(value))

        class Raising:
            def __dlpack__(self, **options):
                raise RuntimeError("no tensor today")

        class Wrong:
            def __dlpack__(self, **options):
                return 5

        self.refused("no tensor today", 2, 2, Raising())
        self.refused("cannot be read", 2, 2, Wrong())

    def test_grids(self):
        for grid, text in ((0, "from 1 to"), (-1, "from 1 to"), (2**32, "from 1 to"), ("1", "of integers"),
                           ((1, 1, 1, 1), "1 to 3 dimensions"), ((), "1 to 3 dimensions"), (1.0, "of integers"),
                           ((1, None), "of integers"), (None, "of integers")):
            with self.subTest(grid=grid):
                self.refused(text, 2, 2, self.x, grid=grid)

    def test_promises(self):
        interface = parse_interface('''{"kernels": [{"name": "k", "block": [1, 1, 1], "args": [
            {"name": "x", "kind": "buffer", "type": "f32", "access": "readonly", "noalias": true},
            {"name": "y", "kind": "buffer", "type": "f32"}, {"name": "n", "kind": "scalar", "type": "i32"}]}]}''')["k"]

        def check(*values):
            interface.check_overlaps([interface.fit(i, value) for i, value in enumerate(values)])

        with self.assertRaisesRegex(qdc.ArgumentError, "noalias, but shares memory with 'y'"):
            check(self.x[:5], self.x[4:], 1)
        check(self.x[:4], self.x[4:], 1)
        kernel = qdc.Device("cpu").load(kernels.copy("f32", " noalias"))["copy"]
        with self.assertRaisesRegex(qdc.ArgumentError, "noalias, but shares memory with 'y'"):
            kernel(self.x, self.x, grid=1)
        kernel = qdc.Device("cpu").load(kernels.copy("f32", " align(64)"))["copy"]
        place = np.zeros(64, np.float32)
        start = -place.ctypes.data % 64 // 4
        with self.assertRaisesRegex(qdc.ArgumentError, "expected a multiple of 64 bytes"):
            kernel(place[start + 1:start + 5], place[start + 16:start + 20], grid=1)
        kernel(place[start:start + 4], place[start + 16:start + 20], grid=1)

    def test_names(self):
        with self.assertRaisesRegex(qdc.ArgumentError, "no kernel 'skale'; did you mean 'scale'\\?; it has scale"):
            self.module["skale"]
        with self.assertRaisesRegex(qdc.ArgumentError, "no kernel 3"):
            self.module[3]
        for name, text in (("cpo", "did you mean 'cpu'"), ("", "no device"), ("gpu", "no device")):
            with self.assertRaisesRegex(qdc.DeviceError, text):
                qdc.Device(name).load(kernels.SCALE)
        for name in (3, None, "cpu\0"):
            with self.assertRaises(qdc.ArgumentError):
                qdc.Device(name)
        with self.assertRaisesRegex(qdc.DeviceError, "unknown chip 'sm_1'"):
            qdc.Device("sim:sm_1")

    def test_closed(self):
        self.module.close()
        self.module.close()
        self.refused("belongs to a module that is closed", 2, 2, self.x)
        with qdc.Device("cpu") as device:
            kernel = device.load(kernels.SCALE)["scale"]
        with self.assertRaisesRegex(qdc.DeviceError, "device 'cpu' is closed"):
            kernel(2, 2, self.x, grid=1)
        with self.assertRaisesRegex(qdc.DeviceError, "device 'cpu' is closed"):
            device.load(kernels.SCALE)


class Failures(unittest.TestCase):
    def test_interpreter(self):
        kernel = qdc.Device("interp", checks="all").load(kernels.SCALE, name="scale.qir")["scale"]
        with self.assertRaisesRegex(qdc.LaunchError, "scale.qir:5:10: .*subscript 2 is out of bounds of %x"):
            kernel(4, 2, np.ones(2, np.float32), grid=1)
        with self.assertRaisesRegex(qdc.DeviceError, "nonsense"):
            qdc.Device("interp", checks="nonsense")

    def test_load(self):
        with self.assertRaises(qdc.CompileError) as caught:
            qdc.Device("cpu").load("qd.kernel @k() block(0) {\n  qd.return\n}\n", name="k.qir")
        self.assertEqual(1, caught.exception.line)
        with self.assertRaisesRegex(qdc.ArgumentError, "a program is text"):
            qdc.Device("cpu").load(5)


if __name__ == "__main__":
    unittest.main()
