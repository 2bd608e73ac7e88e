"""Atomic accesses of global and shared arrays: each thread its own element, two a thread's, all threads one.

Where threads meet, the old values must be those of some order: over all threads, the sum of a hash of what each found
less that of what each left there is the hash of the first value less that of the last. The kernel adds it up.
"""
import numpy as np

import scalars
from case import BITS, OPEN_ZERO, VALUE, Case, Output
from compare import FILL

INT_KINDS = ["add", "mul", "minsi", "minui", "maxsi", "maxui", "andi", "ori", "xori", "sub", "exchange"]
FLOAT_KINDS = ["add", "mul", "minnumf", "maxnumf", "minimumf", "maximumf", "sub", "exchange"]
BOOL_KINDS = ["andi", "ori", "xori", "exchange"]
BLOCK, GRID = 40, 2  # threads a block: no multiple of a subgroup
SHARED, GLOBAL = "shared", "global"


def kinds(type):
    return BOOL_KINDS if type == "i1" else FLOAT_KINDS if scalars.is_float(type) else INT_KINDS


# ---- what kinds mean --------------------------------------------------------------------------------------

def minimum(a, b, sign):
    """The smaller one of floats (the larger with sign -1): NaNs win, and -0 is below +0."""
    a, b = sign * a, sign * b
    smaller = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return sign * np.where(np.isnan(a) | np.isnan(b), np.nan, smaller).astype(a.dtype)


def apply(kind, type, old, value):
    """The new values, arrays of the type as references hold it."""
    unsigned = [v.view("u%d" % v.dtype.itemsize) if v.dtype != np.bool_ else v for v in (old, value)]
    with np.errstate(all="ignore"):
        result = {
            "add": lambda: old + value,
            "sub": lambda: old - value,
            "mul": lambda: old * value,
            "minsi": lambda: np.minimum(old, value),
            "maxsi": lambda: np.maximum(old, value),
            "minui": lambda: np.minimum(*unsigned).view(old.dtype),
            "maxui": lambda: np.maximum(*unsigned).view(old.dtype),
            "minnumf": lambda: np.fmin(old, value),
            "maxnumf": lambda: np.fmax(old, value),
            "minimumf": lambda: minimum(old, value, 1),
            "maximumf": lambda: minimum(old, value, -1),
            "andi": lambda: old & value,
            "ori": lambda: old | value,
            "xori": lambda: old ^ value,
            "exchange": lambda: value,
        }[kind]()
        return scalars.rounded(type, result)


def arith(kind, type):
    """The line that computes %new from %old and %v."""
    if kind == "exchange":
        return "  %%new = arith.select %%yes, %%v, %%old : %s\n" % type
    name = kind + ("f" if scalars.is_float(type) else "i") if kind in ("add", "sub", "mul") else kind
    return "  %%new = arith.%s %%old, %%v : %s\n" % (name, type)


# ---- hashes -----------------------------------------------------------------------------------------------

def mixed(type, values):
    bits = scalars.bits(type, values).astype(np.uint64)
    with np.errstate(over="ignore"):
        word = ((bits & np.uint64(0xFFFFFFFF)) + (bits >> np.uint64(32)) * np.uint64(31)).astype(np.uint32)
        word = word * np.uint32(2654435761)
        return word ^ (word >> np.uint32(15))


def mix(name, type):
    """Lines that make %<name>_h of %<name>."""
    width, lines, bits = scalars.width(type), [], "%" + name
    if scalars.is_float(type):
        lines.append("%%%s_b = arith.bitcast %s : %s to i%d" % (name, bits, type, width))
        bits = "%" + name + "_b"
    if width < 32:
        lines.append("%%%s_w = arith.extui %s : i%d to i32" % (name, bits, width))
    elif width == 32:
        lines.append("%%%s_w = arith.ori %s, %s : i32" % (name, bits, bits))
    else:
        lines += ["%%%s_lo = arith.trunci %s : i64 to i32" % (name, bits),
                  "%%%s_s = arith.shrui %s, %%c32 : i64" % (name, bits),
                  "%%%s_hi = arith.trunci %%%s_s : i64 to i32" % (name, name),
                  "%%%s_m = arith.muli %%%s_hi, %%c31 : i32" % (name, name),
                  "%%%s_w = arith.addi %%%s_lo, %%%s_m : i32" % (name, name, name)]
    lines += ["%%%s_x = arith.muli %%%s_w, %%golden : i32" % (name, name),
              "%%%s_r = arith.shrui %%%s_x, %%c15 : i32" % (name, name),
              "%%%s_h = arith.xori %%%s_x, %%%s_r : i32" % (name, name, name)]
    return "".join("  %s\n" % line for line in lines)


