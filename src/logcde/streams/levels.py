"""Levels of the values of channels, between which an embedding can split the count of their observations.

Levels are learnt from training streams and belong to the embedding, as scales do. They are in the units of the values
as they were measured.
"""

import dataclasses
import math
from itertools import pairwise

import numpy as np

from logcde.errors import StreamError
from logcde.streams.columns import AbstractStreams
from logcde.streams.rows import by_channel
from logcde.streams.schema import listed


@dataclasses.dataclass(frozen=True)
class Levels:
    """Increasing levels, or knots, of each channel, one at least. Give them to an `Embedding`.

    >>> from logcde.streams import Streams
    >>> streams = Streams.from_dense(np.array([[[60.0, 1.0], [70.0, 1.0], [80.0, 1.0]]]), channels=["pulse", "sex"])
    >>> Levels.fit(streams, 2)
    Levels(channels=('pulse', 'sex'), knots=((65.0, 75.0), (1.0,)))
    """

    channels: tuple[str, ...]
    knots: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, streams: AbstractStreams, count: int = 8) -> "Levels":
        """Learn levels from streams, which should be those of training: the middles of `count` equal shares of values.

        A channel has fewer if some of these are the same, and 0 if it is never observed.
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise StreamError(f"{count!r} levels were asked for. Give a whole number, 1 or more.")
        shares = (np.arange(count) + 0.5) / count
        knots = []
        for values in by_channel(streams.channel, streams.value, len(streams.schema.channels)):
            found = np.unique(np.quantile(values, shares)) if len(values) else np.zeros(1)
            knots.append(tuple(found.tolist()))
        return cls(streams.schema.channels, tuple(knots))

    def __post_init__(self) -> None:
        if len(self.channels) != len(self.knots):
            raise StreamError(
                f"There are {len(self.channels)} channels and levels of {len(self.knots)}. Give some for each."
            )
        for name, knots in zip(self.channels, self.knots, strict=True):
            if not knots or not all(map(math.isfinite, knots)) or any(low >= high for low, high in pairwise(knots)):
                raise StreamError(
                    f"The levels of {name!r} are {listed(knots) or 'none'}. Give one or more finite numbers, each "
                    "above the one before it."
                )

    def check(self, channels: tuple[str, ...]) -> None:
        """Refuse streams of other channels."""
        if channels != self.channels:
            raise StreamError(
                f"The levels are those of the channels {listed(self.channels)}, but the streams have "
                f"{listed(channels)}. Read them with the schema of the streams that the levels were fitted to."
            )
