"""The decorator: finds a function's source, lowers it once, and launches it."""
import ast
import inspect
import textwrap
import threading

import qdc
from qdc.types import ArrayType, ScalarType

from .errors import fail, with_sources
from .lowering import Function, Lowering

PYTHON_TYPES = {int: qdc.i32, float: qdc.f32, bool: qdc.i1}


def parse(function):
    """The function's syntax tree, with lines and columns of its file, and that file."""
    file = inspect.getsourcefile(function) or "<unknown>"
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise qdc.CompileError("the source of '%s' is not at hand: kernels stand in files" % function.__name__) from None
    text = "".join(lines)
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError as error:  # a lambda in the middle of an expression
        raise qdc.CompileError("the source of '%s' cannot be read by itself (%s)" % (function.__name__, error)) from None
    indent = len(lines[0]) - len(lines[0].lstrip())
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and type(node.slice).__name__ == "Index":
            node.slice = node.slice.value  # as Python 3.8 has it
        if hasattr(node, "lineno"):
            node.lineno += start - 1
            node.col_offset += indent
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if found is None:
        raise qdc.CompileError("'%s' is no function with a 'def'" % function.__name__)
    return found, file


class Kernel:
    """A kernel in Python. `qir` is what becomes of it; calling it launches it, on the cpu or the `device` given: a name
    or a `qdc.Device`. What the function takes from around it is read when it is first lowered."""

    def __init__(self, function, block, options):
        self.function, self.block, self.options = function, block, options
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._text = None
        self._loaded = {}
        self._lock = threading.Lock()

    @property
    def qir(self):
        """The kernel as QIR; each op carries its place in the Python source."""
        with self._lock:
            if self._text is None:
                self._text = self._lower()
            return self._text

    def _lower(self):
        node, file = parse(self.function)
        function = Function(self.function, node, file)
        types = {}
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults:
            fail(file, node, "a kernel takes plain parameters: no *args, no keywords, no defaults")
        for argument in arguments.args:
            type = self._type(argument, function)
            types[argument.arg] = type
        module = qdc.Builder(file)
        try:
            built = module.kernel(self.__name__, types, self.block, attributes=False, **self.options)
        except qdc.ArgumentError as error:
            fail(file, node, str(error))
        Lowering(built).run_kernel(function, {name: built[name] for name in types})
        return module.to_qir()

    def _type(self, argument, function):
        if argument.annotation is None:
            fail(function.file, argument, "parameter '%s' needs a type, as in %s: f32" % (argument.arg, argument.arg))
        type = self.function.__annotations__.get(argument.arg)
        if isinstance(type, str):
            # `from __future__ import annotations`
            try:
                type = eval(type, function.globals, dict(function.closure))
            except Exception as error:
                fail(function.file, argument, "the type of '%s' cannot be found: %s" % (argument.arg, error))
        type = PYTHON_TYPES.get(type, type) if isinstance(type, __builtins_type__) else type
        if not isinstance(type, ScalarType) and not (isinstance(type, ArrayType) and type.space == "buffer"):
            fail(function.file, argument, "parameter '%s' is %r, expected a scalar type or buffer(...)" % (argument.arg, type))
        return type

    def compile(self, targets, **options):
        """`qdc.compile` of the kernel."""
        return self._pointing(lambda: qdc.compile(self.qir, targets, name=self.__name__ + ".qir", **options))

    def on(self, device="cpu", **options):
        """The kernel loaded on a device, which is kept: a `qdc.Kernel`."""
        key = (device, tuple(sorted(options.items())))
        text = self.qir
        with self._lock:
            loaded = self._loaded.get(key)
            if loaded is None:
                opened = device if isinstance(device, qdc.Device) else qdc.Device(device, **options)
                module = self._pointing(lambda: opened.load(text, name=self.__name__ + ".qir"))
                loaded = self._loaded[key] = module[self.__name__]
            return loaded

    def __call__(self, *args, grid, device="cpu", **named):
        self.on(device)(*args, grid=grid, **named)

    @staticmethod
    def _pointing(action):
        try:
            return action()
        except qdc.CompileError as error:
            raise with_sources(error) from None


__builtins_type__ = type


def kernel(block, **options):
    """Makes a function a kernel whose blocks have so many threads: `@kernel(block=256)`, `@kernel(block=(16, 16))`.
    Options are those of `qdc.Builder.kernel`: resizable, min_blocks, max_registers."""
    def decorate(function):
        if not inspect.isfunction(function):
            raise qdc.ArgumentError("@kernel is for functions, got %s" % type(function).__name__)
        return Kernel(function, block, options)

    if inspect.isfunction(block):
        raise qdc.ArgumentError("@kernel needs the block's size, as in @kernel(block=256)")
    return decorate


def blocks(count, size):
    """How many blocks of a size cover so many elements."""
    return -(-count // size)
