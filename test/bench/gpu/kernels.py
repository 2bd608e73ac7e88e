"""Writes the kernels that are timed on a GPU beside other libraries' code, one .qir file each.

    python3 kernels.py OUT

Register loops (`warp_*`, `block_*`, `barrier_*`): each thread passes one value through the same operation `iters`
times; the lane that the operation ends in feeds the result back, so that each round waits for the one before:

    x = in[t];  iters times { r = op(x); if lane == last: x = r };  out[t] = r (scans) or x (reductions)

`block_rank_N` does so with the ranks of a block's keys by their top 8 bits, N keys a thread.

Memory-bound kernels work on rows of 32 elements. `*.plain` has one element a thread, the others several rows a
subgroup, so that more loads are under way.
"""
import os
import sys

TYPES = {  # name: type, is float, unsigned kinds
    "i32": ("i32", False, False), "u32": ("i32", False, True), "i64": ("i64", False, False),
    "u64": ("i64", False, True), "f32": ("f32", True, False), "f64": ("f64", True, False)}
UNROLL = 4


def kind(name, op):
    _, is_float, is_unsigned = TYPES[name]
    if op == "sum":
        return "add"
    return op + ("numf" if is_float else "ui" if is_unsigned else "si")


def loop(name, type, last, keeps_result, round_text, index="qd.subgroup.lane_id", unroll=UNROLL):
    """A register loop; `round_text(x, r)` computes r of x, which the lane (or thread) `last` passes on."""
    lines = ["qd.kernel @%s(%%in: !qd.buffer<%s> readonly noalias, %%out: !qd.buffer<%s> noalias, %%iters: i32)"
             " block(256) {" % (name, type, type),
             "  %zero = arith.constant 0 : i32",
             "  %%step = arith.constant %d : i32" % unroll,
             "  %%last = arith.constant %d : i32" % last,
             "  %%lane = %s : i32" % index,
             "  %isLast = arith.cmpi eq, %lane, %last : i32",
             "  %t = qd.global_thread_id x : i32",
             "  %%v = qd.load %%in[%%t] : !qd.buffer<%s>" % type,
             "  %%end:2 = scf.for %%i = %%zero to %%iters step %%step "
             "iter_args(%%x0 = %%v, %%r = %%v) -> (%s, %s) : i32 {"
             % (type, type)]
    for i in range(unroll):
        lines.append("    " + round_text("%%x%d" % i, "%%r%d" % i))
        lines.append("    %%x%d = arith.select %%isLast, %%r%d, %%x%d : %s" % (i + 1, i, i, type))
    lines += ["    scf.yield %%x%d, %%r%d : %s, %s" % (unroll, unroll - 1, type, type),
              "  }",
              "  qd.store %%end#%d, %%out[%%t] : !qd.buffer<%s>" % (1 if keeps_result else 0, type),
              "  qd.return", "}", ""]
    return "\n".join(lines)


def reduce_loop(name, op):
    type = TYPES[name][0]
    return loop("warp_reduce_%s_%s" % (op, name), type, 0, False,
                lambda x, r: "%s = qd.subgroup.reduce %s %s : %s" % (r, kind(name, op), x, type))


def reduce_all_loop(name, op):
    type = TYPES[name][0]
    return loop("warp_reduce_all_%s_%s" % (op, name), type, 0, False,
                lambda x, r: "%s = qd.subgroup.reduce_all %s %s : %s" % (r, kind(name, op), x, type))


def scan_loop(name, which):
    type = TYPES[name][0]
    return loop("warp_scan_%s_%s" % (which, name), type, 31, True,
                lambda x, r: "%s = qd.subgroup.%s_scan add %s : %s" % (r, which, x, type))


def block_reduce_loop(name):
    type = TYPES[name][0]
    return loop("block_reduce_sum_%s" % name, type, 0, False,
                lambda x, r: "%s = qd.block.reduce add %s : %s" % (r, x, type), "qd.thread_index", 2)