CONSTANTS = """  %c15 = arith.constant 15 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i64
  %golden = arith.constant -1640531535 : i32
  %yes = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
"""


# ---- cases ------------------------------------------------------------------------------------------------

def kernel(name, inputs, outputs, body):
    parameters = ["%%%s: !qd.buffer<%s> readonly" % (n, type) for n, type, _ in inputs]
    parameters += ["%%%s: !qd.buffer<%s>" % (o.name, o.type) for o in outputs]
    return "qd.kernel @%s(%s) block(%d) {\n%s  qd.return\n}\n\n" % (name, ", ".join(parameters), BLOCK, body)


def access(array, type, space):
    return array, "!qd.buffer<%s>" % type if space == GLOBAL else "!qd.shared<%dx%s>" % (BLOCK, type)


ORDERS = ["", " acquire", " release", " acq_rel", " scope(block)", " acq_rel scope(block)"]


def own(kind, type, space, rng):
    """Each thread its own element, of all values that a mistake may show in."""
    count = BLOCK * GRID
    pool = scalars.edges(type)
    if scalars.is_float(type) and kind in ("add", "sub"):
        # Devices may take subnormals for zeros in atomic additions.
        pool = pool[~((pool != 0) & (np.abs(pool) < 2.0 ** -10))]
    first, values = rng.choice(pool, count), rng.choice(pool, count)
    expected = apply(kind, type, first, values)
    flushed = scalars.is_flushed(type, expected, is_result=True)
    first[flushed], values[flushed] = 1, 1
    expected = apply(kind, type, first, values)
    equality = OPEN_ZERO if kind in ("minnumf", "maxnumf") else VALUE
    name = "atomic_%s_%s_%s_own" % (kind, type, space)
    inputs = [("in_a", type, scalars.to_storage(type, first)), ("in_v", type, scalars.to_storage(type, values))]
    outputs = [Output("x", type, expected, None, equality),
               Output("old", type, scalars.to_storage(type, first), None, BITS)]
    array, array_type = access("%x" if space == GLOBAL else "%s", type, space)
    at = "%i" if space == GLOBAL else "%t"
    body = "  %%s = qd.shared.alloc : %s\n" % array_type if space == SHARED else ""
    body += """  %t = qd.thread_id x : i32
  %i = qd.global_thread_id x : i32
"""
    body += "  %%a = qd.load %%in_a[%%i] : !qd.buffer<%s>\n" % type
    body += "  %%v = qd.load %%in_v[%%i] : !qd.buffer<%s>\n" % type
    body += "  qd.store %%a, %s[%s] : %s\n" % (array, at, array_type)
    order = rng.choice(ORDERS)
    body += "  %%o = qd.atomic_rmw %s %%v, %s[%s]%s : %s\n" % (kind, array, at, order, array_type)
    if space == SHARED:
        body += "  %%n = qd.load %%s[%%t] : %s\n  qd.store %%n, %%x[%%i] : !qd.buffer<%s>\n" % (array_type, type)
    body += "  qd.store %%o, %%old[%%i] : !qd.buffer<%s>\n" % type
    return Case(name, kernel(name, inputs, outputs, body), (GRID, 1, 1), [], inputs, outputs)


def gentle(kind, type, count, rng):
    """Values whose results are exact, and the same in every order."""
    if not scalars.is_float(type):
        return scalars.randoms(type, count, rng)
    if kind in ("add", "sub", "mul"):
        return rng.choice(scalars.rounded(type, np.array([1.0, -1.0])), count)
    return scalars.rounded(type, rng.integers(1, 200, count))


