"""Statements: from Python's syntax tree to ops, with locals as SSA values.

Input: a function's statements, after exits.py. Output: ops in a `qdc` body. Locals are an environment from names to
values of the kernel, or to things known beforehand: numbers, types, arrays, functions, tuples of all these. Where control
flow meets, each local that was assigned becomes a result of the op, of one type on all ways. What is known beforehand is
computed beforehand: an `if` on it takes its side, a loop over it is unrolled.
"""
import ast
import builtins
import copy
import operator

import qdc
from qdc.text import Lines
from qdc.values import Array, Value, is_number

from .errors import FrontendError, fail
from .exits import Exits
from .expressions import Expressions, word_for

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
             ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
             ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift}
MAX_DEPTH = 40  # of calls inside each other


UNSET = object()


class Function:
    """A Python function as a kernel sees it: its tree, its file, and what it can name."""

    def __init__(self, function, node, file):
        self.name, self.node, self.file = function.__name__, node, file
        self.globals = function.__globals__
        self.closure = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.closure[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                pass
        self.defaults = function.__defaults__ or ()
        self.outer = None
        node = copy.deepcopy(node)
        self.statements = Exits(lambda at, message: fail(file, at, message)).rewrite_function(node.body)


class Local:
    """A function or lambda inside a kernel: it sees the locals around it."""

    def __init__(self, node, scope):
        self.node, self.scope = node, scope


class Undefined:
    """A local that only some ways have assigned."""

    def __init__(self, name):
        self.name = name


class Scope:
    """The locals of a call, and where names that are no locals are looked up."""

    def __init__(self, file, lookup):
        self.locals, self.file, self.lookup = {}, file, lookup
        self.given = UNSET  # what the function has last returned


def assigned(node_or_list):
    """The names that statements assign, without those inside of functions."""
    found, stack = [], list(node_or_list) if isinstance(node_or_list, list) else [node_or_list]
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp)):
            stack[:0] = ast.iter_child_nodes(node)
    return list(dict.fromkeys(found))


def flatten(value):
    """The values and numbers in a local, through tuples; None where something else is in it."""
    if isinstance(value, tuple):
        parts = [flatten(part) for part in value]
        return None if None in parts else [leaf for part in parts for leaf in part]
    if is_number(value) or (isinstance(value, Value) and not isinstance(value, Array)):
        return [value]
    return None


def rebuild(value, leaves):
    """The local with other values, taken from the iterator."""
    return tuple(rebuild(part, leaves) for part in value) if isinstance(value, tuple) else next(leaves)


