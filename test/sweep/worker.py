"""Runs cases on one host device in this process, which a crash may end: results go out line by line.

usage: worker.py LIBRARY JOB.pickle   (JOB: device, size, cases; each result is a line of JSON)
"""
import ctypes
import json
import pickle
import sys

import numpy as np

import scalars

FILL = 0x5A  # what the output holds before


class HostOptions(ctypes.Structure):
    _fields_ = [("structSize", ctypes.c_uint32), ("device", ctypes.c_char_p), ("subgroupSize", ctypes.c_uint32),
                ("optLevel", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("checks", ctypes.c_char_p)]


class HostArg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("data", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("bits", ctypes.c_uint64)]


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
    """What the case's output holds afterwards, as bytes, or the error."""
    arrays = [np.ascontiguousarray(scalars.to_storage(type, values)) for _, type, values in case.inputs]
    output = np.full(case.expected.size * scalars.storage(case.type).itemsize, FILL, np.uint8)
    args = [HostArg(1, a.ctypes.data, a.size, 0) for a in arrays]
    args += [HostArg(0, None, 0, value & ((1 << scalars.width(type)) - 1)) for _, type, value in case.scalars]
    args.append(HostArg(1, output.ctypes.data, case.expected.size, 0))
    error = compiler.launch(module, case.name, case.grid, args)
    return (None, error) if error else (output, None)


def run(compiler, module, case):
    """None, or what went wrong."""
    output, error = launch(compiler, module, case)
    return error or compare(case, output)


def interpret(compiler, case, size):
    """The case with the interpreter's results as what is expected."""
    module, diagnostics = compiler.load(case.text, "interp", size)
    if not module:
        raise RuntimeError("%s does not load: %s\n%s" % (case.name, diagnostics, case.text))
    output, error = launch(compiler, module, case)
    compiler.library.qdcHostUnload(module)
    if error:
        raise RuntimeError("%s fails on the interpreter: %s\n%s" % (case.name, error, case.text))
    return case._replace(expected=output.view(scalars.storage(case.type)))


def compare(case, output, is_vulkan=False):
    size = scalars.storage(case.type).itemsize
    rows = output.reshape(-1, size)
    compared = np.ones(len(rows), bool) if case.compared is None else case.compared
    touched = (rows != FILL).any(axis=1) & ~compared
    if touched.any():
        return "element %d is written, expected it to be left alone" % touched.argmax()
    if case.type == "i1":
        got = rows[:, 0]
        differs = compared & (got != case.expected)
    else:
        got = scalars.from_storage(case.type, output.view(scalars.storage(case.type)))
        expected = scalars.rounded(case.type, case.expected)
        differs = compared & ~scalars.same(case.type, expected, got, case.zero_sign)
        if is_vulkan and case.on_vulkan is not None:
            differs &= ~scalars.same(case.type, case.on_vulkan, got, case.zero_sign)
    if not differs.any():
        return None
    first = int(differs.argmax())
    given = ", ".join("%s=%s" % (name, values[first]) for name, _, values in case.inputs if name != "ok")
    return "%d of %d elements differ; y[%d] is %s, expected %s (%s)" % (
        differs.sum(), compared.sum(), first, got[first], case.expected[first], given)


def report(case, status, text=""):
    print(json.dumps([case.name, status, text]), flush=True)


def run_cases(compiler, device, size, cases):
    """Loads all kernels as one module; where that is refused, halves of it, until the refused ones stand alone."""
    print(json.dumps(["", "loading", cases[0].name]), flush=True)
    module, diagnostics = compiler.load("".join(case.text for case in cases), device, size)
    if not module:
        if len(cases) == 1:
            report(cases[0], "refused", diagnostics)
            return
        half = len(cases) // 2
        run_cases(compiler, device, size, cases[:half])
        run_cases(compiler, device, size, cases[half:])
        return
    for case in cases:
        print(json.dumps(["", "running", case.name]), flush=True)
        failure = run(compiler, module, case)
        report(case, "failed" if failure else "passed", failure or "")
    compiler.library.qdcHostUnload(module)


def main():
    with open(sys.argv[2], "rb") as file:
        device, size, cases, batch = pickle.load(file)
    compiler = Compiler(sys.argv[1])
    for start in range(0, len(cases), batch):
        run_cases(compiler, device, size, cases[start:start + batch])


if __name__ == "__main__":
    main()
