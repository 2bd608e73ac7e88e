"""Compiling: artifacts, diagnostics as values, and options that are wrong."""
import array
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import qdc
from qdc.errors import parse_diagnostics

import kernels

DIVERGENT = """\
qd.kernel @half(%y: !qd.buffer<f32>) block(32) {
  %t = qd.thread_id x : i32
  %s = arith.constant 16 : i32
  %c = arith.cmpi slt, %t, %s : i32
  %f = arith.sitofp %t : i32 to f32
  scf.if %c {
    %r = qd.subgroup.reduce_all add %f : f32
    qd.store %r, %y[%t] : !qd.buffer<f32>
  }
  qd.return
}
"""


class Artifacts(unittest.TestCase):
    def test_kinds(self):
        self.assertIn(".target sm_90", qdc.compile(kernels.SCALE, "nvptx:sm_90", emit="ptx").text)
        self.assertEqual(b"\x7fELF", qdc.compile(kernels.SCALE, "amdgcn:gfx942", emit="hsaco").data[:4])
        bundle = qdc.compile(kernels.SCALE.encode(), ["nvptx:sm_80", "spirv"], name="scale.qir")
        self.assertEqual("qdb", bundle.emit)
        self.assertGreater(len(bundle), len(qdc.compile(kernels.SCALE, ["nvptx:sm_80", "spirv"], strip_qir=True)))
        with self.assertRaisesRegex(qdc.ArgumentError, "no text"):
            qdc.compile(kernels.SCALE, "amdgcn", emit="hsaco").text

    def test_debug(self):
        ptx = qdc.compile(kernels.SCALE, "nvptx:sm_90", emit="ptx", name="scale.qir", debug=True).text
        self.assertIn('.file\t1 "scale.qir"', ptx)
        line = 1 + next(i for i, text in enumerate(kernels.SCALE.split("\n")) if "qd.store" in text)
        self.assertRegex(ptx, r"\.loc\t1 %d \d+\n\tst\.global" % line)
        self.assertNotIn(".loc", qdc.compile(kernels.SCALE, "nvptx:sm_90", emit="ptx").text)

    def test_bytecode(self):
        whole = qdc.compile(kernels.SCALE, [], emit="bytecode").data
        self.assertEqual(qdc.compile(kernels.SCALE, "nvptx", emit="ptx").data,
                         qdc.compile(whole, "nvptx", emit="ptx").data)
        damaged = whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]
        with self.assertRaisesRegex(qdc.CompileError, "this bytecode is damaged: its bytes have checksum"):
            qdc.compile(damaged, "nvptx")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            import pathlib
            path = pathlib.Path(folder, "scale.qir")
            path.write_text(kernels.SCALE)
            out = os.path.join(folder, "scale.qdb")
            qdc.compile(path, "nvptx").save(out)
            self.assertGreater(os.path.getsize(out), 100)
            path.write_text("qd.kernel")
            with self.assertRaisesRegex(qdc.CompileError, "scale.qir:1:10: error"):
                qdc.compile(path, "nvptx")

    def test_blocks(self):
        text = kernels.SCALE.replace("block(128)", "block(128) resizable")
        self.assertIn(".reqntid 64", qdc.compile(text, "nvptx", emit="ptx", blocks={"scale": 64}).text)
        with self.assertRaisesRegex(qdc.CompileError, "nothing"):
            qdc.compile(text, "nvptx", blocks={"nothing": 64})


    def test_variants(self):
        artifact = qdc.compile(kernels.SCALE, ["nvptx:sm_90", "amdgcn:gfx942"], statistics=True)
        self.assertEqual(["nvptx:sm_90@32", "amdgcn:gfx942@64"], [v.target for v in artifact.variants])
        for variant in artifact.variants:
            self.assertIn(variant.code, artifact.data)
            self.assertIn("scale", variant.interface)
            self.assertIn("instructions", variant.statistics)

    def test_bind(self):
        bound = qdc.compile(kernels.SCALE, "nvptx", emit="qir", bind={"n": 1024, "scale.k": 0.5})
        self.assertIn("1024", bound.text)
        with self.assertRaisesRegex(qdc.CompileError, "nothing"):
            qdc.compile(kernels.SCALE, "nvptx", bind={"nothing": 1})
        flag = "qd.kernel @k(%p: i1, %n: i32) block(1) {\n  qd.return\n}\n"
        for yes in (True, np.bool_(True), 1, np.uint8(1), np.array(1)):
            qdc.compile(flag, "nvptx", bind={"p": yes, "n": yes})
        for value in (np.array([1, 2]), "1", None, 1j, [1]):
            with self.subTest(value=value), self.assertRaisesRegex(qdc.ArgumentError, "'n' is bound to a number, got "):
                qdc.compile(flag, "nvptx", bind={"n": value})
        x = array.array("f", [1, 2, 3, 4])
        qdc.Device("cpu", bind={"n": 3, "k": 2.5}).load(kernels.SCALE)["scale"](x, grid=1)
        self.assertEqual([2.5, 5, 7.5, 4], list(x))

    def test_cache(self):
        # Tests run with the cache turned off.
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ):
            os.environ.pop("QDC_CACHE", None)
            found = [qdc.compile(kernels.SCALE, "nvptx", cache="disk", cache_folder=folder) for _ in range(2)]
            self.assertEqual([False, True], [artifact.cached for artifact in found])
            self.assertEqual(found[0].data, found[1].data)

    def test_limits(self):
        here = qdc.compile(kernels.SCALE, "nvptx", emit="ptx")
        self.assertEqual(here.data, qdc.compile(kernels.SCALE, "nvptx", emit="ptx", isolate=True).data)
        with self.assertRaisesRegex(qdc.CompileError, "time|limit"):
            qdc.compile(kernels.SCALE, "nvptx", emit="ptx", time_limit=0.001)


