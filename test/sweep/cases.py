"""Items, which name what is run, and the cases that they stand for: ("subgroup", row), ("elementwise", number),
("atomics", number) or ("program", number, subgroup size)."""
import functools

import numpy as np

import atomics
import elementwise
import host
import programs
import subgroup


def seeded(*words):
    """A generator that depends on the words alone, so that one case can be made again."""
    return np.random.default_rng(subgroup.turn(*words))


@functools.lru_cache(None)
def elementwise_cases(seed):
    return list(elementwise.cases(np.random.default_rng(seed)))


@functools.lru_cache(None)
def atomic_cases(seed):
    return list(atomics.cases(np.random.default_rng(seed)))


FLAT = {"elementwise": elementwise_cases, "atomics": atomic_cases}


def build(item, seed, compiler):
    """The case, or None where the item is no legal kernel. A random program must compute what the interpreter does."""
    kind, what = item[0], item[1]
    if kind == "subgroup":
        # Not by the op: those of one type and tile share their inputs, of which a pack then has few.
        return subgroup.case(what, seeded(seed, *what[1:]))
    if kind in FLAT:
        return FLAT[kind](seed)[what][2]
    return host.interpret(compiler, programs.make_case(what, item[2], seed), item[2])


def op_of(item, seed):
    """What the summary counts it under."""
    if item[0] == "subgroup":
        return item[1][0]
    return FLAT[item[0]](seed)[item[1]][0] if item[0] in FLAT else "random programs"