def block_scan_loop(name, which):
    type = TYPES[name][0]
    return loop("block_scan_%s_%s" % (which, name), type, 255, True,
                lambda x, r: "%s = qd.block.%s_scan add %s : %s" % (r, which, x, type), "qd.thread_index", 2)


def vote_loop(which):
    """A barrier's vote of x, which each thread adds to the next step of a congruential generator."""
    op = {"count": "count", "and": "all", "or": "any"}[which]
    lines = ["qd.kernel @barrier_%s(%%in: !qd.buffer<i32> readonly noalias, "
             "%%out: !qd.buffer<i32> noalias, %%iters: i32)"
             " block(256) {" % which,
             "  %zero = arith.constant 0 : i32", "  %step = arith.constant 2 : i32", "  %c24 = arith.constant 24 : i32",
             "  %a = arith.constant 747796405 : i32", "  %c = arith.constant -1403630843 : i32",
             "  %t = qd.global_thread_id x : i32", "  %x = qd.load %in[%t] : !qd.buffer<i32>",
             "  %end = scf.for %i = %zero to %iters step %step iter_args(%x0 = %x) -> i32 : i32 {"]
    for i in range(2):
        if which == "count":
            lines.append("    %%p%d = arith.cmpi slt, %%x%d, %%zero : i32" % (i, i))
        else:
            lines += ["    %%h%d = arith.shrui %%x%d, %%c24 : i32" % (i, i),
                      "    %%p%d = arith.cmpi %s, %%h%d, %%zero : i32" % (i, "ne" if which == "and" else "eq", i)]
        lines.append("    %%r%d = qd.block.sync_%s %%p%d" % (i, op, i))
        result = "%%r%d" % i
        if which != "count":
            lines.append("    %%e%d = arith.extui %s : i1 to i32" % (i, result))
            result = "%%e%d" % i
        lines += ["    %%m%d = arith.muli %%x%d, %%a : i32" % (i, i),
                  "    %%n%d = arith.addi %%m%d, %%c : i32" % (i, i),
                  "    %%x%d = arith.addi %%n%d, %s : i32" % (i + 1, i, result)]
    lines += ["    scf.yield %x2 : i32", "  }", "  qd.store %end, %out[%t] : !qd.buffer<i32>", "  qd.return", "}", ""]
    return "\n".join(lines)


