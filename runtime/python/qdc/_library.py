"""Finds and opens the shared libraries, and says what their functions take.

Looked through, in this order: the folders or files of the environment variable QDC_LIBRARY_PATH, and where it is set
nothing else; the folder of this package; the build folder of the source tree that this package lies in; the folder
`lib` of the Python environment; what the system's loader finds.

Structures carry their size as it is known here, so that older and newer libraries take them.
"""
from __future__ import annotations

import ctypes as c
import os
import sys
import threading
from typing import Any, Dict, List, Optional, TypeVar

from .errors import ArgumentError, LibraryError

VARIABLE = "QDC_LIBRARY_PATH"
COMPILER_VERSION = 2
RUNTIME_VERSION = 1

_lock = threading.Lock()
_libraries: Dict[str, Any] = {}


class CompileOptions(c.Structure):
    _fields_ = [("structSize", c.c_uint32), ("targets", c.c_char_p), ("emit", c.c_char_p),
                ("subgroupSize", c.c_uint32), ("optLevel", c.c_uint32), ("stripQir", c.c_uint32),
                ("blocks", c.c_char_p), ("divergent", c.c_char_p), ("remarks", c.c_char_p), ("statistics", c.c_uint32),
                ("cache", c.c_uint32), ("cacheFolder", c.c_char_p), ("cacheBytes", c.c_uint64), ("bind", c.c_char_p),
                ("isolate", c.c_uint32), ("timeLimit", c.c_uint32), ("memoryLimit", c.c_uint32),
                ("reserved", c.c_uint32), ("debug", c.c_uint32)]


class Diagnostic(c.Structure):
    _fields_ = [("severity", c.c_uint32), ("line", c.c_uint32), ("column", c.c_uint32), ("numNotes", c.c_uint32),
                ("file", c.c_char_p), ("text", c.c_char_p), ("excerpt", c.c_char_p)]


class Variant(c.Structure):
    _fields_ = [("target", c.c_char_p), ("kind", c.c_char_p), ("code", c.c_void_p), ("codeSize", c.c_size_t),
                ("interface", c.c_char_p), ("statistics", c.c_char_p)]


INTERRUPT = c.CFUNCTYPE(c.c_int, c.c_void_p)


class DeviceOptions(c.Structure):
    _fields_ = [("structSize", c.c_uint32), ("subgroupSize", c.c_uint32), ("optLevel", c.c_uint32),
                ("threads", c.c_uint32), ("checks", c.c_char_p), ("blocks", c.c_char_p), ("bind", c.c_char_p),
                ("launchTimeLimit", c.c_uint32), ("isolate", c.c_uint32), ("compileTimeLimit", c.c_uint32),
                ("compileMemoryLimit", c.c_uint32), ("interrupt", INTERRUPT), ("interruptContext", c.c_void_p),
                ("debug", c.c_uint32)]


class DeviceProperties(c.Structure):
    _fields_ = [("structSize", c.c_uint32), ("defaultSubgroupSize", c.c_uint32), ("smallestSubgroupSize", c.c_uint32),
                ("largestSubgroupSize", c.c_uint32), ("name", c.c_char_p), ("description", c.c_char_p),
                ("target", c.c_char_p), ("multiprocessors", c.c_uint32), ("maxBlockThreads", c.c_uint32),
                ("maxGrid", c.c_uint64 * 3), ("maxSharedBytes", c.c_uint64), ("memoryBytes", c.c_uint64),
                ("isGpu", c.c_uint32), ("takesPointers", c.c_uint32), ("isHostMemory", c.c_uint32)]


class Argument(c.Structure):
    _fields_ = [("kind", c.c_uint32), ("type", c.c_uint32), ("lanes", c.c_uint32), ("rank", c.c_uint32),
                ("extents", c.c_int64 * 3), ("bits", c.c_uint64), ("buffer", c.c_void_p), ("offset", c.c_uint64),
                ("pointer", c.c_void_p), ("reserved", c.c_uint64 * 2)]


