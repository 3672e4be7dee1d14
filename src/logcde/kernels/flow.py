"""Exponentials of small matrices applied along a sequence, forward and backward, without forming one.

The state after an interval with matrix A is exp(A) h, by the truncated Taylor series in Horner's form on h itself:
v_K = h, v_(k-1) = h + A v_k / k, result v_0. A is first divided into equal parts of norm at most one; x^K / (K + 1)!
bounds the relative backward error for norm x, and K is the first for which that is below rounding. Matrices are
(series, interval, row, column, block), states (series, interval, row, block), blocks side by side in lanes.

Both kernels are called by others that know `size`, the rows of a matrix, as a constant: the compiler then makes one of
each for every size, with all that is done to a matrix unrolled.
"""

import math

import numpy as np

from logcde.kernels._block_simd import WIDE, add_outer, add_rows, affine, copy_rows, descend, largest_norm
from logcde.kernels._jit import index, inlined, kernel

WIDEST = 16
"""Up to this size matrices go side by side in lanes; above it there are few of them: see `dense_flow`."""

MOST = 65_536
"""Parts that an exponential may be divided into. A larger matrix has no meaningful one, and gives NaN."""

TERMS = 18
"""What double precision needs for a norm of one."""


def _reach(rounding: float) -> np.ndarray:
    """The largest norm for which k terms are enough, at place k."""
    sizes = [(rounding * math.factorial(k + 1)) ** (1 / k) for k in range(1, TERMS + 1)]
    return np.array([0.0, *sizes])


SINGLE, DOUBLE = _reach(2.0**-24), _reach(2.0**-53)


@inlined
def effort(norm, exact, reach):
    """How many parts, and how many terms for each; no part if there is no exponential."""
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
def gather(room, at, flat, start, rows, blocks, chunk):
    """Copy the lanes of one chunk of blocks from rows of `blocks` numbers, zero where there is no block."""
    low = chunk * WIDE
    if low + WIDE <= blocks:
        copy_rows(room, index(at), index(WIDE), flat, index(start + low), index(blocks), index(rows))
    else:
        for row in range(rows):
            for lane in range(blocks - low):
                room[at + row * WIDE + lane] = flat[start + row * blocks + low + lane]


@inlined
def scatter(flat, start, room, at, rows, blocks, chunk):
    """The way back."""
    low = chunk * WIDE
    if low + WIDE <= blocks:
        copy_rows(flat, index(start + low), index(blocks), room, index(at), index(WIDE), index(rows))
    else:
        for row in range(rows):
            for lane in range(blocks - low):
                flat[start + row * blocks + low + lane] = room[at + row * WIDE + lane]


@inlined
def climb(room, matrix, size, portion, inverse, terms):
    """Fill `room` with v_K, ..., v_0, one after another, where it begins with v_K: one part of one interval."""
    vector, right = index(size * WIDE), index(WIDE)
    for j in range(terms):
        scale = inverse[terms - j] * portion
        v = index(j) * vector
        affine(room, v + vector, room, index(0), matrix, index(0), vector, right, room, v, index(size), scale)


