"""Depth two: increments and areas only.

With P the position before a factor of degree one with amounts v, the area between letters i < j grows by
(P_i v_j - P_j v_i) / 2. Since P_i P_j is known at the end, it is enough to collect V_ij = sum v_i (P_j + v_j / 2):
the area is then P_i P_j / 2 - V_ij. Only the rows of letters that moved are touched, and time, which moves between
all events, needs no row at all: V_i,time = sum v_i t.
"""

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._lane_simd import LANES, STEPS, add_changes, add_lanes, add_steps
from logcde.kernels._simd import QUAD, add_row
from logcde.kernels.lanes import (
    BLOCK,
    announce,
    count_steps,
    load_moments,
    load_steps,
    longest_of,
    store_lanes,
    workspace,
)


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
def compose_dense(first, last, order, begin, end, origin, start, stop, times, values, channels, counts, timed, out):
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    See `logcde.kernels.lanes`. Each lane's state is laid out as its log-signature: position, time, and for each letter
    i the areas with the letters after it, here as sum v_j (P_i + v_i / 2), and with time as sum v_i t.
    """
    d = index(channels)
    width = d + d if counts else d
    one = index(1)
    lanes = index(LANES)
    scale = scratch(LANES)
    place, count = workspace()
    steps = scratch(np.int64(BLOCK * channels * LANES))
    moves = scratch(np.int64(STEPS * width * lanes) if counts else 0)
    moments = scratch(BLOCK * LANES)
    middle = scratch(STEPS * LANES)
    state = scratch(out.shape[1] * LANES)
    areas = (width + one if timed else width) * lanes
    for group in range(first, last, LANES):
        live = min(LANES, last - group)
        longest = longest_of(order, group, live, begin, end)
        state[:] = 0.0
        for k in range(0, longest, BLOCK):
            n = min(BLOCK, longest - k)
            load_steps(live, order, group, k, n, begin, end, origin, values, channels, place, count, steps)
            if k + BLOCK >= longest:
                announce(group + LANES, last, order, begin, end, channels, values)
            if timed:
                load_moments(live, order, group, k, n, begin, end, start, stop, times, moments)
            for s in range(0, n, STEPS):
                source = steps
                move = index(s) * d * lanes
                if counts:
                    count_steps(live, order, group, k + s, begin, end, d, steps, move, moves)
                    source = moves
                    move = index(0)
                p = areas
                for i in range(width):
                    here = move + i * lanes
                    add_changes(middle, index(0), state, i * lanes, 0.5, source, here, width * lanes)
                    others = width - i - one
                    add_steps(
                        state, p, middle, index(0), lanes, source, here + lanes, width * lanes, lanes, others
                    )  # fmt: skip
                    p += others * lanes
                    if timed:
                        at = index(s) * lanes
                        add_steps(state, p, moments, at, lanes, source, here, width * lanes, lanes, one)
                        p += lanes
        # With P_i P_j / 2 they become the areas; with time the sum is on the other side.
        p = areas
        for i in range(width):
            for lane in range(lanes):
                scale[lane] = -0.5 * state[i * lanes + lane]
            others = width - i - one
            add_lanes(state, p, scale, index(0), state, (i + one) * lanes, others)
            p += others * lanes
            if timed:
                for lane in range(index(live)):
                    q = order[group + lane]
                    t = stop[q] - start[q]
                    state[width * lanes + lane] = t
                    state[p + lane] = -scale[lane] * t - state[p + lane]
                p += lanes
        store_lanes(live, order, group, state, out)
