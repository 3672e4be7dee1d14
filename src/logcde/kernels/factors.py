"""The matrices of intervals at depth one and two from their factors: no coordinate and no pair of letters is formed.

With D_e the matrix of event e, E_e the sum of those before it in its interval, T and A the span and the matrix of time,
and w_e the time before the event less the time after it, the matrix of an interval is

    M = sum_e D_e + T A + 1/2 sum_e (D_e E_e - E_e D_e) + 1/2 (W A - A W),   W = sum_e w_e D_e.

That is linear in the number of events. Given the cotangent G of M, that of D_e is G + 1/2 (G R' - R' G) with
R = 2 E_e + D_e - sum_e D_e + w_e A, and that of A is T G + 1/2 (W' G - G W'). An entry adds its share of D_e to the
cotangent of its letter.

Matrices have axes (row, column, block); blocks go into lanes, and matrices and vectors are as in `_block_simd`, whose
products are sums of outer products, for which one of the factors is transposed. The caller, `factors_ffi`, knows `size`
as a constant.
"""

from typing import NamedTuple

import numpy as np

from logcde.kernels._block_simd import (
    WIDE,
    add_commutator,
    add_rows,
    add_selected,
    add_to_selected,
    copy_rows,
)
from logcde.kernels._jit import index, inlined, merged
from logcde.kernels.flow import gather, scatter


class Steps(NamedTuple):
    """The factors of one series, interval by interval: see `logcde.embedding.factor_steps.FactorSteps`.

    Attributes:
        letters: The letter of each entry.
        amounts: How far each entry moves its letter.
        sizes: The number of entries of each factor.
        moments: For each factor, the time before it less the time after it, in its interval.
        counts: The number of factors of each interval.
        spans: How far time, the last letter, moves in each interval besides.
    """

    letters: np.ndarray
    amounts: np.ndarray
    sizes: np.ndarray
    moments: np.ndarray
    counts: np.ndarray
    spans: np.ndarray


@inlined
def clear(lanes, entries):
    """Write zeros."""
    for k in range(entries * WIDE):
        lanes[index(k)] = 0


@inlined
def commute(total, left, right, r, turned, size, scale):
    """total += scale * (left @ right - right @ left), in every lane, with the right one transposed if `turned`."""
    zero, step, wide = index(0), index(size * WIDE), index(WIDE)
    down, along = (wide, step) if turned else (step, wide)
    add_commutator(total, zero, left, zero, step, wide, right, r, down, along, index(size), scale)


