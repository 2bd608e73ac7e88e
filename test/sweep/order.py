"""`sync` and `mem_fence`: what lanes hand each other through memory."""
import numpy as np

import scalars
from case import BITS
from op import TYPES, Made, Op, Result, tuples

# Each lane writes its element, and reads its right neighbour's in the subgroup, twice over the same memory.
EXCHANGE = """  %t = qd.thread_index : i32
  %at = arith.addi {base}, %t : i32
  %from = arith.addi {base}, %n : i32
  qd.store %v, {array}[%at] : {array_type}
  qd.subgroup.sync
  %w = qd.load {array}[%from] : {array_type}
  qd.subgroup.sync
  qd.store %w, {array}[%at] : {array_type}
  qd.subgroup.sync
  %r0 = qd.load {array}[%from] : {array_type}
"""

# The same, where half the lanes write and fence in a branch.
FENCED = """  %t = qd.thread_index : i32
  scf.if %odd {{
    qd.store %v, %s[%t] : {array_type}
    qd.subgroup.mem_fence
  }} else {{
    qd.store %v, %s[%t] : {array_type}
  }}
  qd.subgroup.mem_fence
  qd.subgroup.sync
  %r0 = qd.load %s[%n] : {array_type}
"""


def neighbours(layout, steps):
    """Threads of the block: each lane's neighbour `steps` to the right among the lanes that exist."""
    rows, lanes = np.indices(layout.exists.shape)
    right = (lanes + steps) % layout.count[:, None]
    return layout.flat(layout.index[rows, right])


def make(is_fence):
    def function(types, layout, rng):
        type, = types
        values = scalars.patterns(type, layout.total, rng)
        array_type = "!qd.shared<%dx%s>" % (layout.block, type)
        inputs = [("v", type, values), ("n", "i32", (neighbours(layout, 1) % layout.block).astype(np.int32))]
        text = "  %%s = qd.shared.alloc : %s\n" % array_type
        if is_fence:
            text += FENCED.format(array_type=array_type)
            inputs.append(("odd", "i1", rng.integers(0, 2, layout.total) == 0))
        else:
            text += "  %zero = arith.constant 0 : i32\n" + EXCHANGE.format(
                base="%zero", array="%s", array_type=array_type)
        return Made(text, inputs, [], [Result(type, values[neighbours(layout, 1 if is_fence else 2)], True, BITS)])
    return function


def ops():
    yield Op("sync", tuples(TYPES), make(False), [0])
    yield Op("mem_fence", tuples(TYPES), make(True), [0])
