"""Ops of the block: those of the subgroup once more, with the block as one tile, and what only blocks have."""
import numpy as np

import kinds
import regions
import scalars
import sorts
import votes
from case import BITS
from layout import ODD
from op import FLOATS, INTS, TYPES, Made, Op, Result, tuples

# ODD stands for others with each type, subgroup size and seed.
SHAPES = [(1, 1, 1), (7, 1, 1), (24, 1, 1), (32, 1, 1), (64, 1, 1), (100, 1, 1), (165, 1, 1), (256, 1, 1), (1001, 1, 1),
          (1024, 1, 1), (8, 4, 3), (5, 7, 3), (32, 32, 1), ODD]
SOME_SHAPES = [(3, 1, 1), (48, 1, 1), (128, 1, 1), (5, 5, 5), (640, 1, 1), (1024, 1, 1), ODD]


# ---- votes and single threads ------------------------------------------------------------------------------------

def elect(types, layout, rng):
    return Made("  %r0 = qd.block.elect\n", [], [], [Result("i1", layout.lane() == 0)])


def vote(name, type, decide):
    def make(types, layout, rng):
        predicates = votes.predicates(layout, rng)
        counts = layout.matrix(predicates).sum(axis=1)[:, None]
        return Made("  %%r0 = qd.block.sync_%s %%p\n" % name, [("p", "i1", predicates)], [],
                    [Result(type, layout.flat(decide(counts, layout.block)).astype(scalars.working(type)))])
    return Op("block.sync_" + name, [(type,)], make, SHAPES)


def broadcast(is_literal):
    def make(types, layout, rng):
        type, = types
        values = scalars.patterns(type, layout.total, rng)
        thread = int(rng.choice([0, layout.block - 1, rng.integers(0, layout.block)]))
        operand, given = (str(thread), []) if is_literal else ("%n", [("n", "i32", thread)])
        text = "  %%r0 = qd.block.broadcast %%v, %s : %s\n" % (operand, type)
        result = layout.flat(layout.matrix(values)[:, thread:thread + 1])
        return Made(text, [("v", type, values)], given, [Result(type, result, True, BITS)])
    return make


# ---- the same memory again -----------------------------------------------------------------------------------------

ROUNDS = 3
# In each round the op's result, an odd multiple of it and the first value make the next operand.
LOOP = """  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rounds = arith.constant {rounds} : i32
  %odd = arith.constant 77 : {type}
  %r0 = scf.for %j = %zero to %rounds step %one iter_args(%x = %v) -> ({type}) : i32 {{
{round}    %scaled = arith.muli %y, %odd : {type}
    %next = arith.addi %scaled, %v : {type}
    scf.yield %next : {type}
  }}
"""


def again(round_text, function):
    def make(types, layout, rng):
        type, = types
        values = scalars.randoms(type, layout.total, rng)
        first = layout.matrix(values)
        x = first
        with np.errstate(all="ignore"):
            for _ in range(ROUNDS):
                x = np.broadcast_to(function(x), x.shape).astype(first.dtype) * first.dtype.type(77) + first
        text = LOOP.format(rounds=ROUNDS, type=type, round=round_text.format(type=type))
        return Made(text, [("v", type, values)], [], [Result(type, layout.flat(x))])
    return make


def sums(x):
    return np.cumsum(x, axis=1, dtype=x.dtype)


AGAIN = {
    "reduce": ("    %s = qd.block.reduce add %x : {type}\n    %y = qd.block.broadcast %s, 0 : {type}\n",
               lambda x: sums(x)[:, -1:]),
    "reduce_all": ("    %y = qd.block.reduce_all add %x : {type}\n", lambda x: sums(x)[:, -1:]),
    "inclusive_scan": ("    %y = qd.block.inclusive_scan add %x : {type}\n", sums),
    "exclusive_scan": ("    %y = qd.block.exclusive_scan add %x : {type}\n", lambda x: sums(x) - x),
    "bitonic_sort": ("    %y = qd.block.bitonic_sort %x : {type}\n", lambda x: np.sort(x, axis=1)),
    "radix_sort": ("    %y = qd.block.radix_sort (%x) : {type}\n", lambda x: np.sort(x, axis=1)),
}


