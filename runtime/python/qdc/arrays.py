"""Arrays of others, as memory: NumPy's and whatever else tells where its elements lie. Nothing is copied.

Taken, in this order: `View` and `Span` (below), buffers of this package, `__cuda_array_interface__` (CuPy, PyTorch on a
GPU, Numba), `__array_interface__` (NumPy), `__dlpack__` (PyTorch, JAX and others), and Python's buffer protocol
(array.array, memoryview, bytearray, ctypes).
"""
from __future__ import annotations

import ctypes as c
import sys
from typing import Any, Dict, List, Optional, Tuple

from .errors import ArgumentError
from .types import ScalarType, bf16, f16, f32, f64, i1, i8, i16, i32, i64, scalar_type

_INTEGERS = {1: i8, 2: i16, 4: i32, 8: i64}
_FLOATS = {2: f16, 4: f32, 8: f64}
_NATIVE = "<" if sys.byteorder == "little" else ">"
# Codes of array interfaces. Single bytes have no order, but some libraries write one.
_CODES = {order + "b1": i1 for order in "|<>="}
_CODES.update((order + kind + "1", i8) for order in "|<>=" for kind in "iu")
_CODES.update(("%s%s%d" % (order, kind, size), _INTEGERS[size]) for order in (_NATIVE, "=") for kind in "iu"
              for size in (2, 4, 8))
_CODES.update(("%sf%d" % (order, size), type) for order in (_NATIVE, "=") for size, type in _FLOATS.items())


