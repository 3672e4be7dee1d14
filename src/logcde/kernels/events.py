"""From observations to increments, and from query points to the events of each interval."""

import numpy as np

from logcde.kernels._jit import kernel


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
def locate(first, last, offsets, times, horizon, cut_offsets, cuts, begin, end):
    """Write the events `begin[q]` to `end[q]` of every interval q of series `first` to `last`.

    Intervals are half-open; one that ends at the horizon also takes an event there.
    """
    for series in range(first, last):
        event = offsets[series]
        stop = offsets[series + 1]
        few = (cut_offsets[series + 1] - cut_offsets[series]) * 16 < stop - event
        for c in range(cut_offsets[series], cut_offsets[series + 1]):
            point = cuts[c]
            if few and event < stop and times[event] < point:
                # Where it would be if the stamps were evenly spread, then in growing steps around that: few reads.
                low, high, step = event, stop, 4
                share = (point - times[event]) / (times[stop - 1] - times[event]) if stop - event > 1 else 1.0
                guess = event + int(min(share, 1.0) * (stop - 1 - event))
                if times[guess] < point:
                    low = guess
                    while low + step < stop and times[low + step] < point:
                        low += step
                        step *= 2
                    high = min(stop, low + step)
                else:
                    high = guess
                    while high - step > event and times[high - step] >= point:
                        high -= step
                        step *= 2
                    low = max(event, high - step)
                event = low + np.searchsorted(times[low:high], point)
            else:
                while event < stop and times[event] < point:
                    event += 1
            q = c - series  # every series has one point more than intervals
            if c > cut_offsets[series]:
                end[q - 1] = stop if point == horizon[series] else event
            if c < cut_offsets[series + 1] - 1:
                begin[q] = event


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