def count_again():
    """sync_count gives an i32."""
    text = ("    %none = arith.constant 0 : i32\n    %p = arith.cmpi slt, %x, %none : i32\n"
            "    %y = qd.block.sync_count %p\n")
    return again(text, lambda x: (x < 0).sum(axis=1, keepdims=True))


# ---- ranks by a digit ----------------------------------------------------------------------------------------------

def radix_rank(each, radix_bits, num_bits, begin, arrays):
    """`begin` None is 0, a number a literal, "operand" a scalar of the launch. `arrays` are those of bins and prefix
    that the op gets; each thread then reads one element of each."""
    def make(types, layout, rng):
        type, = types
        width, words = scalars.width(type), ""
        start = 0
        if begin is not None:
            start = int(rng.integers(0, width - 1)) if begin == "operand" else begin
        pool = scalars.randoms(type, 5, rng)
        keys = [np.where(rng.integers(0, 2, layout.total) == 0, rng.choice(pool, layout.total),
                         scalars.randoms(type, layout.total, rng)) for _ in range(each)]
        # In the order thread, then operand.
        flat = np.stack([layout.matrix(k) for k in keys], axis=2).reshape(len(layout.count), -1)
        digits = (flat.view("u%d" % (width // 8)) >> flat.dtype.type(start).view("u%d" % (width // 8))).astype(np.int64)
        digits &= (1 << (num_bits or radix_bits)) - 1
        order = np.argsort(digits, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
        ranks = ranks.reshape(len(layout.count), layout.block, each)
        bins = np.stack([np.bincount(row, minlength=1 << radix_bits) for row in digits])
        tables = {"bins": bins, "prefix": np.cumsum(bins, axis=1) - bins}
        text, given = "", []
        for name in arrays:
            text += "  %%%s = qd.shared.alloc : !qd.shared<%dxi32>\n" % (name, 1 << radix_bits)
            words += " %s(%%%s)" % (name, name)
        if begin == "operand":
            given, clause = [("b", "i32", start)], " begin(%b)"
        else:
            clause = "" if begin is None else " begin(%d)" % begin
        clause = (" num_bits(%d)" % num_bits if num_bits else "") + clause
        results = ", ".join("%%r%d" % i for i in range(each))
        text += "  %s = qd.block.radix_rank (%s) radix_bits(%d)%s%s : %s\n" % (
            results, ", ".join("%%k%d" % i for i in range(each)), radix_bits, clause, words, type)
        out = [Result("i32", layout.flat(ranks[:, :, i])) for i in range(each)]
        if arrays:
            text += "  %%mask = arith.constant %d : i32\n  %%t = qd.thread_index : i32\n" % ((1 << radix_bits) - 1)
            text += "  %at = arith.andi %t, %mask : i32\n"
        for i, name in enumerate(arrays):
            text += "  %%r%d = qd.load %%%s[%%at] : !qd.shared<%dxi32>\n" % (each + i, name, 1 << radix_bits)
            read = np.arange(layout.block) & ((1 << radix_bits) - 1)
            out.append(Result("i32", layout.flat(tables[name][:, read])))
        return Made(text, [("k%d" % i, type, k) for i, k in enumerate(keys)], given, out)
    return make


RANKS = {
    "": (1, 8, None, None, ()), "two": (2, 4, 3, 5, ("bins",)), "four": (4, 8, 8, "operand", ("bins", "prefix")),
    "narrow": (1, 1, None, 31, ("prefix",)), "wide": (1, 10, 9, "operand", ("bins", "prefix")),
    "eight": (8, 6, 2, 0, ()),
}


# ---- radix sorts ---------------------------------------------------------------------------------------------------

def place(type, stored, is_unsigned):
    """A key's place in the order of its type, as u64: what the sort's digits are of."""
    raw = scalars.bits(type, stored).astype(np.uint64)
    width = scalars.width(type)
    sign, ones = np.uint64(1 << width - 1), np.uint64((1 << width) - 1)
    if not scalars.is_float(type):
        return raw if is_unsigned else raw ^ sign
    # Negative NaNs are as many as a fraction has values that are not 0; they move from the bottom to the top.
    negative_nans = np.uint64((1 << scalars.FORMATS[type][0] - 1) - 1)
    return (np.where(raw & sign, raw ^ ones, raw | sign) - negative_nans) & ones


def radix_sort(is_descending, is_unsigned, each, bits, has_values):
    """`bits` gives begin and end as parts of the key's width, or is None."""
    def make(types, layout, rng):
        key_type = types[0]
        width = scalars.width(key_type)
        begin, end = (0, width) if bits is None else (int(bits[0] * width), max(int(bits[1] * width), 1))
        keys = [sorts.values_of(key_type, layout, rng) for _ in range(each)]
        values = [scalars.patterns(types[1], layout.total, rng) for _ in range(each)] if has_values else []
        row = lambda columns: np.stack([layout.matrix(c) for c in columns], axis=2).reshape(len(layout.count), -1)
        places = row([place(key_type, k, is_unsigned) for k in keys])
        digits = places >> np.uint64(begin) & np.uint64((1 << end - begin) - 1)
        order = np.argsort(~digits if is_descending else digits, axis=1, kind="stable")
        names = lambda letter: ", ".join("%%%s%d" % (letter, i) for i in range(each))
        text = "  %s = qd.block.radix_sort %s%s(%s)%s%s : %s\n" % (
            ", ".join("%%r%d" % i for i in range(each * (1 + has_values))), "descending " * is_descending,
            "unsigned " * is_unsigned, names("k"), " values(%s)" % names("v") if has_values else "",
            "" if bits is None else " begin(%d) end(%d)" % (begin, end), ", ".join(types))
        results = []
        for type, columns in zip(types, [keys, values] if has_values else [keys]):
            arranged = np.take_along_axis(row(columns), order, axis=1).reshape(len(layout.count), layout.block, each)
            results += [Result(type, layout.flat(arranged[:, :, i]), True, BITS) for i in range(each)]
        inputs = [("k%d" % i, key_type, k) for i, k in enumerate(keys)]
        return Made(text, inputs + [("v%d" % i, types[1], v) for i, v in enumerate(values)], [], results)
    return make


# ---- all of them ---------------------------------------------------------------------------------------------------

def of_block(make):
    """The same op of the block."""
    def function(types, layout, rng):
        made = make(types, layout, rng)
        return made and made._replace(text=made.text.replace("qd.subgroup.", "qd.block."))
    return function


def ops():
    yield Op("block.elect", [("i1",)], elect, SHAPES)
    yield vote("all", "i1", lambda counts, threads: counts == threads)
    yield vote("any", "i1", lambda counts, threads: counts > 0)
    yield vote("count", "i32", lambda counts, threads: counts)
    yield Op("block.broadcast", tuples(TYPES), broadcast(False), SHAPES)
    yield Op("block.broadcast.literal", tuples(TYPES), broadcast(True), SHAPES)
    for family in (kinds, regions):
        for op in family.ops():
            if not op.name.startswith("segmented_reduce_all"):
                is_random = op.name.endswith(".random")
                # The error of as many bf16 terms has no bound.
                types = [t for t in op.types if not is_random or t != ("bf16",)]
                yield Op("block." + op.name, types, of_block(op.make),
                         SOME_SHAPES if is_random or family is regions else SHAPES)
    for op in sorts.ops():
        yield Op("block." + op.name, op.types, of_block(op.make), SOME_SHAPES if "_kv" in op.name else SHAPES)
    for name, (text, function) in AGAIN.items():
        types = ["i32"] if "sort" in name else ["i32", "i64"]
        yield Op("block.%s.again" % name, tuples(types), again(text, function), SHAPES)
    yield Op("block.sync_count.again", [("i32",)], count_again(), SHAPES)
    for name, parameters in RANKS.items():
        yield Op("block.radix_rank" + "." * bool(name) + name, tuples(["i32", "i64"]), radix_rank(*parameters), SHAPES)
    for down in (False, True):
        word = ".descending" * down
        yield Op("block.radix_sort" + word, tuples(TYPES), radix_sort(down, False, 1, None, False), SHAPES)
        yield Op("block.radix_sort%s.unsigned" % word, tuples(["i1"] + INTS), radix_sort(down, True, 1, None, False),
                 SOME_SHAPES)
        yield Op("block.radix_sort%s.values" % word, [(k, v) for k in INTS + FLOATS for v in ("i8", "f32", "i64")],
                 radix_sort(down, False, 2, None, True), SOME_SHAPES)
        yield Op("block.radix_sort%s.bits" % word, tuples(INTS + FLOATS),
                 radix_sort(down, False, 3, (0.25, 0.75), False), SOME_SHAPES)
