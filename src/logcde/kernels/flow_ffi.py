"""The flow kernels as functions that XLA calls: registers them when they are first needed, and knows their names."""

import functools
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from logcde.kernels import dense_flow, flow, xla_ffi
from logcde.kernels.flow import WIDEST
from logcde.kernels.xla_ffi import ARGUMENTS, RESULTS, answers_metadata_query, batch_and_shape, data, words


def targets(size: int, dtype: np.dtype, exact: bool) -> tuple[str, str] | None:
    """Register the forward and the backward function for matrices of this size, if need be, and return their names.

    Returns None if XLA refuses them. Above `WIDEST` they take single blocks only.
    """
    return _targets(size if size <= WIDEST else None, dtype == np.float32, exact)


@functools.cache
def _targets(size: int | None, single: bool, exact: bool) -> tuple[str, str] | None:
    dtype, reach = (np.float32, flow.SINGLE) if single else (np.float64, flow.DOUBLE)
    variant = f"{'f32' if single else 'f64'}_{size or 'any'}_{'exact' if exact else 'euler'}"
    names = f"logcde_act_{variant}", f"logcde_act_back_{variant}"
    handlers = _forward(size, dtype, reach, exact), _backward(size, dtype, reach, exact)
    return names if all(map(xla_ffi.register, names, handlers)) else None


def _forward(size: int | None, dtype: type, reach: np.ndarray, exact: bool) -> Any:
    @xla_ffi.handler
    def forward(frame):
        if answers_metadata_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, rows, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        matrices = carray(data(frame, ARGUMENTS, 0), (series, intervals, rows, rows, blocks), dtype)
        hidden = carray(data(frame, ARGUMENTS, 1), (series, rows, blocks), dtype)
        states = carray(data(frame, RESULTS, 0), (series, intervals, rows, blocks), dtype)
        if size is None:
            dense_flow.act(matrices, hidden, reach, exact, states)
        else:
            flow.act(matrices, hidden, reach, exact, states, size)
        return 0

    return forward


def _backward(size: int | None, dtype: type, reach: np.ndarray, exact: bool) -> Any:
    @xla_ffi.handler
    def backward(frame):
        if answers_metadata_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, rows, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        matrices = carray(data(frame, ARGUMENTS, 0), (series, intervals, rows, rows, blocks), dtype)
        hidden = carray(data(frame, ARGUMENTS, 1), (series, rows, blocks), dtype)
        states = carray(data(frame, ARGUMENTS, 2), (series, intervals, rows, blocks), dtype)
        cotangent = carray(data(frame, ARGUMENTS, 3), (series, intervals, rows, blocks), dtype)
        d_matrices = carray(data(frame, RESULTS, 0), (series, intervals, rows, rows, blocks), dtype)
        d_hidden = carray(data(frame, RESULTS, 1), (series, rows, blocks), dtype)
        if size is None:
            dense_flow.act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden)
        else:
            flow.act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden, size)
        return 0

    return backward
