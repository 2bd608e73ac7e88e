"""Reductions and scans by a `combine` region: operators that are associative but tell the lanes' order."""
import numpy as np

import scalars
from case import BITS, OPEN_ZERO, VALUE
from kinds import FORMS, make_heads
from op import INTS, TYPES, Made, Op, Result, tuples

REGION_TILES = [0, 1, 2, 4, 8, 16, 32, 64, 128]


class Operator:
    """`text(types)` computes %w0, %w1 .. (or what `yields` names) from the lower lane's %a0, %a1 .. and the higher's
    %b0, %b1 ..; `combine` does the same with arrays. `identity(types)` are values that change nothing; an operator
    without them has no exclusive scan. `choose(types, layout, rng)` makes the operands, of storage where bits are
    compared. `captured(types)` is a scalar that the text uses: (name, type, value)."""

    def __init__(self, name, types, text, combine, identity, choose, equality=VALUE, yields=None, captured=None):
        self.name, self.types, self.text, self.combine, self.identity = name, types, text, combine, identity
        self.choose, self.equality, self.yields, self.captured = choose, equality, yields, captured


# ---- operators --------------------------------------------------------------------------------------------

def affine_text(types):
    """First the lower lane's map x -> a0 x + a1, then the higher one's."""
    return """    %w0 = arith.muli %a0, %b0 : {0}
    %s = arith.muli %a1, %b0 : {0}
    %w1 = arith.addi %s, %b1 : {0}
""".format(*types)


def affine(a, b):
    return [a[0] * b[0], a[1] * b[0] + b[1]]


def matrix_text(types):
    lines = []
    for row in (0, 1):
        for column in (0, 1):
            k = 2 * row + column
            lines += ["%%p%d = arith.muli %%a%d, %%b%d" % (k, 2 * row, column),
                      "%%q%d = arith.muli %%a%d, %%b%d" % (k, 2 * row + 1, 2 + column),
                      "%%w%d = arith.addi %%p%d, %%q%d" % (k, k, k)]
    return "".join("    %s : %s\n" % (line, types[0]) for line in lines)


def matrix(a, b):
    return [a[2 * r] * b[c] + a[2 * r + 1] * b[2 + c] for r in (0, 1) for c in (0, 1)]


def best_text(types):
    """The least first operand, of equal ones the lower lane's; the others come along."""
    op = "arith.cmpf olt" if scalars.is_float(types[0]) else "arith.cmpi slt"
    text = "    %%less = %s, %%b0, %%a0 : %s\n" % (op, types[0])
    return text + "".join("    %%w%d = arith.select %%less, %%b%d, %%a%d : %s\n" % (k, k, k, t)
                          for k, t in enumerate(types))


def best(a, b):
    less = b[0] < a[0]
    return [np.where(less, y, x) for x, y in zip(a, b)]


def ordered_text(types):
    """The least value, the largest, and whether all stand in order."""
    op = "arith.cmpf olt" if scalars.is_float(types[0]) else "arith.cmpi slt"
    return """    %below = {op}, %b0, %a0 : {t}
    %w0 = arith.select %below, %b0, %a0 : {t}
    %above = {op}, %a1, %b1 : {t}
    %w1 = arith.select %above, %b1, %a1 : {t}
    %wrong = {op}, %b0, %a1 : {t}
    %true = arith.constant true
    %right = arith.xori %wrong, %true : i1
    %both = arith.andi %a2, %b2 : i1
    %w2 = arith.andi %both, %right : i1
""".format(op=op, t=types[0])


def ordered(a, b):
    return [np.where(b[0] < a[0], b[0], a[0]), np.where(a[1] < b[1], b[1], a[1]), a[2] & b[2] & ~(b[0] < a[1])]


def shift_text(types):
    return "    %%s = arith.addi %%a0, %%b0 : %s\n    %%w0 = arith.addi %%s, %%m : %s\n" % (types[0], types[0])


def some_text(types):
    """The lower lane's value where it is not zero, by a branch."""
    t = types[0]
    if scalars.is_float(t):
        zero, test = "    %%zero = arith.constant 0.0 : %s\n" % t, "arith.cmpf une"
    elif t == "i1":
        zero, test = "    %zero = arith.constant false\n", "arith.cmpi ne"
    else:
        zero, test = "    %%zero = arith.constant 0 : %s\n" % t, "arith.cmpi ne"
    return zero + """    %%is = %s, %%a0, %%zero : %s
    %%w0 = scf.if %%is -> (%s) {
      scf.yield %%a0 : %s
    } else {
      scf.yield %%b0 : %s
    }
""" % (test, t, t, t, t)


def some(a, b):
    return [np.where(a[0] != 0, a[0], b[0])]


# ---- operands ---------------------------------------------------------------------------------------------

def integers(types, layout, rng):
    return [scalars.randoms(t, layout.total, rng) for t in types]


def odd_slopes(types, layout, rng):
    """Slopes that no product makes zero."""
    slopes, offsets = integers(types, layout, rng)
    return [slopes | 1, offsets]


def shears(types, layout, rng):
    """Matrices of determinant 1, whose products lose nothing."""
    upper = rng.integers(0, 2, layout.total) == 0
    amounts = rng.integers(-3, 4, layout.total)
    one, zero = np.ones(layout.total, int), np.zeros(layout.total, int)
    return [v.astype(scalars.working(t)) for t, v in zip(types, [
        one, np.where(upper, amounts, zero), np.where(upper, zero, amounts), one])]


