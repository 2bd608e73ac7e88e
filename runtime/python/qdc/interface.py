"""What a module offers: its kernels, their parameters, and whether arguments fit them."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from .arrays import Memory, memory_of
from .errors import ArgumentError, Error
from .types import ScalarType, parse_element, scalar_bits

Grid = Union[int, Sequence[int]]


class Parameter:
    """A parameter of a kernel: a scalar, or a buffer with its element, dimensions and access ("readonly", "writeonly"
    or "readwrite")."""

    __slots__ = ("name", "is_buffer", "type", "lanes", "access", "rank", "align", "noalias")

    def __init__(self, row: Mapping[str, Any]):
        self.name: str = row["name"]
        self.is_buffer: bool = row["kind"] == "buffer"
        self.type: ScalarType
        self.type, self.lanes = parse_element(row["type"])
        self.access: str = row.get("access", "readwrite")
        self.rank: int = row.get("rank", 1)
        self.align: int = row.get("align", 1)
        self.noalias: bool = bool(row.get("noalias", False))

    @property
    def element(self) -> str:
        """The element as QIR writes it."""
        return str(self.type) if self.lanes == 1 else "vector<%dx%s>" % (self.lanes, self.type)

    def __repr__(self) -> str:
        if not self.is_buffer:
            return "<%s: %s>" % (self.name, self.element)
        return "<%s: %s buffer of %s%s>" % (self.name, self.access, "?x" * (self.rank - 1) + self.element,
                                            ", noalias" if self.noalias else "")


class KernelInterface:
    """A kernel's name, block size, shared memory and parameters."""

    __slots__ = ("name", "block", "subgroup_size", "shared_bytes", "parameters", "_names")

    def __init__(self, row: Mapping[str, Any]):
        self.name: str = row["name"]
        self.block: Tuple[int, int, int] = tuple(row["block"])  # type: ignore[assignment]
        self.subgroup_size: int = row.get("subgroup_size", 0)
        self.shared_bytes: int = row.get("shared_bytes", 0)
        self.parameters: List[Parameter] = [Parameter(entry) for entry in row["args"]]
        self._names = {parameter.name: i for i, parameter in enumerate(self.parameters)}

    def order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters, by position and by name."""
        if not named and len(args) == len(self.parameters):
            return args
        missing = object()
        values: List[Any] = list(args) + [missing] * (len(self.parameters) - len(args))
        if len(args) > len(self.parameters):
            raise ArgumentError("kernel '%s' takes %d arguments (%s), got %d" % (
                self.name, len(self.parameters), ", ".join(self._names), len(args)))
        for name, value in named.items():
            number = self.number(name)
            if values[number] is not missing:
                raise ArgumentError("argument '%s' of kernel '%s' is given twice" % (name, self.name))
            values[number] = value
        absent = [p.name for p, value in zip(self.parameters, values) if value is missing]
        if absent:
            raise ArgumentError("kernel '%s' takes %d arguments, missing: %s" % (
                self.name, len(self.parameters), ", ".join(absent)))
        return values

    def number(self, name: str) -> int:
        """The place of a parameter."""
        if name not in self._names:
            raise ArgumentError("kernel '%s' has no parameter '%s'%s" % (self.name, name, closest(name, self._names)))
        return self._names[name]

    def fit(self, number: int, value: Any) -> Any:
        """The bits of a scalar argument, or the memory of an array with its extents in elements."""
        parameter = self.parameters[number]
        try:
            if not parameter.is_buffer:
                return scalar_bits(parameter.type, value)
            return fit_buffer(parameter, memory_of(value))
        except Error as error:
            raise ArgumentError("argument '%s' of kernel '%s': %s" % (parameter.name, self.name, error)) from error

    def check_overlaps(self, memories: Sequence[Any]) -> None:
        """Refuses what `noalias` promises not to happen."""
        for i, parameter in enumerate(self.parameters):
            if not parameter.noalias:
                continue
            memory = memories[i][0]
            low, high = memory.address, memory.address + memory.bytes
            for j, other in enumerate(self.parameters):
                if i == j or not other.is_buffer or parameter.access == other.access == "readonly":
                    continue
                that = memories[j][0]
                if memory.buffer is not None or that.buffer is not None:
                    overlap = memory.buffer is that.buffer
                else:
                    overlap = that.address < high and low < that.address + that.bytes
                if overlap:
                    raise ArgumentError("argument '%s' of kernel '%s' is noalias, but shares memory with '%s'" % (
                        parameter.name, self.name, other.name))


def fit_buffer(parameter: Parameter, memory: Memory) -> Tuple[Memory, Tuple[int, ...]]:
    """The memory and its extents in the parameter's elements."""
    if memory.type is not parameter.type:
        hint = ""
        if memory.type.bytes == parameter.type.bytes:
            hint = "; qdc.view(array, '%s') reads it as such" % parameter.type
        raise ArgumentError("elements are %s, expected %s%s" % (memory.type, parameter.element, hint))
    if memory.readonly and parameter.access != "readonly":
        raise ArgumentError("the array is read-only, and the kernel may write it")
    shape = memory.shape
    if parameter.lanes > 1:
        # The last dimension is the vector's, or a part of a flat row of scalars.
        if len(shape) == parameter.rank + 1 and shape[-1] == parameter.lanes:
            shape = shape[:-1]
        elif parameter.rank == 1 and memory.count % parameter.lanes == 0:
            shape = (memory.count // parameter.lanes,)
        else:
            raise ArgumentError("shape %s holds no elements of %s" % (shape, parameter.element))
    elif parameter.rank == 1:
        shape = (memory.count,)
    if len(shape) != parameter.rank:
        raise ArgumentError("shape %s, expected %d dimensions" % (memory.shape, parameter.rank))
    align = max(parameter.align, parameter.type.bytes)
    if memory.address % align and memory.count:
        raise ArgumentError("the array begins at %#x, expected a multiple of %d bytes" % (memory.address, align))
    return memory, shape


def parse_interface(text: str) -> Dict[str, KernelInterface]:
    """The kernels of a module's interface, by name."""
    kernels = [KernelInterface(row) for row in json.loads(text)["kernels"]]
    return {kernel.name: kernel for kernel in kernels}


def grid_extents(grid: Grid) -> Tuple[int, int, int]:
    """Blocks in x, y and z."""
    extents = grid if isinstance(grid, (tuple, list)) else (grid,)
    if not 1 <= len(extents) <= 3:
        raise ArgumentError("a grid has 1 to 3 dimensions, got %d" % len(extents))
    values = []
    for extent in extents:
        try:
            values.append(extent.__index__())
        except (AttributeError, TypeError):
            raise ArgumentError("a grid is of integers, got %s" % extent.__class__.__name__) from None
    if not all(1 <= value < 2**32 for value in values):
        raise ArgumentError("a grid has from 1 to %d blocks in each dimension, got %s" % (2**32 - 1, tuple(values)))
    return tuple(values + [1] * (3 - len(values)))  # type: ignore[return-value]


def closest(name: Any, names: Any) -> str:
    """A hint at what was meant, "" where nothing is near."""
    import difflib
    found = difflib.get_close_matches(str(name), list(names), 1)
    return "; did you mean '%s'?" % found[0] if found else ""
