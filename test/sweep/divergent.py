"""What is legal in divergent control flow: active_mask, and ballot, shuffle and match with `members`.

Members meet in three ways. `branch`: both sides of a divergent branch, nested or not, each with the mask of the lanes
that went there. `loop`: in a loop that lanes leave one after another, with the mask of those that are left. `classes`:
in uniform control flow, each lane with the mask of the lanes of its class.
"""
import numpy as np

import scalars
from case import BITS
from op import TYPES, Made, Op, Result, tuples
from votes import alike, masks

CLASSES = 3


def choose_classes(layout, rng):
    """A class a lane; one block has subgroups of one class, and one or two lanes of another."""
    random = rng.integers(0, CLASSES, layout.total)
    one = layout.flat(rng.integers(0, CLASSES, (len(layout.count), 1)))
    single = np.where(rng.integers(0, layout.lanes, layout.total) == 0, random, one)
    return np.concatenate([random[:layout.block], one[layout.block:2 * layout.block], single[2 * layout.block:]])


def pairs(layout, classes):
    """matrix[t, i, j]: whether lanes i and j of subgroup t exist and are of one class."""
    c = layout.matrix(classes)
    return (c[:, :, None] == c[:, None, :]) & layout.exists[:, None, :]


def left_in_loop(layout, classes):
    """Whether lane j is still there in lane i's last turn; lanes of class 0 have none."""
    c = layout.matrix(classes)
    return (c[:, :, None] <= c[:, None, :]) & (c[:, :, None] > 0) & layout.exists[:, None, :]


def weigh(bits):
    """An i64 from the last dimension's bits."""
    weights = np.uint64(1) << np.arange(bits.shape[-1], dtype=np.uint64)
    return np.bitwise_or.reduce(np.where(bits, weights, np.uint64(0)), axis=-1).view(np.int64)


# ---- what each op gives: text of one use, with %NAME suffixed, and the values -----------------------------------

def use_active_mask(types, layout, rng, meets):
    return "qd.subgroup.active_mask : i64", [], [("i64", layout.flat(weigh(meets)), True)]


def use_ballot(types, layout, rng, meets):
    p = rng.integers(0, 2, layout.total) == 0
    return "qd.subgroup.ballot %p members(%m) : i64", [("p", "i1", p)], [
        ("i64", layout.flat(weigh(meets & layout.matrix(p)[:, None, :])), True)]


def use_shuffle(types, layout, rng, meets):
    """Mostly lanes that are members; of others the result is poison. The lane is taken modulo the subgroup."""
    type, = types
    values = scalars.patterns(type, layout.total, rng)
    guess = rng.integers(0, layout.lanes, meets.shape[:2])
    rows, lanes = np.indices(guess.shape)
    first = np.argmax(np.roll(meets, 1, axis=2), axis=2) - 1  # some member, negative ones from the end
    source = np.where(meets[rows, lanes, guess], guess, first % layout.lanes)
    source = np.where(rng.integers(0, 8, guess.shape) == 0, guess, source)
    number = (source + layout.lanes * rng.integers(-2, 3, guess.shape)).astype(np.int32)
    return "qd.subgroup.shuffle %%v, %%n members(%%m) : %s" % type, [
        ("v", type, values), ("n", "i32", layout.flat(number))], [
        (type, layout.flat(layout.matrix(values)[rows, source]), layout.flat(meets[rows, lanes, source]))]


def use_match_any(types, layout, rng, meets):
    type, = types
    stored = alike(type, layout, rng)
    raw = layout.matrix(scalars.bits(type, stored))
    result = weigh(meets & (raw[:, :, None] == raw[:, None, :]))
    return "qd.subgroup.match_any %%v members(%%m) : %s" % type, [("v", type, stored)], [
        ("i64", layout.flat(result), True)]


def use_match_all(types, layout, rng, meets):
    type, = types
    stored = alike(type, layout, rng)
    raw = layout.matrix(scalars.bits(type, stored))
    same = (~meets | (raw[:, :, None] == raw[:, None, :])).all(axis=2)
    return "qd.subgroup.match_all %%v members(%%m) : %s" % type, [("v", type, stored)], [
        ("i64", layout.flat(np.where(same, weigh(meets), 0)), True), ("i1", layout.flat(same), True)]


# ---- where they stand -------------------------------------------------------------------------------------

def assignment(text, count, suffix):
    """%r0, %r1 = text, each with a suffix."""
    return "%s = %s" % (", ".join("%%r%d%s" % (k, suffix) for k in range(count)), text)


