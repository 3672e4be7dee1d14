"""Windows of one width: sums over the observations of each channel, shrunk means, responses of random units.

Sums are (series, channel, window, quantity), signals (series, channel, window). A series has its own number of windows;
entries beyond it are zero and never read.
"""

import numpy as np

from logcde.kernels._jit import index, inlined, kernel, relaxed

COUNT, TOTAL, VARIATION, HELD, INTEGRAL = range(5)
QUANTITIES = 5
"""Observations, sum of their values, sum of squared increments, time with a latest value, integral of that value."""
TAPS, HEAVY = 9, 3
"""Taps of a unit: weight 2 for the heavy ones, -1 for the others."""


@inlined
def window_of(time, width, windows):
    """The window of a stamp; what lies at or beyond the end of the last one belongs to it."""
    return min(int(time / width), windows - 1)


@inlined
def hold(sums, latest, stamp, time, width, windows):
    """Keep the latest value of a channel from `stamp` to `time`, across all windows between."""
    first, last = window_of(stamp, width, windows), window_of(time, width, windows)
    for window in range(first, last + 1):
        begin = stamp if window == first else window * width
        end = time if window == last else (window + 1) * width
        sums[window, HELD] += end - begin
        sums[window, INTEGRAL] += latest * (end - begin)


@kernel
def observe(sums, latest, stamp, x, time, width, windows):
    """Add an observation to the sums (window, quantity) of a channel; `latest` at `stamp` is the one before it."""
    window = window_of(time, width, windows)
    if not np.isnan(latest):
        hold(sums, latest, stamp, time, width, windows)
        sums[window, VARIATION] += (x - latest) ** 2
    sums[window, COUNT] += 1.0
    sums[window, TOTAL] += x


@kernel
def observe_channels(sums, latest, stamp, row, time, width, windows):
    """Add an event to the sums (channel, window, quantity) of a series, NaN = not observed, and to its latest ones."""
    for k in range(row.size):
        if not np.isnan(row[k]):
            observe(sums[k], latest[k], stamp[k], row[k], time, width, windows)
            latest[k], stamp[k] = row[k], time


@kernel
def hold_until(sums, latest, stamp, time, width, windows):
    """Keep the latest values of all channels until the end of their series."""
    for k in range(latest.size):
        if not np.isnan(latest[k]):
            hold(sums[k], latest[k], stamp[k], time, width, windows)


@kernel
def sum_windows(first, last, offsets, times, obs_offsets, channel, value, horizon, width, windows, sums):
    """Sums of all windows of the series `first` to `last`."""
    channels = sums.shape[1]
    latest, stamp = np.empty(channels), np.empty(channels)
    for series in range(first, last):
        latest[:] = np.nan
        for event in range(offsets[series], offsets[series + 1]):
            time = times[event]
            for place in range(obs_offsets[event], obs_offsets[event + 1]):
                k, x = channel[place], value[place]
                observe(sums[series, k], latest[k], stamp[k], x, time, width, windows[series])
                latest[k], stamp[k] = x, time
        for k in range(channels):
            if not np.isnan(latest[k]):
                hold(sums[series, k], latest[k], stamp[k], horizon[series], width, windows[series])


