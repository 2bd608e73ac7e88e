"""What kernels can name: all ops of QIR, made from the package's table, ranges, and functions of Python's own.

Outside of a kernel these are only names.
"""
import math as python_math

import qdc
from qdc import ops


class Op:
    """An op by its name: `subgroup.shuffle`."""

    def __init__(self, name):
        self.name = name
        self.__doc__ = ops.OPS[name].describe()

    def __call__(self, *_, **__):
        raise qdc.ArgumentError("'%s' is for kernels: it has no meaning outside of one" % self.name)

    def __repr__(self):
        return "<op %s>" % self.name


class Ops:
    """The ops below a prefix."""

    def __init__(self, prefix):
        self._prefix = prefix

    def __getattr__(self, name):
        full = self._prefix + name
        if full in ops.OPS:
            return Op(full)
        if name in ops.names(self._prefix):
            return Ops(full + ".")
        raise AttributeError("there is no op '%s'" % full)

    def __dir__(self):
        return ops.names(self._prefix)


subgroup, block, grid = Ops("qd.subgroup."), Ops("qd.block."), Ops("qd.grid.")
math, arith = Ops("math."), Ops("arith.")
# Those that stand alone: thread_id, assume_uniform, pack_bits, ...
TOP = {name: Op("qd." + name) for name in ops.names("qd.") if "qd." + name in ops.OPS
       and name not in ("kernel", "return", "yield", "constant", "print", "assert")}


class Special:
    """A name with a meaning of the frontend's own."""

    def __init__(self, name, text):
        self.name, self.__doc__ = name, text

    __call__ = Op.__call__

    def __repr__(self):
        return "<%s>" % self.name


elements = Special("elements", "for i in elements(n): one i a thread, for threads below n; of a tuple, (y, x) or (z, y, x)")
grid_stride = Special("grid_stride", "for i in grid_stride(n): the threads of the grid share 0 to n - 1")
block_stride = Special("block_stride", "for i in block_stride(n): the threads of the block share 0 to n - 1")
static_range = Special("static_range", "for i in static_range(4): the rounds one after the other, i known beforehand")
unroll = Special("unroll", "for i in unroll(range(n), 4): a loop of which so many rounds are unrolled, or \"full\"")
shared = Special("shared", "t = shared(f32, (16, 16)): an array in the block's shared memory")
private = Special("private", "t = private(f32, 4): an array of the thread's own")
table = Special("table", "t = table((2, 3, 5, 7), i32): a table of constants")
select = Special("select", "select(c, a, b): both are computed, and one is taken")
cast = Special("cast", "cast(v, f32, unsigned=True): a conversion; f32(v) is the signed one")
bitcast = Special("bitcast", "bitcast(v, i32): the same bits")
vector = Special("vector", "vector(a, b, c, d): a vector of values")

# Functions of Python's math module, by what they are called there.
MATH = {getattr(python_math, name): "math." + (renamed or name) for name, renamed in (
    ("sqrt", ""), ("exp", ""), ("log", ""), ("log2", ""), ("log10", ""), ("log1p", ""), ("expm1", ""), ("sin", ""),
    ("cos", ""), ("tan", ""), ("asin", ""), ("acos", ""), ("atan", ""), ("atan2", ""), ("sinh", ""), ("cosh", ""),
    ("tanh", ""), ("erf", ""), ("floor", ""), ("ceil", ""), ("trunc", ""), ("fabs", "absf"), ("copysign", ""),
    ("pow", "powf"), ("isnan", ""), ("isinf", ""), ("isfinite", ""))}
