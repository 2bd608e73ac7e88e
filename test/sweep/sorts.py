"""Bitonic sorts against a stable sort by order keys."""
import numpy as np

import scalars
from case import BITS
from op import INTS, TYPES, Made, Op, Result, tuples

SORT_TILES = [0, 1, 2, 4, 8, 16, 32, 64, 128]


def order(type, stored, is_unsigned, is_descending):
    """Keys of u64 that compare as the op orders the values. Negative NaNs stand behind positive ones."""
    raw = scalars.bits(type, stored).astype(np.uint64)
    width = scalars.width(type)
    sign = np.uint64(1 << width - 1)
    if scalars.is_float(type):
        is_negative = (raw & sign) != 0
        ones = np.uint64((1 << width) - 1)
        keys = np.where(is_negative, raw ^ ones, raw | sign)
        keys = np.where(is_negative & np.isnan(scalars.from_storage(type, stored)), ones, keys)
    else:
        keys = raw if is_unsigned else raw ^ sign
    return ~keys if is_descending else keys


def values_of(type, layout, rng):
    """Storage: any bits; few values, so that many are alike; tiles that are in order already, or all alike."""
    if scalars.is_float(type):
        special = scalars.nan_bits(type).view(scalars.storage(type))
        plain = scalars.to_storage(type, scalars.randoms(type, layout.total, rng))
        edges = scalars.to_storage(type, scalars.edges(type))
        pool = np.concatenate([edges[~np.isnan(scalars.from_storage(type, edges))], special])
    else:
        plain = scalars.randoms(type, layout.total, rng)
        pool = scalars.edges(type)
    mixed = np.where(rng.integers(0, 3, layout.total) == 0, rng.choice(pool, layout.total), plain)
    few = rng.choice(pool, (len(layout.count), 4))[np.arange(len(layout.count))[:, None],
                                                   rng.integers(0, 4, layout.exists.shape)]
    runs = layout.flat(np.sort(layout.matrix(plain), axis=1)[:, ::rng.choice([-1, 1])])
    return np.concatenate([mixed[:layout.block], layout.flat(few)[layout.block:2 * layout.block],
                           runs[2 * layout.block:]]).astype(scalars.storage(type))


def make_sort(is_descending, is_unsigned):
    def function(types, layout, rng):
        type, = types
        keys = values_of(type, layout, rng)
        tiles = layout.flat(np.arange(len(layout.count))[:, None])
        ranks = np.lexsort((order(type, keys, is_unsigned, is_descending), tiles))
        words = "descending " * is_descending + "unsigned " * is_unsigned
        return Made("  %%r0 = qd.subgroup.bitonic_sort %s%%k{tile} : %s\n" % (words, type), [("k", type, keys)], [],
                    [Result(type, keys[ranks], True, BITS)])
    return function


def make_pairs(is_descending, unsigned_keys, unsigned_values):
    def function(types, layout, rng):
        keys, values = (values_of(type, layout, rng) for type in types)
        tiles = layout.flat(np.arange(len(layout.count))[:, None])
        ranks = np.lexsort((order(types[1], values, unsigned_values, is_descending),
                            order(types[0], keys, unsigned_keys, is_descending), tiles))
        text = "  %%r0, %%r1 = qd.subgroup.bitonic_sort_kv %s%s%%k, %s%%v{tile} : %s, %s\n" % (
            "descending " * is_descending, "unsigned " * unsigned_keys, "unsigned " * unsigned_values, *types)
        return Made(text, [("k", types[0], keys), ("v", types[1], values)], [],
                    [Result(types[0], keys[ranks], True, BITS), Result(types[1], values[ranks], True, BITS)])
    return function



def ops():
    integers = ["i1"] + INTS
    for down in (False, True):
        yield Op("bitonic_sort" + ".descending" * down, tuples(TYPES), make_sort(down, False), SORT_TILES)
        yield Op("bitonic_sort%s.unsigned" % (".descending" * down), tuples(integers), make_sort(down, True),
                 SORT_TILES)
    # Five value types a key type ascending, four others in the other forms: every key type meets every value type.
    for down in (False, True):
        for unsigned_keys in (False, True):
            for unsigned_values in (False, True):
                plain = not (down or unsigned_keys or unsigned_values)
                types = [(k, TYPES[(i * 4 + j + 5 * down) % len(TYPES)]) for i, k in enumerate(TYPES)
                         for j in range(5 if plain else 4)]
                types = [(k, v) for k, v in types if (k in integers or not unsigned_keys) and
                         (v in integers or not unsigned_values)]
                name = "bitonic_sort_kv" + ".descending" * down + ".unsigned_keys" * unsigned_keys + \
                    ".unsigned_values" * unsigned_values
                yield Op(name, types, make_pairs(down, unsigned_keys, unsigned_values), SORT_TILES)
