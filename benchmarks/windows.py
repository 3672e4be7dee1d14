"""What peers need before they can start: paths cut into windows of equal length.

Windows are sorted by length and padded, bucket by bucket, with their last point, which adds nothing to a signature.
Asynchronous observations become the rectilinear path first (time moves, then values and counts jump). All of it is
vectorised NumPy, and all of it is part of what a peer costs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Events


@dataclass(frozen=True)
class Windows:
    """Batches of equally long paths (window, point, letter); row r of all batches in a row is window `order[r]`."""

    batches: list[np.ndarray]
    order: np.ndarray

    def restore(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """One row for each window, batch after batch, put back into the order of the windows."""
        joined = np.concatenate([np.asarray(batch, dtype=np.float64) for batch in rows])
        restored = np.empty_like(joined)
        restored[self.order] = joined
        return restored


def cut_every(paths: np.ndarray, steps: int) -> Windows:
    """Consecutive windows of `steps` steps, the last one of each series padded if it is shorter.

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
    """Windows between the steps `cuts` (series, interval + 1) of each series.

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
    """Windows of the rectilinear path over the intervals between `points`, the same for all series.

    Letters: value of each channel, count of each channel, time. Every window starts at the origin, since signatures
    do not see where a path starts.
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
