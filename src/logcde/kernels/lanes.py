"""Several intervals at once, one in each lane, for streams that observe all their channels together.

A group of LANES intervals is processed in blocks of events: their changes are loaded into lanes, composed by the kernel
of the depth at hand, and at the end the coordinates of every lane are stored as a row. An interval that has come to its
end takes zero steps, so the intervals of a group should have similar numbers of events.
"""

from typing import NamedTuple

import numpy as np

from logcde.kernels._jit import index, inlined, kernel
from logcde.kernels._lane_simd import LANES, STEPS, load_changes, store_rows
from logcde.kernels._simd import prefetch

BLOCK = 16
"""Events of one lane that are loaded at a time."""


class BlockPlaces(NamedTuple):
    """Scratch space of `load_steps`, one number for each lane.

    Attributes:
        place: Where the lane's block begins in the values.
        length: How many values the block has.
    """

    place: np.ndarray
    length: np.ndarray


@kernel
def block_places():
    """Scratch space for `load_steps`."""
    return BlockPlaces(np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64))


@kernel
def longest_of(group, intervals):
    """The number of events of the longest interval in a group of lanes."""
    order, begin, end = group.order, intervals.begin, intervals.end
    longest = 0
    for lane in range(group.live):
        q = order[group.first + lane]
        longest = max(longest, end[q] - begin[q])
    return longest


@inlined
def load_steps(group, k, n, intervals, events, channels, places, moves):
    """Fill `moves` with the changes at events k to k + n of each lane's interval, zero beyond its end.

    Zero as well up to a multiple of STEPS, because kernels take that many at a time. A lane's changes are one sequence,
    event by event and channel by channel, as the values are; entry m of it goes to `moves[m * LANES + lane]`. The first
    event of a series moves from zero.
    """
    order, first, live = group
    series, begin, end = intervals.series, intervals.begin, intervals.end
    offsets, values = events.offsets, events.value
    place, length = places
    d = index(channels)
    lanes = index(LANES)
    filled = index((n + STEPS - 1) // STEPS * STEPS) * d
    common = filled
    skip = index(0)
    for lane in range(LANES):
        # Idle lanes repeat the last one: nobody reads them, and all lanes are loaded at once.
        q = order[first + min(lane, live - 1)]
        place[lane] = index(begin[q] + k) * d
        length[lane] = index(max(0, min(n, end[q] - begin[q] - k))) * d
        common = min(common, length[lane])
        if k == 0 and begin[q] == offsets[series[q]]:
            skip = d
    m = skip
    if common >= skip + lanes:
        while m + lanes < common:
            load_changes(moves, m * lanes, values, place, m, d)
            m += lanes
        load_changes(moves, (common - lanes) * lanes, values, place, common - lanes, d)  # the last ones, some again
        m = common
    if m == filled and skip == index(0):
        return
    for lane in range(LANES):
        if skip > 0 and length[lane] > 0:
            q = order[first + min(lane, live - 1)]
            for entry in range(d):
                p = place[lane] + entry
                previous = np.float64(values[p - d]) if begin[q] != offsets[series[q]] else 0.0
                moves[entry * lanes + index(lane)] = values[p] - previous
        for entry in range(m, length[lane]):
            p = place[lane] + entry
            moves[entry * lanes + index(lane)] = np.float64(values[p]) - np.float64(values[p - d])
        for entry in range(length[lane], filled):
            moves[entry * lanes + index(lane)] = 0.0


@kernel
def prefetch_group(order, first, last, intervals, values, channels):
    """Prefetch the first values of the group at `first`: the processor predicts how a lane goes on, not its start."""
    begin, end = intervals.begin, intervals.end
    d = index(channels)
    line = index(64 // values.itemsize)
    for lane in range(first, min(first + LANES, last)):
        q = order[lane]
        p = index(begin[q]) * d
        stop = p + index(min(BLOCK, end[q] - begin[q])) * d
        while p < stop:
            prefetch(values, p)
            p += line


@kernel
def load_elapsed(group, k, n, intervals, times, elapsed):
    """Fill `elapsed` with the times of events k to k + n since the start of each lane's interval.

    Beyond the end of an interval this is its length. Up to a multiple of STEPS, as in `load_steps`.
    """
    order, first, live = group
    begin, end, start, stop = intervals.begin, intervals.end, intervals.start, intervals.stop
    filled = (n + STEPS - 1) // STEPS * STEPS
    for lane in range(live):
        q = order[first + lane]
        for s in range(filled):
            e = begin[q] + k + s
            elapsed[s * LANES + lane] = (times[e] if e < end[q] else stop[q]) - start[q]


@kernel
def count_steps(group, k, intervals, channels, steps, at, moves):
    """Fill `moves` with STEPS steps of twice as many letters: the changes from `at` on, then ones for their counts.

    The first of the steps is event k of each lane's interval.
    """
    order, first, live = group
    begin, end = intervals.begin, intervals.end
    d = index(channels)
    lanes = index(LANES)
    for s in range(index(STEPS)):
        row = s * index(2) * d * lanes
        for i in range(d * lanes):
            moves[row + i] = steps[at + s * d * lanes + i]
        row += d * lanes
        for lane in range(index(live)):
            q = order[first + lane]
            counted = 1.0 if begin[q] + k + np.int64(s) < end[q] else 0.0
            for i in range(d):
                moves[row + i * lanes + lane] = counted


@kernel
def store_lanes(group, coordinates, out):
    """Write coordinate c of each lane, `coordinates[c * LANES + lane]`, to `out[order[first + lane], c]`."""
    order, first, live = group
    lanes = index(LANES)
    size = index(out.shape[1])
    whole = size // index(4) * index(4)
    flat = out.reshape(-1)
    for four in range(0, live, 4):
        # Idle lanes are written to the row of the first of the four, before that one is.
        a = index(order[first + four])
        b = index(order[first + four + 1]) if four + 1 < live else a
        c = index(order[first + four + 2]) if four + 2 < live else a
        d = index(order[first + four + 3]) if four + 3 < live else a
        for o in range(index(0), whole, index(4)):
            store_rows(
                flat, a * size + o, b * size + o, c * size + o, d * size + o,
                coordinates, o * lanes + index(four), lanes,
            )  # fmt: skip
    for lane in range(index(live)):
        for o in range(whole, size):
            out[order[index(first) + lane], o] = coordinates[o * lanes + lane]


@kernel
def store_coordinates(group, logarithm, log_map, coordinates, out):
    """Write the Lyndon coordinates of each lane of `logarithm`; `coordinates` is scratch space for their lanes."""
    lead_position, lead_sign, rest_coordinate, rest_position, rest_coefficient = log_map
    lanes = index(LANES)
    for c in range(index(out.shape[1])):
        for lane in range(lanes):
            coordinates[c * lanes + lane] = lead_sign[c] * logarithm[lead_position[c] * lanes + lane]
    for e in range(index(rest_position.size)):
        c = rest_coordinate[e] * lanes
        for lane in range(lanes):
            coordinates[c + lane] += rest_coefficient[e] * logarithm[rest_position[e] * lanes + lane]
    store_lanes(group, coordinates, out)
