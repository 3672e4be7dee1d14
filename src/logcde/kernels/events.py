"""Loops over observations and events: increments, soft bins, the events of each query interval, random subsets."""

import numpy as np

from logcde.kernels._jit import index, kernel
from logcde.kernels._simd import prefetch

OBS_BLOCK = 1024
"""Observations in a block of `split_between_knots`."""


@kernel
def increments(first, last, events, channels, out):
    """Write each observation's change since the previous one of its channel, for series `first` to `last`."""
    offsets, obs_offsets, channel, value = events.offsets, events.obs_offsets, events.channel, events.value
    previous = np.empty(channels)
    for series in range(first, last):
        previous[:] = 0.0
        for obs in range(obs_offsets[offsets[series]], obs_offsets[offsets[series + 1]]):
            k = channel[obs]
            out[obs] = value[obs] - previous[k]
            previous[k] = value[obs]


@kernel
def squared_increments(first, last, events, channels, out):
    """Write the square of each observation's change, 0 for the first of its channel, for series `first` to `last`."""
    offsets, obs_offsets, channel, value = events.offsets, events.obs_offsets, events.channel, events.value
    previous = np.empty(channels)
    for series in range(first, last):
        previous[:] = np.nan
        for obs in range(obs_offsets[offsets[series]], obs_offsets[offsets[series + 1]]):
            k = channel[obs]
            change = value[obs] - previous[k]
            out[obs] = change * change if change == change else 0.0
            previous[k] = value[obs]


@kernel
def split_between_knots(first, last, channel, value, offsets, knots, letter, letters, amounts):
    """Split each observation linearly between the two nearest knots of its channel, for blocks `first` to `last`.

    Channel k has the increasing knots `knots[offsets[k]]` to `knots[offsets[k + 1] - 1]`, whose letters are `letter`.
    Writes columns 1 and 2 of `letters` and `amounts`. A channel with a single knot gets it twice, the second time with
    amount 0.
    """
    for obs in range(first * OBS_BLOCK, min(last * OBS_BLOCK, channel.size)):
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
    """The first of the events `low` to `high` that is not before `point`.

    Starts where the event would be if the times were evenly spaced and widens the search in growing steps: few reads,
    and most of them close together.
    """
    if low >= high or times[low] >= point:
        return low
    guess = guess_event(times, low, high, point)
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
def guess_event(times, low, high, point):
    """Which of the events `low` to `high`, at least one, is near `point` if their times are evenly spaced."""
    length = times[high - 1] - times[low]
    share = (point - times[low]) / length if length > 0 else 1.0
    return low + int(max(0.0, min(share, 1.0)) * (high - 1 - low))


@kernel
def locate(first, last, events, cut_offsets, cuts, intervals):
    """Fill in all fields of the intervals of series `first` to `last`.

    Series s has the query points `cuts[cut_offsets[s]]` to `cuts[cut_offsets[s + 1] - 1]`. Intervals are half-open; one
    that ends at the horizon also takes an event there.
    """
    offsets, times, horizon = events.offsets, events.times, events.horizon
    series, begin, end, start, stop = intervals
    for s in range(first, last):
        event = offsets[s]
        final = offsets[s + 1]
        low = cut_offsets[s]
        high = cut_offsets[s + 1]
        few = (high - low) * 16 < final - event
        if few:
            for c in range(low, high):  # all at once, so that the reads overlap
                prefetch(times, index(guess_event(times, offsets[s], final, cuts[c])))
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
            q = c - s  # every series has one query point more than intervals
            if c > low:
                end[q - 1] = final if point == horizon[s] else event
                stop[q - 1] = point
                length = max(1, event - begin[q - 1])
            if c < high - 1:
                series[q] = s
                begin[q] = event
                start[q] = point


@kernel
def locate_windows(first, last, events, last_of_series, intervals):
    """Fill in `begin` and `end` of intervals `first` to `last`, which may overlap.

    Intervals are half-open; one that is `last_of_series` also takes an event at its end.
    """
    offsets, times = events.offsets, events.times
    series, begin, end, start, stop = intervals
    for q in range(first, last):
        low = offsets[series[q]]
        high = offsets[series[q] + 1]
        begin[q] = search(times, low, high, start[q])
        end[q] = high if last_of_series[q] else search(times, begin[q], high, stop[q])


@kernel
def cut_every(first, last, offsets, times, horizon, events, cut_offsets, cuts):
    """Write 0, the time of every `events`-th event, and the horizon, for series `first` to `last`."""
    for s in range(first, last):
        low = cut_offsets[s]
        high = cut_offsets[s + 1] - 1
        cuts[low] = 0.0
        for c in range(low + 1, high):
            cuts[c] = times[offsets[s] + (c - low) * events]
        cuts[high] = horizon[s]


@kernel
def first_values(events, first, seen, at_start):
    """Write the first value of each series and channel, whether there is one, and whether its time is 0."""
    offsets, times, obs_offsets = events.offsets, events.times, events.obs_offsets
    channel, value = events.channel, events.value
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


@kernel
def choose(offsets, group, groups, share, chance, out):
    """Mark a random subset of round(share * n) items, at least one, of the n items of each row and group.

    Row r has the items `offsets[r]` to `offsets[r + 1]`, item i is in group `group[i]` and has a uniform number
    `chance[i]` in [0, 1). An item is taken with probability (still to take) / (still to come), which makes every subset
    of this size equally likely.
    """
    coming = np.empty(groups, np.int64)
    wanted = np.empty(groups, np.int64)
    for row in range(len(offsets) - 1):
        coming[:] = 0
        for item in range(offsets[row], offsets[row + 1]):
            coming[group[item]] += 1
        for k in range(groups):
            wanted[k] = min(coming[k], max(1, np.int64(np.rint(share * coming[k]))))
        for item in range(offsets[row], offsets[row + 1]):
            k = group[item]
            taken = chance[item] * coming[k] < wanted[k]
            out[item] = taken
            wanted[k] -= taken
            coming[k] -= 1