def sort_loop(name):
    """Sorts pairs of a key and the lane, then takes each key one step of a congruential generator further."""
    type, is_float, is_unsigned = TYPES[name]
    bits = int(type[1:])
    word = "i%d" % bits
    a, c = (747796405, 2891336453) if bits == 32 else (6364136223846793005, 1442695040888963407)
    signed = lambda v: v - (1 << bits) if v >> (bits - 1) else v
    fraction, one = (0x7fffff, 0x3f800000) if bits == 32 else ((1 << 52) - 1, 0x3ff << 52)
    lines = ["qd.kernel @warp_sort_pairs_%s(%%in: !qd.buffer<%s> readonly noalias, %%out: !qd.buffer<%s> noalias, "
             "%%vout: !qd.buffer<i32> noalias, %%iters: i32) block(256) {" % (name, type, type),
             "  %zero = arith.constant 0 : i32", "  %step = arith.constant 2 : i32",
             "  %%a = arith.constant %d : %s" % (signed(a), word), "  %%c = arith.constant %d : %s" % (signed(c), word),
             "  %%fraction = arith.constant %d : %s" % (fraction, word),
             "  %%one = arith.constant %d : %s" % (one, word),
             "  %lane = qd.subgroup.lane_id : i32", "  %t = qd.global_thread_id x : i32",
             "  %%k = qd.load %%in[%%t] : !qd.buffer<%s>" % type,
             "  %%end:2 = scf.for %%i = %%zero to %%iters step %%step "
             "iter_args(%%k0 = %%k, %%v0 = %%lane) -> (%s, i32) : i32 {"
             % type]
    for i in range(2):
        lines.append("    %%s%d, %%v%d = qd.subgroup.bitonic_sort_kv %s%%k%d, unsigned %%v%d : %s, i32" %
                     (i, i + 1, "unsigned " if is_unsigned else "", i, i, type))
        key = "%%s%d" % i
        if is_float:
            lines.append("    %%b%d = arith.bitcast %s : %s to %s" % (i, key, type, word))
            key = "%%b%d" % i
        lines += ["    %%m%d = arith.muli %s, %%a : %s" % (i, key, word),
                  "    %%n%d = arith.addi %%m%d, %%c : %s" % (i, i, word)]
        key = "%%n%d" % i
        if is_float:
            lines += ["    %%f%d = arith.andi %s, %%fraction : %s" % (i, key, word),
                      "    %%g%d = arith.ori %%f%d, %%one : %s" % (i, i, word),
                      "    %%k%d = arith.bitcast %%g%d : %s to %s" % (i + 1, i, word, type)]
        else:
            lines[-1] = lines[-1].replace("%%n%d" % i, "%%k%d" % (i + 1))
    lines += ["    scf.yield %%k2, %%v2 : %s, i32" % type, "  }",
              "  qd.store %%end#0, %%out[%%t] : !qd.buffer<%s>" % type,
              "  qd.store %end#1, %vout[%t] : !qd.buffer<i32>", "  qd.return", "}", ""]
    return "\n".join(lines)


def rank_loop(items):
    """Ranks a block's keys by their top 8 bits, then makes new keys of them: k = k a + c + rank. Thread t has the keys
    t * items and on, so that the op's order is that of memory."""
    lines = ["qd.kernel @block_rank_%d(%%in: !qd.buffer<i32> readonly noalias, "
             "%%out: !qd.buffer<i32> noalias, %%iters: i32)"
             " block(256) {" % items,
             "  %zero = arith.constant 0 : i32", "  %one = arith.constant 1 : i32",
             "  %items = arith.constant " + "%d : i32" % items,
             "  %a = arith.constant 747796405 : i32", "  %%c = arith.constant %d : i32" % (2891336453 - (1 << 32)),
             "  %t = qd.global_thread_id x : i32", "  %p0 = arith.muli %t, %items : i32"]
    lines += ["  %%p%d = arith.addi %%p%d, %%one : i32" % (j, j - 1) for j in range(1, items)]
    lines += ["  %%v%d = qd.load %%in[%%p%d] : !qd.buffer<i32>" % (j, j) for j in range(items)]
    join = lambda name, separator=", ": separator.join(name % ((j,) * name.count("%d")) for j in range(items))
    results = "%end" if items == 1 else "%%end:%d" % items
    lines.append("  %s = scf.for %%i = %%zero to %%iters step %%one iter_args(%s) -> (%s) : i32 {"
                 % (results, join("%%k%d = %%v%d"), ", ".join(["i32"] * items)))
    lines.append("    %s = qd.block.radix_rank (%s) radix_bits(8) begin(24) : i32" % (join("%%r%d"), join("%%k%d")))
    for j in range(items):
        lines += ["    %%m%d = arith.muli %%k%d, %%a : i32" % (j, j),
                  "    %%n%d = arith.addi %%m%d, %%c : i32" % (j, j),
                  "    %%x%d = arith.addi %%n%d, %%r%d : i32" % (j, j, j)]
    lines += ["    scf.yield %s : %s" % (join("%%x%d"), ", ".join(["i32"] * items)), "  }"]
    for j in range(items):
        lines.append("  qd.store %s, %%out[%%p%d] : !qd.buffer<i32>" % ("%end" if items == 1 else "%%end#%d" % j, j))
    return "\n".join(lines + ["  qd.return", "}", ""])


