"""Kernels that several tests launch, and the devices to launch them on."""
import qdc

# Those that reach the host's memory, and GPUs with what stands for one.
HOSTS = ("cpu", "interp", "sim:sm_90", "sim:gfx942", "sim:gfx1100")
COPYING = tuple(entry.name for entry in qdc.devices() if entry.present and ":" in entry.name
                and "CHIP" not in entry.name)
DEVICES = HOSTS + COPYING

SCALE = """\
qd.kernel @scale(%n: i32, %k: f32, %x: !qd.buffer<f32>) block(128) {
  %i = qd.global_thread_id x : i32
  %in = arith.cmpi slt, %i, %n : i32
  scf.if %in {
    %v = qd.load %x[%i] : !qd.buffer<f32>
    %w = arith.mulf %v, %k : f32
    qd.store %w, %x[%i] : !qd.buffer<f32>
  }
  qd.return
}
"""


def copy(element, attributes=""):
    """A kernel that copies buffers of that element."""
    return """\
qd.kernel @copy(%%x: !qd.buffer<%s> readonly%s, %%y: !qd.buffer<%s>%s) block(32) {
  %%n = qd.size %%x : !qd.buffer<%s> -> i32
  %%i = qd.global_thread_id x : i32
  %%in = arith.cmpi slt, %%i, %%n : i32
  scf.if %%in {
    %%v = qd.load %%x[%%i] : !qd.buffer<%s>
    qd.store %%v, %%y[%%i] : !qd.buffer<%s>
  }
  qd.return
}
""" % (element, attributes, element, attributes, element, element, element)


def scalar(element):
    """A kernel that stores a scalar."""
    return """\
qd.kernel @put(%%v: %s, %%y: !qd.buffer<%s>) block(1) {
  qd.store %%v, %%y[0] : !qd.buffer<%s>
  qd.return
}
""" % (element, element, element)
