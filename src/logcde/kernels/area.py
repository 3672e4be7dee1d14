"""Depth two: increments and areas only.

With P the position before a factor of degree one with amounts v, the area between letters i < j grows by
(P_i v_j - P_j v_i) / 2. Since P_i P_j is known at the end, it is enough to collect V_ij = sum v_i (P_j + v_j / 2):
the area is then P_i P_j / 2 - V_ij. Only the rows of letters that moved are touched, and time, which moves between
all events, needs no row at all: V_i,time = sum v_i t.
"""

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._simd import LANES, QUAD, add_lanes, add_row, load_changes, prefetch

BLOCK = 16  # events of one lane that are loaded at a time


@kernel
def state(width):
    """The state of an empty interval: position, rows and clock of `width` letters, time not counted."""
    row = (width + QUAD - 1) // QUAD * QUAD
    return scratch(row + QUAD), scratch(width * row + QUAD), scratch(width)


@kernel
def advance(begin, end, start, times, entry_offsets, letters, amounts, channels, counts, position, rows, clock):
    """Compose the factors of events `begin` to `end` into the state of an interval that begins at `start`.

    Event e has entries `entry_offsets[e]` to `entry_offsets[e + 1]`. Those of a letter below `channels` also move its
    count, `channels` letters further on, by one; a count's row begins there, since its partners come after all values.
    Rows are padded to whole quads, position and rows by one quad more: see `state`.
    """
    d = index(channels)
    quad = index(QUAD)
    width = index(clock.size + QUAD - 1) // quad * quad
    for e in range(index(begin), index(end)):
        t = times[e] - start
        a = index(entry_offsets[e])
        z = index(entry_offsets[e + index(1)])
        if z - a == index(1):
            k = index(letters[a])
            v = amounts[a]
            r = k * width
            add_row(rows, r, v, position, index(0), width)
            clock[k] += v * t
            if counts and k < d:
                c = k + d
                r = c * width + d
                add_row(rows, r, 1.0, position, d, width - d)
                rows[k * width + c] += 0.5 * v
                clock[c] += t
                position[c] += 1.0
            position[k] += v
            continue
        # Letters that move together meet each other half-way.
        for o in range(a, z):
            k = index(letters[o])
            position[k] += 0.5 * amounts[o]
            if counts and k < d:
                position[k + d] += 0.5
        for o in range(a, z):
            k = index(letters[o])
            v = amounts[o]
            r = k * width
            add_row(rows, r, v, position, index(0), width)
            clock[k] += v * t
            if counts and k < d:
                c = k + d
                r = c * width + d
                add_row(rows, r, 1.0, position, d, width - d)
                clock[c] += t
        for o in range(a, z):
            k = index(letters[o])
            position[k] += 0.5 * amounts[o]
            if counts and k < d:
                position[k + d] += 0.5


@kernel
def emit(t, timed, letters, position, rows, clock, areas, out):
    """Write the log-signature of a state at time `t` of its interval: increments, then areas.

    `letters` counts all letters but time; `areas` are those given with the events, in the order of the basis.
    """
    one = index(1)
    n = index(letters)
    quad = index(QUAD)
    width = (n + quad - one) // quad * quad
    for i in range(n):
        out[i] = position[i]
    p = n
    if timed:
        out[p] = t
        p += one
    for i in range(n):
        half = 0.5 * position[i]
        s = i + one
        r = i * width + s
        m = n - s
        for j in range(m):
            out[p + j] = half * position[s + j] - rows[r + j]
        p += m
        if timed:
            out[p] = half * t - clock[i]
            p += one
    given = index(areas.size)
    p -= given
    for i in range(given):
        out[p + i] += areas[i]


@kernel
def compose(
    first, last, begin, end, start, stop, times, entry_offsets, letters, amounts,
    channels, counts, timed, width, terms, term_area, out,
):  # fmt: skip
    """Write the log-signatures of intervals `first` to `last` from sparse factors.

    `width` counts all letters but time; event e gives `terms[e, c]` to the area `term_area[c]`.
    """
    position, rows, clock = state(width)
    given = term_area.size
    areas = np.zeros(out.shape[1] - width - timed if given else 0)
    for q in range(first, last):
        position[:] = 0.0
        rows[:] = 0.0
        clock[:] = 0.0
        areas[:] = 0.0
        advance(
            begin[q], end[q], start[q], times, entry_offsets, letters, amounts, channels, counts, position, rows, clock
        )  # fmt: skip
        if given:
            for e in range(begin[q], end[q]):
                for c in range(given):
                    areas[term_area[c]] += terms[e, c]
        emit(stop[q] - start[q], timed, width, position, rows, clock, areas, out[q])


@kernel
def product(left, right, letters, out):
    """Write the log-signature of two intervals in a row: the Baker-Campbell-Hausdorff formula at depth two."""
    n = index(letters)
    for i in range(index(out.size)):
        out[i] = left[i] + right[i]
    p = n
    for i in range(n):
        a = 0.5 * left[i]
        b = 0.5 * right[i]
        for j in range(i + index(1), n):
            out[p] += a * right[j] - b * left[j]
            p += index(1)


