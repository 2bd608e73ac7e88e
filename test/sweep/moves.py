"""Shuffles, rotations and broadcasts: values keep all their bits."""
import numpy as np

import scalars
from case import BITS
from op import TYPES, Made, Op, Result, tuples


def read(layout, values, sources):
    """Each lane's value of the lane `sources` of its tile, and where that exists."""
    sources = np.broadcast_to(sources, layout.exists.shape)
    rows = np.arange(len(sources))[:, None]
    return layout.flat(layout.matrix(values)[rows, sources]), layout.flat(layout.exists[rows, sources])


# Sources by lane: of the lanes' numbers, the operand (a number or a matrix) and the tile's width.
def shuffle(lane, n, width):
    return n % width


def up(lane, n, width):
    return np.where(lane >= n, lane - n, lane)


def down(lane, n, width):
    return np.where(lane + n < width, lane + n, lane)


def xor(lane, n, width):
    return lane ^ (n % width)


def rotate(lane, n, width):
    return (lane + n) % width


# Operands: literals and uniform scalars are one number, varying ones an array.
def below(layout, count, rng):
    """Lanes, offsets and masks of the tile."""
    return rng.integers(0, layout.lanes, count)


def from_zero(layout, count, rng):
    """Also past the tile's end."""
    return rng.integers(0, 2 * layout.lanes + 1, count)


def any_number(layout, count, rng):
    values = rng.integers(-3 * layout.lanes, 3 * layout.lanes + 1, count)
    return np.where(rng.integers(0, 16, count) == 0, rng.choice([-(1 << 31), (1 << 31) - 1], count), values)


def make(name, source, how, choose, poison_edge=False):
    """`how` the operand is given: literal, uniform (a kernel's scalar) or varying."""
    def function(types, layout, rng):
        type, = types
        values = scalars.patterns(type, layout.total, rng)
        inputs, given, lane = [("v", type, values)], [], np.arange(layout.lanes)[None, :]
        if how == "varying":
            chosen = choose(layout, layout.total, rng)
            inputs.append(("n", "i32", chosen.astype(np.int32)))
            number, operand = layout.matrix(chosen), "%n"
        else:
            number = int(choose(layout, 1, rng)[0])
            operand = "%n" if how == "uniform" else str(number)
            given = [("n", "i32", number)] if how == "uniform" else []
        result, defined = read(layout, values, source(lane, number, layout.lanes))
        clause = ""
        if poison_edge:
            clause = " poison_edge"
            inside = lane >= number if source is up else lane + number < layout.lanes
            defined = defined & layout.flat(inside)
        text = "  %%r0 = qd.subgroup.%s %%v, %s{tile}%s : %s\n" % (name, operand, clause, type)
        return Made(text, inputs, given, [Result(type, result, defined, BITS)])
    return function


def broadcast_first(types, layout, rng):
    type, = types
    values = scalars.patterns(type, layout.total, rng)
    result, defined = read(layout, values, np.zeros((1, 1), int))
    return Made("  %%r0 = qd.subgroup.broadcast_first %%v{tile} : %s\n" % type, [("v", type, values)], [],
                [Result(type, result, defined, BITS)])


def assume_uniform(scope):
    def function(types, layout, rng):
        type, = types
        size = layout.block if scope == "block" else layout.size
        group = np.arange(layout.total) // layout.block * layout.block + np.arange(layout.total) % layout.block // size
        values = scalars.patterns(type, layout.total, rng)[group]
        return Made("  %%r0 = qd.assume_uniform %%v, %s : %s\n" % (scope, type), [("v", type, values)], [],
                    [Result(type, values, True, BITS)])
    return function


def ops():
    types = tuples(TYPES)
    for name, source, literal, others in (
            ("shuffle", shuffle, from_zero, any_number), ("shuffle_up", up, from_zero, from_zero),
            ("shuffle_down", down, from_zero, from_zero), ("shuffle_xor", xor, below, from_zero),
            ("broadcast", shuffle, from_zero, from_zero), ("rotate", rotate, any_number, any_number)):
        yield Op(name + ".literal", types, make(name, source, "literal", literal))
        yield Op(name + ".uniform", types, make(name, source, "uniform", others))
        yield Op(name + ".varying", types, make(name, source, "varying", others))
    for name, source in (("shuffle_up", up), ("shuffle_down", down)):
        for how in ("literal", "uniform", "varying"):
            yield Op("%s.%s.poison_edge" % (name, how), types, make(name, source, how, below, True))
    yield Op("broadcast_first", types, broadcast_first)
    for scope in ("subgroup", "block"):
        yield Op("assume_uniform." + scope, types, assume_uniform(scope), [0])
