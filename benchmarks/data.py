"""Generated data, and the windows that peers need: dense series, asynchronous events, batches of equally long paths.

Windows are sorted by length and padded, bucket by bucket, with their last point, which leaves a signature unchanged.
Asynchronous observations become the rectilinear path first (time moves, then values and counts jump). All of it is
vectorised NumPy, and all of it is part of what a peer costs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


def dense(rng: np.random.Generator, series: int, steps: int, width: int) -> np.ndarray:
    """Paths (series, steps + 1, width) in single precision whose first point is the base point zero.

    >>> dense(np.random.default_rng(0), 2, 3, 1).shape
    (2, 4, 1)
    """
    paths = np.zeros((series, steps + 1, width), np.float32)
    paths[:, 1:] = rng.normal(size=(series, steps, width))
    return paths


def random_cuts(rng: np.random.Generator, series: int, steps: int, intervals: int) -> np.ndarray:
    """Random cuts (series, intervals + 1) from 0 to `steps`, others for each series.

    >>> random_cuts(np.random.default_rng(0), 1, 4, 3).tolist()
    [[0, 1, 2, 4]]
    """
    # The last inner cut leaves two steps, so that it lies before the stamp of the last sample.
    inner = np.argsort(rng.random((series, steps - 2)), axis=1)[:, : intervals - 1] + 1
    ends = np.zeros((series, 1), inner.dtype)
    return np.concatenate([ends, np.sort(inner, axis=1), ends + steps], axis=1)


@dataclass(frozen=True)
class Events:
    """Asynchronous series with the same number of events in [0, 1), each of which observes as many channels.

    Attributes:
        times: Stamps (series, event).
        channel: Observed channels (series, event, observed), in increasing order.
        value: Their values.
        channels: Number of channels.
    """

    times: np.ndarray
    channel: np.ndarray
    value: np.ndarray
    channels: int

    @classmethod
    def random(cls, rng: np.random.Generator, series: int, events: int, channels: int, observed: int) -> "Events":
        """Draw uniform stamps, random channels and normal values.

        >>> Events.random(np.random.default_rng(0), 2, 5, 4, 3).value.shape
        (2, 5, 3)
        """
        times = np.sort(rng.random((series, events)), axis=1)
        channel = np.argsort(rng.random((series, events, channels)), axis=2)[..., :observed]
        value = rng.normal(size=(series, events, observed))
        return cls(times, np.sort(channel, axis=2), value, channels)

    def moves(self) -> np.ndarray:
        """Change of each value since the previous observation of its channel, from zero the first time."""
        series = np.arange(len(self.times))[:, None, None] * self.channels
        key = (self.channel + series).ravel()
        order = np.argsort(key, kind="stable")
        moves, last = np.empty(key.size), self.value.ravel()[order]
        steps = np.diff(last, prepend=0.0)
        first = np.diff(key[order], prepend=-1) != 0
        steps[first] = last[first]
        moves[order] = steps
        return moves.reshape(self.channel.shape)

    def as_matrix(self) -> np.ndarray:
        """Values (series, event, channel) with NaN where a channel was not observed."""
        values = np.full((*self.times.shape, self.channels), np.nan)
        np.put_along_axis(values, self.channel, self.value, axis=2)
        return values


@dataclass(frozen=True)
class Windows:
    """Batches of equally long paths (window, point, letter); row r of the concatenated batches is window `order[r]`."""

    batches: list[np.ndarray]
    order: np.ndarray

    def restore(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Concatenate one row for each window, batch after batch, and restore the order of the windows."""
        joined = np.concatenate([np.asarray(batch, dtype=np.float64) for batch in rows])
        restored = np.empty_like(joined)
        restored[self.order] = joined
        return restored


