"""Soft bins: knots of each channel's values, at which an embedding counts observations.

They are fitted to training streams and belong to the embedding, as scalers do; knots are in the units of the values as
they were measured. The hat functions themselves are in `logcde.embedding.hat_basis`.
"""

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from logcde.errors import StreamError, Where
from logcde.streams.ragged import by_channel
from logcde.streams.schema import listed
from logcde.streams.streams import Streams

SHARES = (0.01, 0.05, 0.15, 0.35, 0.65, 0.85, 0.95, 0.99)


@dataclasses.dataclass(frozen=True)
class SoftBins:
    """Knots of each channel, for an occupancy histogram of its values that builds up over time.

    `Embedding(soft_bins=...)` adds a letter for each knot of a channel with more than one. An observation moves the
    letters of the two knots next to its value by the hat functions there: linear weights that sum to one, all for the
    first or last knot outside the range. At any time these letters are thus a histogram, with soft edges, of the
    observations of the channel so far; the log-signature of an interval has its change over the interval.

    Use them where the number of low, normal or high values matters and not only the increments: extreme values in
    intensive care, modes of a machine. At depth 1 the values of a channel contribute the sum of their increments; with
    soft bins also the sum, over observations, of any function that is piecewise linear between the knots. Each knot
    costs one letter, so with many channels use depth 1 or few knots.

    Attributes:
        channels: The names of the channels.
        knots: For each channel at least one finite number, increasing. A channel with a single knot has its plain count
            only.

    >>> streams = Streams.from_dense(np.array([[[60.0, 1.0], [70.0, 1.0], [80.0, 1.0]]]), channels=["pulse", "sex"])
    >>> bins = SoftBins.fit(streams, (0.25, 0.75))
    >>> bins
    SoftBins(channels=('pulse', 'sex'), knots=((65.0, 75.0), (1.0,)))

    Three observations of the pulse, 60, 70 and 80, count 1.5 times at each of the knots 65 and 75:

    >>> from logcde import Embedding, Partition
    >>> logsigs = Embedding(depth=1, soft_bins=bins)(streams, Partition.uniform(1))
    >>> dict(zip(logsigs.basis.letters, logsigs.values[0, 0].tolist()))
    {'pulse': 80.0, 'sex': 1.0, '#pulse': 3.0, '#pulse~65': 1.5, '#pulse~75': 1.5, '#sex': 3.0, 'time': 2.0}
    """

    channels: tuple[str, ...]
    knots: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, streams: Streams, shares: Sequence[float] = SHARES) -> "SoftBins":
        """Place knots at quantiles of the values of each channel.

        A channel has fewer knots if some quantiles are equal, and the knot 0 if it is never observed.

        Args:
            streams: The training streams.
            shares: The quantiles, in [0, 1]. The default has more knots in the tails, where values are rare but
                informative.
        """
        if not len(shares) or not all(0 <= share <= 1 for share in shares):
            raise StreamError(f"The shares are {listed(shares) or 'none'}.", "Give one or more numbers from 0 to 1.")
        knots = []
        for values in by_channel(streams.channel, streams.value, len(streams.schema.channels)):
            found = np.unique(np.quantile(values, shares)) if len(values) else np.zeros(1)
            knots.append(tuple(found.tolist()))
        return cls(streams.schema.channels, tuple(knots))

    def __post_init__(self) -> None:
        if len(self.channels) != len(self.knots):
            raise StreamError(
                f"There are {len(self.channels)} channels and knots of {len(self.knots)}.",
                "Give some for each channel.",
            )
        for name, knots in zip(self.channels, self.knots, strict=True):
            if not knots or not all(map(math.isfinite, knots)) or any(low >= high for low, high in pairwise(knots)):
                raise StreamError(
                    f"The knots of {name!r} are {listed(knots) or 'none'}.",
                    "Give one or more finite numbers in increasing order.",
                    where=Where(channel=name),
                )

    def check(self, channels: tuple[str, ...]) -> None:
        """Refuse streams with other channels."""
        if channels != self.channels:
            raise StreamError(
                f"The soft bins are those of the channels {listed(self.channels)}, but the streams have "
                f"{listed(channels)}.",
                "Read them with the schema of the streams that the soft bins were fitted to.",
            )