# Rows of 32 elements over tiles of 8 lanes: lane j of a tile holds elements j, j + 8, j + 16 and j + 24 of its row, so
# that each load of a subgroup takes whole sectors of 32 bytes (of f32). A subgroup has `sets` such groups of 4 rows.

def row_head(name, type, sets, results):
    args = ", ".join("%%%s: !qd.buffer<%s> noalias" % r for r in results)
    return ["qd.kernel @%s(%%in: !qd.buffer<%s> readonly noalias, %s) block(256) {" % (name, type, args),
            "  %c3 = arith.constant 3 : i32", "  %c5 = arith.constant 5 : i32", "  %c7 = arith.constant 7 : i32",
            "  %c4 = arith.constant 4 : i32", "  %c8 = arith.constant 8 : i32", "  %c16 = arith.constant 16 : i32",
            "  %c24 = arith.constant 24 : i32",
            "  %%perWarp = arith.constant %d : i32" % (4 * sets),
            "  %lane = qd.subgroup.lane_id : i32",
            "  %inTile = arith.andi %lane, %c7 : i32",
            "  %tile = arith.shrui %lane, %c3 : i32",
            "  %t = qd.global_thread_id x : i32",
            "  %warp = arith.shrui %t, %c5 : i32",
            "  %first = arith.muli %warp, %perWarp : i32",
            "  %row0 = arith.addi %first, %tile : i32"]


def row_loads(type, sets):
    lines = []
    for s in range(sets):
        if s:
            lines.append("  %%row%d = arith.addi %%row%d, %%c4 : i32" % (s, s - 1))
        lines += ["  %%start%d = arith.shli %%row%d, %%c5 : i32" % (s, s),
                  "  %%p%d_0 = arith.addi %%start%d, %%inTile : i32" % (s, s)]
        for j in range(4):
            if j:
                lines.append("  %%p%d_%d = arith.addi %%p%d_0, %%c%d : i32" % (s, j, s, 8 * j))
            lines.append("  %%x%d_%d = qd.load %%in[%%p%d_%d] : !qd.buffer<%s>" % (s, j, s, j, type))
    return lines


def combine4(lines, op, type, names, out):
    lines += ["  %%%s_a = %s %s, %s : %s" % (out, op, names[0], names[1], type),
              "  %%%s_b = %s %s, %s : %s" % (out, op, names[2], names[3], type),
              "  %%%s = %s %%%s_a, %%%s_b : %s" % (out, op, out, out, type)]


def sum_rows(type, sets):
    lines = row_head("sum32_" + type, type, sets, [("out", type)]) + row_loads(type, sets)
    add = "arith.addf" if type[0] == "f" else "arith.addi"
    lines.append("  %lead = qd.subgroup.elect tile(8)")
    for s in range(sets):
        combine4(lines, add, type, ["%%x%d_%d" % (s, j) for j in range(4)], "s%d" % s)
        lines += ["  %%r%d = qd.subgroup.reduce add %%s%d tile(8) : %s" % (s, s, type),
                  "  qd.store %%r%d, %%out[%%row%d] if %%lead : !qd.buffer<%s>" % (s, s, type)]
    return "\n".join(lines + ["  qd.return", "}", ""])


def sum_plain(type):
    return """qd.kernel @sum32_plain_%(t)s(%%in: !qd.buffer<%(t)s> readonly noalias,
               %%out: !qd.buffer<%(t)s> noalias) block(256) {
  %%c5 = arith.constant 5 : i32
  %%t = qd.global_thread_id x : i32
  %%x = qd.load %%in[%%t] : !qd.buffer<%(t)s>
  %%s = qd.subgroup.reduce add %%x tile(32) : %(t)s
  %%lead = qd.subgroup.elect tile(32)
  %%row = arith.shrui %%t, %%c5 : i32
  qd.store %%s, %%out[%%row] if %%lead : !qd.buffer<%(t)s>
  qd.return
}
""" % {"t": type}


