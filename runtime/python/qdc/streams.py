"""Work that is given to a device without waiting: prepared launches, streams, events and graphs."""
from __future__ import annotations

import ctypes as c
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from . import _library
from .arrays import Memory
from .errors import ArgumentError, DeviceError, Error, LaunchError
from .interface import Grid, grid_extents

if TYPE_CHECKING:
    from .device import Buffer, Device, Kernel


class _Handle(_library.Owner):
    """Something of a device that a function of the runtime frees."""

    def __init__(self, device: Device, make: str, *args: Any):
        self._begin(device)
        with device._lock:
            device._check_open()
            self._check(getattr(self._library, make)(device._handle, *args, c.byref(self._handle)), DeviceError)
            device._parts.add(self)

    def _begin(self, device: Device) -> None:
        self._handle = c.c_void_p()
        self._lock = threading.RLock()
        self.device, self._library = device, device._library

    def _check(self, status: int, kind: Any) -> None:
        from .device import _check
        _check(self._library, status, kind)

    def _call(self, name: str, *args: Any, kind: Any = DeviceError) -> None:
        """Calls a function of the runtime on this object, which no thread closes meanwhile."""
        with self._lock:
            self._check(getattr(self._library, name)(self._open(), *args), kind)

    def _open(self) -> Any:
        if not self._handle:
            raise ArgumentError("a %s that is closed, or whose device is" % self.__class__.__name__.lower())
        return self._handle

    def close(self) -> None:
        """Gives back what it holds."""
        with self._lock:
            handle, self._handle = self._handle, c.c_void_p()
            if handle:
                getattr(self._library, self._free)(handle)


def _of_other(found: Any, kind: Any, device: Device) -> str:
    """What was found instead of an object of the device."""
    if not isinstance(found, kind):
        return found.__class__.__name__
    return "one of %s'%s'" % ("another opening of " if found.device.name == device.name else "", found.device.name)


def stream_of(device: Device, stream: Optional[Stream]) -> Any:
    """The handle of a stream of the device; None is the default one."""
    if stream is None:
        return None
    if not isinstance(stream, Stream) or stream.device is not device:
        raise ArgumentError("expected a stream of device '%s', got %s"
                            % (device.name, _of_other(stream, Stream, device)))
    return stream._open()


def _whole(buffer: Any, array: Any, writable: bool, device: Device) -> Tuple[Any, Memory]:
    """A buffer of the device and an array of the host of as many bytes."""
    return _buffer(buffer, device), buffer._host(array, writable)


def _buffer(buffer: Any, device: Device) -> Any:
    from .device import Buffer
    if not isinstance(buffer, Buffer) or buffer.device is not device:
        raise ArgumentError("expected a buffer of device '%s', got %s"
                            % (device.name, _of_other(buffer, Buffer, device)))
    return buffer._open()


