"""Generated data: dense series, and asynchronous events where every event observes a few of the channels."""

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
    """Random steps (series, intervals + 1) from 0 to `steps` that cut each series in its own way.

    >>> random_cuts(np.random.default_rng(0), 1, 4, 3).tolist()
    [[0, 1, 2, 4]]
    """
    # The last inner cut leaves two steps, so that it lies before the stamp of the last sample.
    inner = np.argsort(rng.random((series, steps - 2)), axis=1)[:, : intervals - 1] + 1
    ends = np.zeros((series, 1), inner.dtype)
    return np.concatenate([ends, np.sort(inner, axis=1), ends + steps], axis=1)


@dataclass(frozen=True)
class Events:
    """Asynchronous series of equally many events in [0, 1); every event observes equally many of the channels."""

    times: np.ndarray
    channel: np.ndarray
    value: np.ndarray
    channels: int

    @classmethod
    def random(cls, rng: np.random.Generator, series: int, events: int, channels: int, observed: int) -> "Events":
        """Uniform stamps, random channels, normal values.

        >>> Events.random(np.random.default_rng(0), 2, 5, 4, 3).value.shape
        (2, 5, 3)
        """
        times = np.sort(rng.random((series, events)), axis=1)
        channel = np.argsort(rng.random((series, events, channels)), axis=2)[..., :observed]
        value = rng.normal(size=(series, events, observed))
        return cls(times, np.sort(channel, axis=2), value, channels)

    def moves(self) -> np.ndarray:
        """Change of each observed value since the same channel was last seen, from zero the first time."""
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
        """Values (series, event, channel) with NaN where nothing was observed."""
        values = np.full((*self.times.shape, self.channels), np.nan)
        np.put_along_axis(values, self.channel, self.value, axis=2)
        return values
