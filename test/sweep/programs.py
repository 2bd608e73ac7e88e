"""Random kernels: nested control flow that differs by lane, subgroup ops where all lanes meet or among those that are
there, shared memory between barriers, private arrays. What they must compute is what the interpreter computes at the
same subgroup size.
"""
import numpy as np

import scalars
from case import Case, Output

BINARY = ["arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.minsi",
          "arith.maxui"]
FLOAT_BINARY = ["arith.addf", "arith.subf", "arith.mulf", "arith.minimumf", "arith.maximumf"]
COMPARE = ["eq", "ne", "slt", "sge", "ult", "ugt"]


class Program:
    """Text under way. Values are names by type; a scope's values end with it."""

    def __init__(self, rng, size, block, private):
        self.rng, self.size, self.block, self.private = rng, size, block, private
        self.lines, self.count, self.depth = [], 0, 1
        self.values = {"i32": ["%t", "%v", "%n"], "f32": ["%w"], "i1": []}
        self.uniform = ["%n", "%m"]  # i32, the same in the whole block

    def emit(self, text):
        self.lines.append("  " * self.depth + text)

    def new(self, type, text):
        self.count += 1
        name = "%%x%d" % self.count
        self.emit("%s = %s" % (name, text))
        self.values[type].append(name)
        return name

    def pick(self, items):
        return items[int(self.rng.integers(0, len(items)))]

    def value(self, type):
        """Mostly a recent one."""
        names = self.values[type]
        return self.pick(names[-6:]) if self.rng.integers(0, 3) else self.pick(names)

    def constant(self, value):
        """Not one of the values to pick from: those should differ by lane."""
        name = self.new("i32", "arith.constant %d : i32" % value)
        self.values["i32"].remove(name)
        return name

    def scope(self):
        saved = {type: list(names) for type, names in self.values.items()}, list(self.uniform)
        self.depth += 1
        return saved

    def leave(self, saved):
        self.values, self.uniform = saved
        self.depth -= 1

    # ---- statements -----------------------------------------------------------------------------------------

    def arithmetic(self):
        kind = self.rng.integers(0, 8)
        if kind < 3:
            self.new("i32", "%s %s, %s : i32" % (self.pick(BINARY), self.value("i32"), self.value("i32")))
        elif kind == 3:
            amount = self.new("i32", "arith.andi %s, %s : i32" % (self.value("i32"), self.constant(31)))
            self.new("i32", "arith.%s %s, %s : i32"
                     % (self.pick(["shli", "shrsi", "shrui"]), self.value("i32"), amount))
        elif kind == 4:
            odd = self.new("i32", "arith.ori %s, %s : i32" % (self.value("i32"), self.constant(1)))
            self.new("i32", "arith.%s %s, %s : i32" % (self.pick(["divui", "remui"]), self.value("i32"), odd))
        elif kind == 5:
            self.new("f32", "%s %s, %s : f32" % (self.pick(FLOAT_BINARY), self.value("f32"), self.value("f32")))
        elif kind == 6:
            self.new("f32", "arith.sitofp %s : i32 to f32" % self.value("i32"))
        else:
            self.new("i32", "arith.select %s, %s, %s : i32" % (self.condition(), self.value("i32"), self.value("i32")))

    def condition(self):
        """An i1 that differs by lane."""
        if self.values["i1"] and self.rng.integers(0, 3) == 0:
            return self.value("i1")
        if self.rng.integers(0, 4) == 0:
            return self.new("i1", "arith.cmpf olt, %s, %s : f32" % (self.value("f32"), self.value("f32")))
        return self.new("i1", "arith.cmpi %s, %s, %s : i32"
                        % (self.pick(COMPARE), self.value("i32"), self.value("i32")))

    def uniform_condition(self):
        return self.new("i1", "arith.cmpi %s, %s, %s : i32" % (
            self.pick(COMPARE), self.pick(self.uniform), self.pick(self.uniform)))

    def branch(self, budget, is_uniform):
        condition = self.uniform_condition() if is_uniform else self.condition()
        self.count += 2
        a, b = "%%x%d" % (self.count - 1), "%%x%d" % self.count
        self.emit("%s, %s = scf.if %s -> (i32, f32) {" % (a, b, condition))
        for last in (False, True):
            saved = self.scope()
            self.statements(budget, is_uniform)
            self.emit("scf.yield %s, %s : i32, f32" % (self.value("i32"), self.value("f32")))
            self.leave(saved)
            self.emit("}" if last else "} else {")
        self.values["i32"].append(a)
        self.values["f32"].append(b)

    def trips(self, is_uniform):
        if is_uniform:
            return self.new("i32", "arith.andi %s, %s : i32" % (self.pick(self.uniform), self.constant(3)))
        return self.new("i32", "arith.andi %s, %s : i32" % (self.value("i32"), self.constant(3)))

    def loop(self, budget, is_uniform):
        lower, step, upper = self.constant(0), self.constant(1), self.trips(is_uniform)
        self.count += 5
        a, b, i, p, q = ("%%x%d" % (self.count - k) for k in range(5))
        self.emit("%s, %s = scf.for %s = %s to %s step %s iter_args(%s = %s, %s = %s) -> (i32, f32) : i32 {" % (
            a, b, i, lower, upper, step, p, self.value("i32"), q, self.value("f32")))
        saved = self.scope()
        self.values["i32"] += [i, p]
        self.values["f32"].append(q)
        if is_uniform:
            self.uniform.append(i)
        self.statements(budget, is_uniform)
        self.emit("scf.yield %s, %s : i32, f32" % (self.value("i32"), self.value("f32")))
        self.leave(saved)
        self.emit("}")
        self.values["i32"].append(a)
        self.values["f32"].append(b)

    def while_loop(self, budget, is_uniform):
        """Counts down from a few, so that it ends."""
        start, zero, one = self.trips(is_uniform), self.constant(0), self.constant(1)
        self.count += 7
        r, a, left, p, left2, p2, more = ("%%x%d" % (self.count - k) for k in range(7))
        self.emit("%s, %s = scf.while (%s = %s, %s = %s) : (i32, i32) -> (i32, i32) {" % (
            r, a, left, start, p, self.value("i32")))
        saved = self.scope()
        self.values["i32"] += [left, p]
        self.statements(budget // 2, is_uniform)
        self.emit("%s = arith.cmpi sgt, %s, %s : i32" % (more, left, zero))
        self.emit("scf.condition(%s) %s, %s : i32, i32" % (more, left, self.value("i32")))
        self.leave(saved)
        self.emit("} do {")
        self.emit("^bb0(%s: i32, %s: i32):" % (left2, p2))
        saved = self.scope()
        self.values["i32"] += [left2, p2]
        self.statements(budget // 2, is_uniform)
        less = self.new("i32", "arith.subi %s, %s : i32" % (left2, one))
        self.emit("scf.yield %s, %s : i32, i32" % (less, self.value("i32")))
        self.leave(saved)
        self.emit("}")
        self.values["i32"].append(a)

    def subgroup(self):
        """Where all lanes meet. Lanes are read only within tiles that the block has whole."""
        tiles = [n for n in (2, 4, 8, 16, 32, 64) if self.block % n == 0 and n <= 2 * self.size]
        tile = " tile(%d)" % self.pick(tiles)
        kind = self.rng.integers(0, 13)
        if kind == 0:
            name = self.pick(["add", "minsi", "maxui", "andi", "xori"])
            self.new("i32", "qd.subgroup.reduce_all %s %s%s : i32" % (name, self.value("i32"), self.pick(["", tile])))
        elif kind == 1:
            name = self.pick(["minimumf", "maximumf"])
            self.new("f32", "qd.subgroup.reduce_all %s %s%s : f32" % (name, self.value("f32"), self.pick(["", tile])))
        elif kind == 2:
            self.new("i1", "qd.subgroup.%s %s%s" % (self.pick(["any", "all"]), self.condition(), self.pick(["", tile])))
        elif kind == 3:
            self.mask("qd.subgroup.ballot %s : i64" % self.condition())
        elif kind == 4:
            lane = self.new("i32", "arith.andi %s, %s : i32" % (self.value("i32"), self.constant(63)))
            self.new("i32", "qd.subgroup.shuffle %s, %s%s : i32" % (self.value("i32"), lane, tile))
        elif kind == 5:
            self.new("f32", "qd.subgroup.%s %s, 1%s : f32" % (
                self.pick(["shuffle_up", "shuffle_down", "shuffle_xor", "broadcast"]), self.value("f32"), tile))
        elif kind == 6:
            self.new("i1", "qd.subgroup.elect" + self.pick(["", tile]))
        else:
            self.combination(kind, self.pick(["", tile]), tile)

    def combination(self, kind, scope, tile):
        """Scans, segments, sorts, matches, rotations and a region; `tile` has all its lanes, `scope` perhaps not."""
        value, name = self.value("i32"), self.pick(["add", "maxsi", "minui", "xori"])
        if kind == 7:
            form = self.pick(["inclusive_scan", "exclusive_scan"])
            self.new("i32", "qd.subgroup.%s %s %s%s : i32" % (form, name, value, scope))
        elif kind == 8:
            form = self.pick(["segmented_scan", "segmented_scan exclusive", "segmented_reduce_all"])
            self.new("i32", "qd.subgroup.%s %s %s head %s%s : i32, i1" % (form, name, value, self.condition(), scope))
        elif kind == 9:
            words = self.pick(["", "descending ", "unsigned "])
            self.new("i32", "qd.subgroup.bitonic_sort %s%s%s : i32" % (words, value, scope))
        elif kind == 10:
            few = self.new("i32", "arith.andi %s, %s : i32" % (value, self.constant(3)))
            self.mask("qd.subgroup.match_any %s%s : i32" % (few, scope))
            self.new("i1", "qd.subgroup.all_equal %s%s : i32" % (few, scope))
        elif kind == 11:
            self.new("f32", "qd.subgroup.rotate %s, %d%s : f32" % (self.value("f32"), self.rng.integers(-9, 10), tile))
        else:
            slope = self.new("i32", "arith.ori %s, %s : i32" % (value, self.constant(1)))
            self.count += 2
            a, b = "%%x%d" % (self.count - 1), "%%x%d" % self.count
            self.emit("%s, %s = qd.subgroup.%s (%s, %s)%s : i32, i32 combine (%%ma, %%ca), (%%mb, %%cb) {" % (
                a, b, self.pick(["reduce_all", "inclusive_scan"]), slope, self.value("i32"), scope))
            self.emit("  %mc = arith.muli %ma, %mb : i32")
            self.emit("  %cc = arith.muli %ca, %mb : i32")
            self.emit("  %dd = arith.addi %cc, %cb : i32")
            self.emit("  qd.yield %mc, %dd : i32, i32")
            self.emit("}")
            self.values["i32"] += [a, b]

    def mask(self, text):
        """The low half of a mask of lanes."""
        mask = self.new("i64", text)
        self.new("i32", "arith.trunci %s : i64 to i32" % mask)
        self.values["i64"] = []
        return mask

    def members(self):
        """Among the lanes that are here, wherever that is."""
        m = self.mask("qd.subgroup.active_mask : i64")
        kind = self.rng.integers(0, 4)
        if kind == 0:
            self.mask("qd.subgroup.ballot %s members(%s) : i64" % (self.condition(), m))
        elif kind == 1:
            few = self.new("i32", "arith.andi %s, %s : i32" % (self.value("i32"), self.constant(3)))
            self.mask("qd.subgroup.match_any %s members(%s) : i32" % (few, m))
        elif kind == 2:
            self.count += 2
            mask, same = "%%x%d" % (self.count - 1), "%%x%d" % self.count
            self.emit("%s, %s = qd.subgroup.match_all %s members(%s) : i32" % (mask, same, self.value("i32"), m))
            self.values["i1"].append(same)
        else:
            first = self.new("i64", "math.cttz %s : i64" % m)
            lane = self.new("i32", "arith.trunci %s : i64 to i32" % first)
            self.values["i64"] = []
            self.new("f32", "qd.subgroup.shuffle %s, %s members(%s) : f32" % (self.value("f32"), lane, m))

    def exchange(self):
        """Through shared memory, with another thread of the block."""
        self.emit("qd.store %s, %%s[%%t] : !qd.shared<%dxi32>" % (self.value("i32"), self.block))
        self.emit("qd.block.sync")
        far = self.new("i32", "arith.addi %%t, %s : i32" % self.constant(int(self.rng.integers(1, self.block))))
        at = self.new("i32", "arith.remui %s, %s : i32" % (far, self.constant(self.block)))
        self.new("i32", "qd.load %%s[%s] : !qd.shared<%dxi32>" % (at, self.block))
        self.emit("qd.block.sync")

    def memory(self):
        """The thread's own element or an element of its private array, read and written."""
        place = "%y[%g]", "!qd.buffer<i32>"
        if self.rng.integers(0, 2):
            number = self.value("i32") if self.rng.integers(0, 3) else self.pick(self.uniform)
            at = self.new("i32", "arith.remui %s, %s : i32" % (number, self.constant(self.private)))
            place = "%%p[%s]" % at, "!qd.private<%dxi32>" % self.private
        if self.rng.integers(0, 2):
            self.new("i32", "qd.load %s : %s" % place)
        else:
            predicate = " if " + self.condition() if self.rng.integers(0, 2) else ""
            self.emit("qd.store %s, %s%s : %s" % (self.value("i32"), place[0], predicate, place[1]))

    def checksum(self):
        """Of all values at the end, and the thread's element; a NaN counts as 0, whichever it is."""
        values = list(self.values["i32"])
        for value in self.values["f32"]:
            bits = self.new("i32", "arith.bitcast %s : f32 to i32" % value)
            nan = self.new("i1", "arith.cmpf uno, %s, %s : f32" % (value, value))
            values.append(self.new("i32", "arith.select %s, %s, %s : i32" % (nan, self.constant(0), bits)))
        for value in list(self.values["i1"]):
            values.append(self.new("i32", "arith.extui %s : i1 to i32" % value))
        total = self.new("i32", "qd.load %y[%g] : !qd.buffer<i32>")
        factor = self.constant(31)
        for value in values:
            total = self.new("i32", "arith.muli %s, %s : i32" % (total, factor))
            total = self.new("i32", "arith.addi %s, %s : i32" % (total, value))
        return total

    def statements(self, budget, is_uniform):
        self.values.setdefault("i64", [])
        while budget > 0:
            kind = self.rng.integers(0, 12)
            budget -= 1
            if kind < 5 or self.depth > 5:
                self.arithmetic()
            elif kind == 5:
                self.memory()
            elif kind < 9:
                if not is_uniform:
                    self.members() if self.rng.integers(0, 2) else self.arithmetic()
                elif self.rng.integers(0, 8) == 0:
                    self.members()
                elif self.rng.integers(0, 4):
                    self.subgroup()
                else:
                    self.exchange()
            else:
                inner = self.pick([self.branch, self.loop, self.while_loop])
                inner(max(1, budget // 2), is_uniform and bool(self.rng.integers(0, 2)))
                budget -= max(1, budget // 2)


def make_case(number, size, seed):
    """A program without what it must compute; the block has whole subgroups or not, and several or one."""
    rng = np.random.default_rng([seed, number, size])
    block = int(rng.choice([size, 2 * size, size + 4, 64, 68, 96]))
    private = int(rng.choice([3, 8, 32, 40, 300]))
    program = Program(rng, size, block, private)
    program.statements(int(rng.integers(8, 26)), True)
    name = "program_%d_%d_size%d" % (seed, number, size)
    result = program.checksum()
    text = """qd.kernel @{name}(%x: !qd.buffer<i32> readonly, %z: !qd.buffer<f32> readonly,
                         %n: i32, %m: i32, %y: !qd.buffer<i32>) block({block}) {{
  %s = qd.shared.alloc : !qd.shared<{block}xi32>
  %p = qd.private.alloc : !qd.private<{private}xi32>
  %p0 = arith.constant 0 : i32
  %p1 = arith.constant 1 : i32
  %pn = arith.constant {private} : i32
  scf.for %pi = %p0 to %pn step %p1 : i32 {{
    qd.store %pi, %p[%pi] : !qd.private<{private}xi32>
  }}
  %t = qd.thread_index : i32
  %g = qd.global_thread_id x : i32
  %v = qd.load %x[%g] : !qd.buffer<i32>
  %w = qd.load %z[%g] : !qd.buffer<f32>
{body}
  qd.store {result}, %y[%g] : !qd.buffer<i32>
  qd.return
}}
""".format(name=name, block=block, private=private, body="\n".join(program.lines), result=result)
    inputs = [("x", "i32", scalars.randoms("i32", 2 * block, rng)),
              ("z", "f32", scalars.randoms("f32", 2 * block, rng))]
    given = [("n", "i32", int(rng.integers(-9, 100))), ("m", "i32", int(rng.integers(-9, 100)))]
    return Case(name, text, (2, 1, 1), given, inputs, [Output("y", "i32", np.zeros(2 * block, np.int32))])
