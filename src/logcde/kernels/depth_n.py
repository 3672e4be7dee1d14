"""Depth one, three and more: the coordinates of a group element that its log-signature needs, and no others.

Letters are numbered from the last one, so that time, which moves most often, is letter 0, and words are read backwards:
the last letter varies slowest. A factor of few letters then fills few contiguous rows. Of level N only those words are
kept whose last letter is not below the one before it: the coefficients of a Lie element at a word and at the reversed
word differ by the sign (-1)^(N+1), and a Lyndon word of the basis, reversed and numbered from the last letter, ends
with its highest letter. For the last letter k these words are a prefix of (k + 1) d^(N-2), so composing a factor costs
that much for each of its letters, and least for time.

The first letter, which varies fastest, is padded to whole quads; padding stays zero. `Layout` says where levels begin.
"""

from typing import NamedTuple

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._simd import QUAD, add_gap, add_row
from logcde.kernels.records import Layout


class Workspace(NamedTuple):
    """Scratch space of `advance`.

    Attributes:
        partial: A tensor; zero in its first row between factors.
        letter: Letters of one factor, some of which may occur twice.
        amount: How far each of them moves.
        lie: The Lie element of a factor with higher-order terms; empty if there are no terms.
        spare: A tensor for such factors; empty if there are no terms.
    """

    partial: np.ndarray
    letter: np.ndarray
    amount: np.ndarray
    lie: np.ndarray
    spare: np.ndarray


