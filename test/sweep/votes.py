"""Ids, masks, ballots, votes and matches."""
import numpy as np

import scalars
from op import MASK_TILES, TYPES, Made, Op, Result, tuples


def masks(layout, bits):
    """An i64 a tile from a matrix of bits, one a lane."""
    weights = np.uint64(1) << np.arange(layout.lanes, dtype=np.uint64)
    chosen = np.where(bits & layout.exists, weights[None, :], np.uint64(0))
    return np.bitwise_or.reduce(chosen, axis=1).view(np.int64)[:, None]


def given(type, flat):
    return flat.astype(scalars.working(type))


# ---- ids and masks of lanes -------------------------------------------------------------------------------

def number(name, function):
    """An id: an i32 of the thread's number in its block."""
    def make(types, layout, rng):
        thread = np.arange(layout.total) % layout.block
        return Made("  %%r0 = qd.subgroup.%s : i32\n" % name, [], [],
                    [Result("i32", np.broadcast_to(function(layout, thread), thread.shape).astype(np.int32))])
    return Op(name, [("i32",)], make, [0])


def elect(types, layout, rng):
    return Made("  %r0 = qd.subgroup.elect{tile}\n", [], [], [Result("i1", layout.lane() == 0)])


RELATIONS = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ge": np.greater_equal, "gt": np.greater}