def met(kind, type, space, sharing, rng):
    """`sharing` threads at one element; 0 for all of them."""
    grid = 1 if kind == "exchange" or space == SHARED else GRID
    count = BLOCK * grid
    values = gentle(kind, type, count, rng)
    elements = np.zeros(count, int) + 1 if not sharing else np.arange(count) // sharing
    size = int(elements.max()) + 2
    start = scalars.rounded(type, np.full(size, 0 if type == "i1" else FILL))
    last = start.copy()
    for element, value in zip(elements, values):
        last[element:element + 1] = apply(kind, type, last[element:element + 1], np.array([value], values.dtype))
    touched = np.zeros(size, bool)
    touched[elements] = True
    with np.errstate(over="ignore"):
        check = np.uint32(FILL) + mixed(type, start)[touched].sum(dtype=np.uint32)
        if kind != "exchange":
            check = check - mixed(type, last)[touched].sum(dtype=np.uint32)
    name = "atomic_%s_%s_%s_by_%s" % (kind, type, space, sharing or "all")
    inputs = [("in_v", type, scalars.to_storage(type, values))]
    outputs = [Output("check", "i32", np.array([check], np.uint32).view(np.int32))]
    is_output = space == GLOBAL
    if is_output and kind != "exchange":
        outputs.append(Output("x", type, last, touched))
    elif is_output:
        # Whose value stays is open: it goes into the hash.
        outputs.append(Output("x", type, last, touched, VALUE, np.full(size, np.inf)))
    array, array_type = access("%x" if is_output else "%s", type, space)
    body = CONSTANTS + "  %t = qd.thread_id x : i32\n  %i = qd.global_thread_id x : i32\n"
    if not is_output:
        body += "  %%s = qd.shared.alloc : %s\n  %%fill = arith.constant %s%s\n" % (
            array_type, scalars.literal(type, start[0]), "" if type == "i1" else " : " + type)
        body += "  qd.store %%fill, %%s[%%t] : %s\n  qd.block.sync\n" % array_type
    body += "  %%sharing = arith.constant %d : i32\n" % (sharing or 1)
    body += "  %at = arith.divui %i, %sharing : i32\n" if sharing else "  %at = arith.constant 1 : i32\n"
    body += "  %%v = qd.load %%in_v[%%i] : !qd.buffer<%s>\n" % type
    body += "  %%old = qd.atomic_rmw %s %%v, %s[%%at]%s : %s\n" % (kind, array, rng.choice(ORDERS[:4]), array_type)
    body += arith(kind, type) + mix("old", type) + mix("new", type)
    body += """  %gain = arith.subi %old_h, %new_h : i32
  %was = qd.atomic_rmw add %gain, %check[0] : !qd.buffer<i32>
"""
    if kind == "exchange":
        body += "  qd.block.sync\n" + ("  %first = arith.remui %i, %sharing : i32\n" if sharing else "")
        body += "  %%reads = arith.cmpi eq, %s, %%zero : i32\n" % ("%first" if sharing else "%t")
        body += "  %%last = qd.load %s[%%at] : %s\n" % (array, array_type) + mix("last", type)
        body += "  %was2 = qd.atomic_rmw add %last_h, %check[0] if %reads : !qd.buffer<i32>\n"
    return Case(name, kernel(name, inputs, outputs, body), (grid, 1, 1), [], inputs, outputs)


def swap(type, space, rng):
    """Half of the swaps find what they expect, bit for bit."""
    count = BLOCK * GRID
    first, expected, desired = (scalars.patterns(type, count, rng) for _ in range(3))
    expected = np.where(rng.integers(0, 2, count) == 0, first, expected).astype(first.dtype)
    hits = scalars.bits(type, first) == scalars.bits(type, expected)
    name = "atomic_cas_%s_%s" % (type, space)
    inputs = [("in_a", type, first), ("in_e", type, expected), ("in_d", type, desired)]
    result = np.where(hits, desired, first).astype(first.dtype)
    outputs = [Output("x", type, result, None, BITS), Output("old", type, first, None, BITS), Output("hit", "i1", hits)]
    array, array_type = access("%x" if space == GLOBAL else "%s", type, space)
    at = "%i" if space == GLOBAL else "%t"
    body = "  %%s = qd.shared.alloc : %s\n" % array_type if space == SHARED else ""
    body += "  %t = qd.thread_id x : i32\n  %i = qd.global_thread_id x : i32\n"
    for letter in "aed":
        body += "  %%%s = qd.load %%in_%s[%%i] : !qd.buffer<%s>\n" % (letter, letter, type)
    body += "  qd.atomic_store %%a, %s[%s] : %s\n" % (array, at, array_type)
    body += "  %%o, %%h = qd.atomic_cas %%e, %%d, %s[%s]%s : %s\n" % (array, at, rng.choice(ORDERS), array_type)
    if space == SHARED:
        body += "  %%n = qd.atomic_load %%s[%%t] acquire : %s\n  qd.store %%n, %%x[%%i] : !qd.buffer<%s>\n" % (
            array_type, type)
    body += "  qd.store %%o, %%old[%%i] : !qd.buffer<%s>\n  qd.store %%h, %%hit[%%i] : !qd.buffer<i1>\n" % type
    return Case(name, kernel(name, inputs, outputs, body), (GRID, 1, 1), [], inputs, outputs)


def cases(rng):
    """All kinds on all types: (op, type, case)."""
    for type in ["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"]:
        for space in (GLOBAL, SHARED):
            for kind in kinds(type):
                op = "atomic_rmw." + kind
                yield op, type, own(kind, type, space, rng)
                if (type, kind) != ("i1", "exchange"):
                    yield op, type, met(kind, type, space, 0, rng)
                    yield op, type, met(kind, type, space, 2, rng)
            yield "atomic_cas", type, swap(type, space, rng)
