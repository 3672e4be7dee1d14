"""The matrices that sparse log-signatures of depth two select: sums over the letters that move, forward and backward.

With letters A_i of an interval, coordinates l_i and, for i < j, L_ij, which multiplies the bracket A_j A_i - A_i A_j,

    A = sum_i l_i A_i + C_i A_i - A_i C_i,   C_i = sum over j > i of L_ij A_j,

so that no bracket is formed: a pair costs one multiple of a matrix, and a letter two products. Given the cotangent D of
A, that of C_i is D A_i' - A_i' D, that of A_i is l_i D + C_i' D - D C_i' and what it gets from the C of letters before
it. Matrices have axes (row, column, block); blocks go into lanes, and matrices and vectors are as in `_block_simd`.
Products are sums of outer products, for which one of the factors is transposed.
"""

from typing import NamedTuple

import numpy as np

from logcde.kernels._block_simd import WIDE, add_outer, add_rows, copy_rows
from logcde.kernels._jit import index, kernel
from logcde.kernels.flow import gather, scatter


class Sparse(NamedTuple):
    """Sparse log-signatures of many series, and the matrices of their letters.

    Attributes:
        letters: The matrix of each letter of each interval, with axes (series, letter, row, column, block).
        values: The coordinates of each interval: letters, then pairs.
        counts: The number of letters of each interval.
    """

    letters: np.ndarray
    values: np.ndarray
    counts: np.ndarray


@kernel
def transpose(target, t, source, s, size):
    """Write the transposed matrix, in every lane."""
    step, wide = size * index(WIDE), index(WIDE)
    for row in range(size):
        copy_rows(target, t + row * wide, step, source, s + row * step, wide, size)


@kernel
def partner(c, matrices, values, at, i, n, entries):
    """Write C_i, given where the coordinates of the pairs of letter i begin."""
    wide = index(WIDE)
    c[:] = 0
    for j in range(i + index(1), n):
        amount = values[at + j - i - index(1)]
        if amount != 0:
            add_rows(c, index(0), matrices, j * entries * wide, entries, amount)


@kernel
def dot(left, right, start):
    """The sum of products of a matrix in lanes and of another one that starts at `start`."""
    total = left.dtype.type(0)
    for k in range(left.size):
        total += left[k] * right[start + index(k)]
    return total


