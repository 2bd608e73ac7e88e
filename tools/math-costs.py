#!/usr/bin/env python3
"""Prints the table of docs/math.md that says how many instructions each function takes.

usage: math-costs.py QDC

Each is computed once for each thread of a kernel; counted is what --emit=stats says, less that of the kernel that only
copies. Paths that few operands take (the reduction of large ones by sin, cos and tan) count as well.
"""
import subprocess
import sys

UNARY = ["exp", "exp2", "expm1", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log", "log2", "log10", "log1p",
         "sin", "cos", "tan", "asin", "acos", "atan", "cbrt", "rsqrt", "erf", "erfc"]
BINARY = ["powf", "atan2"]
TARGETS = {"sm_90": "nvptx:sm_90", "gfx942": "amdgcn:gfx942", "gfx1100": "amdgcn:gfx1100", "SPIR-V": "spirv@32"}


def kernel(name, op, type):
    return """qd.kernel @%s(%%a: !qd.buffer<%s>, %%b: !qd.buffer<%s>) block(32) {
  %%i = qd.thread_index : i32
  %%x = qd.load %%a[%%i] : !qd.buffer<%s>
  %%y = qd.load %%b[%%i] : !qd.buffer<%s>
  %%s = arith.addf %%x, %%y : %s
  %s
  qd.store %%r, %%a[%%i] : !qd.buffer<%s>
  qd.return
}
""" % (name, type, type, type, type, type, op % type, type)


def count(qdc, target, type):
    """Instructions by function."""
    text = kernel("baseline", "%%r = arith.addf %%x, %%s : %s", type)
    text += "".join(kernel(f, "%%r = math." + f + " %%s : %s", type) for f in UNARY)
    text += "".join(kernel(f, "%%r = math." + f + " %%x, %%s : %s", type) for f in BINARY)
    table = subprocess.run([qdc, "-", "-target=" + target, "--emit=stats"], input=text, check=True,
                           stdout=subprocess.PIPE, universal_newlines=True).stdout
    lines = [line.split() for line in table.splitlines()]
    column = lines[0].index("instructions") - len(lines[0])
    counts = {line[0]: int(line[column]) for line in lines[1:]}
    return {f: counts[f] - counts["baseline"] for f in UNARY + BINARY}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    columns = [(type, target, count(sys.argv[1], spelled, type)) for type in ("f32", "f64")
               for target, spelled in TARGETS.items()]
    print("| function | " + " | ".join("%s %s" % (type, target) for type, target, _ in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for function in UNARY + BINARY:
        print("| %s | %s |" % (function, " | ".join(str(counts[function]) for _, _, counts in columns)))


if __name__ == "__main__":
    main()