OK, INVALID, FAILED = 0, 1, 2
SCALAR, BUFFER, POINTER = 0, 1, 2
TYPES = {name: number for number, name in enumerate(("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"))}

_SIZE_T, _VOID = c.POINTER(c.c_size_t), c.c_void_p
_COMPILER = {
    "qdcApiVersion": (c.c_uint32, []),
    "qdcVersionText": (c.c_char_p, []),
    "qdcDescribeTargets": (_VOID, []),
    "qdcInitCompileOptionsSized": (None, [c.POINTER(CompileOptions), c.c_uint32]),
    "qdcCompile": (_VOID, [c.c_char_p, c.c_size_t, c.c_char_p, c.POINTER(CompileOptions)]),
    "qdcResultOk": (c.c_int, [_VOID]),
    "qdcResultIsCached": (c.c_int, [_VOID]),
    "qdcResultData": (_VOID, [_VOID, _SIZE_T]),
    "qdcResultDiagnostics": (c.c_char_p, [_VOID]),
    "qdcResultNumDiagnostics": (c.c_size_t, [_VOID]),
    "qdcResultDiagnostic": (c.POINTER(Diagnostic), [_VOID, c.c_size_t]),
    "qdcResultNote": (c.POINTER(Diagnostic), [_VOID, c.c_size_t, c.c_size_t]),
    "qdcResultNumVariants": (c.c_size_t, [_VOID]),
    "qdcResultVariant": (c.POINTER(Variant), [_VOID, c.c_size_t]),
    "qdcResultFree": (None, [_VOID]),
    "qdcDescribeCache": (_VOID, [c.POINTER(CompileOptions)]),
    "qdcFreeString": (None, [_VOID]),
}
_RUNTIME = {
    "qdrtApiVersion": (c.c_uint32, []),
    "qdrtErrorText": (c.c_char_p, []),
    "qdrtListDevices": (c.c_int, [c.POINTER(_VOID)]),
    "qdrtDeviceListSize": (c.c_size_t, [_VOID]),
    "qdrtDeviceListName": (c.c_char_p, [_VOID, c.c_size_t]),
    "qdrtDeviceListText": (c.c_char_p, [_VOID, c.c_size_t]),
    "qdrtDeviceListPresent": (c.c_int, [_VOID, c.c_size_t]),
    "qdrtDeviceListFree": (None, [_VOID]),
    "qdrtInitDeviceOptionsSized": (None, [c.POINTER(DeviceOptions), c.c_uint32]),
    "qdrtDeviceOpen": (c.c_int, [c.c_char_p, c.POINTER(DeviceOptions), c.POINTER(_VOID)]),
    "qdrtDeviceClose": (None, [_VOID]),
    "qdrtDeviceGetProperties": (c.c_int, [_VOID, c.POINTER(DeviceProperties)]),
    "qdrtBufferAllocate": (c.c_int, [_VOID, c.c_uint64, c.POINTER(_VOID)]),
    "qdrtBufferFree": (None, [_VOID]),
    "qdrtBufferAddress": (c.c_uint64, [_VOID]),
    "qdrtBufferMap": (_VOID, [_VOID]),
    "qdrtBufferUpload": (c.c_int, [_VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtBufferDownload": (c.c_int, [_VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtBufferFill": (c.c_int, [_VOID, c.c_uint64, c.c_uint32, c.c_uint64]),
    "qdrtBufferCopy": (c.c_int, [_VOID, c.c_uint64, _VOID, c.c_uint64, c.c_uint64]),
    "qdrtModuleLoad": (c.c_int, [_VOID, c.c_char_p, c.c_size_t, c.c_char_p, c.POINTER(_VOID)]),
    "qdrtModuleFree": (None, [_VOID]),
    "qdrtModuleInterface": (c.c_char_p, [_VOID]),
    "qdrtModuleWarnings": (c.c_char_p, [_VOID]),
    "qdrtModuleGetKernel": (c.c_int, [_VOID, c.c_char_p, c.POINTER(_VOID)]),
    "qdrtKernelOccupancy": (c.c_int, [_VOID, c.POINTER(c.c_uint64), c.POINTER(c.c_uint64)]),
    "qdrtDeviceSynchronize": (c.c_int, [_VOID]),
    "qdrtPrepare": (c.c_int, [_VOID, c.POINTER(c.c_uint32), c.POINTER(Argument), c.c_size_t, c.POINTER(_VOID)]),
    "qdrtPreparedSetArgument": (c.c_int, [_VOID, c.c_size_t, c.POINTER(Argument)]),
    "qdrtPreparedSetGrid": (c.c_int, [_VOID, c.POINTER(c.c_uint32)]),
    "qdrtPreparedLaunch": (c.c_int, [_VOID, _VOID]),
    "qdrtPreparedFree": (None, [_VOID]),
    "qdrtStreamCreate": (c.c_int, [_VOID, c.POINTER(_VOID)]),
    "qdrtStreamWrap": (c.c_int, [_VOID, _VOID, c.POINTER(_VOID)]),
    "qdrtStreamFree": (None, [_VOID]),
    "qdrtStreamNative": (_VOID, [_VOID]),
    "qdrtStreamSynchronize": (c.c_int, [_VOID]),
    "qdrtStreamQuery": (c.c_int, [_VOID, c.POINTER(c.c_int)]),
    "qdrtStreamUpload": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtStreamDownload": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtStreamCopy": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64, c.c_uint64]),
    "qdrtStreamFill": (c.c_int, [_VOID, _VOID, c.c_uint64, c.c_uint32, c.c_uint64]),
    "qdrtStreamWaitEvent": (c.c_int, [_VOID, _VOID]),
    "qdrtEventCreate": (c.c_int, [_VOID, c.POINTER(_VOID)]),
    "qdrtEventFree": (None, [_VOID]),
    "qdrtEventRecord": (c.c_int, [_VOID, _VOID]),
    "qdrtEventSynchronize": (c.c_int, [_VOID]),
    "qdrtEventQuery": (c.c_int, [_VOID, c.POINTER(c.c_int)]),
    "qdrtEventElapsed": (c.c_int, [_VOID, _VOID, c.POINTER(c.c_double)]),
    "qdrtGraphCreate": (c.c_int, [_VOID, c.POINTER(_VOID)]),
    "qdrtGraphFree": (None, [_VOID]),
    "qdrtGraphAddLaunch": (c.c_int, [_VOID, _VOID]),
    "qdrtGraphAddUpload": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtGraphAddDownload": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64]),
    "qdrtGraphAddCopy": (c.c_int, [_VOID, _VOID, c.c_uint64, _VOID, c.c_uint64, c.c_uint64]),
    "qdrtGraphAddFill": (c.c_int, [_VOID, _VOID, c.c_uint64, c.c_uint32, c.c_uint64]),
    "qdrtGraphLaunch": (c.c_int, [_VOID, _VOID]),
    "qdrtLaunch": (c.c_int, [_VOID, c.POINTER(c.c_uint32), c.POINTER(Argument), c.c_size_t, c.POINTER(c.c_double)]),
}


