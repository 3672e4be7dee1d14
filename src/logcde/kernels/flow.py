"""Exponentials of small matrices applied along a sequence, forward and backward, without forming any of them.

The state after an interval with matrix A is exp(A) h, by the truncated Taylor series in Horner's form on h itself:
v_K = h, v_(k-1) = h + A v_k / k, with result v_0. A is first divided into equal parts of norm at most one;
x^K / (K + 1)! bounds the relative backward error for norm x, and K is the first for which this is below rounding.
Matrices have axes (series, interval, row, column, block), states (series, interval, row, block); blocks go into lanes.

The caller of both kernels, `flow_ffi`, knows `size`, the number of rows of a matrix, as a constant. The compiler
specialises the kernels to every size and unrolls all operations on a matrix.
"""

import math

import numpy as np

from logcde.kernels._block_simd import WIDE, add_outer, add_rows, affine, copy_rows, descend, largest_norm
from logcde.kernels._jit import index, inlined, merged

WIDEST = 16
"""Matrices up to this size go into lanes, one in each; larger ones are few, see `dense_flow`."""

MOST = 65_536
"""Parts that an exponential may be divided into. A larger matrix has no meaningful exponential and gives NaN."""

TERMS = 18
"""Terms of the series that double precision needs for a norm of one."""


def _reach(rounding: float) -> np.ndarray:
    """Entry k is the largest norm for which k terms are enough."""
    sizes = [(rounding * math.factorial(k + 1)) ** (1 / k) for k in range(1, TERMS + 1)]
    return np.array([0.0, *sizes])


SINGLE, DOUBLE = _reach(2.0**-24), _reach(2.0**-53)
"""The norms that each number of terms reaches, in single and in double precision."""


@inlined
def effort(norm, exact, reach):
    """The number of parts, and of terms for each; zero parts if the exponential overflows."""
    if not exact:
        return 1, 1
    if not norm <= MOST:
        return 0, 0
    parts = 1 if norm <= 1 else int(np.ceil(norm))
    x = norm / parts
    terms = 1
    while terms < TERMS and reach[terms] < x:
        terms += 1
    return parts, terms


@inlined
def gather(lanes, at, flat, start, rows, blocks, chunk):
    """Copy the lanes of one chunk of blocks from rows of `blocks` numbers; lanes without a block stay as they are."""
    low = chunk * WIDE
    if low + WIDE <= blocks:
        copy_rows(lanes, index(at), index(WIDE), flat, index(start + low), index(blocks), index(rows))
    else:
        for row in range(rows):
            for lane in range(blocks - low):
                lanes[at + row * WIDE + lane] = flat[start + row * blocks + low + lane]


@inlined
def scatter(flat, start, lanes, at, rows, blocks, chunk):
    """Copy the lanes of one chunk of blocks to rows of `blocks` numbers: the inverse of `gather`."""
    low = chunk * WIDE
    if low + WIDE <= blocks:
        copy_rows(flat, index(start + low), index(blocks), lanes, index(at), index(WIDE), index(rows))
    else:
        for row in range(rows):
            for lane in range(blocks - low):
                flat[start + row * blocks + low + lane] = lanes[at + row * WIDE + lane]


@inlined
def climb(powers, matrix, size, portion, inverse, terms):
    """Fill `powers`, which starts with v_K, with v_(K-1), ..., v_0: one part of one interval."""
    vector, right = index(size * WIDE), index(WIDE)
    for j in range(terms):
        scale = inverse[terms - j] * portion
        v = index(j) * vector
        affine(powers, v + vector, powers, index(0), matrix, index(0), vector, right, powers, v, index(size), scale)


