"""Depth three for streams that observe all their channels together: only the words that Lyndon words need, in lanes.

Letters are numbered from the last one and words are read backwards, as in `logcde.kernels.depth_n`; time, if present,
is letter 0. Of level three only the words (i, j, k) with i < k and j <= k are kept, which are the Lyndon words of the
basis, reversed. They need the words (i, j) of level two up to the "shell" k. Level two is stored shell by shell, each
in this order: k - 1 followed by 0 to k, then 0 to k - 2 followed by k. So the letter k adds to level three its change
times a prefix of k (k + 1) words.

With P the position and Q level two before a step v, the step adds (P + v / 2) v to level two and
(Q + (P + v / 3) v / 2) v to level three. Several steps are taken at once, see `logcde.kernels._lane_simd.add_steps`.
"""

from logcde.kernels._jit import index, kernel, scratch
from logcde.kernels._lane_simd import LANES, STEPS, add_changes, add_lanes, add_pair, add_products, add_steps
from logcde.kernels.lanes import (
    BLOCK,
    block_places,
    count_steps,
    load_elapsed,
    load_steps,
    longest_of,
    prefetch_group,
    store_coordinates,
)
from logcde.kernels.records import LaneGroup


@kernel
def shell_place(i, j):
    """The place of the word (i, j) of level two."""
    one = index(1)
    k = max(i + one, j)
    return (k - one) * k + (j if i + one == k else k + one + i)


@kernel
def add_words(width, timed, source, move, step, middle, before, gaps, during, state):
    """Compose STEPS events into `state`: levels two and three.

    `middle` and `before` hold each letter's position during and before each event, `gaps` the time since the previous
    one; `during` is scratch space for level two.
    """
    d = index(width)
    one = index(1)
    lanes = index(LANES)
    steps = index(STEPS)
    letter = move + (d - one) * lanes  # of letter 0, unless that is time: letters are numbered from the last
    level = d * lanes
    entry = index(0)
    for k in range(one, d):
        for word in range(index(2) * k):
            i, j = (k - one, word) if word <= k else (word - k - one, k)
            place, total, line = entry * steps * lanes, level + entry * lanes, i * steps * lanes
            if timed and j == index(0):
                add_products(during, place, state, total, before, line, gaps, index(0))
            elif timed and i == index(0):
                # Time does not move during an event: its change is a row of zeros.
                add_pair(
                    during, place, state, total, middle, line, before, d * steps * lanes, lanes,
                    source, letter - j * lanes, step,
                )  # fmt: skip
            else:
                add_pair(
                    during, place, state, total, middle, line, source, letter - i * lanes, step,
                    source, letter - j * lanes, step,
                )  # fmt: skip
            entry += one
    target = level + entry * lanes
    for k in range(one, d):
        rows = k * (k + one)
        add_steps(state, target, source, letter - k * lanes, step, during, index(0), lanes, steps * lanes, rows)
        target += rows * lanes


@kernel
def take_logarithm(width, scale, state):
    """Replace the group elements in `state` by their logarithms: X - X^2 / 2 + X^3 / 3."""
    d = index(width)
    one = index(1)
    lanes = index(LANES)
    level = d * lanes
    target = level + d * (d - one) * lanes
    for k in range(one, d):
        for lane in range(lanes):
            scale[lane] = -0.5 * state[k * lanes + lane]
        add_lanes(state, target, scale, index(0), state, level, k * (k + one))
        for j in range(k + one):
            pair = level + shell_place(j, k) * lanes
            for lane in range(lanes):
                product = state[j * lanes + lane] * state[k * lanes + lane]
                scale[lane] = product / 3.0 - 0.5 * (state[pair + lane] if j < k else 0.5 * product)
            for i in range(k):
                add_lanes(state, target + shell_place(i, j) * lanes, scale, index(0), state, i * lanes, one)
        target += k * (k + one) * lanes
    for j in range(one, d):
        for lane in range(lanes):
            scale[lane] = -0.5 * state[j * lanes + lane]
        for i in range(j):
            add_lanes(state, level + shell_place(i, j) * lanes, scale, index(0), state, i * lanes, one)


@kernel
def compose_dense(first, last, order, intervals, events, alphabet, log_map, out):
    """Write the log-signatures of intervals `order[first]` to `order[last]`, where events observe all channels.

    See `logcde.kernels.lanes`.
    """
    times, values = events.times, events.value
    channels, counts, timed = alphabet.channels, alphabet.counted, alphabet.timed
    moving = 2 * channels if counts else channels
    width = moving + 1 if timed else moving
    d = index(width)
    one = index(1)
    lanes = index(LANES)
    line = STEPS * LANES
    words = width * (width - 1)
    places = block_places()
    steps = scratch(BLOCK * channels * LANES)
    moves = scratch(moving * line if counts else 0)
    elapsed = scratch(BLOCK * LANES)
    middle = scratch(width * line)
    before = scratch((width + 1) * line if timed else 0)
    gaps = scratch(line)
    during = scratch(words * line)
    state = scratch((width + words + words * (width + 1) // 3) * LANES)
    scale = scratch(LANES)
    coordinates = scratch(out.shape[1] * LANES)
    for at in range(first, last, LANES):
        group = LaneGroup(order, at, min(LANES, last - at))
        longest = longest_of(group, intervals)
        if timed:
            longest += 1  # the gap after the last event
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
                move = index(s * channels) * lanes
                step = index(moving) * lanes
                if counts:
                    count_steps(group, k + s, intervals, channels, steps, move, moves)
                    source = moves
                    move = index(0)
                for i in range(index(width - moving), d):
                    here = move + (d - one - i) * lanes
                    if timed:
                        for lane in range(lanes):
                            scale[lane] = state[i * lanes + lane]
                        add_changes(before, i * index(line), scale, index(0), 0.0, source, here, step)
                    add_changes(middle, i * index(line), state, i * lanes, 0.5, source, here, step)
                if timed:
                    for u in range(index(STEPS)):
                        for lane in range(lanes):
                            now = elapsed[(index(s) + u) * lanes + lane]
                            gap = now - state[lane]
                            middle[u * lanes + lane] = now
                            before[u * lanes + lane] = now - 0.5 * gap
                            gaps[u * lanes + lane] = gap
                            state[lane] = now
                add_words(width, timed, source, move, step, middle, before, gaps, during, state)
        take_logarithm(width, scale, state)
        store_coordinates(group, state, log_map, coordinates, out)