class Diagnostics(unittest.TestCase):
    def test_places(self):
        with self.assertRaises(qdc.CompileError) as caught:
            qdc.compile(DIVERGENT, "nvptx", name="half.qir")
        error = caught.exception
        self.assertEqual((7, 10), (error.line, error.column))
        self.assertEqual("    %r = qd.subgroup.reduce_all add %f : f32", error.source)
        first = error.diagnostics[0]
        self.assertEqual(("error", "half.qir"), (first.severity, first.file))
        self.assertIn("uniform in the subgroup", first.message)
        self.assertEqual([4, 2], [note.line for note in first.notes])
        self.assertEqual("note", first.notes[0].severity)
        # Printed, they are what the command line prints.
        self.assertEqual(str(error).strip(), "\n".join(map(str, error.diagnostics)))

    def test_without_place(self):
        with self.assertRaisesRegex(qdc.CompileError, "unknown target 'foo'") as caught:
            qdc.compile(kernels.SCALE, "foo")
        self.assertIsNone(caught.exception.line)

    def test_text_of_any_kind(self):
        """Reading loses no line and fails on nothing."""
        source = random.Random(1)
        words = ["a.qir:3:4: error: x", "note: y", " ^", "^", "", "  text", "warning:", "b:1:2: note: z", "\t  ^",
                 ":::"]
        for _ in range(300):
            text = "\n".join(source.choice(words) for _ in range(source.randrange(8)))
            parse_diagnostics(text)
        self.assertEqual("lost", parse_diagnostics("lost")[0].message)


