"""Depth one, three and more: the coordinates of a group element that its log-signature needs, and no others.

Letters are numbered from the last one, so that time, which moves most, is letter 0, and words are read backwards: the
last letter varies slowest. A factor of few letters then fills few contiguous rows. Of level N only words are kept whose
last letter is not below the one before it: the coefficients of a Lie element at a word and at the reversed word differ
by the sign (-1)^(N+1), and a Lyndon word of the basis, reversed and numbered from the last letter, ends with its
highest letter. For the last letter k these words are a prefix of (k + 1) d^(N-2), so composing a factor costs that
much for each of its letters: least for time.

The first letter, which varies fastest, is padded to whole quads; padding stays zero. `power[n]` is the length of a
whole level n, `offset[n]` where it begins.
"""

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._lane_simd import LANES, add_lanes
from logcde.kernels._simd import QUAD, add_gap, add_row
from logcde.kernels.lanes import BLOCK, announce, load_moments, load_steps, longest_of
from logcde.kernels.lanes import workspace as lane_workspace


@kernel
def layout(width, depth, pad):
    """Powers and offsets, the first letter padded to a multiple of `pad`; the last offset is the length of all."""
    power = np.ones(depth + 1, np.uint64)
    offset = np.zeros(depth + 2, np.uint64)
    power[1] = index((width + pad - 1) // pad * pad)
    offset[2] = power[1]
    for n in range(2, depth + 1):
        power[n] = power[n - 1] * index(width)
        offset[n + 1] = offset[n] + power[n]
    if depth > 1:
        offset[depth + 1] = offset[depth] + power[depth - 2] * index(width * (width + 1) // 2)
    return power, offset


@kernel
def add_products(left, right, width, power, offset, depth, highest, scale, out):
    """Add to `out`, on levels 2 to `highest`, `scale` times what lower levels of left and right give in a product."""
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
    power, offset = layout(width, depth, QUAD)
    out[:] = left
    out += right
    add_products(left, right, width, power, offset, depth, depth, 1.0, out)


@kernel
def multiply_exp_lie(lie, width, power, offset, depth, tensor, old, new):
    """Multiply `tensor` by the exponential of the Lie element `lie`, in place, in Horner's form."""
    old[:] = tensor
    for k in range(depth, 0, -1):
        for i in range(tensor.size):
            new[i] = tensor[i] + lie[i] / k
        add_products(old, lie, width, power, offset, depth, depth, 1.0 / k, new)
        old[:] = new
    tensor[:] = old


@kernel
def logarithm(
    tensor, width, power, offset, depth, lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient,
    old, new, out,
):  # fmt: skip
    """Write the Lyndon coordinates of the logarithm of `tensor`.

    Coordinate c is `lead_sign[c]` times the entry `lead_position[c]` of the logarithm, plus, for every e with
    `rest_coordinate[e]` = c, which are neighbours, `rest_coefficient[e]` times the entry `rest_position[e]`.
    """
    d = index(width)
    one = index(1)
    old[:] = tensor
    if depth == 3:  # written out: X - X^2 / 2 + X^3 / 3 row by row
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
            add_products(old, tensor, width, power, offset, depth, highest, 1.0, new)
            old[:] = new
    for c in range(index(out.size)):
        out[c] = lead_sign[c] * old[lead_position[c]]
    e = index(0)
    while e < index(rest_position.size):  # once more, since `out` may be of single precision
        c = rest_coordinate[e]
        x = lead_sign[c] * old[lead_position[c]]
        while e < index(rest_position.size) and rest_coordinate[e] == c:
            x += rest_coefficient[e] * old[rest_position[e]]
            e += one
        out[c] = x


@kernel
def workspace(width, size, given):
    """What `advance` needs beside a tensor of this size: another, letters, amounts, and two more for given terms.

    There is room for an event that has some letters twice.
    """
    some = size if given else 0
    return scratch(size), np.zeros(2 * width, np.uint64), np.zeros(2 * width), scratch(some), scratch(some)


@kernel
def advance(
    begin, end, now, until, times, entry_offsets, letters, amounts, channels, counts, timed, width, depth,
    power, offset, terms, term_offsets, term_position, term_coefficient, tensor, partial, letter, amount, lie, work,
):  # fmt: skip
    """Compose gap and event factors of events `begin` to `end`, then the gap to `until`, into `tensor`.

    If `timed`, time is the last letter. Entries of one letter add up. Term c of an event adds `term_coefficient` at
    `term_position` of its Lie element, over `term_offsets[c]` to `term_offsets[c + 1]`. The last five are a
    `workspace`.
    """
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
                    multiply_exp_lie(lie, width, power, offset, depth, tensor, partial, work)
                    for i in range(line):
                        partial[i] = 0.0
                    continue
            if depth == 3:
                # Without copies: T1 + v/3 and T2 + (T1 + v/3) v/2 are what level 3 needs of the lower levels, and a
                # second half-step with T1 + 2v/3 takes level 2 to its end, T2 + (T1 + v/2) v.
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
def compose(
    first, last, begin, end, start, stop, times, entry_offsets, letters, amounts, channels, counts, timed, width, depth,
    terms, term_offsets, term_position, term_coefficient, elements,
):  # fmt: skip
    """Write the group elements of intervals `first` to `last` from sparse factors."""
    power, offset = layout(width, depth, QUAD)
    partial, letter, amount, lie, work = workspace(width, elements.shape[1], term_offsets.size > 1)
    for q in range(first, last):
        elements[q] = 0.0
        advance(
            begin[q], end[q], start[q], stop[q], times, entry_offsets, letters, amounts, channels, counts, timed,
            width, depth, power, offset, terms, term_offsets, term_position, term_coefficient, elements[q],
            partial, letter, amount, lie, work,
        )  # fmt: skip


@kernel
def compose_logarithms(
    first, last, begin, end, start, stop, times, entry_offsets, letters, amounts, channels, counts, timed, width, depth,
    terms, term_offsets, term_position, term_coefficient,
    lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out,
):  # fmt: skip
    """`compose` and `logarithms` in one: group elements are larger than log-signatures, so they stay in the cache."""
    power, offset = layout(width, depth, QUAD)
    size = np.int64(offset[depth + 1])
    tensor, old, new = scratch(size), scratch(size), scratch(size)
    partial, letter, amount, lie, work = workspace(width, size, term_offsets.size > 1)
    for q in range(first, last):
        tensor[:] = 0.0
        advance(
            begin[q], end[q], start[q], stop[q], times, entry_offsets, letters, amounts, channels, counts, timed,
            width, depth, power, offset, terms, term_offsets, term_position, term_coefficient, tensor,
            partial, letter, amount, lie, work,
        )  # fmt: skip
        logarithm(
            tensor, width, power, offset, depth, lead_position, lead_sign, rest_coordinate, rest_position,
            rest_coefficient, old, new, out[q],
        )  # fmt: skip


@kernel
def logarithms(
    first, last, elements, width, depth, lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out
):  # fmt: skip
    """Write the log-signatures of group elements `first` to `last`."""
    power, offset = layout(width, depth, QUAD)
    old = scratch(elements.shape[1])
    new = scratch(elements.shape[1])
    for q in range(first, last):
        logarithm(
            elements[q], width, power, offset, depth, lead_position, lead_sign, rest_coordinate, rest_position,
            rest_coefficient, old, new, out[q],
        )  # fmt: skip


@kernel
def dense_step(moves, low, high, power, offset, depth, tensor, partial):
    """Multiply every lane of `tensor` by the exponential of letters `low` to `high`, as `advance` does.

    `moves` holds the lanes of all letters, then one set of lanes as workspace.
    """
    one = index(1)
    lanes = index(LANES)
    begin = index(low)
    end = index(high)
    d = power[1]
    scaled = d * lanes
    for top in range(depth, 1, -1):
        for i in range(offset[top] * lanes):
            partial[i] = tensor[i]
        for i in range(begin * lanes, end * lanes):
            partial[i] += moves[i] / top
        for m in range(2, top):
            for k in range(begin, end):
                for lane in range(lanes):
                    moves[scaled + lane] = moves[k * lanes + lane] / (top - m + 1)
                row = (offset[m] + k * power[m - 1]) * lanes
                add_lanes(partial, row, moves, scaled, partial, offset[m - 1] * lanes, power[m - 1])
        for k in range(begin, end):
            row = (offset[top] + k * power[top - 1]) * lanes
            size = power[top - 1]
            if top == depth:
                row = (offset[top] + power[top - 2] * (k * (k + one) // index(2))) * lanes
                size = (k + one) * power[top - 2]
            add_lanes(tensor, row, moves, k * lanes, partial, offset[top - 1] * lanes, size)
    for i in range(begin * lanes, end * lanes):
        tensor[i] += moves[i]


@kernel
def compose_dense(
    first, last, order, begin, end, origin, start, stop, times, values, channels, counts, timed, depth,
    lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient, out,
):  # fmt: skip
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    See `logcde.kernels.lanes`. Depth three has a way of its own, `logcde.kernels.depth3`.
    """
    moving = 2 * channels if counts else channels
    width = moving + (1 if timed else 0)
    one = index(1)
    lanes = index(LANES)
    power, offset = layout(width, depth, 1)
    size = np.int64(offset[depth + 1])
    tensor = scratch(size * LANES)
    partial = scratch(size * LANES)
    moves = scratch((width + 1) * LANES)
    place, count = lane_workspace()
    steps = scratch(BLOCK * channels * LANES)
    moments = scratch(BLOCK * LANES)
    before = scratch(LANES)
    padded_power, padded_offset = layout(width, depth, QUAD)
    padded_size = np.int64(padded_offset[depth + 1])
    single = scratch(padded_size)
    old = scratch(padded_size)
    new = scratch(padded_size)
    for group in range(first, last, LANES):
        live = min(LANES, last - group)
        longest = longest_of(order, group, live, begin, end)
        if timed:
            longest += 1  # the gap after the last event
        tensor[:] = 0.0
        before[:] = 0.0
        for k in range(0, longest, BLOCK):
            n = min(BLOCK, longest - k)
            load_steps(live, order, group, k, n, begin, end, origin, values, channels, place, count, steps)
            if k + BLOCK >= longest:
                announce(group + LANES, last, order, begin, end, channels, values)
            if timed:
                load_moments(live, order, group, k, n, begin, end, start, stop, times, moments)
            for s in range(index(n)):
                if timed:
                    for lane in range(lanes):
                        moves[lane] = moments[s * lanes + lane] - before[lane]
                        before[lane] = moments[s * lanes + lane]
                    dense_step(moves, 0, 1, power, offset, depth, tensor, partial)
                for i in range(index(channels)):
                    for lane in range(lanes):
                        moves[(index(width) - one - i) * lanes + lane] = steps[(s * index(channels) + i) * lanes + lane]
                if counts:
                    for lane in range(live):
                        q = order[group + lane]
                        counted = 1.0 if begin[q] + k + np.int64(s) < end[q] else 0.0
                        for i in range(index(channels), index(moving)):
                            moves[(index(width) - one - i) * lanes + index(lane)] = counted
                dense_step(moves, width - moving, width, power, offset, depth, tensor, partial)
        for lane in range(index(live)):
            for line in range(index(size // width)):
                for u in range(index(width)):
                    single[line * padded_power[1] + u] = tensor[(line * index(width) + u) * lanes + lane]
            logarithm(
                single, width, padded_power, padded_offset, depth, lead_position, lead_sign, rest_coordinate,
                rest_position, rest_coefficient, old, new, out[order[index(group) + lane]],
            )  # fmt: skip