def branch_text(op, result_types):
    """Class 0 in the first branch, 1 and 2 in the inner ones of the second."""
    count, types = len(result_types), ", ".join(result_types)

    def side(number):
        yields = ", ".join("%%r%d_%d" % (k, number) for k in range(count))
        return "%s\n      scf.yield %s : %s\n" % (
            assignment(op.replace("%m", "%%m%d" % number), count, "_%d" % number), yields, types)

    votes = "".join("  %%m%d = qd.subgroup.ballot %%is%d : i64\n" % (k, k) for k in range(CLASSES)) \
        if "%m" in op else ""
    inner = ", ".join("%%r%d_s" % k for k in range(count))
    outer = ", ".join("%%r%d" % k for k in range(count))
    return """{tests}{votes}  {outer} = scf.if %is0 -> ({types}) {{
      {first}  }} else {{
    {inner} = scf.if %is1 -> ({types}) {{
      {second}    }} else {{
      {third}    }}
    scf.yield {inner} : {types}
  }}
""".format(tests=tests(), votes=votes, outer=outer, inner=inner, types=types, first=side(0), second=side(1),
           third=side(2))


def tests():
    return "".join("""  %%k%d = arith.constant %d : i32
  %%is%d = arith.cmpi eq, %%c, %%k%d : i32
""" % (k, k, k, k) for k in range(CLASSES))


def classes_text(op, result_types):
    """Each lane takes the mask of its class."""
    votes = "".join("  %%m%d = qd.subgroup.ballot %%is%d : i64\n" % (k, k) for k in range(CLASSES))
    return tests() + votes + """  %mx = arith.select %is0, %m0, %m1 : i64
  %m = arith.select %is2, %m2, %mx : i64
  """ + assignment(op, len(result_types), "") + "\n"


def zero(type):
    """What a lane without a turn keeps: with no members, all match."""
    return "true" if type == "i1" else "%s : %s" % (scalars.literal(type, 0), type)


def loop_text(op, result_types):
    """A lane makes as many turns as its class's number; the last one counts."""
    count, types = len(result_types), ", ".join(result_types)
    kept = ", ".join("%%a%d = %%z%d" % (k, k) for k in range(count))
    lines = ["%m0 = qd.subgroup.ballot %first : i64", "%m1 = qd.subgroup.ballot %is2 : i64"]
    lines = ["%zero = arith.constant 0 : i32", "%first = arith.cmpi sgt, %c, %zero : i32"] + lines
    lines += ["%%z%d = arith.constant %s" % (k, zero(type)) for k, type in enumerate(result_types)]
    results = ", ".join("%%r%d" % k for k in range(count))
    lines += ["%s = scf.for %%k = %%zero to %%c step %%k1 iter_args(%s) -> (%s) : i32 {" % (results, kept, types),
              "  %one = arith.cmpi eq, %k, %k1 : i32", "  %m = arith.select %one, %m1, %m0 : i64",
              "  " + assignment(op, count, "_in"),
              "  scf.yield %s : %s" % (", ".join("%%r%d_in" % k for k in range(count)), types), "}"]
    return tests() + "".join("  %s\n" % line for line in lines)


def make(use, text_of, meeting=pairs):
    def function(types, layout, rng):
        classes = choose_classes(layout, rng)
        op, inputs, results = use(types, layout, rng, meeting(layout, classes))
        text = text_of(op, [type for type, _, _ in results])
        return Made(text, [("c", "i32", classes.astype(np.int32))] + inputs, [],
                    [Result(type, values, defined, BITS) for type, values, defined in results])
    return function


def active_mask(types, layout, rng):
    return Made("  %r0 = qd.subgroup.active_mask : i64\n", [], [],
                [Result("i64", layout.flat(masks(layout, layout.exists)))])


def branch_only(types, layout, rng):
    """A shuffle whose result one side of a branch alone uses: all lanes must be read all the same."""
    type, = types
    values = scalars.patterns(type, layout.total, rng)
    takes = choose_classes(layout, rng) == 0
    rows, lanes = np.indices(layout.exists.shape)
    source = np.minimum(lanes ^ 1, layout.lanes - 1)
    moved, defined = layout.flat(layout.matrix(values)[rows, source]), layout.flat(layout.exists[rows, source])
    text = """  %w = qd.subgroup.shuffle_xor %v, 1 : {0}
  %r0 = scf.if %t -> ({0}) {{
    scf.yield %w : {0}
  }} else {{
    scf.yield %v : {0}
  }}
""".format(type)
    return Made(text, [("v", type, values), ("t", "i1", takes)], [],
                [Result(type, np.where(takes, moved, values), defined | ~takes, BITS)])


def ops():
    yield Op("active_mask", [("i64",)], active_mask, [0])
    yield Op("active_mask.branch", [("i64",)], make(use_active_mask, branch_text), [0])
    yield Op("shuffle_xor.branch_only", tuples(TYPES), branch_only, [0])
    for text_of, where, meeting in ((branch_text, "branch", pairs), (loop_text, "loop", left_in_loop),
                                    (classes_text, "classes", pairs)):
        yield Op("ballot.members." + where, [("i1",)], make(use_ballot, text_of, meeting), [0])
        yield Op("shuffle.members." + where, tuples(TYPES), make(use_shuffle, text_of, meeting), [0])
        yield Op("match_any.members." + where, tuples(TYPES), make(use_match_any, text_of, meeting), [0])
        yield Op("match_all.members." + where, tuples(TYPES), make(use_match_all, text_of, meeting), [0])