def cut_every(paths: np.ndarray, steps: int) -> Windows:
    """Cut consecutive windows of `steps` steps; the last one of a series is padded.

    >>> cut_every(np.arange(6.0).reshape(1, 6, 1), 2).batches[0][..., 0].tolist()
    [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0], [4.0, 5.0, 5.0]]
    """
    series, points, width = paths.shape
    whole, rest = divmod(points - 1, steps)
    # Peers copy an array that does not own its memory, so the batch is the array that is allocated.
    batch = np.empty((series * (whole + bool(rest)), steps + 1, width), paths.dtype)
    view = batch.reshape(series, -1, steps + 1, width)
    view[:, :whole, :steps] = paths[:, : whole * steps].reshape(series, whole, steps, width)
    view[:, :whole, steps] = paths[:, steps : whole * steps + 1 : steps]
    if rest:
        view[:, whole, : rest + 1] = paths[:, whole * steps :]
        view[:, whole, rest + 1 :] = paths[:, -1:]
    return Windows([batch], np.arange(len(batch)))


def cut(paths: np.ndarray, cuts: np.ndarray, buckets: int) -> Windows:
    """Cut windows at the steps `cuts` (series, interval + 1) of each series.

    >>> windows = cut(np.arange(5.0).reshape(1, 5, 1), np.array([[0, 3, 4]]), 1)
    >>> windows.batches[0][..., 0].tolist(), windows.order.tolist()
    ([[3.0, 4.0, 4.0, 4.0], [0.0, 1.0, 2.0, 3.0]], [1, 0])
    """
    series, points, width = paths.shape
    flat = paths.reshape(-1, width)
    first = (cuts[:, :-1] + points * np.arange(series)[:, None]).ravel()
    steps = np.diff(cuts).ravel()
    batches, order = [], np.argsort(steps, kind="stable")
    for chosen in _buckets(order, buckets):
        place = np.minimum(np.arange(int(steps[chosen[-1]]) + 1), steps[chosen, None])
        place += first[chosen, None]
        batches.append(np.take(flat, place, axis=0))
    return Windows(batches, order)


def realise(events: Events, points: np.ndarray, buckets: int) -> Windows:
    """Cut windows of the rectilinear path at `points`, the same for all series.

    Letters: value of each channel, count of each channel, time. Every window starts at the origin,
    since signatures do not depend on the starting point.
    """
    series, intervals, channels = len(events.times), len(points) - 1, events.channels
    time = events.times.ravel()
    interval = np.minimum(np.searchsorted(points, time, side="right") - 1, intervals - 1)
    window = np.repeat(np.arange(series) * intervals, events.times.shape[1]) + interval
    counts = np.bincount(window, minlength=series * intervals)
    starts = np.cumsum(counts) - counts
    gap = np.diff(time, prepend=0.0)
    initial = starts[counts > 0]
    gap[initial] = time[initial] - points[interval[initial]]
    closing = np.tile(np.diff(points), series)
    np.subtract.at(closing, window, gap)
    channel = events.channel.reshape(time.size, -1)
    move = events.moves().reshape(time.size, -1)
    batches, order = [], np.argsort(counts, kind="stable")
    for chosen in _buckets(order, buckets):
        size = counts[chosen]
        path = np.zeros((len(chosen), 2 * size[-1] + 2, 2 * channels + 1), np.float32)
        row = np.repeat(np.arange(len(chosen)), size)
        rank = np.arange(row.size) - np.repeat(np.cumsum(size) - size, size)
        event = starts[chosen][row] + rank
        path[row, 2 * rank + 1, 2 * channels] = gap[event]
        path[row[:, None], 2 * rank[:, None] + 2, channel[event]] = move[event]
        path[row[:, None], 2 * rank[:, None] + 2, channels + channel[event]] = 1.0
        path[np.arange(len(chosen)), 2 * size + 1, 2 * channels] = closing[chosen]
        # Row by row: NumPy's running sum along a middle axis takes more than twice as long.
        for point in range(1, path.shape[1]):
            path[:, point] += path[:, point - 1]
        batches.append(path)
    return Windows(batches, order)


def _buckets(order: np.ndarray, buckets: int) -> Iterator[np.ndarray]:
    return (chosen for chosen in np.array_split(order, buckets) if chosen.size)