class Memory:
    """Elements that stand row by row, where `strides` is None, or so many bytes apart by dimension. `place` is "cpu",
    "cuda", or "buffer" for a `buffer` of this package; `keep` owns the memory."""

    __slots__ = ("address", "shape", "type", "readonly", "place", "keep", "buffer", "stream", "strides")

    def __init__(self, address: int, shape: Tuple[int, ...], type: ScalarType, readonly: bool, place: str, keep: Any,
                 buffer: Any = None, stream: Optional[int] = None, strides: Optional[Tuple[int, ...]] = None):
        self.address, self.shape, self.type, self.readonly = address, shape, type, readonly
        self.place, self.keep, self.buffer, self.stream, self.strides = place, keep, buffer, stream, strides

    @property
    def count(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes(self) -> int:
        return self.count * self.type.bytes


class View:
    """An array read as one of another type of the same width: `qdc.view(bits, "bf16")`."""

    __slots__ = ("array", "type")

    def __init__(self, array: Any, type: Any):
        self.array, self.type = array, scalar_type(type)


def view(array: Any, type: Any) -> View:
    """The array's elements as those of a type that its library lacks: 16-bit integers as bf16, bytes as i1 (0 or 1)."""
    return View(array, type)


class Span:
    """The memory from an array's first element to its last, gaps included, as a flat array: see `span`."""

    __slots__ = ("shape", "strides", "_memory")

    def __init__(self, memory: Memory):
        size = memory.type.bytes
        given = _row_strides(memory.shape, size) if memory.strides is None else memory.strides
        # Along a dimension of one element nothing is ever skipped.
        bytes = tuple(stride if extent > 1 else 0 for extent, stride in zip(memory.shape, given))
        if any(stride < 0 or stride % size for stride in bytes) and memory.count:
            raise ArgumentError("an array of %s with strides %s bytes, expected multiples of %d from 0" % (
                memory.type, given, size))
        self.shape, self.strides = memory.shape, tuple(stride // size for stride in bytes)
        count = sum((extent - 1) * stride
                    for extent, stride in zip(self.shape, self.strides)) + 1 if memory.count else 0
        self._memory = Memory(memory.address, (count,), memory.type, memory.readonly, memory.place, memory.keep,
                              memory.buffer, memory.stream)

    def _qdc_memory(self) -> Memory:
        return self._memory


def span(array: Any) -> Span:
    """An array whose elements are not side by side, for a kernel that takes a flat buffer and makes a view of it:

        part = qdc.span(matrix[:, ::2])
        kernel(*part.shape, *part.strides, part, grid=1)  # qd.view %x[0], %rows, %columns strides(%down, %across)

    `strides` count elements; `shape` is the array's."""
    return Span(_find(array))


def _row_strides(shape: Tuple[int, ...], size: int) -> Tuple[int, ...]:
    """Of elements that stand row by row without gaps."""
    strides: List[int] = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return tuple(strides)


def _gaps(shape: Tuple[int, ...], strides: Any, size: int, unit: int = 1) -> Optional[Tuple[int, ...]]:
    """Strides in bytes, given in `unit` bytes; None for elements that stand row by row without gaps."""
    if strides is None or 0 in shape:
        return None
    try:
        given = tuple(stride.__index__() * unit for stride in strides)
    except (AttributeError, TypeError):
        given = ()
    if len(given) != len(shape):
        raise ArgumentError("an array of shape %s with strides %r, expected one for each dimension" % (shape, strides))
    ordered = all(extent == 1 or a == b for extent, a, b in zip(shape, given, _row_strides(shape, size)))
    return None if ordered else given


def _type_of(typestr: Any, array: Any) -> ScalarType:
    """The type for a code such as "<f4"."""
    found = _CODES.get(typestr) if isinstance(typestr, str) else None
    if found is not None:
        return found
    if isinstance(typestr, str) and _CODES.get("|" + typestr[1:], _CODES.get(_NATIVE + typestr[1:])):
        raise ArgumentError("an array of foreign byte order ('%s')" % typestr)
    dtype = getattr(array, "dtype", None)  # PyTorch's have no name, but print as "torch.bfloat16"
    name = None if dtype is None else getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    if name == "bfloat16":
        return bf16
    raise ArgumentError("an array of dtype %s, expected bool, integers of 8 to 64 bits, float16, bfloat16, float32 or "
                        "float64" % (name or repr(typestr)))


def _of_interface(interface: Any, array: Any, place: str) -> Memory:
    try:
        shape = tuple(int(extent) for extent in interface["shape"])
        address, readonly = interface["data"]
        typestr, strides = interface["typestr"], interface.get("strides")
        address = int(address or 0)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError("%s has an array interface that cannot be read (%r)" % (
            array.__class__.__name__, error)) from None
    if interface.get("mask") is not None:
        raise ArgumentError("an array with a mask")
    if any(extent < 0 for extent in shape):
        raise ArgumentError("an array of negative shape %s" % (shape,))
    type = _type_of(typestr, array)
    if address == 0 and 0 not in shape:
        raise ArgumentError("an array without memory")
    return Memory(address, shape, type, bool(readonly), place, (array, interface), stream=interface.get("stream"),
                  strides=_gaps(shape, strides, type.bytes))


# ---- DLPack -----------------------------------------------------------------------------------------------------

class _Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("id", c.c_int32)]


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", _Device), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64)]


# Of CUDA and of HIP, which are never both here.
_PLACES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "cuda", 11: "cpu", 13: "cuda"}
_BY_CODE = {(6, 8): i1, (4, 16): bf16}
for _code in (0, 1):
    for _width, _type in ((8, i8), (16, i16), (32, i32), (64, i64)):
        _BY_CODE[_code, _width] = _type
for _width, _type in ((16, f16), (32, f32), (64, f64)):
    _BY_CODE[2, _width] = _type


class _Managed(c.Structure):
    pass


_DELETER = c.CFUNCTYPE(None, c.c_void_p)
_Managed._fields_ = [("tensor", _Tensor), ("context", c.c_void_p), ("deleter", _DELETER)]


class _ManagedVersioned(c.Structure):
    """The form of DLPack 1.0, which tells whether the memory may be written."""
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", _DELETER),
                ("flags", c.c_uint64), ("tensor", _Tensor)]


_NAMES = (b"dltensor", b"dltensor_versioned")
_lent: Dict[int, List[Any]] = {}  # the capsule and what its tensor is made of, by the tensor's address


