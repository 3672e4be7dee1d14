"""The kernels of `flow` as functions that XLA calls: which exist, and under which names."""

import functools

import numpy as np
from numba import carray

from logcde.kernels import bridge, flow
from logcde.kernels.bridge import ARGUMENTS, RESULTS, answers_query, batch_and_shape, data, words


@functools.cache
def targets(size: int, dtype: np.dtype, exact: bool) -> tuple[str, str] | None:
    """Names of the forward and the backward function for matrices of this size, or None if XLA refuses them."""
    single = dtype == np.float32
    numbers, reach = (bridge.singles, flow.SINGLE) if single else (bridge.doubles, flow.DOUBLE)
    act, act_back = flow.forward(size), flow.backward(size)

    @bridge.handler
    def forward(frame):
        if answers_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, blocks = words(shape)[0], words(shape)[3]
        matrices = carray(numbers(data(frame, ARGUMENTS, 0)), (series, intervals, size, size, blocks))
        hidden = carray(numbers(data(frame, ARGUMENTS, 1)), (series, size, blocks))
        states = carray(numbers(data(frame, RESULTS, 0)), (series, intervals, size, blocks))
        act(matrices, hidden, reach, exact, states)
        return 0

    @bridge.handler
    def backward(frame):
        if answers_query(frame):
            return 0
        series, shape = batch_and_shape(frame, 0, 4)
        intervals, blocks = words(shape)[0], words(shape)[3]
        matrices = carray(numbers(data(frame, ARGUMENTS, 0)), (series, intervals, size, size, blocks))
        hidden = carray(numbers(data(frame, ARGUMENTS, 1)), (series, size, blocks))
        states = carray(numbers(data(frame, ARGUMENTS, 2)), (series, intervals, size, blocks))
        cotangent = carray(numbers(data(frame, ARGUMENTS, 3)), (series, intervals, size, blocks))
        d_matrices = carray(numbers(data(frame, RESULTS, 0)), (series, intervals, size, size, blocks))
        d_hidden = carray(numbers(data(frame, RESULTS, 1)), (series, size, blocks))
        act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden)
        return 0

    kind = f"{'f32' if single else 'f64'}_{size}_{'exact' if exact else 'euler'}"
    names = f"logcde_act_{kind}", f"logcde_act_back_{kind}"
    if bridge.register(names[0], forward) and bridge.register(names[1], backward):
        return names
    return None
