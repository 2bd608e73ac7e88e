"""A small set of combinations in which every two values of different parameters meet."""


def cover(rows, rng):
    """Of `rows` (tuples, one place a parameter), a subset with the same pairs."""
    def pairs(row):
        return {(i, row[i], j, row[j]) for i in range(len(row)) for j in range(i)}

    order = list(rows)
    rng.shuffle(order)
    missing = set().union(*map(pairs, order)) if order else set()
    chosen = []
    # Greedy in passes: first rows that bring many new pairs, at last those that bring one.
    for least in (6, 4, 3, 2, 1):
        for row in order:
            new = pairs(row) & missing
            if len(new) >= least:
                chosen.append(row)
                missing -= new
    return chosen
