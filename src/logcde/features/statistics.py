"""Statistics of signals: means of parts of a series and their changes, roughness, counts, quantiles, covariances."""

import itertools

import numpy as np
from jaxtyping import Bool, Float32, Int64

from logcde.features.windows import Windows
from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread

MOST_PAIRED = 16
"""Channels of which each pair has a covariance; of more channels, no pair has one."""


def pairs_of(channels: int) -> Int64[np.ndarray, "pair 2"]:
    """All pairs of channels if there are few, else none."""
    pairs = list(itertools.combinations(range(channels), 2)) if channels <= MOST_PAIRED else []
    return np.array(pairs, np.int64).reshape(-1, 2)


def size(channels: int, lean: bool = False) -> int:
    """Number of statistics."""
    return channels * int(LEAN.sum()) if lean else channels * kernels.CHANNEL_SIZE + len(pairs_of(channels))


def describe(
    signal: Float32[np.ndarray, "series channel window"],
    windows: Windows,
    lean: bool = False,
    nan_unobserved: bool = False,
) -> Float32[np.ndarray, "series feature"]:
    """The statistics of each series; if `lean`, those of `LEAN` only; NaN for channels that it never observes, or 0."""
    channels = signal.shape[1]
    pairs = pairs_of(0 if lean else channels)
    out = np.empty((len(signal), channels * kernels.CHANNEL_SIZE + len(pairs)), np.float32)
    work = windows.count * channels * 8
    spread(kernels.describe_series, work, signal, windows.sums, windows.count, windows.width, pairs, out)
    if nan_unobserved:
        unobserved = windows.observations.sum(axis=2) == 0
        out[:, : channels * kernels.CHANNEL_SIZE][np.repeat(unobserved, kernels.CHANNEL_SIZE, axis=1)] = np.nan
    return np.ascontiguousarray(out[:, np.tile(LEAN, channels)]) if lean else out


def names(channels: tuple[str, ...], lean: bool = False) -> list[str]:
    """The names of the statistics.

    >>> names(("pulse",))[:4]
    ['mean(pulse) in 1/1', 'mean(pulse) in 1/2', 'mean(pulse) in 2/2', 'change(pulse) to 2/2']
    """
    named = []
    for channel in channels:
        own = _names_of(channel)
        named += [one for one, kept in zip(own, LEAN, strict=True) if kept] if lean else own
    pairs = pairs_of(0 if lean else len(channels))
    return named + [f"covariance({channels[i]}, {channels[j]})" for i, j in pairs]


def _names_of(channel: str) -> list[str]:
    named = []
    for parts in kernels.SCALES:
        named += [f"mean({channel}) in {number + 1}/{parts}" for number in range(parts)]
        named += [f"change({channel}) to {number + 1}/{parts}" for number in range(1, parts)]
    for parts in kernels.ROUGH:
        for number in range(parts):
            named += [f"{what}({channel}) in {number + 1}/{parts}" for what in ("roughness", "density")]
    for of in (channel, f"step of {channel}"):
        named += [f"{what}({of})" for what in ("mean", "deviation", "least", "greatest")]
        named += [f"quantile({of}, {share})" for share in kernels.SHARES]
    named += [f"last({channel})", *(f"mean({channel}) - last in the last {back} windows" for back in kernels.BACK)]
    return named + [f"{what}({channel})" for what in ("time mean", "time known", "silence")]


def _lean() -> Bool[np.ndarray, "feature"]:
    """Which statistics of a channel are lean: coarse parts, the last part of every scale, extremes, times."""
    parts = [
        [scale <= COARSE or number == scale - 1 for number in numbers]
        for scale in kernels.SCALES
        for numbers in (range(scale), range(1, scale))
    ]
    rough = [[scale <= COARSE // 2] * 2 * scale for scale in kernels.ROUGH]
    quantiles = [False] * len(kernels.SHARES)
    signal, steps = [False, True, True, True, *quantiles], [False, True, False, False, *quantiles]
    recent = [True] * (1 + len(kernels.BACK))
    return np.array([*itertools.chain(*parts, *rough), *signal, *steps, *recent, *[True] * kernels.ENDS])


COARSE = 4
"""Scales up to this have all their parts among the lean statistics."""
LEAN = _lean()