@kernel
def shrink_means(first, last, sums, windows, shrinkage, signal):
    """Means of windows, each shrunk to its parent's, from the whole series down to single windows.

    A parent joins two windows. The mean of a window with `count` observations and the interpolated mean of its parents
    get the weights `count` and `shrinkage`. So a window without observations takes the mean of its neighbourhood.
    """
    longest = signal.shape[2]
    count, total = np.zeros(2 * longest + 64), np.zeros(2 * longest + 64)
    mean, below = np.zeros(longest + 1), np.zeros(longest + 1)
    start, size = np.zeros(64, np.int64), np.zeros(64, np.int64)
    for series in range(first, last):
        for k in range(signal.shape[1]):
            n = windows[series]
            start[0], size[0], level = 0, n, 0
            for window in range(n):
                count[window], total[window] = sums[series, k, window, COUNT], sums[series, k, window, TOTAL]
            while size[level] > 1:
                a, b, m = start[level], start[level] + size[level], size[level]
                half = (m + 1) // 2
                for window in range(half):
                    two = 2 * window + 1 < m
                    count[b + window] = count[a + 2 * window] + (count[a + 2 * window + 1] if two else 0.0)
                    total[b + window] = total[a + 2 * window] + (total[a + 2 * window + 1] if two else 0.0)
                level += 1
                start[level], size[level] = b, half
            mean[0] = total[start[level]] / max(count[start[level]], 1.0)
            while level > 0:
                level -= 1
                a, m, half = start[level], size[level], size[level + 1]
                for window in range(m):
                    parent = window // 2
                    side = min(parent + 1, half - 1) if window % 2 else max(parent - 1, 0)
                    prior = 0.75 * mean[parent] + 0.25 * mean[side]
                    below[window] = (total[a + window] + shrinkage * prior) / (count[a + window] + shrinkage)
                for window in range(m):
                    mean[window] = below[window]
            for window in range(n):
                signal[series, k, window] = mean[window]


@inlined
def add_channels(mixed, signal, channels, begin, end):
    """The sum of the unit's channels."""
    n = index(len(mixed))
    for place in range(begin, end):
        row = signal[channels[place]]
        for window in range(n):
            mixed[window] += row[window]


@relaxed
def respond(mixed, heavy, dilation, margin, response):
    """Responses of one unit at all windows, from the mixed channels with `margin` zeros on either side."""
    n, reach = index(len(response)), margin - TAPS // 2 * dilation
    a, b, c = mixed[reach:], mixed[reach + dilation :], mixed[reach + 2 * dilation :]
    d, e, f = mixed[reach + 3 * dilation :], mixed[reach + 4 * dilation :], mixed[reach + 5 * dilation :]
    g, h, i = mixed[reach + 6 * dilation :], mixed[reach + 7 * dilation :], mixed[reach + 8 * dilation :]
    x, y, z = (
        mixed[reach + heavy[0] * dilation :],
        mixed[reach + heavy[1] * dilation :],
        mixed[reach + heavy[2] * dilation :],
    )
    three = np.float32(3.0)
    for w in range(n):
        light = ((a[w] + b[w]) + (c[w] + d[w])) + ((e[w] + f[w]) + (g[w] + h[w])) + i[w]
        response[w] = three * (x[w] + y[w] + z[w]) - light


@inlined
def pooled_range(dilation, padded, n):
    """The windows that are pooled: all of them, or those whose taps all lie within the series, if there are any."""
    reach = TAPS // 2 * dilation
    if padded or n <= 2 * reach:
        return 0, n
    return reach, n - reach


@kernel
def unit_responses(series, unit, signal, windows, heavy, dilation, padded, offsets, channels):
    """Responses of one unit over the pooled windows of one series."""
    n, margin = windows[series], TAPS // 2 * dilation[unit]
    mixed, response = np.zeros(2 * margin + n, np.float32), np.zeros(n, np.float32)
    add_channels(mixed[margin : margin + n], signal[series], channels, offsets[unit], offsets[unit + 1])
    respond(mixed, heavy[unit], dilation[unit], margin, response)
    begin, end = pooled_range(dilation[unit], padded[unit], n)
    return response[begin:end]


@kernel
def pool_units(first, last, signal, windows, heavy, dilation, padded, offsets, channels, bias, out):
    """Share of the pooled windows in which each unit exceeds each of its biases."""
    longest, margin = signal.shape[2], TAPS // 2 * dilation.max()
    mixed, responses = np.zeros(2 * margin + longest, np.float32), np.zeros(longest, np.float32)
    for series in range(first, last):
        n = windows[series]
        own, response = mixed[margin : margin + n], responses[:n]
        mixed[:] = 0.0
        for unit in range(len(dilation)):
            own[:] = 0.0
            add_channels(own, signal[series], channels, offsets[unit], offsets[unit + 1])
            respond(mixed, heavy[unit], dilation[unit], margin, response)
            begin, end = pooled_range(dilation[unit], padded[unit], n)
            for b in range(bias.shape[1]):
                out[series, unit * bias.shape[1] + b] = share_above(response[begin:end], bias[unit, b])


