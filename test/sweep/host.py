"""The devices that the compiler's library has in itself, by its C interface."""
import ctypes

import numpy as np

import compare
import scalars

FAMILIES = ("interp", "cpu", "sim")


class HostOptions(ctypes.Structure):
    _fields_ = [("structSize", ctypes.c_uint32), ("device", ctypes.c_char_p), ("subgroupSize", ctypes.c_uint32),
                ("optLevel", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("checks", ctypes.c_char_p)]


class HostArg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("data", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("bits", ctypes.c_uint64), ("extents", ctypes.c_int64 * 3)]


class Compiler:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.qdcHostLoad.restype = ctypes.c_void_p
        self.library.qdcHostLoad.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                             ctypes.POINTER(HostOptions), ctypes.POINTER(ctypes.c_void_p)]
        self.library.qdcHostLaunch.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32),
                                               ctypes.POINTER(HostArg), ctypes.c_size_t,
                                               ctypes.POINTER(ctypes.c_void_p)]
        self.library.qdcHostUnload.argtypes = [ctypes.c_void_p]
        self.library.qdcFreeString.argtypes = [ctypes.c_void_p]

    def take(self, text):
        """A string that the library gave."""
        result = ctypes.string_at(text).decode(errors="replace").strip() if text else ""
        if text:
            self.library.qdcFreeString(text)
        return result

    def load(self, text, device, size):
        """A module, or None and the diagnostics."""
        options = HostOptions()
        options.structSize = ctypes.sizeof(options)
        self.library.qdcInitHostOptions(ctypes.byref(options))
        options.device, options.subgroupSize, options.threads = device.encode(), size, 1
        diagnostics = ctypes.c_void_p()
        qir = text.encode()
        module = self.library.qdcHostLoad(qir, len(qir), b"sweep.qir", ctypes.byref(options), ctypes.byref(diagnostics))
        return module, self.take(diagnostics.value)

    def launch(self, module, name, grid, args):
        """None, or the error."""
        diagnostics = ctypes.c_void_p()
        failed = self.library.qdcHostLaunch(module, name.encode(), (ctypes.c_uint32 * 3)(*grid),
                                            (HostArg * len(args))(*args), len(args), ctypes.byref(diagnostics))
        text = self.take(diagnostics.value)
        return text or "failed without a message" if failed else None


def launch(compiler, module, case):
    """What the case's outputs hold afterwards, as bytes, or the error."""
    arrays = [np.ascontiguousarray(scalars.to_storage(type, values)) for _, type, values in case.inputs]
    outputs = [compare.filled(output) for output in case.outputs]
    args = [HostArg(1, a.ctypes.data, a.size, 0) for a in arrays]
    args += [HostArg(0, None, 0, value & ((1 << scalars.width(type)) - 1)) for _, type, value in case.scalars]
    args += [HostArg(1, bytes_.ctypes.data, o.expected.size, 0) for o, bytes_ in zip(case.outputs, outputs)]
    error = compiler.launch(module, case.name, case.grid, args)
    return (None, error) if error else (outputs, None)


def run(compiler, module, case):
    """None, or what went wrong."""
    outputs, error = launch(compiler, module, case)
    return error or compare.compare(case, outputs)


def interpret(compiler, case, size):
    """The case with the interpreter's results as what is expected."""
    module, diagnostics = compiler.load(case.text, "interp", size)
    if not module:
        raise RuntimeError("%s does not load: %s\n%s" % (case.name, diagnostics, case.text))
    outputs, error = launch(compiler, module, case)
    compiler.library.qdcHostUnload(module)
    if error:
        raise RuntimeError("%s fails on the interpreter: %s\n%s" % (case.name, error, case.text))
    results = [o._replace(expected=bytes_.view(scalars.storage(o.type))) for o, bytes_ in zip(case.outputs, outputs)]
    return case._replace(outputs=results)