def _candidates(stem: str) -> List[str]:
    names = [stem + ".so", stem + ".so.1"]
    chosen = os.environ.get(VARIABLE)
    if chosen:
        places: List[str] = []
        for entry in chosen.split(os.pathsep):
            if os.path.isfile(entry):
                # A file names its library; the other one lies beside it.
                if os.path.basename(entry).startswith(stem):
                    places.append(entry)
                    continue
                entry = os.path.dirname(entry)
            places += [os.path.join(entry, name) for name in names if entry]
        return places
    package = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.dirname(os.path.dirname(os.path.dirname(package)))
    folders = [package, os.path.join(package, "lib")]
    if os.path.exists(os.path.join(tree, "compiler", "qdc.h")):
        folders.append(os.path.join(tree, "build", "lib"))
    folders.append(os.path.join(sys.prefix, "lib"))
    return [os.path.join(folder, name) for folder in folders for name in names] + names


def _open(stem: str, functions: Dict[str, Any], version: str, expected: int) -> Any:
    tried, library, failure = [], None, None
    for path in _candidates(stem):
        is_file = os.path.sep in path
        if is_file:
            tried.append(path)
            if not os.path.exists(path):
                continue
        try:
            library = c.CDLL(path)
            break
        except OSError as error:
            # A name that the loader does not know is no failure of a file that exists.
            failure = str(error) if is_file else failure
    if library is None:
        raise LibraryError("%s.so cannot be opened (%s); the environment variable %s can name its folder" % (
            stem, failure or "not found in %s" % ", ".join(sorted({os.path.dirname(p) for p in tried})), VARIABLE))
    for name, (result, arguments) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError("%s has no function %s" % (library._name, name)) from None
        function.restype, function.argtypes = result, arguments
    found = getattr(library, version)()
    if found != expected:
        raise LibraryError("%s has interface version %d, this package expects %d" % (library._name, found, expected))
    return library


