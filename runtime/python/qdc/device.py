"""Devices, buffers, modules and launches, over libqdruntime."""
from __future__ import annotations

import _thread
import contextlib
import ctypes as c
import threading
import weakref
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import _library
from .arrays import Memory, memory_of
from .compiler import Bind, Blocks, bind_text, blocks_text, milliseconds, source_of
from .errors import ArgumentError, CompileError, DeviceError, Diagnostic, Error, LaunchError, parse_diagnostics
from .interface import Grid, KernelInterface, Parameter, closest, grid_extents, parse_interface
from .streams import Event, Graph, Prepared, Stream
from .types import scalar_type


class DeviceEntry(NamedTuple):
    """A line of the list of devices: what it is, or why there is none."""
    name: str
    present: bool
    text: str


def devices() -> List[DeviceEntry]:
    """All that can be opened by name, and those that are absent with the reason."""
    library = _library.runtime()
    handle = c.c_void_p()
    _check(library, library.qdrtListDevices(c.byref(handle)), DeviceError)
    try:
        return [DeviceEntry(_library.text(library.qdrtDeviceListName(handle, i)),
                            bool(library.qdrtDeviceListPresent(handle, i)),
                            _library.text(library.qdrtDeviceListText(handle, i)))
                for i in range(library.qdrtDeviceListSize(handle))]
    finally:
        library.qdrtDeviceListFree(handle)


#: Asked by the runtime while a kernel runs on this machine: whether Ctrl-C was pressed, in the thread that handles
#: signals. It is C: no handler may raise inside of a callback.
_interrupt = _library.INTERRUPT(c.pythonapi.PyOS_InterruptOccurred)


def _check(library: Any, status: int, kind: Any) -> None:
    """Raises what the runtime had to say."""
    if status != _library.OK:
        text = _library.text(library.qdrtErrorText()).strip()
        if status == _library.FAILED and text.endswith("was interrupted by its caller"):
            _thread.interrupt_main()  # the handler, which has not been called yet, most often raises KeyboardInterrupt
        raise (ArgumentError if status == _library.INVALID else kind)(text or "the runtime failed without a word")


