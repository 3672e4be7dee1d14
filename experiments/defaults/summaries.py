"""Fixed-size rows for learners on tables: interpolation and statistics of each channel. NumPy only.

`experiments.defaults.peer_process` imports this in an environment without `logcde`.
"""

import numpy as np

QUARTERS = 4


def interpolated(values: np.ndarray) -> np.ndarray:
    """Fill gaps linearly; before the first and after the last observation, its value; 0 if there is none.

    Args:
        values: (series, channel, step), NaN where not observed.

    >>> interpolated(np.array([[[np.nan, 1.0, np.nan, 3.0, np.nan]]])).ravel().tolist()
    [1.0, 1.0, 2.0, 3.0, 3.0]
    """
    filled = np.zeros(values.shape)
    steps = np.arange(values.shape[2])
    for place in np.ndindex(values.shape[:2]):
        seen = np.flatnonzero(np.isfinite(values[place]))
        if len(seen):
            filled[place] = np.interp(steps, seen, values[place][seen])
    return filled


def summarised(series: np.ndarray) -> np.ndarray:
    """Statistics of each channel and of its first differences, and means of its quarters: 18 for each channel.

    Args:
        series: (series, channel, step) without gaps.

    >>> summarised(np.arange(8.0).reshape(1, 1, 8)).round(2).tolist()[0][:7]
    [3.5, 2.29, 0.0, 7.0, 3.5, 0.0, 7.0]
    """
    quarters = [part.mean(axis=2) for part in np.array_split(series, QUARTERS, axis=2)]
    return np.concatenate([*_statistics(series), *_statistics(np.diff(series, axis=2)), *quarters], axis=1)


def _statistics(series: np.ndarray) -> list[np.ndarray]:
    return [
        series.mean(axis=2),
        series.std(axis=2),
        series.min(axis=2),
        series.max(axis=2),
        np.median(series, axis=2),
        series[..., 0],
        series[..., -1],
    ]


def observed_summaries(values: np.ndarray) -> np.ndarray:
    """Last, mean, least, greatest, standard deviation, count, and last minus first of what was observed.

    Args:
        values: (series, step, channel), NaN where not observed.

    Returns:
        (series, 7 channels), NaN for a channel without observations, whose count is 0.

    >>> observed_summaries(np.array([[[2.0], [np.nan], [6.0]]])).tolist()
    [[6.0, 4.0, 2.0, 6.0, 2.0, 2.0, 4.0]]
    """
    seen = np.isfinite(values)
    count = seen.sum(axis=1).astype(float)
    some = np.where(count > 0, count, np.nan)
    mean = np.where(seen, values, 0.0).sum(axis=1) / some
    spread = np.sqrt(np.square(np.where(seen, values - mean[:, None], 0.0)).sum(axis=1) / some)
    least = np.where(count > 0, np.where(seen, values, np.inf).min(axis=1), np.nan)
    greatest = np.where(count > 0, np.where(seen, values, -np.inf).max(axis=1), np.nan)
    last, first = forward_filled(values)[:, -1], forward_filled(values[:, ::-1])[:, -1]
    return np.concatenate([last, mean, least, greatest, spread, count, last - first], axis=1)


def forward_filled(values: np.ndarray) -> np.ndarray:
    """The last observation at or before each step, NaN before the first; `values` is (series, step, channel).

    >>> forward_filled(np.array([[[np.nan], [1.0], [np.nan]]])).ravel().tolist()
    [nan, 1.0, 1.0]
    """
    steps = np.arange(values.shape[1])[None, :, None]
    latest = np.maximum.accumulate(np.where(np.isfinite(values), steps, 0), axis=1)
    return np.take_along_axis(values, latest, axis=1)
