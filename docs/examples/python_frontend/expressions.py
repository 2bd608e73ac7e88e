"""Expressions: operators, calls, subscripts, and what Python names outside of a kernel."""
import ast
import inspect
import types

import qdc
from qdc.values import Array, Value, is_number, lanes_of, scalar_of

from . import names

COMPARISONS = {ast.Eq: "__eq__", ast.NotEq: "__ne__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__", ast.GtE: "__ge__"}
METHODS = ("load", "store", "atomic", "atomic_cas", "atomic_load", "atomic_store", "size", "view", "reinterpret", "to",
           "type", "shape")
MAX_ROUNDS = 4096  # of loops that are unrolled
# Classes of the syntax tree, by what stands in the source.
WORDS = {"NamedExpr": "':='", "JoinedStr": "an f-string", "TemplateStr": "a t-string", "Yield": "'yield'",
         "YieldFrom": "'yield from'", "Await": "'await'", "Dict": "a dictionary", "DictComp": "a dictionary",
         "Set": "a set", "SetComp": "a set", "Slice": "a slice among several subscripts", "Starred": "'*'",
         "ClassDef": "'class'", "AsyncFunctionDef": "'async def'", "ImportFrom": "'from'", "AsyncFor": "'async for'",
         "AsyncWith": "'async with'", "Delete": "'del'", "TryStar": "'except*'", "TypeAlias": "'type'"}
# Classes of values that are not numbers, arrays or the like.
DESCRIPTIONS = {"Undefined": "unassigned", "Local": "a function", "Op": "an op", "Ops": "a family of ops", "str": "a text",
                "Special": "a function", "module": "a module", "Kernel": "a kernel", "list": "a list", "dict": "a dictionary",
                "set": "a set", "range": "a range", "ndarray": "an array of NumPy", "ArrayType": "a type of buffers",
                "type": "a class"}


def word_for(node):
    """A part of the syntax tree as it is written in Python."""
    name = type(node).__name__
    return WORDS.get(name) or "'%s'" % name.lower()