class Stream(_Handle):
    """An order in which a device carries out what it is given. Streams of GPUs run beside each other. What is given is
    in use until it has been carried out: the stream keeps arrays and buffers until it is waited for."""

    _free = "qdrtStreamFree"

    def __init__(self, device: Device, native: Optional[int] = None):
        self._keep: List[Any] = []
        if native is None:
            super().__init__(device, "qdrtStreamCreate")
        else:
            super().__init__(device, "qdrtStreamWrap", c.c_void_p(_library.unsigned(native, "a stream", 2**64 - 1)))

    def synchronize(self) -> None:
        """Waits for all that the stream was given."""
        kept, self._keep = self._keep, []
        self._call("qdrtStreamSynchronize", kind=LaunchError)
        kept.clear()

    @property
    def is_finished(self) -> bool:
        """Whether all that the stream was given has been carried out."""
        done = c.c_int()
        self._call("qdrtStreamQuery", c.byref(done), kind=LaunchError)
        return bool(done.value)

    @property
    def native(self) -> int:
        """The CUstream or hipStream_t; 0 where there is none."""
        return self._library.qdrtStreamNative(self._open()) or 0

    def upload(self, buffer: Buffer, array: Any) -> None:
        """Copies an array of as many bytes into the buffer."""
        handle, memory = _whole(buffer, array, False, self.device)
        self._keep.append((buffer, memory))
        self._call("qdrtStreamUpload", handle, 0, memory.address, memory.bytes)

    def download(self, buffer: Buffer, array: Any) -> None:
        """Copies the buffer into an array of as many bytes, which holds them once the stream has been waited for."""
        handle, memory = _whole(buffer, array, True, self.device)
        self._keep.append((buffer, memory))
        self._call("qdrtStreamDownload", handle, 0, memory.address, memory.bytes)

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copies one buffer into another of as many bytes."""
        a, b = _buffer(target, self.device), _buffer(source, self.device)
        _same_bytes(target, source)
        self._keep.append((target, source))
        self._call("qdrtStreamCopy", a, 0, b, 0, source.bytes)

    def fill(self, buffer: Buffer, byte: int = 0) -> None:
        """Sets all bytes of a buffer."""
        handle = _buffer(buffer, self.device)
        self._keep.append(buffer)
        self._call("qdrtStreamFill", handle, 0, _library.unsigned(byte, "a byte", 255), buffer.bytes)

    def wait(self, event: Event) -> None:
        """What the stream is given from now on begins after the event."""
        if not isinstance(event, Event):
            raise ArgumentError("expected an event, got %s" % event.__class__.__name__)
        self._call("qdrtStreamWaitEvent", event._open())


def _same_bytes(target: Buffer, source: Buffer) -> None:
    if target.bytes != source.bytes:
        raise ArgumentError("a copy of %d bytes into a buffer of %d" % (source.bytes, target.bytes))


class Event(_Handle):
    """A point in a stream's work."""

    _free = "qdrtEventFree"

    def __init__(self, device: Device):
        super().__init__(device, "qdrtEventCreate")

    def record(self, stream: Optional[Stream] = None) -> Event:
        """The event happens when all that the stream was given so far has been carried out."""
        self._call("qdrtEventRecord", stream_of(self.device, stream))
        return self

    def synchronize(self) -> None:
        """Waits until the event has happened."""
        self._call("qdrtEventSynchronize", kind=LaunchError)

    @property
    def has_happened(self) -> bool:
        done = c.c_int()
        self._call("qdrtEventQuery", c.byref(done), kind=LaunchError)
        return bool(done.value)

    def seconds_until(self, end: Event) -> float:
        """Waits for both, and gives the device's time between them."""
        if not isinstance(end, Event):
            raise ArgumentError("expected an event, got %s" % end.__class__.__name__)
        seconds = c.c_double()
        self._call("qdrtEventElapsed", end._open(), c.byref(seconds), kind=LaunchError)
        return seconds.value


