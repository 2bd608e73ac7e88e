"""Values of a kernel under construction: typed, with operators, each of which writes an op.

Integers have no sign: operators are the signed ones, and the unsigned are called by name (`k.arith.divui`). `//` and
`%` round down, as Python's do. Python's numbers become constants of the other operand's type; two values must be of
one.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .errors import ArgumentError
from .text import Lines, literal, word
from .types import ArrayType, ScalarType, VectorType, i1, i32, i64, vector

if TYPE_CHECKING:
    from .builder import Body


def scalar_of(type: Any) -> Any:
    """The scalar of a scalar or vector type."""
    return type.element if isinstance(type, VectorType) else type


def lanes_of(type: Any) -> int:
    """The lanes of a vector type; 0 of a scalar type."""
    return type.lanes if isinstance(type, VectorType) else 0


def is_number(value: Any) -> bool:
    """Whether a value is Python's or NumPy's number rather than one of the kernel."""
    return not isinstance(value, (Value, str, bytes, ArrayType, ScalarType, VectorType)) and (
        hasattr(value, "__index__") or hasattr(value, "__float__")) and not hasattr(value, "__len__")


class Value:
    """Something that the kernel computes, in a region of it: the one that ops are added to, unless another is named."""

    __slots__ = ("body", "text", "type", "region")
    # NumPy's scalars leave operators to us.
    __array_ufunc__ = None

    def __init__(self, body: Body, text: str, type: Any, region: Optional[Lines] = None):
        self.body, self.text, self.type = body, text, type
        self.region = body._lines if region is None else region

    def __repr__(self) -> str:
        return "<%s: %s>" % (self.text, self.type)

    def __bool__(self) -> bool:
        raise ArgumentError("%s is known only when the kernel runs: use if_, while_ or select" % self.text)

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise ArgumentError("%s cannot be iterated over" % self.text)

    def _binary(self, other: Any, integer: Optional[str], float: Optional[str], swap: bool = False) -> Any:
        if not isinstance(other, Value) and not is_number(other):
            return NotImplemented
        other = self.body.value(other, self.type)
        name = float if scalar_of(self.type).is_float else integer
        if name is None:
            raise ArgumentError("%s has no such operator" % self.type)
        a, b = (other, self) if swap else (self, other)
        return self.body.op(name, a, b)

    def __add__(self, other: Any) -> Value:
        return self._binary(other, "arith.addi", "arith.addf")

    def __radd__(self, other: Any) -> Value:
        return self._binary(other, "arith.addi", "arith.addf", True)

    def __sub__(self, other: Any) -> Value:
        return self._binary(other, "arith.subi", "arith.subf")

    def __rsub__(self, other: Any) -> Value:
        return self._binary(other, "arith.subi", "arith.subf", True)

    def __mul__(self, other: Any) -> Value:
        return self._binary(other, "arith.muli", "arith.mulf")

    def __rmul__(self, other: Any) -> Value:
        return self._binary(other, "arith.muli", "arith.mulf", True)

    def _divide(self, other: Any, swap: bool) -> Any:
        if not scalar_of(self.type).is_float:
            raise ArgumentError("/ divides floats, found %s: use //, or convert" % self.type)
        return self._binary(other, None, "arith.divf", swap)

    def __truediv__(self, other: Any) -> Value:
        return self._divide(other, False)

    def __rtruediv__(self, other: Any) -> Value:
        return self._divide(other, True)

    def __floordiv__(self, other: Any) -> Value:
        shift = _power_of_two(other)
        if shift is not None and not scalar_of(self.type).is_float:
            return self >> shift
        return self._floor_divide(other, False)

    def __rfloordiv__(self, other: Any) -> Value:
        return self._floor_divide(other, True)

    def _floor_divide(self, other: Any, swap: bool) -> Any:
        if not scalar_of(self.type).is_float:
            return self._binary(other, "arith.floordivsi", None, swap)
        quotient = self._binary(other, None, "arith.divf", swap)
        return quotient if quotient is NotImplemented else self.body.op("math.floor", quotient)

    def __mod__(self, other: Any) -> Value:
        if _power_of_two(other) is not None and not scalar_of(self.type).is_float:
            return self & (other - 1)
        return self._modulo(other, False)

    def __rmod__(self, other: Any) -> Value:
        return self._modulo(other, True)

    def _modulo(self, other: Any, swap: bool) -> Any:
        """The remainder has the divisor's sign."""
        if not isinstance(other, Value) and not is_number(other):
            return NotImplemented
        other = self.body.value(other, self.type)
        a, b = (other, self) if swap else (self, other)
        if not scalar_of(self.type).is_float:
            return a - a._floor_divide(b, False) * b
        rest = self.body.op("arith.remf", a, b)
        differs = (rest != 0) & ((rest < 0) ^ (b < 0))
        return self.body.select(differs, rest + b, rest)

    def __pow__(self, other: Any) -> Value:
        if isinstance(other, Value) and scalar_of(self.type).is_float and not scalar_of(other.type).is_float:
            return self.body.op("math.fpowi", self, other)
        return self._binary(other, "math.ipowi", "math.powf")

    def __rpow__(self, other: Any) -> Value:
        return self._binary(other, "math.ipowi", "math.powf", True)

    def __and__(self, other: Any) -> Value:
        return self._binary(other, "arith.andi", None)

    __rand__ = __and__

    def __or__(self, other: Any) -> Value:
        return self._binary(other, "arith.ori", None)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Value:
        return self._binary(other, "arith.xori", None)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Value:
        return self._binary(other, "arith.shli", None)

    def __rlshift__(self, other: Any) -> Value:
        return self._binary(other, "arith.shli", None, True)

    def __rshift__(self, other: Any) -> Value:
        return self._binary(other, "arith.shrsi", None)

    def __rrshift__(self, other: Any) -> Value:
        return self._binary(other, "arith.shrsi", None, True)

    def __neg__(self) -> Value:
        if scalar_of(self.type).is_float:
            return self.body.op("arith.negf", self)
        return 0 - self  # type: ignore[return-value]

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return self ^ (True if scalar_of(self.type) is i1 else -1)

    def __abs__(self) -> Value:
        return self.body.op("math.absf" if scalar_of(self.type).is_float else "math.absi", self)

    def _compare(self, other: Any, integer: str, float: str) -> Any:
        if not isinstance(other, Value) and not is_number(other):
            raise ArgumentError("%s is compared with %s, expected a number" % (self.text, other.__class__.__name__))
        self.body.own(self)
        other = self.body.value(other, self.type)
        if scalar_of(self.type) is i1 and integer not in ("eq", "ne"):
            integer = integer.replace("s", "u", 1)  # true is above false
        kind, word = ("arith.cmpf", float) if scalar_of(self.type).is_float else ("arith.cmpi", integer)
        result = VectorType(i1, self.type.lanes) if isinstance(self.type, VectorType) else i1
        return self.body.emit("%s %s, %s, %s : %s" % (kind, word, self.text, other.text, self.type), result)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return self._compare(other, "eq", "oeq")

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return self._compare(other, "ne", "une")

    def __lt__(self, other: Any) -> Value:
        return self._compare(other, "slt", "olt")

    def __le__(self, other: Any) -> Value:
        return self._compare(other, "sle", "ole")

    def __gt__(self, other: Any) -> Value:
        return self._compare(other, "sgt", "ogt")

    def __ge__(self, other: Any) -> Value:
        return self._compare(other, "sge", "oge")

    def __getitem__(self, lane: Any) -> Value:
        """A scalar of a vector."""
        if not isinstance(self.type, VectorType):
            raise ArgumentError("%s of %s has no elements" % (self.text, self.type))
        lane = literal(lane, "a vector's element")
        if not 0 <= lane < self.type.lanes:
            raise ArgumentError("element %d of %s" % (lane, self.type))
        self.body.own(self)
        return self.body.emit("vector.extract %s[%d] : %s from %s" % (self.text, lane, self.type.element, self.type),
                              self.type.element)

    def to(self, type: Any, unsigned: bool = False) -> Value:
        """The value converted to another type."""
        return self.body.cast(self, type, unsigned)


