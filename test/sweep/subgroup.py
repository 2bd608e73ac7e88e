"""Subgroup ops at every tile and subgroup size, with references from their definitions.

A reference sees one tile: the values of its existing lanes and its width, and gives the results and a mask of
the lanes where they are defined. The kernel stores only there.
"""
import functools

import numpy as np

import scalars
from case import Case

INTS = ["i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
TYPES = ["i1"] + INTS + FLOATS
TILES = [0, 1, 2, 4, 8, 16, 32, 64, 128]  # 0: the whole subgroup

KERNEL = """qd.kernel @{name}(%x: !qd.buffer<{type}> readonly, %ok: !qd.buffer<i1> readonly{more}, %y: !qd.buffer<{result}>) block({block}) {{
  %i = qd.global_thread_id x : i32
  %v = qd.load %x[%i] : !qd.buffer<{type}>
  %p = qd.load %ok[%i] : !qd.buffer<i1>
{body}  qd.store %r, %y[%i] if %p : !qd.buffer<{result}>
  qd.return
}}
"""


class Op:
    """`body` defines %r from %v; `{tile}` in it is the tile clause. `choose` makes the input values."""

    def __init__(self, name, types, body, reference, result=None, choose=scalars.randoms, zero_sign=True, tiles=TILES,
                 lane_input=None, lane_scalar=None):
        self.name, self.types, self.body, self.reference = name, types, body, reference
        self.result, self.choose, self.zero_sign, self.tiles = result, choose, zero_sign, tiles
        self.lane_input, self.lane_scalar = lane_input, lane_scalar


def read(values, sources):
    """Lane i reads lane sources[i]; None where that lane does not exist."""
    exists = np.array([0 <= s < len(values) for s in sources])
    return np.array([values[s] if ok else values[0] for s, ok in zip(sources, exists)], values.dtype), exists


def shuffle(values, n, lanes, type):
    return read(values, [int(l) % n for l in lanes])


def shuffle_up(values, n, offset, type):
    return read(values, [i - offset if i >= offset else i for i in range(len(values))])


def shuffle_down(values, n, offset, type):
    return read(values, [i + offset if i + offset < n else i for i in range(len(values))])


def shuffle_xor(values, n, mask, type):
    return read(values, [i ^ (mask % n) for i in range(len(values))])


def broadcast(values, n, lane, type):
    return read(values, [lane % n] * len(values))


def everywhere(function):
    """One result for all lanes of the tile."""
    return lambda values, n, operand, type: (np.array([function(values, type)] * len(values)), True)


def fold(combine):
    def function(values, type):
        with np.errstate(all="ignore"):
            result = functools.reduce(lambda a, b: scalars.rounded(type, combine(a, b)), values)
        return scalars.rounded(type, result) if type != "i1" else np.bool_(result)
    return function


def unsigned(pick):
    def combine(a, b):
        ua, ub = (int(v) & ((1 << 8 * v.dtype.itemsize) - 1) if v.dtype != np.bool_ else int(v) for v in (a, b))
        return a if (ua == pick(ua, ub)) else b
    return combine


def minimum(a, b):
    return a if np.isnan(a) or (not np.isnan(b) and (a < b or (a == b and np.signbit(a)))) else b


def maximum(a, b):
    return a if np.isnan(a) or (not np.isnan(b) and (a > b or (a == b and not np.signbit(a)))) else b


def powers(type, count, rng):
    """Factors whose products stay exact in any order: few twos among ones of both signs."""
    if not scalars.is_float(type):
        return scalars.randoms(type, count, rng)
    exponents = np.where(rng.integers(0, 16, count) == 0, rng.integers(-1, 2, count), 0)
    return scalars.rounded(type, 2.0 ** exponents * rng.choice([-1.0, 1.0], count))


def with_edges(type, count, rng):
    values = scalars.randoms(type, count, rng)
    edges = rng.integers(0, 4, count) == 0
    return np.where(edges, rng.choice(scalars.edges(type), count), values).astype(values.dtype)


def mostly(value):
    """Predicates that are nearly all alike, so that votes go both ways."""
    def choose(type, count, rng):
        runs = np.repeat(rng.integers(0, 2, -(-count // 8)), 8)[:count] == 0
        return np.where(runs | (rng.integers(0, 5, count) != 0), value, not value)
    return choose


KINDS = [  # kind, types, combine, inputs, zero_sign
    ("add", INTS, lambda a, b: a + b, with_edges, True),
    ("add", FLOATS, lambda a, b: a + b, scalars.smalls, True),
    ("mul", INTS, lambda a, b: a * b, with_edges, True),
    ("mul", FLOATS, lambda a, b: a * b, powers, True),
    ("minsi", INTS, min, with_edges, True),
    ("maxsi", INTS, max, with_edges, True),
    ("minui", INTS, unsigned(min), with_edges, True),
    ("maxui", INTS, unsigned(max), with_edges, True),
    ("andi", ["i1"] + INTS, lambda a, b: a & b, with_edges, True),
    ("ori", ["i1"] + INTS, lambda a, b: a | b, with_edges, True),
    ("xori", ["i1"] + INTS, lambda a, b: a ^ b, with_edges, True),
    ("minnumf", FLOATS, np.fmin, with_edges, False),
    ("maxnumf", FLOATS, np.fmax, with_edges, False),
    ("minimumf", FLOATS, minimum, with_edges, True),
    ("maximumf", FLOATS, maximum, with_edges, True),
]


def first_lane(function):
    return lambda values, n, operand, type: (np.array([function(values, type)] * len(values)),
                                             np.arange(len(values)) == 0)


def ballot(values, n, operand, type):
    mask = sum(1 << i for i, v in enumerate(values) if v)
    return np.array([mask] * len(values), np.uint64).view(np.int64), True


def make_ops():
    def any_lane(n, rng):
        return int(rng.integers(0, n))

    ops = []
    for name, reference in (("shuffle_up", shuffle_up), ("shuffle_down", shuffle_down), ("shuffle_xor", shuffle_xor),
                            ("broadcast", broadcast)):
        ops.append(Op(name + ".literal", TYPES, "  %%r = qd.subgroup.%s %%v, {operand}{tile} : {type}\n" % name,
                      reference, choose=with_edges, lane_scalar=any_lane))
        ops.append(Op(name + ".uniform", TYPES, "  %%r = qd.subgroup.%s %%v, %%l{tile} : {type}\n" % name, reference,
                      choose=with_edges, lane_scalar=lambda n, rng: int(rng.integers(0, 2 * n + 1))))
    ops.append(Op("shuffle", TYPES, "  %r = qd.subgroup.shuffle %v, %l{tile} : {type}\n", shuffle, choose=with_edges,
                  lane_input=lambda count, rng: rng.integers(-64, 256, count).astype(np.int32)))
    ops.append(Op("broadcast.varying", TYPES, "  %r = qd.subgroup.broadcast %v, %l{tile} : {type}\n", shuffle,
                  choose=with_edges, lane_input=lambda count, rng: rng.integers(0, 64, count).astype(np.int32)))
    ops.append(Op("broadcast_first", TYPES, "  %r = qd.subgroup.broadcast_first %v{tile} : {type}\n",
                  lambda values, n, operand, type: broadcast(values, n, 0, type), choose=with_edges))
    ops.append(Op("ballot", ["i1"], "  %r = qd.subgroup.ballot %v : i64\n", ballot, result="i64", tiles=[0]))
    ops.append(Op("all", ["i1"], "  %r = qd.subgroup.all %v{tile}\n", everywhere(lambda v, t: v.all()),
                  choose=mostly(True)))
    ops.append(Op("any", ["i1"], "  %r = qd.subgroup.any %v{tile}\n", everywhere(lambda v, t: v.any()),
                  choose=mostly(False)))
    ops.append(Op("elect", ["i1"], "  %r = qd.subgroup.elect{tile}\n",
                  lambda values, n, operand, type: (np.arange(len(values)) == 0, True)))
    for kind, types, combine, choose, zero_sign in KINDS:
        ops.append(Op("reduce." + kind, types, "  %%r = qd.subgroup.reduce %s %%v{tile} : {type}\n" % kind,
                      first_lane(fold(combine)), choose=choose, zero_sign=zero_sign))
        ops.append(Op("reduce_all." + kind, types, "  %%r = qd.subgroup.reduce_all %s %%v{tile} : {type}\n" % kind,
                      everywhere(fold(combine)), choose=choose, zero_sign=zero_sign))
    return ops


def block_size(size, tile, partial):
    """A block of two tiles and subgroups at least; a partial one ends within a subgroup."""
    if tile:
        return max(2 * tile, 2 * size) if not partial else max(2 * tile, tile * ((size + tile - 1) // tile + 1))
    return size + size // 2 + 1 if partial else 2 * size


def make_case(op, type, tile, size, partial, rng):
    n = tile or size
    block, grid = block_size(size, tile, partial), 2
    values = op.choose(type, block * grid, rng)
    more, scalars_given, inputs, operand, lanes = "", [], [], None, None
    body = op.body
    if op.lane_input:
        lanes = op.lane_input(block * grid, rng)
        more, body = ", %lanes: !qd.buffer<i32> readonly", "  %l = qd.load %lanes[%i] : !qd.buffer<i32>\n" + body
    elif op.lane_scalar:
        operand = op.lane_scalar(n, rng)
        if "%l" in body:
            more, scalars_given = ", %l: i32", [("l", "i32", operand)]
    results, defined = [], []
    for start in range(0, block * grid, block):
        for first in range(start, start + block, n):
            tile_values = values[first:min(first + n, start + block)]
            tile_operand = lanes[first:first + len(tile_values)] if lanes is not None else operand
            got, ok = op.reference(tile_values, n, tile_operand, type)
            results.append(got)
            defined.append(np.full(len(tile_values), True) if ok is True else ok)
    result = op.result or type
    name = "%s_%s_tile%d_size%d_block%d" % (op.name.replace(".", "_"), type, tile, size, block)
    compared = np.concatenate(defined)
    inputs = [("x", type, values), ("ok", "i1", compared)]
    if lanes is not None:
        inputs.append(("lanes", "i32", lanes))
    text = KERNEL.format(name=name, type=type, result=result, block=block, more=more, body=body.format(
        tile=" tile(%d)" % tile if tile else "", type=type, operand=operand))
    return Case(name, text, (grid, 1, 1), scalars_given, inputs, result, np.concatenate(results), compared, op.zero_sign)