def any_bits(types, layout, rng):
    return [scalars.patterns(t, layout.total, rng) for t in types]


def few_keys(types, layout, rng):
    """Keys with many equal ones, everything else different."""
    keys = scalars.rounded(types[0], rng.integers(-3, 4, layout.total))
    return [keys] + [scalars.randoms(t, layout.total, rng) for t in types[1:]]


def runs(types, layout, rng):
    """Intervals in order in most tiles, and a break in some."""
    start = np.sort(rng.integers(-60, 60, layout.exists.shape), axis=1)
    start = layout.flat(start)
    start = np.where(rng.integers(0, 3 * layout.lanes, layout.total) == 0, -start, start)
    ok = rng.integers(0, 3 * layout.lanes, layout.total) != 0
    return [scalars.rounded(types[0], start), scalars.rounded(types[1], start), ok]


def mostly_zero(types, layout, rng):
    chosen = rng.integers(0, 6, layout.total) == 0
    values = scalars.rounded(types[0], rng.choice(scalars.edges(types[0]), layout.total))
    return [np.where(chosen, values, np.zeros(1, values.dtype))]


M = 12345  # what `shift` captures


def wrapped(value, type):
    bits = scalars.width(type)
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def shift(a, b):
    return [a[0] + b[0] + np.asarray(wrapped(M, "i%d" % (8 * a[0].itemsize)), a[0].dtype)]


def largest(type):
    return np.inf if scalars.is_float(type) else (1 << scalars.width(type) - 1) - 1


def smallest(type):
    return -np.inf if scalars.is_float(type) else -(1 << scalars.width(type) - 1)


OPERATORS = [
    Operator("affine", [(t, t) for t in INTS], affine_text, affine, lambda types: [1, 0], odd_slopes),
    Operator("matrix", [(t,) * 4 for t in ("i8", "i32", "i64")], matrix_text, matrix, lambda types: [1, 0, 0, 1],
             shears),
    Operator("first", tuples(TYPES), lambda types: "", lambda a, b: a, None, any_bits, equality=BITS, yields=["%a0"]),
    Operator("last", tuples(TYPES), lambda types: "", lambda a, b: b, None, any_bits, equality=BITS, yields=["%b0"]),
    Operator("best", [("f32", "i32"), ("f64", "i8"), ("f16", "i64"), ("i32", "f64"), ("i8", "i1"), ("bf16", "f32"),
                      ("i64", "i16")], best_text, best, lambda types: [largest(types[0]), 0], few_keys),
    Operator("best3", [("f32", "i64", "i8"), ("i16", "f32", "i1"), ("f64", "bf16", "i32")], best_text, best,
             lambda types: [largest(types[0]), 1, 1], few_keys),
    Operator("ordered", [(t, t, "i1") for t in ("f32", "f64", "i16", "i32")], ordered_text, ordered,
             lambda types: [largest(types[0]), smallest(types[0]), True], runs),
    Operator("shift", tuples(INTS), shift_text, shift, lambda types: [wrapped(-M, types[0])], integers,
             captured=lambda types: ("m", types[0], wrapped(M, types[0]))),
    # A float's -0 counts as none, and none may be +0.
    Operator("some", tuples(TYPES), some_text, some, lambda types: [0], mostly_zero, equality=OPEN_ZERO),
]


# ---- rows -------------------------------------------------------------------------------------------------

def names(letter, types):
    return ", ".join("%%%s%d" % (letter, k) for k in range(len(types)))


def make(form, operator):
    def function(types, layout, rng):
        operands = operator.choose(types, layout, rng)
        inputs = [("v%d" % k, type, values) for k, (type, values) in enumerate(zip(types, operands))]
        given = [operator.captured(types)] if operator.captured else []
        identity = operator.identity(types) if form.is_exclusive else None
        before, clauses, all_types, heads = "", "", list(types), None
        if form.is_segmented:
            head_type, head_values, heads = make_heads(layout, rng)
            inputs.append(("h", head_type, head_values))
            clauses, all_types = " head %h", all_types + [head_type]
        clauses += "{tile}"
        if identity:
            clauses += " identity(%s)" % names("e", types)
            for k, (type, value) in enumerate(zip(types, identity)):
                typed = "" if type == "i1" else " : " + type
                before += "  %%e%d = arith.constant %s%s\n" % (k, scalars.literal(type, value), typed)
        yields = ", ".join(operator.yields or ["%%w%d" % k for k in range(len(types))])
        text = before + "  %s = qd.subgroup.%s (%s)%s : %s combine (%s), (%s) {\n%s    qd.yield %s : %s\n  }\n" % (
            names("r", types), form.mnemonic, names("v", types), clauses, ", ".join(all_types), names("a", types),
            names("b", types), operator.text(types), yields, ", ".join(types))
        results, defined = form.results(layout, [layout.matrix(v) for v in operands], operator.combine, identity, heads)
        return Made(text, inputs, given, [Result(type, layout.flat(result), defined, operator.equality)
                                          for type, result in zip(types, results)])
    return function


def ops():
    for form in FORMS:
        for operator in OPERATORS:
            if operator.identity or not form.is_exclusive:
                yield Op("%s.by.%s" % (form.name, operator.name), operator.types, make(form, operator), REGION_TILES)