class Mistakes(unittest.TestCase):
    def test_arguments(self):
        for arguments, text in (
                (dict(source=3, targets="nvptx"), "a program is text"),
                (dict(source=None, targets="nvptx"), "a program is text"),
                (dict(source="\ud800", targets="nvptx"), "Unicode"),
                (dict(source="", targets=3), "targets are"),
                (dict(source="", targets=[3]), "."),
                (dict(source="", targets="nv\0ptx"), "zero character"),
                (dict(source="", targets="nvptx", emit=None), "emit is a text"),
                (dict(source="", targets="nvptx", subgroup_size=-1), "subgroup_size is from 0"),
                (dict(source="", targets="nvptx", subgroup_size=2**40), "subgroup_size is from 0"),
                (dict(source="", targets="nvptx", opt_level=9), "opt_level is from 0 to 3"),
                (dict(source="", targets="nvptx", opt_level="2"), "opt_level is an integer"),
                (dict(source="", targets="nvptx", blocks=3), "blocks maps"),
                (dict(source="", targets="nvptx", blocks={"a": -1}), "a block size is from 0"),
                (dict(source="", targets="nvptx", cache="yes"), "cache is"),
                (dict(source="", targets="nvptx", bind=[1]), "bind maps"),
                (dict(source="", targets="nvptx", bind={"n": "1"}), "bound to a number"),
                (dict(source="", targets="nvptx", time_limit=-1), "time_limit is from"),
                (dict(source="", targets="nvptx", memory_limit=1.5), "memory_limit is an integer"),
                (dict(source="", targets="nvptx", isolate="x"), "isolate is true or false"),
                (dict(source="", targets="nvptx", name=b"x"), "name is a text")):
            with self.subTest(**arguments), self.assertRaisesRegex((qdc.Error, TypeError), text):
                qdc.compile(**arguments)

    def test_programs_of_any_kind(self):
        """Changed bytes end in an artifact or an error."""
        source = random.Random(2)
        for _ in range(150):
            data = bytearray(DIVERGENT.encode())
            for _ in range(source.randrange(1, 6)):
                place = source.randrange(len(data))
                data[place:place + source.randrange(4)] = bytes(source.choices(b"%@()[]{}<>,:=0-9fix \n\0\xff",
                                                                               k=source.randrange(4)))
            try:
                qdc.compile(bytes(data), "nvptx", emit="ptx")
            except qdc.CompileError as error:
                self.assertTrue(error.diagnostics)


class Libraries(unittest.TestCase):
    def run_python(self, program, **environment):
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                                                                **environment))
        return done.stdout

    def test_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            out = self.run_python("import qdc; qdc.compile('', 'nvptx')", QDC_LIBRARY_PATH=folder)
            self.assertIn("qdc.errors.LibraryError: libqdcompiler.so cannot be opened (not found in " + folder, out)
            self.assertIn("QDC_LIBRARY_PATH", out)
            with open(os.path.join(folder, "libqdcompiler.so"), "w") as file:
                file.write("no library")
            out = self.run_python("import qdc; qdc.compile('', 'nvptx')", QDC_LIBRARY_PATH=folder)
            self.assertIn("LibraryError", out)

    def test_foreign(self):
        with tempfile.TemporaryDirectory() as folder:
            import ctypes.util
            libm = ctypes.util.find_library("m")
            found = [os.path.join(place, libm) for place in ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib")
                     if os.path.exists(os.path.join(place, libm))]
            if not found:
                self.skipTest("no other library at hand")
            os.symlink(found[0], os.path.join(folder, "libqdcompiler.so"))
            out = self.run_python("import qdc; qdc.compile('', 'nvptx')", QDC_LIBRARY_PATH=folder)
            self.assertIn("has no function qdc", out)

    def test_without_numpy(self):
        """Compiling and launching on Python's own arrays does without NumPy."""
        program = ("import sys, array; sys.modules['numpy'] = None\nimport qdc, kernels\n"
                   "qdc.compile(kernels.SCALE, 'nvptx')\nx = array.array('f', [1, 2, 3])\n"
                   "qdc.Device('cpu').load(kernels.SCALE)['scale'](3, 2.0, x, grid=1)\nprint(list(x))")
        self.assertEqual("[2.0, 4.0, 6.0]\n", self.run_python(program))

    def test_import_is_cheap(self):
        """Names are loaded when used: neither ctypes nor NumPy comes by the import alone."""
        out = self.run_python("import sys; before = set(sys.modules)\nimport qdc\n"
                              "added = set(sys.modules) - before\n"
                              "print(sorted({'ctypes', 'numpy', 'json', 'enum', 'inspect'} & added))")
        self.assertEqual("[]\n", out)


if __name__ == "__main__":
    unittest.main()
