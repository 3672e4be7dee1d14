"""From observations to increments, from events to query points, and from these to the events of each interval."""

import numpy as np

from logcde.kernels._jit import index, kernel
from logcde.kernels._simd import prefetch

SHARED = 1024
"""How many observations are a block of `share`."""


@kernel
def increments(first, last, offsets, obs_offsets, channel, value, channels, out):
    """Write each observation's change since the previous one of its channel, for series `first` to `last`."""
    previous = np.empty(channels)
    for series in range(first, last):
        previous[:] = 0.0
        for obs in range(obs_offsets[offsets[series]], obs_offsets[offsets[series + 1]]):
            k = channel[obs]
            out[obs] = value[obs] - previous[k]
            previous[k] = value[obs]


@kernel
def share(first, last, channel, value, offsets, knots, letter, letters, amounts):
    """Write which two levels are next to each observation and what their shares of it are, for some blocks of them.

    Channel k has levels at the increasing `knots[offsets[k]]` to `knots[offsets[k + 1] - 1]`; its letters are `letter`.
    Only columns 1 and 2 are written. Where there is but one level, it is there twice and the second share is 0.
    """
    for obs in range(first * SHARED, min(last * SHARED, channel.size)):
        x = value[obs]
        low = offsets[channel[obs]]
        final = offsets[channel[obs] + 1] - 1
        while low + 1 < final and knots[low + 1] <= x:
            low += 1
        high = min(low + 1, final)
        part = 0.0
        if high > low and x > knots[low]:
            part = min((x - knots[low]) / (knots[high] - knots[low]), 1.0)
        letters[obs, 1] = letter[low]
        letters[obs, 2] = letter[high]
        amounts[obs, 1] = 1.0 - part
        amounts[obs, 2] = part


@kernel
def search(times, low, high, point):
    """The first of the stamps `low` to `high` that is not before `point`.

    From where it would be if the stamps were evenly spread, in growing steps: few reads, and mostly of one place.
    """
    if low >= high or times[low] >= point:
        return low
    guess = foresee(times, low, high, point)
    step = 4
    if times[guess] < point:
        low = guess
        while low + step < high and times[low + step] < point:
            low += step
            step *= 2
        high = min(high, low + step)
    else:
        high = guess
        while high - step > low and times[high - step] >= point:
            high -= step
            step *= 2
        low = max(low, high - step)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def foresee(times, low, high, point):
    """Which of the stamps `low` to `high`, one at least, is near `point` if they are evenly spread."""
    length = times[high - 1] - times[low]
    share = (point - times[low]) / length if length > 0 else 1.0
    return low + int(max(0.0, min(share, 1.0)) * (high - 1 - low))


@kernel
def locate(first, last, offsets, times, horizon, cut_offsets, cuts, series, begin, end, start, stop):
    """Write series, events `begin[q]` to `end[q]` and bounds of every interval q of series `first` to `last`.

    Intervals are half-open; one that ends at the horizon also takes an event there.
    """
    for s in range(first, last):
        event = offsets[s]
        final = offsets[s + 1]
        low = cut_offsets[s]
        high = cut_offsets[s + 1]
        few = (high - low) * 16 < final - event
        if few:
            for c in range(low, high):  # all at once, so that they are not waited for one after another
                prefetch(times, index(foresee(times, offsets[s], final, cuts[c])))
        length = 1
        for c in range(low, high):
            point = cuts[c]
            ahead = event + length
            if ahead < final and times[ahead - 1] < point and times[ahead] >= point:
                event = ahead  # as many events as in the interval before
            elif few:
                event = search(times, event, final, point)
            else:
                while event < final and times[event] < point:
                    event += 1
            q = c - s  # every series has one point more than intervals
            if c > low:
                end[q - 1] = final if point == horizon[s] else event
                stop[q - 1] = point
                length = max(1, event - begin[q - 1])
            if c < high - 1:
                series[q] = s
                begin[q] = event
                start[q] = point


@kernel
def cut_every(first, last, offsets, times, horizon, events, cut_offsets, cuts):
    """Write 0, the stamp of every `events`-th event, and the horizon, for series `first` to `last`."""
    for s in range(first, last):
        low = cut_offsets[s]
        high = cut_offsets[s + 1] - 1
        cuts[low] = 0.0
        for c in range(low + 1, high):
            cuts[c] = times[offsets[s] + (c - low) * events]
        cuts[high] = horizon[s]


@kernel
def openings(offsets, times, obs_offsets, channel, value, first, seen, at_start):
    """Write the first value of each series and channel, whether there is one, and whether it is stamped 0."""
    for series in range(len(offsets) - 1):
        missing = first.shape[1]
        for event in range(offsets[series], offsets[series + 1]):
            for obs in range(obs_offsets[event], obs_offsets[event + 1]):
                k = channel[obs]
                if not seen[series, k]:
                    first[series, k] = value[obs]
                    seen[series, k] = True
                    at_start[series, k] = times[event] == 0.0
                    missing -= 1
            if missing == 0:
                break