@relaxed
def share_above(response, bias):
    """Share of the responses above a bias."""
    above, one, zero = np.float32(0.0), np.float32(1.0), np.float32(0.0)
    for window in range(index(len(response))):
        above += one if response[window] > bias else zero
    return above / np.float32(len(response))


SCALES = (1, 2, 4, 8, 16)
"""Parts of a series whose means are described."""
ROUGH = (1, 2, 4)
"""Parts of a series whose roughness and density are described."""
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of a signal and of its changes."""
MOMENTS = 4
ENDS = 3
EVERY, SIGN, LOW = np.uint32(0xFFFFFFFF), np.uint32(0x80000000), np.uint32(0xFF)
"""Bits of a number of four bytes: all, the sign of a float, the lowest byte."""
FEW = 64
"""Numbers below which comparisons sort as fast."""
BACK = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of windows, counted back from the end of a series, of which means are compared with the last value."""
CHANNEL_SIZE = sum(2 * parts - 1 for parts in SCALES) + 2 * sum(ROUGH) + 2 * (MOMENTS + len(SHARES)) + ENDS
CHANNEL_SIZE += 1 + len(BACK)
"""Statistics of one channel."""


@inlined
def part_of(number, parts, n):
    """Begin and end of one of `parts` equal parts of `n` windows; each has at least one window."""
    begin = number * n // parts
    return begin, max(begin + 1, (number + 1) * n // parts)


@kernel
def sort(values, ordered, keys, starts):
    """Sort finite numbers of single precision byte by byte, in a tenth of the time that comparisons take.

    Read as an unsigned number, a float has the order of its value if it is positive, and the opposite one if negative.

    Args:
        values: Numbers (n,).
        ordered: Receives them in order (n,).
        keys: Space for as many unsigned numbers of four bytes.
        starts: Space (byte, value) for the place of the next number with each value of each byte.
    """
    n = index(len(values))
    for i in range(n):
        ordered[i] = values[i]
    if n < FEW:
        ordered.sort()
        return
    starts[:] = 0
    bits = ordered.view(np.uint32)
    for i in range(n):
        word = bits[i] ^ (EVERY if bits[i] & SIGN else SIGN)
        bits[i] = word
        for byte in range(4):
            starts[byte, (word >> np.uint32(8 * byte)) & LOW] += 1
    for byte in range(4):
        total = 0
        for value in range(256):
            count = starts[byte, value]
            starts[byte, value] = total
            total += count
    here, there = bits, keys
    for byte in range(4):
        for i in range(n):
            word = here[i]
            value = (word >> np.uint32(8 * byte)) & LOW
            there[starts[byte, value]] = word
            starts[byte, value] += 1
        here, there = there, here
    for i in range(n):
        bits[i] = bits[i] ^ (SIGN if bits[i] & SIGN else EVERY)


@inlined
def describe(values, ordered, keys, starts, out):
    """Mean, standard deviation, least, greatest and quantiles."""
    n = len(values)
    mean = values.sum() / n
    square = 0.0
    for x in values:
        square += (x - mean) ** 2
    sort(values, ordered, keys, starts)
    out[0], out[1], out[2], out[3] = mean, np.sqrt(square / n), ordered[0], ordered[n - 1]
    for q in range(len(SHARES)):
        place = SHARES[q] * (n - 1)
        low = int(place)
        high = min(low + 1, n - 1)
        out[MOMENTS + q] = ordered[low] + (place - low) * (ordered[high] - ordered[low])


@inlined
def added(sums, quantity, begin, end):
    """One quantity, added up over windows."""
    total = 0.0
    for window in range(begin, end):
        total += sums[window, quantity]
    return total


@inlined
def describe_recent(sums, out):
    """Mean of the last window with observations; means of events in the last windows minus that, 0 without any."""
    n = len(sums)
    latest = n - 1
    while latest > 0 and sums[latest, COUNT] == 0.0:
        latest -= 1
    last = sums[latest, TOTAL] / max(sums[latest, COUNT], 1.0)
    out[0] = last
    count, total, window = 0.0, 0.0, n
    for scale in range(len(BACK)):
        while window > max(n - BACK[scale], 0):
            window -= 1
            count += sums[window, COUNT]
            total += sums[window, TOTAL]
        out[1 + scale] = total / count - last if count > 0.0 else 0.0


@inlined
def is_silent(signal, sums):
    """Whether a channel was never observed, and its signal is zero."""
    for window in range(len(signal)):  # noqa: SIM110, which Numba does not compile
        if sums[window, COUNT] != 0.0 or signal[window] != 0.0:
            return False
    return True


@kernel
def describe_channel(signal, sums, width, ordered, changes, keys, starts, out):
    """Statistics of one channel of a series, from its signal (window,) and sums (window, quantity)."""
    n, place = len(signal), 0
    if is_silent(signal, sums):
        out[:] = 0.0
        out[CHANNEL_SIZE - 1] = n * width
        return
    for parts in SCALES:
        before = 0.0
        for number in range(parts):
            begin, end = part_of(number, parts, n)
            mean = signal[begin:end].sum() / (end - begin)
            out[place + number] = mean
            if number:
                out[place + parts + number - 1] = mean - before
            before = mean
        place += 2 * parts - 1
    for parts in ROUGH:
        for number in range(parts):
            begin, end = part_of(number, parts, n)
            count = added(sums, COUNT, begin, end)
            out[place] = np.sqrt(added(sums, VARIATION, begin, end) / max(count, 1.0))
            out[place + 1] = np.log1p(count)
            place += 2
    describe(signal, ordered[:n], keys, starts, out[place:])
    place += MOMENTS + len(SHARES)
    changes[0], steps = 0.0, max(n - 1, 1)
    for window in range(n - 1):
        changes[window] = signal[window + 1] - signal[window]
    describe(changes[:steps], ordered[:steps], keys, starts, out[place:])
    place += MOMENTS + len(SHARES)
    describe_recent(sums, out[place:])
    place += 1 + len(BACK)
    held = added(sums, HELD, 0, n)
    out[place] = added(sums, INTEGRAL, 0, n) / held if held > 0.0 else 0.0
    out[place + 1] = held
    silent = 0
    while silent < n and sums[n - 1 - silent, COUNT] == 0.0:
        silent += 1
    out[place + 2] = silent * width


@kernel
def describe_series(first, last, signal, sums, windows, width, pairs, out):
    """Statistics of all channels of a series, and the covariance of the signals of each pair of channels."""
    longest = signal.shape[2]
    ordered, changes, keys = np.empty(longest, np.float32), np.empty(longest), np.empty(longest, np.uint32)
    starts = np.empty((4, 256), np.int64)
    for series in range(first, last):
        n, channels = windows[series], signal.shape[1]
        for k in range(channels):
            row = out[series, k * CHANNEL_SIZE : (k + 1) * CHANNEL_SIZE]
            own, means = sums[series, k, :n], signal[series, k, :n]
            describe_channel(means, own, width, ordered, changes, keys, starts, row)
        for number in range(len(pairs)):
            a, b = signal[series, pairs[number, 0], :n], signal[series, pairs[number, 1], :n]
            centre, other, product = a.sum() / n, b.sum() / n, 0.0
            for window in range(n):
                product += (a[window] - centre) * (b[window] - other)
            out[series, channels * CHANNEL_SIZE + number] = product / n