class Device(_library.Owner):
    """Something that kernels run on: "cpu", "interp", "sim:CHIP" ("sim:sm_90", "sim:gfx942", ...), "vulkan", "cuda" or
    "hip", the last three with ":1" and so on for other than the first; "best" is the fastest that is there.
    `qdc.devices()` lists them.

    `subgroup_size` is in lanes, 0 for the device's own; `threads` bounds those of the cpu device; `checks` are the
    interpreter's ("all", "none" or a list as in `qdc-run --check`); `blocks` gives resizable kernels their block sizes,
    and `bind` makes scalar arguments constants, {"n": 1024, "scale.k": 0.5}, which launches then do not
    pass. `launch_time_limit` ends launches on cpu, interp and sim after so many seconds. `isolate`, `time_limit`
    (seconds) and `memory_limit` (MiB) make code in another process, as those of `qdc.compile` do, and `debug` compiles
    with the source's lines for cuda, hip and vulkan. Used by many threads
    at a time; launches of one module wait for each other.
    """

    _free = "qdrtDeviceClose"

    def __init__(self, name: str = "cpu", *, subgroup_size: int = 0, opt_level: int = 2, threads: int = 0,
                 checks: Optional[str] = None, blocks: Blocks = None, bind: Bind = None, launch_time_limit: float = 0,
                 isolate: bool = False, time_limit: float = 0, memory_limit: int = 0,
                 debug: bool = False):
        self._handle = c.c_void_p()
        encoded = _library.encode(name, "a device's name")
        library = self._library = _library.runtime()
        options = _library.DeviceOptions()
        library.qdrtInitDeviceOptionsSized(c.byref(options), c.sizeof(options))
        options.subgroupSize = _library.unsigned(subgroup_size, "subgroup_size")
        options.optLevel = _library.unsigned(opt_level, "opt_level", 3)
        options.threads = _library.unsigned(threads, "threads", 4096)
        options.checks = _library.encode_optional(checks, "checks")
        options.blocks, options.bind = blocks_text(blocks), bind_text(bind)
        options.launchTimeLimit = milliseconds(launch_time_limit, "launch_time_limit")
        options.isolate = bool(isolate)
        options.compileTimeLimit = milliseconds(time_limit, "time_limit")
        options.compileMemoryLimit = _library.unsigned(memory_limit, "memory_limit")
        options.interrupt = _interrupt
        options.debug = _library.flag(debug, "debug")
        self._lock = threading.RLock()
        self._parts: Any = weakref.WeakSet()
        status = library.qdrtDeviceOpen(encoded, c.byref(options), c.byref(self._handle))
        if status == _library.INVALID:
            # A name that no device has is the device's error; the rest is a wrong option.
            text = _library.text(library.qdrtErrorText()).strip()
            raise (DeviceError if "device" in text else ArgumentError)(text)
        _check(library, status, DeviceError)
        row = _library.DeviceProperties()
        row.structSize = c.sizeof(row)
        _check(library, library.qdrtDeviceGetProperties(self._handle, c.byref(row)), DeviceError)
        self.name = _library.text(row.name) or name
        self.description = _library.text(row.description)
        self.target = _library.text(row.target)
        self.subgroup_size: int = subgroup_size or row.defaultSubgroupSize
        self.subgroup_sizes: Tuple[int, int] = (row.smallestSubgroupSize, row.largestSubgroupSize)
        self.max_block_threads: int = row.maxBlockThreads
        self.max_shared_bytes: int = row.maxSharedBytes
        self.memory_bytes: int = row.memoryBytes
        self.multiprocessors: int = row.multiprocessors
        self.is_gpu = bool(row.isGpu)
        self._takes_pointers = bool(row.takesPointers)
        self._place = "cpu" if row.isHostMemory and row.takesPointers else "cuda" if row.takesPointers else "none"

    def load(self, source: Any, *, name: Optional[str] = None) -> Module:
        """Makes a program's kernels launchable: a bundle as `qdc.compile` makes it, or QIR, which is compiled for the
        device. For sources see `qdc.compile`."""
        data, name = source_of(source, name)
        encoded = _library.encode(name, "name")
        handle = c.c_void_p()
        with self._lock:
            self._check_open()
            status = self._library.qdrtModuleLoad(self._handle, data, len(data), encoded, c.byref(handle))
            if status != _library.OK:
                raise _load_error(_library.text(self._library.qdrtErrorText()).strip())
            return Module(self, handle)

    def allocate(self, shape: Any, dtype: Any = "i8") -> Buffer:
        """Memory of the device for so many elements, of any content: `allocate(1000, "f32")`, `allocate((3, 4),
        "i32")`. A shape has any number of dimensions, as arrays have."""
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        extents = tuple(_library.unsigned(extent, "an extent", 2**62) for extent in extents)
        return Buffer(self, extents, scalar_type(dtype))

    def upload(self, array: Any) -> Buffer:
        """A buffer of the device with an array's elements."""
        memory = memory_of(array)
        buffer = Buffer(self, memory.shape, memory.type)
        buffer.upload(array)
        return buffer

    def stream(self, native: Optional[int] = None) -> Stream:
        """An order in which to carry out work; `native` is a CUstream or hipStream_t of other code to share."""
        return Stream(self, native)

    def event(self) -> Event:
        """A point in a stream's work, once it is recorded."""
        return Event(self)

    def graph(self) -> Graph:
        """Launches and copies to be given to a stream by one call."""
        return Graph(self)

    def synchronize(self) -> None:
        """Waits for all work of all streams of the device."""
        self._check_open()
        _check(self._library, self._library.qdrtDeviceSynchronize(self._handle), LaunchError)

    def close(self) -> None:
        """Ends the use of the device; what was made of it can no longer be used."""
        with self._lock:
            for part in list(self._parts):
                part.close()
            handle, self._handle = self._handle, c.c_void_p()
            if handle:
                self._library.qdrtDeviceClose(handle)

    def _check_open(self) -> None:
        if not self._handle:
            raise DeviceError("device '%s' is closed" % self.name)

    def __repr__(self) -> str:
        return "<qdc.Device '%s'%s>" % (self.name, "" if self._handle else ", closed")