@merged
def act(matrices, hidden, reach, exact, out, size):
    """Write the state after every interval. Unless `exact`, flows are 1 + A instead of exp(A)."""
    series, intervals, _, _, blocks = matrices.shape
    dtype = matrices.dtype
    flat, first, states = matrices.reshape(-1), hidden.reshape(-1), out.reshape(-1)
    vector, step, rows, zero = size * WIDE, index(WIDE), index(size), index(0)
    first_lane, height, entries = np.int64(0), np.int64(size), np.int64(size * size)  # one type for `gather`, `scatter`
    chunks = -(-blocks // WIDE)
    inverse = (1 / np.maximum(np.arange(TERMS + 1), 1)).astype(dtype)
    now = np.zeros(chunks * vector, dtype)
    powers, matrix = np.zeros((TERMS + 1) * vector, dtype), np.zeros(size * vector, dtype)
    for n in range(series):
        for chunk in range(chunks):
            gather(now, chunk * vector, first, n * size * blocks, height, blocks, chunk)
        for at in range(n * intervals, (n + 1) * intervals):
            for chunk in range(chunks):
                h = index(chunk * vector)
                gather(matrix, first_lane, flat, at * size * size * blocks, entries, blocks, chunk)
                norm = largest_norm(matrix, zero, index(vector), step, rows)
                parts, terms = effort(norm, exact, reach)
                portion = inverse[1] if parts < 2 else inverse[1] / dtype.type(parts)
                if parts == 0:
                    now[h : h + vector] = np.nan
                for _ in range(parts):
                    copy_rows(powers, zero, step, now, h, step, rows)
                    climb(powers, matrix, size, portion, inverse, terms)
                    copy_rows(now, h, step, powers, index(terms * vector), step, rows)
                scatter(states, at * size * blocks, now, chunk * vector, height, blocks, chunk)


@merged
def act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden, size):
    """Write the cotangents of all matrices and initial states, given those of the states after every interval."""
    series, intervals, _, _, blocks = matrices.shape
    dtype = matrices.dtype
    flat, first, after = matrices.reshape(-1), hidden.reshape(-1), states.reshape(-1)
    given, d_flat, d_first = cotangent.reshape(-1), d_matrices.reshape(-1), d_hidden.reshape(-1)
    vector, step, rows, zero = size * WIDE, index(WIDE), index(size), index(0)
    first_lane, height, entries = np.int64(0), np.int64(size), np.int64(size * size)  # one type for `gather`, `scatter`
    chunks = -(-blocks // WIDE)
    inverse = (1 / np.maximum(np.arange(TERMS + 1), 1)).astype(dtype)
    one = inverse[1]
    now, extra = np.zeros(chunks * vector, dtype), np.zeros(vector, dtype)
    powers, matrix = np.zeros((TERMS + 1) * vector, dtype), np.zeros(size * vector, dtype)
    steps, slope = np.zeros((TERMS + 1) * vector, dtype), np.zeros(size * vector, dtype)
    zeros, begins = np.zeros(size * vector, dtype), np.zeros(vector, dtype)
    for n in range(series):
        now[:] = 0
        for at in range((n + 1) * intervals - 1, n * intervals - 1, -1):
            for chunk in range(chunks):
                h = index(chunk * vector)
                gather(extra, first_lane, given, at * size * blocks, height, blocks, chunk)
                add_rows(now, h, extra, zero, rows, one)
                gather(matrix, first_lane, flat, at * size * size * blocks, entries, blocks, chunk)
                norm = largest_norm(matrix, zero, index(vector), step, rows)
                parts, terms = effort(norm, exact, reach)
                portion = one if parts < 2 else one / dtype.type(parts)
                copy_rows(slope, zero, step, zeros, zero, step, index(size * size))
                if parts == 0:
                    slope[:] = np.nan
                    now[h : h + vector] = np.nan
                if parts * vector > len(begins):
                    begins = np.zeros(parts * vector, dtype)
                if at == n * intervals:
                    gather(begins, first_lane, first, n * size * blocks, height, blocks, chunk)
                else:
                    gather(begins, first_lane, after, (at - 1) * size * blocks, height, blocks, chunk)
                for part in range(parts - 1):
                    copy_rows(powers, zero, step, begins, index(part * vector), step, rows)
                    climb(powers, matrix, size, portion, inverse, terms)
                    after_part = index((part + 1) * vector)
                    copy_rows(begins, after_part, step, powers, index(terms * vector), step, rows)
                for part in range(parts - 1, -1, -1):
                    copy_rows(powers, zero, step, begins, index(part * vector), step, rows)
                    climb(powers, matrix, size, portion, inverse, terms)
                    # In reverse: the cotangent of v_k goes to the state as it is, and to the matrix divided by k.
                    last = index((terms - 1) * vector)
                    copy_rows(steps, last, step, zeros, zero, step, rows)
                    add_rows(steps, last, now, h, rows, portion)
                    for j in range(terms - 1, -1, -1):
                        v = index(j * vector)
                        below = v - index(vector) if j > 0 else index(TERMS * vector)
                        scale = inverse[min(terms - j + 1, TERMS)] * portion
                        descend(steps, below, now, h, matrix, zero, index(vector), step, steps, v, rows, scale)
                    add_outer(slope, zero, index(vector), step, steps, zero, powers, zero, rows, index(terms))
                scatter(d_flat, at * size * size * blocks, slope, first_lane, entries, blocks, chunk)
        for chunk in range(chunks):
            scatter(d_first, n * size * blocks, now, chunk * vector, height, blocks, chunk)
