"""The Python in the documentation runs as it stands."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import kernels

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BEFORE = {
    "docs/python.md": "import numpy\nfrom kernels import SCALE as text\n"
                      "values = numpy.ones(1000, 'f4')\nout = numpy.zeros(1000, 'f4')\n",
    "docs/examples/python_frontend/README.md": "import numpy\nn = 1000\n"
                                               "x = numpy.ones(n, 'f4')\ny = numpy.ones(n, 'f4')\n",
    "README.md": "",
}


class Documents(unittest.TestCase):
    def test_blocks(self):
        for path, before in BEFORE.items():
            with open(os.path.join(SOURCE, path)) as file:
                blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
            self.assertTrue(blocks, path)
            with self.subTest(path=path), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "scale.qir"), "w") as file:
                    file.write(kernels.SCALE)
                with open(os.path.join(folder, "blocks.py"), "w") as file:
                    file.write(before + "\n".join(blocks))
                done = subprocess.run([sys.executable, "blocks.py"], cwd=folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT,
                                      universal_newlines=True,
                                      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
                self.assertEqual(0, done.returncode, done.stdout)


if __name__ == "__main__":
    unittest.main()
