#!/usr/bin/env python3
"""Sums and normalises the rows of a picture on every device, and compares with NumPy.

usage: picture.py prepare PICTURE FOLDER        writes rows.npy (needs NumPy and Pillow)
       picture.py run FOLDER QDC_RUN DEVICE...  runs the kernels of FOLDER on rows.npy (needs no Python package)
       picture.py compare FOLDER                compares every device's results with NumPy

PICTURE is any picture that Pillow reads, made grey and cut to whole groups of 32 pixels. FOLDER also holds the kernels:
sum32 and normalize32 as .qir files, or as .qdb bundles for a machine without the compiler. A device may carry a
subgroup size, as in cpu@8; for Vulkan on lavapipe the variable LP_NATIVE_VECTOR_WIDTH chooses it.
"""
import glob
import os
import subprocess
import sys


def prepare(picture, folder):
    import numpy
    from PIL import Image
    pixels = numpy.asarray(Image.open(picture).convert("L"), dtype=numpy.float32) + 1
    height, width = pixels.shape
    rows = numpy.ascontiguousarray(pixels[:, :width - width % 32])
    numpy.save(os.path.join(folder, "rows.npy"), rows)
    print("%s: %d rows of %d pixels" % (picture, height, rows.shape[1]))


def count(folder):
    """Elements of rows.npy, read from its header."""
    with open(os.path.join(folder, "rows.npy"), "rb") as file:
        header = file.read(128).decode("latin1")
    shape = header.split("'shape': (")[1].split(")")[0]
    elements = 1
    for extent in filter(None, shape.replace(" ", "").split(",")):
        elements *= int(extent)
    return elements


def kernel(folder, name):
    bundle = os.path.join(folder, name + ".qdb")
    return bundle if os.path.exists(bundle) else os.path.join(folder, name + ".qir")


def run(folder, qdc_run, devices):
    elements = count(folder)
    grid = "-grid=%d" % ((elements + 127) // 128)
    rows = os.path.join(folder, "rows.npy")
    for device in devices:
        name, _, size = device.partition("@")
        options = ["-device=" + name, grid] + (["--subgroup-size=" + size] if size else [])
        label = device.replace(":", "-") + "-" + os.environ.get("LP_NATIVE_VECTOR_WIDTH", "")
        out = os.path.join(folder, "%s-" + label.rstrip("-") + ".npy")
        subprocess.check_call([qdc_run, kernel(folder, "sum32")] + options +
                              ["src=@" + rows, "dst=zeros:f32:%d" % (elements // 32), "-out", "dst=" + out % "sum32"])
        subprocess.check_call([qdc_run, kernel(folder, "normalize32")] + options +
                              ["a=@" + rows, "-out", "a=" + out % "normalize32"])


def compare(folder):
    import numpy
    groups = numpy.load(os.path.join(folder, "rows.npy")).reshape(-1, 32)
    # Sums of whole numbers below 2^24 are exact in any order; the quotient is rounded once.
    sums = groups.astype(numpy.float64).sum(axis=1).astype(numpy.float32)
    wanted = {"sum32": sums, "normalize32": (groups / sums[:, None]).ravel()}
    failures = 0
    for name, values in wanted.items():
        for path in sorted(glob.glob(os.path.join(folder, name + "-*.npy"))):
            found = numpy.load(path).ravel()
            same = found.shape == values.shape and bool((found.view(numpy.uint32) == values.view(numpy.uint32)).all())
            failures += not same
            print("%s: %s, %d values" % (os.path.basename(path), "equal" if same else "DIFFERENT", values.size))
    return 1 if failures else 0


def main():
    command, arguments = (sys.argv + [""])[1], sys.argv[2:]
    if command == "prepare" and len(arguments) == 2:
        return prepare(*arguments)
    if command == "run" and len(arguments) > 2:
        return run(arguments[0], arguments[1], arguments[2:])
    if command == "compare" and len(arguments) == 1:
        return compare(*arguments)
    print(__doc__)
    return 2


sys.exit(main())
