"""Depth two: increments and areas only.

Let P be the position before a factor of degree one with amounts v. The factor adds (P_i v_j - P_j v_i) / 2 to the area
between letters i < j. Since P_i P_j is known at the end, it suffices to accumulate V_ij = sum v_i (P_j + v_j / 2): the
area is then P_i P_j / 2 - V_ij. A factor touches only the rows of the letters that it moves, and time, which moves
between all events, needs no row at all: V_i,time = sum v_i t.
"""

from typing import NamedTuple

import numpy as np

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._lane_simd import LANES, STEPS, add_changes, add_lanes, add_steps
from logcde.kernels._simd import QUAD, add_row
from logcde.kernels.lanes import (
    BLOCK,
    block_places,
    count_steps,
    load_elapsed,
    load_steps,
    longest_of,
    prefetch_group,
    store_lanes,
)
from logcde.kernels.records import LaneGroup


class AreaState(NamedTuple):
    """The state of an interval over all letters but time.

    Attributes:
        position: P, padded to whole quads, and one quad more.
        rows: V_ij, a row for each letter i, padded to whole quads, and one quad more.
        clock: V_i,time.
    """

    position: np.ndarray
    rows: np.ndarray
    clock: np.ndarray


@kernel
def area_state(letters):
    """The state of an empty interval over this many letters, time not counted."""
    row = (letters + QUAD - 1) // QUAD * QUAD
    return AreaState(scratch(row + QUAD), scratch(letters * row + QUAD), scratch(letters))


@kernel
def advance(begin, end, start, factors, channels, counts, state):
    """Compose factors `begin` to `end` into the state of an interval that starts at `start`.

    If `counts`, an entry of a letter below `channels` also moves its count, `channels` letters further on, by one; the
    row of a count begins there, since the letters that it is paired with come after all values.
    """
    times, entry_offsets, letters, amounts = factors.times, factors.entry_offsets, factors.letters, factors.amounts
    position, rows, clock = state
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
        # Letters that move together see each other's midpoint.
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
def emit(t, timed, state, areas, out):
    """Write the log-signature of a state at time `t` of its interval: increments, then areas.

    `areas` are those given with the events, in the order of the basis; empty if there are none.
    """
    position, rows, clock = state
    one = index(1)
    n = index(clock.size)
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
def compose(first, last, intervals, factors, alphabet, term_area, out):
    """Write the log-signatures of intervals `first` to `last`. Column c of the terms goes to area `term_area[c]`."""
    begin, end, start, stop, terms = intervals.begin, intervals.end, intervals.start, intervals.stop, factors.terms
    channels, counts, timed = alphabet.channels, alphabet.counted, alphabet.timed
    state = area_state(alphabet.width - timed)
    position, rows, clock = state
    given = term_area.size
    areas = np.zeros(out.shape[1] - alphabet.width if given else 0)
    for q in range(first, last):
        position[:] = 0.0
        rows[:] = 0.0
        clock[:] = 0.0
        areas[:] = 0.0
        advance(begin[q], end[q], start[q], factors, channels, counts, state)
        if given:
            for e in range(begin[q], end[q]):
                for c in range(given):
                    areas[term_area[c]] += terms[e, c]
        emit(stop[q] - start[q], timed, state, areas, out[q])


@kernel
def product(left, right, letters, out):
    """Write the log-signature of two consecutive intervals: the Baker-Campbell-Hausdorff formula at depth two."""
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
def compose_dense(first, last, order, intervals, events, alphabet, out):
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    See `logcde.kernels.lanes`. Each lane's state is laid out as its log-signature: position, time, and for each letter
    i the areas with the letters after it, here as sum v_j (P_i + v_i / 2), and with time as sum v_i t.
    """
    start, stop, times, values = intervals.start, intervals.stop, events.times, events.value
    channels, counts, timed = alphabet.channels, alphabet.counted, alphabet.timed
    d = index(channels)
    width = d + d if counts else d
    one = index(1)
    lanes = index(LANES)
    scale = scratch(LANES)
    places = block_places()
    steps = scratch(np.int64(BLOCK * channels * LANES))
    moves = scratch(np.int64(STEPS * width * lanes) if counts else 0)
    elapsed = scratch(BLOCK * LANES)
    middle = scratch(STEPS * LANES)
    state = scratch(out.shape[1] * LANES)
    areas = (width + one if timed else width) * lanes
    for at in range(first, last, LANES):
        live = min(LANES, last - at)
        group = LaneGroup(order, at, live)
        longest = longest_of(group, intervals)
        state[:] = 0.0
        for k in range(0, longest, BLOCK):
            n = min(BLOCK, longest - k)
            load_steps(group, k, n, intervals, events, channels, places, steps)
            if k + BLOCK >= longest:
                prefetch_group(order, at + LANES, last, intervals, values, channels)
            if timed:
                load_elapsed(group, k, n, intervals, times, elapsed)
            for s in range(0, n, STEPS):
                source = steps
                move = index(s) * d * lanes
                if counts:
                    count_steps(group, k + s, intervals, d, steps, move, moves)
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
                        now = index(s) * lanes
                        add_steps(state, p, elapsed, now, lanes, source, here, width * lanes, lanes, one)
                        p += lanes
        # With P_i P_j / 2 the sums become the areas; the sum with time has the opposite sign.
        p = areas
        for i in range(width):
            for lane in range(lanes):
                scale[lane] = -0.5 * state[i * lanes + lane]
            others = width - i - one
            add_lanes(state, p, scale, index(0), state, (i + one) * lanes, others)
            p += others * lanes
            if timed:
                for lane in range(index(live)):
                    q = order[index(at) + lane]
                    t = stop[q] - start[q]
                    state[width * lanes + lane] = t
                    state[p + lane] = -scale[lane] * t - state[p + lane]
                p += lanes
        store_lanes(group, state, out)
