"""The types of QIR as Python values, and how Python's and arrays' values become theirs."""
from __future__ import annotations

import struct
from typing import Any, Tuple

from .errors import ArgumentError


class ScalarType:
    """A scalar: `i1`, `i8`, `i16`, `i32`, `i64`, `f16`, `bf16`, `f32` or `f64`. Its text is its name in QIR."""

    __slots__ = ("name", "width", "is_float")

    def __init__(self, name: str, width: int, is_float: bool):
        self.name, self.width, self.is_float = name, width, is_float

    @property
    def bytes(self) -> int:
        """What an element takes in memory; an i1 takes a byte."""
        return max(self.width // 8, 1)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return "qdc." + self.name


i1, i8, i16, i32, i64 = (ScalarType("i%d" % width, width, False) for width in (1, 8, 16, 32, 64))
f16, f32, f64 = (ScalarType("f%d" % width, width, True) for width in (16, 32, 64))
bf16 = ScalarType("bf16", 16, True)

SCALARS = {t.name: t for t in (i1, i8, i16, i32, i64, f16, bf16, f32, f64)}


class VectorType:
    """A vector of 2, 3, 4, 8 or 16 scalars."""

    __slots__ = ("element", "lanes")

    def __init__(self, element: ScalarType, lanes: int):
        self.element, self.lanes = element, lanes

    @property
    def bytes(self) -> int:
        return self.lanes * self.element.bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorType) and (self.element, self.lanes) == (other.element, other.lanes)

    def __hash__(self) -> int:
        return hash((self.element, self.lanes))

    def __str__(self) -> str:
        return "vector<%dx%s>" % (self.lanes, self.element)

    def __repr__(self) -> str:
        return "qdc.vector(%r, %d)" % (self.element, self.lanes)


def scalar_type(value: Any) -> ScalarType:
    """The scalar type of that name, or the type itself."""
    if isinstance(value, ScalarType):
        return value
    found = SCALARS.get(value) if isinstance(value, str) else None
    if found is None:
        raise ArgumentError("unknown type %r, expected one of %s" % (value, ", ".join(SCALARS)))
    return found


def vector(element: Any, lanes: int) -> VectorType:
    """The type of vectors of so many scalars."""
    element = scalar_type(element)
    if lanes not in (2, 3, 4, 8, 16):
        raise ArgumentError("a vector has 2, 3, 4, 8 or 16 scalars, got %r" % (lanes,))
    return VectorType(element, lanes)


def parse_element(text: str) -> Tuple[ScalarType, int]:
    """The scalar and the number of lanes of "f32" or "vector<4xf32>"."""
    if text.startswith("vector<") and text.endswith(">"):
        lanes, _, name = text[len("vector<"):-1].partition("x")
        if lanes.isdigit() and name in SCALARS:
            return SCALARS[name], int(lanes)
    if text in SCALARS:
        return SCALARS[text], 1
    raise ArgumentError("unknown element type %r" % text)


def _bfloat_bits(value: float) -> int:
    """The bits of the nearest bf16, of two that are as near the even one."""
    try:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        bits = 0xff800000 if value < 0 else 0x7f800000
    if value != value:
        return 0x7fc0
    near = struct.unpack("<f", struct.pack("<I", bits))[0]
    if near != value and bits & 0x7f800000 != 0x7f800000:
        # Rounded once already: cut instead, and leave a mark that there was more.
        bits = (bits - (abs(near) > abs(value))) | 1
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff


