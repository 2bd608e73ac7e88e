"""Ops by their names: those of the table, and those with forms of their own."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence

from . import ops
from .errors import ArgumentError
from .text import Lines, Region, literal, quote, word
from .types import ArrayType, i1, i32, scalar_type
from .values import Array, Value, scalar_of

if TYPE_CHECKING:
    from .builder import Function


class Ops:
    """The ops below a prefix: `k.subgroup.shuffle`, `k.math.exp`."""

    def __init__(self, body: OpCalls, prefix: str):
        self._body, self._prefix = body, prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of an object that is being copied, too, which has no body yet
            raise AttributeError(name)
        return self._body._find(self._prefix + name)

    def __dir__(self) -> List[str]:
        return ops.names(self._prefix)


# Ops with forms of their own, and the methods that write them.
OWN_FORMS = {"qd.block.radix_rank": "radix_rank", "qd.block.radix_sort": "radix_sort", "qd.pack_bits": "pack_bits",
             "qd.unpack_bits": "unpack_bits", "qd.print": "print_", "qd.assert": "assert_",
             "qd.async_copy": "async_copy",
             "qd.shared.alloc": "shared", "qd.private.alloc": "private", "qd.constant": "table",
             "qd.constant.get": "table",
             "qd.size": "size", "qd.load": "load", "qd.store": "store", "qd.atomic_rmw": "atomic",
             "qd.atomic_cas": "atomic_cas", "qd.atomic_load": "atomic_load", "qd.atomic_store": "atomic_store",
             "qd.view": "view", "qd.reinterpret": "reinterpret", "math.sincos": "sincos", "math.clampf": "clampf"}
OF_ARRAYS = {"size": 0, "load": 0, "store": 1, "atomic": 2, "atomic_cas": 2, "atomic_load": 0, "atomic_store": 1,
             "view": 0, "reinterpret": 0}


class OpCalls:
    """The part of a body that adds ops by their names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._find("qd." + name)

    def _find(self, name: str) -> Callable[..., Any]:
        """An op as a function."""
        row = ops.find(name)
        if row is None:
            raise AttributeError("there is no op '%s'" % name)

        def call(*operands: Any, **options: Any) -> Any:
            return self.call_op(name, *operands, **options)
        call.__name__, call.__doc__ = name, row.describe()
        return call

    def call_op(self, name: str, *operands: Any, **options: Any) -> Any:
        """Adds an op by its name, whatever its form: "qd.subgroup.reduce", "qd.load", "math.exp"."""
        row = ops.find(name)
        if row is None:
            raise ArgumentError("there is no op '%s'" % name)
        if row.form == "combine":
            return self.combine(name, *operands, **options)
        if row.form != "custom":
            return self.op(name, *operands, **options)
        method = OWN_FORMS.get(name)
        if method is None:
            raise ArgumentError("'%s' is part of a kernel's form, and no op to add" % name)
        if method in OF_ARRAYS:
            # The array comes first, or behind what is written to it.
            place = OF_ARRAYS[method]
            if len(operands) <= place or not isinstance(operands[place], Array):
                raise ArgumentError("operand %d of '%s' is an array" % (place + 1, name))
            operands, array = operands[:place] + operands[place + 1:], operands[place]
            return getattr(self.own(array), method)(*operands, **options)
        return getattr(self, method)(*operands, **options)

    # ---- ops ------------------------------------------------------------------------------------------------------

    def op(self, name: str, *values: Any, **options: Any) -> Any:
        """Adds an op of the table by its name."""
        row = ops.find(name)
        if row is None or row.form in ("combine", "custom"):
            raise ArgumentError("there is no op '%s' in the table" % name)
        given = self._bind(row, values, options)
        types: Dict[str, Any] = {}
        for parameter in row.parameters:
            value = given.get(parameter.name)
            if isinstance(value, Value) and parameter.kind in "TUFI":
                types.setdefault(parameter.kind, value.type)
        texts = {p.name: self._operand(row, p, given[p.name], types) for p in row.parameters
                 if given.get(p.name) is not None}
        texts = {name: text for name, text in texts.items() if text is not None}  # flags that are not set
        result = tuple(texts.get("type", "i32") if r == "type" else str(types.get(r, r)) for r in row.results)
        types.setdefault("type", texts.get("type", "i32"))

        def clause(match: Any) -> str:
            inner = match.group(1)
            return inner if any(w in texts for w in re.findall(r"\w+", inner)) else ""

        def put(match: Any) -> str:
            w = match.group(0)
            return str(texts[w] if w in texts else types.get(w, w))

        form, colon, tail = row.form.partition(":")
        form = re.sub(r"\[([^\]]*)\]", clause, form)
        form = re.sub(r"\w+(?![(<\w])", put, form)
        tail = re.sub(r"\w+", put, tail)
        text = " ".join(("%s %s%s%s" % (name, form, colon, tail)).split())
        if not result:
            return self.emit(text)
        of = tuple(self._type(r, types) for r in result)
        return self.emit(text, of[0] if len(of) == 1 else of)

    @staticmethod
    def _type(text: str, types: Mapping[str, Any]) -> Any:
        for type in types.values():
            if str(type) == text and not isinstance(type, str):
                return type
        return scalar_type(text)

    @staticmethod
    def _bind(row: ops.Op, values: Sequence[Any], options: Mapping[str, Any]) -> Dict[str, Any]:
        names = [p.name for p in row.parameters]
        if len(values) > len(names):
            raise ArgumentError("'%s' takes %d operands (%s), got %d"
                                % (row.name, len(names), ", ".join(names), len(values)))
        given = dict(zip(names, values))
        for name, value in options.items():
            if name not in names:
                raise ArgumentError("'%s' has no operand '%s'; it has %s"
                                    % (row.name, name, ", ".join(names) or "none"))
            if name in given:
                raise ArgumentError("operand '%s' of '%s' is given twice" % (name, row.name))
            given[name] = value
        given.update((p.name, "x") for p in row.parameters if p.kind == "dim" and given.get(p.name) is None)
        missing = [p.name for p in row.parameters if not p.optional and given.get(p.name) is None]
        if missing:
            raise ArgumentError("'%s' lacks its operand '%s'" % (row.name, missing[0]))
        return given

    def _operand(self, row: ops.Op, parameter: ops.Parameter, value: Any, types: Dict[str, Any]) -> Any:
        kind, what = parameter.kind, "operand '%s' of '%s'" % (parameter.name, row.name)
        try:
            if kind in "TUFI":
                value = self.value(value, types.get(kind))
                types.setdefault(kind, value.type)
                scalar = scalar_of(value.type)
                if kind in "FI" and scalar.is_float != (kind == "F"):
                    raise ArgumentError("found %s, expected %s"
                                        % (value.type, "a float" if kind == "F" else "an integer"))
                return value.text
            if kind == "i32|n" and not isinstance(value, Value):
                return str(literal(value, what))
            if kind in ("i1", "i32", "i64", "i32|n"):
                return self.value(value, scalar_type(kind.split("|")[0])).text
            if kind == "n":
                return str(literal(value, what))
            if kind == "flag":
                # The unsigned of a pair's values is the same word as that of its keys.
                return ("unsigned" if parameter.name == "unsigned_values" else parameter.name) if value else None
            if kind == "type":
                return str(scalar_type(value))
        except ArgumentError as error:
            raise ArgumentError("%s: %s" % (what, error) if what not in str(error) else str(error)) from None
        return word(value, what)

    def combine(self, name: str, kind: Any, *values: Any, tile: Optional[int] = None, identity: Any = None,
                head: Any = None, exclusive: bool = False) -> Any:
        """Adds a reduction or scan: by a kind ("add", "maxsi", ...) over one value, or by a function of two values,
        first the lower lane's. Of several values the function takes two tuples and gives one."""
        if not values:
            raise ArgumentError("'%s' combines at least one value" % name)
        operands = [self.value(v) for v in values]
        by_kind = isinstance(kind, str)
        if by_kind and len(operands) != 1:
            raise ArgumentError("'%s' by a kind combines one value, got %d" % (name, len(operands)))
        if not by_kind and not callable(kind):
            raise ArgumentError("'%s' combines by a kind or a function, got %s" % (name, kind.__class__.__name__))
        text = name + (" exclusive" if exclusive else "")
        text += " %s %s" % (word(kind, "kind"), operands[0].text) if by_kind else \
            " (%s)" % ", ".join(v.text for v in operands)
        types = [str(v.type) for v in operands]
        if head is not None:
            head = self.value(head)
            text += " head %s" % head.text
            types.append(str(head.type))
        if tile is not None:
            text += " tile(%d)" % literal(tile, "tile")
        if identity is not None:
            rows = identity if isinstance(identity, (tuple, list)) else (identity,)
            if len(rows) != len(operands):
                raise ArgumentError("'%s' has %d values, and %d identities" % (name, len(operands), len(rows)))
            text += " identity(%s)" % ", ".join(self.value(v, o.type).text for v, o in zip(rows, operands))
        text += " : " + ", ".join(types)
        results = tuple(v.type for v in operands)
        if by_kind:
            return self.emit(text, results[0])
        lines = Lines()
        lower, higher = (tuple(self._values(results, hint, lines)) for hint in ("a", "b"))
        single = len(operands) == 1
        given = self._inside(lambda: self._results(kind(lower[0], higher[0]) if single else kind(lower, higher),
                                                   results, "the function of '%s'" % name), lines)
        lines.append("qd.yield %s : %s" % (", ".join(v.text for v in given), ", ".join(map(str, results))))
        out = self._values(results, "v")
        listed = [", ".join(v.text for v in side) for side in (lower, higher)]
        self._lines.append(Region(["%s = %s combine (%s), (%s) {" % (", ".join(v.text for v in out), text, *listed),
                                   lines,
                                    "}" + self._location]))
        return out[0] if single else out

    # ---- ops with forms of their own ------------------------------------------------------------------------------

    def radix_rank(self, *keys: Any, radix_bits: int, num_bits: Optional[int] = None, begin: Any = None,
                   bins: Optional[Array] = None, prefix: Optional[Array] = None) -> Any:
        """`qd.block.radix_rank`: the places of the block's keys by one digit; one result a key."""
        values = self._alike(keys, "radix_rank")
        text = "qd.block.radix_rank (%s) radix_bits(%d)" % (", ".join(v.text for v in values),
                                                            literal(radix_bits, "radix_bits"))
        if num_bits is not None:
            text += " num_bits(%d)" % literal(num_bits, "num_bits")
        if begin is not None:
            text += " begin(%s)" % (self.value(begin, i32).text if isinstance(begin, Value)
                                    else literal(begin, "begin"))
        for array, name in ((bins, "bins"), (prefix, "prefix")):
            if array is not None:
                if not isinstance(array, Array):
                    raise ArgumentError("%s is a shared array, got %s" % (name, array.__class__.__name__))
                text += " %s(%s)" % (name, self.own(array).text)
        results = self.emit("%s : %s" % (text, values[0].type), (i32,) * len(values))
        return results if len(values) > 1 else results[0]

    def radix_sort(self, *keys: Any, values: Sequence[Any] = (), descending: bool = False, unsigned: bool = False,
                   begin: Optional[int] = None, end: Optional[int] = None) -> Any:
        """`qd.block.radix_sort`: sorts the block's keys, and values with them, stably; keys, then values."""
        sorted_keys = self._alike(keys, "radix_sort")
        with_them = self._alike(values, "radix_sort") if values else []
        text = "qd.block.radix_sort%s%s (%s)" % (" descending" * bool(descending), " unsigned" * bool(unsigned),
                                                ", ".join(v.text for v in sorted_keys))
        if with_them:
            text += " values(%s)" % ", ".join(v.text for v in with_them)
        for name, place in (("begin", begin), ("end", end)):
            if place is not None:
                text += " %s(%d)" % (name, literal(place, name))
        text += " : %s" % sorted_keys[0].type + (", %s" % with_them[0].type if with_them else "")
        results = self.emit(text, tuple(v.type for v in sorted_keys + with_them))
        return results if len(results) > 1 else results[0]

    def _alike(self, values: Sequence[Any], name: str) -> List[Value]:
        if not values:
            raise ArgumentError("%s takes at least one value" % name)
        first = self.value(values[0])
        return [first] + [self.value(v, first.type) for v in values[1:]]

    def pack_bits(self, *bits: Any, type: Any = i32) -> Value:
        """A word whose bits are predicates, from the lowest."""
        return self.emit("qd.pack_bits %s : %s" % (", ".join(self.value(b, i1).text for b in bits), type),
                         scalar_type(type))

    def unpack_bits(self, value: Any, count: int) -> Any:
        """The lowest bits of a word as predicates."""
        value = self.value(value)
        if literal(count, "count") < 1:
            raise ArgumentError("count is from 1, got %d" % count)
        return self.emit("qd.unpack_bits %s : %s" % (value.text, value.type), (i1,) * literal(count, "count"))

    def sincos(self, a: Any) -> Any:
        """Sine and cosine."""
        a = self.value(a)
        return self.emit("math.sincos %s : %s" % (a.text, a.type), (a.type, a.type))

    def clampf(self, a: Any, low: Any, high: Any) -> Value:
        """The float kept between two bounds."""
        a = self.value(a)
        low, high = self.value(low, a.type), self.value(high, a.type)
        return self.emit("math.clampf %s to [%s, %s] : %s" % (a.text, low.text, high.text, a.type), a.type)

    def print_(self, format: str, *values: Any, where: Any = None) -> None:
        """Each thread prints a line; each {} stands for a value, vectors as [1, 2]."""
        operands = [self.value(v) for v in values]
        self.emit("qd.print %s%s%s%s" % (
            quote(format), "".join(", " + v.text for v in operands),
            "" if where is None else " if %s" % self.value(where, i1).text,
            " : " + ", ".join(str(v.type) for v in operands) if operands else ""))

    def assert_(self, condition: Any, message: str) -> None:
        """Ends the launch with an error where the condition is false."""
        self.emit("qd.assert %s, %s" % (self.value(condition, i1).text, quote(message)))

    def call(self, function: Function, *values: Any) -> Any:
        """Calls a function of the module."""
        from .builder import Function
        if not isinstance(function, Function):
            raise ArgumentError("call takes a function of the module, got %s" % function.__class__.__name__)
        if len(values) != len(function.arguments):
            raise ArgumentError("function '%s' takes %d arguments, got %d" % (
                function.name, len(function.arguments), len(values)))
        operands = [self._argument(v, a) for v, a in zip(values, function.arguments)]
        results = function.results
        listed = ", ".join(map(str, results))
        given = self.emit("func.call @%s(%s) : (%s) -> %s" % (
            function.name, ", ".join(v.text for v in operands), ", ".join(str(a.type) for a in function.arguments),
            listed if len(results) == 1 else "(%s)" % listed), results)
        return given[0] if len(results) == 1 else given

    def _argument(self, value: Any, parameter: Value) -> Value:
        if not isinstance(parameter.type, ArrayType):
            return self.value(value, parameter.type)
        if not isinstance(value, Array) or value.type != parameter.type:
            raise ArgumentError("found %r, expected an array of %s" % (value, parameter.type))
        return self.own(value)
