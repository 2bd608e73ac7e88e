#!/usr/bin/env python3
"""Equalises the histogram of a picture on devices, and compares with NumPy.

usage: equalize.py PICTURE OUT.png QDC_RUN DEVICE...

PICTURE is any that Pillow reads, made grey; OUT.png is the result. The kernels are histogram.qir and equalize.qir
beside this file. Needs NumPy and Pillow. A device may carry a subgroup size, as in cpu@8. Ends with status 1 where a
device finds other values than NumPy.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def reference(pixels):
    """The picture with the brightnesses spread by their cumulative counts, rounded to the nearest."""
    import numpy
    bins = numpy.bincount(pixels.ravel(), minlength=256)
    upto = numpy.cumsum(bins, dtype=numpy.int64)
    least, divisor = upto[pixels.min()], max(int(pixels.size - upto[pixels.min()]), 1)
    table = (numpy.maximum(upto - least, 0) * 255 + divisor // 2) // divisor
    return table.astype(numpy.uint8)[pixels]


def equalize(pixels, qdc_run, device):
    """The same by three launches on a device; what one leaves the next reads from a file."""
    import numpy
    name, _, size = device.partition("@")
    with tempfile.TemporaryDirectory() as folder:
        path = lambda array: os.path.join(folder, array + ".npy")

        def launch(kernel, grid, arrays, written, file):
            words = [qdc_run, os.path.join(HERE, file), "-kernel=" + kernel, "-device=" + name, "-grid=%d" % grid]
            words += ["--subgroup-size=" + size] if size else []
            subprocess.check_call(words + arrays + ["-out", "%s=%s" % (written, path(written))])

        numpy.save(path("x"), pixels.ravel().view(numpy.int8))
        blocks = -(-pixels.size // 4096)  # 16 pixels a thread
        launch("histogram", blocks, ["x=@" + path("x"), "bins=zeros:i32:256"], "bins", "histogram.qir")
        launch("spread", 1, ["bins=@" + path("bins"), "table=zeros:i8:256"], "table", "equalize.qir")
        launch("apply", blocks, ["x=@" + path("x"), "table=@" + path("table"), "y=zeros:i8:%d" % pixels.size], "y",
               "equalize.qir")
        return numpy.load(path("y")).view(numpy.uint8).reshape(pixels.shape)


def main():
    if len(sys.argv) < 5:
        print(__doc__)
        return 2
    import numpy
    from PIL import Image
    picture, out, qdc_run = sys.argv[1:4]
    pixels = numpy.asarray(Image.open(picture).convert("L"))
    wanted, failures = reference(pixels), 0
    for device in sys.argv[4:]:
        found = equalize(pixels, qdc_run, device)
        failures += not numpy.array_equal(found, wanted)
        print("%s: %s, %d pixels" % (device, "equal" if numpy.array_equal(found, wanted) else "DIFFERENT", found.size))
        Image.fromarray(found).save(out)
    return 1 if failures else 0


sys.exit(main())
