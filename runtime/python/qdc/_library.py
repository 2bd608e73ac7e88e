"""Finds and opens the shared libraries, and says what their functions take.

Looked through, in this order: the folders or files of the environment variable QDC_LIBRARY_PATH, and where it is set
nothing else; the folder of this package; the build folder of the source tree that this package lies in; the folder
`lib` of the Python environment; what the system's loader finds.

Structures are read from and written to by the libraries up to their own size, which may be larger than the one known
here: each has room behind its last member, and the size that a library's init function sets is kept.
"""
from __future__ import annotations

import ctypes as c
import os
import sys
import threading
from typing import Any, Dict, List, Optional

from .errors import ArgumentError, LibraryError

VARIABLE = "QDC_LIBRARY_PATH"
COMPILER_VERSION = 2

_lock = threading.Lock()
_libraries: Dict[str, Any] = {}


class CompileOptions(c.Structure):
    _fields_ = [("structSize", c.c_uint32), ("targets", c.c_char_p), ("emit", c.c_char_p),
                ("subgroupSize", c.c_uint32), ("optLevel", c.c_uint32), ("stripQir", c.c_uint32),
                ("blocks", c.c_char_p), ("room", c.c_uint8 * 256)]


class HostOptions(c.Structure):
    _fields_ = [("structSize", c.c_uint32), ("device", c.c_char_p), ("subgroupSize", c.c_uint32),
                ("optLevel", c.c_uint32), ("threads", c.c_uint32), ("checks", c.c_char_p), ("blocks", c.c_char_p),
                ("room", c.c_uint8 * 256)]


class HostArg(c.Structure):
    _fields_ = [("kind", c.c_uint32), ("data", c.c_void_p), ("count", c.c_int64), ("bits", c.c_uint64),
                ("extents", c.c_int64 * 3)]


_COMPILER = {
    "qdcInitCompileOptions": (None, [c.POINTER(CompileOptions)]),
    "qdcCompile": (c.c_void_p, [c.c_char_p, c.c_size_t, c.c_char_p, c.POINTER(CompileOptions)]),
    "qdcResultOk": (c.c_int, [c.c_void_p]),
    "qdcResultData": (c.c_void_p, [c.c_void_p, c.POINTER(c.c_size_t)]),
    "qdcResultDiagnostics": (c.c_char_p, [c.c_void_p]),
    "qdcResultFree": (None, [c.c_void_p]),
    "qdcInitHostOptions": (None, [c.POINTER(HostOptions)]),
    "qdcHostLoad": (c.c_void_p, [c.c_char_p, c.c_size_t, c.c_char_p, c.POINTER(HostOptions), c.POINTER(c.c_void_p)]),
    "qdcHostInterface": (c.c_char_p, [c.c_void_p]),
    "qdcHostLaunch": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_uint32), c.POINTER(HostArg), c.c_size_t,
                                c.POINTER(c.c_void_p)]),
    "qdcHostUnload": (None, [c.c_void_p]),
    "qdcFreeString": (None, [c.c_void_p]),
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
    return _get("libqdcompiler", dict(_COMPILER, qdcApiVersion=(c.c_uint32, [])), "qdcApiVersion", COMPILER_VERSION)


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


def take_string(library: Any, pointer: c.c_void_p) -> str:
    """The text of a string that the caller frees; "" where there is none."""
    if not pointer.value:
        return ""
    try:
        return c.string_at(pointer.value).decode("utf-8", "replace")
    finally:
        library.qdcFreeString(pointer)
