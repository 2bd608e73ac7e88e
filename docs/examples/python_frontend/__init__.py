"""A frontend in Python for kernels in Python: the body of a decorated function becomes QIR.

    from python_frontend import buffer, elements, f32, i32, kernel

    @kernel(block=256)
    def saxpy(n: i32, a: f32, x: buffer(f32, readonly=True), y: buffer(f32)):
        for i in elements(n):
            y[i] = a * x[i] + y[i]

    saxpy(n, 2.0, x, y, grid=4, device="cpu")

It is an example of how a language of one's own gets onto the compiler; README.md says how it is made and what it takes.
"""
from qdc import bf16, buffer, f16, f32, f64, i1, i8, i16, i32, i64  # noqa: F401

from . import names as _names
from .errors import FrontendError  # noqa: F401
from .kernel import Kernel, blocks, kernel  # noqa: F401
from .names import (arith, bitcast, block, block_stride, cast, elements, grid, grid_stride, math,  # noqa: F401
                    private, select, shared, static_range, subgroup, table, unroll, vector)

globals().update(_names.TOP)