class Array(Value):
    """A buffer, or a shared, private or constant array: `x[i]` loads, and `x[i] = v` stores."""

    __slots__ = ()

    def _subscripts(self, index: Any) -> str:
        self.body.own(self)
        rows = index if isinstance(index, (tuple, list)) else (index,)
        if len(rows) != self.type.rank:
            raise ArgumentError("%s of %s takes %d subscripts, got %d"
                                % (self.text, self.type, self.type.rank, len(rows)))
        return self.body.subscripts(rows)

    def load(self, index: Any, *, where: Any = None, otherwise: Any = 0, volatile: bool = False, align: int = 0,
             lanes: int = 0) -> Value:
        """The element there, or `otherwise` where `where` is false; with `lanes`, so many scalars as a vector."""
        element = self.type.element
        result = vector(self.type.scalar, lanes) if literal(lanes, "lanes") else element
        text = "qd.load %s%s%s" % ("volatile " if volatile else "", self.text, self._subscripts(index))
        if literal(align, "align"):
            text += " align(%d)" % align
        if where is not None:
            text += " if %s else %s" % (self.body.value(where, i1).text, self.body.value(otherwise, result).text)
        text += " : %s" % self.type
        return self.body.emit(text + (" -> %s" % result if result != element else ""), result)

    def store(self, value: Any, index: Any, *, where: Any = None, volatile: bool = False, align: int = 0) -> None:
        """Writes the element there, or nothing where `where` is false. A vector of scalars writes its neighbours,
        too."""
        element = self.type.element
        if isinstance(value, Value) and isinstance(value.type, VectorType) and value.type.element is element:
            value, of_vector = self.body.own(value), True
        else:
            value, of_vector = self.body.value(value, element), False
        text = "qd.store %s%s, %s%s" % ("volatile " if volatile else "", value.text, self.text, self._subscripts(index))
        if literal(align, "align"):
            text += " align(%d)" % align
        if where is not None:
            text += " if %s" % self.body.value(where, i1).text
        self.body.emit(text + (" : %s -> %s" % (value.type, self.type) if of_vector else " : %s" % self.type))

    def __getitem__(self, index: Any) -> Value:
        return self.load(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.store(value, index)

    # Python's operators are not for arrays.
    def _binary(self, *_: Any, **__: Any) -> Any:
        raise ArgumentError("%s is an array, expected a value" % self.text)

    _compare = _divide = _floor_divide = _modulo = _binary

    def __floordiv__(self, other: Any) -> Any:
        self._binary()

    __mod__ = __pow__ = __floordiv__

    def __neg__(self) -> Any:
        self._binary()

    __invert__ = __abs__ = __neg__

    def _access(self, where: Any, order: Optional[str], scope: Optional[str], otherwise: Any = None) -> str:
        text = ""
        if where is not None:
            text += " if %s" % self.body.value(where, i1).text
            if otherwise is not None:
                text += " else %s" % self.body.value(otherwise, self.type.element).text
        if order:
            text += " " + word(order, "order")
        if scope:
            text += " scope(%s)" % word(scope, "scope")
        return "%s : %s" % (text, self.type)

    def atomic(self, kind: str, value: Any, index: Any, *, where: Any = None, order: Optional[str] = None,
               scope: Optional[str] = None) -> Value:
        """Makes the element `old KIND value` in one step, and gives the old value."""
        value = self.body.value(value, self.type.element)
        return self.body.emit("qd.atomic_rmw %s %s, %s%s%s" % (
            word(kind, "kind"), value.text, self.text, self._subscripts(index), self._access(where, order, scope)),
            self.type.element)

    def atomic_cas(self, expected: Any, desired: Any, index: Any, *, where: Any = None, order: Optional[str] = None,
                   scope: Optional[str] = None) -> Any:
        """Replaces the element where it is the expected one; the old value, and whether it was."""
        a, b = (self.body.value(v, self.type.element) for v in (expected, desired))
        return self.body.emit("qd.atomic_cas %s, %s, %s%s%s" % (
            a.text, b.text, self.text, self._subscripts(index), self._access(where, order, scope)),
            (self.type.element, i1))

    def atomic_load(self, index: Any, *, where: Any = None, otherwise: Any = 0, order: Optional[str] = None,
                    scope: Optional[str] = None) -> Value:
        """Reads an element that other threads change."""
        access = self._access(where, order, scope, otherwise if where is not None else None)
        return self.body.emit("qd.atomic_load %s%s%s" % (self.text, self._subscripts(index), access), self.type.element)

    def atomic_store(self, value: Any, index: Any, *, where: Any = None, order: Optional[str] = None,
                     scope: Optional[str] = None) -> None:
        """Writes an element that other threads read."""
        value = self.body.value(value, self.type.element)
        self.body.emit("qd.atomic_store %s, %s%s%s" % (value.text, self.text, self._subscripts(index),
                                                      self._access(where, order, scope)))

    def size(self, dim: Optional[int] = None, type: Any = i32) -> Any:
        """The number of elements, or the extent along a dimension: a value for a buffer, else a number."""
        if dim is not None:
            dim = literal(dim, "a dimension")
            if not 0 <= dim < self.type.rank:
                raise ArgumentError("dimension %d of %s" % (dim, self.type))
        if self.type.space != "buffer":
            count = 1
            for extent in self.type.shape if dim is None else self.type.shape[dim:dim + 1]:
                count *= extent
            return count
        self.body.own(self)
        return self.body.emit("qd.size %s%s : %s -> %s"
                              % (self.text, "" if dim is None else ", %d" % dim, self.type, type), type)

    def view(self, index: Any, sizes: Any, *, strides: Any = None) -> Array:
        """A part of a buffer, as a buffer: where it begins, its extents, and the distance of neighbours."""
        self.body.own(self)
        sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
        rows = index if isinstance(index, (tuple, list)) else (index,)
        wide = any(isinstance(v, Value) and v.type is i64 for v in (*rows, *sizes, *(strides or ())))
        text = "qd.view %s%s, %s" % (self.text, self.body.subscripts(rows, wide), self.body.list_indices(sizes, wide))
        if strides is not None:
            strides = strides if isinstance(strides, (tuple, list)) else (strides,)
            text += " strides(%s)" % self.body.list_indices(strides, wide)
        result = ArrayType("buffer", self.type.element, len(sizes))
        text += " : %s" % self.type + (" to %s" % result if len(sizes) != self.type.rank else "")
        return self.body.emit(text, result)

    def reinterpret(self, element: Any) -> Array:
        """The buffer's bytes as elements of another type, in one dimension."""
        from .types import element_type
        self.body.own(self)
        result = ArrayType("buffer", element_type(element), 1)
        return self.body.emit("qd.reinterpret %s : %s to %s" % (self.text, self.type, result), result)


def _power_of_two(value: Any) -> Optional[int]:
    """The logarithm of a Python number that is a power of two."""
    if isinstance(value, (Value, bool)) or not hasattr(value, "__index__"):
        return None
    number = value.__index__()
    return number.bit_length() - 1 if 0 < number <= 2**30 and number & (number - 1) == 0 else None
