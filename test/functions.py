#!/usr/bin/env python3
"""Functions of math on every executor: the same bits everywhere, near the right value, and right at special operands.

usage: functions.py --bin FOLDER [--only LIST] [--ops LIST] [--samples N] [--seed N] [--venv FOLDER] [-v]
                    [--compiler LIBRARY] [--pack FOLDER [--no-subnormals TYPES]]

Operands are special values, every pair of them for functions of two, and random ones from three ranges. What one
executor computes all others must compute to the bit, NaNs aside; and what the C library computes in f64 must be within
the bound: BOUND units in the last place, or none for remainders and fma. --only names executors as run.py does, --ops
beginnings of op names. --compiler adds the cpu device of a library that takes libqdcompiler's place.

--pack writes what the first executor computed, and bundles for TARGETS, for a machine that has a GPU but no compiler:
there `python3 run.py cuda vulkan` compares to the bit. --no-subnormals leaves out subnormal operands and results of
these types, as for a Vulkan device that takes them for zeros.
"""
import argparse
import concurrent.futures
import math
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "sweep")]
import with_numpy  # noqa: E402

with_numpy.ensure()
import numpy as np  # noqa: E402

import elementwise  # noqa: E402
import executors  # noqa: E402
import scalars  # noqa: E402

# Units in the last place. The C library's own errors of f64 are up to one unit more.
BOUND = {"f16": 0.51, "bf16": 0.51, "f32": 2, "f64": 5}
TYPES = ["f32", "f64", "f16", "bf16"]
TARGETS = {"cuda": "nvptx:sm_90", "vulkan": "spirv@32"}


def each(function):
    """A function of Python floats, NaN where it is not defined."""
    def apply(*arrays):
        def one(*values):
            try:
                return function(*values)
            except (ValueError, OverflowError, ZeroDivisionError):
                return math.nan
        return np.array([one(*map(float, row)) for row in zip(*arrays)])
    return apply


UNARY = {
    "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1, "math.log": np.log, "math.log2": np.log2,
    "math.log10": np.log10, "math.log1p": np.log1p, "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan,
    "math.asin": np.arcsin, "math.acos": np.arccos, "math.atan": np.arctan, "math.sinh": np.sinh,
    "math.cosh": np.cosh, "math.tanh": np.tanh, "math.cbrt": np.cbrt, "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.erf": each(math.erf), "math.erfc": each(math.erfc), "math.asinh": np.arcsinh, "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
}
BINARY = {"math.powf": np.power, "math.atan2": np.arctan2, "arith.remf": np.fmod}
TERNARY = {"math.fma": elementwise.exact(elementwise.multiply_add)}
EXACT = {"arith.remf", "math.fma"}

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 10.0, 100.0, -100.0, math.pi, math.pi / 2,
           -math.pi / 2, math.e, 1e-3, 1e4, 22.0, 88.0, 89.0, -88.0, -104.0, 709.5, 710.5, -745.0, -746.0, 1024.0,
           127.5, 128.0, -126.0, -149.0, -150.0, -1074.0, math.inf, -math.inf, math.nan, -math.nan]


def edges(type):
    digits, least, greatest = scalars.FORMATS[type]
    ends = [2.0 ** least, 2.0 ** (least - digits + 1), 2.0 ** (least - 3) * 3 if digits > 4 else 1.0,
            (2.0 - 2.0 ** (1 - digits)) * 2.0 ** greatest, 1 + 2.0 ** (1 - digits), 1 - 2.0 ** -digits,
            2.0 ** digits - 1, 2.0 ** (digits - 1) + 1]
    with np.errstate(all="ignore"):
        return scalars.rounded(type, np.array(SPECIAL + ends + [-e for e in ends]))


