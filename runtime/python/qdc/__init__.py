"""qdc: build, compile and launch GPU kernels.

    import numpy, qdc

    ptx = qdc.compile(text, "nvptx:sm_90", emit="ptx").text
    kernel = qdc.Device("cpu").load(text)["scale"]
    kernel(4, 2.5, x, grid=1)

Names are loaded when they are first used, so that the import costs next to nothing; the shared libraries are opened
by the first call that needs them.
"""
from __future__ import annotations

TYPE_CHECKING = False  # what type checkers take for true; `typing` itself takes longer than everything else here

__version__ = "0.1.0"

_NAMES = {
    "errors": ("ArgumentError", "CompileError", "DeviceError", "Diagnostic", "Error", "LaunchError", "LibraryError"),
    "streams": ("Event", "Graph", "Prepared", "Stream"),
    "types": ("ArrayType", "ScalarType", "VectorType", "bf16", "buffer", "f16", "f32", "f64", "i1", "i16", "i32", "i64",
              "i8", "private", "shared", "vector"),
    "values": ("Array", "Value"),
    "arrays": ("Span", "View", "span", "view"),
    "builder": ("Builder", "Function", "KernelBuilder"),
    "compiler": ("Artifact", "Variant", "compile", "describe_targets", "version"),
    "device": ("Buffer", "Device", "Kernel", "Module", "devices"),
    "interface": ("KernelInterface", "Parameter"),
}
_PLACES = {name: place for place, names in _NAMES.items() for name in names}

__all__ = sorted(_PLACES)

if TYPE_CHECKING:
    from typing import Any, List

    from .arrays import Span, View, span, view
    from .builder import Builder, Function, KernelBuilder
    from .compiler import Artifact, Variant, compile, describe_targets, version
    from .device import Buffer, Device, Kernel, Module, devices
    from .errors import ArgumentError, CompileError, DeviceError, Diagnostic, Error, LaunchError, LibraryError
    from .interface import KernelInterface, Parameter
    from .streams import Event, Graph, Prepared, Stream
    from .types import (ArrayType, ScalarType, VectorType, bf16, buffer, f16, f32, f64, i1, i16, i32, i64, i8, private,
                        shared, vector)
    from .values import Array, Value


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError("module 'qdc' has no attribute '%s'" % name)
    import importlib
    value = getattr(importlib.import_module("." + place, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(list(globals()) + __all__)
