"""`pip install` of the folder, into an environment of its own and without a network."""
import os
import subprocess
import tempfile
import unittest
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "..", "runtime", "python")


class Install(unittest.TestCase):
    def test_install(self):
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = os.path.join(folder, "bin", "python")
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

            def run(*words):
                done = subprocess.run([python] + list(words), cwd=folder, env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, universal_newlines=True)
                self.assertEqual(0, done.returncode, done.stdout)
                return done.stdout

            pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index")
            program = ("import os, qdc; print(qdc.compile('qd.kernel @k() block(1) { qd.return }', 'nvptx:sm_90', "
                       "emit='ptx').text); print(os.path.dirname(qdc.__file__))")
            before = set(os.listdir(FOLDER))
            run(*pip, FOLDER)
            out = run("-c", program)
            self.assertIn(".target sm_90", out)
            self.assertIn(folder, out)
            run("-c", "import qdc; from importlib import metadata, resources; "
                      "assert metadata.version('qdc') == qdc.__version__")
            run("-m", "pip", "check")
            run("-m", "pip", "uninstall", "--quiet", "--yes", "qdc")
            run(*pip, "--editable", FOLDER)
            self.assertIn(os.path.realpath(FOLDER), run("-c", program))
            self.assertEqual(before - {"__pycache__"}, set(os.listdir(FOLDER)) - {"__pycache__"})


if __name__ == "__main__":
    unittest.main()
