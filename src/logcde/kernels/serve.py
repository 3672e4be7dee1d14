"""A linear model on the host: the state of one series over a few intervals, and the prediction from it.

The flows are those of training (`flow`, `dense_flow`), in the precision of the model: `act` is the address of a C
function of `flow_ffi`. A series is represented by its state, with axes (series, row, block) as in these kernels, and
for a mean over intervals also by the sum of its states and their number, in double precision. Small blocks are one
"series" of many blocks, large ones many of one block.

Entry points take plain arrays, because they are called for single predictions: see `logcde.kernels.records`. They copy
number by number, because Numba spends seconds on assignments between arrays, most of them on the texts of errors.
"""

import numpy as np

from logcde.kernels._jit import kernel, relaxed
from logcde.kernels.flow_ffi import call


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
    features = np.empty(state.size)
    number = max(total[-1], 1.0) if len(total) else 1.0
    for i in range(state.size):
        features[i] = total[i] / number if len(total) else state[i]
    at = 0
    for layer in range(sizes.size - 1):
        columns, rows = sizes[layer], sizes[layer + 1]
        bias = at + columns * rows
        result = np.empty(rows)
        for i in range(rows):
            result[i] = weights[bias + i]
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
    for i in range(out.size):
        out[i] = features[i]


@kernel
def advance(state, total, steps, generators, shape, act, exact):
    """Advance state and total over intervals, in place; `total` is empty unless the readout is a mean over them."""
    series, rows, blocks = shape
    matrix, after = np.empty(generators.shape[1], state.dtype), np.empty(state.size, state.dtype)
    places = matrix.ctypes.data, state.ctypes.data, after.ctypes.data
    for n in range(steps.shape[0]):
        generate(steps[n], generators, matrix)
        call(act, (*places, series, 1, rows, blocks, exact))
        for i in range(state.size):
            state[i] = after[i]
        if len(total):
            for i in range(state.size):
                total[i] += state[i]
            total[-1] += 1.0


@kernel
def advance_many(states, totals, steps, offsets, generators, shape, act, exact):
    """`advance` for many series; series n has the steps `offsets[n]` to `offsets[n + 1]`."""
    for n in range(states.shape[0]):
        own = steps[offsets[n] : offsets[n + 1]]
        advance(states[n], totals[n], own, generators, shape, act, exact)


@kernel
def predict(state, total, steps, generators, shape, act, exact, weights, sizes, out):
    """Write the prediction after a few more intervals; state and total stay as they are."""
    state, total = state.copy(), total.copy()
    advance(state, total, steps, generators, shape, act, exact)
    read(state, total, weights, sizes, out)


@kernel
def predict_many(states, totals, steps, offsets, generators, shape, act, exact, weights, sizes, out):
    """`predict` for many series; series n has the steps `offsets[n]` to `offsets[n + 1]`."""
    for n in range(states.shape[0]):
        own = steps[offsets[n] : offsets[n + 1]]
        predict(states[n], totals[n], own, generators, shape, act, exact, weights, sizes, out[n])
