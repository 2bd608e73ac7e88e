"""Compiling QIR: text or bytecode in, an artifact for one target or several out."""
from __future__ import annotations

import ctypes as c
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library
from .errors import ArgumentError, CompileError, Diagnostic

Blocks = Union[str, Mapping[str, Union[int, Sequence[int]]], None]
Bind = Union[str, Mapping[str, Union[int, float]], None]


class Variant:
    """One target's code in an artifact: `target` in full ("nvptx:sm_90@32"), `kind`, `code`, and as JSON the kernels'
    `interface` and, where they were asked for, `statistics`."""

    __slots__ = ("target", "kind", "code", "interface", "statistics")

    def __init__(self, target: str, kind: str, code: bytes, interface: str, statistics: str):
        self.target, self.kind, self.code = target, kind, code
        self.interface, self.statistics = interface, statistics

    def __repr__(self) -> str:
        return "<qdc.Variant %s of '%s', %d bytes>" % (self.kind, self.target, len(self.code))


class Artifact:
    """What a compilation gives: the bytes of `data`, of the kind `emit`, the compiler's warnings and remarks, and what
    it consists of, a variant for each target. `cached` says whether it came out of a cache.

    An artifact of kind "qdb" is a bundle, which `Device.load` takes.
    """

    __slots__ = ("data", "emit", "name", "diagnostics", "variants", "cached")

    def __init__(self, data: bytes, emit: str, name: str, diagnostics: Sequence[Diagnostic] = (),
                 variants: Sequence[Variant] = (), cached: bool = False):
        self.data, self.emit, self.name, self.cached = data, emit, name, cached
        self.diagnostics, self.variants = list(diagnostics), list(variants)

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
        return source.data, source.name if name is None else name
    if isinstance(source, os.PathLike):
        with open(source, "rb") as file:
            return file.read(), os.fsdecode(source) if name is None else name
    if hasattr(source, "to_qir"):
        name = getattr(source, "name", None) if name is None else name
        source = source.to_qir()
    if isinstance(source, str):
        if source.endswith((".qir", ".qbc", ".qdb")) and "\n" not in source:
            raise ArgumentError("%r is no program; a file is a pathlib.Path" % source)
        try:
            return source.encode(), "<input>" if name is None else name
        except UnicodeEncodeError:
            raise ArgumentError("the program is not valid Unicode") from None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "<input>" if name is None else name
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


def bind_text(bind: Bind) -> Optional[bytes]:
    """Bound arguments as the C interface takes them: "n=1024,KERNEL.scale=0.5"."""
    if bind is None or isinstance(bind, str):
        return _library.encode_optional(bind, "bind")
    if not isinstance(bind, Mapping):
        raise ArgumentError("bind maps arguments to numbers, got %s" % bind.__class__.__name__)
    rows = []
    for name, value in bind.items():
        try:
            if value.__class__.__name__ in ("bool", "bool_"):  # NumPy's, too
                number: Any = int(value)
            else:
                number = value.__index__() if hasattr(value, "__index__") else repr(value.__float__())
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise ArgumentError("argument '%s' is bound to a number, got %s"
                                % (name, value.__class__.__name__)) from None
        rows.append("%s=%s" % (name, number))
    return _library.encode(",".join(rows), "bind")


CACHES = {None: 0, "off": 1, "memory": 2, "disk": 3}


