#!/usr/bin/env python3
"""Whether --no-subnormals leaves no subnormals of its types among what the sweep's ops of single threads take and give,
and without it there are some.

usage: subnormals.py [--venv FOLDER]
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import with_numpy  # noqa: E402

with_numpy.ensure()
import numpy as np  # noqa: E402
import cases  # noqa: E402
import scalars  # noqa: E402

TYPES = ("bf16", "f32")


def has_subnormals(made):
    """Of a case: among its inputs or what it must compute. Inputs of atomics are storage, as is what is compared by
    bits."""
    arrays = [(type, values) for _, type, values in made.inputs] + [(o.type, o.expected) for o in made.outputs]
    for type, values in arrays:
        if type not in TYPES:
            continue
        if values.dtype != scalars.working(type):
            values = scalars.from_storage(type, values)
        if np.any((values != 0) & (np.abs(values) < 2.0 ** scalars.FORMATS[type][1])):
            return True
    return False


def count():
    # Exchanges by comparison move bits and compute nothing.
    made = [row[2] for make in (cases.elementwise_cases, cases.atomic_cases) for row in make(1)
            if row[0] != "atomic_cas"]
    return sum(map(has_subnormals, made)), len(made)


def main():
    with np.errstate(all="ignore"):
        before, total = count()
        cases.elementwise_cases.cache_clear()
        cases.atomic_cases.cache_clear()
        scalars.without_subnormals.update(TYPES)
        after, still = count()
    print("%d of %d cases have subnormals, with --no-subnormals %d of %d" % (before, total, after, still))
    return 0 if before and not after and total == still else 1


if __name__ == "__main__":
    sys.exit(main())
