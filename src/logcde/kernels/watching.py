"""One event of a growing series against the ranges of training, in a time that observing it does not notice."""

import numpy as np

from logcde.kernels._jit import quick

LOW, HIGH, GAP = range(3)
"""Rows of the limits of channels."""
LAST, STRAYS = range(2)
"""Rows of what is kept of channels: the age of the series at the last observation, and the values out of range."""
DENSITY, VALUES, GAPS = 1, 2, 4
"""Bits of the answer."""


@quick
def take_event(age, row, widths, most, limits, strays, window, count, kept, gap):
    """Add an event to the counts, and return which limits are exceeded. `gap` becomes the gap of each channel."""
    found, channels = 0, len(row)
    for k in range(channels):
        x = row[k]
        gap[k] = np.nan
        if np.isnan(x):
            continue
        if x < limits[LOW, k] or x > limits[HIGH, k]:
            kept[STRAYS, k] += 1.0
            if kept[STRAYS, k] >= strays:
                found |= VALUES
        gap[k] = age - kept[LAST, k]
        if gap[k] > limits[GAP, k]:
            found |= GAPS
        kept[LAST, k] = age
    for scale in range(len(widths)):
        current = np.floor(age / widths[scale])
        if current != window[scale]:
            window[scale] = current
            count[scale] = 0.0
        for k in range(channels + 1):
            if k == channels or not np.isnan(row[k]):
                count[scale, k] += 1.0
                if count[scale, k] > most[scale, k]:
                    found |= DENSITY
    return found
