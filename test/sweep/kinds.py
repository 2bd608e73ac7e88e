"""Reductions and scans by a kind: inputs, and references that fold in lane order."""
import numpy as np

import scalars
from case import OPEN_ZERO, VALUE
from op import FLOATS, INTS, TILES, Made, Op, Result, tuples


# ---- folds ------------------------------------------------------------------------------------------------

def scan(values, combine, heads=None):
    """Of matrices, one an operand: the combination of each lane's segment up to the lane."""
    columns = [[v[:, 0] for v in values]]
    with np.errstate(all="ignore"):
        for lane in range(1, values[0].shape[1]):
            own = [v[:, lane] for v in values]
            both = combine(columns[-1], own)
            if heads is not None:
                both = [np.where(heads[:, lane], o, b) for o, b in zip(own, both)]
            columns.append(both)
    return [np.stack([c[k] for c in columns], axis=1).astype(v.dtype) for k, v in enumerate(values)]


def ends(layout, heads):
    """The last lane of each lane's segment."""
    lanes = np.arange(layout.lanes)
    last = np.empty(layout.exists.shape, int)
    current = layout.count - 1
    for lane in lanes[::-1]:
        last[:, lane] = current
        current = np.where(heads[:, lane], lane - 1, current)
    return np.maximum(last, lanes)


class Form:
    """One of the seven ops: its text, and its results from those of the scan."""

    def __init__(self, name, is_exclusive=False, is_segmented=False, takes=None):
        self.name, self.is_exclusive, self.is_segmented, self.takes = name, is_exclusive, is_segmented, takes

    @property
    def mnemonic(self):
        return "segmented_scan exclusive" if self.name == "segmented_scan.exclusive" else self.name

    def results(self, layout, values, combine, identities, heads):
        """Matrices, and the flat mask of the lanes where they are defined."""
        scanned = scan(values, combine, heads if self.is_segmented else None)
        rows = np.arange(len(layout.count))[:, None]
        defined = True
        if self.is_exclusive:
            starts = np.zeros(layout.exists.shape, bool) if heads is None else heads.copy()
            starts[:, 0] = True
            before = [np.concatenate([s[:, :1], s[:, :-1]], axis=1) for s in scanned]
            scanned = [np.where(starts, np.asarray(identity, b.dtype), b) for identity, b in zip(identities, before)]
        elif self.takes == "segment":
            scanned = [s[rows, ends(layout, heads)] for s in scanned]
        elif self.takes:
            scanned = [np.broadcast_to(s[rows[:, 0], layout.count - 1][:, None], s.shape) for s in scanned]
            if self.takes == "first":
                defined = layout.lane() == 0
        return scanned, defined


FORMS = [Form("reduce", takes="first"), Form("reduce_all", takes="all"), Form("inclusive_scan"),
         Form("exclusive_scan", is_exclusive=True), Form("segmented_scan", is_segmented=True),
         Form("segmented_scan.exclusive", is_exclusive=True, is_segmented=True),
         Form("segmented_reduce_all", is_segmented=True, takes="segment")]


def make_heads(layout, rng):
    """A head's type and values: few heads in one block, many in another, all or none in the third."""
    type = str(rng.choice(["i1", "i8", "i32", "i64"]))
    chance = [8, 2, int(rng.choice([1, 10 ** 9]))]
    heads = layout.of_block([rng.integers(0, c, layout.block) == 0 for c in chance])
    values = np.where(heads, rng.choice([v for v in scalars.edges(type) if v], layout.total), 0)
    return type, values.astype(scalars.storage(type)), layout.matrix(heads)


# ---- kinds ------------------------------------------------------------------------------------------------

def unsigned(values):
    return values.view(np.uint8) if values.dtype == np.bool_ else values.view("u%d" % values.dtype.itemsize)