EXP_CONSTANTS = """  %log2e = arith.constant 1.44269504 : f32
  %least = arith.constant -87.0 : f32
  %magic = arith.constant 12582912.0 : f32
  %one = arith.constant 1.0 : f32
  %e1 = arith.constant 0.693147182 : f32
  %e2 = arith.constant 0.240226507 : f32
  %e3 = arith.constant 0.0555041087 : f32
  %e4 = arith.constant 0.00961812911 : f32
  %e5 = arith.constant 0.00133335581 : f32
  %c23 = arith.constant 23 : i32"""


def exp(lines, x, out):
    """e^x for x <= 0, to about 3e-7; below -87 as for -87. Adding `magic` rounds to an integer, in the low bits."""
    p = "%" + out
    lines += ["  %s_x = arith.maxnumf %s, %%least : f32" % (p, x),
              "  %s_u = math.fma %s_x, %%log2e, %%magic : f32" % (p, p),
              "  %s_n = arith.subf %s_u, %%magic : f32" % (p, p),
              "  %s_m = arith.negf %s_n : f32" % (p, p),
              "  %s_f = math.fma %s_x, %%log2e, %s_m : f32" % (p, p, p)]
    last = "%e5"
    for i, c in enumerate(["%e4", "%e3", "%e2", "%e1", "%one"]):
        lines.append("  %s_p%d = math.fma %s, %s_f, %s : f32" % (p, i, last, p, c))
        last = "%s_p%d" % (p, i)
    lines += ["  %s_i = arith.bitcast %s_u : f32 to i32" % (p, p),
              "  %s_j = arith.shli %s_i, %%c23 : i32" % (p, p),
              "  %s_b = arith.bitcast %s : f32 to i32" % (p, last),
              "  %s_k = arith.addi %s_b, %s_j : i32" % (p, p, p),
              "  %s = arith.bitcast %s_k : i32 to f32" % (p, p)]


def softmax_rows(sets):
    lines = row_head("softmax32", "f32", sets, [("out", "f32")]) + [EXP_CONSTANTS] + row_loads("f32", sets)
    for s in range(sets):
        combine4(lines, "arith.maxnumf", "f32", ["%%x%d_%d" % (s, j) for j in range(4)], "m%d" % s)
        lines.append("  %%max%d = qd.subgroup.reduce_all maxnumf %%m%d tile(8) : f32" % (s, s))
        for j in range(4):
            lines.append("  %%d%d_%d = arith.subf %%x%d_%d, %%max%d : f32" % (s, j, s, j, s))
            exp(lines, "%%d%d_%d" % (s, j), "e%d_%d" % (s, j))
        combine4(lines, "arith.addf", "f32", ["%%e%d_%d" % (s, j) for j in range(4)], "s%d" % s)
        lines += ["  %%sum%d = qd.subgroup.reduce_all add %%s%d tile(8) : f32" % (s, s),
                  "  %%r%d = arith.divf %%one, %%sum%d : f32" % (s, s)]
        for j in range(4):
            lines += ["  %%y%d_%d = arith.mulf %%e%d_%d, %%r%d : f32" % (s, j, s, j, s),
                      "  qd.store %%y%d_%d, %%out[%%p%d_%d] : !qd.buffer<f32>" % (s, j, s, j)]
    return "\n".join(lines + ["  qd.return", "}", ""])


def softmax_plain():
    lines = ["qd.kernel @softmax32_plain(%in: !qd.buffer<f32> readonly noalias, "
             "%out: !qd.buffer<f32> noalias) block(256) {",
             EXP_CONSTANTS, "  %t = qd.global_thread_id x : i32",
             "  %x = qd.load %in[%t] : !qd.buffer<f32>",
             "  %max = qd.subgroup.reduce_all maxnumf %x tile(32) : f32",
             "  %d = arith.subf %x, %max : f32"]
    exp(lines, "%d", "e")
    lines += ["  %sum = qd.subgroup.reduce_all add %e tile(32) : f32",
              "  %y = arith.divf %e, %sum : f32",
              "  qd.store %y, %out[%t] : !qd.buffer<f32>", "  qd.return", "}", ""]
    return "\n".join(lines)


