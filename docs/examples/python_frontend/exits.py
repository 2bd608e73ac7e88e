"""break, continue and return as flags: a kernel's control flow has one way in and one way out.

Input: statements of a function. Output: statements without these three, which compute the same:

    while c:                          .break1 = False
        if p: break           ->      while c:        (.exit = ".break1": goes on while it is false)
        work()                            if p: .break1 = True
                                          else: work()
    return v                          .value = v

Names with a dot in front cannot meet the program's own. What follows an `if` that surely leaves goes into its other
side; where it leaves on some ways only, a flag skips what follows.
"""
import ast
import itertools

LOOPS = (ast.For, ast.While)
NESTED = (ast.FunctionDef, ast.Lambda)


def leaves(statements, kinds):
    """Whether one of the kinds leaves these statements: break and continue do not leave the loop that they are in."""
    for statement in statements:
        if isinstance(statement, kinds):
            return True
        if isinstance(statement, ast.If) and (leaves(statement.body, kinds) or leaves(statement.orelse, kinds)):
            return True
        if isinstance(statement, LOOPS) and ast.Return in kinds and leaves(statement.body, (ast.Return,)):
            return True
    return False


EXITS = (ast.Break, ast.Continue, ast.Return)


def always_leaves(statements):
    return any(isinstance(s, EXITS) or (isinstance(s, ast.If) and always_leaves(s.body) and always_leaves(s.orelse))
               for s in statements)


class Exits:
    """Rewrites one function. `refuse(node, message)` raises."""

    def __init__(self, refuse):
        self.refuse, self.numbers = refuse, itertools.count(1)

    def rewrite_function(self, statements):
        from_loops = any(isinstance(s, LOOPS) and leaves(s.body, (ast.Return,))
                         for s in ast.walk(ast.Module(statements, [])))
        out = self.rewrite(statements, None, ())
        if from_loops:
            out.insert(0, self.assign(".returned", False, statements[0]))
        return out

    def assign(self, name, value, place):
        value = ast.Constant(value) if isinstance(value, bool) else value
        node = ast.Assign([ast.Name(name, ast.Store())], value)
        return ast.fix_missing_locations(ast.copy_location(node, place))

    def test(self, name, body, place, negated):
        name = ast.Name(name, ast.Load())
        node = ast.If(ast.UnaryOp(ast.Not(), name) if negated else name, body, [])
        return ast.fix_missing_locations(ast.copy_location(node, place))

    def rewrite(self, statements, loop, skips):
        """`loop` is the flag that ends the loop around; `skips` are the flags that skip what follows an `if`."""
        out = []
        for number, statement in enumerate(statements):
            rest = statements[number + 1:]
            if isinstance(statement, EXITS):
                return out + self.leave(statement, loop, skips)
            if isinstance(statement, ast.If) and leaves([statement], EXITS):
                return out + self.branch(statement, rest, loop, skips)
            if not isinstance(statement, LOOPS):
                out.append(self.inside(statement, loop, skips))
                continue
            if statement.orelse:
                self.refuse(statement.orelse[0], "'else' of a loop is not supported")
            ends = leaves(statement.body, (ast.Break, ast.Return))
            returns = leaves(statement.body, (ast.Return,))
            statement.gives = returns and any(isinstance(s, ast.Return) and s.value is not None
                                              for inner in statement.body for s in ast.walk(inner))
            statement.exit = ".break%d" % next(self.numbers) if ends else None
            statement.body = self.rewrite(statement.body, statement.exit or ".none", ())
            if ends:
                out.append(self.assign(statement.exit, False, statement))
            out.append(statement)
            if returns:
                leave = self.test(".returned", [ast.copy_location(ast.Return(None), statement)], statement, False)
                return out + self.rewrite([leave] + rest, loop, skips)
        return out

    def inside(self, statement, loop, skips):
        if isinstance(statement, ast.If):
            statement.body = self.rewrite(statement.body, loop, skips)
            statement.orelse = self.rewrite(statement.orelse, loop, skips)
        return statement

    def leave(self, statement, loop, skips):
        out = [self.assign(skip, True, statement) for skip in skips]
        if isinstance(statement, ast.Return):
            if statement.value is not None:
                out.append(self.assign(".value", statement.value, statement))
            if loop:
                out += [self.assign(".returned", True, statement), self.assign(loop, True, statement)]
        elif not loop:
            self.refuse(statement, "'%s' outside of a loop" % type(statement).__name__.lower())
        elif isinstance(statement, ast.Break):
            out.append(self.assign(loop, True, statement))
        return out or [ast.copy_location(ast.Pass(), statement)]

    def branch(self, statement, rest, loop, skips):
        here, there = always_leaves(statement.body), always_leaves(statement.orelse)
        if here or there or not rest:
            statement.body = self.rewrite(statement.body + ([] if here else rest), loop, skips)
            statement.orelse = self.rewrite(statement.orelse + ([] if there else rest), loop, skips)
            return [statement]
        skip = ".skip%d" % next(self.numbers)
        statement.body = self.rewrite(statement.body, loop, skips + (skip,))
        statement.orelse = self.rewrite(statement.orelse, loop, skips + (skip,))
        return [self.assign(skip, False, statement), statement,
                self.test(skip, self.rewrite(rest, loop, skips), statement, True)]
