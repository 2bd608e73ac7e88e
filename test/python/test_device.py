"""Devices and buffers: what they tell, copies to devices that do not reach the host's memory, and uses after the
end."""
import copy
import gc
import multiprocessing
import os
import pickle
import random
import threading
import unittest
import weakref

import numpy as np
import qdc
from qdc import arrays
from qdc.errors import ArgumentError

import kernels


def _use(kernel):
    """In a process of a pool: keeps the kernel, which came by the fork."""
    global _kernel
    _kernel = kernel


def _launch():
    x = np.ones(4, np.float32)
    try:
        _kernel(4, 2, x, grid=1)
    except ArgumentError as error:
        return "the parent's" if "before this process was forked" in str(error) else str(error)
    return x.tolist()


class Devices(unittest.TestCase):
    def test_list(self):
        rows = {entry.name: entry for entry in qdc.devices()}
        self.assertTrue(rows["cpu"].present and rows["interp"].present)
        # Tests that bring a stand-in for AMD's runtime are to meet it.
        self.assertEqual("QD_HIP_DEVICES" in os.environ, rows.get("hip:0", rows.get("hip")).present)
        for entry in rows.values():
            self.assertTrue(entry.text)
            if not entry.present:
                with self.assertRaises(qdc.DeviceError):
                    qdc.Device(entry.name)
        self.assertIn("LLVM", qdc.version())
        self.assertIn("sm_90", qdc.describe_targets())

    def test_properties(self):
        for name in kernels.DEVICES:
            device = qdc.Device(name)
            self.assertEqual(name, device.name)
            self.assertTrue(device.description)
            self.assertGreaterEqual(device.max_block_threads, 256)
            low, high = device.subgroup_sizes
            self.assertTrue(1 <= low <= device.subgroup_size <= high <= 64 or low == 0, (name, low, high))
        self.assertTrue(qdc.Device("best").name)
        self.assertEqual(8, qdc.Device("cpu", subgroup_size=8).subgroup_size)

    def test_wrong(self):
        for name, text in (("cpo", "did you mean 'cpu'"), ("cpu:1", "takes nothing"), ("sim", "needs a chip"),
                           ("sim:", "needs a chip"),
                           ("vulkan:99", "."), ("vulkan:x", "not a device number"), ("cuda:-1", "."),
                           ("x" * 10000, "no device")):
            with self.subTest(name=name[:20]), self.assertRaisesRegex(qdc.DeviceError, text):
                qdc.Device(name)
        for name, options, text in (("cpu", {"subgroup_size": 7}, "no subgroups of 7 lanes"),
                                    ("sim:sm_1", {}, "unknown chip 'sm_1'"),
                                    ("sim:gfx942", {"subgroup_size": 32}, "no subgroups of 32"),
                                    ("interp", {"checks": "bogus"}, "unknown check 'bogus'")):
            with self.subTest(name=name), self.assertRaisesRegex(qdc.DeviceError, text):
                qdc.Device(name, **options)
        for options, text in (({"subgroup_size": 7}, "7"), ({"subgroup_size": 2**31}, "."),
                              ({"threads": -1}, "threads is from"),
                              ({"opt_level": 4}, "opt_level"), ({"checks": 3}, "checks is a text"),
                              ({"checks": "all"}, "checks are those of interp, cpu has none"),
                              ({"launch_time_limit": True}, "launch_time_limit is from"),
                              ({"time_limit": -1}, "time_limit is from")):
            with self.subTest(**options), self.assertRaisesRegex(qdc.Error, text):
                qdc.Device("cpu", **options).load(kernels.SCALE)

    def test_copies(self):
        """What has a handle cannot be owned twice."""
        device = qdc.Device("cpu")
        module = device.load(kernels.SCALE)
        for thing in (device, module, module["scale"], device.allocate(4, "f32"), qdc.Stream(device)):
            for act in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.subTest(thing=thing, act=act), self.assertRaisesRegex(TypeError,
                                                                                "cannot be copied or pickled"):
                    act(thing)
        gc.collect()
        x = np.ones(4, np.float32)
        module["scale"](4, 2, x, grid=1)
        self.assertEqual(2, x[3])
        artifact = pickle.loads(pickle.dumps(qdc.compile(kernels.SCALE, "nvptx")))
        self.assertEqual(["scale"], list(device.load(artifact)))
        with self.assertRaises(qdc.CompileError) as caught:
            device.load("nonsense", name="a.qir")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(caught.exception), 1), (str(again), again.line))

    def test_forked(self):
        """Host devices are the child's, too; others say that they are not, where drivers would wait for ever."""
        for name in kernels.DEVICES:
            device = qdc.Device(name)
            scale = device.load(kernels.SCALE)["scale"]
            scale(4, 2, np.ones(4, np.float32), grid=1)
            with self.subTest(device=name), multiprocessing.get_context("fork").Pool(1, _use, (scale,)) as pool:
                expected = "the parent's" if name in kernels.COPYING else [2, 2, 2, 2]
                self.assertEqual(expected, pool.apply_async(_launch).get(60))

    def test_bundles(self):
        """A bundle runs where it has a variant or holds its QIR."""
        bundle = qdc.compile(kernels.SCALE, ["nvptx:sm_80", "spirv"])
        x = np.ones(4, np.float32)
        for name in kernels.DEVICES:
            qdc.Device(name).load(bundle)["scale"](4, 2, x, grid=1)
        np.testing.assert_array_equal(x, 2.0 ** len(kernels.DEVICES))
        bare = qdc.compile(kernels.SCALE, "nvptx:sm_80", strip_qir=True)
        with self.assertRaisesRegex(qdc.DeviceError, "holds no QIR"):
            qdc.Device("cpu").load(bare)
        source = random.Random(3)
        device = qdc.Device("cpu")
        for _ in range(100):
            data = bytearray(bundle.data)
            for _ in range(source.randrange(1, 5)):
                data[source.randrange(len(data))] = source.randrange(256)
            try:
                device.load(bytes(data[:source.randrange(len(data) + 1)]))
            except qdc.Error as error:
                self.assertTrue(str(error))

    def test_damaged(self):
        """Every byte of what the compiler writes is looked at."""
        bundle = qdc.compile(kernels.SCALE, "spirv")
        device = qdc.Device("cpu")
        for at in range(len(bundle.data)):
            data = bytearray(bundle.data)
            data[at] ^= 1 << at % 8
            with self.subTest(byte=at), self.assertRaises(qdc.Error):
                device.load(bytes(data))
        data = bytearray(bundle.data)
        data[data.index((0x07230203).to_bytes(4, "little")) + 40] ^= 1
        with self.assertRaisesRegex(qdc.DeviceError,
                                    "damaged: its bytes have checksum [0-9a-f]{16}, expected [0-9a-f]{16}$"):
            device.load(bytes(data))

    def test_timing(self):
        x = np.ones(1000, np.float32)
        self.assertGreater(qdc.Device("cpu").load(kernels.SCALE)["scale"](1000, 2, x, grid=8), 0)
        blocks, multiprocessors = qdc.Device("cpu", threads=2).load(kernels.SCALE)["scale"].occupancy()
        self.assertEqual((1, 2), (blocks, multiprocessors))
        with self.assertRaisesRegex(qdc.DeviceError, "interp"):
            qdc.Device("interp").load(kernels.SCALE)["scale"].occupancy()