class Lowering(Expressions):
    """Adds a function's ops to a body."""

    def __init__(self, body):
        self.body, self.depth, self.scope = body, 0, None
        body._mismatch = self.mismatch

    # ---- functions ------------------------------------------------------------------------------------------------

    def run_kernel(self, function, arguments):
        self.scope = self.scope_of(function)
        self.scope.locals.update(arguments)
        self.statements(function.statements)
        if ".value" in self.scope.locals:
            fail(function.file, function.node, "a kernel gives no value: its results go into buffers")

    def scope_of(self, function):
        def lookup(name):
            for place in (function.closure, function.globals, vars(builtins)):
                if name in place:
                    return place[name]
            raise KeyError(name)
        return Scope(function.file, lookup)

    def inline(self, node, function, args, named):
        """A call: the function's statements with its parameters bound."""
        if self.depth >= MAX_DEPTH:
            self.fail(node, "more than %d calls inside each other: a kernel cannot call itself" % MAX_DEPTH)
        outer, self.depth = self.scope, self.depth + 1
        if isinstance(function, Local):
            scope = Scope(function.scope.file, self.lookup_in(function.scope))
            parameters, defaults = function.node.args, ()
            name = getattr(function.node, "name", "<lambda>")
        else:
            scope, parameters, name = self.scope_of(function), function.node.args, function.name
            defaults = function.defaults
        scope.locals.update(self.bind(node, name, parameters, defaults, args, named))
        try:
            if isinstance(function, Local) and isinstance(function.node, ast.Lambda):
                self.scope = scope
                return self.expression(function.node.body)
            if isinstance(function, Local):
                body = copy.deepcopy(function.node.body)
                statements = Exits(lambda at, message: fail(scope.file, at, message)).rewrite_function(body)
            else:
                statements = function.statements
            self.scope = scope
            self.statements(statements)
            return scope.locals.get(".value")
        finally:
            self.scope, self.depth = outer, self.depth - 1

    @staticmethod
    def lookup_in(scope):
        def lookup(name):
            return scope.locals[name] if name in scope.locals else scope.lookup(name)
        return lookup

    def bind(self, node, name, parameters, defaults, args, named):
        if parameters.kwarg or parameters.kwonlyargs or parameters.posonlyargs:
            self.fail(node, "'%s' has parameters that only keywords or positions reach, which is not supported" % name)
        known = [parameter.arg for parameter in parameters.args]
        bound = dict(zip(known[len(known) - len(defaults):], defaults))
        given = dict(zip(known, args))
        if parameters.vararg:
            given[parameters.vararg.arg] = tuple(args[len(known):])
        elif len(args) > len(known):
            self.fail(node, "'%s' takes %d arguments, got %d" % (name, len(known), len(args)))
        for key, value in named.items():
            if key not in known:
                self.fail(node, "'%s' has no parameter '%s'" % (name, key))
            if key in given:
                self.fail(node, "argument '%s' of '%s' is given twice" % (key, name))
            given[key] = value
        bound.update(given)
        missing = [key for key in known if key not in bound]
        if missing:
            self.fail(node, "'%s' lacks its argument '%s'" % (name, missing[0]))
        return bound

    # ---- statements -----------------------------------------------------------------------------------------------

    def fail(self, node, message):
        fail(self.scope.file, node, message)

    def statements(self, rows):
        for statement in rows:
            handler = getattr(self, "do_" + type(statement).__name__, None)
            if handler is None:
                self.fail(statement, "%s is not supported in a kernel" % word_for(statement))
            self.guarded(statement, handler, statement)

    def here(self, node):
        """Ops that follow come from there."""
        if getattr(node, "lineno", None):
            self.body.at(self.scope.file, node.lineno, node.col_offset + 1)

    def guarded(self, node, action, *args):
        """Errors of the package get the place of the Python that asked for it."""
        self.here(node)
        try:
            return action(*args)
        except FrontendError:
            raise
        except qdc.ArgumentError as error:
            self.fail(node, str(error))
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RecursionError) as error:
            self.fail(node, "%s" % (error or type(error).__name__))

    def do_Pass(self, node):
        pass

    def do_Expr(self, node):
        self.expression(node.value)

    def do_Assign(self, node):
        value = self.expression(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node):
        if node.value is None:
            self.fail(node, "a local needs a value, too")
        type = self.expression(node.annotation)
        type = {int: qdc.i32, float: qdc.f32, bool: qdc.i1}.get(type, type) if isinstance(type, builtins.type) else type
        if not isinstance(type, (qdc.ScalarType, qdc.VectorType)):
            self.fail(node.annotation, "a local's type is a scalar or vector, got %r" % (type,))
        self.assign(node.target, self.body.value(self.expression(node.value), type))

    def do_AugAssign(self, node):
        old = self.expression(ast.copy_location(_loaded(node.target), node.target))
        new = self.expression(node.value)
        self.assign(node.target, self.operate(node, OPERATORS.get(type(node.op)), old, new))

    def do_Assert(self, node):
        test = self.condition(self.expression(node.test), node)
        message = self.expression(node.msg) if node.msg else "assertion failed"
        if not isinstance(message, str):
            self.fail(node.msg, "found %s, expected a text" % self.describe(message))
        if not isinstance(test, Value):
            if not test:
                self.fail(node, str(message))
        else:
            self.body.assert_(test, message)

    def do_FunctionDef(self, node):
        if node.decorator_list:
            self.fail(node, "a function inside a kernel takes no decorators")
        if node.args.defaults:
            self.fail(node, "a function inside a kernel takes no defaults")
        self.scope.locals[node.name] = Local(node, self.scope)

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            if isinstance(value, list):
                value = tuple(value)
            self.scope.locals[target.id] = value
            if target.id == ".value":
                self.scope.given = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)):
                self.fail(target, "expected a tuple of %d values, found %s" % (len(target.elts), self.describe(value)))
            if len(value) != len(target.elts) or any(isinstance(e, ast.Starred) for e in target.elts):
                self.fail(target, "%d names for %d values" % (len(target.elts), len(value)))
            for part, element in zip(target.elts, value):
                self.assign(part, element)
        elif isinstance(target, ast.Subscript):
            array = self.expression(target.value)
            if not isinstance(array, Array):
                self.fail(target, "only arrays have elements that can be set, found %s" % self.describe(array))
            index = self.expression(target.slice)
            self.guarded(target, array.store, self.fitting(array, value), index)
        else:
            self.fail(target, "an assignment to this is not supported")

    @staticmethod
    def fitting(array, value):
        """Numbers and bools go into arrays of any type that holds them."""
        return int(value) if isinstance(value, bool) and array.type.element is not qdc.i1 else value

    # ---- control flow ---------------------------------------------------------------------------------------------

    def do_If(self, node):
        test = self.condition(self.expression(node.test), node.test)
        if not isinstance(test, Value):
            self.statements(node.body if test else node.orelse)
            return
        self.branch(node, test, lambda: self.statements(node.body), lambda: self.statements(node.orelse))

    def trace(self, action):
        """The ops and the locals of one way."""
        before = dict(self.scope.locals)
        try:
            lines = Lines()
            self.body._inside(action, lines)
            return lines, self.scope.locals
        finally:
            self.scope.locals = before

    def looking_into(self, lines, others, action):
        """Looks at values of two ways that were traced."""
        return self.body._inside(lambda: self.body._inside(action, others), lines)

    def branch(self, node, test, then, otherwise):
        """Both sides of a condition; locals that they assign come out as one."""
        lines, one = self.trace(then)
        others, two = self.trace(otherwise)
        self.here(node)
        joined, left, right = [], [], []
        for name in dict.fromkeys([*one, *two]):
            a, b = one.get(name, UNSET), two.get(name, UNSET)
            if self.is_gone(a) or self.is_gone(b):
                known = b if self.is_gone(a) else a
                if not name.startswith(".") or self.is_gone(known):
                    self.scope.locals[name] = Undefined(name)
                    continue
                # A flag or a function's value, read only where it was set.
                blank = self.zeros(known)
                a, b = (blank, b) if known is b else (a, blank)
            if a is b or (is_number(a) and type(a) is type(b) and a == b):
                self.scope.locals[name] = a
                continue
            rows = flatten(a), flatten(b)
            if None in rows or _shape(a) != _shape(b):
                self.fail(node, "'%s' is %s on one side of the condition and %s on the other" % (
                    name, self.describe(a), self.describe(b)))
            pairs = self.looking_into(lines, others, lambda: [self.alike(node, name, x, y) for x, y in zip(*rows)])
            joined.append((name, a))
            left += [x for x, _ in pairs]
            right += [y for _, y in pairs]
        results = iter(self.body.add_if(test, lines, left, others, right))
        for name, shape in joined:
            self.scope.locals[name] = rebuild(shape, results)

    @staticmethod
    def is_gone(value):
        return value is UNSET or isinstance(value, Undefined)

    def zeros(self, value):
        if isinstance(value, tuple):
            return tuple(self.zeros(part) for part in value)
        if isinstance(value, bool):
            return False
        if isinstance(value, Value) and not isinstance(value, Array):
            return self.body.constant(0, value.type)
        return value if not is_number(value) else type(value)(0)

    def alike(self, node, name, a, b):
        """Two values of one type, for what a local is on two ways."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            if isinstance(a, float) != isinstance(b, float):
                a, b = float(a), float(b)
            return self.body.value(a), self.body.value(b)
        type = a.type if isinstance(a, Value) else b.type
        try:
            return self.body.value(a, type), self.body.value(b, type)
        except qdc.ArgumentError:
            self.fail(node, "'%s' is %s on one way and %s on the other; a local has one type: convert one, as in f32(x)" % (
                name, self.describe(a), self.describe(b)))

    def expect_value(self, node):
        """A loop that returns a value hands it on from its first round: its type is found by a round that is thrown away."""
        if not node.gives or not self.is_gone(self.scope.locals.get(".value", UNSET)):
            return
        body, scope = self.body, self.scope
        kept = body._constant_lines, body._constants, body._taken, scope.given
        body._constant_lines, body._constants, body._taken = list(kept[0]), dict(kept[1]), dict(kept[2])
        scope.given, node.gives = UNSET, False
        try:
            self.trace(lambda: getattr(self, "do_" + type(node).__name__)(node))
            found = scope.given
        finally:
            node.gives = True
            body._constant_lines, body._constants, body._taken, scope.given = kept
        if found is not UNSET:
            if flatten(found) is None:
                self.fail(node, "a loop returns %s, expected values" % self.describe(found))
            self.scope.locals[".value"] = self.zeros(found)

    def do_While(self, node):
        self.expect_value(node)
        test = node.test
        if node.exit:
            stop = ast.copy_location(ast.UnaryOp(ast.Not(), ast.Name(node.exit, ast.Load())), node)
            test = ast.fix_missing_locations(ast.copy_location(ast.BoolOp(ast.And(), [stop, node.test]), node))
        self.loop(node, [node.test] + node.body, lambda: self.condition(self.expression(test), test),
                  lambda: self.statements(node.body))

    def carried(self, node, rows):
        """The locals that a loop hands from round to round, with their values before it."""
        found = {}
        for name in assigned(rows):
            value = self.scope.locals.get(name, UNSET)
            leaves = None if value is UNSET else flatten(value)
            if leaves is not None:
                found[name] = (value, [self.body.value(leaf) for leaf in leaves])
        return found

    def loop(self, node, rows, test, body):
        """scf.while over the locals that its body assigns."""
        carried = self.carried(node, rows)
        before = dict(self.scope.locals)
        init = [leaf for _, leaves in carried.values() for leaf in leaves]

        def enter(values):
            self.scope.locals = dict(before)
            values = iter(values)
            for name, (shape, _) in carried.items():
                self.scope.locals[name] = rebuild(shape, values)

        def check(*values):
            enter(values)
            return self.body.value(test(), qdc.i1)

        def run(*values):
            enter(values)
            body()
            return self.handed_on(node, carried)

        results = self.body.while_(check, run, init)
        self.leave(carried, before, results, rows)

    def handed_on(self, node, carried):
        """What the next round begins with, checked against what this one began with."""
        values = []
        for name, (shape, first) in carried.items():
            now = self.scope.locals[name]
            leaves = flatten(now)
            if isinstance(now, Undefined) or leaves is None or _shape(now) != _shape(shape):
                self.fail(node, "'%s' is %s before the loop and %s after a round of it" % (
                    name, self.describe(shape), self.describe(now)))
            for value, begin in zip(leaves, first):
                try:
                    values.append(self.body.value(value, begin.type))
                except qdc.ArgumentError:
                    self.fail(node, "'%s' is %s before the loop and %s after a round of it; a local has one type: begin with "
                              "it, as in %s: %s = ..." % (name, begin.type, self.describe(value), name,
                                                          value.type if isinstance(value, Value) else "f32"))
        return values

    def leave(self, carried, before, results, rows):
        """Behind a loop, what it carried has come out, and what it made for itself is gone."""
        self.scope.locals = before
        results = iter(results)
        for name, (shape, _) in carried.items():
            before[name] = rebuild(shape, results)
        for name in assigned(rows):
            if name not in carried:
                before[name] = Undefined(name)

    def do_For(self, node):
        self.expect_value(node)
        rows = [node.target] + node.body
        kind, values = self.iterable(node.iter)
        if kind == "static":
            self.unrolled(node, values)
        elif kind == "elements":
            self.elements(node, values)
        else:
            low, high, step, unroll = values
            if kind == "range" and not isinstance(step, Value) and step < 0:
                # Loops count upwards: a count of rounds, and the value from it.
                rounds = (low - high + (-step - 1)) // -step
                self.counted(node, rows, 0, rounds, 1, unroll, lambda i: low + i * step)
            elif kind == "range" and isinstance(step, Value):
                self.counted(node, rows, 0, self.rounds(low, high, step), 1, unroll, lambda i: low + i * step)
            else:
                self.counted(node, rows, low, high, step, unroll, lambda i: i)

    def rounds(self, low, high, step):
        """How often a range is gone round whose direction is known when it runs; never for a step of 0."""
        body = self.body
        low, high = body.value(low, step.type), body.value(high, step.type)
        forward, zero, one = step > 0, body.value(0, step.type), body.value(1, step.type)
        span = body.select(forward, high - low, low - high)
        size = body.select(step == 0, one, body.select(forward, step, zero - step))
        goes = (span > 0) & ~(step == 0)
        return body.select(goes, body.arith.divui(span - one, size) + one, zero)

    def counted(self, node, rows, low, high, step, unroll, value):
        body = self.body
        if not any(isinstance(v, Value) for v in (low, high, step)):
            low = body.value(low, qdc.i32)
        typed = next(v for v in (low, high, step) if isinstance(v, Value))
        low, high, step = (body.value(v, typed.type) for v in (low, high, step))
        if node.exit:
            # It ends before its end: the counter becomes a local.
            self.scope.locals[".i"] = low
            self.loop(node, rows + [ast.Name(".i", ast.Store()), ast.Name(node.exit, ast.Store())],
                      lambda: (self.scope.locals[".i"] < high) & ~body.value(self.scope.locals[node.exit], qdc.i1),
                      lambda: self.round(node, value, step))
            return
        carried = self.carried(node, rows)
        before = dict(self.scope.locals)
        init = [leaf for _, leaves in carried.values() for leaf in leaves]

        def run(i, *values):
            self.scope.locals = dict(before)
            values = iter(values)
            for name, (shape, _) in carried.items():
                self.scope.locals[name] = rebuild(shape, values)
            self.assign(node.target, value(i))
            self.statements(node.body)
            return self.handed_on(node, carried)

        results = body.for_(low, high, step, run, init, unroll=unroll)
        self.leave(carried, before, results, rows)

    def round(self, node, value, step):
        i = self.scope.locals[".i"]
        self.assign(node.target, value(i))
        outer = self.scope.locals[".i"]
        self.statements(node.body)
        self.scope.locals[".i"] = outer + step

    def unrolled(self, node, values):
        for value in values:
            def step(value=value):
                self.assign(node.target, value)
                self.statements(node.body)
            if not node.exit:
                step()
                continue
            goes_on = self.condition(self.scope.locals[node.exit], node)
            if not isinstance(goes_on, Value):
                if goes_on:
                    return
                step()
            else:
                self.branch(node, ~goes_on, step, lambda: None)

    def elements(self, node, counts):
        """One round a thread, for threads below the counts."""
        body = self.body
        if node.exit and any(isinstance(s, ast.Break) for s in ast.walk(node)):
            self.fail(node, "'break' in elements(): each thread has one round")
        indices = [body.global_thread_id(dim) for dim in "zyx"[3 - len(counts):]]
        inside = None
        for i, count in zip(indices, counts):
            below = i < count
            inside = below if inside is None else inside & below

        def step():
            self.assign(node.target, indices[0] if len(indices) == 1 else tuple(indices))
            self.statements(node.body)
        self.branch(node, inside, step, lambda: None)


def _shape(value):
    return tuple(_shape(part) for part in value) if isinstance(value, tuple) else 0


def _loaded(target):
    """The target of an assignment, to be read."""
    target = copy.deepcopy(target)
    for node in ast.walk(target):
        if hasattr(node, "ctx"):
            node.ctx = ast.Load()
    return target