def lanemask(relation, is_own):
    def make(types, layout, rng):
        type, = types
        width = scalars.width(type)
        if is_own:
            lane, operand, inputs = layout.lane(), "", []
            if layout.lanes > width:
                return None
        else:
            lane, operand = rng.integers(0, width, layout.total).astype(np.int32), " %l"
            inputs = [("l", "i32", lane)]
        bits = RELATIONS[relation](np.arange(width)[None, :], lane[:, None])
        values = (bits.astype(np.uint64) << np.arange(width, dtype=np.uint64)[None, :]).sum(axis=1, dtype=np.uint64)
        values = values.astype("u%d" % (width // 8)).view(scalars.working(type))
        return Made("  %%r0 = qd.subgroup.lanemask_%s%s{tile} : %s\n" % (relation, operand, type), inputs, [],
                    [Result(type, values)])
    return make


# ---- predicates -------------------------------------------------------------------------------------------

def predicates(layout, rng):
    """Random ones; tiles of one value; and tiles where at most one lane differs."""
    one = constants(layout, rng)
    odd = rng.integers(0, layout.lanes, len(layout.count))
    differs = (np.arange(layout.lanes)[None, :] == odd[:, None]) & (rng.integers(0, 3, len(odd)) != 0)[:, None]
    pieces = [rng.integers(0, 2, layout.total) == 0, layout.flat(one), layout.flat(one ^ differs)]
    return np.concatenate([p[k * layout.block:(k + 1) * layout.block] for k, p in enumerate(pieces)])


def constants(layout, rng):
    return rng.integers(0, 2, (len(layout.count), 1)) == 0


def ballot(types, layout, rng):
    p = predicates(layout, rng)
    return Made("  %r0 = qd.subgroup.ballot %p{tile} : i64\n", [("p", "i1", p)], [],
                [Result("i64", layout.flat(masks(layout, layout.matrix(p))))])


def ballot_first_n(types, layout, rng):
    p, n = predicates(layout, rng), int(rng.choice([1, 5, 16, 31, 32, rng.integers(1, 33)]))
    bits = layout.matrix(p) & (np.arange(layout.lanes) < n)[None, :]
    values = layout.flat(masks(layout, bits)).astype(np.uint32).view(np.int32)
    return Made("  %%r0 = qd.subgroup.ballot_first_n %%p, %d : i32\n" % n, [("p", "i1", p)], [],
                [Result("i32", values)])


def vote(name):
    def make(types, layout, rng):
        p = predicates(layout, rng)
        bits = layout.matrix(p)
        result = (bits | ~layout.exists).all(axis=1) if name == "all" else (bits & layout.exists).any(axis=1)
        return Made("  %%r0 = qd.subgroup.%s %%p{tile}\n" % name, [("p", "i1", p)], [],
                    [Result("i1", layout.flat(result[:, None]))])
    return make


# ---- equal values -----------------------------------------------------------------------------------------

def alike(type, layout, rng):
    """Storage: tiles of one value (edges, NaNs of both signs, zeros), tiles where one lane differs, tiles of few
    values. A zero may have either sign within a tile."""
    rows = len(layout.count)
    pool = scalars.patterns(type, max(4 * rows, 64), rng)
    common = np.repeat(rng.choice(pool, rows)[:, None], layout.lanes, axis=1)
    odd = rng.integers(0, layout.lanes, rows)
    differs = (np.arange(layout.lanes)[None, :] == odd[:, None]) & (rng.integers(0, 2, rows) == 0)[:, None]
    close = common.copy()
    if type == "i1":
        other = ~common
    else:
        # The topmost or the lowest bit of one lane: halves of a wide value must both be compared.
        raw = scalars.bits(type, common)
        bit = np.where(rng.integers(0, 2, (rows, 1)) == 0, 0, scalars.width(type) - 1).astype(raw.dtype)
        other = (raw ^ (raw.dtype.type(1) << bit)).view(common.dtype)
        if scalars.is_float(type):
            value = scalars.from_storage(type, other)
            other = np.where(np.isnan(value) | scalars.is_flushed(type, value), common, other)
    close = np.where(differs, other, common)
    if scalars.is_float(type):
        zeros = scalars.to_storage(type, np.array([0.0, -0.0]).astype(scalars.working(type)))
        is_zero = (rng.integers(0, 6, rows) == 0)[:, None]
        common = np.where(is_zero, rng.choice(zeros, common.shape), common)
    few = rng.choice(pool, (rows, 3))[np.arange(rows)[:, None], rng.integers(0, 3, common.shape)]
    pieces = [layout.flat(few), layout.flat(common), layout.flat(close)]
    return np.concatenate([p[k * layout.block:(k + 1) * layout.block] for k, p in enumerate(pieces)])


def all_equal(types, layout, rng):
    type, = types
    stored = alike(type, layout, rng)
    values = layout.matrix(scalars.from_storage(type, stored))
    result = (values == values[:, :1]) | ~layout.exists
    return Made("  %%r0 = qd.subgroup.all_equal %%v{tile} : %s\n" % type, [("v", type, stored)], [],
                [Result("i1", layout.flat(result.all(axis=1)[:, None]))])


def match_any(types, layout, rng):
    type, = types
    stored = alike(type, layout, rng)
    raw = layout.matrix(scalars.bits(type, stored))
    result = np.concatenate([masks(layout, raw == raw[:, k:k + 1]) for k in range(layout.lanes)], axis=1)
    return Made("  %%r0 = qd.subgroup.match_any %%v{tile} : %s\n" % type, [("v", type, stored)], [],
                [Result("i64", layout.flat(result))])


def match_all(types, layout, rng):
    type, = types
    stored = alike(type, layout, rng)
    raw = layout.matrix(scalars.bits(type, stored))
    same = ((raw == raw[:, :1]) | ~layout.exists).all(axis=1)[:, None]
    mask = np.where(same, masks(layout, layout.exists), 0)
    return Made("  %%r0, %%r1 = qd.subgroup.match_all %%v{tile} : %s\n" % type, [("v", type, stored)], [],
                [Result("i64", layout.flat(mask)), Result("i1", layout.flat(same))])


def ops():
    yield number("lane_id", lambda layout, thread: thread % layout.size)
    yield number("size", lambda layout, thread: layout.size)
    yield number("log2_size", lambda layout, thread: layout.size.bit_length() - 1)
    yield number("subgroup_id", lambda layout, thread: thread // layout.size)
    yield number("num_subgroups", lambda layout, thread: -(-layout.block // layout.size))
    yield Op("elect", [("i1",)], elect)
    for relation in RELATIONS:
        yield Op("lanemask_" + relation, [("i32",), ("i64",)], lanemask(relation, True), MASK_TILES)
        yield Op("lanemask_%s.of" % relation, [("i32",), ("i64",)], lanemask(relation, False), [0])
    yield Op("ballot", [("i1",)], ballot, MASK_TILES)
    yield Op("ballot_first_n", [("i1",)], ballot_first_n, [0])
    yield Op("all", [("i1",)], vote("all"))
    yield Op("any", [("i1",)], vote("any"))
    yield Op("all_equal", tuples(TYPES), all_equal)
    yield Op("match_any", tuples(TYPES), match_any, MASK_TILES)
    yield Op("match_all", tuples(TYPES), match_all, MASK_TILES)
