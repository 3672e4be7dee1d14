"""A linear model on the host: the state of one series over a few intervals, and what is read of it.

The flows are those of training (`flow`, `dense_flow`), in the model's own precision. What is kept of a series is its
state, in the kernels' order (series, row, block), and for a mean over intervals also the sum of its states and their
number, in double precision. Small blocks are one "series" of many blocks, large ones many of one block.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from logcde.kernels import dense_flow, flow
from logcde.kernels._jit import kernel, relaxed
from logcde.kernels.flow import WIDEST


class Server(NamedTuple):
    """The kernels for one size of blocks."""

    advance: Callable[..., Any]
    predict: Callable[..., Any]
    predict_many: Callable[..., Any]


@relaxed
def generate(step, generators, matrix):
    """The matrix that a log-signature selects. Generators are (coordinate, entry)."""
    matrix[:] = 0
    for c in range(generators.shape[0]):
        amount, row = matrix.dtype.type(step[c]), generators[c]
        for entry in range(len(row)):
            matrix[entry] += amount * row[entry]


@kernel
def read(state, total, weights, sizes, out):
    """The prediction: affine layers with GELU in between. `weights` has each layer's columns, then its bias."""
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
    """Move what is kept over intervals, in place. `size` is None where blocks are too large for `flow`."""
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
    """Kernels for blocks of this many rows; `total` is empty unless a mean is read."""
    size = rows if rows <= WIDEST else None

    @kernel
    def advance(state, total, steps, generators, shape, reach, exact):
        """Move what is kept over intervals, in place."""
        move(state, total, steps, generators, shape, reach, exact, size)

    @kernel
    def predict(state, total, steps, generators, shape, reach, exact, weights, sizes, out):
        """The prediction after a few more intervals; changes nothing."""
        state, total = state.copy(), total.copy()
        move(state, total, steps, generators, shape, reach, exact, size)
        read(state, total, weights, sizes, out)

    @kernel
    def predict_many(states, totals, steps, offsets, generators, shape, reach, exact, weights, sizes, out):
        """`predict` for many series; `offsets` says which of the steps are whose."""
        for n in range(states.shape[0]):
            state, total = states[n].copy(), totals[n].copy()
            move(state, total, steps[offsets[n] : offsets[n + 1]], generators, shape, reach, exact, size)
            read(state, total, weights, sizes, out[n])

    return Server(advance, predict, predict_many)