def softmax_wide(columns):
    """A subgroup a row of more than 32 elements: lane l holds elements l, l + 32, ..."""
    each = columns // 32
    lines = ["qd.kernel @softmax%d(%%in: !qd.buffer<f32> readonly noalias, %%out: !qd.buffer<f32> noalias) block(256) {"
             % columns, EXP_CONSTANTS, "  %c5 = arith.constant 5 : i32",
             "  %%columns = arith.constant %d : i32" % columns]
    lines += ["  %%c%d_ = arith.constant %d : i32" % (j, 32 * j) for j in range(1, each)]
    lines += ["  %lane = qd.subgroup.lane_id : i32", "  %t = qd.global_thread_id x : i32",
              "  %row = arith.shrui %t, %c5 : i32", "  %start = arith.muli %row, %columns : i32",
              "  %p0 = arith.addi %start, %lane : i32"]
    lines += ["  %%p%d = arith.addi %%p0, %%c%d_ : i32" % (j, j) for j in range(1, each)]
    lines += ["  %%x%d = qd.load %%in[%%p%d] : !qd.buffer<f32>" % (j, j) for j in range(each)]

    def tree(op, names, out):
        """Combines neighbours, so that the steps wait for each other as little as possible."""
        level = 0
        while len(names) > 1:
            made = ["%%%s_%d_%d" % (out, level, i) for i in range(len(names) // 2)]
            lines.extend("  %s = %s %s, %s : f32" % (m, op, names[2 * i], names[2 * i + 1]) for i, m in enumerate(made))
            names, level = made, level + 1
        return names[0]

    lines.append("  %%max = qd.subgroup.reduce_all maxnumf %s tile(32) : f32"
                 % tree("arith.maxnumf", ["%%x%d" % j for j in range(each)], "m"))
    for j in range(each):
        lines.append("  %%d%d = arith.subf %%x%d, %%max : f32" % (j, j))
        exp(lines, "%%d%d" % j, "e%d_" % j)
    lines += ["  %%sum = qd.subgroup.reduce_all add %s tile(32) : f32"
              % tree("arith.addf", ["%%e%d_" % j for j in range(each)], "s"),
              "  %r = arith.divf %one, %sum : f32"]
    for j in range(each):
        lines += ["  %%y%d = arith.mulf %%e%d_, %%r : f32" % (j, j),
                  "  qd.store %%y%d, %%out[%%p%d] : !qd.buffer<f32>" % (j, j)]
    return "\n".join(lines + ["  qd.return", "}", ""])


def sort_rows(name, rows):
    """`rows` rows of 32 pairs a subgroup."""
    lines = ["qd.kernel @%s(%%in: !qd.buffer<i32> readonly noalias, %%vin: !qd.buffer<i32> readonly noalias, "
             "%%out: !qd.buffer<i32> noalias, %%vout: !qd.buffer<i32> noalias) block(256) {" % name,
             "  %%rows = arith.constant %d : i32" % rows, "  %c5 = arith.constant 5 : i32",
             "  %c32 = arith.constant 32 : i32",
             "  %lane = qd.subgroup.lane_id : i32", "  %t = qd.global_thread_id x : i32",
             "  %warp = arith.shrui %t, %c5 : i32", "  %row = arith.muli %warp, %rows : i32",
             "  %start = arith.shli %row, %c5 : i32", "  %p0 = arith.addi %start, %lane : i32"]
    for r in range(rows):
        if r:
            lines.append("  %%p%d = arith.addi %%p%d, %%c32 : i32" % (r, r - 1))
        lines += ["  %%k%d = qd.load %%in[%%p%d] : !qd.buffer<i32>" % (r, r),
                  "  %%v%d = qd.load %%vin[%%p%d] : !qd.buffer<i32>" % (r, r)]
    for r in range(rows):
        lines += ["  %%a%d, %%b%d = qd.subgroup.bitonic_sort_kv unsigned %%k%d, unsigned %%v%d tile(32) : i32, i32"
                  % (r, r, r, r),
                  "  qd.store %%a%d, %%out[%%p%d] : !qd.buffer<i32>" % (r, r),
                  "  qd.store %%b%d, %%vout[%%p%d] : !qd.buffer<i32>" % (r, r)]
    return "\n".join(lines + ["  qd.return", "}", ""])


def kernels():
    """Yields (benchmark id, label, kernel's name, text, threads, arguments): threads is None for register loops."""
    for name in TYPES:
        for op in ("sum", "min", "max"):
            yield ("warp_reduce.%s.%s" % (op, name), "qdc", "warp_reduce_%s_%s" % (op, name), reduce_loop(name, op),
                   None, "in out iters")
            yield ("warp_reduce.%s.%s" % (op, name), "qdc_all", "warp_reduce_all_%s_%s" % (op, name),
                   reduce_all_loop(name, op), None, "in out iters")
        for which in ("inclusive", "exclusive"):
            yield ("warp_scan.%s.%s" % (which, name), "qdc", "warp_scan_%s_%s" % (which, name), scan_loop(name, which),
                   None, "in out iters")
        yield ("warp_sort.pairs.%s" % name, "qdc", "warp_sort_pairs_%s" % name, sort_loop(name), None,
               "in out vout iters")
        yield ("block_reduce.sum.%s" % name, "qdc", "block_reduce_sum_%s" % name, block_reduce_loop(name), None,
               "in out iters")
        for which in ("inclusive", "exclusive"):
            yield ("block_scan.%s.%s" % (which, name), "qdc", "block_scan_%s_%s" % (which, name),
                   block_scan_loop(name, which), None, "in out iters")
    for which in ("count", "and", "or"):
        yield ("barrier." + which, "qdc", "barrier_" + which, vote_loop(which), None, "in out iters")
    for items in (1, 4, 8):
        yield ("block_rank.u32.items%d" % items, "qdc", "block_rank_%d" % items, rank_loop(items), None, "in out iters")
    for type in ("i32", "f32", "f64"):
        yield ("sum32." + type, "qdc_plain", "sum32_plain_" + type, sum_plain(type), "n/256", "in out")
        yield ("sum32." + type, "qdc", "sum32_" + type, sum_rows(type, 2), "n/2048", "in out")
    yield ("softmax.f32.c32", "qdc_plain", "softmax32_plain", softmax_plain(), "n/256", "in out")
    yield ("softmax.f32.c32", "qdc", "softmax32", softmax_rows(2), "n/2048", "in out")
    for columns in (256, 1024):
        yield ("softmax.f32.c%d" % columns, "qdc", "softmax%d" % columns, softmax_wide(columns), "rows/8", "in out")
    yield ("sort32.pairs.u32", "qdc_plain", "sort32_plain", sort_rows("sort32_plain", 1), "n/256",
           "in vin out vout")
    yield ("sort32.pairs.u32", "qdc", "sort32", sort_rows("sort32", 2), "n/512", "in vin out vout")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "manifest.txt"), "w") as manifest:
        for id, label, name, text, grid, args in kernels():
            with open(os.path.join(out, name + ".qir"), "w") as file:
                file.write(text)
            launch = "auto auto" if grid is None else grid + " 256"
            manifest.write("%s@%s %s.ptx %s %s %s\n" % (id, label, name, name, launch, args))


if __name__ == "__main__":
    main()