class Prepared(_Handle):
    """A kernel with its grid and arguments, checked once: launching it again checks nothing. Made by `Kernel.prepare`.
    Arrays are kept as long, and read where they lie; on devices that do not reach their memory arguments are
    buffers."""

    _free = "qdrtPreparedFree"

    def __init__(self, kernel: Kernel, args: Any, named: Dict[str, Any], grid: Grid):
        self.kernel = kernel
        device = kernel.module.device
        self._begin(device)
        device._check_open()
        self._fitted = kernel.fit(args, named)
        extents = (c.c_uint32 * 3)(*grid_extents(grid))
        kernel.interface.check_overlaps(self._fitted)
        arguments = (_library.Argument * len(self._fitted))()
        for number, slot in enumerate(arguments):
            self._put(slot, number)
        with kernel._ready():
            self._check(self._library.qdrtPrepare(kernel._handle, extents, arguments, len(self._fitted),
                                                  c.byref(self._handle)), DeviceError)
        device._parts.add(self)

    def _put(self, slot: Any, number: int) -> None:
        parameter, value = self.kernel.parameters[number], self._fitted[number]
        memory = self.kernel.put(slot, parameter, value)
        if memory is None:
            return
        try:
            if not self.kernel.put_in_place(slot, memory):
                raise ArgumentError("device '%s' does not reach the array's memory, expected a qdc.Buffer"
                                    % self.device.name)
        except Error as error:
            raise ArgumentError("argument '%s' of kernel '%s': %s"
                                % (parameter.name, self.kernel.name, error)) from error

    def set(self, /, **named: Any) -> Prepared:
        """Binds other arguments, by name, for launches from now on."""
        for name, value in named.items():
            number = self.kernel.interface.number(name)
            before = self._fitted[number]
            self._fitted[number] = self.kernel.interface.fit(number, value)
            slot = _library.Argument()
            try:
                self.kernel.interface.check_overlaps(self._fitted)
                self._put(slot, number)
                self._call("qdrtPreparedSetArgument", number, c.byref(slot))
            except Error:
                self._fitted[number] = before
                raise
        return self

    def set_grid(self, grid: Grid) -> Prepared:
        """Another grid for launches from now on."""
        self._call("qdrtPreparedSetGrid", (c.c_uint32 * 3)(*grid_extents(grid)))
        return self

    def launch(self, stream: Optional[Stream] = None) -> None:
        """Gives the launch to a stream and does not wait. A kernel that fails on a GPU is reported by a later call that
        waits."""
        handle = stream_of(self.device, stream)
        if stream is not None:
            stream._keep.append((self, list(self._fitted)))
        with self.kernel._ready():
            self._call("qdrtPreparedLaunch", handle, kind=LaunchError)


class Graph(_Handle):
    """Launches and copies that are given to a stream by one call, in the order in which they were added. Its first
    launch records it; from then on nothing can be added."""

    _free = "qdrtGraphFree"

    def __init__(self, device: Device):
        self._keep: List[Any] = []
        super().__init__(device, "qdrtGraphCreate")

    def add(self, prepared: Prepared) -> Graph:
        """Adds a launch."""
        if not isinstance(prepared, Prepared) or prepared.device is not self.device:
            raise ArgumentError("expected a prepared launch of device '%s', got %s" % (
                self.device.name, _of_other(prepared, Prepared, self.device)))
        self._call("qdrtGraphAddLaunch", prepared._open())
        self._keep.append((prepared, list(prepared._fitted)))
        return self

    def upload(self, buffer: Buffer, array: Any) -> Graph:
        """Adds a copy of an array, as it is at each launch, into a buffer."""
        handle, memory = _whole(buffer, array, False, self.device)
        self._call("qdrtGraphAddUpload", handle, 0, memory.address, memory.bytes)
        self._keep.append((buffer, memory))
        return self

    def download(self, buffer: Buffer, array: Any) -> Graph:
        """Adds a copy of a buffer into an array."""
        handle, memory = _whole(buffer, array, True, self.device)
        self._call("qdrtGraphAddDownload", handle, 0, memory.address, memory.bytes)
        self._keep.append((buffer, memory))
        return self

    def copy(self, target: Buffer, source: Buffer) -> Graph:
        """Adds a copy of one buffer into another."""
        a, b = _buffer(target, self.device), _buffer(source, self.device)
        _same_bytes(target, source)
        self._call("qdrtGraphAddCopy", a, 0, b, 0, source.bytes)
        self._keep.append((target, source))
        return self

    def fill(self, buffer: Buffer, byte: int = 0) -> Graph:
        """Adds that all bytes of a buffer are set."""
        handle = _buffer(buffer, self.device)
        self._call("qdrtGraphAddFill", handle, 0, _library.unsigned(byte, "a byte", 255), buffer.bytes)
        self._keep.append(buffer)
        return self

    def launch(self, stream: Optional[Stream] = None) -> None:
        """Gives the whole graph to a stream and does not wait."""
        handle = stream_of(self.device, stream)
        if stream is not None:
            stream._keep.append(self)
        self._call("qdrtGraphLaunch", handle, kind=LaunchError)
