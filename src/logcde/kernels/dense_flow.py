"""The kernels of `flow` for a few large matrices: one block at a time, with the entries of a row in vector registers.

The method is the same, and so are the arrays, with a single block. Sums over a row may be taken in any order.
"""

import numpy as np

from logcde.kernels._jit import relaxed
from logcde.kernels.flow import TERMS, effort


@relaxed
def norm_of(matrix):
    """The infinity norm; infinite or NaN if an entry is."""
    largest = matrix.dtype.type(0)
    for r in range(len(matrix)):
        total = matrix.dtype.type(0)
        for c in range(len(matrix)):
            total += abs(matrix[r, c])
        if not total <= largest:
            largest = total
    return largest


@relaxed
def climb(powers, matrix, portion, terms):
    """Fill the rows of `powers`, of which the first is v_K, with v_(K-1), ..., v_0: one part of one interval."""
    for j in range(terms):
        scale = portion / matrix.dtype.type(terms - j)
        for r in range(len(matrix)):
            total = matrix.dtype.type(0)
            for c in range(len(matrix)):
                total += matrix[r, c] * powers[j, c]
            powers[j + 1, r] = powers[0, r] + scale * total


@relaxed
def descend(target, matrix, source):
    """target = transposed matrix @ source."""
    target[:] = 0
    for r in range(len(matrix)):
        row, amount = matrix[r], source[r]
        for c in range(len(row)):
            target[c] += row[c] * amount


@relaxed
def add_outer(matrix, left, right):
    """matrix[r, c] += sum over k of left[k, r] * right[k, c]."""
    for r in range(len(matrix)):
        row = matrix[r]
        for k in range(len(left)):
            amount, other = left[k, r], right[k]
            for c in range(len(row)):
                row[c] += amount * other[c]


@relaxed
def act(matrices, hidden, reach, exact, out):
    """Write the state after every interval. Unless `exact`, flows are 1 + A instead of exp(A)."""
    series, intervals, size, _, _ = matrices.shape
    dtype = matrices.dtype
    whole = matrices.reshape(series, intervals, size, size)
    first, states = hidden.reshape(series, size), out.reshape(series, intervals, size)
    powers = np.zeros((TERMS + 1, size), dtype)
    for n in range(series):
        now = first[n]
        for interval in range(intervals):
            matrix = whole[n, interval]
            parts, terms = effort(norm_of(matrix), exact, reach)
            powers[0] = now
            if not parts:
                powers[0] = np.nan
            for _ in range(parts):
                climb(powers, matrix, dtype.type(1) / dtype.type(parts), terms)
                powers[0] = powers[terms]
            now = states[n, interval]
            now[:] = powers[0]


@relaxed
def act_back(matrices, hidden, states, cotangent, reach, exact, d_matrices, d_hidden):
    """Write the cotangents of all matrices and initial states, given those of the states after every interval."""
    series, intervals, size, _, _ = matrices.shape
    dtype = matrices.dtype
    squares, rows = (series, intervals, size, size), (series, intervals, size)
    whole, d_whole = matrices.reshape(squares), d_matrices.reshape(squares)
    after, given = states.reshape(rows), cotangent.reshape(rows)
    first, d_first = hidden.reshape(series, size), d_hidden.reshape(series, size)
    powers, scaled, below = np.zeros((TERMS + 1, size), dtype), np.zeros((TERMS, size), dtype), np.zeros(size, dtype)
    begins = np.zeros((1, size), dtype)
    for n in range(series):
        now = d_first[n]
        now[:] = 0
        for interval in range(intervals - 1, -1, -1):
            matrix, slope = whole[n, interval], d_whole[n, interval]
            now += given[n, interval]
            parts, terms = effort(norm_of(matrix), exact, reach)
            slope[:] = 0
            if not parts:
                slope[:], now[:] = np.nan, np.nan
            portion = dtype.type(1) / dtype.type(max(parts, 1))
            if parts > len(begins):
                begins = np.zeros((parts, size), dtype)
            begins[0] = after[n, interval - 1] if interval else first[n]
            for part in range(parts - 1):
                powers[0] = begins[part]
                climb(powers, matrix, portion, terms)
                begins[part + 1] = powers[terms]
            for part in range(parts - 1, -1, -1):
                powers[0] = begins[part]
                climb(powers, matrix, portion, terms)
                below[:] = now
                for j in range(terms - 1, -1, -1):
                    scaled[j] = below * (portion / dtype.type(terms - j))
                    descend(below, matrix, scaled[j])
                    now += below
                add_outer(slope, scaled[:terms], powers)