def _get(stem: str, *description: Any) -> Any:
    library = _libraries.get(stem)
    if library is None:
        with _lock:
            library = _libraries.get(stem)
            if library is None:
                library = _libraries[stem] = _open(stem, *description)
    return library


def compiler() -> Any:
    """libqdcompiler, opened at the first call."""
    return _get("libqdcompiler", _COMPILER, "qdcApiVersion", COMPILER_VERSION)


def runtime() -> Any:
    """libqdruntime, opened at the first call. It opens the compiler library itself where one lies beside it or where
    the loader finds one; another one that this package would find is opened for it."""
    library = _libraries.get("libqdruntime")
    if library is None:
        library = _get("libqdruntime", _RUNTIME, "qdrtApiVersion", RUNTIME_VERSION)
        folder = os.path.dirname(library._name)
        if not any(os.path.exists(os.path.join(folder, name)) for name in ("libqdcompiler.so", "libqdcompiler.so.1")):
            try:
                compiler()
            except LibraryError:
                pass  # the runtime says so where it needs one
    return library


_Self = TypeVar("_Self")


class OfProcess:
    """Has a handle of this process, which no copy and no other process can own."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a qdc.%s belongs to the process that made it and cannot be copied or pickled"
                        % type(self).__name__)


class Owner(OfProcess):
    """Has a handle that a function of the runtime frees, at the latest when nobody has the object any more."""

    _free = ""  # the function's name

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and getattr(self, "_library", None):
            getattr(self._library, self._free)(handle)


def encode(text: Any, what: str) -> bytes:
    """Text for a C function, which ends at its first zero."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str):
        raise ArgumentError("%s is a text, got %s" % (what, text.__class__.__name__))
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise ArgumentError("%s is not valid Unicode" % what) from None
    if b"\0" in encoded:
        raise ArgumentError("%s holds a zero character" % what)
    return encoded


def encode_optional(text: Optional[Any], what: str) -> Optional[bytes]:
    return None if text is None else encode(text, what)


def unsigned(value: Any, what: str, limit: int = 2**32 - 1) -> int:
    """An integer for a C function, which would otherwise be cut to its width."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError("%s is an integer, got %s" % (what, value.__class__.__name__)) from None
    if not 0 <= number <= limit:
        raise ArgumentError("%s is from 0 to %d, got %d" % (what, limit, number))
    return number


def flag(value: Any, what: str) -> bool:
    """Something that is true or false."""
    if not isinstance(value, (bool, int)):
        raise ArgumentError("%s is true or false, got %s" % (what, value.__class__.__name__))
    return bool(value)


def text(value: Optional[bytes]) -> str:
    """A C string of a library."""
    return (value or b"").decode("utf-8", "replace")


def take_string(library: Any, pointer: Any) -> str:
    """The text of a string that the caller frees; "" where there is none."""
    if not pointer:
        return ""
    try:
        return text(c.string_at(pointer))
    finally:
        library.qdcFreeString(pointer)
