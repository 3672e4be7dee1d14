"""What was observed lately: last values, and means of windows that slide back from the latest event.

Observations are grouped by series, then by channel, in order of time: group `series * channels + channel` begins at
`offsets[group]`. A prefix of a series has the observations before `until`; its latest event is at `end`. Observations
older than `reach` before that are forgotten. Sums run from the latest observation backwards, so what came earlier does
not change their rounding.
"""

import numpy as np

from logcde.kernels._jit import inlined, kernel

COARSE = 4
"""Windows of every channel that end at the latest event, each a quarter as long as the one before."""
BRIEF = 2 + COARSE
"""Features of every channel: last value, its age, means of windows minus the last."""
TOTALS = 2
"""Further features of every channel: the logarithm of 1 plus the number of observations in reach, and their mean."""
SHAPE = 5
"""Features of one channel: last value, its age, and relative to it spread, least and greatest value."""
LAGS = 5
"""Observations before the last one that are read one by one: their values, and how much older they are."""
SCALES = 7
"""Windows that end at the latest event, each half as long as the one before: their means and counts."""
SLIDES = 48
"""Windows of equal length, one behind the other, that end at the last value."""
DETAILS = SHAPE + 2 * LAGS + 2 * SCALES + SLIDES


@inlined
def known_before(times, begin, end, until):
    """The end of the observations before a time, by bisection."""
    while begin < end:
        middle = (begin + end) // 2
        if times[middle] < until:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def latest_events(first, last, series, until, offsets, times, count, end):
    """The number of events of each prefix, and the time of its latest; 0 without any."""
    for prefix in range(first, last):
        begin = offsets[series[prefix]]
        place = known_before(times, begin, offsets[series[prefix] + 1], until[prefix])
        count[prefix] = place - begin
        end[prefix] = times[place - 1] if place > begin else 0.0


@kernel
def describe_channels(first, last, series, until, end, offsets, times, values, channels, reach, out):
    """Brief features (prefix, channel, feature) of all channels, NaN without an observation in reach.

    If there is room for them, `TOTALS` follow.
    """
    count, total = np.empty(COARSE), np.empty(COARSE)
    for prefix in range(first, last):
        for channel in range(channels):
            group = series[prefix] * channels + channel
            begin = offsets[group]
            place = known_before(times, begin, offsets[group + 1], until[prefix]) - 1
            row = out[prefix, channel]
            row[:] = np.nan
            row[BRIEF : BRIEF + 1] = 0.0
            if place < begin or end[prefix] - times[place] > reach:
                continue
            x = values[place]
            row[0], row[1] = x, end[prefix] - times[place]
            count[:], total[:] = 0.0, 0.0
            while place >= begin and end[prefix] - times[place] <= reach:
                change, age, window = values[place] - x, end[prefix] - times[place], reach
                for scale in range(COARSE):
                    if age <= window:
                        total[scale] += change
                        count[scale] += 1.0
                    window /= 4
                place -= 1
            for scale in range(COARSE):
                if count[scale] > 0.0:
                    row[2 + scale] = total[scale] / count[scale]
            row[BRIEF : BRIEF + 1] = np.log1p(count[0])
            row[BRIEF + 1 :] = x + total[0] / count[0]


@kernel
def describe_closely(first, last, series, until, end, channel, offsets, times, values, channels, reach, width, out):
    """Features (prefix, feature) of one channel in detail, NaN where nothing was observed; values minus the last."""
    count, total = np.empty(SCALES), np.empty(SCALES)
    slide, slide_count = np.empty(SLIDES), np.empty(SLIDES)
    for prefix in range(first, last):
        group = series[prefix] * channels + channel
        begin = offsets[group]
        latest = known_before(times, begin, offsets[group + 1], until[prefix]) - 1
        row = out[prefix]
        row[:] = np.nan
        if latest < begin or end[prefix] - times[latest] > reach:
            continue
        x, stamp = values[latest], times[latest]
        count[:], total[:], slide[:], slide_count[:] = 0.0, 0.0, 0.0, 0.0
        square, least, greatest, place = 0.0, 0.0, 0.0, latest
        while place >= begin and end[prefix] - times[place] <= reach:
            change, age, back = values[place] - x, end[prefix] - times[place], latest - place
            if 0 < back <= LAGS:
                row[SHAPE + back - 1], row[SHAPE + LAGS + back - 1] = change, stamp - times[place]
            square += change * change
            least, greatest = min(least, change), max(greatest, change)
            window = reach
            for scale in range(SCALES):
                if age <= window:
                    total[scale] += change
                    count[scale] += 1.0
                window /= 2
            number = int((stamp - times[place]) / width + 0.5)
            if number < SLIDES:
                slide[number] += change
                slide_count[number] += 1.0
            place -= 1
        seen = latest - place
        mean = total[0] / seen
        row[0], row[1] = x, end[prefix] - stamp
        row[2], row[3], row[4] = np.sqrt(max(square / seen - mean * mean, 0.0)), least, greatest
        scales, slides = SHAPE + 2 * LAGS, SHAPE + 2 * LAGS + 2 * SCALES
        for scale in range(SCALES):
            if count[scale] > 0.0:
                row[scales + scale] = total[scale] / count[scale]
            row[scales + SCALES + scale] = np.log1p(count[scale])
        for number in range(SLIDES):
            if slide_count[number] > 0.0:
                row[slides + number] = slide[number] / slide_count[number]
