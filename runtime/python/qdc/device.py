"""Devices, modules and launches."""
from __future__ import annotations

import ctypes as c
import threading
from typing import Any, Dict, List, Mapping, Optional

from . import _library
from .compiler import Blocks, blocks_text, failure, source_of
from .errors import ArgumentError, DeviceError, Diagnostic, LaunchError, parse_diagnostics
from .interface import Grid, KernelInterface, Parameter, closest, grid_extents, parse_interface


class Device:
    """Something that kernels run on: "cpu", "interp" or "sim:CHIP" ("sim:sm_90", "sim:gfx942", ...).

    `subgroup_size` is in lanes, 0 for the device's own; `threads` bounds those of the cpu device; `checks` are the
    interpreter's ("all", "none" or a list as in `qdc-run --check`); `blocks` gives resizable kernels their block sizes.
    Used by many threads at a time; launches of one module wait for each other.
    """

    def __init__(self, name: str = "cpu", *, subgroup_size: int = 0, opt_level: int = 2, threads: int = 0,
                 checks: Optional[str] = None, blocks: Blocks = None):
        encoded = _library.encode(name, "a device's name")
        if name not in ("cpu", "interp") and not name.startswith("sim:"):
            raise DeviceError("no device is called '%s'%s; expected cpu, interp or sim:CHIP" % (
                name, closest(name, ("cpu", "interp", "sim:sm_90"))))
        library = self._library = _library.compiler()
        options = self._options = _library.HostOptions()
        library.qdcInitHostOptions(c.byref(options))
        options.device = encoded
        options.subgroupSize = _library.unsigned(subgroup_size, "subgroup_size")
        options.optLevel = _library.unsigned(opt_level, "opt_level", 3)
        options.threads = _library.unsigned(threads, "threads", 4096)
        options.checks = _library.encode_optional(checks, "checks")
        options.blocks = blocks_text(blocks)
        self.name = name
        self._closed = False

    def load(self, source: Any, *, name: Optional[str] = None) -> Module:
        """Compiles a program for the device and makes its kernels launchable. For sources see `qdc.compile`."""
        self._check()
        data, name = source_of(source, name)
        said = c.c_void_p()
        handle = self._library.qdcHostLoad(data, len(data), _library.encode(name, "name"), c.byref(self._options),
                                           c.byref(said))
        text = _library.take_string(self._library, said)
        if not handle:
            raise failure(text)
        return Module(self, handle, parse_diagnostics(text))

    def close(self) -> None:
        """Ends the use of the device; modules of it can no longer be launched."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise DeviceError("device '%s' is closed" % self.name)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<qdc.Device '%s'%s>" % (self.name, ", closed" if self._closed else "")


class Module:
    """Kernels that a device has loaded: `module["scale"](n, x, grid=4)`."""

    def __init__(self, device: Device, handle: int, diagnostics: List[Diagnostic]):
        self.device, self.diagnostics = device, diagnostics
        self._handle: Optional[int] = handle
        self._library = device._library
        self._lock = threading.Lock()
        interface = self._library.qdcHostInterface(handle).decode("utf-8", "replace")
        self._kernels = {name: Kernel(self, kernel) for name, kernel in parse_interface(interface).items()}

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """All kernels by name."""
        return dict(self._kernels)

    def __getitem__(self, name: str) -> Kernel:
        kernel = self._kernels.get(name)
        if kernel is None:
            raise ArgumentError("the module has no kernel %r%s; it has %s" % (
                name, closest(name, self._kernels), ", ".join(self._kernels) or "none"))
        return kernel

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Any:
        return iter(self._kernels)

    def launch(self, kernel: str, *args: Any, grid: Grid, **named: Any) -> None:
        """The same as `module[kernel](...)`."""
        self[kernel](*args, grid=grid, **named)

    def close(self) -> None:
        """Gives back what the module holds; its kernels can no longer be launched."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle:
                self._library.qdcHostUnload(handle)

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return "<qdc.Module on '%s': %s>" % (self.device.name, ", ".join(self._kernels))


class Kernel:
    """A kernel of a module. Calling it launches it and waits for its end.

    Arguments go by position or by name. Scalars are Python or NumPy numbers; buffers are arrays of NumPy or others
    (see `qdc.arrays`), in place and without copies. They must stand row by row without gaps, and their elements must be
    of the parameter's type; a buffer of one dimension takes arrays of any.
    """

    def __init__(self, module: Module, interface: KernelInterface):
        self.module, self.interface = module, interface
        self.name = interface.name
        self._encoded = interface.name.encode()

    @property
    def parameters(self) -> List[Parameter]:
        return self.interface.parameters

    @property
    def block(self) -> Any:
        """Threads of a block in x, y and z."""
        return self.interface.block

    def __call__(self, *args: Any, grid: Grid, **named: Any) -> None:
        module, interface = self.module, self.interface
        module.device._check()
        values = interface.order(args, named)
        fitted = [interface.fit(i, value) for i, value in enumerate(values)]
        interface.check_overlaps(fitted)
        array = (_library.HostArg * len(fitted))()
        for slot, parameter, value in zip(array, interface.parameters, fitted):
            if not parameter.is_buffer:
                slot.kind, slot.bits = 0, value
                continue
            memory, shape = value
            if memory.place != "cpu":
                raise ArgumentError("argument '%s' of kernel '%s' lies on a GPU, device '%s' takes arrays of the host" % (
                    parameter.name, self.name, module.device.name))
            slot.kind, slot.data, slot.count = 1, memory.address, 1
            slot.extents = tuple(shape) + (1,) * (3 - len(shape))
            for extent in shape:
                slot.count *= extent
        extents = (c.c_uint32 * 3)(*grid_extents(grid))
        said = c.c_void_p()
        with module._lock:
            if module._handle is None:
                raise ArgumentError("kernel '%s' belongs to a module that is closed" % self.name)
            failed = module._library.qdcHostLaunch(module._handle, self._encoded, extents, array, len(fitted),
                                                   c.byref(said))
        text = _library.take_string(module._library, said)
        if failed:
            raise LaunchError("kernel '%s' failed on %s: %s" % (self.name, module.device.name, text.strip()))

    def __repr__(self) -> str:
        return "<qdc.Kernel '%s'(%s)>" % (self.name, ", ".join(p.name for p in self.parameters))