def randoms(type, count, rng):
    """Any bits, numbers around one, and numbers of a few thousand."""
    bits = rng.integers(0, 2 ** scalars.width(type), count, np.uint64).astype("u%d" % (scalars.width(type) // 8))
    with np.errstate(all="ignore"):
        return np.concatenate([scalars.from_storage(type, bits.view(scalars.storage(type))),
                               scalars.rounded(type, rng.uniform(-2, 2, count)),
                               scalars.rounded(type, rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-12, 12, count))])


def operands(type, arity, samples, rng):
    special = edges(type)
    rows = [special] if arity == 1 else [v.ravel() for v in np.meshgrid(special, special)]
    rows = [np.concatenate([r, randoms(type, samples, rng)]) for r in rows]
    if arity == 2:  # powers that are neither 0 nor infinite
        x = scalars.rounded(type, rng.uniform(0.25, 4, samples))
        rows = [np.concatenate([rows[0], x]),
                np.concatenate([rows[1], scalars.rounded(type, rng.uniform(-60, 60, samples))])]
    return rows


def hard_products(type, samples, rng):
    """Rows of a, b and c of which a * b + c shows a second rounding, cancels, is subnormal, halfway or too large."""
    digits, least, greatest = scalars.FORMATS[type]
    factors = [f for f in edges(type) if f not in SPECIAL or abs(f) in (0, 1, math.inf)]
    rows = [[v.ravel()] for v in np.meshgrid(factors, factors, factors)]

    def number(lowest, highest):
        """Of a random exponent; half of them of few digits."""
        few = np.where(rng.integers(0, 2, samples), 2.0 ** rng.integers(0, digits, samples), 2.0 ** digits)
        significand = np.floor(rng.uniform(1, 2, samples) * few) / few
        return scalars.rounded(type, rng.choice([-1, 1], samples) * significand *
                               2.0 ** np.clip(rng.integers(lowest, highest + 1, samples), least, greatest))

    def add(a, b, c):
        for row, values in zip(rows, (a, b, scalars.rounded(type, c))):
            row.append(values)

    a, b = number(-3, 3), number(-3, 3)
    product = scalars.rounded(type, a * b).astype(np.float64)
    add(a, b, -product)
    add(a, b, -product * (1 + rng.integers(-2, 3, samples) * 2.0 ** (1 - digits)))
    add(a, b, number(-2 * digits - 5, 2 * digits + 5))
    add(number(-3, 3), scalars.rounded(type, np.full(samples, 1 + 2.0 ** (1 - digits))), number(-3 * digits // 2, 3))
    half = (least - digits) // 2
    a, b = number(half - 2, half + digits), number(half - 2, half + digits)
    add(a, b, number(least - digits, least + 1))
    add(a, b, np.copysign(0.0, number(0, 0)))
    a, b = number(greatest // 2 - 1, greatest // 2 + 1), number(greatest // 2 - 1, greatest // 2 + 2)
    add(a, b, number(greatest - digits - 2, greatest))
    any_bits = [randoms(type, samples, rng)[:samples] for _ in range(3)]
    add(*any_bits)
    return [np.concatenate(row) for row in rows]


def kernel(name, op, type, arity):
    text = "qd.kernel @%s(" % name
    text += "".join("%%%s: !qd.buffer<%s> readonly, " % (letter, type) for letter in "abc"[:arity])
    text += "%%n: i32, %%y: !qd.buffer<%s>) block(64) {\n  %%i = qd.global_thread_id x : i32\n" % type
    text += "  %in = arith.cmpi slt, %i, %n : i32\n  scf.if %in {\n"
    for letter in "abc"[:arity]:
        text += "    %%v%s = qd.load %%%s[%%i] : !qd.buffer<%s>\n" % (letter, letter, type)
    text += "    %%r = %s %s : %s\n" % (op, ", ".join("%v" + letter for letter in "abc"[:arity]), type)
    return text + "    qd.store %%r, %%y[%%i] : !qd.buffer<%s>\n  }\n  qd.return\n}\n" % type


class Case:
    def __init__(self, op, type, arity, reference, samples, rng):
        self.op, self.type, self.arity = op, type, arity
        self.name = (op + "_" + type).replace(".", "_")
        with np.errstate(all="ignore"):
            if arity == 3:
                self.inputs = hard_products(type, samples, rng)
                self.expected = reference(type, *self.inputs)[0].astype(np.float64)
            else:
                self.inputs = operands(type, arity, samples, rng)
                self.expected = reference(*[v.astype(np.float64) for v in self.inputs])
        self.bits = None  # what the first executor computed

    @np.errstate(all="ignore")
    def error(self, got):
        """Of each element, in units of the last place; infinite where it is another kind of number."""
        digits, least, greatest = scalars.FORMATS[self.type]
        expected = self.expected
        exponent = np.clip(np.floor(np.log2(np.abs(np.where(expected == 0, 1, expected)))), least, greatest)
        unit = np.where(expected == 0, 2.0 ** (least - digits + 1), 2.0 ** (exponent - digits + 1))
        rounded = scalars.rounded(self.type, expected).astype(np.float64)
        error = np.abs(got.astype(np.float64) - np.where(np.isinf(rounded), 0, expected)) / unit
        same = (rounded == got) & (np.signbit(rounded) == np.signbit(got)) | np.isnan(rounded) & np.isnan(got)
        wrong = (np.isnan(rounded) != np.isnan(got)) | (np.signbit(expected) != np.signbit(got)) & ~np.isnan(got)
        # Next to the greatest number a unit decides whether a result is infinite.
        top = (2 - 2.0 ** (1 - digits)) * 2.0 ** greatest
        ends = np.isinf(got) != np.isinf(rounded)
        near = np.abs(np.abs(np.where(np.isinf(rounded), got.astype(np.float64), expected)) - top) < 4 * unit
        error = np.where(ends, np.where(near, 0, np.inf), error)
        return np.where(same, np.where(np.isinf(rounded) | np.isnan(rounded), 0, np.nan_to_num(error)),
                        np.where(wrong, np.inf, error))

    def judge(self, got, executor):
        """The largest error, and what is wrong with a result."""
        values = scalars.from_storage(self.type, got)
        isnan = np.isnan(values)
        bits = np.where(isnan, 0, got.view("u%d" % got.itemsize))
        if self.bits is None:
            self.bits = bits, isnan
        elif not (np.array_equal(self.bits[0], bits) and np.array_equal(self.bits[1], isnan)):
            at = np.flatnonzero((self.bits[0] != bits) | (self.bits[1] != isnan))
            return 0, "%d other bits than the first executor's, as at %s: 0x%x, found 0x%x" % (
                len(at), self.show(at[0]), self.bits[0][at[0]], bits[at[0]])
        error = self.error(values)
        at = int(np.argmax(error))
        bound = 0.5 if self.op in EXACT else BOUND[self.type]
        if error[at] > bound:
            return error[at], "%.3g units off at %s: expected %r, found %r" % (
                error[at], self.show(at), self.expected[at], float(values[at]))
        return error[at], None

    def show(self, at):
        return ", ".join(float(v[at]).hex() for v in self.inputs)


def launch(case, folder, ending):
    """A line of qdc-run's list of launches."""
    count = len(case.inputs[0])
    words = ["-kernel=" + case.name, "-grid=%d" % -(-count // 64)]
    words += ["%s=@%s.%s.npy" % (letter, os.path.join(folder, case.name), letter) for letter in "abc"[:case.arity]]
    return " ".join(words + ["n=%d" % count, "y=zeros:%s:%d" % (case.type, count), ending]) + "\n"


def write(cases, folder):
    with open(os.path.join(folder, "k.qir"), "w") as file:
        file.write("".join(kernel(c.name, c.op, c.type, c.arity) for c in cases))
    for case in cases:
        for letter, values in zip("abc", case.inputs):
            np.save(os.path.join(folder, "%s.%s.npy" % (case.name, letter)), scalars.to_storage(case.type, values))


def is_flushed(type, values):
    """Subnormal, or the least normal number: a result that rounds up to it may have been taken for zero before."""
    return (values != 0) & (np.abs(values) <= 2.0 ** scalars.FORMATS[type][1])


@np.errstate(all="ignore")
def pack(cases, results, folder, binaries, no_subnormals):
    os.makedirs(folder)
    for case, got in zip(cases, results):
        if case.type in no_subnormals:
            arrays = [*case.inputs, scalars.from_storage(case.type, got)]
            keep = ~np.any([is_flushed(case.type, a.astype(np.float64)) for a in arrays], axis=0)
            case.inputs, got = [v[keep] for v in case.inputs], got[keep]
        np.save(os.path.join(folder, case.name + ".y.npy"), got)
    write(cases, folder)
    for device, target in TARGETS.items():
        bundle = os.path.join(folder, "functions.%s.qdb" % device)
        subprocess.run([os.path.join(binaries, "qdc"), os.path.join(folder, "k.qir"), "-target=" + target,
                        "--strip-qir", "--emit=qdb", "-o", bundle], check=True)
        with open(bundle + ".list", "w") as file:
            file.writelines(launch(case, "", "-expect y=@%s.y.npy" % case.name) for case in cases)
    with open(os.path.join(folder, "index"), "w") as file:
        file.writelines("%s functions.%s.qdb\n" % (device, device) for device in TARGETS)
    shutil.copy(os.path.join(binaries, "qdc-run"), folder)
    shutil.copy(os.path.join(HERE, "sweep", "run_pack.py"), os.path.join(folder, "run.py"))


def run(qdc_run, executor, cases, folder):
    """The results of one executor, or why there are none."""
    place = tempfile.mkdtemp(dir=folder)
    with open(os.path.join(place, "list"), "w") as file:
        file.writelines(launch(c, folder, "-out y=%s.npy" % os.path.join(place, c.name)) for c in cases)
    command = [qdc_run, os.path.join(folder, "k.qir"), "-device=" + executor.device,
               "--launches=" + os.path.join(place, "list")]
    done = subprocess.run(command + list(executor.options), env={**os.environ, **executor.env}, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
    if done.returncode:
        return None, "exit status %d\n%s" % (done.returncode, done.stdout[-2000:])
    return [np.load(os.path.join(place, case.name + ".npy")) for case in cases], None


def choose(only, present):
    """One executor a device: functions know no subgroups. On vulkan each width, which its compiler vectorises for."""
    only = set(filter(None, only.split(",")))
    chosen = {}
    for e in present:
        if not only or {e.family, e.device, e.name} & only:
            chosen.setdefault(e.name if e.family == "vulkan" else e.device, e)
    return list(chosen.values())


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--ops", default="")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compiler")
    parser.add_argument("--pack")
    parser.add_argument("--no-subnormals", default="")
    parser.add_argument("--venv")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    qdc_run = os.path.join(os.path.abspath(options.bin), "qdc-run")
    present, _ = executors.discover(qdc_run)
    rng = np.random.default_rng(options.seed)
    wanted = tuple(filter(None, options.ops.split(",")))
    cases = [Case(op, type, arity, reference, options.samples, rng)
             for type in TYPES for arity, table in ((1, UNARY), (2, BINARY), (3, TERNARY))
             for op, reference in table.items()
             if op.startswith(wanted or "")]
    worst, failures, chosen = {}, 0, choose(options.only, present)
    if options.compiler:
        library = os.path.abspath(options.compiler)
        chosen.append(executors.Executor("cpu", 32, [], {"QDC_COMPILER_LIBRARY": library}))
    with tempfile.TemporaryDirectory() as folder:
        write(cases, folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = list(pool.map(lambda e: run(qdc_run, e, cases, folder), chosen))
    for executor, (results, refusal) in zip(chosen, outcomes):
        if refusal:
            failures += 1
            print("%s: %s" % (executor.name, refusal))
            continue
        for case, got in zip(cases, results):
            error, failure = case.judge(got, executor)
            worst[case.name] = max(worst.get(case.name, 0), error)
            if failure:
                failures += 1
                print("%s: %s: %s" % (executor.name, case.name, failure))
    if options.pack and not failures:
        pack(cases, outcomes[0][0], options.pack, options.bin, options.no_subnormals.split(","))
    if options.v:
        print("\n".join("%-16s %.3f" % pair for pair in worst.items()))
    print("%d functions on %s: %d failures" % (len(cases), ", ".join(e.name for e in chosen), failures))
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