@kernel
def load_steps(live, order, group, k, n, begin, end, origin, values, channels, moves):
    """Fill `moves` with the changes at events k to k + n of each lane's interval, zero beyond its end.

    A lane's changes are one sequence, event by event and channel by channel, as `values` is; entry m of it goes to
    `moves[m * LANES + lane]`.
    """
    d = index(channels)
    lanes = index(LANES)
    place = np.zeros(LANES, np.uint64)
    count = np.zeros(LANES, np.uint64)
    for lane in range(live):
        q = order[group + lane]
        place[lane] = index(begin[q] + k) * d
        count[lane] = index(max(0, min(n, end[q] - begin[q] - k))) * d
        if k == 0 and count[lane] > 0:  # the first event may be the first of its series, and moves from zero
            for m in range(d):
                previous = values[place[lane] + m - d] if begin[q] != origin[q] else 0.0
                moves[m * lanes + lane] = values[place[lane] + m] - previous
    skip = d if k == 0 else index(0)
    for four in range(0, LANES, 4):
        common = min(min(count[four], count[four + 1]), min(count[four + 2], count[four + 3]))
        m = skip
        while m + index(4) <= common:
            load_changes(
                moves, m * lanes + index(four), values,
                place[four] + m, place[four + 1] + m, place[four + 2] + m, place[four + 3] + m, d,
            )  # fmt: skip
            m += index(4)
        for lane in range(four, four + 4):
            first = max(m, skip) if count[lane] > 0 else index(0)
            for rest in range(first, count[lane]):
                p = place[lane] + rest
                moves[rest * lanes + index(lane)] = values[p] - values[p - d]
            for rest in range(count[lane], index(n) * d):
                moves[rest * lanes + index(lane)] = 0.0


@kernel
def announce_steps(s, n, order, group, live, last, k, longest, begin, end, channels, values):
    """Have the next block of values fetched, a share of it at step s of n: of these lanes, or of the next group.

    Lanes are many short streams, which the processor does not foresee by itself, and it can wait for a few at a time.
    """
    k += BLOCK
    if k >= longest:
        k = 0
        group += live
        live = min(LANES, last - group)
    for lane in range(group + s * live // n, group + (s + 1) * live // n):
        q = order[lane]
        place = (begin[q] + k) * channels
        for line in range(0, min(BLOCK, end[q] - begin[q] - k) * channels, 8):
            prefetch(values, index(place + line))


@kernel
def load_moments(live, order, group, k, n, begin, end, start, stop, times, moments):
    """Fill `moments` with the times of events k to k + n within each lane's interval, its length beyond its end."""
    for lane in range(live):
        q = order[group + lane]
        for s in range(n):
            e = begin[q] + k + s
            moments[s * LANES + lane] = (times[e] if e < end[q] else stop[q]) - start[q]


@kernel
def longest_of(order, group, live, begin, end):
    """The number of events of the longest interval in a group of lanes."""
    longest = 0
    for lane in range(live):
        q = order[group + lane]
        longest = max(longest, end[q] - begin[q])
    return longest


@kernel
def compose_dense(first, last, order, begin, end, origin, start, stop, times, values, channels, counts, timed, out):
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    Several intervals go side by side, one in each lane; one that has come to its end takes zero steps, so `order`
    should put intervals of like numbers of events next to each other. `origin[q]` is the first event of the series of
    interval q: it moves from the base point zero.
    """
    d = index(channels)
    width = d + d if counts else d
    one = index(1)
    lanes = index(LANES)
    half = np.full(LANES, 0.5)
    steps = scratch(np.int64(BLOCK * channels * LANES))
    moves = scratch(np.int64(width * lanes))
    moments = scratch(BLOCK * LANES)
    position = scratch(np.int64(width * lanes))
    rows = scratch(np.int64(width * (width - one) // index(2) * lanes))
    clock = scratch(np.int64(width * lanes))
    for group in range(first, last, LANES):
        live = min(LANES, last - group)
        longest = longest_of(order, group, live, begin, end)
        position[:] = 0.0
        rows[:] = 0.0
        clock[:] = 0.0
        for k in range(0, longest, BLOCK):
            n = min(BLOCK, longest - k)
            load_steps(live, order, group, k, n, begin, end, origin, values, channels, steps)
            if timed:
                load_moments(live, order, group, k, n, begin, end, start, stop, times, moments)
            for s in range(index(n)):
                announce_steps(np.int64(s), n, order, group, live, last, k, longest, begin, end, channels, values)
                source = steps
                move = s * d * lanes
                if counts:
                    for i in range(d * lanes):
                        moves[i] = steps[move + i]
                    for lane in range(live):
                        q = order[group + lane]
                        counted = 1.0 if begin[q] + k + np.int64(s) < end[q] else 0.0
                        for i in range(d, width):
                            moves[i * lanes + index(lane)] = counted
                    source = moves
                    move = index(0)
                add_lanes(position, index(0), half, index(0), source, move, width)
                p = index(0)
                for i in range(width):
                    others = width - i - one
                    add_lanes(rows, p, source, move + i * lanes, position, (i + one) * lanes, others)
                    p += others * lanes
                add_lanes(position, index(0), half, index(0), source, move, width)
                if timed:
                    add_lanes(clock, index(0), moments, s * lanes, source, move, width)
        for lane in range(index(live)):
            q = order[group + lane]
            t = stop[q] - start[q]
            for i in range(width):
                out[q, i] = position[i * lanes + lane]
            o = width
            if timed:
                out[q, o] = t
                o += one
            p = lane
            for i in range(width):
                half_way = 0.5 * position[i * lanes + lane]
                for j in range(i + one, width):
                    out[q, o] = half_way * position[j * lanes + lane] - rows[p]
                    p += lanes
                    o += one
                if timed:
                    out[q, o] = half_way * t - clock[i * lanes + lane]
                    o += one