class Buffers(unittest.TestCase):
    def test_kernels(self):
        for name in kernels.DEVICES:
            with self.subTest(device=name):
                device = qdc.Device(name)
                kernel = device.load(kernels.SCALE)["scale"]
                x = device.upload(np.arange(10, dtype=np.float32))
                kernel(9, 3, x, grid=1)
                kernel(9, 2, x, grid=1)
                expected = np.arange(10, dtype=np.float32)
                expected[:9] *= 6
                np.testing.assert_array_equal(x.numpy(), expected)
                back = np.zeros(10, np.float32)
                self.assertIs(back, x.download(back))
                np.testing.assert_array_equal(back, expected)
                x.fill(0)
                self.assertFalse(x.numpy().any())
                empty = device.allocate(0, "f32")
                kernel(0, 2, empty, grid=1)
                self.assertEqual((0,), empty.numpy().shape)

    def test_shapes(self):
        device = qdc.Device("cpu")
        for type in ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"):
            x = device.allocate((3, 5), type)
            x.fill(0)
            self.assertEqual((3, 5), x.numpy().shape)
            self.assertFalse(x.numpy().any())
            self.assertEqual(3, len(x))
        x = device.upload(np.arange(6, dtype=np.int32).reshape(2, 3))
        seen = np.asarray(x)  # the same memory
        x.upload(np.full((2, 3), 9, np.int32))
        np.testing.assert_array_equal(seen, 9)
        self.assertFalse(hasattr(x, "__cuda_array_interface__"))
        # Arrays of more dimensions than buffers have are rows for buffers of one.
        x = device.upload(np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2))
        device.load(kernels.SCALE)["scale"](16, 2, x, grid=1)
        np.testing.assert_array_equal(x.numpy(), 2 * np.arange(16).reshape(2, 2, 2, 2))
        cube = device.load("qd.kernel @cube(%x: !qd.buffer<?x?x?xf32>) block(1) {\n  qd.return\n}")["cube"]
        with self.assertRaisesRegex(qdc.ArgumentError, r"shape \(2, 2, 2, 2\), expected 3 dimensions"):
            cube(device.allocate((2, 2, 2, 2), "f32"), grid=1)
        scalar = device.upload(np.array(5, np.int64))
        self.assertEqual(5, scalar.numpy())

    def test_lent(self):
        """NumPy sees a buffer's memory, and keeps it, whatever ends first."""
        device = qdc.Device("cpu")
        for see in (np.asarray, np.from_dlpack):
            x = device.upload(np.arange(6, dtype=np.float32).reshape(2, 3))
            seen = see(x)
            device.load(kernels.SCALE)["scale"](6, 2, x, grid=1)
            np.testing.assert_array_equal(seen, 2 * np.arange(6).reshape(2, 3))
            x.close()
            np.testing.assert_array_equal(seen, 2 * np.arange(6).reshape(2, 3))
            if seen.flags.writeable:  # an older NumPy takes tensors for read-only
                seen[0, 0] = 5
            del x
            gc.collect()
            self.assertIn(seen[0, 0], (0, 5))
        seen = np.from_dlpack(qdc.Device("cpu").upload(np.ones(3)))
        gc.collect()
        np.testing.assert_array_equal(seen, 1)
        # Capsules that nobody takes, and takers that fail.
        for _ in range(50):
            device.allocate(3, "f32").__dlpack__()
            with self.assertRaises((RuntimeError, BufferError, TypeError)):
                np.from_dlpack(device.allocate(3, "bf16"))
        del seen
        gc.collect()
        device.allocate(3, "f32").__dlpack__()
        self.assertLess(len(arrays._lent), 3)
        for name in kernels.COPYING:
            if not name.startswith("cuda"):
                with self.assertRaises(BufferError):
                    qdc.Device(name).allocate(3, "f32").__dlpack__()

    def test_wrong(self):
        device, other = qdc.Device("cpu"), qdc.Device("cpu")
        x = device.allocate(4, "f32")
        for action, text in ((lambda: x.upload(np.zeros(3, np.float32)), "12 bytes, the buffer 16"),
                             (lambda: x.download(np.frombuffer(bytes(16), np.float32)), "read-only"),
                             (lambda: x.upload("text"), "expected an array"), (lambda: x.fill(256), "from 0 to 255"),
                             (lambda: device.allocate(-1), "from 0"), (lambda: device.allocate(1.5), "an integer"),
                             (lambda: device.allocate(2**61, "f64"), "bytes"),
                             (lambda: device.allocate(4, "f31"), "unknown type"),
                             (lambda: device.load(kernels.SCALE)["scale"](4, 2, device.allocate(4, "f64"), grid=1),
                              "are f64"),
                             (lambda: other.load(kernels.SCALE)["scale"](4, 2, x, grid=1), "a buffer of device 'cpu'")):
            with self.subTest(text=text), self.assertRaisesRegex(ArgumentError, text):
                action()
        with self.assertRaises(qdc.Error):
            device.allocate(2**60)
        with self.assertRaisesRegex(ArgumentError, "got a buffer of device 'cpu', which numpy"):
            x.upload(device.allocate(4, "f32"))
        unseen = [qdc.Device(name).allocate(4, "f32") for name in kernels.COPYING] + [device.allocate(4, "bf16")]
        for buffer in unseen:
            with self.assertRaisesRegex(TypeError, r"numpy\(\) copies it"):
                np.asarray(buffer)

    def test_copies(self):
        """Devices that do not reach the host's memory get copies, and give back what was written."""
        for name in kernels.COPYING:
            device = qdc.Device(name)
            copy = device.load(kernels.copy("f32"))["copy"]
            x, y = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
            x.flags.writeable = False
            copy(x, y, grid=2)
            np.testing.assert_array_equal(x, y)
            copy(y, y, grid=2)
            np.testing.assert_array_equal(x, y)
            with self.assertRaisesRegex(ArgumentError, "argument 'y' of kernel 'copy': the array overlaps"):
                copy(y[:30], y[10:], grid=1)
            kept = device.upload(x)
            copy(kept, y[::-1].copy(), grid=2)
            for type in ("i1", "i8", "i16", "i64", "f16", "f64"):
                x = (np.arange(40) % 2).astype({"i1": "?"}.get(type, type.replace("i", "int").replace("f", "float")))
                y = np.zeros_like(x)
                device.load(kernels.copy(type))["copy"](x, y, grid=2)
                np.testing.assert_array_equal(x, y)