def scalar_bits(type: ScalarType, value: Any) -> int:
    """The bits of a Python or NumPy number as a scalar of the type; an ArgumentError where it is none of its values.
    Integers may be signed or unsigned."""
    if type.is_float:
        if isinstance(value, (str, bytes, bytearray, complex)) or not (
                hasattr(value, "__float__") or hasattr(value, "__index__")):
            raise ArgumentError("expected a number for %s, got %s" % (type, _name(value)))
        try:
            number = float(value)
        except OverflowError:
            raise ArgumentError("%s does not fit %s" % (_short(value), type)) from None
        except (TypeError, ValueError) as error:
            raise ArgumentError("expected a number for %s, got %s (%s)" % (type, _name(value), error)) from None
        if type is bf16:
            return _bfloat_bits(number)
        code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[type.width]
        try:
            return struct.unpack(integer, struct.pack(code, number))[0]
        except OverflowError:
            return struct.unpack(integer, struct.pack(code, float("inf") if number > 0 else float("-inf")))[0]
    if type is i1 and not hasattr(value, "__index__") and value.__class__.__name__ in ("bool_", "bool"):
        value = bool(value)  # NumPy's own
    if not hasattr(value, "__index__"):
        raise ArgumentError("expected an integer for %s, got %s" % (type, _name(value)))
    try:
        number = value.__index__()
    except TypeError as error:
        raise ArgumentError("expected an integer for %s, got %s (%s)" % (type, _name(value), error)) from None
    low = 0 if type is i1 else -(1 << (type.width - 1))
    if not low <= number < 1 << type.width:
        raise ArgumentError("%s does not fit %s" % (_short(number), type))
    return number & ((1 << type.width) - 1)


def _name(value: Any) -> str:
    return value.__class__.__name__


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # more digits than Python writes
        return "the number"
    return text if len(text) <= 40 else text[:37] + "..."


# ---- arrays -----------------------------------------------------------------------------------------------------

class ArrayType:
    """What is subscripted: a buffer, or a shared, private or constant array. `shape` is None for buffers, whose extents
    are known when the kernel runs."""

    __slots__ = ("space", "element", "rank", "shape", "attributes")

    def __init__(self, space: str, element: Any, rank: int, shape: Any = None, attributes: str = ""):
        self.space, self.element, self.rank, self.shape = space, element, rank, shape
        self.attributes = attributes

    @property
    def scalar(self) -> ScalarType:
        return self.element.element if isinstance(self.element, VectorType) else self.element

    def __str__(self) -> str:
        if self.space == "buffer":
            extents = "?x" * self.rank if self.rank > 1 else ""
        else:
            extents = "".join("%dx" % extent for extent in self.shape)
        return "!qd.%s<%s%s>" % (self.space, extents, self.element)

    def __repr__(self) -> str:
        return "<%s>" % self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def element_type(value: Any) -> Any:
    """What an array may consist of."""
    return value if isinstance(value, VectorType) else scalar_type(value)


def buffer(element: Any, rank: int = 1, *, readonly: bool = False, writeonly: bool = False, noalias: bool = False,
           align: int = 0) -> ArrayType:
    """The type of a kernel's buffer parameter, with what is promised of it."""
    if rank not in (1, 2, 3):
        raise ArgumentError("a buffer has 1 to 3 dimensions, got %r" % (rank,))
    words = ["readonly"] * readonly + ["writeonly"] * writeonly + ["noalias"] * noalias
    if align:
        words.append("align(%d)" % align)
    return ArrayType("buffer", element_type(element), rank, None, "".join(" " + word for word in words))


def _static(space: str, element: Any, shape: Any) -> ArrayType:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for extent in extents:
        if isinstance(extent, bool) or not hasattr(extent, "__index__") or extent.__index__() < 1:
            raise ArgumentError("an array's extents are whole numbers from 1, got %r" % (extent,))
    if not extents:
        raise ArgumentError("an array has at least one dimension")
    return ArrayType(space, element_type(element), len(extents), tuple(e.__index__() for e in extents))


def shared(element: Any, shape: Any) -> ArrayType:
    """The type of an array in a block's shared memory."""
    return _static("shared", element, shape)


def private(element: Any, shape: Any) -> ArrayType:
    """The type of a thread's own array."""
    return _static("private", element, shape)
