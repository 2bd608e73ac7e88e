"""What the families of subgroup ops have in common: a row of the sweep, and the kernel around its text."""
import collections

import numpy as np

from case import VALUE, Case, Output
from layout import GRID

INTS = ["i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
TYPES = ["i1"] + INTS + FLOATS
TILES = [0, 1, 2, 4, 8, 16, 32, 64, 128, 1024]  # 0: the whole subgroup
MASK_TILES = [0, 1, 2, 4, 8, 16, 32, 64]

# `make(types, layout, rng)` gives Made. `types`: the choices, each a tuple of scalar types.
Op = collections.namedtuple("Op", "name types make tiles", defaults=(TILES,))

# Of one kernel: `text` reads the elements %NAME of the inputs (name, type, array), the scalars %NAME (name, type,
# value) and the subscript %i, and defines %r0, %r1 .. for the results. {tile} in it is the tile clause.
Made = collections.namedtuple("Made", "text inputs scalars results")
# `values` and `defined` are flat, a thread an element; `defined` True is everywhere.
Result = collections.namedtuple("Result", "type values defined equality bound", defaults=(True, VALUE, None))

KERNEL = """qd.kernel @{name}({parameters}) block({block}) {{
{before}{loads}{body}{stores}  qd.return
}}
"""
LINEAR = "  %i = qd.global_thread_id x : i32\n"
FOLDED = """  %index = qd.thread_index : i32
  %number = qd.block_id x : i32
  %threads = arith.constant {threads} : i32
  %start = arith.muli %number, %threads : i32
  %i = arith.addi %start, %index : i32
"""


def tuples(types):
    return [(type,) for type in types]


def name_of(op, types, layout):
    words = [op.name.replace(".", "_"), *types, "tile%d" % layout.tile, "size%d" % layout.size]
    return "_".join(words + ["block" + "x".join(map(str, layout.dims))])


def make_case(op, types, layout, rng):
    """None where the op's make() gives none."""
    made = op.make(types, layout, rng)
    if made is None:
        return None
    defined = np.ones(layout.total, bool)
    for result in made.results:
        if result.defined is not True:
            defined = defined & result.defined
    everywhere = bool(defined.all())
    inputs = list(made.inputs) + ([] if everywhere else [("here", "i1", defined)])
    parameters = ["%%in_%s: !qd.buffer<%s> readonly" % (name, type) for name, type, _ in inputs]
    parameters += ["%%%s: %s" % (name, type) for name, type, _ in made.scalars]
    parameters += ["%%out_%d: !qd.buffer<%s>" % (i, r.type) for i, r in enumerate(made.results)]
    loads = "".join("  %%%s = qd.load %%in_%s[%%i] : !qd.buffer<%s>\n" % (name, name, type) for name, type, _ in inputs)
    stores = "".join("  qd.store %%r%d, %%out_%d[%%i]%s : !qd.buffer<%s>\n" % (
        i, i, "" if everywhere else " if %here", r.type) for i, r in enumerate(made.results))
    name = name_of(op, types, layout)
    before = LINEAR if layout.dims[1:] == (1, 1) else FOLDED.format(threads=layout.block)
    body = made.text.replace("{tile}", " tile(%d)" % layout.tile if layout.tile else "")
    text = KERNEL.format(name=name, parameters=", ".join(parameters), before=before, loads=loads, body=body,
                         stores=stores,
                         block=layout.block if layout.dims[1:] == (1, 1) else ", ".join(map(str, layout.dims)))
    inputs = [("in_" + name, type, values) for name, type, values in inputs]
    outputs = [Output("out_%d" % i, r.type, np.asarray(r.values), None if everywhere else defined, r.equality,
                      None if r.bound is None else np.asarray(r.bound))
               for i, r in enumerate(made.results)]
    return Case(name, text, (GRID, 1, 1), list(made.scalars), inputs, outputs)