class Ends(unittest.TestCase):
    def test_closed(self):
        for name in kernels.DEVICES:
            device = qdc.Device(name)
            module, buffer = device.load(kernels.SCALE), device.allocate(4, "f32")
            kernel = module["scale"]
            buffer.close()
            buffer.close()
            for action in (buffer.numpy, lambda: buffer.fill(0), lambda: kernel(4, 2, buffer, grid=1),
                           lambda: buffer.upload(np.zeros(4, "f4"))):
                with self.assertRaisesRegex(ArgumentError, "closed"):
                    action()
            module.close()
            with self.assertRaisesRegex(ArgumentError, "belongs to a module that is closed"):
                kernel(4, 2, np.zeros(4, np.float32), grid=1)
            buffer = device.allocate(4, "f32")
            device.close()
            device.close()
            for action in (lambda: device.load(kernels.SCALE), lambda: device.allocate(4),
                           lambda: kernel(4, 2, np.zeros(4, np.float32), grid=1)):
                with self.assertRaisesRegex(qdc.DeviceError, "is closed"):
                    action()
            with self.assertRaisesRegex(ArgumentError, "closed"):
                buffer.numpy()
            self.assertIn("closed", repr(device) + repr(buffer))

    def test_any_order(self):
        for name in kernels.DEVICES:
            for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
                device = qdc.Device(name)
                module, buffer = device.load(kernels.SCALE), device.allocate(4, "f32")
                things = [device, module, buffer, module["scale"]]
                del device, module, buffer
                for place in order:
                    things[place] = None
                    gc.collect()

    def test_no_cycles(self):
        """Modules, buffers and devices go with their last user, without the collector."""
        gc.disable()
        try:
            device = qdc.Device("cpu")
            module = device.load(kernels.SCALE)
            kernel = module["scale"]
            prepared = kernel.prepare(1, 2, device.allocate(1, "f32"), grid=1)
            graph = device.graph().add(prepared)
            things = [weakref.ref(thing) for thing in (device, module, kernel, prepared, graph)]
            del device, module, kernel, prepared, graph
            self.assertEqual([None] * len(things), [thing() for thing in things])
        finally:
            gc.enable()

    def test_threads(self):
        """Launches, copies and ends of many threads at once end in results or errors."""
        for name in kernels.COPYING + ("cpu",):
            device = qdc.Device(name)
            module = device.load(kernels.SCALE)
            failures = []

            def work(number):
                try:
                    x = np.ones(100, np.float32)
                    kept = device.upload(x)
                    for _ in range(10):
                        module["scale"](100, 2, x, grid=1)
                        module["scale"](100, 2, kept, grid=1)
                    if not (x == 1024).all() or not (kept.numpy() == 1024).all():
                        failures.append("thread %d" % number)
                except Exception as error:
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([], failures)

            def use():
                try:
                    while True:
                        module["scale"](100, 2, np.ones(100, np.float32), grid=1)
                except qdc.Error:
                    pass

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            device.close()
            for thread in threads:
                thread.join(20)
                self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()
