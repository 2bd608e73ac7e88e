"""How the threads of a launch fall into subgroups and tiles, and the shapes of blocks that the sweep uses."""
import numpy as np

GRID = 3  # blocks
ODD = (1, 0, 1)  # in the place of a block's shape: 1 x N x 1, any odd N


class Layout:
    """`tile` 0 is the whole subgroup. A matrix has a row a tile and a column a lane; lanes that do not exist, at the
    ends of rows, hold anything."""

    def __init__(self, size, tile, dims):
        self.size, self.tile, self.dims = size, tile, dims
        self.block = dims[0] * dims[1] * dims[2]
        self.lanes = tile or size
        self.total = GRID * self.block
        rows = -(-self.block // self.lanes)
        within = np.arange(rows * self.lanes).reshape(rows, self.lanes)
        self.exists = np.tile(within < self.block, (GRID, 1))
        starts = np.repeat(np.arange(GRID) * self.block, rows)[:, None]
        self.index = np.where(self.exists, starts + np.tile(within, (GRID, 1)), 0)
        self.count = self.exists.sum(axis=1)

    def matrix(self, flat):
        return np.asarray(flat)[self.index]

    def flat(self, matrix):
        return np.broadcast_to(matrix, self.exists.shape)[self.exists]

    def lane(self):
        """Each thread's lane in its tile."""
        return self.flat(np.arange(self.lanes)[None, :])

    def of_block(self, pieces):
        """One array a block, one after another."""
        return np.concatenate([np.asarray(p)[:self.block] for p in pieces])


class BlockLayout(Layout):
    """The block is one tile."""

    def __init__(self, size, dims):
        super().__init__(size, dims[0] * dims[1] * dims[2], dims)
        self.tile = 0


def factors(block):
    """Three extents, none 1 where that is possible."""
    x = next(d for d in (3, 2, 5, 7, block) if block % d == 0)
    y = next(d for d in (2, 3, 5, 7, block // x) if block // x % d == 0)
    return (x, block // x // y, y)


def shapes(size, tile):
    """Blocks of whole subgroups and tiles, and others: partial last subgroups, one tile alone, less than a
    subgroup; 1-D to 3-D. Never with a tile across the block's end."""
    lanes = tile or size
    whole = max(2 * lanes, 2 * size)
    if tile == 0:
        ragged = [(size + size // 2 + 1, 1, 1), factors(size + size // 2), (size // 2 + 1, 1, 1), (size - 1, 1, 1)]
    elif tile < size:
        ragged = [(size + tile, 1, 1), factors(2 * size + tile), (tile, 1, 1)]
    else:
        ragged = [(tile, 1, 1), factors(3 * tile)]
    if whole > 1024:
        whole = 1024
    wholes = [(whole, 1, 1), (whole // 4, 4, 1)]
    fits = lambda dims: dims[0] * dims[1] * dims[2] <= 1024 and dims[2] <= 64
    return list(filter(fits, wholes)), [dims for dims in ragged if fits(dims) and dims not in wholes]


def choose(size, tile, is_ragged, turn):
    """The turn-th of the shapes, or None where there is none. Ops of the block have shapes in the place of tiles."""
    if tile == ODD:
        return None if is_ragged else BlockLayout(size, (1, turn % 512 * 2 + 1, 1))
    if isinstance(tile, tuple):
        return None if is_ragged else BlockLayout(size, tile)
    options = shapes(size, tile)[is_ragged]
    if tile > 1024 or not options:
        return None
    return Layout(size, tile, options[turn % len(options)])
