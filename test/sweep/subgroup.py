"""All subgroup ops: families, rows and cases."""
import os
import re

import divergent
import kinds
import layout
import moves
import op
import order
import regions
import sorts
import votes

FAMILIES = (votes, moves, kinds, regions, sorts, divergent, order)
OPS = {o.name: o for family in FAMILIES for o in family.ops()}


DEFINITIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ir", "ops", "Subgroup.td")


def missing():
    """Ops that are defined and have no row here."""
    with open(DEFINITIONS) as file:
        defined = set(re.findall(r'^def QD_\w+\s*:\s*QD_\w+<"(?:subgroup\.)?(\w+)"', file.read(), re.M))
    return defined - {name.split(".")[0] for name in OPS} - {"yield"}


def turn(*words):
    """A number that depends on the words alone."""
    value = 1469598103934665603
    for byte in " ".join(map(str, words)).encode():
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return value


def rows(names, sizes):
    """(op, types, tile, is_ragged, size): what the sweep takes one by one."""
    for name in names:
        for types in OPS[name].types:
            for tile in OPS[name].tiles:
                for size in sizes:
                    for is_ragged in (False, True):
                        if layout.choose(size, tile, is_ragged, 0):
                            yield name, types, tile, is_ragged, size


def case(row, rng):
    """None where the row is no legal kernel."""
    name, types, tile, is_ragged, size = row
    place = layout.choose(size, tile, is_ragged, turn(name, types, tile) // 2)
    return op.make_case(OPS[name], types, place, rng)