def as_signed(values):
    """A bool's one is -1."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def pick(first_wins):
    return lambda a, b: np.where(first_wins(a, b), a, b)


def minimum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where((a < b) | ((a == b) & np.signbit(a)), a, b))


def maximum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b))


def add(a, b):
    return a ^ b if a.dtype == np.bool_ else a + b


def mul(a, b):
    return a & b if a.dtype == np.bool_ else a * b


COMBINE = {
    "add": add, "mul": mul,
    "minsi": pick(lambda a, b: as_signed(a) <= as_signed(b)), "maxsi": pick(lambda a, b: as_signed(a) >= as_signed(b)),
    "minui": pick(lambda a, b: unsigned(a) <= unsigned(b)), "maxui": pick(lambda a, b: unsigned(a) >= unsigned(b)),
    "andi": lambda a, b: a & b, "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b,
    "minnumf": np.fmin, "maxnumf": np.fmax, "minimumf": minimum, "maximumf": maximum,
}
INTEGER_KINDS = ["add", "mul", "minsi", "minui", "maxsi", "maxui", "andi", "ori", "xori"]
FLOAT_KINDS = ["add", "mul", "minnumf", "maxnumf", "minimumf", "maximumf"]


def identity(kind, type):
    if scalars.is_float(type):
        return {"add": 0.0, "mul": 1.0, "minnumf": np.inf, "minimumf": np.inf}.get(kind, -np.inf)
    ones = 1 if type == "i1" else -1
    smallest = 1 if type == "i1" else -(1 << scalars.width(type) - 1)
    largest = 0 if type == "i1" else -(smallest + 1)
    return {"add": 0, "mul": 1, "minsi": largest, "minui": ones, "maxsi": smallest, "andi": ones}.get(kind, 0)


def constants(layout, choices, rng):
    """Tiles that hold one value each."""
    rows = rng.choice(choices, len(layout.count))
    return layout.flat(rows[:, None])


def exact_terms(type, layout, rng):
    """Floats whose sums are exact in any order: magnitudes in a tile add up to less than the significand holds. One
    block has tiles of one value, with zeros of one sign, infinities and NaNs; another a few of those among others."""
    room = 1 << scalars.FORMATS[type][0]
    largest = min(room // layout.lanes, 99)
    if largest:
        terms = rng.integers(-largest, largest + 1, layout.total)
    else:
        terms = np.where(rng.integers(0, 8, layout.total) == 0, rng.choice([-1, 1], layout.total), 0)
    sums = np.abs(layout.matrix(terms) * layout.exists).sum(axis=1)
    assert sums.max() <= room, "sums of %s are not exact" % type
    special = np.array([-0.0, np.inf, -np.inf, np.nan, 0.0])
    mixed = np.where(rng.integers(0, 2 * layout.lanes, layout.total) == 0, rng.choice(special, layout.total), terms)
    return np.concatenate([terms[:layout.block], constants(layout, special, rng)[layout.block:2 * layout.block],
                           mixed[2 * layout.block:]])


def exact_factors(type, layout, rng):
    """Floats whose products are exact in any order: few twos and halves among ones of both signs."""
    exponents = np.where(rng.integers(0, max(16, layout.lanes // 4), layout.total) == 0,
                         rng.integers(-1, 2, layout.total), 0)
    products = 2.0 ** exponents * rng.choice([-1.0, 1.0], layout.total)
    special = np.array([-0.0, np.inf, -np.inf, np.nan, 0.0, 1.0, -1.0])
    mixed = np.where(rng.integers(0, 2 * layout.lanes, layout.total) == 0, rng.choice(special, layout.total), products)
    return np.concatenate([products[:layout.block], constants(layout, special, rng)[layout.block:2 * layout.block],
                           mixed[2 * layout.block:]])


def edges_and_randoms(type, layout, rng):
    """Random values with edges among them, tiles of one edge value each, and tiles of a few values."""
    edges = scalars.edges(type)
    randoms = scalars.randoms(type, layout.total, rng)
    first = np.where(rng.integers(0, 4, layout.total) == 0, rng.choice(edges, layout.total), randoms)
    few = rng.choice(edges, (len(layout.count), 3))
    third = few[np.arange(len(layout.count))[:, None], rng.integers(0, 3, layout.exists.shape)]
    return np.concatenate([first[:layout.block], constants(layout, edges, rng)[layout.block:2 * layout.block],
                           layout.flat(third)[2 * layout.block:]]).astype(scalars.working(type))


def make_inputs(kind, type, layout, rng):
    if scalars.is_float(type) and kind in ("add", "mul"):
        values = (exact_terms if kind == "add" else exact_factors)(type, layout, rng)
    else:
        values = edges_and_randoms(type, layout, rng)
    return scalars.rounded(type, values)


def statement(form, kind, types):
    head = " head %h" if form.is_segmented else ""
    return "  %%r0 = qd.subgroup.%s %s %%v%s{tile} : %s\n" % (form.mnemonic, kind, head, ", ".join(types))


def make(form, kind):
    def function(types, layout, rng):
        type, = types
        values = make_inputs(kind, type, layout, rng)
        inputs, names, heads = [("v", type, values)], [type], None
        if form.is_segmented:
            head_type, head_values, heads = make_heads(layout, rng)
            inputs.append(("h", head_type, head_values))
            names.append(head_type)
        combine = lambda a, b: [scalars.rounded(type, COMBINE[kind](a[0], b[0]))]
        (result,), defined = form.results(layout, [layout.matrix(values)], combine, [identity(kind, type)], heads)
        equality = OPEN_ZERO if kind in ("minnumf", "maxnumf") else VALUE
        return Made(statement(form, kind, names), inputs, [],
                    [Result(type, layout.flat(result), defined, equality)])
    return function


# ---- random sums and products, within what the association may differ ------------------------------------------

def make_random(form, kind):
    """n terms take n - 1 roundings in any association: a sum is off by at most g * the sum of magnitudes, a product by
    g * its own, where g = n u / (1 - n u) and u is half a unit of the significand."""
    def function(types, layout, rng):
        type, = types
        if kind == "add":
            values = scalars.rounded(type, rng.standard_normal(layout.total) * 2.0 ** rng.integers(-3, 4, layout.total))
        else:
            nearly_one = 1 + rng.uniform(-1, 1, layout.total) / 16
            values = scalars.rounded(type, nearly_one * rng.choice([-1, 1], layout.total))
        inputs, names, heads = [("v", type, values)], [type], None
        if form.is_segmented:
            head_type, head_values, heads = make_heads(layout, rng)
            inputs.append(("h", head_type, head_values))
            names.append(head_type)
        matrix = layout.matrix(values).astype(np.longdouble)
        combine = lambda a, b: [COMBINE[kind](a[0], b[0])]
        one = [identity(kind, type)]
        (result,), defined = form.results(layout, [matrix], combine, one, heads)
        (magnitude,), _ = form.results(layout, [np.abs(matrix)], combine, one, heads)
        unit = layout.lanes * 2.0 ** -scalars.FORMATS[type][0]
        bound = np.float64(unit / (1 - unit)) * layout.flat(magnitude).astype(np.float64) + float(
            2.0 ** (1 - scalars.FORMATS[type][0])) * np.abs(layout.flat(result).astype(np.float64))
        return Made(statement(form, kind, names), inputs, [],
                    [Result(type, scalars.rounded(type, layout.flat(result)), defined, VALUE, bound)])
    return function


def ops():
    for form in FORMS:
        for kind in dict.fromkeys(INTEGER_KINDS + FLOAT_KINDS):
            types = (["i1"] + INTS if kind in INTEGER_KINDS else []) + (FLOATS if kind in FLOAT_KINDS else [])
            yield Op("%s.%s" % (form.name, kind), tuples(types), make(form, kind))
        for kind in ("add", "mul"):
            yield Op("%s.%s.random" % (form.name, kind), tuples(FLOATS), make_random(form, kind), TILES[:-2])
