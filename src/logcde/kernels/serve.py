"""A linear model on the host: the state of one series over a few intervals, and the prediction from it.

The flows are those of training (`flow`, `dense_flow`), in the precision of the model. A series is represented by its
state, with axes (series, row, block) as in these kernels, and for a mean over intervals also by the sum of its states
and their number, in double precision. Small blocks are one "series" of many blocks, large ones many of one block.

Entry points take plain arrays, because they are called for single predictions: see `logcde.kernels.records`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from logcde.kernels import dense_flow, flow
from logcde.kernels._jit import kernel, relaxed
from logcde.kernels.flow import WIDEST


class Server(NamedTuple):
    """The kernels for one block size."""

    advance: Callable[..., Any]
    predict: Callable[..., Any]
    predict_many: Callable[..., Any]


@relaxed
def generate(step, generators, matrix):
    """Write the matrix that a log-signature selects. Generators have axes (coordinate, entry)."""
    matrix[:] = 0
    for c in range(generators.shape[0]):
        amount, row = matrix.dtype.type(step[c]), generators[c]
        if amount != 0:  # with hundreds of channels, most coordinates are
            for entry in range(len(row)):
                matrix[entry] += amount * row[entry]


@kernel
def read(state, total, weights, sizes, out):
    """Write the prediction: affine layers with GELU in between. `weights` has each layer's columns, then its bias."""
    features = state.astype(np.float64)
    if len(total):
        features = total[:-1] / max(total[-1], 1.0)
    at = 0
    for layer in range(sizes.size - 1):
        columns, rows = sizes[layer], sizes[layer + 1]
        bias = at + columns * rows
        result = weights[bias : bias + rows].copy()
        for j in range(columns):
            x = features[j]
            for i in range(rows):
                result[i] += weights[at + j * rows + i] * x
        if layer < sizes.size - 2:
            for i in range(rows):
                x = result[i]
                result[i] = 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x * x * x)))
        features = result
        at = bias + rows
    out[:] = features


@kernel
def move(state, total, steps, generators, shape, reach, exact, size):
    """Advance state and total over intervals, in place. `size` is None if blocks are too large for `flow`."""
    series, rows, blocks = shape
    matrix = np.empty(generators.shape[1], state.dtype)
    matrices = matrix.reshape(series, 1, rows, rows, blocks)
    before, after = state.reshape(series, rows, blocks), np.empty((series, 1, rows, blocks), state.dtype)
    for n in range(steps.shape[0]):
        generate(steps[n], generators, matrix)
        if size is None:
            dense_flow.act(matrices, before, reach, exact, after)
        else:
            flow.act(matrices, before, reach, exact, after, size)
        before[:] = after[:, 0]
        if len(total):
            total[:-1] += state
            total[-1] += 1.0


@functools.cache
def server(rows: int) -> Server:
    """Kernels for blocks with this many rows; `total` is empty unless the readout is a mean over intervals."""
    size = rows if rows <= WIDEST else None

    @kernel
    def advance(state, total, steps, generators, shape, reach, exact):
        """Advance state and total over intervals, in place."""
        move(state, total, steps, generators, shape, reach, exact, size)

    @kernel
    def predict(state, total, steps, generators, shape, reach, exact, weights, sizes, out):
        """Write the prediction after a few more intervals; state and total stay as they are."""
        state, total = state.copy(), total.copy()
        move(state, total, steps, generators, shape, reach, exact, size)
        read(state, total, weights, sizes, out)

    @kernel
    def predict_many(states, totals, steps, offsets, generators, shape, reach, exact, weights, sizes, out):
        """`predict` for many series; series n has the steps `offsets[n]` to `offsets[n + 1]`."""
        for n in range(states.shape[0]):
            state, total = states[n].copy(), totals[n].copy()
            move(state, total, steps[offsets[n] : offsets[n + 1]], generators, shape, reach, exact, size)
            read(state, total, weights, sizes, out[n])

    return Server(advance, predict, predict_many)
