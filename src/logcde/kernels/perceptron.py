"""A perceptron row by row, in single precision: an answer does not depend on the other rows."""

import numpy as np

from logcde.kernels._jit import inlined, kernel

ONE = np.float32(1.0)


@inlined
def add_product(row, weight, out):
    """Add a row times a matrix; entries that are 0 cost nothing."""
    for i in range(len(row)):
        x = row[i]
        if x != 0:
            for k in range(len(out)):
                out[k] += x * weight[i, k]


@inlined
def silu(x):
    """The activation: x times its logistic function."""
    return x / (ONE + np.exp(-x))


@kernel
def encode(first, last, rows, weight, out):
    """Products of rows with the first layer's weights."""
    for row in range(first, last):
        out[row, :] = 0.0
        add_product(rows[row], weight, out[row])


@kernel
def answer(
    first, last, encoded, place, rows, weight, scale, shift, second, second_scale, second_shift, third, bias, end, out
):
    """Outputs for one target: `encoded` has what is read of all channels, `rows` what is read for each question."""
    width = encoded.shape[1]
    hidden, inner = np.empty(width, np.float32), np.empty(width, np.float32)
    outer = np.empty(third.shape[1], np.float32)
    for question in range(first, last):
        hidden[:] = encoded[place[question]]
        add_product(rows[question], weight, hidden)
        for k in range(width):
            hidden[k] = silu(hidden[k] * scale[k] + shift[k])
        inner[:] = 0.0
        add_product(hidden, second, inner)
        for k in range(width):
            hidden[k] += silu(inner[k] * second_scale[k] + second_shift[k])
        outer[:] = bias
        add_product(hidden, third, outer)
        total = 0.0
        for k in range(len(outer)):
            total += silu(outer[k]) * end[k]
        out[question] = total