@_DELETER
def _give_back(managed: int) -> None:
    _lent.pop(managed, None)


def _name_of(capsule: Any) -> Optional[bytes]:
    """The name of a capsule whose tensor has not been taken."""
    valid = c.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = c.c_int, [c.py_object, c.c_char_p]
    return next((name for name in _NAMES if valid(capsule, name)), None)


def _sweep() -> None:
    """Forgets tensors that nobody has taken and nobody can take any more. (A capsule's own destructor must not run
    Python: it may come while an exception is on its way.)"""
    for address, row in list(_lent.items()):
        if row[0] is not None and sys.getrefcount(row[0]) == 2:  # the list's, and that of the call
            if _name_of(row[0]):
                _lent.pop(address, None)
            else:
                row[0] = None


def lend(memory: Memory, address: int, kind: int, number: int, versioned: bool) -> Any:
    """A DLPack capsule of memory on that device of a kind. What it is made of stays until the last taker is done."""
    _sweep()
    codes = {type: key for key, type in _BY_CODE.items() if key[0] != 1}
    code, bits = codes[memory.type]
    rank = len(memory.shape)
    shape = (c.c_int64 * max(rank, 1))(*memory.shape)
    tensor = _Tensor(address, _Device(kind, number), rank, code, bits, 1, shape, None, 0)
    managed: Any = (_ManagedVersioned(1, 0, None, _give_back, 0, tensor) if versioned
                    else _Managed(tensor, None, _give_back))
    make = c.pythonapi.PyCapsule_New
    make.restype, make.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
    capsule = make(c.addressof(managed), _NAMES[versioned], None)
    _lent[c.addressof(managed)] = [capsule, managed, shape, memory]
    return capsule


def _of_dlpack(array: Any) -> Memory:
    """The capsule is not consumed: it gives the tensor back when it goes."""
    try:
        kind = int(array.__dlpack_device__()[0]) if hasattr(array, "__dlpack_device__") else 1
        # On a GPU the default stream, 1 on CUDA and 0 on HIP, is to wait for what the array's library has queued.
        stream = None if _PLACES.get(kind) != "cuda" else 0 if kind == 10 else 1
        options = {} if stream is None else {"stream": stream}
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # from before versions
            capsule = array.__dlpack__(**options)
    except ArgumentError:
        raise
    except Exception as error:  # whatever the other library raises
        raise ArgumentError("%s gives no DLPack tensor (%s)" % (array.__class__.__name__, error)) from error
    pointer = c.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    name, readonly = _name_of(capsule), False
    if name == _NAMES[1]:
        managed = _ManagedVersioned.from_address(pointer(capsule, name))
        tensor, readonly = managed.tensor, bool(managed.flags & 1)
        name = name if managed.major == 1 else None
    elif name:
        tensor = _Tensor.from_address(pointer(capsule, name))
    if name is None:
        raise ArgumentError("%s gives a DLPack capsule that cannot be read" % array.__class__.__name__)
    place = _PLACES.get(tensor.device.type)
    if place is None:
        raise ArgumentError("a DLPack tensor on a device of kind %d, expected the CPU or CUDA" % tensor.device.type)
    type = _BY_CODE.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if type is None:
        raise ArgumentError("a DLPack tensor of type code %d, %d bits, %d lanes, which no type here is" % (
            tensor.code, tensor.bits, tensor.lanes))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
    return Memory((tensor.data or 0) + tensor.offset, shape, type, readonly, place, (array, capsule),
                  stream=stream, strides=_gaps(shape, strides, type.bytes, type.bytes))


# ---- Python's buffer protocol -----------------------------------------------------------------------------------