@kernel
def act(matrices, hidden, reach, exact, out, size):
    """Write the state after every interval. Without `exact`, flows are 1 + A."""
    series, intervals, _, _, blocks = matrices.shape
    kind = matrices.dtype
    flat, first, states = matrices.reshape(-1), hidden.reshape(-1), out.reshape(-1)
    vector, step, rows, zero = size * WIDE, index(WIDE), index(size), index(0)
    chunks = -(-blocks // WIDE)
    inverse = (1 / np.maximum(np.arange(TERMS + 1), 1)).astype(kind)
    now = np.zeros(chunks * vector, kind)
    room, matrix = np.zeros((TERMS + 1) * vector, kind), np.zeros(size * vector, kind)
    for n in range(series):
        for chunk in range(chunks):
            gather(now, chunk * vector, first, n * size * blocks, size, blocks, chunk)
        for at in range(n * intervals, (n + 1) * intervals):
            for chunk in range(chunks):
                h = index(chunk * vector)
                gather(matrix, 0, flat, at * size * size * blocks, size * size, blocks, chunk)
                norm = largest_norm(matrix, zero, index(vector), step, rows)
                parts, terms = effort(norm, exact, reach)
                portion = inverse[1] if parts < 2 else inverse[1] / kind.type(parts)
                if parts == 0:
                    now[h : h + vector] = np.nan
                for _ in range(parts):
                    copy_rows(room, zero, step, now, h, step, rows)
                    climb(room, matrix, size, portion, inverse, terms)
                    copy_rows(now, h, step, room, index(terms * vector), step, rows)
                scatter(states, at * size * blocks, now, h, size, blocks, chunk)


@kernel
def act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden, size):
    """Write the derivatives by all matrices and first states, from those by the states after every interval."""
    series, intervals, _, _, blocks = matrices.shape
    kind = matrices.dtype
    flat, first, after = matrices.reshape(-1), hidden.reshape(-1), states.reshape(-1)
    given, d_flat, d_first = cotangent.reshape(-1), d_matrices.reshape(-1), d_hidden.reshape(-1)
    vector, step, rows, zero = size * WIDE, index(WIDE), index(size), index(0)
    chunks = -(-blocks // WIDE)
    inverse = (1 / np.maximum(np.arange(TERMS + 1), 1)).astype(kind)
    one = inverse[1]
    now, extra = np.zeros(chunks * vector, kind), np.zeros(vector, kind)
    room, matrix = np.zeros((TERMS + 1) * vector, kind), np.zeros(size * vector, kind)
    steps, slope = np.zeros((TERMS + 1) * vector, kind), np.zeros(size * vector, kind)
    zeros, begins = np.zeros(size * vector, kind), np.zeros(vector, kind)
    for n in range(series):
        now[:] = 0
        for at in range((n + 1) * intervals - 1, n * intervals - 1, -1):
            for chunk in range(chunks):
                h = index(chunk * vector)
                gather(extra, 0, given, at * size * blocks, size, blocks, chunk)
                add_rows(now, h, extra, zero, rows, one)
                gather(matrix, 0, flat, at * size * size * blocks, size * size, blocks, chunk)
                norm = largest_norm(matrix, zero, index(vector), step, rows)
                parts, terms = effort(norm, exact, reach)
                portion = one if parts < 2 else one / kind.type(parts)
                copy_rows(slope, zero, step, zeros, zero, step, index(size * size))
                if parts == 0:
                    slope[:] = np.nan
                    now[h : h + vector] = np.nan
                if parts * vector > len(begins):
                    begins = np.zeros(parts * vector, kind)
                if at == n * intervals:
                    gather(begins, 0, first, n * size * blocks, size, blocks, chunk)
                else:
                    gather(begins, 0, after, (at - 1) * size * blocks, size, blocks, chunk)
                for part in range(parts - 1):
                    copy_rows(room, zero, step, begins, index(part * vector), step, rows)
                    climb(room, matrix, size, portion, inverse, terms)
                    after_part = index((part + 1) * vector)
                    copy_rows(begins, after_part, step, room, index(terms * vector), step, rows)
                for part in range(parts - 1, -1, -1):
                    copy_rows(room, zero, step, begins, index(part * vector), step, rows)
                    climb(room, matrix, size, portion, inverse, terms)
                    # Down again: the derivative by v_k goes to the state as it is, to the matrix divided by k.
                    last = index((terms - 1) * vector)
                    copy_rows(steps, last, step, zeros, zero, step, rows)
                    add_rows(steps, last, now, h, rows, portion)
                    for j in range(terms - 1, -1, -1):
                        v = index(j * vector)
                        below = v - index(vector) if j > 0 else index(TERMS * vector)
                        scale = inverse[min(terms - j + 1, TERMS)] * portion
                        descend(steps, below, now, h, matrix, zero, index(vector), step, steps, v, rows, scale)
                    add_outer(slope, zero, index(vector), step, steps, zero, room, zero, rows, index(terms))
                scatter(d_flat, at * size * size * blocks, slope, 0, size * size, blocks, chunk)
        for chunk in range(chunks):
            scatter(d_first, n * size * blocks, now, chunk * vector, size, blocks, chunk)
