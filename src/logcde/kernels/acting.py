"""The kernels of flows as functions that XLA calls: which exist, and under which names."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from logcde.kernels import bridge, dense_flow, flow
from logcde.kernels.bridge import ARGUMENTS, RESULTS, answers_query, batch_and_shape, data, words
from logcde.kernels.flow import WIDEST


def targets(size: int, dtype: np.dtype, exact: bool) -> tuple[str, str] | None:
    """Names of the forward and the backward function for matrices of this size, or None if XLA refuses them.

    Above `WIDEST` they take single blocks only.
    """
    return _targets(size if size <= WIDEST else 0, dtype == np.float32, exact)


@functools.cache
def _targets(size: int, single: bool, exact: bool) -> tuple[str, str] | None:
    numbers, reach = (bridge.singles, flow.SINGLE) if single else (bridge.doubles, flow.DOUBLE)
    kernels = (flow.forward(size), flow.backward(size)) if size else (dense_flow.act, dense_flow.act_back)
    kind = f"{'f32' if single else 'f64'}_{size or 'any'}_{'exact' if exact else 'euler'}"
    names = f"logcde_act_{kind}", f"logcde_act_back_{kind}"
    handlers = _forward(kernels[0], numbers, reach, exact), _backward(kernels[1], numbers, reach, exact)
    return names if all(map(bridge.register, names, handlers)) else None


def _forward(act: Callable[..., Any], numbers: Callable[..., Any], reach: np.ndarray, exact: bool) -> Any:
    @bridge.handler
    def forward(frame):
        if answers_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, size, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        matrices = carray(numbers(data(frame, ARGUMENTS, 0)), (series, intervals, size, size, blocks))
        hidden = carray(numbers(data(frame, ARGUMENTS, 1)), (series, size, blocks))
        states = carray(numbers(data(frame, RESULTS, 0)), (series, intervals, size, blocks))
        act(matrices, hidden, reach, exact, states)
        return 0

    return forward


def _backward(act_back: Callable[..., Any], numbers: Callable[..., Any], reach: np.ndarray, exact: bool) -> Any:
    @bridge.handler
    def backward(frame):
        if answers_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, size, blocks = words(shape)[0], words(shape)[1], words(shape)[3]
        matrices = carray(numbers(data(frame, ARGUMENTS, 0)), (series, intervals, size, size, blocks))
        hidden = carray(numbers(data(frame, ARGUMENTS, 1)), (series, size, blocks))
        states = carray(numbers(data(frame, ARGUMENTS, 2)), (series, intervals, size, blocks))
        cotangent = carray(numbers(data(frame, ARGUMENTS, 3)), (series, intervals, size, blocks))
        d_matrices = carray(numbers(data(frame, RESULTS, 0)), (series, intervals, size, size, blocks))
        d_hidden = carray(numbers(data(frame, RESULTS, 1)), (series, size, blocks))
        act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden)
        return 0

    return backward
