"""Statistics of signals: means of parts of a series and their changes, roughness, counts, quantiles, covariances."""

import itertools

import numpy as np
from jaxtyping import Float32, Int64

from logcde.features.windows import Windows
from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread

MOST_PAIRED = 16
"""Channels of which each pair has a covariance; of more channels, no pair has one."""


def pairs_of(channels: int) -> Int64[np.ndarray, "pair 2"]:
    """All pairs of channels if there are few, else none."""
    pairs = list(itertools.combinations(range(channels), 2)) if channels <= MOST_PAIRED else []
    return np.array(pairs, np.int64).reshape(-1, 2)


def describe(
    signal: Float32[np.ndarray, "series channel window"], windows: Windows
) -> Float32[np.ndarray, "series feature"]:
    """The statistics of each series."""
    channels = signal.shape[1]
    pairs = pairs_of(channels)
    out = np.empty((len(signal), channels * kernels.CHANNEL_SIZE + len(pairs)), np.float32)
    work = windows.count * channels * 8
    spread(kernels.describe_series, work, signal, windows.sums, windows.count, windows.width, pairs, out)
    return out


def names(channels: tuple[str, ...]) -> list[str]:
    """The names of the statistics.

    >>> names(("pulse",))[:4]
    ['mean(pulse) in 1/1', 'mean(pulse) in 1/2', 'mean(pulse) in 2/2', 'change(pulse) to 2/2']
    """
    named = []
    for channel in channels:
        for parts in kernels.SCALES:
            named += [f"mean({channel}) in {number + 1}/{parts}" for number in range(parts)]
            named += [f"change({channel}) to {number + 1}/{parts}" for number in range(1, parts)]
        for parts in kernels.ROUGH:
            for number in range(parts):
                named += [f"{what}({channel}) in {number + 1}/{parts}" for what in ("roughness", "density")]
        for of in (channel, f"step of {channel}"):
            named += [f"{what}({of})" for what in ("mean", "deviation", "least", "greatest")]
            named += [f"quantile({of}, {share})" for share in kernels.SHARES]
        named += [f"{what}({channel})" for what in ("time mean", "time known", "silence")]
    return named + [f"covariance({channels[i]}, {channels[j]})" for i, j in pairs_of(len(channels))]
