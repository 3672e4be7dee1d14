"""The kernels of `factors` as functions that XLA calls: compiled for each size of a block when they are first needed.

Arguments that several series share, such as the matrices of letters, come once: their axes of examples have size one.
"""

import functools
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from logcde.kernels import factors, xla_ffi
from logcde.kernels._block_simd import WIDE
from logcde.kernels._jit import inlined
from logcde.kernels.xla_ffi import (
    ARGUMENTS,
    RESULTS,
    answers_metadata_query,
    batch_and_shape,
    data,
    example_of,
    untyped,
    words,
)

LETTERS, AMOUNTS, MOMENTS, SPANS, NUMBERS, SIZES, COUNTS, COTANGENT = range(8)


@inlined
def row_of(frame, number, n, dtype):
    """The numbers of one argument that belong to example n of the result."""
    examples, shape = batch_and_shape(frame, ARGUMENTS, number, 1)
    whole = carray(untyped(data(frame, ARGUMENTS, number)), (examples, words(shape)[0]), dtype)
    return whole[example_of(frame, number, n, 1)]


@inlined
def steps_of(frame, n, dtype):
    """The factors of example n of the result."""
    return factors.Steps(
        row_of(frame, NUMBERS, n, np.int32),
        row_of(frame, AMOUNTS, n, dtype),
        row_of(frame, SIZES, n, np.int32),
        row_of(frame, MOMENTS, n, dtype),
        row_of(frame, COUNTS, n, np.int32),
        row_of(frame, SPANS, n, dtype),
    )


@functools.cache
def targets(size: int, dtype: np.dtype, second: bool) -> tuple[str, str] | None:
    """Register the functions for blocks of this size, forward and backward, and return their names.

    Without `second`, only sums of first order are taken. Returns None if XLA refuses the functions.
    """
    kind = np.float32 if dtype == np.float32 else np.float64
    suffix = f"{size}_{'f32' if kind is np.float32 else 'f64'}_{2 if second else 1}"
    names = f"logcde_factors_{suffix}", f"logcde_factors_back_{suffix}"
    handlers = _forward(size, kind, second), _backward(size, kind, second)
    return names if all(map(xla_ffi.register, names, handlers)) else None


def _forward(size: int, dtype: type, second: bool) -> Any:
    @xla_ffi.handler
    def forward(frame):
        if answers_metadata_query(frame):
            return 0
        tables, shape = batch_and_shape(frame, ARGUMENTS, LETTERS, 4)
        count, blocks = words(shape)[0], words(shape)[3]
        letters = carray(untyped(data(frame, ARGUMENTS, LETTERS)), (tables, count * size * size * blocks), dtype)
        series, shape = batch_and_shape(frame, RESULTS, 0, 4)
        out = carray(untyped(data(frame, RESULTS, 0)), (series, words(shape)[0] * size * size * blocks), dtype)
        lanes, present = np.zeros(-(-blocks // WIDE) * WIDE * count * size * size, dtype), -1
        for n in range(series):
            table = example_of(frame, LETTERS, n, 4)
            if table != present:
                factors.gather_letters(lanes, letters[table], count, size, blocks)
                present = table
            factors.combine(lanes, steps_of(frame, n, dtype), count, blocks, second, out[n], size)
        return 0

    return forward


def _backward(size: int, dtype: type, second: bool) -> Any:
    @xla_ffi.handler
    def backward(frame):
        if answers_metadata_query(frame):
            return 0
        tables, shape = batch_and_shape(frame, ARGUMENTS, LETTERS, 4)
        count, blocks = words(shape)[0], words(shape)[3]
        letters = carray(untyped(data(frame, ARGUMENTS, LETTERS)), (tables, count * size * size * blocks), dtype)
        examples, shape = batch_and_shape(frame, ARGUMENTS, COTANGENT, 4)
        entries = words(shape)[0] * size * size * blocks
        given = carray(untyped(data(frame, ARGUMENTS, COTANGENT)), (examples, entries), dtype)
        series, _ = batch_and_shape(frame, RESULTS, 0, 4)
        found = carray(untyped(data(frame, RESULTS, 0)), (series, count * size * size * blocks), dtype)
        lanes, present = np.zeros(-(-blocks // WIDE) * WIDE * count * size * size, dtype), -1
        slopes = np.zeros_like(lanes)
        for n in range(series):
            table = example_of(frame, LETTERS, n, 4)
            if table != present:
                factors.gather_letters(lanes, letters[table], count, size, blocks)
                present = table
            slopes[:] = 0
            cotangent = given[example_of(frame, COTANGENT, n, 4)]
            factors.combine_back(lanes, steps_of(frame, n, dtype), count, blocks, second, cotangent, slopes, size)
            factors.scatter_letters(found[n], slopes, count, size, blocks)
        return 0

    return backward
