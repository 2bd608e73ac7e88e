"""Ops of arith and math that each thread does by itself, with references from their definitions."""
import fractions
import math

import numpy as np

import scalars
from case import OPEN_ZERO, VALUE, Case, Output

INTS = ["i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]


# A reference takes the operands' arrays and the operand type, and gives the result and where it is defined.

def unsigned(values):
    return values.view("u%d" % values.dtype.itemsize) if values.dtype != np.bool_ else values


def wrap(function):
    """Integers that wrap around: NumPy's own."""
    def reference(type, *args):
        with np.errstate(over="ignore"):
            return function(*args), True
    return reference


def by_element(function):
    """A function of Python integers or floats, None where the result is poison; the result wraps to the type."""
    def reference(type, *args):
        results = [function(*(v.item() for v in row), type) for row in zip(*args)]
        defined = np.array([r is not None for r in results])
        filled = [0 if r is None else r for r in results]
        if scalars.is_float(type):
            return scalars.rounded(type, np.array(filled)), defined
        mask = (1 << scalars.width(type)) - 1
        return np.array([r & mask for r in filled], np.uint64).astype("u%d" % (scalars.width(type) // 8)).view(
            scalars.working(type)), defined
    return reference


def u(value, type):
    return value & ((1 << scalars.width(type)) - 1)


def divides(a, b, type):
    """Signed division that does not overflow."""
    return b != 0 and not (b == -1 and a == -(1 << scalars.width(type) - 1))


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def high_half(product, type):
    return product >> scalars.width(type)


INT_BINARY = {
    "arith.addi": wrap(lambda a, b: a + b),
    "arith.subi": wrap(lambda a, b: a - b),
    "arith.muli": wrap(lambda a, b: a * b),
    "arith.andi": wrap(lambda a, b: a & b),
    "arith.ori": wrap(lambda a, b: a | b),
    "arith.xori": wrap(lambda a, b: a ^ b),
    "arith.minsi": wrap(np.minimum),
    "arith.maxsi": wrap(np.maximum),
    "arith.minui": by_element(lambda a, b, t: min(u(a, t), u(b, t))),
    "arith.maxui": by_element(lambda a, b, t: max(u(a, t), u(b, t))),
    "arith.divsi": by_element(lambda a, b, t: truncated(a, b) if divides(a, b, t) else None),
    "arith.remsi": by_element(lambda a, b, t: a - truncated(a, b) * b if divides(a, b, t) else None),
    "arith.floordivsi": by_element(lambda a, b, t: a // b if divides(a, b, t) else None),
    "arith.ceildivsi": by_element(lambda a, b, t: -(-a // b) if divides(a, b, t) else None),
    "arith.divui": by_element(lambda a, b, t: u(a, t) // u(b, t) if b else None),
    "arith.remui": by_element(lambda a, b, t: u(a, t) % u(b, t) if b else None),
    "arith.ceildivui": by_element(lambda a, b, t: -(-u(a, t) // u(b, t)) if b else None),
    "arith.shli": by_element(lambda a, b, t: a << b if 0 <= b < scalars.width(t) else None),
    "arith.shrsi": by_element(lambda a, b, t: a >> b if 0 <= b < scalars.width(t) else None),
    "arith.shrui": by_element(lambda a, b, t: u(a, t) >> b if 0 <= b < scalars.width(t) else None),
}
INT_HIGH = {
    "arith.mulsi_extended": by_element(lambda a, b, t: high_half(a * b, t)),
    "arith.mului_extended": by_element(lambda a, b, t: high_half(u(a, t) * u(b, t), t)),
}
INT_UNARY = {
    "math.absi": wrap(np.abs),
    "math.ctpop": by_element(lambda a, t: bin(u(a, t)).count("1")),
    "math.ctlz": by_element(lambda a, t: scalars.width(t) - u(a, t).bit_length()),
    "math.cttz": by_element(lambda a, t: (u(a, t) & -u(a, t)).bit_length() - 1 if a else scalars.width(t)),
}
COMPARE_INTS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
    "ult": lambda a, b: unsigned(a) < unsigned(b), "ule": lambda a, b: unsigned(a) <= unsigned(b),
    "ugt": lambda a, b: unsigned(a) > unsigned(b), "uge": lambda a, b: unsigned(a) >= unsigned(b),
}


def floats(function):
    """NumPy rounds f16, f32 and f64 right; bf16 is rounded from f32, which is wide enough for that."""
    def reference(type, *args):
        with np.errstate(all="ignore"):
            return scalars.rounded(type, function(*args)), True
    return reference


def exact(function):
    """A function of Fractions, rounded once; `special` values go to Python's own arithmetic on floats."""
    def reference(type, *args):
        results = []
        for row in zip(*args):
            row = [float(v) for v in row]
            if all(map(math.isfinite, row)):
                value = function(*map(fractions.Fraction, row))
                results.append(scalars.nearest(type, value) if value else zero(row))
            else:
                with np.errstate(all="ignore"):
                    results.append(float(function(*map(np.float64, row))))
        return scalars.rounded(type, np.array(results)), True

    def zero(row):
        """The sign of a * b + c where that is zero: a sum of zeros of both signs, or of opposites, is +0."""
        product = math.copysign(1, row[0]) * math.copysign(1, row[1])
        both_zero = row[2] == 0
        return -0.0 if both_zero and product < 0 and math.copysign(1, row[2]) < 0 else 0.0
    return reference


def ordered_min(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where((a < b) | ((a == b) & np.signbit(a)), a, b))


def ordered_max(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b))


def round_away(a):
    whole = np.trunc(a)
    return np.copysign(whole + np.where(np.abs(a - whole) >= 0.5, np.copysign(1, a), 0), a)


def wide(function):
    """Rounding to an integer value is exact in f64."""
    return lambda a: function(a.astype(np.float64))


FLOAT_BINARY = {
    "arith.addf": floats(lambda a, b: a + b),
    "arith.subf": floats(lambda a, b: a - b),
    "arith.mulf": floats(lambda a, b: a * b),
    "arith.divf": floats(lambda a, b: a / b),
    "arith.minimumf": floats(ordered_min),
    "arith.maximumf": floats(ordered_max),
    "arith.minnumf": floats(np.fmin),
    "arith.maxnumf": floats(np.fmax),
    "math.copysign": floats(np.copysign),
}
FLOAT_UNARY = {
    "arith.negf": floats(np.negative),
    "math.absf": floats(np.abs),
    "math.sqrt": floats(np.sqrt),
    "math.floor": floats(wide(np.floor)),
    "math.ceil": floats(wide(np.ceil)),
    "math.trunc": floats(wide(np.trunc)),
    "math.round": floats(wide(round_away)),
    "math.roundeven": floats(wide(np.rint)),
}
CLASSIFY = {
    "math.isnan": lambda t, a: np.isnan(a),
    "math.isinf": lambda t, a: np.isinf(a),
    "math.isfinite": lambda t, a: np.isfinite(a),
    "math.isnormal": lambda t, a: np.isfinite(a) & (np.abs(a) >= 2.0 ** scalars.FORMATS[t][1]),
}
COMPARE_FLOATS = {
    "oeq": lambda a, b: a == b, "ogt": lambda a, b: a > b, "oge": lambda a, b: a >= b,
    "olt": lambda a, b: a < b, "ole": lambda a, b: a <= b, "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": lambda a, b: a != b,
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}


def to_integer(source, target, is_signed):
    def reference(type, a):
        low = -(1 << scalars.width(target) - 1) if is_signed else 0
        high = (1 << scalars.width(target) - (1 if is_signed else 0)) - 1
        values = [math.trunc(float(v)) if math.isfinite(v) else None for v in a]
        defined = np.array([v is not None and low <= v <= high for v in values])
        mask = (1 << scalars.width(target)) - 1
        bits = np.array([v & mask if ok else 0 for v, ok in zip(values, defined)], np.uint64)
        if target == "i1":
            return bits.astype(np.bool_), defined
        return bits.astype("u%d" % (scalars.width(target) // 8)).view(scalars.working(target)), defined
    return reference


def from_integer(target, is_signed):
    def reference(type, a):
        values = a if is_signed else unsigned(a)
        sign = -1 if is_signed and type == "i1" else 1
        return scalars.rounded(target, np.array(
            [scalars.nearest(target, fractions.Fraction(sign * int(v))) for v in values])), True
    return reference


def bits_of(type, a):
    return scalars.to_storage(type, a).view("u%d" % (scalars.width(type) // 8))


def conversions():
    """(op text with %a, source, target, reference)."""
    all_ints = ["i1"] + INTS
    for source in all_ints:
        for target in all_ints:
            if scalars.width(source) < scalars.width(target):
                yield "arith.extsi", source, target, lambda t, a, to=target: (
                    np.where(a, -1, 0).astype(scalars.working(to)) if t == "i1" else a.astype(scalars.working(to)),
                    True)
                yield "arith.extui", source, target, lambda t, a, to=target: (
                    unsigned(a).astype(scalars.working(to)), True)
            elif scalars.width(source) > scalars.width(target):
                yield "arith.trunci", source, target, lambda t, a, to=target: (
                    (a & 1).astype(np.bool_) if to == "i1" else a.astype(scalars.working(to)), True)
    for source in FLOATS:
        for target in FLOATS:
            if scalars.width(source) < scalars.width(target):
                yield "arith.extf", source, target, lambda t, a, to=target: (a.astype(scalars.working(to)), True)
            elif scalars.width(source) > scalars.width(target):
                yield "arith.truncf", source, target, lambda t, a, to=target: (scalars.rounded(to, np.array(
                    [float(v) if not math.isfinite(v) or v == 0 else scalars.nearest(to, fractions.Fraction(float(v)))
                     for v in a])), True)
        for target in INTS:
            yield "arith.fptosi", source, target, to_integer(source, target, True)
            yield "arith.fptoui", source, target, to_integer(source, target, False)
        for target in all_ints:
            yield "arith.sitofp", target, source, from_integer(source, True)
            yield "arith.uitofp", target, source, from_integer(source, False)
        same_width = "i%d" % scalars.width(source)
        yield "arith.bitcast", source, same_width, lambda t, a, to=same_width: (
            bits_of(t, a).view(scalars.working(to)), ~np.isnan(a))
        yield "arith.bitcast", same_width, source, lambda t, a, to=source: (
            scalars.from_storage(to, a.view(scalars.storage(to))), True)


KERNEL = """qd.kernel @{name}({arguments}, %y: !qd.buffer<{result}>) block(64) {{
  %i = qd.global_thread_id x : i32
{loads}  {op}
  qd.store %r, %y[%i] : !qd.buffer<{result}>
  qd.return
}}
"""


def make(name, op, types, result, reference, inputs, zero_sign=True):
    """One case: every row of the inputs is a thread; rows whose result is poison are left out, and those with
    subnormals that are not to be made."""
    expected, defined = reference(types[0], *inputs)
    defined = defined & ~scalars.is_flushed(result, expected, is_result=True)
    for type, values in zip(types, inputs):
        defined &= ~scalars.is_flushed(type, values)
    inputs, expected = [values[defined] for values in inputs], expected[defined]
    rows = len(expected) // 64 * 64
    if len(expected) < 64:  # a few rows again and again
        repeats = -(-64 // len(expected))
        inputs = [np.tile(values, repeats) for values in inputs]
        expected, rows = np.tile(expected, repeats), 64
    inputs, expected = [values[:rows] for values in inputs], expected[:rows]
    letters = "abc"[:len(types)]
    text = KERNEL.format(
        name=name, result=result, op=op,
        arguments=", ".join("%%%s: !qd.buffer<%s> readonly" % pair for pair in zip(letters, types)),
        loads="".join("  %%v%s = qd.load %%%s[%%i] : !qd.buffer<%s>\n" % (l, l, t) for l, t in zip(letters, types)))
    buffers = [(l, t, values) for l, t, values in zip(letters, types, inputs)]
    output = Output("y", result, expected, equality=VALUE if zero_sign else OPEN_ZERO)
    return Case(name, text, (rows // 64, 1, 1), [], buffers, [output])


def operands(type, count, rng):
    """Rows of operands: every pair of edge values, and random ones; at least a block of them."""
    edges = scalars.edges(type)
    if count == 1:
        grid = [edges]
    elif count == 2:
        grid = [v.ravel() for v in np.meshgrid(edges, edges)]
    else:
        grid = [rng.choice(edges, 512) for _ in range(count)]
    rows = [np.concatenate([g, scalars.randoms(type, 128, rng)]) for g in grid]
    if not scalars.is_float(type) and count == 2 and type != "i1":
        # Shift amounts and small divisors, which random patterns seldom are.
        small = np.arange(128) % scalars.width(type)
        rows = [np.concatenate([rows[0], scalars.randoms(type, 128, rng)]),
                np.concatenate([rows[1], small.astype(scalars.working(type))])]
    order = rng.permutation(len(rows[0]))
    return [values[order] for values in rows]


def cases(rng):
    """All ops on all types that take them: (op, type, case)."""
    def case(op, type, text, types, result, reference, **more):
        name = (op + "_" + "_".join(types) + "_" + result).replace(".", "_")
        inputs = operands(type, len(types), rng)
        return op, type, make(name, text, types, result, reference, inputs, **more)

    for type in ["i1"] + INTS:
        for op, reference in INT_BINARY.items():
            if type == "i1" and op not in ("arith.andi", "arith.ori", "arith.xori"):
                continue
            yield case(op, type, "%%r = %s %%va, %%vb : %s" % (op, type), [type] * 2, type, reference)
        if type != "i1":
            for op, reference in INT_HIGH.items():
                yield case(op, type, "%%low, %%r = %s %%va, %%vb : %s" % (op, type), [type] * 2, type, reference)
            for op, reference in INT_UNARY.items():
                yield case(op, type, "%%r = %s %%va : %s" % (op, type), [type], type, reference)
            yield case("arith.addui_extended", type, "%%s, %%r = arith.addui_extended %%va, %%vb : %s, i1" % type,
                       [type] * 2, "i1", lambda t, a, b: (unsigned(a + b) < unsigned(a), True))
            for predicate, function in COMPARE_INTS.items():
                yield case("arith.cmpi." + predicate, type, "%%r = arith.cmpi %s, %%va, %%vb : %s" % (predicate, type),
                           [type] * 2, "i1", wrap(function))
    for type in FLOATS:
        for op, reference in FLOAT_BINARY.items():
            yield case(op, type, "%%r = %s %%va, %%vb : %s" % (op, type), [type] * 2, type, reference,
                       zero_sign=op not in ("arith.minnumf", "arith.maxnumf"))
        for op, reference in FLOAT_UNARY.items():
            yield case(op, type, "%%r = %s %%va : %s" % (op, type), [type], type, reference)
        yield case("math.fma", type, "%%r = math.fma %%va, %%vb, %%vc : %s" % type, [type] * 3, type,
                   exact(multiply_add))
        for op, function in CLASSIFY.items():
            yield case(op, type, "%%r = %s %%va : %s" % (op, type), [type], "i1",
                       lambda t, a, f=function: (f(t, a), True))
        for predicate, function in COMPARE_FLOATS.items():
            yield case("arith.cmpf." + predicate, type, "%%r = arith.cmpf %s, %%va, %%vb : %s" % (predicate, type),
                       [type] * 2, "i1", floats_compare(function))
    for op, source, target, reference in conversions():
        yield case(op, source, "%%r = %s %%va : %s to %s" % (op, source, target), [source], target, reference)


def multiply_add(a, b, c):
    """Of finite factors the product is no infinity, however large."""
    return c if math.isinf(c) and math.isfinite(a) and math.isfinite(b) else a * b + c


def floats_compare(function):
    def reference(type, a, b):
        with np.errstate(invalid="ignore"):
            return function(a, b), True
    return reference
