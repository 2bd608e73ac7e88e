"""The executors that tests run on: which exist here, and how qdc-run is told to use each."""
import collections
import json
import os
import re
import subprocess

# Hands a list of executors to run.py, so that not every test looks for devices.
VARIABLE = "QD_TEST_EXECUTORS"

# `device` is qdc-run's; `size` is the subgroup's lanes; `options` select the size; `env` is added to the environment.
Executor = collections.namedtuple("Executor", "device size options env")
Executor.family = property(lambda self: self.device.split(":")[0])
Executor.name = property(lambda self: "%s@%d" % (self.device, self.size))

SIM = [("sim:sm_70", 32), ("sim:sm_80", 32), ("sim:sm_90", 32), ("sim:gfx90a", 64), ("sim:gfx942", 64)]
SIM += [(chip, size) for chip in ("sim:gfx1030", "sim:gfx1100", "sim:gfx1200") for size in (32, 64)]

# Chips whose machine code test/amdgcn carries out, in the order in which the stand-in for HIP's library has them as
# devices.
CHIPS = ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"]


def machine_code(double):
    """Executors of the machine code that AMD's chips get, by the stand-in for libamdhip64."""
    double = os.path.abspath(double)
    env = {"LD_LIBRARY_PATH": os.path.dirname(double), "QDC_COMPILER_LIBRARY": double, "QD_HIP_STRICT": "1",
           "QD_HIP_DEVICES": ",".join(CHIPS), "QD_HIP_EXECUTE": "code"}
    return [Executor("hip:%d" % number, size, ["--subgroup-size=%d" % size], env)
            for number, chip in enumerate(CHIPS) for size in ((64,) if len(chip) == 6 else (32, 64))]


def listed(qdc_run, env):
    """The rows of `qdc-run --list-devices`: device to text."""
    output = subprocess.run([qdc_run, "--list-devices"], env={**os.environ, **env}, check=True,
                            stdout=subprocess.PIPE, universal_newlines=True).stdout
    return dict(line.split(None, 1) for line in output.splitlines())


def sized(device, size):
    return Executor(device, size, ["--subgroup-size=%d" % size], {})


def native(device, text, env):
    """An executor at the one size that a device's text names."""
    match = re.search(r"subgroups of (\d+)", text)
    return Executor(device, int(match.group(1)) if match else 32, [], env)


def discover(qdc_run):
    """Those present, and (name, reason) of those absent."""
    try:
        rows = listed(qdc_run, {})
    except OSError as error:
        return [], [("all", str(error))]
    present, absent = [], []
    for device, text in rows.items():
        if text.startswith("absent: "):
            absent.append((device, text[len("absent: "):]))
        elif device in ("cpu", "interp"):
            present += [sized(device, size) for size in (4, 8, 16, 32, 64)]
        elif device.startswith("sim"):
            present += [sized(sim, size) for sim, size in SIM]
        elif "llvmpipe" in text:
            # Mesa's software device has subgroups of its vector width.
            for width in (128, 256, 512):
                env = {"LP_NATIVE_VECTOR_WIDTH": str(width)}
                present.append(native(device, listed(qdc_run, env)[device], env))
        else:
            present.append(native(device, text, {}))
    return present, absent


def pack(executors):
    return json.dumps(executors)


def unpack(text):
    return [Executor(*row) for row in json.loads(text)]
