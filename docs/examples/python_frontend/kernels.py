"""Kernels in Python: the examples of the frontend."""
import math

from . import (block, block_stride, buffer, elements, f32, grid_stride, i8, i32, i64, kernel, shared, static_range,
               subgroup)
from . import atomic_rmw, atomic_store, atomic_load, block_id, thread_id, thread_index, cast


@kernel(block=256)
def saxpy(n: i32, a: f32, x: buffer(f32, readonly=True), y: buffer(f32)):
    """y = a x + y, one element a thread."""
    for i in elements(n):
        y[i] = a * x[i] + y[i]


@kernel(block=256)
def histogram(x: buffer(i8, readonly=True), bins: buffer(i32)):
    """How often each byte occurs: a block counts in shared memory, and adds what it has found to the whole once."""
    counts = shared(i32, 256)
    t = thread_id("x")
    counts[t] = 0
    block.sync()
    for i in grid_stride(x.size()):
        atomic_rmw("add", 1, counts, cast(x[i], i32, unsigned=True))
    block.sync()
    if counts[t] != 0:
        bins.atomic("add", counts[t], t)


SCAN_BLOCK = 128
OWN, WHOLE = 1 << 32, 2 << 32  # what a block's state says: its own sum, or the sum up to its end


@kernel(block=SCAN_BLOCK)
def scan(n: i32, x: buffer(i32, readonly=True), y: buffer(i32), ticket: buffer(i32), states: buffer(i64)):
    """The sums of all values up to each, in one pass: a block adds up its part, publishes the sum, and looks back until a
    block before it knows the sum of all before. Blocks number themselves by a ticket; ticket and states begin as 0."""
    number, before = shared(i32, 1), shared(i32, 1)
    t = thread_id("x")
    if t == 0:
        number[0] = ticket.atomic("add", 1, 0)
    block.sync()
    b = number[0]
    i = b * SCAN_BLOCK + t
    v = 0
    if i < n:
        v = x[i]
    here = block.inclusive_scan("add", v)
    if t == SCAN_BLOCK - 1:
        found = 0
        if b == 0:
            atomic_store(WHOLE | cast(here, i64, unsigned=True), states, 0)
        else:
            atomic_store(OWN | cast(here, i64, unsigned=True), states, b)
            previous = b - 1
            while True:
                state = atomic_load(states, previous)
                if state >= OWN:
                    found += i32(state)
                    if state >= WHOLE:
                        break
                    previous -= 1
            atomic_store(WHOLE | cast(found + here, i64, unsigned=True), states, b)
        before[0] = found
    block.sync()
    if i < n:
        y[i] = before[0] + here


def maximum(a, b):
    return max(a, b)


@kernel(block=128)
def softmax(x: buffer(f32, 2, readonly=True), y: buffer(f32, 2)):
    """Of each row, with a block a row."""
    row, columns = block_id("x"), x.size(1)
    most = -math.inf
    for c in block_stride(columns):
        most = max(most, x[row, c])
    most = block.reduce_all(maximum, most)  # by a function; block.reduce_all("maxnumf", most) is the same
    total = 0.0
    for c in block_stride(columns):
        e = math.exp(x[row, c] - most)
        y[row, c] = e
        total += e
    total = block.reduce_all("add", total)
    for c in block_stride(columns):
        y[row, c] = y[row, c] / total


def matmul(tile):
    """A kernel for tiles of a size: what a function captures is a constant of the kernel."""
    @kernel(block=(tile, tile))
    def multiply(a: buffer(f32, 2, readonly=True, noalias=True), b: buffer(f32, 2, readonly=True, noalias=True),
                 c: buffer(f32, 2, noalias=True)):
        rows, inner, columns = a.size(0), a.size(1), b.size(1)
        tile_a, tile_b = shared(f32, (tile, tile)), shared(f32, (tile, tile))
        tx, ty = thread_id("x"), thread_id("y")
        column, row = block_id("x") * tile + tx, block_id("y") * tile + ty
        total = 0.0
        for k in range(0, inner, tile):
            tile_a[ty, tx] = a[row, k + tx] if row < rows and k + tx < inner else 0.0
            tile_b[ty, tx] = b[k + ty, column] if k + ty < inner and column < columns else 0.0
            block.sync()
            for i in static_range(tile):
                total += tile_a[ty, i] * tile_b[i, tx]
            block.sync()
        if row < rows and column < columns:
            c[row, column] = total
    return multiply


@kernel(block=128)
def sort(keys: buffer(i32), values: buffer(f32)):
    """A block sorts 512 pairs by their keys, stably: each thread holds four of them."""
    first = block_id("x") * 512 + thread_index() * 4
    k = tuple(keys[first + j] for j in static_range(4))
    v = tuple(values[first + j] for j in static_range(4))
    ordered = block.radix_sort(*k, values=v)
    for j in static_range(4):
        keys[first + j] = ordered[j]
        values[first + j] = ordered[4 + j]


@kernel(block=32)
def argmin(x: buffer(f32, readonly=True), at: buffer(i32)):
    """Where the least of each 32 values stands; of equal ones the first."""
    i = block_id("x") * 32 + thread_index()

    def less(a, b):
        return b if b[0] < a[0] else a

    least, place = subgroup.reduce_all(less, x[i], i, tile=32)
    if subgroup.elect(tile=32):
        at[block_id("x")] = place
