"""Errors of the example frontend, each at its line of Python."""
import inspect
import unittest

import numpy as np
import python_frontend as fe
import qdc
from python_frontend import __main__ as examples
from python_frontend import buffer, f32, i32, kernel, static_range, subgroup, thread_index, vector
from test_frontend import early

SCALE = 3


class Errors(unittest.TestCase):
    """Each kernel below is wrong in the line that ends in `# !`."""

    def refused(self, function, text):
        with self.assertRaisesRegex(fe.FrontendError, text) as caught:
            kernel(block=32)(function).qir
        error = caught.exception
        self.assertTrue(error.source.endswith("# !"), error)
        with open(__file__) as file:
            self.assertEqual(file.read().split("\n")[error.line - 1], error.source)
        self.assertEqual(__file__, error.diagnostics[0].file)

    def test_types(self):
        def mixed(n: i32, x: buffer(f32)):
            x[0] = x[0] * n  # !
        self.refused(mixed, "the operands are f32 and i32: convert one, as in f32")

        def changes(n: i32, x: buffer(f32)):
            total = 0
            for i in range(n):  # !
                total = x[i]
            x[0] = total
        self.refused(changes, r"'total' is i32 before the loop and f32 after a round of it.*total: f32 = ")

        def begins(n: i32, x: buffer(f32)):
            total = 0
            for i in range(n):
                total += x[i]  # !
            x[0] = total
        self.refused(begins, r"i32 and f32: convert one, as in f32\(x\); a local keeps the type")

        def sides(n: i32, x: buffer(f32)):
            v = n
            if n > 3:  # !
                v = x[0]
            x[1] = v
        self.refused(sides, "'v' is f32 on one way and i32 on the other")

        def stored(n: i32, x: buffer(f32)):
            x[0] = n  # !
        self.refused(stored, r"found i32, expected f32: convert it, as in f32\(x\)\n")

        def narrowed(n: i32, x: buffer(i32), y: buffer(f32)):
            x[0] = y[0]  # !
        self.refused(narrowed, r"error: found f32, expected i32: convert it, as in i32\(x\)\n")

        def lanes(n: i32, x: buffer(f32)):
            x[0] = subgroup.shuffle(vector(x[1], x[2]), 0) + x[1]  # !
        self.refused(lanes, "the operands are vector<2xf32> and f32")

        def whole(n: i32, x: buffer(f32)):
            x.atomic("add", x, 0)  # !
        self.refused(whole, "found an array of !qd.buffer<f32>, expected f32\n")

        def function(n: i32, x: buffer(f32)):
            x[0] = lambda: 1.0  # !
        self.refused(function, "found a function, expected f32\n")

        def nothing(n: i32, x: buffer(f32)):
            x[0] = None  # !
        self.refused(nothing, "found None, expected f32\n")

        def a_type(n: i32, x: buffer(f32)):
            x[0] = i32  # !
        self.refused(a_type, "found the type i32, expected f32\n")

        def an_op(n: i32, x: buffer(f32)):
            x[0] = thread_index  # !
        self.refused(an_op, "found an op, expected f32\n")

        def tuples(n: i32, x: buffer(i32)):
            if (n, 1) == (1, n):  # !
                x[0] = 1
        self.refused(tuples, r"a tuple of \(i32, the number 1\) and a tuple of \(the number 1, i32\) are not compared")

        def negated(n: i32):
            n = -"a"  # !
        self.refused(negated, "found a text, expected a value")

        def rounds(f: f32):
            for i in range(f):  # !
                pass
        self.refused(rounds, "a range is of integers, found f32")

        def element(n: i32):
            n = n[0]  # !
        self.refused(element, "error: i32 cannot be subscripted")

        def part(n: i32):
            t = (1, 2, 3)[n:]  # !
        self.refused(part, "a slice of a tuple is known beforehand")

        def message(n: i32):
            assert n > 2, n  # !
        self.refused(message, "found i32, expected a text")

        def matrix(n: i32):
            n = n @ n  # !
        self.refused(matrix, "'@' is not supported")

        def with_none(n: i32):
            while n == None:  # noqa: E711  # !
                pass
        self.refused(with_none, "i32 and None are not compared")

        def subscript(n: f32, x: buffer(f32)):
            x[n] = 1.0  # !
        self.refused(subscript, "a subscript is an i32 or i64")

        def divided(n: i32, x: buffer(f32)):
            x[0] = f32(n / 2)  # !
        self.refused(divided, "use //")

        def number(n: i32, x: buffer(f32)):
            m = n + 2**40  # !
        self.refused(number, "does not fit i32")

        def condition(n: i32, x: buffer(f32)):
            if x:  # !
                pass
        self.refused(condition, "no condition")

    def test_names(self):
        def unknown(n: i32):
            m = nothing  # noqa: F821  # !
        self.refused(unknown, "'nothing' is not defined")

        def partly(n: i32, x: buffer(i32)):
            if n > 3:
                v = 1
            x[0] = v  # !
        self.refused(partly, "'v' is assigned on some ways")

        def after(n: i32, x: buffer(i32)):
            for i in range(n):
                v = i
            x[0] = v  # !
        self.refused(after, "'v' is assigned on some ways")

        def op(n: i32):
            subgroup.nonsense(n)  # !
        self.refused(op, "no op 'qd.subgroup.nonsense'")

        def attribute(n: i32, x: buffer(i32)):
            n.size()  # !
        self.refused(attribute, "i32 has no 'size' in a kernel")

    def test_calls(self):
        def foreign(n: i32):
            open("file")  # !
        self.refused(foreign, "open cannot be called in a kernel")

        def of_value(n: i32):
            n()  # !
        self.refused(of_value, "error: i32 cannot be called in a kernel")

        def without_index(x: buffer(f32)):
            x.load()  # !
        self.refused(without_index, "error: load: missing a required argument: 'index'")

        def option(x: buffer(f32)):
            x.load(0, foo=1)  # !
        self.refused(option, "error: load: got an unexpected keyword argument 'foo'")

        def count(n: i32):
            early(n, n)  # !
        self.refused(count, "'early' takes 1 arguments, got 2")

        def keyword(n: i32):
            early(w=n)  # !
        self.refused(keyword, "no parameter 'w'")

        def lacking(n: i32):
            early()  # !
        self.refused(lacking, "lacks its argument 'v'")

        def operands(n: i32):
            subgroup.shuffle(n)  # !
        self.refused(operands, "lacks its operand 'lane'")

        def recursive(n: i32):
            descend(n)
        with self.assertRaisesRegex(fe.FrontendError, "a kernel cannot call itself"):
            kernel(block=32)(recursive).qir

        def nested(n: i32):
            examples.kernels.saxpy(n)  # !
        self.refused(nested, "a kernel cannot launch a kernel")

    def test_statements(self):
        def with_(n: i32):
            with n:  # !
                pass
        self.refused(with_, "'with' is not supported")

        def try_(n: i32):
            try:  # !
                pass
            except ValueError:
                pass
        self.refused(try_, "'try' is not supported")

        def class_(n: i32):
            class A:  # !
                pass
        self.refused(class_, "'class' is not supported")

        def global_(n: i32):
            global SCALE  # !
            SCALE = 3
        self.refused(global_, "'global' is not supported")

        def else_(n: i32):
            for i in range(n):
                pass
            else:
                n = n + 1  # !
        self.refused(else_, "'else' of a loop")

        def value(n: i32):  # !
            return n
        self.refused(value, "a kernel gives no value")

        def iterate(n: i32, x: buffer(i32)):
            for v in x:  # !
                pass
        self.refused(iterate, "a loop goes over")

        def step(n: i32):
            for i in range(0, n, 0):  # !
                pass
        self.refused(step, "step 0")

        def dictionary(n: i32):
            d = {1: n}  # !
        self.refused(dictionary, "a dictionary is not supported")

        def text(n: i32):
            f"{n}"  # !
        self.refused(text, "an f-string is not supported")

        def walrus(n: i32):
            if (m := n) > 2:  # !
                pass
        self.refused(walrus, "':=' is not supported")

        def generator(n: i32):
            yield n  # !
        self.refused(generator, "'yield' is not supported")

        def chain(n: i32):
            yield from (n,)  # !
        self.refused(chain, "'yield from' is not supported")

        def unordered(n: i32):
            n = {n}  # !
        self.refused(unordered, "a set is not supported")

        def slices(n: i32, m: buffer(i32, 2)):
            n = m[0:2, 1]  # !
        self.refused(slices, "a slice among several subscripts is not supported")

        def of_function(n: i32):
            thread_index.size  # !
        self.refused(of_function, "an op has no 'size' in a kernel")

        def long(n: i32):
            for i in static_range(10**9):  # !
                pass
        self.refused(long, "is not unrolled")

        def dynamic(n: i32):
            for i in static_range(n):  # !
                pass
        self.refused(dynamic, "known beforehand")

        def unpack(n: i32):
            a, b = n  # !
        self.refused(unpack, "expected a tuple of 2 values, found i32")

    def test_signatures(self):
        def untyped(n):  # !
            pass
        self.refused(untyped, "needs a type")

        def wrong(n: str):  # !
            pass
        self.refused(wrong, "expected a scalar type or buffer")

        def default(n: i32 = 3):  # !
            pass
        self.refused(default, "plain parameters")
        with self.assertRaisesRegex(qdc.ArgumentError, "needs the block's size"):
            kernel(untyped)
        with self.assertRaisesRegex(qdc.ArgumentError, "is for functions"):
            kernel(block=32)(3)
        with self.assertRaisesRegex(qdc.CompileError, "source"):
            space = {"i32": i32}
            exec("def made(n: i32):\n    pass\n", space)
            kernel(block=32)(space["made"]).qir

    def test_of_the_compiler(self):
        """What the compiler refuses points at the Python, too; so does what fails when it runs."""
        @kernel(block=32)
        def divergent(x: buffer(f32)):
            if thread_index() < 3:
                x[0] = subgroup.reduce_all("add", x[1])  # here
        with self.assertRaisesRegex(qdc.CompileError, "uniform") as caught:
            divergent.compile("nvptx")
        first = caught.exception.diagnostics[0]
        self.assertTrue(first.source.endswith("# here"), first)
        self.assertIn("if thread_index() < 3", first.notes[0].source)

        @kernel(block=32)
        def outside(x: buffer(f32)):
            x[thread_index()] = 1.0
        with self.assertRaisesRegex(qdc.LaunchError, r"test_frontend_errors.py:\d+:\d+: 'qd.store' op subscript 5"):
            outside(np.zeros(5, np.float32), grid=1, device="interp")
        with self.assertRaisesRegex(qdc.ArgumentError, "elements are f64, expected f32"):
            outside(np.zeros(5), grid=1)
        with self.assertRaises(qdc.DeviceError):
            outside(np.zeros(5, np.float32), grid=1, device="nothing")


class Anything(unittest.TestCase):
    def test_functions_of_python(self):
        """Functions that were never meant for it are refused at their lines, or compile."""
        import bisect, colorsys, copy, difflib, fractions, heapq, random, statistics, textwrap  # noqa: E401
        from python_frontend.kernel import parse
        from python_frontend.lowering import Function, Lowering
        count = 0
        for module in (bisect, colorsys, copy, difflib, fractions, heapq, random, statistics, textwrap):
            owners = [module] + [value for value in vars(module).values() if inspect.isclass(value)]
            for function in filter(inspect.isfunction, (value for owner in owners for value in vars(owner).values())):
                for type in (i32, f32, buffer(f32)):
                    count += 1
                    module_text = qdc.Builder()
                    try:
                        node, file = parse(function)
                        types = {argument.arg: type for argument in node.args.args}
                        built = module_text.kernel("k", types, 32, attributes=False)
                        Lowering(built).run_kernel(Function(function, node, file),
                                                   {name: built[name] for name in types})
                        qdc.compile(module_text, "nvptx", emit="qir")
                    except qdc.Error as error:
                        self.assertTrue(str(error))
        self.assertGreater(count, 300)


def descend(v):
    return descend(v - 1)


if __name__ == "__main__":
    unittest.main()
