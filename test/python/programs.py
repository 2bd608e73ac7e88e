"""Random Python functions of an integer that kernels and Python compute alike: all locals stay small."""
import random

NAMES = ("a", "b", "c", "d")


class Writer:
    """Writes one function. Loops end after few rounds; what a local is set to is cut to ten bits."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.loops, self.counters, self.budget = [], 0, 0, 40

    def function(self, name):
        self.put(0, "def %s(v):" % name)
        self.put(1, "a, b, c, d = v, v + 3, 7, v * 2")
        self.block(1, 3)
        self.put(1, "return (a + 3 * b + 5 * c + 7 * d) & 65535")
        return "\n".join(self.lines) + "\n"

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def pick(self, *choices):
        return self.random.choice(choices)

    def atom(self):
        return self.pick(*NAMES, "v", str(self.random.randrange(-9, 20)))

    def value(self, depth=2):
        kind = self.random.randrange(14) if depth else 0
        a, b = (self.value(depth - 1), self.value(depth - 1)) if depth else ("", "")
        if kind < 3:
            return self.atom()
        if kind < 7:
            return "(%s %s %s)" % (a, self.pick("+", "-", "&", "|", "^"), b)
        if kind == 7:
            return "(%s * %s)" % (self.atom(), self.atom())
        if kind == 8:
            return "(%s %s %d)" % (a, self.pick("//", "%"), self.pick(-7, -3, -1, 1, 2, 3, 8, 10, 16))
        if kind == 9:
            return "(%s >> %d)" % (a, self.random.randrange(6))
        if kind == 10:
            return "(%s if %s else %s)" % (a, self.test(depth - 1), b)
        if kind == 11:
            return "%s(%s, %s)" % (self.pick("min", "max"), a, b)
        if kind == 12:
            return "(%s%s)" % (self.pick("-", "~", "+"), a)
        return self.pick("abs(%s)" % a, "int(%s)" % self.test(depth - 1), "twice(%s)" % a, "pair(%s, %s)[%d]" % (
            a, b, self.random.randrange(2)))

    def test(self, depth=2):
        kind = self.random.randrange(9) if depth else 0
        if kind < 4:
            return "%s %s %s" % (self.value(1), self.pick("<", "<=", ">", ">=", "==", "!="), self.value(1))
        if kind == 4:
            return "(%s < %s <= %s)" % (self.atom(), self.atom(), self.atom())
        if kind == 5:
            return "(not %s)" % self.test(depth - 1)
        if kind == 6:
            return "(%s in (1, %s, 5))" % (self.atom(), self.atom())
        return "(%s %s %s)" % (self.test(depth - 1), self.pick("and", "or"), self.test(depth - 1))

    def block(self, depth, nesting):
        for _ in range(self.random.randrange(1, 5)):
            self.statement(depth, nesting)

    def statement(self, depth, nesting):
        self.budget -= 1
        kind = self.random.randrange(16) if nesting and self.budget > 0 else self.random.randrange(6)
        if kind < 3:
            self.put(depth, "%s = %s & 1023" % (self.pick(*NAMES), self.value()))
        elif kind == 3:
            self.put(depth, "%s ^= %s & 255" % (self.pick(*NAMES), self.value(1)))
        elif kind == 4:
            one, two = self.random.sample(NAMES, 2)
            self.put(depth, "%s, %s = %s, %s & 1023" % (one, two, two, self.value(1)))
        elif kind == 5:
            one, two = self.random.sample(NAMES, 2)
            self.put(depth, "%s, %s = pair(%s, %s)" % (one, two, one, two))
        elif kind < 11:
            self.put(depth, "if %s:" % self.test())
            self.branch(depth + 1, nesting - 1)
            if self.random.random() < 0.3:
                self.put(depth, "elif %s:" % self.test())
                self.branch(depth + 1, nesting - 1)
            if self.random.random() < 0.5:
                self.put(depth, "else:")
                self.branch(depth + 1, nesting - 1)
        else:
            self.loop(depth, nesting - 1)

    def branch(self, depth, nesting):
        self.block(depth, nesting)
        if self.random.random() < 0.4:
            if self.loops and self.random.random() < 0.8:
                self.put(depth, self.pick("break", "continue"))
            elif self.random.random() < 0.5:
                self.put(depth, "return %s & 1023" % self.value(1))

    def loop(self, depth, nesting):
        self.counters += 1
        counter = "i%d" % self.counters
        kind = self.random.randrange(4)
        if kind == 0:
            self.put(depth, "%s = 0" % counter)
            self.put(depth, "while %s < %d and %s:" % (counter, self.random.randrange(1, 7), self.test(1)))
            self.put(depth + 1, "%s += 1" % counter)
        elif kind == 1:
            self.put(depth, "for %s in %s:" % (counter, self.pick(
                "range(v & 7)", "range(2, 9, 3)", "range(b & 7, -3, -2)", "range(a & 3, d & 7)")))
        elif kind == 2:
            self.put(depth, "for %s in static_range(%d):" % (counter, self.random.randrange(4)))
        else:
            self.put(depth, "for %s in (%s, %s):" % (counter, self.atom(), self.atom()))
        self.put(depth + 1, "%s = %s + %s & 1023" % ("a", "a", counter))
        self.loops += 1
        self.block(depth + 1, nesting)
        self.loops -= 1


def write(seed, name):
    """The text of a function and of a kernel that applies it."""
    return Writer(seed).function(name) + """

@kernel(block=32)
def apply_%s(x: buffer(i32, readonly=True), y: buffer(i32)):
    i = thread_index()
    y[i] = %s(x[i])


""" % (name, name)


HEAD = """from python_frontend import buffer, i32, kernel, static_range, thread_index


def twice(v):
    return v + v


def pair(a, b):
    if a > b:
        return b, a & 511
    return a & 511, b


"""
