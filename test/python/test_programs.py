"""Random functions: what Python computes of them is what the frontend's kernels compute on every device.

usage of its own: test_programs.py FIRST COUNT [DEVICE...], with the paths set as run.py does.
"""
import importlib.util
import os
import sys
import tempfile
import unittest

import numpy as np
import qdc

import executors
import kernels
import programs

# All chips and waves of sim, and what else there is.
DEVICES = [name for name in kernels.DEVICES if not name.startswith("sim")]
DEVICES += [qdc.Device(chip, subgroup_size=lanes) for chip, lanes in executors.SIM]


def load(folder, seeds):
    """A module with the functions and kernels of these seeds, in which range has Python's meaning."""
    path = os.path.join(folder, "programs_%d.py" % seeds[0])
    with open(path, "w") as file:
        file.write(programs.HEAD + "".join(programs.write(seed, "f%d" % seed) for seed in seeds))
    spec = importlib.util.spec_from_file_location("programs_%d" % seeds[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def differences(seeds, devices):
    """(seed, device, what) of all that differ."""
    found = []
    x = np.concatenate([np.arange(-6, 22), [100, 511, 1000, -300]]).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        module = load(folder, seeds)
        module_range = vars(module)
        for seed in seeds:
            function, kernel = module_range["f%d" % seed], module_range["apply_f%d" % seed]
            try:
                kernel.qir  # static_range is only a name there; in Python it is range
            except qdc.Error as error:
                found.append((seed, "frontend", str(error)))
                continue
            kept = module_range["static_range"]
            module_range["static_range"] = range
            try:
                expected = [function(int(v)) for v in x]
            finally:
                module_range["static_range"] = kept
            for device in devices:
                y = np.full(32, -1, np.int32)
                try:
                    kernel(x, y, grid=1, device=device)
                except qdc.Error as error:
                    found.append((seed, device, str(error)[:500]))
                    continue
                if not np.array_equal(y, expected):
                    place = np.flatnonzero(y != np.array(expected))[0]
                    found.append((seed, device,
                                  "f%d(%d) is %d, found %d" % (seed, x[place], expected[place], y[place])))
    return found


class Programs(unittest.TestCase):
    def test_random(self):
        self.assertEqual([], differences(range(20), DEVICES))


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for start in range(first, first + count, 20):
        for row in differences(range(start, min(start + 20, first + count)), sys.argv[3:] or DEVICES):
            print(*row, flush=True)