@kernel
def layout_of(width, depth, pad):
    """The layout of a tensor whose first letter is padded to a multiple of `pad`."""
    power = np.ones(depth + 1, np.uint64)
    offset = np.zeros(depth + 2, np.uint64)
    power[1] = index((width + pad - 1) // pad * pad)
    offset[2] = power[1]
    for n in range(2, depth + 1):
        power[n] = power[n - 1] * index(width)
        offset[n + 1] = offset[n] + power[n]
    if depth > 1:
        offset[depth + 1] = offset[depth] + power[depth - 2] * index(width * (width + 1) // 2)
    return Layout(width, depth, power, offset)


@kernel
def workspace_of(width, size, given):
    """Scratch space for tensors of this size; `given` says whether factors have higher-order terms."""
    some = size if given else 0
    return Workspace(scratch(size), np.zeros(2 * width, np.uint64), np.zeros(2 * width), scratch(some), scratch(some))


@kernel
def add_products(left, right, layout, highest, scale, out):
    """Add `scale` times the products of lower levels of `left` and `right` to levels 2 to `highest` of `out`."""
    width, depth, power, offset = layout
    one = index(1)
    d = index(width)
    for n in range(2, min(highest, depth - 1) + 1):
        for p in range(1, n):
            suffix = offset[n - p]
            row = offset[n]
            for _ in range(power[n - p] // power[1]):
                for u in range(d):
                    add_row(out, row, scale * right[suffix + u], left, offset[p], power[p])
                    row += power[p]
                suffix += power[1]
    if highest < depth or depth == 1:
        return
    row = offset[depth]
    for k in range(d):
        size = (k + one) * power[depth - 2]
        for p in range(1, depth - 1):
            suffix = offset[depth - p] + k * power[depth - p - 1]
            rest = depth - p - 1  # letters of the suffix before k, the last of them not above k
            lines = (k + one) * power[rest - 1] // power[1] if rest > 1 else one
            letters = d if rest > 1 else k + one
            target = row
            for _ in range(lines):
                for u in range(letters):
                    add_row(out, target, scale * right[suffix + u], left, offset[p], power[p])
                    target += power[p]
                suffix += power[1]
        add_row(out, row, scale * right[k], left, offset[depth - 1], size)
        row += size


@kernel
def product(left, right, width, depth, out):
    """Write the product of two group elements to `out`, which is neither of them."""
    out[:] = left
    out += right
    add_products(left, right, layout_of(width, depth, QUAD), depth, 1.0, out)


@kernel
def multiply_exp_lie(lie, layout, tensor, old, new):
    """Multiply `tensor` by the exponential of the Lie element `lie`, in place, in Horner's form."""
    depth = layout.depth
    old[:] = tensor
    for k in range(depth, 0, -1):
        for i in range(tensor.size):
            new[i] = tensor[i] + lie[i] / k
        add_products(old, lie, layout, depth, 1.0 / k, new)
        old[:] = new
    tensor[:] = old


@kernel
def logarithm(tensor, layout, log_map, old, new, out):
    """Write the Lyndon coordinates of the logarithm of `tensor`; `old` and `new` are scratch space of its size."""
    width, depth, power, offset = layout
    lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient = log_map
    d = index(width)
    one = index(1)
    old[:] = tensor
    if depth == 3:  # written out: X - X^2 / 2 + X^3 / 3, row by row
        line = power[1]
        row = offset[3]
        for k in range(d):
            x = tensor[k]
            add_row(old, offset[2] + k * line, -0.5 * x, tensor, index(0), line)
            for j in range(k + one):
                a = x * tensor[j] * (1.0 / 3.0) - 0.5 * tensor[offset[2] + k * line + j]
                add_row(old, row, a, tensor, index(0), line)
                row += line
            size = (k + one) * line
            add_row(old, row - size, -0.5 * x, tensor, offset[2], size)
    elif depth > 3:  # Horner's form: with c_m = (-1)^(m+1) / m, the polynomials c_j + c_(j+1) X + ... in turn
        for j in range(depth - 1, -1, -1):
            constant = (-1.0 if j % 2 else 1.0) / (j + 1)
            highest = depth - j
            for i in range(offset[highest + 1]):
                new[i] = constant * tensor[i]
            add_products(old, tensor, layout, highest, 1.0, new)
            old[:] = new
    for c in range(index(out.size)):
        out[c] = lead_sign[c] * old[lead_position[c]]
    e = index(0)
    while e < index(rest_position.size):  # from the start, since `out` may have single precision
        c = rest_coordinate[e]
        x = lead_sign[c] * old[lead_position[c]]
        while e < index(rest_position.size) and rest_coordinate[e] == c:
            x += rest_coefficient[e] * old[rest_position[e]]
            e += one
        out[c] = x


@kernel
def advance(begin, end, now, until, factors, alphabet, layout, term_map, tensor, workspace):
    """Compose factors `begin` to `end`, each after its gap, then the gap to `until`, into `tensor`.

    Gaps are composed if `alphabet.timed`, from time `now` on. Entries of one letter add up.
    """
    times, entry_offsets, letters, amounts, terms = factors
    channels, counts, timed = alphabet.channels, alphabet.counted, alphabet.timed
    width, depth, power, offset = layout
    term_offsets, term_position, term_coefficient = term_map
    partial, letter, amount, lie, spare = workspace
    d = index(width)
    one = index(1)
    line = power[1]
    for i in range(line):
        partial[i] = 0.0
    given = term_offsets.size - 1
    for e in range(index(begin), index(end) + one):
        moment = until if e == index(end) else times[e]
        for part in range(2):
            count = index(0)
            if part == 0:
                if not timed or moment <= now:
                    continue
                gap = moment - now
                now = moment
                if depth == 3:
                    add_gap(tensor, gap, line, offset[3])
                    continue
                letter[0] = index(0)
                amount[0] = gap
                count = one
            else:
                if e == index(end):
                    continue
                for o in range(index(entry_offsets[e]), index(entry_offsets[e + one])):
                    letter[count] = d - one - index(letters[o])
                    amount[count] = amounts[o]
                    count += one
                    if counts and letters[o] < channels:
                        letter[count] = d - one - index(letters[o] + channels)
                        amount[count] = 1.0
                        count += one
                if given and np.any(terms[e]):
                    lie[:] = 0.0
                    for x in range(count):
                        lie[letter[x]] += amount[x]
                    for c in range(given):
                        for i in range(term_offsets[c], term_offsets[c + 1]):
                            lie[term_position[i]] += terms[e, c] * term_coefficient[i]
                    multiply_exp_lie(lie, layout, tensor, partial, spare)
                    for i in range(line):
                        partial[i] = 0.0
                    continue
            if depth == 3:
                # Without copies: level 3 needs T1 + v/3 and T2 + (T1 + v/3) v/2 of the lower levels, and a second
                # half-step with T1 + 2v/3 completes level 2, T2 + (T1 + v/2) v.
                for x in range(count):
                    partial[letter[x]] += amount[x]
                for turn in range(3):
                    add_row(tensor, index(0), 1.0 / 3.0, partial, index(0), line)
                    if turn == 2:
                        continue
                    for x in range(count):
                        add_row(tensor, line + letter[x] * line, 0.5 * amount[x], tensor, index(0), line)
                    if turn == 0:
                        for x in range(count):
                            k = letter[x]
                            row = offset[3] + line * (k * (k + one) // index(2))
                            add_row(tensor, row, amount[x], tensor, line, (k + one) * line)
                for x in range(count):
                    partial[letter[x]] = 0.0
                continue
            for top in range(depth, 1, -1):
                for i in range(offset[top]):
                    partial[i] = tensor[i]
                for x in range(count):
                    partial[letter[x]] += amount[x] / top
                for m in range(2, top):
                    for x in range(count):
                        row = offset[m] + letter[x] * power[m - 1]
                        add_row(partial, row, amount[x] / (top - m + 1), partial, offset[m - 1], power[m - 1])
                for x in range(count):
                    k = letter[x]
                    row = offset[top] + k * power[top - 1]
                    size = power[top - 1]
                    if top == depth:
                        row = offset[top] + power[top - 2] * (k * (k + one) // index(2))
                        size = (k + one) * power[top - 2]
                    add_row(tensor, row, amount[x], partial, offset[top - 1], size)
            for x in range(count):
                tensor[letter[x]] += amount[x]


@kernel
def compose(first, last, intervals, factors, alphabet, term_map, elements):
    """Write the group elements of intervals `first` to `last`."""
    begin, end, start, stop = intervals.begin, intervals.end, intervals.start, intervals.stop
    layout = layout_of(alphabet.width, alphabet.depth, QUAD)
    workspace = workspace_of(alphabet.width, elements.shape[1], term_map.offsets.size > 1)
    for q in range(first, last):
        elements[q] = 0.0
        advance(
            begin[q], end[q], start[q], stop[q], factors, alphabet, layout, term_map, elements[q], workspace
        )  # fmt: skip


@kernel
def compose_logarithms(first, last, intervals, factors, alphabet, term_map, log_map, out):
    """`compose` and `logarithms` in one: group elements are larger than log-signatures, so they stay in the cache."""
    begin, end, start, stop = intervals.begin, intervals.end, intervals.start, intervals.stop
    layout = layout_of(alphabet.width, alphabet.depth, QUAD)
    size = np.int64(layout.offset[alphabet.depth + 1])
    tensor, old, new = scratch(size), scratch(size), scratch(size)
    workspace = workspace_of(alphabet.width, size, term_map.offsets.size > 1)
    for q in range(first, last):
        tensor[:] = 0.0
        advance(
            begin[q], end[q], start[q], stop[q], factors, alphabet, layout, term_map, tensor, workspace
        )  # fmt: skip
        logarithm(tensor, layout, log_map, old, new, out[q])


@kernel
def logarithms(first, last, elements, width, depth, log_map, out):
    """Write the log-signatures of group elements `first` to `last`."""
    layout = layout_of(width, depth, QUAD)
    old = scratch(elements.shape[1])
    new = scratch(elements.shape[1])
    for q in range(first, last):
        logarithm(elements[q], layout, log_map, old, new, out[q])
