"""Building kernels without writing text by hand: values with operators, ops by name, regions as functions or blocks.

    m = qdc.Builder()
    k = m.kernel("scale", {"n": qdc.i32, "a": qdc.f32, "x": qdc.buffer(qdc.f32)}, block=128)
    i = k.global_thread_id("x")
    with k.if_(i < k.n):
        k.x[i] = k.x[i] * k.a
    qdc.Device("cpu").load(m)["scale"](4, 2.5, x, grid=1)

What is built is text, and the compiler checks it as any other: `m.to_qir()`.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from .body import Body
from .errors import ArgumentError
from .text import literal, symbol
from .types import ArrayType, ScalarType, element_type, i1, scalar_bits
from .values import Array, Value


class _Named(Body):
    """A body with arguments, which are items by their names, and attributes if so asked."""

    def __init__(self, module: Builder, name: str, arguments: Mapping[str, Any], attributes: bool):
        super().__init__(module)
        self.name = symbol(name)
        self.arguments: List[Value] = []
        self._by_name: Dict[str, Value] = {}
        self._attributes = self._by_name if attributes else {}
        if not isinstance(arguments, Mapping):
            raise ArgumentError("arguments map names to types, got %s" % arguments.__class__.__name__)
        for key, type in arguments.items():
            if not isinstance(type, ArrayType):
                type = element_type(type)
            kind = Array if isinstance(type, ArrayType) else Value
            argument = kind(self, "%" + symbol(key), type)
            if attributes and self._has(key):
                raise ArgumentError("argument '%s' of '%s' has the name of an attribute that '%s' has anyway; name it "
                                    "otherwise, or take arguments as items alone, with attributes=False"
                                    % (key, name, name))
            self._taken[key] = 1
            self.arguments.append(argument)
            self._by_name[key] = argument

    def _has(self, name: str) -> bool:
        """Whether an attribute is neither an argument nor an op."""
        try:
            object.__getattribute__(self, name)
        except AttributeError:
            return False
        return True

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_attributes", {}).get(name)
        return super().__getattr__(name) if found is None else found

    def __getitem__(self, name: str) -> Value:
        """An argument, also where an op has the same name."""
        try:
            return self._by_name[name]
        except KeyError:
            raise ArgumentError("'%s' has no argument %r" % (self.name, name)) from None


class KernelBuilder(_Named):
    """A kernel under construction. Arguments are attributes, and items: `k.n`, `k["n"]`."""

    def __init__(self, module: Builder, name: str, arguments: Mapping[str, Any], attributes: bool, clauses: str):
        self._clauses = clauses
        super().__init__(module, name, arguments, attributes)

    def _write(self) -> str:
        rows = ", ".join("%s: %s%s" % (a.text, a.type, getattr(a.type, "attributes", "")) for a in self.arguments)
        return "\n".join(["qd.kernel @%s(%s) %s {" % (self.name, rows, self._clauses)] + self._text() +
                         ["  qd.return", "}", ""])


class Function(_Named):
    """A function that kernels call, under construction; `returns` ends it."""

    def __init__(self, module: Builder, name: str, arguments: Mapping[str, Any], attributes: bool):
        self._returned: Tuple[Value, ...] = ()
        super().__init__(module, name, arguments, attributes)

    def returns(self, *values: Any) -> None:
        """What the function gives."""
        self._returned = tuple(self.value(v) for v in values)

    @property
    def results(self) -> Tuple[Any, ...]:
        return tuple(v.type for v in self._returned)

    def _write(self) -> str:
        rows = ", ".join("%s: %s" % (a.text, a.type) for a in self.arguments)
        types = ", ".join(map(str, self.results))
        head = "func.func private @%s(%s)%s {" % (self.name, rows, " -> (%s)" % types if types else "")
        values = " %s : %s" % (", ".join(v.text for v in self._returned), types) if types else ""
        return "\n".join([head] + self._text() + ["  return" + values, "}", ""])


class Builder:
    """A module under construction: kernels, functions and tables. `qdc.compile` and `Device.load` take it."""

    def __init__(self, name: str = "<builder>"):
        self.name = name
        self._parts: List[Any] = []
        self._tables: Dict[str, Tuple[ArrayType, str]] = {}
        self._symbols: Dict[str, bool] = {}

    def _claim(self, name: str) -> str:
        if symbol(name) in self._symbols:
            raise ArgumentError("the module has a '%s' already" % name)
        self._symbols[name] = True
        return name

    def kernel(self, name: str, arguments: Mapping[str, Any], block: Any, *, resizable: bool = False,
               min_blocks: int = 0, max_registers: int = 0, attributes: bool = True) -> KernelBuilder:
        """Begins a kernel: its arguments' types by name, and its block's size in threads. With `attributes` False
        arguments are items alone, and may have any name: for frontends, whose users choose them."""
        extents = block if isinstance(block, (tuple, list)) else (block,)
        if not 1 <= len(extents) <= 3:
            raise ArgumentError("a block has 1 to 3 dimensions, got %d" % len(extents))
        clauses = "block(%s)" % ", ".join(str(literal(e, "a block's extent")) for e in extents)
        clauses += " resizable" if resizable else ""
        clauses += " min_blocks(%d)" % literal(min_blocks, "min_blocks") if min_blocks else ""
        clauses += " max_registers(%d)" % literal(max_registers, "max_registers") if max_registers else ""
        built = KernelBuilder(self, name, arguments, attributes, clauses)
        self._claim(name)
        self._parts.append(built)
        return built

    def function(self, name: str, arguments: Mapping[str, Any], *, attributes: bool = True) -> Function:
        """Begins a function that kernels can call; `attributes` as for kernels."""
        built = Function(self, name, arguments, attributes)
        self._claim(name)
        self._parts.append(built)
        return built

    def _table(self, values: Any, element: ScalarType, name: Optional[str]) -> Tuple[ArrayType, str]:
        shape: List[int] = []
        rows = values.tolist() if hasattr(values, "tolist") else values
        first = rows
        while isinstance(first, (list, tuple)):
            shape.append(len(first))
            first = first[0] if first else None
        if not shape or 0 in shape:
            raise ArgumentError("a table is a list of numbers, or of rows of them, and not empty")

        def listed(row: Any, extents: List[int]) -> str:
            if not extents:
                bits = scalar_bits(element, row)
                if element is i1:
                    return "true" if bits else "false"
                return "0x%0*X" % (element.width // 4, bits) if element.is_float else \
                    str(bits - (1 << element.width) if bits >> (element.width - 1) else bits)
            if not isinstance(row, (list, tuple)) or len(row) != extents[0]:
                raise ArgumentError("a table's rows are of one length")
            return "[%s]" % ", ".join(listed(part, extents[1:]) for part in row)

        type = ArrayType("constant", element, len(shape), tuple(shape))
        text = "dense<%s> : tensor<%s%s>" % (listed(rows, shape), "".join("%dx" % e for e in shape), element)
        if text not in self._tables:
            if name is None:
                number = len(self._tables)
                while "table%d" % number in self._symbols:
                    number += 1
                name = "table%d" % number
            self._tables[text] = (type, self._claim(name))
        return self._tables[text]

    def to_qir(self) -> str:
        """The module as text."""
        tables = ["qd.constant @%s %s\n" % (name, text) for text, (_, name) in self._tables.items()]
        try:
            return "\n".join(tables + [part._write() for part in self._parts])
        except RecursionError:
            raise ArgumentError("regions are nested too deep") from None