@merged
def gather_letters(lanes, letters, count, size, blocks):
    """Copy the matrices of letters into lanes: chunks of blocks, letters, rows, columns."""
    entries = np.int64(size * size)
    for chunk in range(-(-blocks // WIDE)):
        gather(lanes, chunk * count * entries * WIDE, letters, 0, count * entries, blocks, chunk)


@merged
def scatter_letters(letters, lanes, count, size, blocks):
    """Copy the matrices of letters from lanes: the inverse of `gather_letters`."""
    entries = np.int64(size * size)
    for chunk in range(-(-blocks // WIDE)):
        scatter(letters, 0, lanes, chunk * count * entries * WIDE, count * entries, blocks, chunk)


@merged
def combine(letters, steps, count, blocks, second, out, size):
    """Write the matrix of each interval of one series, given those of `count` letters in lanes."""
    zero, entries, first_lane = index(0), np.int64(size * size), np.int64(0)
    rows = index(size * size)
    stride = rows * index(WIDE)
    dtype = letters.dtype
    half, one = dtype.type(0.5), dtype.type(1)
    total = np.zeros(entries * WIDE, dtype)
    d = np.zeros(entries * WIDE, dtype)
    before = np.zeros(entries * WIDE, dtype)
    w = np.zeros(entries * WIDE, dtype)
    for chunk in range(-(-blocks // WIDE)):
        first = index(chunk * count) * stride
        clock = first + index(count - 1) * stride
        factor, entry = index(0), index(0)
        for q in range(len(steps.counts)):
            clear(total, entries)
            clear(before, entries)
            clear(w, entries)
            n, span = steps.counts[q], steps.spans[q]
            for number in range(n):
                last = entry + index(steps.sizes[factor])
                clear(d, entries)
                add_selected(d, zero, letters, first, stride, steps.letters, steps.amounts, entry, last, rows)
                entry = last
                if second and size > 1:
                    if number > 0:
                        commute(total, d, before, zero, False, size, half)
                    if span != 0:
                        add_rows(w, zero, d, zero, rows, steps.moments[factor])
                add_rows(before, zero, d, zero, rows, one)
                factor += index(1)
            add_rows(total, zero, before, zero, rows, one)
            if span != 0:
                add_rows(total, zero, letters, clock, rows, span)
                if second and size > 1 and n > 0:
                    commute(total, w, letters, clock, False, size, half)
            scatter(out, q * entries * blocks, total, first_lane, entries, blocks, chunk)


@merged
def combine_back(letters, steps, count, blocks, second, cotangent, d_letters, size):
    """Add the cotangents of the matrices of letters, in lanes, given those of the matrices of one series."""
    zero, entries, first_lane = index(0), np.int64(size * size), np.int64(0)
    rows = index(size * size)
    stride = rows * index(WIDE)
    dtype = letters.dtype
    half, one = dtype.type(0.5), dtype.type(1)
    g = np.zeros(entries * WIDE, dtype)
    slope = np.zeros(entries * WIDE, dtype)
    other = np.zeros(entries * WIDE, dtype)
    r = np.zeros(entries * WIDE, dtype)
    w = np.zeros(entries * WIDE, dtype)
    each = np.zeros(entries * WIDE, dtype)
    for chunk in range(-(-blocks // WIDE)):
        first = index(chunk * count) * stride
        clock = first + index(count - 1) * stride
        factor, entry = index(0), index(0)
        for q in range(len(steps.counts)):
            n, span = steps.counts[q], steps.spans[q]
            gather(g, first_lane, cotangent, q * entries * blocks, entries, blocks, chunk)
            if n * entries * WIDE > len(each):
                each = np.zeros(n * entries * WIDE, dtype)
            each[: n * entries * WIDE] = 0
            clear(other, entries)  # what is before a factor, less what comes after it
            clear(w, entries)
            begin = entry
            for number in range(n):
                d = index(number) * stride
                last = entry + index(steps.sizes[factor + index(number)])
                add_selected(each, d, letters, first, stride, steps.letters, steps.amounts, entry, last, rows)
                entry = last
                add_rows(other, zero, each, d, rows, -one)
                if second and size > 1 and span != 0:
                    add_rows(w, zero, each, d, rows, steps.moments[factor + index(number)])
            entry = begin
            for number in range(n):
                d = index(number) * stride
                copy_rows(slope, zero, index(WIDE), g, zero, index(WIDE), rows)
                if second and size > 1 and (n > 1 or span != 0):
                    add_rows(other, zero, each, d, rows, one)
                    copy_rows(r, zero, index(WIDE), other, zero, index(WIDE), rows)
                    if span != 0:
                        add_rows(r, zero, letters, clock, rows, steps.moments[factor + index(number)])
                    commute(slope, g, r, zero, True, size, half)
                    add_rows(other, zero, each, d, rows, one)
                last = entry + index(steps.sizes[factor + index(number)])
                add_to_selected(d_letters, first, stride, steps.letters, steps.amounts, entry, last, slope, zero, rows)
                entry = last
            factor += index(n)
            if span != 0:
                add_rows(d_letters, clock, g, zero, rows, span)
                if second and size > 1 and n > 0:
                    clear(slope, entries)
                    commute(slope, g, w, zero, True, size, -half)
                    add_rows(d_letters, clock, slope, zero, rows, one)
