"""Random asynchronous streams of three channels, with horizons of their own."""

import numpy as np

from logcde.streams import Keep, Streams

CHANNELS = ("a", "b", "c")


def random_streams(seed: int = 0, count: int = 12, *, events: int = 25, width: float = 0.5, horizon=None) -> Streams:
    """Some events are at multiples of `width` and at the horizon; the last series has no observation of "c"."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(3, 17, size=count) * width + rng.choice([0.0, 0.3 * width], size=count)
    ends = ends if horizon is None else np.full(count, horizon)
    stamps, values = [], []
    for number, end in enumerate(ends):
        some = rng.uniform(0, end, size=rng.integers(1, events))
        edges = width * rng.integers(0, int(end / width) + 1, size=3)
        times = np.unique(np.concatenate([some, edges, [end] if number % 2 else []]))
        rows = np.cumsum(rng.normal(size=(len(times), 3)), axis=0)
        rows[rng.uniform(size=rows.shape) < 0.5] = np.nan
        rows[np.isnan(rows).all(axis=1), 0] = 1.0
        stamps.append(times)
        values.append(rows)
    values[-1][:, 2] = np.nan
    values[-1][np.isnan(values[-1]).all(axis=1), 0] = 2.0
    return Streams.from_arrays(stamps, values, CHANNELS, ends)


def empty_series() -> Streams:
    """One series without an observation."""
    return Streams.from_arrays([[]], [np.empty((0, 3))], CHANNELS, horizon=3.0, empty=Keep())


def rows_of(streams: Streams) -> tuple[np.ndarray, np.ndarray]:
    """Times of the events of one series, and one number for each event and channel, NaN if not observed."""
    rows = np.full((len(streams.times), len(streams.schema.channels)), np.nan)
    rows[np.repeat(np.arange(len(rows)), np.diff(streams.obs_offsets)), streams.channel] = streams.value
    return streams.times, rows
