"""Rows of windows: what each window adds to what is known of a channel, from its own sums and those before it.

A row depends on no later window, so that rows of finished windows stay as they are when a series grows.
"""

import numpy as np

from logcde.kernels._jit import inlined, kernel
from logcde.kernels.windows import COUNT, TOTAL, VARIATION

KEEP = (1.0, float(np.exp(-1 / 8)), float(np.exp(-1 / 2)))
"""What is kept of sums from one window to the next: all, and those that forget in eight and in two windows."""
QUANTITIES = len(KEEP) + 6
"""Numbers of a channel in a row: `LEVELS` means, each less the one before, then those of `NAMES`."""
VARIED, SILENT, BEFORE = 2 * len(KEEP), 2 * len(KEEP) + 1, 2 * len(KEEP) + 2
STATE = 2 * len(KEEP) + 3
"""What is kept of a channel: counts and totals at each scale, squared increments, windows since an event, signal."""


@inlined
def add_window(sums, kept, shrinkage, out):
    """Take the sums (quantity,) of one more window of a channel, and write its part of the row.

    The mean over all windows so far is shrunk to 0, the mean of training; the mean that forgets in eight windows is
    shrunk to it, and so on down to the window's own mean, the signal.
    """
    count, total, scales = sums[COUNT], sums[TOTAL], len(KEEP)
    mean = 0.0
    for scale in range(scales):
        kept[2 * scale] = KEEP[scale] * kept[2 * scale] + count
        kept[2 * scale + 1] = KEEP[scale] * kept[2 * scale + 1] + total
        finer = (kept[2 * scale + 1] + shrinkage * mean) / (kept[2 * scale] + shrinkage)
        out[scale] = finer - mean
        mean = finer
    signal = (total + shrinkage * mean) / (count + shrinkage)
    kept[VARIED] = KEEP[scales - 1] * kept[VARIED] + sums[VARIATION]
    kept[SILENT] = 0.0 if count > 0.0 else kept[SILENT] + 1.0
    out[scales] = signal - mean
    out[scales + 1] = signal
    out[scales + 2] = signal - kept[BEFORE]
    # Bounded functions of counts and gaps: a feed that is denser than those of training moves them little.
    out[scales + 3] = count / (1.0 + count)
    out[scales + 4] = kept[SILENT] / (1.0 + kept[SILENT]) if kept[0] > 0.0 else 1.0
    out[scales + 5] = np.sqrt(kept[VARIED] / (kept[2 * scales - 2] + shrinkage))
    kept[BEFORE] = signal


@kernel
def rows_of_windows(first, last, sums, windows, shrinkage, centre, spread, limit, out):
    """Standardised rows of all windows of the series `first` to `last`."""
    channels = sums.shape[1]
    raw = np.zeros(QUANTITIES)
    for series in range(first, last):
        for k in range(channels):
            kept, begin = np.zeros(STATE), k * QUANTITIES
            for window in range(windows[series]):
                add_window(sums[series, k, window], kept, shrinkage, raw)
                for place in range(QUANTITIES):
                    x = (raw[place] - centre[begin + place]) / spread[begin + place]
                    out[series, window, begin + place] = min(max(x, -limit), limit)
