"""Runs the examples on devices and compares with NumPy.

usage: python -m python_frontend [DEVICE...]   (from docs/examples, with the package qdc installed or on PYTHONPATH)
"""
import sys

import numpy as np
import qdc

from . import blocks, kernels


def check_saxpy(device, random):
    for n in (1, 1000):
        x, y = random.normal(size=(2, n)).astype(np.float32)
        expected = np.float32(2.5) * x + y
        kernels.saxpy(n, 2.5, x, y, grid=blocks(n, 256), device=device)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


def check_histogram(device, random):
    x = random.integers(0, 256, 3000).astype(np.uint8)
    bins = np.zeros(256, np.int32)
    kernels.histogram(x, bins, grid=3, device=device)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))


def check_scan(device, random):
    for n in (1, 128, 1000):
        x = random.integers(-9, 9, n).astype(np.int32)
        y, count = np.zeros(n, np.int32), blocks(n, 128)
        kernels.scan(n, x, y, np.zeros(1, np.int32), np.zeros(count, np.int64), grid=count, device=device)
        np.testing.assert_array_equal(y, np.cumsum(x))


def check_softmax(device, random):
    for shape in ((3, 1), (4, 300)):
        x = random.normal(0, 8, shape).astype(np.float32)
        y = np.zeros_like(x)
        kernels.softmax(x, y, grid=shape[0], device=device)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), atol=2e-6)


MATMULS = {tile: kernels.matmul(tile) for tile in (8, 16)}


def check_matmul(device, random):
    for tile, multiply in MATMULS.items():
        a = random.integers(-8, 8, (19, 20)).astype(np.float32)
        b = random.integers(-8, 8, (20, 17)).astype(np.float32)
        c = np.zeros((19, 17), np.float32)
        multiply(a, b, c, grid=(blocks(17, tile), blocks(19, tile)), device=device)
        np.testing.assert_array_equal(c, a @ b)


def check_sort(device, random):
    keys = random.integers(-50, 50, 1024).astype(np.int32)
    values = np.arange(1024, dtype=np.float32)
    order = np.concatenate([start + np.argsort(keys[start:start + 512], kind="stable") for start in (0, 512)])
    expected = keys[order], values[order]
    kernels.sort(keys, values, grid=2, device=device)
    np.testing.assert_array_equal(keys, expected[0])
    np.testing.assert_array_equal(values, expected[1])


def check_argmin(device, random):
    x = random.integers(0, 9, 96).astype(np.float32)
    at = np.zeros(3, np.int32)
    kernels.argmin(x, at, grid=3, device=device)
    np.testing.assert_array_equal(at, [32 * i + np.argmin(x[32 * i:32 * i + 32]) for i in range(3)])


CHECKS = (check_saxpy, check_histogram, check_scan, check_softmax, check_matmul, check_sort, check_argmin)


def main():
    failures = 0
    for name in sys.argv[1:] or ["cpu"]:
        device = qdc.Device(name)
        for check in CHECKS:
            try:
                check(device, np.random.default_rng(1))
                print("%s: %s: equal" % (name, check.__name__[len("check_"):]))
            except (qdc.Error, AssertionError) as error:
                failures += 1
                print("%s: %s: %s" % (name, check.__name__[len("check_"):], error))
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
