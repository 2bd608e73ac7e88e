"""Prepared launches, streams, events and graphs."""
import unittest

import numpy as np
import qdc

import kernels


def opened():
    for name in kernels.DEVICES:
        device = qdc.Device(name)
        yield name, device, device.load(kernels.SCALE)["scale"]


class Prepared(unittest.TestCase):
    def test_launches(self):
        for name, device, kernel in opened():
            with self.subTest(device=name):
                x = device.upload(np.ones(8, np.float32))
                prepared = kernel.prepare(8, 2, x, grid=1)
                for _ in range(3):
                    prepared.launch()
                device.synchronize()
                np.testing.assert_array_equal(x.numpy(), 8)
                prepared.set(k=0.5, n=4).set_grid((2, 1)).launch()
                np.testing.assert_array_equal(x.numpy(), [4] * 4 + [8] * 4)
                y = device.upload(np.ones(8, np.float32))
                prepared.set(x=y).launch()
                np.testing.assert_array_equal(y.numpy(), [0.5] * 4 + [1] * 4)
                for wrong, text in (({"k": "x"}, "expected a number"), ({"q": 1}, "no parameter 'q'"),
                                    ({"n": 2**40}, "does not fit"), ({"x": np.zeros(3)}, "are f64")):
                    with self.assertRaisesRegex(qdc.ArgumentError, text):
                        prepared.set(**wrong)
                with self.assertRaisesRegex(qdc.ArgumentError, "from 1 to"):
                    prepared.set_grid(0)
                prepared.launch()
                np.testing.assert_array_equal(y.numpy(), [0.25] * 4 + [1] * 4)
                prepared.close()
                with self.assertRaisesRegex(qdc.ArgumentError, "closed"):
                    prepared.launch()

    def test_arrays(self):
        """Arrays of the host are used where they lie, and kept."""
        for name, device, kernel in opened():
            with self.subTest(device=name):
                x = np.ones(8, np.float32)
                if name not in kernels.HOSTS:
                    with self.assertRaisesRegex(qdc.ArgumentError,
                                                "argument 'x' of kernel 'scale': .*expected a qdc.Buffer"):
                        kernel.prepare(8, 2, x, grid=1)
                    continue
                prepared = kernel.prepare(8, 2, x, grid=1)
                prepared.launch()
                np.testing.assert_array_equal(x, 2)
                kernel.prepare(8, 2, np.ones(8, np.float32), grid=1).launch()


class Streams(unittest.TestCase):
    def test_order(self):
        for name, device, kernel in opened():
            with self.subTest(device=name):
                stream, other = device.stream(), device.stream()
                x, y, out = device.allocate(8, "f32"), device.allocate(8, "f32"), np.zeros(8, np.float32)
                start, end = device.event(), device.event()
                with self.assertRaises(qdc.Error):
                    device.event().synchronize()
                start.record(stream)
                stream.upload(x, np.ones(8, np.float32))
                kernel.prepare(8, 3, x, grid=1).launch(stream)
                stream.copy(y, x)
                stream.fill(x, 0)
                end.record(stream)
                other.wait(end)
                other.download(y, out)
                other.synchronize()
                np.testing.assert_array_equal(out, 3)
                self.assertTrue(stream.is_finished and end.has_happened)
                self.assertGreaterEqual(start.seconds_until(end), 0)
                self.assertFalse(x.numpy().any())
                if not name.startswith(("cuda", "hip")):
                    self.assertEqual(0, stream.native)
                    with self.assertRaises(qdc.Error):
                        device.stream(1)

    def test_graphs(self):
        for name, device, kernel in opened():
            with self.subTest(device=name):
                x, y = device.allocate(8, "f32"), device.allocate(8, "f32")
                values, out = np.ones(8, np.float32), np.zeros(8, np.float32)
                graph = device.graph().fill(y, 255).upload(x, values).add(kernel.prepare(8, 3, x, grid=1))
                graph.add(kernel.prepare(4, 2, x, grid=1)).copy(y, x).download(y, out)
                for factor in (1, 5):
                    values[:] = factor
                    graph.launch()
                    device.synchronize()
                    np.testing.assert_array_equal(out, [6 * factor] * 4 + [3 * factor] * 4)
                stream = device.stream()
                graph.launch(stream)
                stream.synchronize()
                with self.assertRaises(qdc.Error):
                    graph.fill(x)

    def test_wrong(self):
        device, other = qdc.Device("cpu"), qdc.Device("cpu")
        kernel = device.load(kernels.SCALE)["scale"]
        x, stream, graph = device.allocate(4, "f32"), device.stream(), device.graph()
        prepared = kernel.prepare(4, 2, x, grid=1)
        for action, text in ((lambda: prepared.launch(other.stream()), "a stream of device"),
                             (lambda: prepared.launch(3), "got int"),
                             (lambda: stream.upload(other.allocate(4, "f32"), np.zeros(4, "f4")), "a buffer of device"),
                             (lambda: stream.upload(x, np.zeros(3, "f4")), "12 bytes"),
                             (lambda: stream.upload(None, None), "a buffer"),
                             (lambda: stream.copy(x, device.allocate(3, "f32")), "a copy of 12 bytes"),
                             (lambda: stream.wait(3), "an event"), (lambda: stream.fill(x, -1), "from 0 to 255"),
                             (lambda: device.event().seconds_until(None), "an event"),
                             (lambda: graph.add(kernel), "a prepared launch"),
                             (lambda: graph.download(x, bytes(16)), "read-only"),
                             (lambda: other.graph().add(prepared), "a prepared launch"),
                             (lambda: device.stream(-1), "from 0"), (lambda: device.stream("x"), "an integer")):
            with self.subTest(text=text), self.assertRaisesRegex(qdc.ArgumentError, text):
                action()
        event = device.event().record(stream)
        device.close()
        for action in (lambda: prepared.launch(), lambda: stream.fill(x), lambda: event.synchronize(),
                       lambda: graph.launch(),
                       lambda: device.stream(), lambda: device.event(), lambda: device.graph(),
                       lambda: device.synchronize(), lambda: kernel.prepare(4, 2, x, grid=1)):
            with self.assertRaisesRegex(qdc.Error, "closed"):
                action()


if __name__ == "__main__":
    unittest.main()
