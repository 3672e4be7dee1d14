"""Several intervals side by side, one in each lane, for streams that observe all their channels at once.

A group of LANES intervals is worked through in blocks of events: their changes are loaded into lanes, composed by the
kernel of the depth at hand, and at the end every lane's coordinates are stored as a row. An interval that has come to
its end takes zero steps, so intervals of like numbers of events should be in one group.
"""

import numpy as np

from logcde.kernels._jit import index, kernel
from logcde.kernels._lane_simd import LANES, STEPS, load_changes, store_rows
from logcde.kernels._simd import prefetch

BLOCK = 16  # events of one lane that are loaded at a time


@kernel
def workspace():
    """What `load_steps` needs: where each lane's block begins, and how many numbers it has."""
    return np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64)


@kernel
def longest_of(order, group, live, begin, end):
    """The number of events of the longest interval in a group of lanes."""
    longest = 0
    for lane in range(live):
        q = order[group + lane]
        longest = max(longest, end[q] - begin[q])
    return longest


@kernel
def load_steps(live, order, group, k, n, begin, end, origin, values, channels, place, count, moves):
    """Fill `moves` with the changes at events k to k + n of each lane's interval, zero beyond its end.

    Zero as well up to whole STEPS, which is how kernels take them.
    A lane's changes are one sequence, event by event and channel by channel, as `values` is; entry m of it goes to
    `moves[m * LANES + lane]`. `origin[q]` is the first event of the series of interval q: it moves from zero.
    """
    d = index(channels)
    lanes = index(LANES)
    filled = index((n + STEPS - 1) // STEPS * STEPS) * d
    count[:] = 0
    for lane in range(live):
        q = order[group + lane]
        place[lane] = index(begin[q] + k) * d
        count[lane] = index(max(0, min(n, end[q] - begin[q] - k))) * d
    for four in range(0, LANES, 4):
        skip = index(0)
        if k == 0:
            for lane in range(four, min(four + 4, live)):
                q = order[group + lane]
                if begin[q] == origin[q] and count[lane] > 0:
                    skip = d
        common = min(min(count[four], count[four + 1]), min(count[four + 2], count[four + 3]))
        m = skip
        while m + index(4) <= common:
            load_changes(
                moves, m * lanes + index(four), values,
                place[four] + m, place[four + 1] + m, place[four + 2] + m, place[four + 3] + m, d,
            )  # fmt: skip
            m += index(4)
        for lane in range(four, four + 4):
            if skip > 0 and count[lane] > 0:
                q = order[group + lane]
                for first in range(d):
                    p = place[lane] + first
                    previous = np.float64(values[p - d]) if begin[q] != origin[q] else 0.0
                    moves[first * lanes + index(lane)] = values[p] - previous
            for rest in range(m, count[lane]):
                p = place[lane] + rest
                moves[rest * lanes + index(lane)] = np.float64(values[p]) - np.float64(values[p - d])
            for rest in range(count[lane], filled):
                moves[rest * lanes + index(lane)] = 0.0


@kernel
def announce(group, last, order, begin, end, channels, values):
    """Have the first values of a group fetched before its turn.

    The processor foresees how a lane goes on, but not where it begins.
    """
    d = index(channels)
    line = index(64 // values.itemsize)
    for lane in range(group, min(group + LANES, last)):
        q = order[lane]
        p = index(begin[q]) * d
        stop = p + index(min(BLOCK, end[q] - begin[q])) * d
        while p < stop:
            prefetch(values, p)
            p += line


@kernel
def load_moments(live, order, group, k, n, begin, end, start, stop, times, moments):
    """Fill `moments` with the times of events k to k + n within each lane's interval, its length beyond its end.

    Up to whole STEPS, as `load_steps`.
    """
    filled = (n + STEPS - 1) // STEPS * STEPS
    for lane in range(live):
        q = order[group + lane]
        for s in range(filled):
            e = begin[q] + k + s
            moments[s * LANES + lane] = (times[e] if e < end[q] else stop[q]) - start[q]


@kernel
def count_steps(live, order, group, k, begin, end, channels, steps, at, moves):
    """Fill `moves` with STEPS steps of twice as many letters: the changes from `at`, then ones for their counts.

    The first of the steps is event k of each lane's interval.
    """
    d = index(channels)
    lanes = index(LANES)
    for s in range(index(STEPS)):
        row = s * index(2) * d * lanes
        for i in range(d * lanes):
            moves[row + i] = steps[at + s * d * lanes + i]
        row += d * lanes
        for lane in range(index(live)):
            q = order[group + lane]
            counted = 1.0 if begin[q] + k + np.int64(s) < end[q] else 0.0
            for i in range(d):
                moves[row + i * lanes + lane] = counted


@kernel
def store_lanes(live, order, group, coordinates, out):
    """Write coordinate c of each lane, `coordinates[c * LANES + lane]`, to `out[order[group + lane], c]`."""
    lanes = index(LANES)
    size = index(out.shape[1])
    whole = size // index(4) * index(4)
    flat = out.reshape(-1)
    for four in range(0, live, 4):
        # Idle lanes at the end are written where the first of the four goes, before it.
        a = index(order[group + four])
        b = index(order[group + four + 1]) if four + 1 < live else a
        c = index(order[group + four + 2]) if four + 2 < live else a
        d = index(order[group + four + 3]) if four + 3 < live else a
        for o in range(index(0), whole, index(4)):
            store_rows(
                flat,
                a * size + o,
                b * size + o,
                c * size + o,
                d * size + o,
                coordinates,
                o * lanes + index(four),
                lanes,
            )
    for lane in range(index(live)):
        for o in range(whole, size):
            out[order[index(group) + lane], o] = coordinates[o * lanes + lane]
