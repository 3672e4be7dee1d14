"""The kernels of `brackets` as functions that XLA calls: registers them when they are first needed."""

import functools
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from logcde.kernels import brackets, xla_ffi
from logcde.kernels._jit import inlined
from logcde.kernels.xla_ffi import (
    ARGUMENTS,
    RESULTS,
    answers_metadata_query,
    batch_and_shape,
    data,
    untyped,
    words,
)


@inlined
def pointer(frame, arrays, number):
    """The numbers of one array, without type."""
    return untyped(data(frame, arrays, number))


@inlined
def sparse_of(frame, dtype):
    """The first three arguments: log-signatures and the matrices of their letters."""
    series, shape = batch_and_shape(frame, ARGUMENTS, 0, 4)
    most, rows, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
    coordinates = words(batch_and_shape(frame, ARGUMENTS, 1, 1)[1])[0]
    intervals = words(batch_and_shape(frame, ARGUMENTS, 2, 1)[1])[0]
    letters = carray(pointer(frame, ARGUMENTS, 0), (series, most, rows, rows, blocks), dtype)
    values = carray(pointer(frame, ARGUMENTS, 1), (series, coordinates), dtype)
    counts = carray(pointer(frame, ARGUMENTS, 2), (series, intervals), np.int32)
    return brackets.Sparse(letters, values, counts)


@functools.cache
def targets(dtype: np.dtype) -> tuple[str, str, str] | None:
    """Register the forward function and those of the cotangents of letters and coordinates, and return their names.

    Returns None if XLA refuses them.
    """
    kind = np.float32 if dtype == np.float32 else np.float64
    suffix = "f32" if kind is np.float32 else "f64"
    names = tuple(f"logcde_brackets{part}_{suffix}" for part in ("", "_letters", "_values"))
    handlers = _forward(kind), _backward(kind, False), _backward(kind, True)
    return names if all(map(xla_ffi.register, names, handlers)) else None  # type: ignore


def _forward(dtype: type) -> Any:
    @xla_ffi.handler
    def forward(frame):
        if answers_metadata_query(frame):
            return 0
        sparse = sparse_of(frame, dtype)
        series, intervals = sparse.counts.shape
        _, _, rows, _, blocks = sparse.letters.shape
        out = carray(pointer(frame, RESULTS, 0), (series, intervals, rows, rows, blocks), dtype)
        brackets.combine(sparse, out)
        return 0

    return forward


def _backward(dtype: type, wanted: bool) -> Any:
    @xla_ffi.handler
    def backward(frame):
        if answers_metadata_query(frame):
            return 0
        sparse = sparse_of(frame, dtype)
        series, intervals = sparse.counts.shape
        _, most, rows, _, blocks = sparse.letters.shape
        cotangent = carray(pointer(frame, ARGUMENTS, 3), (series, intervals, rows, rows, blocks), dtype)
        # One of the two is the result, and the kernel leaves the other alone.
        found = pointer(frame, RESULTS, 0)
        d_letters = carray(found, (0 if wanted else series, most, rows, rows, blocks), dtype)
        d_values = carray(found, (series if wanted else 0, sparse.values.shape[1]), dtype)
        brackets.combine_back(sparse, cotangent, wanted, d_letters, d_values)
        return 0

    return backward