class Expressions:
    """The part of `Lowering` that gives values."""

    def expression(self, node):
        handler = getattr(self, "get_" + type(node).__name__, None)
        if handler is None:
            self.fail(node, "%s is not supported in a kernel" % word_for(node))
        return self.guarded(node, handler, node)

    def describe(self, value):
        """A value for messages."""
        if isinstance(value, Array):
            return "an array of %s" % value.type
        if isinstance(value, Value):
            return str(value.type)
        if isinstance(value, tuple):
            return "a tuple of (%s)" % ", ".join(map(self.describe, value))
        if is_number(value):
            return "the number %s" % (value,)
        if value is None:
            return "None"
        if isinstance(value, (qdc.ScalarType, qdc.VectorType)):
            return "the type %s" % value
        word = type(value).__name__
        if word in DESCRIPTIONS:
            return DESCRIPTIONS[word]
        return "a function" if callable(value) and hasattr(value, "__name__") else word

    def mismatch(self, found, type):
        """The builder's words for a value of another type, in this language."""
        text = "found %s, expected %s" % (self.describe(found), type or "a value")
        converts = isinstance(found, Value) and not isinstance(found, Array) and lanes_of(found.type) == lanes_of(type)
        return text + (": convert it, as in %s(x)" % scalar_of(type) if converts else "")

    def condition(self, value, node):
        """A value as a condition: known beforehand, or an i1."""
        if isinstance(value, Array):
            self.fail(node, "an array is no condition")
        if isinstance(value, Value):
            return value if value.type is qdc.i1 else value != 0
        return bool(value)

    def get_Constant(self, node):
        if isinstance(node.value, (int, float, str)) or node.value is None:
            return node.value
        self.fail(node, "a constant of type %s is not supported" % type(node.value).__name__)

    def get_Name(self, node):
        found = self.scope.locals.get(node.id, self)
        if found is self:
            try:
                found = self.scope.lookup(node.id)
            except KeyError:
                self.fail(node, "'%s' is not defined" % node.id)
        if type(found).__name__ == "Undefined":
            self.fail(node, "'%s' is assigned on some ways to here only" % found.name)
        return found

    def get_Tuple(self, node):
        return tuple(self.elements_of(node.elts))

    get_List = get_Tuple

    def elements_of(self, nodes):
        values = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.expression(node.value)
                if not isinstance(value, (tuple, list, range)):
                    self.fail(node, "only a tuple can be spread, found %s" % self.describe(value))
                values += value
            else:
                values.append(self.expression(node))
        return values

    def get_Lambda(self, node):
        from .lowering import Local
        if node.args.defaults:
            self.fail(node, "a lambda in a kernel takes no defaults")
        return Local(node, self.scope)

    def get_GeneratorExp(self, node):
        """Over what is known beforehand: a tuple."""
        if len(node.generators) != 1 or node.generators[0].is_async:
            self.fail(node, "a comprehension has one 'for'")
        generator = node.generators[0]
        kind, values = self.iterable(generator.iter)
        if kind == "range" and not any(isinstance(v, Value) for v in values[:3]):
            kind, values = "static", range(*values[:3])
        if kind != "static":
            self.fail(generator.iter, "a comprehension goes over what is known beforehand, such as static_range(4)")
        outer, out = dict(self.scope.locals), []
        for value in values:
            self.assign(generator.target, value)
            tests = [self.condition(self.expression(test), test) for test in generator.ifs]
            if any(isinstance(test, Value) for test in tests):
                self.fail(node, "the condition of a comprehension is known beforehand")
            if all(tests):
                out.append(self.expression(node.elt))
        self.scope.locals = outer
        return tuple(out)

    get_ListComp = get_GeneratorExp

    # ---- operators ------------------------------------------------------------------------------------------------

    def get_BinOp(self, node):
        from .lowering import OPERATORS
        left, right = self.expression(node.left), self.expression(node.right)
        return self.operate(node, OPERATORS.get(type(node.op)), left, right)

    def operate(self, node, function, left, right):
        if function is None:
            self.fail(node, "'@' is not supported in a kernel")
        for value in (left, right):
            if isinstance(value, Array):
                self.fail(node, "found %s, expected a value" % self.describe(value))
        if isinstance(left, Value) and isinstance(right, Value) and left.type != right.type and function is not pow \
                and not (node.__class__ is ast.BinOp and isinstance(node.op, ast.Pow)):
            wanted = right.type if scalar(right).is_float and not scalar(left).is_float else left.type
            self.fail(node, "the operands are %s and %s: convert one, as in %s(x); a local keeps the type it begins with" % (
                left.type, right.type, wanted))
        if isinstance(left, Value) or isinstance(right, Value):
            if not all(isinstance(v, Value) or is_number(v) for v in (left, right)):
                self.fail(node, "the operands are %s and %s" % (self.describe(left), self.describe(right)))
        elif function is pow or (isinstance(right, int) and isinstance(left, int) and max(abs(left), abs(right)) > 2**64):
            self.fail(node, "numbers beyond 64 bits")
        self.here(node)
        return function(left, right)

    def get_UnaryOp(self, node):
        value = self.expression(node.operand)
        if isinstance(node.op, ast.Not) and not isinstance(value, Array):
            value = self.condition(value, node)
            return ~value if isinstance(value, Value) else not value
        if isinstance(value, Array) or not (isinstance(value, Value) or is_number(value)):
            self.fail(node, "found %s, expected a value" % self.describe(value))
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else +value

    def get_Compare(self, node):
        left, result = self.expression(node.left), True
        for op, right_node in zip(node.ops, node.comparators):
            right = self.expression(right_node)
            found = self.compare(node, op, left, right)
            if isinstance(result, Value) and isinstance(found, Value):
                result = result & found
            elif isinstance(result, Value):
                result = result if found else False
            else:
                result = found if result else False
            left = right
        return result

    def compare(self, node, op, left, right):
        if isinstance(op, (ast.Is, ast.IsNot)):
            return (left is right) == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, (tuple, list, range)):
                self.fail(node, "'in' looks through a tuple, found %s" % self.describe(right))
            found = False
            for element in right:
                same = self.compare(node, ast.Eq(), left, element)
                found = found | same if isinstance(found, Value) or isinstance(same, Value) else bool(found or same)
            return self.negated(found) if isinstance(op, ast.NotIn) else found
        method = COMPARISONS[type(op)]
        for side, other in ((left, right), (right, left)):
            if has_value(side) and not (isinstance(other, Value) or is_number(other)) or isinstance(side, Array):
                self.fail(node, "%s and %s are not compared in a kernel" % (self.describe(left), self.describe(right)))
        self.here(node)
        if isinstance(left, Value):
            return getattr(left, method)(right)
        if isinstance(right, Value):
            swapped = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__"}.get(method, method)
            return getattr(right, swapped)(left)
        return {"__eq__": lambda: left == right, "__ne__": lambda: left != right, "__lt__": lambda: left < right,
                "__le__": lambda: left <= right, "__gt__": lambda: left > right, "__ge__": lambda: left >= right}[method]()

    def negated(self, value):
        return ~value if isinstance(value, Value) else not value

    def get_BoolOp(self, node):
        """As Python's: the right side is computed where the left one has not decided. What costs nothing and cannot fail
        is computed anyway."""
        is_and = isinstance(node.op, ast.And)
        result = self.condition(self.expression(node.values[0]), node.values[0])
        for part in node.values[1:]:
            if not isinstance(result, Value):
                if result != is_and:
                    return result
                result = self.condition(self.expression(part), part)
            elif harmless(part):
                right = self.condition(self.expression(part), part)
                if isinstance(right, Value):
                    result = result & right if is_and else result | right
                elif right != is_and:
                    result = right
            else:
                test = result
                inside = lambda: self.body.value(self.condition(self.expression(part), part), qdc.i1)
                known = lambda: self.body.value(not is_and, qdc.i1)
                result = self.body.if_(test, inside if is_and else known, known if is_and else inside)
        return result

    def get_IfExp(self, node):
        test = self.condition(self.expression(node.test), node.test)
        if not isinstance(test, Value):
            return self.expression(node.body if test else node.orelse)
        if harmless(node.body) and harmless(node.orelse):
            a, b = self.expression(node.body), self.expression(node.orelse)
            if not isinstance(a, tuple):
                a, b = self.alike(node, "the value", a, b)
                return self.body.select(test, a, b)
            return self.merged(node, test, lambda: a, lambda: b)
        return self.merged(node, test, lambda: self.expression(node.body), lambda: self.expression(node.orelse))

    def merged(self, node, test, then, otherwise):
        """The value of one of two ways, by way of a local."""
        def put(value):
            self.scope.locals[".either"] = value()
        self.branch(node, test, lambda: put(then), lambda: put(otherwise))
        return self.scope.locals.pop(".either")

    # ---- parts ----------------------------------------------------------------------------------------------------

    def get_Attribute(self, node):
        value = self.expression(node.value)
        if isinstance(value, Value):
            if node.attr not in METHODS or (not isinstance(value, Array) and node.attr not in ("to", "type")):
                self.fail(node, "%s has no '%s' in a kernel" % (self.describe(value), node.attr))
            if node.attr == "shape":
                return tuple(value.size(dim) for dim in range(value.type.rank))
            return getattr(value, node.attr)
        if isinstance(value, (int, float, str, tuple, list)):
            self.fail(node, "%s has no '%s' in a kernel" % (self.describe(value), node.attr))
        try:
            return getattr(value, node.attr)
        except AttributeError as error:
            if type(value).__name__ in DESCRIPTIONS and not isinstance(value, (names.Ops, types.ModuleType)):
                self.fail(node, "%s has no '%s' in a kernel" % (self.describe(value), node.attr))
            self.fail(node, str(error))

    def get_Subscript(self, node):
        value = self.expression(node.value)
        if isinstance(node.slice, ast.Slice):
            if not isinstance(value, (tuple, list)):
                self.fail(node, "slices are for tuples: of a buffer, x.view(begin, count) is a part")
            parts = [None if part is None else self.expression(part) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            if any(isinstance(part, Value) for part in parts):
                self.fail(node, "a slice of a tuple is known beforehand")
            return value[slice(*parts)]
        index = self.expression(node.slice)
        self.here(node)
        if isinstance(value, Array) or (isinstance(value, Value) and lanes_of(value.type)):
            return value[index]
        if isinstance(value, (tuple, list, range)):
            if isinstance(index, Value):
                self.fail(node, "a tuple is subscripted by what is known beforehand; table(...) by anything")
            return value[index]
        self.fail(node, "%s cannot be subscripted in a kernel" % self.describe(value))

    # ---- calls ----------------------------------------------------------------------------------------------------

    def get_Call(self, node):
        function = self.expression(node.func)
        args = self.elements_of(node.args)
        named = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(node, "'**' is not supported in a call")
            named[keyword.arg] = self.expression(keyword.value)
        self.here(node)
        return self.call(node, function, args, named)

    def callable(self, node, value):
        """Functions as the builder takes them, for reductions."""
        from .kernel import Kernel
        from .lowering import Local
        if isinstance(value, Local) or (inspect.isfunction(value) and not isinstance(value, Kernel)) or \
                value in (min, max):
            return lambda *values: self.call(node, value, list(values), {})
        return value

    def call(self, node, function, args, named):
        from .kernel import Kernel, parse
        from .lowering import Function, Local
        if isinstance(function, (Value, tuple)):
            self.fail(node, "%s cannot be called in a kernel" % self.describe(function))
        if isinstance(function, Local):
            return self.inline(node, function, args, named)
        if isinstance(function, names.Special):
            return self.special(node, function.name, args, named)
        if isinstance(function, names.Op):
            args = [self.callable(node, value) if not isinstance(value, (Value, str, tuple, list)) else value for value in args]
            return self.body.call_op(function.name, *args, **named)
        if isinstance(function, qdc.ScalarType):
            if len(args) != 1 or named:
                self.fail(node, "a conversion takes one value")
            return self.body.cast(args[0], function)
        if inspect.ismethod(function) and isinstance(function.__self__, Value):
            try:
                inspect.signature(function).bind(*args, **named)
            except TypeError as error:
                self.fail(node, "%s: %s" % (function.__name__, error))
            if function.__name__ == "store" and isinstance(function.__self__, Array) and args:
                args[0] = self.fitting(function.__self__, args[0])
            return function(*args, **named)
        if isinstance(function, Kernel):
            self.fail(node, "a kernel cannot launch a kernel")
        if function in (enumerate, zip, reversed, tuple, list):
            return tuple(function(*args, **named))
        dynamic = [v for v in [*args, *named.values()] if has_value(v)]
        try:
            known = function in names.MATH or function in BUILTINS
        except TypeError:
            known = False
        if dynamic and known:
            if function in names.MATH:
                return self.body.op(names.MATH[function], *args, **named)
            return BUILTINS[function](self, node, *args, **named)
        if function is print:
            return self.print(node, args, named)
        if inspect.isfunction(function):
            made = FUNCTIONS.get(function)
            if made is None:
                tree, file = parse(function)
                made = FUNCTIONS[function] = Function(function, tree, file)
            return self.inline(node, made, args, named)
        if callable(function) and not dynamic and function in ALLOWED:
            return function(*args, **named)
        self.fail(node, "%s cannot be called in a kernel" % (getattr(function, "__name__", None) or self.describe(function)))

    def print(self, node, args, named):
        where = named.pop("where", None)
        if named:
            self.fail(node, "print takes values and `where` in a kernel")
        texts = [a.replace("{", "{{").replace("}", "}}") if isinstance(a, str) else "{}" for a in args]
        self.body.print_(" ".join(texts), *[a for a in args if not isinstance(a, str)], where=where)

    def special(self, node, name, args, named):
        body = self.body
        if name in ("elements", "grid_stride", "block_stride", "static_range", "unroll"):
            self.fail(node, "%s stands behind 'for ... in'" % name)
        if name in ("select", "cast", "bitcast", "vector", "private", "table", "shared"):
            return getattr(body, name)(*args, **named)
        self.fail(node, "%s cannot be called" % name)

    def iterable(self, node):
        """What a `for` goes over: ("static", values), ("elements", counts), or a range's (low, high, step, unroll)."""
        if isinstance(node, ast.Call):
            function = self.expression(node.func)
            name = function.name if isinstance(function, names.Special) else "range" if function is range else None
            if name == "unroll":
                if len(node.args) != 2 or node.keywords:
                    self.fail(node, "unroll takes a range and a number or \"full\"")
                kind, values = self.iterable(node.args[0])
                if kind != "range":
                    self.fail(node, "unroll takes a range")
                return kind, values[:3] + (self.expression(node.args[1]),)
            if name is not None:
                args = self.elements_of(node.args)
                if node.keywords or not 1 <= len(args) <= (3 if name in ("range", "static_range") else 1):
                    self.fail(node, "%s takes %s" % (name, "a limit, or begin, end and step" if "range" in name else "one limit"))
                return self.ranged(node, name, args)
        values = self.expression(node)
        if not isinstance(values, (tuple, list, range)):
            self.fail(node, "a loop goes over range, elements, grid_stride, block_stride, static_range or a tuple, found %s" %
                      self.describe(values))
        return "static", self.counted_rounds(node, values)

    def ranged(self, node, name, args):
        body = self.body
        if name == "elements":
            counts = tuple(args[0]) if isinstance(args[0], (tuple, list)) else (args[0],)
            if not 1 <= len(counts) <= 3:
                self.fail(node, "elements takes up to 3 limits, got %d" % len(counts))
            return "elements", counts
        if name in ("grid_stride", "block_stride"):
            wide = isinstance(args[0], Value) and args[0].type is qdc.i64
            type = qdc.i64 if wide else qdc.i32
            if name == "grid_stride":
                first = body.global_thread_id("x", type)
                step = body.grid_dim("x", type) * body.block_dim("x", type)
            else:
                first = body.thread_index(type)
                step = body.block_dim("x", type) * body.block_dim("y", type) * body.block_dim("z", type)
            return name, (first, args[0], step, None)
        for value in args:
            if isinstance(value, (Array, float)) or not (isinstance(value, Value) or is_number(value)) or \
                    (isinstance(value, Value) and scalar(value).is_float):
                self.fail(node, "a range is of integers, found %s" % self.describe(value))
        low, high, step = (0, args[0], 1) if len(args) == 1 else (args[0], args[1], args[2] if len(args) == 3 else 1)
        if not isinstance(step, Value) and step == 0:
            self.fail(node, "a range of step 0")
        if name == "static_range":
            if any(isinstance(v, Value) for v in (low, high, step)):
                self.fail(node, "static_range goes over what is known beforehand")
            return "static", self.counted_rounds(node, range(low, high, step))
        return "range", (low, high, step, None)

    def counted_rounds(self, node, values):
        if len(values) > MAX_ROUNDS:
            self.fail(node, "a loop of %d rounds is not unrolled: at most %d" % (len(values), MAX_ROUNDS))
        return values

    # ---- Python's own functions ---------------------------------------------------------------------------------

    def extreme(self, node, integer, float, *args):
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        if not args:
            self.fail(node, "no values to choose from")
        result = args[0]
        for value in args[1:]:
            a, b = self.alike(node, "the value", result, value)
            result = self.body.op("arith.%s" % (float if scalar(a).is_float else integer), a, b)
        return result

    def total(self, node, values, start=0):
        for value in values:
            start = value if isinstance(start, int) and start == 0 else start + value
        return start


def scalar(value):
    return scalar_of(value.type)


def has_value(value):
    return isinstance(value, Value) or (isinstance(value, (tuple, list)) and any(map(has_value, value)))


def harmless(node):
    """Whether an expression reads no memory and calls nothing."""
    return not any(isinstance(part, (ast.Subscript, ast.Call, ast.Div, ast.FloorDiv, ast.Mod)) for part in ast.walk(node))


FUNCTIONS = {}
BUILTINS = {
    min: lambda lowering, node, *args: lowering.extreme(node, "minsi", "minnumf", *args),
    max: lambda lowering, node, *args: lowering.extreme(node, "maxsi", "maxnumf", *args),
    sum: lambda lowering, node, values, start=0: lowering.total(node, values, start),
    abs: lambda lowering, node, value: abs(value),
    int: lambda lowering, node, value: lowering.body.cast(value, qdc.i32),
    float: lambda lowering, node, value: lowering.body.cast(value, qdc.f32),
    bool: lambda lowering, node, value: lowering.body.cast(value, qdc.i1),
    pow: lambda lowering, node, a, b: a ** b,
    len: lambda lowering, node, value: value.size(0) if isinstance(value, Array) else len(value),
}
# What may be computed beforehand.
ALLOWED = {min, max, sum, abs, int, float, bool, pow, len, range, tuple, list, divmod, round, reversed, enumerate, zip, sorted,
           isinstance, type, str, qdc.vector, qdc.buffer, any, all, *names.MATH}
