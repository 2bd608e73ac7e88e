"""The inside of a kernel: lines of ops, constants, values, control flow and memory.

What is added is text at the end of the innermost region; constants and shared arrays stand at the top.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

from .errors import ArgumentError
from .op_calls import OpCalls, Ops
from .text import Lines, Region, literal, quote, write
from .types import (ArrayType, ScalarType, VectorType, element_type, f32, i1, i32, i64, private, scalar_bits,
                    scalar_type, shared)
from .values import Array, Value, is_number, lanes_of, scalar_of

if TYPE_CHECKING:
    from .builder import Builder


class _Block:
    """`with` around a region that gives no values."""

    def __init__(self, body: Body, lines: Lines, value: Any):
        self.body, self.lines, self.value = body, lines, value

    def __enter__(self) -> Any:
        self.outer = self.body._lines
        self.body._lines = self.lines
        self.lines.open = True
        return self.value

    def __exit__(self, *_: Any) -> None:
        self.lines.open = False
        self.body._lines = self.outer


class Body(OpCalls):
    """The inside of a kernel or function, to which ops are added at the end.

    Ops of the table (see `qdc.ops`) are attributes by their names: `k.thread_id("x")`, `k.block.sync()`,
    `k.subgroup.reduce_all("add", v, tile=8)`, `k.math.exp(v)`, `k.arith.divui(a, b)`.
    """

    def __init__(self, module: Builder):
        self._module = module
        self._lines = self._top = Lines()
        self._top.open = True
        self._constants: Dict[Tuple[str, str], Value] = {}
        self._constant_lines: List[str] = []
        self._taken: Dict[str, int] = {}
        self._location = ""
        self.subgroup = Ops(self, "qd.subgroup.")
        self.block = Ops(self, "qd.block.")
        self.grid = Ops(self, "qd.grid.")
        self.math = Ops(self, "math.")
        self.arith = Ops(self, "arith.")

    # ---- lines ----------------------------------------------------------------------------------------------------

    def at(self, file: Optional[str], line: int = 0, column: int = 0) -> None:
        """Gives the ops that follow a place of their own, which diagnostics then name; None gives none."""
        self._location = "" if file is None else " loc(%s:%d:%d)" % (quote(file), line, column)

    def fresh(self, hint: str = "v") -> str:
        """A name that no other value has."""
        hint = re.sub(r"[^A-Za-z0-9_]", "_", hint) or "v"
        hint = "v" + hint if hint[0].isdigit() else hint
        while True:
            number = self._taken.get(hint, 0)
            self._taken[hint] = number + 1
            name = hint if number == 0 else "%s_%d" % (hint, number)
            if number == 0 or name not in self._taken:
                self._taken.setdefault(name, 1)
                return "%" + name

    def _values(self, types: Any, hint: str, region: Optional[Lines] = None) -> Any:
        if isinstance(types, tuple):
            return tuple(self._values(type, hint, region) for type in types)
        return (Array if isinstance(types, ArrayType) else Value)(self, self.fresh(hint), types, region)

    def emit(self, text: str, results: Any = None, hint: str = "v") -> Any:
        """Adds an op as text; `results` is the type of its result, or a tuple of them. For ops that have no function of
        their own."""
        if results is None or results == ():
            self._lines.append(text + self._location)
            return None
        values = self._values(results, hint)
        names = values if isinstance(values, tuple) else (values,)
        self._lines.append("%s = %s%s" % (", ".join(v.text for v in names), text, self._location))
        return values

    # ---- values ---------------------------------------------------------------------------------------------------

    def constant(self, value: Any, type: Any) -> Value:
        """A number as a value of a scalar type, or a vector of it."""
        scalar = scalar_of(type)
        if not isinstance(scalar, ScalarType):
            raise ArgumentError("a constant of %s" % (type,))
        bits = scalar_bits(scalar, value)
        if scalar is i1:
            text = "true" if bits else "false"
        elif scalar.is_float:
            text = "0x%0*X" % (scalar.width // 4, bits)
            short = repr(float(value))
            if re.fullmatch(r"-?[0-9]+\.[0-9]+", short) and scalar_bits(scalar, float(short)) == bits:
                text = short
        else:
            text = str(bits - (1 << scalar.width) if bits >> (scalar.width - 1) else bits)
        found = self._constants.get((text, str(type)))
        if found is None:
            hint = "c" + re.sub(r"[^0-9A-Za-z]", "_", text.replace("-", "m"))
            found = Value(self, self.fresh(hint), type, self._top)
            written = "dense<%s> : %s" % (text, type) if type is not scalar else \
                text if scalar is i1 else "%s : %s" % (text, type)
            self._constant_lines.append("%s = arith.constant %s" % (found.text, written))
            self._constants[text, str(type)] = found
        return found

    def own(self, value: Any) -> Any:
        """A value or array that ops may name where they are added now."""
        if value.body is not self:
            raise ArgumentError("%s belongs to another kernel" % value.text)
        if not value.region.open:
            raise ArgumentError("%s belongs to a region that has ended; if_, for_ and while_ with functions give values"
                                " out" % value.text)
        return value

    def _mismatch(self, found: Any, type: Any) -> str:
        """What is said where a value of a type is expected (None: of any). Frontends have words of their own."""
        expected = "expected a value%s" % (" of %s" % type if type else "")
        if isinstance(found, Array):
            return "%s is an array, %s" % (found.text, expected)
        if not isinstance(found, Value):
            return "found %s, %s" % (found.__class__.__name__, expected)
        text = "found %s of %s, expected %s" % (found.text, found.type, type)
        if lanes_of(found.type) == lanes_of(type):
            text += "; it can be converted, as in v.to(qdc.%s)" % scalar_of(type)
        return text

    def value(self, value: Any, type: Any = None) -> Value:
        """A value of that type: one that is of it, or a number made a constant."""
        if isinstance(value, Array) or not (isinstance(value, Value) or is_number(value)):
            raise ArgumentError(self._mismatch(value, type))
        if isinstance(value, Value):
            self.own(value)
            if type is not None and value.type != type:
                raise ArgumentError(self._mismatch(value, type))
            return value
        if type is None:
            type = i1 if isinstance(value, bool) else i32 if hasattr(value, "__index__") else f32
        return self.constant(value, type)

    def cast(self, value: Any, type: Any, unsigned: bool = False) -> Value:
        """A value converted to a type: integers by sign (`unsigned`: by zeros), floats rounded, to i1 by whether it
        differs from zero."""
        if is_number(value):
            if scalar_of(type) is i1:
                return self.constant(bool(value), type)
            return self.constant(value if scalar_of(type).is_float else int(value), type)
        value = self.value(value)
        source, target = scalar_of(value.type), scalar_of(type)
        if not isinstance(target, ScalarType):
            raise ArgumentError("%s is no type to convert to" % (type,))
        if isinstance(value.type, VectorType) and type is target:
            type = VectorType(target, value.type.lanes)
        if value.type == type:
            return value
        if target is i1:
            return value != 0
        if source.is_float and target.is_float and source.width == target.width:
            return self.cast(self.cast(value, f32), type)
        unsigned = unsigned or source is i1
        if source.is_float and target.is_float:
            name = "extf" if target.width > source.width else "truncf"
        elif source.is_float:
            name = "fptoui" if unsigned else "fptosi"
        elif target.is_float:
            name = "uitofp" if unsigned else "sitofp"
        else:
            name = "trunci" if target.width < source.width else "extui" if unsigned else "extsi"
        return self.emit("arith.%s %s : %s to %s" % (name, value.text, value.type, type), type)

    def bitcast(self, value: Any, type: Any) -> Value:
        """The value's bits as another type of as many."""
        value = self.value(value)
        return self.emit("arith.bitcast %s : %s to %s" % (value.text, value.type, type), element_type(type))

    def select(self, condition: Any, a: Any, b: Any) -> Value:
        """a where the condition holds, else b."""
        typed = next((v for v in (a, b) if isinstance(v, Value)), None)
        a = self.value(a, typed.type if typed is not None else None)
        b = self.value(b, a.type)
        vector = isinstance(condition, Value) and isinstance(condition.type, VectorType)
        condition = self.value(condition, None if vector else i1)
        return self.emit("arith.select %s, %s, %s : %s%s" % (
            condition.text, a.text, b.text, "%s, " % condition.type if vector else "", a.type), a.type)

    def vector(self, *elements: Any) -> Value:
        """A vector of values."""
        typed = next((v for v in elements if isinstance(v, Value)), None)
        values = [self.value(v, typed.type if typed is not None else None) for v in elements]
        if len(values) not in (2, 3, 4, 8, 16) or any(v.type != values[0].type for v in values):
            raise ArgumentError("a vector is of 2, 3, 4, 8 or 16 values of one type")
        type = VectorType(values[0].type, len(values))
        return self.emit("vector.from_elements %s : %s" % (", ".join(v.text for v in values), type), type)

    def subscripts(self, rows: Sequence[Any], wide: bool = False) -> str:
        wide = wide or any(isinstance(v, Value) and v.type is i64 for v in rows)
        text = self.list_indices(rows, wide)
        return "[%s%s]" % (text, " : i64" if wide and "%" in text else "")

    def list_indices(self, rows: Sequence[Any], wide: bool) -> str:
        texts = []
        for row in rows:
            if isinstance(row, Value):
                if row.type is i32 and wide:
                    row = self.cast(row, i64)
                if row.type not in (i32, i64) or isinstance(row, Array):
                    raise ArgumentError("a subscript is an i32 or i64, found %s of %s" % (row.text, row.type))
                texts.append(self.value(row).text)
            else:
                texts.append(str(literal(row, "a subscript")))
        return ", ".join(texts)

    def _inside(self, function: Callable[[], Any], lines: Lines) -> Any:
        """What a function gives that adds its ops to these lines."""
        with _Block(self, lines, None):
            return function()

    def _results(self, given: Any, types: Sequence[Any], what: str) -> List[Value]:
        rows = tuple(given) if isinstance(given, (tuple, list)) else () if given is None else (given,)
        if len(rows) != len(types):
            raise ArgumentError("%s gives %d values, expected %d" % (what, len(rows), len(types)))
        return [self.value(v, type) for v, type in zip(rows, types)]

    # ---- control flow ---------------------------------------------------------------------------------------------

    def if_(self, condition: Any, then: Optional[Callable[[], Any]] = None,
            otherwise: Optional[Callable[[], Any]] = None) -> Any:
        """`with k.if_(c):` adds what follows under a condition, and `with k.otherwise():` behind it what is done else.
        With functions for both sides, gives the values that they give, as many on each side: a value or a tuple. With
        one function, what it gives stays inside."""
        condition = self.value(condition, i1)
        if then is None:
            lines = Lines()
            self._lines.append(Region(["scf.if %s {" % condition.text, lines, "}" + self._location]))
            return _Block(self, lines, None)
        lines, others = Lines(), Lines()
        given = self._inside(then, lines)
        given_else = self._inside(otherwise or (lambda: None), others)
        single = not isinstance(given, (tuple, list))
        rows = () if given is None else (given,) if single else tuple(given)
        rows_else = () if given_else is None else given_else if isinstance(given_else, (tuple, list)) else (given_else,)
        if otherwise is not None and len(rows) != len(rows_else):
            raise ArgumentError("the sides of the condition give %d and %d values, expected as many on each" % (
                len(rows), len(rows_else)))
        typed = [a if isinstance(a, Value) else b for a, b in zip(rows, rows_else)]
        values = self._inside(lambda: [self.value(a, t.type if isinstance(t, Value) else None)
                                       for a, t in zip(rows, typed)], lines)
        values_else = self._inside(lambda: self._results(given_else, [v.type for v in values],
                                                         "the other side of the condition"), others)
        results = self.add_if(condition, lines, values, others, values_else)
        return None if not values else results[0] if single else results

    def add_if(self, condition: Value, lines: List[Any], values: Sequence[Value], others: List[Any],
               values_else: Sequence[Value]) -> Tuple[Value, ...]:
        """Adds scf.if around lines that were recorded, with the values that both sides give."""
        end = "}" + self._location
        if not values:
            parts = ["} else {", others] if others else []
            self._lines.append(Region(["scf.if %s {" % condition.text, lines] + parts + [end]))
            return ()
        types = ", ".join(str(v.type) for v in values)
        results = self._values(tuple(v.type for v in values), "v")
        for side, given in ((lines, values), (others, values_else)):
            side.append("scf.yield %s : %s" % (", ".join(v.text for v in given), types))
        self._lines.append(Region(["%s = scf.if %s -> (%s) {"
                                   % (", ".join(v.text for v in results), condition.text, types),
                                    lines, "} else {", others, end]))
        return results

    def otherwise(self) -> Any:
        """The other side of the `if_` right before it."""
        region = self._lines[-1] if self._lines else None
        if not isinstance(region, Region) or not region.parts[0].startswith("scf.if ") or len(region.parts) != 3:
            raise ArgumentError("otherwise() stands right behind `with k.if_(...)`")
        lines = Lines()
        region.parts[2:] = ["} else {", lines, region.parts[2]]
        return _Block(self, lines, None)

    def for_(self, low: Any, high: Any, step: Any = 1, body: Optional[Callable[..., Any]] = None,
             init: Sequence[Any] = (), *, unroll: Any = None, hint: str = "i") -> Any:
        """`with k.for_(0, n) as i:` repeats what follows for i from low to below high. With a function `body(i,
        *values)` that gives the next values, and `init` for the first, gives the last ones, as a tuple. `unroll` is a
        number of rounds, or "full"."""
        if hasattr(step, "__index__") and step.__index__() < 1:
            raise ArgumentError("a loop's step is at least 1, got %d" % step.__index__())
        typed = next((v for v in (low, high, step) if isinstance(v, Value)), None)
        low, high, step = (self.value(v, typed.type if typed is not None else None) for v in (low, high, step))
        lines = Lines()
        i = Value(self, self.fresh(hint), low.type, lines)
        attributes = ""
        if unroll is not None:
            count = '"full"' if unroll == "full" else "%d : i32" % literal(unroll, "unroll")
            attributes = " {qd.unroll = %s}" % count
        head = "scf.for %s = %s to %s step %s" % (i.text, low.text, high.text, step.text)
        end = "}" + attributes + self._location
        if body is None:
            self._lines.append(Region(["%s : %s {" % (head, low.type), lines, end]))
            return _Block(self, lines, i)
        first = [self.value(v) for v in init]
        types = tuple(v.type for v in first)
        carried = self._values(types, "v", lines)
        given = self._inside(lambda: self._results(body(i, *carried), types, "the body of the loop"), lines)
        if not types:
            self._lines.append(Region(["%s : %s {" % (head, low.type), lines, end]))
            return ()
        lines.append("scf.yield %s : %s" % (", ".join(v.text for v in given), ", ".join(map(str, types))))
        results = self._values(types, "v")
        pairs = ", ".join("%s = %s" % (a.text, b.text) for a, b in zip(carried, first))
        self._lines.append(Region(["%s = %s iter_args(%s) -> (%s) : %s {" % (
            ", ".join(v.text for v in results), head, pairs, ", ".join(map(str, types)), low.type), lines, end]))
        return results

    def while_(self, condition: Callable[..., Any], body: Callable[..., Any], init: Sequence[Any]) -> Any:
        """Repeats `body(*values)`, which gives the next values, as long as `condition(*values)`; gives the last
        ones."""
        first = [self.value(v) for v in init]
        types = tuple(v.type for v in first)
        listed = ", ".join(map(str, types))
        lines, body_lines = Lines(), Lines()
        before, inside = self._values(types, "v", lines), self._values(types, "v", body_lines)
        given = self._inside(lambda: self.value(condition(*before), i1), lines)
        lines.append("scf.condition(%s)%s"
                     % (given.text, " %s : %s" % (", ".join(v.text for v in before), listed) if types else ""))
        given = self._inside(lambda: self._results(body(*inside), types, "the body of the loop"), body_lines)
        body_lines.append("scf.yield" + (" %s : %s" % (", ".join(v.text for v in given), listed) if types else ""))
        if types:
            results = self._values(types, "v")
            pairs = ", ".join("%s = %s" % (a.text, b.text) for a, b in zip(before, first))
            head = "%s = scf.while (%s) : (%s) -> (%s) {" % (", ".join(v.text for v in results), pairs, listed, listed)
            block = "^bb0(%s):" % ", ".join("%s: %s" % (v.text, v.type) for v in inside)
            self._lines.append(Region([head, lines, "} do {", block, body_lines, "}" + self._location]))
            return results
        self._lines.append(Region(["scf.while : () -> () {", lines, "} do {", body_lines, "}" + self._location]))
        return ()

    # ---- memory ---------------------------------------------------------------------------------------------------

    def shared(self, element: Any, shape: Any) -> Array:
        """An array in the block's shared memory; stands at the top of the kernel wherever it is asked for."""
        type = shared(element, shape)
        array = Array(self, self.fresh("shared"), type, self._top)
        self._constant_lines.append("%s = qd.shared.alloc : %s" % (array.text, type))
        return array

    def private(self, element: Any, shape: Any) -> Array:
        """An array of the thread's own."""
        type = private(element, shape)
        return self.emit("qd.private.alloc : %s" % type, type, "private")

    def table(self, values: Any, element: Any, name: Optional[str] = None) -> Array:
        """A table of constants: a list of numbers, or of rows of them."""
        type, symbol = self._module._table(values, scalar_type(element), name)
        return self.emit("qd.constant.get @%s : %s" % (symbol, type), type, "table")

    def async_copy(self, source: Array, source_index: Any, target: Array, target_index: Any, *, elements: int = 1,
                   where: Any = None) -> None:
        """Starts a copy from a buffer to a shared array."""
        for array, what in ((source, "the source"), (target, "the target")):
            if not isinstance(array, Array):
                raise ArgumentError("%s of async_copy is an array, got %s" % (what, array.__class__.__name__))
            self.own(array)
        self.emit("qd.async_copy %s%s, %s%s elements(%d)%s : %s to %s" % (
            source.text, source._subscripts(source_index), target.text, target._subscripts(target_index),
            literal(elements, "elements"), "" if where is None else " if %s" % self.value(where, i1).text, source.type,
            target.type))

    def _text(self) -> List[str]:
        out: List[str] = []
        write(self._constant_lines, out, "  ")
        write(self._top, out, "  ")
        return out
