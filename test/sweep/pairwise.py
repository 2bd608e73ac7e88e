"""A small set of combinations in which every two values of different parameters meet."""
import itertools

import numpy as np


def cover(rows, rng):
    """Of `rows` (tuples, one place a parameter), a subset with the same pairs."""
    order = list(rows)
    rng.shuffle(order)
    if not order:
        return []
    # Each pair of two places' values is a number.
    columns = [{value: k for k, value in enumerate(dict.fromkeys(column))} for column in zip(*order)]
    codes = np.array([[column[value] for column, value in zip(columns, row)] for row in order])
    pairs, total = [], 0
    for i, j in itertools.combinations(range(len(columns)), 2):
        pairs.append(total + codes[:, i] * len(columns[j]) + codes[:, j])
        total += len(columns[i]) * len(columns[j])
    pairs = np.stack(pairs, axis=1)
    missing = np.zeros(total, bool)
    missing[pairs] = True
    chosen = []
    # Greedy in passes: first rows that bring many new pairs, at last those that bring one.
    for least in range(pairs.shape[1], 0, -1):
        for number in np.flatnonzero(missing[pairs].sum(axis=1) >= least):
            if missing[pairs[number]].sum() >= least:
                chosen.append(order[number])
                missing[pairs[number]] = False
    return chosen