def _load_error(text: str) -> Error:
    """What does not compile has diagnostics."""
    head, _, rest = text.partition(":\n")
    if "does not compile" in head:
        return CompileError(rest or text, parse_diagnostics(rest or text))
    return DeviceError(text)


class Buffer(_library.OfProcess):
    """Memory of a device that stays there between launches. Kernels take it as an array of its shape and type;
    `numpy()` reads it."""

    def __init__(self, device: Device, shape: Tuple[int, ...], type: Any):
        self._handle = self._kept = c.c_void_p()
        self._is_lent = False
        self.device, self.shape, self.type = device, shape, type
        count = 1
        for extent in shape:
            count *= extent
        self.count, self.bytes = count, count * type.bytes
        if self.bytes >= 2**63:
            raise ArgumentError("a buffer of %d bytes" % self.bytes)
        self._library = device._library
        with device._lock:
            device._check_open()
            _check(self._library, self._library.qdrtBufferAllocate(device._handle, self.bytes, c.byref(self._handle)),
                   DeviceError)
            device._parts.add(self)

    def _open(self) -> Any:
        if not self._handle:
            raise ArgumentError("a buffer that is closed, or whose device is")
        return self._handle

    def _host(self, array: Any, writable: bool) -> Memory:
        memory = memory_of(array)
        if memory.buffer is not None:
            raise ArgumentError("expected an array of the host, got a buffer of device '%s', which numpy() reads" %
                                memory.buffer.device.name)
        if memory.place != "cpu":
            raise ArgumentError("the array lies on a GPU, expected one of the host")
        if memory.bytes != self.bytes:
            raise ArgumentError("the array has %d bytes, the buffer %d" % (memory.bytes, self.bytes))
        if writable and memory.readonly:
            raise ArgumentError("the array is read-only")
        return memory

    def upload(self, array: Any) -> None:
        """Copies an array of as many bytes into the buffer."""
        memory = self._host(array, False)
        with self.device._lock:
            _check(self._library, self._library.qdrtBufferUpload(self._open(), 0, memory.address, self.bytes),
                   DeviceError)

    def download(self, array: Any) -> Any:
        """Copies the buffer into an array of as many bytes, and gives the array."""
        memory = self._host(array, True)
        with self.device._lock:
            _check(self._library, self._library.qdrtBufferDownload(self._open(), 0, memory.address, self.bytes),
                   DeviceError)
        return array

    def fill(self, byte: int = 0) -> None:
        """Sets all bytes."""
        with self.device._lock:
            value = _library.unsigned(byte, "a byte", 255)
            _check(self._library, self._library.qdrtBufferFill(self._open(), 0, value, self.bytes), DeviceError)

    def numpy(self) -> Any:
        """A copy as a NumPy array; elements of bf16 as uint16."""
        import numpy
        names = {"i1": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2", "bf16": "u2", "f32": "f4",
                 "f64": "f8"}
        array = numpy.empty(self.shape, names[self.type.name])
        data = array.view(numpy.uint8) if array.size and array.ndim else array
        if self.bytes:
            self.download(data)
        return array

    def _qdc_memory(self) -> Memory:
        self._open()
        return Memory(0, self.shape, self.type, False, "buffer", self, buffer=self)

    @property
    def __array_interface__(self) -> Any:
        """For NumPy, without a copy, where the host sees the memory."""
        return self._interface(self.device._place == "cpu", "the host")

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Where there is no interface, NumPy would make an array of one object."""
        raise TypeError("NumPy cannot see the memory of %r in place; numpy() copies it" % self)

    @property
    def __cuda_array_interface__(self) -> Any:
        """For CuPy, PyTorch and others, without a copy, on CUDA."""
        return self._interface(self.device.name.startswith("cuda"), "CUDA")

    def _lend(self) -> int:
        """The address, which stays valid as long as this object lives, also after close()."""
        with self.device._lock:
            address = self._library.qdrtBufferAddress(self._open())
            self._is_lent = True
        return address

    def _interface(self, is_there: bool, place: str) -> Any:
        codes = {"i1": "|b1", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "f16": "<f2", "f32": "<f4",
                 "f64": "<f8"}
        if not is_there or self.type.name not in codes:
            raise AttributeError("the buffer is not in memory of %s, or of a type that has no code there" % place)
        return {"shape": self.shape, "typestr": codes[self.type.name], "data": (self._lend(), False), "version": 3,
                "strides": None}

    def __dlpack_device__(self) -> Tuple[int, int]:
        places = {"cpu": 1, "cuda": 2}
        if self.device._place not in places or self.device.name.startswith("hip"):
            raise BufferError("memory of device '%s' cannot be lent" % self.device.name)
        number = int(self.device.name.partition(":")[2] or 0) if self.device._place == "cuda" else 0
        return places[self.device._place], number

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **_: Any) -> Any:
        """For NumPy, PyTorch, JAX and others, without a copy, on host devices and CUDA. No work of this package is
        under way on it, so no stream has to wait."""
        from .arrays import lend
        kind, number = self.__dlpack_device__()
        return lend(self._qdc_memory(), self._lend(), kind, number, max_version is not None and max_version[0] >= 1)

    def close(self) -> None:
        """Gives the memory back; where others see it, when they are done."""
        with self.device._lock:
            handle, self._handle = self._handle, c.c_void_p()
            if handle and self._is_lent:
                self._kept = handle
            elif handle:
                self._library.qdrtBufferFree(handle)

    def __del__(self) -> None:
        for handle in (getattr(self, "_handle", None), getattr(self, "_kept", None)):
            if handle:
                self._library.qdrtBufferFree(handle)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        return "<qdc.Buffer of %s%s on '%s'%s>" % ("".join("%dx" % e for e in self.shape), self.type, self.device.name,
                                                   "" if self._handle else ", closed")


class Module(_library.Owner):
    """Kernels that a device has loaded: `module["scale"](n, x, grid=4)`."""

    _free = "qdrtModuleFree"

    def __init__(self, device: Device, handle: Any):
        self._handle = handle
        self.device = device
        self._library = device._library
        self._lock = threading.RLock()
        self.diagnostics: List[Diagnostic] = parse_diagnostics(_library.text(self._library.qdrtModuleWarnings(handle)))
        # Kernels refer to their module, and are made when they are asked for: so a module goes with its last user.
        self._kernels: Dict[str, Tuple[KernelInterface, Any]] = {}
        for name, interface in parse_interface(_library.text(self._library.qdrtModuleInterface(handle))).items():
            kernel = c.c_void_p()
            _check(self._library, self._library.qdrtModuleGetKernel(handle, name.encode(), c.byref(kernel)),
                   DeviceError)
            self._kernels[name] = interface, kernel
        device._parts.add(self)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """All kernels by name."""
        return {name: Kernel(self, *entry) for name, entry in self._kernels.items()}

    def __getitem__(self, name: str) -> Kernel:
        entry = self._kernels.get(name) if isinstance(name, str) else None
        if entry is None:
            raise ArgumentError("the module has no kernel %r%s; it has %s" % (
                name, closest(name, self._kernels), ", ".join(self._kernels) or "none"))
        return Kernel(self, *entry)

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Any:
        return iter(self._kernels)

    def launch(self, kernel: str, /, *args: Any, grid: Grid, **named: Any) -> float:
        """The same as `module[kernel](...)`."""
        return self[kernel](*args, grid=grid, **named)

    def close(self) -> None:
        """Gives back what the module holds; its kernels can no longer be launched."""
        with self._lock:
            handle, self._handle = self._handle, c.c_void_p()
            if handle:
                self._library.qdrtModuleFree(handle)

    def __repr__(self) -> str:
        return "<qdc.Module on '%s': %s>" % (self.device.name, ", ".join(self._kernels))


class Kernel(_library.OfProcess):
    """A kernel of a module. Calling it launches it, waits for its end, and gives the seconds that the device took.

    Arguments go by position or by name. Scalars are Python or NumPy numbers; buffers are `Buffer`s, or arrays of NumPy
    or others (see `qdc.arrays`). These are used in place where the device reaches their memory: the host's on cpu,
    interp and sim, a GPU's on CUDA and HIP. Elsewhere they are copied there and, unless the kernel only reads them,
    back. They must stand row by row without gaps, and their elements must be of the parameter's type; a buffer of one
    dimension takes arrays of any.
    """

    def __init__(self, module: Module, interface: KernelInterface, handle: Any):
        self.module, self.interface, self._handle = module, interface, handle
        self.name = interface.name

    @property
    def parameters(self) -> List[Parameter]:
        return self.interface.parameters

    @property
    def block(self) -> Tuple[int, int, int]:
        """Threads of a block in x, y and z."""
        return self.interface.block

    def occupancy(self) -> Tuple[int, int]:
        """How many blocks run at once on a multiprocessor, and how many of these there are."""
        blocks, multiprocessors = c.c_uint64(), c.c_uint64()
        with self._ready() as library:
            _check(library, library.qdrtKernelOccupancy(self._handle, c.byref(blocks), c.byref(multiprocessors)),
                   DeviceError)
        return blocks.value, multiprocessors.value

    @contextlib.contextmanager
    def _ready(self) -> Any:
        with self.module._lock:
            self.module.device._check_open()
            if not self.module._handle:
                raise ArgumentError("kernel '%s' belongs to a module that is closed" % self.name)
            yield self.module._library

    def fit(self, args: Any, named: Mapping[str, Any]) -> List[Any]:
        """The arguments in order: bits of scalars, and memory with its extents."""
        interface = self.interface
        return [interface.fit(i, value) for i, value in enumerate(interface.order(args, named))]

    @staticmethod
    def put(slot: Any, parameter: Parameter, value: Any) -> Optional[Memory]:
        """Writes an argument for the runtime, but for where its memory is, which is returned."""
        slot.type = _library.TYPES[parameter.type.name]
        if not parameter.is_buffer:
            slot.bits = value
            return None
        memory, shape = value
        slot.lanes, slot.rank = parameter.lanes if parameter.lanes > 1 else 0, parameter.rank
        slot.extents = tuple(shape) + (0,) * (3 - len(shape))
        return memory

    def put_in_place(self, slot: Any, memory: Memory) -> bool:
        """Writes where the memory is; false where the device does not reach it and a copy would do."""
        device = self.module.device
        if memory.buffer is not None:
            buffer = memory.buffer
            if buffer.device is not device:
                raise ArgumentError("a buffer of device '%s', launched on %s'%s'" % (
                    buffer.device.name, "another opening of " if buffer.device.name == device.name else "",
                    device.name))
            slot.kind, slot.buffer = _library.BUFFER, buffer._open().value
        elif memory.place == device._place:
            if memory.stream:
                _wait_for_stream(device, memory.stream)
            slot.kind, slot.pointer = _library.POINTER, memory.address
        elif memory.place != "cpu":
            raise ArgumentError("the array lies on a GPU, which device '%s' does not reach" % device.name)
        else:
            return False
        return True

    def prepare(self, /, *args: Any, grid: Grid, **named: Any) -> Prepared:
        """The kernel with its arguments, checked once and launched as often as one likes, also without waiting: see
        `qdc.Stream` and `qdc.Graph`."""
        return Prepared(self, args, named, grid)

    def __call__(self, /, *args: Any, grid: Grid, **named: Any) -> float:
        interface = self.interface
        self.module.device._check_open()
        fitted = self.fit(args, named)
        extents = (c.c_uint32 * 3)(*grid_extents(grid))
        interface.check_overlaps(fitted)
        seconds = c.c_double()
        arguments = (_library.Argument * len(fitted))()
        copied = []
        for number, (slot, parameter) in enumerate(zip(arguments, interface.parameters)):
            memory = self.put(slot, parameter, fitted[number])
            if memory is not None:
                try:
                    if not self.put_in_place(slot, memory):
                        copied.append((slot, parameter, memory))
                except Error as error:
                    raise ArgumentError("argument '%s' of kernel '%s': %s"
                                        % (parameter.name, self.name, error)) from error
        with contextlib.ExitStack() as stack:
            copies = _Copies(self.module.device, stack)
            for slot, parameter, memory in copied:
                try:
                    copies.place(slot, memory, parameter)
                except Error as error:
                    raise ArgumentError("argument '%s' of kernel '%s': %s"
                                        % (parameter.name, self.name, error)) from error
            if any(slot.kind == _library.BUFFER for slot in arguments):
                # Nobody closes a buffer meanwhile.
                stack.enter_context(self.module.device._lock)
                for value in fitted:
                    if isinstance(value, tuple) and value[0].buffer is not None:
                        value[0].buffer._open()
            library = stack.enter_context(self._ready())
            _check(library, library.qdrtLaunch(self._handle, extents, arguments, len(fitted), c.byref(seconds)),
                   LaunchError)
            copies.bring_back()
        return seconds.value

    def __repr__(self) -> str:
        return "<qdc.Kernel '%s'(%s)>" % (self.name, ", ".join(p.name for p in self.parameters))


class _Copies:
    """Buffers for the time of a launch, for arrays whose memory the device does not reach."""

    def __init__(self, device: Device, stack: contextlib.ExitStack):
        self.device, self.stack = device, stack
        self.made: Dict[Tuple[int, int], Buffer] = {}
        self.written: List[Tuple[Buffer, Memory]] = []

    def place(self, slot: Any, memory: Memory, parameter: Parameter) -> None:
        device = self.device
        key = (memory.address, memory.bytes)
        buffer = self.made.get(key)
        if buffer is None:
            for address, size in self.made:
                if (memory.bytes and size and address < memory.address + memory.bytes
                        and memory.address < address + size):
                    raise ArgumentError("the array overlaps with another argument, and both are copied to '%s'; "
                                        "a qdc.Buffer can hold both" % device.name)
            buffer = self.made[key] = Buffer(device, (memory.bytes,), scalar_type("i8"))
            self.stack.callback(buffer.close)
            if memory.bytes:
                _check(device._library,
                       device._library.qdrtBufferUpload(buffer._handle, 0, memory.address, memory.bytes), DeviceError)
        if parameter.access != "readonly" and memory.bytes:
            self.written.append((buffer, memory))
        slot.kind, slot.buffer = _library.BUFFER, buffer._handle.value

    def bring_back(self) -> None:
        for buffer, memory in self.written:
            _check(self.device._library, self.device._library.qdrtBufferDownload(
                buffer._handle, 0, memory.address, memory.bytes), DeviceError)


def _wait_for_stream(device: Device, stream: int) -> None:
    """What other libraries have queued for an array is done before a launch reads it. Streams are as in
    `__cuda_array_interface__`: 1 and 2 are the default ones."""
    with Stream(device, stream) as wrapped:
        wrapped.synchronize()
