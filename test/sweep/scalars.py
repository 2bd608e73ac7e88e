"""Scalar types: how NumPy holds each, its edge values, and correctly rounded results."""
import fractions
import math

import numpy as np

INTS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
# bf16 has no NumPy type: in files and buffers it is uint16, in references float32 whose low half is zero.
# (significand bits, smallest exponent of a normal number, largest exponent)
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


def is_float(type):
    return type in FORMATS


def width(type):
    return int(type.lstrip("ibf"))


def storage(type):
    """What a buffer of the type holds."""
    return np.dtype(np.uint16 if type == "bf16" else {**INTS, **FLOATS}[type])


def working(type):
    """What references compute with."""
    return np.dtype(np.float32 if type == "bf16" else {**INTS, **FLOATS}[type])


def round_bf16(values):
    """float32 to the nearest bf16, ties to even, as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), rounded.view(np.float32)).astype(np.float32)


def rounded(type, values):
    """A working array whose values are of the type."""
    if type == "bf16":
        return round_bf16(np.asarray(values, np.float32))
    return np.asarray(values).astype(working(type))


def to_storage(type, values):
    """What is storage already stays as it is: there alone a bf16's NaN keeps its bits."""
    values = np.asarray(values)
    if values.dtype == storage(type):
        return values
    if type == "bf16":
        return (round_bf16(values).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(storage(type))


def from_storage(type, values):
    if type == "bf16":
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values


def nearest(type, exact):
    """The value of the float type nearest to a Fraction, ties to even, as a Python float. Zero is +0."""
    precision, smallest, largest = FORMATS[type]
    if exact == 0:
        return 0.0
    sign, exact = (-1.0, -exact) if exact < 0 else (1.0, exact)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if fractions.Fraction(2) ** exponent > exact:
        exponent -= 1
    unit = fractions.Fraction(2) ** (max(exponent, smallest) - precision + 1)
    steps = round(exact / unit)  # to even, as Fraction rounds
    result = steps * unit
    if result >= fractions.Fraction(2) ** (largest + 1):
        return sign * math.inf
    return sign * float(result)


# Types of which no subnormals are made: for devices that flush them.
without_subnormals = set()


def is_flushed(type, values, is_result=False):
    """Where a value would be a subnormal that is not to be made; or a result that was one before it was rounded."""
    if type not in without_subnormals:
        return np.zeros(np.shape(values), np.bool_)
    normal = 2.0 ** FORMATS[type][1]
    return (values != 0) & ((np.abs(values) < normal) | (is_result & (np.abs(values) == normal)))


def edges(type):
    """Values where mistakes show."""
    if type == "i1":
        return np.array([0, 1], np.bool_)
    if not is_float(type):
        bits = width(type)
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        pattern = int("55" * (bits // 8), 16)
        values = [0, 1, -1, 2, -2, 7, -7, 10, high, high - 1, low, low + 1, pattern, ~pattern, bits - 1, bits // 2]
        return np.array(values, working(type))
    precision, smallest, largest = FORMATS[type]
    tiny, normal = 2.0 ** (smallest - precision + 1), 2.0 ** smallest
    high = (2.0 - 2.0 ** (1 - precision)) * 2.0 ** largest
    values = [0.0, 1.0, 1.5, 2.5, 3.0, 0.5, 0.1, 1.0 + 2.0 ** (1 - precision), 2.0 ** precision - 1, tiny, 3 * tiny,
              normal - tiny, normal, high, math.inf]
    if type in without_subnormals:
        values = [v for v in values if v == 0 or v >= normal]
    with np.errstate(over="ignore"):
        return rounded(type, np.array(values + [-v for v in values] + [math.nan], np.float64))


def randoms(type, count, rng):
    """Random bit patterns of integers; floats of middling size."""
    if type == "i1":
        return rng.integers(0, 2, count).astype(np.bool_)
    if not is_float(type):
        return rng.integers(0, 256, count * (width(type) // 8), np.uint8).view(working(type))
    return rounded(type, rng.standard_normal(count) * 2.0 ** rng.integers(-6, 7, count))


def smalls(type, count, rng):
    """Values whose sums are exact in any order: small integers, also as floats."""
    if type == "i1":
        return randoms(type, count, rng)
    most = 4 if width(type) < 32 else 99
    return rounded(type, rng.integers(-most, most + 1, count))


def same(type, expected, got, zero_sign=True):
    """By element: bit for bit, but any NaN is any other."""
    if not is_float(type):
        return expected == got
    with np.errstate(invalid="ignore"):
        equal = expected == got
    if zero_sign:
        equal &= np.signbit(expected) == np.signbit(got)
    return equal | (np.isnan(expected) & np.isnan(got))


def bits(type, values):
    """Unsigned integers that hold the values' bits; a bool is 0 or 1."""
    stored = to_storage(type, values)
    return stored.view("u%d" % stored.dtype.itemsize)


def patterns(type, count, rng):
    """Storage of any bits; NaNs are quiet, and of both signs."""
    if not is_float(type):
        return randoms(type, count, rng)
    unsigned = np.dtype("u%d" % (width(type) // 8))
    raw = rng.integers(0, 256, count * unsigned.itemsize, np.uint8).view(unsigned)
    quiet = unsigned.type(1 << FORMATS[type][0] - 2)
    nans = np.isnan(from_storage(type, raw.view(storage(type))))
    edge = bits(type, np.concatenate([edges(type), edges(type)]))
    edge = np.concatenate([edge, nan_bits(type)])
    raw = np.where(nans, raw | quiet, raw)
    return np.where(rng.integers(0, 2, count) == 0, rng.choice(edge, count), raw).astype(unsigned).view(storage(type))


def nan_bits(type):
    """The plain quiet NaN of either sign."""
    unsigned = np.dtype("u%d" % (width(type) // 8))
    precision, top = FORMATS[type][0], 1 << width(type) - 1
    positive = (top - 1) ^ ((1 << precision - 2) - 1)
    return np.array([positive, positive | top], unsigned)


def literal(type, value):
    """A constant of the type, as QIR writes it."""
    if type == "i1":
        return "true" if value else "false"
    if not is_float(type):
        return str(int(value))
    return "0x%0*X" % (width(type) // 4, int(to_storage(type, [value]).view("u%d" % (width(type) // 8))[0]))