def compile(source: Any, targets: Union[str, Iterable[str]], *, emit: str = "qdb", name: Optional[str] = None,
            subgroup_size: int = 0, opt_level: int = 2, strip_qir: bool = False, blocks: Blocks = None,
            bind: Bind = None, divergent: Optional[str] = None, remarks: Optional[str] = None, statistics: bool = False,
            cache: Optional[str] = None, cache_folder: Any = None, isolate: bool = False, time_limit: float = 0,
            memory_limit: int = 0, debug: bool = False) -> Artifact:
    """Compiles a program for one target or several.

    `source` is QIR as text or bytecode, a path to a file of it, or a module of `qdc.Builder`. `targets` are as on the
    command line: "nvptx:sm_90", "amdgcn:gfx942,spirv@32", or a list of such texts. `emit` is the kind of the artifact:
    "qdb" is a bundle of all targets, "ptx", "hsaco", "spirv", "asm", "stats" and others take one target each (`qdc
    --help` has the list). `blocks` gives resizable kernels their block sizes: {"sum": 128, "scan": (32, 8)}. `bind`
    makes scalar arguments constants: {"n": 1024, "scale.k": 0.5}. `divergent` is "error", "warn" or "allow", `remarks`
    "expand"; `statistics` counts instructions, for `Variant.statistics`. `cache` is "off", "memory" or "disk", and by
    default what the environment says. `isolate` compiles in a child process, the program qdc beside the library, so
    that not even a crash of the compiler ends this one; `time_limit` in seconds and `memory_limit` in MiB do so too,
    and end it. `debug` adds where in the source each instruction comes from, as `qdc -g` does.

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
    if not isinstance(cache, (str, type(None))) or cache not in CACHES:
        raise ArgumentError("cache is 'off', 'memory' or 'disk', got %r" % (cache,))
    options = _library.CompileOptions()
    library.qdcInitCompileOptionsSized(c.byref(options), c.sizeof(options))
    options.targets = _library.encode(targets, "targets")
    options.emit = _library.encode(emit, "emit")
    options.subgroupSize = _library.unsigned(subgroup_size, "subgroup_size")
    options.optLevel = _library.unsigned(opt_level, "opt_level", 3)
    options.stripQir = _library.flag(strip_qir, "strip_qir")
    options.statistics = _library.flag(statistics, "statistics")
    options.blocks, options.bind = blocks_text(blocks), bind_text(bind)
    options.divergent = _library.encode_optional(divergent, "divergent")
    options.remarks = _library.encode_optional(remarks, "remarks")
    options.cache = CACHES[cache]
    options.cacheFolder = _library.encode_optional(cache_folder, "cache_folder")
    options.isolate = _library.flag(isolate, "isolate")
    options.timeLimit = milliseconds(time_limit, "time_limit")
    options.memoryLimit = _library.unsigned(memory_limit, "memory_limit")
    options.debug = _library.flag(debug, "debug")
    result = library.qdcCompile(data, len(data), _library.encode(name, "name"), c.byref(options))
    try:
        said = _diagnostics(library, result)
        if not library.qdcResultOk(result):
            text = _library.text(library.qdcResultDiagnostics(result)).strip()
            raise CompileError(text or "the compiler failed without a word", said)
        size = c.c_size_t()
        pointer = library.qdcResultData(result, c.byref(size))
        return Artifact(c.string_at(pointer, size.value) if size.value else b"", emit, name, said,
                        _variants(library, result), bool(library.qdcResultIsCached(result)))
    finally:
        library.qdcResultFree(result)


def milliseconds(seconds: Any, what: str) -> int:
    """Of a limit in seconds; 0 is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= 4e6:
        raise ArgumentError("%s is from 0 to 4000000 seconds, got %r" % (what, seconds))
    return max(int(seconds * 1000), 1) if seconds else 0


SEVERITIES = {1: "error", 2: "warning", 3: "remark", 4: "note"}


def _diagnostic(row: Any, notes: Sequence[Diagnostic] = ()) -> Diagnostic:
    text = _library.text
    return Diagnostic(SEVERITIES.get(row.severity, "error"), text(row.text), text(row.file) or None, row.line or None,
                      row.column or None, text(row.excerpt) or None, notes)


def _diagnostics(library: Any, result: Any) -> List[Diagnostic]:
    found = []
    for i in range(library.qdcResultNumDiagnostics(result)):
        row = library.qdcResultDiagnostic(result, i)[0]
        found.append(_diagnostic(row, [_diagnostic(library.qdcResultNote(result, i, j)[0])
                                       for j in range(row.numNotes)]))
    return found


def _variants(library: Any, result: Any) -> List[Variant]:
    found = []
    for i in range(library.qdcResultNumVariants(result)):
        row = library.qdcResultVariant(result, i)[0]
        found.append(Variant(_library.text(row.target), _library.text(row.kind),
                             c.string_at(row.code, row.codeSize) if row.codeSize else b"",
                             _library.text(row.interface), _library.text(row.statistics)))
    return found


def version() -> str:
    """The compiler's version and LLVM's."""
    return _library.text(_library.compiler().qdcVersionText())


def describe_targets() -> str:
    """The table of targets, chips and subgroup sizes that `qdc --list-targets` prints."""
    library = _library.compiler()
    return _library.take_string(library, library.qdcDescribeTargets())
