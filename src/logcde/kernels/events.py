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
            if few:
                event += np.searchsorted(times[event:stop], point)
            else:
                while event < stop and times[event] < point:
                    event += 1
            q = c - series  # every series has one point more than intervals
            if c > cut_offsets[series]:
                end[q - 1] = stop if point == horizon[series] else event
            if c < cut_offsets[series + 1] - 1:
                begin[q] = event