class _PyBuffer(c.Structure):
    _fields_ = [("buf", c.c_void_p), ("obj", c.c_void_p), ("len", c.c_ssize_t), ("itemsize", c.c_ssize_t),
                ("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p), ("shape", c.c_void_p),
                ("strides", c.c_void_p), ("suboffsets", c.c_void_p), ("internal", c.c_void_p)]


class _Held:
    """Keeps a buffer of Python's from moving."""

    def __init__(self, owner: Any):
        self.raw = _PyBuffer()
        get = c.pythonapi.PyObject_GetBuffer
        get.restype, get.argtypes = c.c_int, [c.py_object, c.POINTER(_PyBuffer), c.c_int]
        get(owner, c.byref(self.raw), 0x18)  # PyBUF_STRIDES; raises what goes wrong
        self.release = c.pythonapi.PyBuffer_Release
        self.release.restype, self.release.argtypes = None, [c.POINTER(_PyBuffer)]

    def __del__(self) -> None:
        release = getattr(self, "release", None)
        if release:
            release(c.byref(self.raw))


def _of_buffer(array: Any) -> Memory:
    try:
        shown = memoryview(array)
    except (TypeError, BufferError, ValueError) as error:
        raise ArgumentError("expected an array, got %s (%s)" % (array.__class__.__name__, error)) from None
    with shown:
        code = shown.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!")
        if code == "?":
            type: Optional[ScalarType] = i1
        elif len(code) == 1 and code in "bBcChHiIlLqQnN":
            type = _INTEGERS.get(shown.itemsize)
        elif len(code) == 1 and code in "efd":
            type = _FLOATS.get(shown.itemsize)
        else:
            type = None
        if type is None:
            raise ArgumentError("%s holds elements of format '%s', which no type here is" % (
                array.__class__.__name__, shown.format))
        shape, readonly = tuple(shown.shape or ()), shown.readonly
        strides = _gaps(shape, shown.strides, shown.itemsize)
    try:
        held = _Held(array)
    except (TypeError, BufferError, ValueError) as error:
        raise ArgumentError("%s gives no memory (%s)" % (array.__class__.__name__, error)) from None
    return Memory(held.raw.buf or 0, shape, type, readonly, "cpu", (array, held), strides=strides)


def memory_of(array: Any) -> Memory:
    """Where an array's elements lie, row by row. Raises ArgumentError for what is no array, has gaps or is of a type
    that QIR has not."""
    memory = _find(array)
    if memory.strides is not None:
        raise ArgumentError("the array is not contiguous: shape %s, strides %s bytes, expected %s; a contiguous copy "
                            "can be passed, and kernels that make a view take qdc.span(array)" % (
                                memory.shape, memory.strides, _row_strides(memory.shape, memory.type.bytes)))
    return memory


def _find(array: Any) -> Memory:
    """Where an array's elements lie, with gaps or without."""
    if isinstance(array, View):
        memory = _find(array.array)
        if memory.type.bytes != array.type.bytes:
            raise ArgumentError("elements of %s cannot be read as %s: %d bytes against %d" % (
                memory.type, array.type, memory.type.bytes, array.type.bytes))
        memory.type = array.type
        return memory
    if isinstance(array, Memory):
        return array
    if isinstance(array, type) or array is None or isinstance(array, (str, bool, int, float, complex)):
        raise ArgumentError("expected an array, got %s" % array.__class__.__name__)
    numpy, masked = sys.modules.get("numpy"), sys.modules.get("numpy.ma")
    if numpy and isinstance(array, numpy.generic):  # its interface is that of a copy, which is gone by then
        raise ArgumentError("expected an array, got the number %s" % array.__class__.__name__)
    if masked and isinstance(array, masked.MaskedArray):
        raise ArgumentError("an array with a mask; its data can be passed")
    own = getattr(array, "_qdc_memory", None)
    if own is not None:
        return own()
    for attribute, place in (("__cuda_array_interface__", "cuda"), ("__array_interface__", "cpu")):
        try:
            interface = getattr(array, attribute, None)
        except Exception as error:  # PyTorch raises for tensors that are elsewhere
            if not hasattr(array, "__dlpack__"):
                raise ArgumentError("%s has no array interface (%s)" % (array.__class__.__name__, error)) from error
            interface = None
        if isinstance(interface, dict):
            return _of_interface(interface, array, place)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array)
    return _of_buffer(array)