@kernel
def combine(sparse, out):
    """Write the matrix of each interval; `out` has axes (series, interval, row, column, block)."""
    letters, counts = sparse.letters.reshape(-1), sparse.counts
    series, most, rows, _, blocks = sparse.letters.shape
    intervals, dtype, flat = counts.shape[1], sparse.letters.dtype, out.reshape(-1)
    size, wide, zero, one = index(rows), index(WIDE), index(0), index(1)
    entries = size * size
    matrices, total = np.zeros(0, dtype), np.zeros(entries * wide, dtype)
    c, c_turned, c_minus, turned = (
        np.zeros_like(total),
        np.zeros_like(total),
        np.zeros_like(total),
        np.zeros_like(total),
    )
    for s in range(series):
        values = sparse.values[s]
        first, at = 0, 0
        for q in range(intervals):
            n = index(counts[s, q])
            if n * entries * wide > matrices.size:
                matrices = np.zeros(n * entries * wide, dtype)
            for chunk in range(-(-blocks // WIDE)):
                for k in range(n):
                    start = (s * most + first + k) * rows * rows * blocks
                    gather(matrices, k * entries * wide, letters, start, rows * rows, blocks, chunk)
                total[:] = 0
                pair = index(at) + n
                for i in range(n):
                    mine = i * entries * wide
                    add_rows(total, zero, matrices, mine, entries, values[index(at) + i])
                    if size > one and i + one < n:
                        partner(c, matrices, values, pair, i, n, entries)
                        pair += n - i - one
                        transpose(c_turned, zero, c, zero, size)
                        transpose(turned, zero, matrices, mine, size)
                        c_minus[:] = 0
                        add_rows(c_minus, zero, c, zero, entries, dtype.type(-1))
                        add_outer(total, zero, size * wide, wide, c_turned, zero, matrices, mine, size, size)
                        add_outer(total, zero, size * wide, wide, turned, zero, c_minus, zero, size, size)
                scatter(flat, (s * intervals + q) * rows * rows * blocks, total, 0, rows * rows, blocks, chunk)
            first += counts[s, q]
            at += counts[s, q] * (counts[s, q] + 1) // 2


@kernel
def combine_back(sparse, cotangent, wanted, d_letters, d_values):
    """Write the cotangents of the letters or, if `wanted`, those of the coordinates, given those of the matrices."""
    letters, counts = sparse.letters.reshape(-1), sparse.counts
    series, most, rows, _, blocks = sparse.letters.shape
    intervals, dtype, given, found = (
        counts.shape[1],
        sparse.letters.dtype,
        cotangent.reshape(-1),
        d_letters.reshape(-1),
    )
    size, wide, zero, one = index(rows), index(WIDE), index(0), index(1)
    entries = size * size
    minus = dtype.type(-1)
    matrices, slopes = np.zeros(0, dtype), np.zeros(0, dtype)
    d = np.zeros(entries * wide, dtype)
    d_turned, d_minus, d_turned_minus = np.zeros_like(d), np.zeros_like(d), np.zeros_like(d)
    c, c_turned, turned, d_c = np.zeros_like(d), np.zeros_like(d), np.zeros_like(d), np.zeros_like(d)
    if wanted:
        d_values[:] = 0
    else:
        found[:] = 0
    for s in range(series):
        values = sparse.values[s]
        first, at = 0, 0
        for q in range(intervals):
            n = index(counts[s, q])
            if n * entries * wide > matrices.size:
                matrices, slopes = np.zeros(n * entries * wide, dtype), np.zeros(n * entries * wide, dtype)
            for chunk in range(-(-blocks // WIDE)):
                for k in range(n):
                    start = (s * most + first + k) * rows * rows * blocks
                    gather(matrices, k * entries * wide, letters, start, rows * rows, blocks, chunk)
                slopes[:] = 0
                d[:] = 0
                gather(d, 0, given, (s * intervals + q) * rows * rows * blocks, rows * rows, blocks, chunk)
                transpose(d_turned, zero, d, zero, size)
                d_minus[:] = 0
                add_rows(d_minus, zero, d, zero, entries, minus)
                transpose(d_turned_minus, zero, d_minus, zero, size)
                pair = index(at) + n
                for i in range(n):
                    mine = i * entries * wide
                    if wanted:
                        d_values[s, index(at) + i] += dot(d, matrices, mine)
                    else:
                        add_rows(slopes, mine, d, zero, entries, values[index(at) + i])
                    if size > one and i + one < n:
                        transpose(turned, zero, matrices, mine, size)
                        d_c[:] = 0
                        add_outer(d_c, zero, size * wide, wide, d_turned, zero, turned, zero, size, size)
                        add_outer(d_c, zero, size * wide, wide, matrices, mine, d_minus, zero, size, size)
                        if wanted:
                            for j in range(i + one, n):
                                d_values[s, pair + j - i - one] += dot(d_c, matrices, j * entries * wide)
                        else:
                            partner(c, matrices, values, pair, i, n, entries)
                            transpose(c_turned, zero, c, zero, size)
                            add_outer(slopes, mine, size * wide, wide, c, zero, d, zero, size, size)
                            add_outer(slopes, mine, size * wide, wide, d_turned_minus, zero, c_turned, zero, size, size)
                            for j in range(i + one, n):
                                amount = values[pair + j - i - one]
                                if amount != 0:
                                    add_rows(slopes, j * entries * wide, d_c, zero, entries, amount)
                        pair += n - i - one
                if not wanted:
                    for k in range(n):
                        start = (s * most + first + k) * rows * rows * blocks
                        scatter(found, start, slopes, k * entries * wide, rows * rows, blocks, chunk)
            first += counts[s, q]
            at += counts[s, q] * (counts[s, q] + 1) // 2
