"""Levels of the values of channels, at each of which an embedding can count observations.

Levels are learnt from training streams and belong to the embedding, as scales do. They are in the units of the values
as they were measured.
"""

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from logcde.errors import StreamError
from logcde.streams.columns import AbstractStreams
from logcde.streams.rows import by_channel
from logcde.streams.schema import listed

SHARES = (0.01, 0.05, 0.15, 0.35, 0.65, 0.85, 0.95, 0.99)


@dataclasses.dataclass(frozen=True)
class SoftBins:
    """Increasing levels, or knots, of each channel, one at least. Give them to an `Embedding`.

    >>> from logcde.streams import Streams
    >>> streams = Streams.from_dense(np.array([[[60.0, 1.0], [70.0, 1.0], [80.0, 1.0]]]), channels=["pulse", "sex"])
    >>> SoftBins.fit(streams, (0.25, 0.75))
    SoftBins(channels=('pulse', 'sex'), knots=((65.0, 75.0), (1.0,)))
    """

    channels: tuple[str, ...]
    knots: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, streams: AbstractStreams, shares: Sequence[float] = SHARES) -> "SoftBins":
        """Learn levels from streams, which should be those of training: values that these shares of all are below.

        By default they are close to each other where values are rare: it is extremes that mean something. A channel has
        fewer levels if some are the same, and 0 if it is never observed.
        """
        if not len(shares) or not all(0 <= share <= 1 for share in shares):
            raise StreamError(f"The shares are {listed(shares) or 'none'}. Give one or more numbers from 0 to 1.")
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
