"""Compiling QIR: text or bytecode in, an artifact for one target or several out."""
from __future__ import annotations

import ctypes as c
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library
from .errors import ArgumentError, CompileError, Diagnostic, parse_diagnostics

Blocks = Union[str, Mapping[str, Union[int, Sequence[int]]], None]


class Artifact:
    """What a compilation gives: the bytes of `data`, of the kind `emit`, and the compiler's warnings and remarks.

    An artifact of kind "qdb" is a bundle, which `Device.load` takes.
    """

    __slots__ = ("data", "emit", "name", "diagnostics")

    def __init__(self, data: bytes, emit: str, name: str, diagnostics: Sequence[Diagnostic]):
        self.data, self.emit, self.name, self.diagnostics = data, emit, name, list(diagnostics)

    @property
    def text(self) -> str:
        """The data as text, for kinds that are text (PTX, assembly, IR, statistics)."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            raise ArgumentError("an artifact of kind '%s' is no text" % self.emit) from None

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the data to a file."""
        with open(path, "wb") as file:
            file.write(self.data)

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return "<qdc.Artifact '%s' of '%s', %d bytes>" % (self.emit, self.name, len(self.data))


def source_of(source: Any, name: Optional[str]) -> Tuple[bytes, str]:
    """The bytes of a program and the name it goes by: text, bytecode, an artifact, a builder's module, or a file."""
    if isinstance(source, Artifact):
        return source.data, name or source.name
    if isinstance(source, os.PathLike):
        with open(source, "rb") as file:
            return file.read(), name or os.fspath(source)
    if hasattr(source, "to_qir"):
        name = name or getattr(source, "name", None)
        source = source.to_qir()
    if isinstance(source, str):
        try:
            return source.encode(), name or "<input>"
        except UnicodeEncodeError:
            raise ArgumentError("the program is not valid Unicode") from None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), name or "<input>"
    raise ArgumentError("a program is text, bytes, a path, an artifact or a module, got %s" % source.__class__.__name__)


def blocks_text(blocks: Blocks) -> Optional[bytes]:
    """Block sizes as the C interface takes them: "sum=128,scan=32x8"."""
    if blocks is None or isinstance(blocks, str):
        return _library.encode_optional(blocks, "blocks")
    if not isinstance(blocks, Mapping):
        raise ArgumentError("blocks maps kernels to sizes, got %s" % blocks.__class__.__name__)
    rows = []
    for kernel, size in blocks.items():
        extents = size if isinstance(size, (tuple, list)) else (size,)
        rows.append("%s=%s" % (kernel, "x".join(str(_library.unsigned(e, "a block size")) for e in extents)))
    return _library.encode(",".join(rows), "blocks")


def compile(source: Any, targets: Union[str, Iterable[str]], *, emit: str = "qdb", name: Optional[str] = None,
            subgroup_size: int = 0, opt_level: int = 2, strip_qir: bool = False, blocks: Blocks = None) -> Artifact:
    """Compiles a program for one target or several.

    `source` is QIR as text or bytecode, a path to a file of it, or a module of `qdc.Builder`. `targets` are as on the
    command line: "nvptx:sm_90", "amdgcn:gfx942,spirv@32", or a list of such texts. `emit` is the kind of the artifact:
    "qdb" is a bundle of all targets, "ptx", "hsaco", "spirv", "asm", "stats" and others take one target each (`qdc
    --help` has the list). `blocks` gives resizable kernels their block sizes: {"sum": 128, "scan": (32, 8)}.

    Raises `CompileError`, with the diagnostics, where the program or the target is at fault.
    """
    library = _library.compiler()
    data, name = source_of(source, name)
    if not isinstance(targets, str):
        try:
            targets = ",".join(targets)
        except TypeError:
            raise ArgumentError("targets are a text or a list of texts, got %s" %
                                targets.__class__.__name__) from None
    options = _library.CompileOptions()
    library.qdcInitCompileOptions(c.byref(options))
    options.targets = _library.encode(targets, "targets")
    options.emit = _library.encode(emit, "emit")
    options.subgroupSize = _library.unsigned(subgroup_size, "subgroup_size")
    options.optLevel = _library.unsigned(opt_level, "opt_level", 3)
    options.stripQir = bool(strip_qir)
    options.blocks = blocks_text(blocks)
    result = library.qdcCompile(data, len(data), _library.encode(name, "name"), c.byref(options))
    if not result:
        raise CompileError("the compiler gave no result")
    try:
        text = (library.qdcResultDiagnostics(result) or b"").decode("utf-8", "replace")
        if not library.qdcResultOk(result):
            raise failure(text)
        size = c.c_size_t()
        pointer = library.qdcResultData(result, c.byref(size))
        return Artifact(c.string_at(pointer, size.value) if size.value else b"", emit, name, parse_diagnostics(text))
    finally:
        library.qdcResultFree(result)


def failure(text: str) -> CompileError:
    """The exception for what the compiler said."""
    text = text.strip()
    return CompileError(text or "the compiler failed without a word", parse_diagnostics(text))
