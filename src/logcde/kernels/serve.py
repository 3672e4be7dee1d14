"""A linear model on the host: the state of one series over a few intervals, and what is read of it.

Matrices of all blocks are one array (outer, column, inner): entry (i, j, k) of row i, column j, block k if the blocks
are the inner axis (`across`), otherwise entry (k, j, i). States are (outer, inner) in the same order. The inner axis is
padded with zeros to whole eights. What is kept of a series is its state, and for a mean over intervals also the sum of
its states and their number.
"""

import numpy as np

from logcde.kernels._jit import index, kernel, quick
from logcde.kernels._simd import EIGHT, dot_lanes, dot_numbers

LAST, MEAN = 0, 1
"""What is read: the last state, or the mean of all."""

REACH = 2.0
"""The norm up to which one Taylor polynomial is used."""


@kernel
def generate(step, generators, matrix):
    """The matrix that a log-signature selects. Generators are (eights of the matrix, coordinate, 8)."""
    read = generators.shape[1]
    rows = generators.reshape(-1)
    for n in range(generators.shape[0]):
        dot_numbers(
            matrix, index(n * EIGHT), rows, index(n * read * EIGHT), index(EIGHT), step, index(0), index(read), 1.0
        )


@kernel
def largest(matrix, outer, columns, inner, across, lanes):
    """The largest Frobenius norm of a block."""
    square = 0.0
    if across:
        for k in range(0, inner, EIGHT):
            dot_lanes(
                lanes, index(0), matrix, index(k), index(inner), matrix, index(k), index(outer * columns), 1.0
            )  # fmt: skip
            for n in range(EIGHT):
                square = max(square, lanes[n])
    else:
        for o in range(outer):
            square = max(square, squared(matrix, o * columns * inner, columns * inner, lanes))
    return np.sqrt(square)


@kernel
def squared(numbers, at, size, lanes):
    """The sum of squares of some numbers, whole eights of them."""
    dot_lanes(
        lanes, index(0), numbers, index(at), index(EIGHT), numbers, index(at), index(size // EIGHT), 1.0
    )  # fmt: skip
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))


@kernel
def multiply(matrix, vector, scale, outer, columns, inner, across, out):
    """out = scale * matrix @ vector, block by block."""
    for o in range(outer):
        for k in range(0, inner, EIGHT):
            target, source = index(o * inner + k), index(o * columns * inner + k)
            if across:
                dot_lanes(out, target, matrix, source, index(inner), vector, index(k), index(columns), scale)
            else:
                dot_numbers(
                    out, target, matrix, source, index(inner), vector, index(o * inner), index(columns), scale
                )  # fmt: skip


@kernel
def flow(state, step, generators, outer, columns, inner, across, exact, work):
    """Move a state over one interval: exp(A) h by Taylor polynomials that leave less than rounding, or h + A h.

    The interval is cut into as many parts as keep the norm of each below `REACH`. Beyond a norm of 10^6 not one digit
    would be right.
    """
    size = outer * inner
    term, other, lanes, matrix = work[:size], work[size : 2 * size], work[2 * size :][:EIGHT], work[2 * size + EIGHT :]
    generate(step, generators, matrix)
    parts, terms = 1, 1
    if exact:
        norm = largest(matrix, outer, columns, inner, across, lanes)
        if not norm < 1e6:
            state[:] = np.nan
            return
        parts, terms = max(1, int(np.ceil(norm / REACH))), 32
    for _ in range(parts):
        term[:] = state
        for k in range(1, terms + 1):
            multiply(matrix, term, 1.0 / (k * parts), outer, columns, inner, across, other)
            term, other = other, term
            for n in range(size):
                state[n] += term[n]
            if exact and squared(term, 0, size, lanes) <= 1e-34 * squared(state, 0, size, lanes):
                break


@kernel
def advance(kept, steps, generators, shape, across, exact, reading):
    """Move what is kept over intervals, in place."""
    outer, columns, inner = shape
    size = outer * inner
    work = np.zeros(2 * size + EIGHT + size * columns)
    for n in range(steps.shape[0]):
        flow(kept[:size], steps[n], generators, outer, columns, inner, across, exact, work)
        if reading == MEAN:
            kept[size : 2 * size] += kept[:size]
            kept[2 * size] += 1.0


@kernel
def read(kept, size, reading, weights, sizes, out):
    """The prediction: affine layers with GELU in between. `weights` has each layer's columns, then its bias."""
    features = kept[:size]
    if reading == MEAN:
        features = kept[size : 2 * size] / max(kept[2 * size], 1.0)
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


@quick
def predict(kept, steps, generators, shape, across, exact, reading, weights, sizes, out):
    """The prediction after a few more intervals; changes nothing."""
    ahead = kept.copy()
    advance(ahead, steps, generators, shape, across, exact, reading)
    read(ahead, shape[0] * shape[2], reading, weights, sizes, out)


@kernel
def predict_many(kept, steps, offsets, generators, shape, across, exact, reading, weights, sizes, out):
    """`predict` for many series; `offsets` says which of the steps are whose."""
    for n in range(kept.shape[0]):
        ahead = kept[n].copy()
        advance(ahead, steps[offsets[n] : offsets[n + 1]], generators, shape, across, exact, reading)
        read(ahead, shape[0] * shape[2], reading, weights, sizes, out[n])
