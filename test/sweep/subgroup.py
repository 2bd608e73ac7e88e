"""All subgroup and block ops: families, rows and cases."""
import os
import re

import blocks
import divergent
import kinds
import layout
import moves
import op
import order
import regions
import sorts
import votes

FAMILIES = (votes, moves, kinds, regions, sorts, divergent, order, blocks)
OPS = {o.name: o for family in FAMILIES for o in family.ops()}


DEFINITIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ir", "ops")
# What tests of their own are about: ends of regions, barriers and fences without a result.
ELSEWHERE = {"yield", "block.sync", "block.sync_shared", "block.mem_fence"}


def missing():
    """Ops that are defined and have no row here."""
    defined = set()
    for name in ("Subgroup.td", "Block.td"):
        with open(os.path.join(DEFINITIONS, name)) as file:
            text = file.read()
        prefix = "block." if name == "Block.td" else ""
        defined |= {prefix + op
                    for op in re.findall(r'^def QD_\w+\s*:\s*QD_\w+<"(?:subgroup\.|block\.)?(\w+)"', text, re.M)}
    covered = set(OPS) | {name.rsplit(".", k)[0] for name in OPS for k in range(1, 5)}
    return defined - covered - ELSEWHERE


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
    # Not by the op either: shapes differ in what they share, the inputs.
    number = int(rng.integers(512)) if tile == layout.ODD else turn(name, types, tile) // 2
    place = layout.choose(size, tile, is_ragged, number)
    return op.make_case(OPS[name], types, place, rng)
