"""How an observation is shared between the levels of its channel: hat functions, which add up to one everywhere.

Between two levels an observation counts for both, for each the more the nearer it is; below the first level or above
the last it counts for that one only. One level is the plain count, several are counted beside it.
"""

import dataclasses
import functools
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Float, Float64, Int32, Int64

from logcde.kernels.events import SHARED, share
from logcde.kernels.threads import spread
from logcde.streams import ChannelScaler, SoftBins
from logcde.streams.ragged import offsets_of, owners

Values = TypeVar("Values", np.ndarray, jax.Array)


def letters_of(soft_bins: SoftBins) -> tuple[str, ...]:
    """The count of each channel, followed by its levels where there is more than one.

    >>> letters_of(SoftBins(("pulse", "sex"), ((60.0, 75.0), (1.0,))))
    ('#pulse', '#pulse~60', '#pulse~75', '#sex')
    """
    names = []
    for channel, knots in zip(soft_bins.channels, soft_bins.knots, strict=True):
        written = ([f"#{channel}~{knot:.{digits}g}" for knot in knots] for digits in range(6, 18))
        names += [f"#{channel}"]
        if len(knots) > 1:
            names += next(some for some in written if len({*some}) == len(knots))
    return tuple(names)


@dataclasses.dataclass(frozen=True, eq=False)
class HatBasis:
    """Channel k has `knots` from `offsets[k]` on, increasing and in the units of the path; `letter` is that of each.

    `starts` says where the letters of each channel begin, of which the first is its count, and at last where they end;
    letters are counted from the first count on. Levels that are the same in the units of the path, since limits have
    made them so, count for the last of them.

    >>> hat_basis = HatBasis.of(SoftBins(("pulse", "sex"), ((60.0, 80.0), (1.0,))), None)
    >>> hat_basis.weights(np.array([[65.0, 1.0], [90.0, 0.0]]))
    array([[1.  , 0.75, 0.25, 1.  ],
           [1.  , 0.  , 1.  , 1.  ]])
    """

    starts: Int64[np.ndarray, "_"]
    offsets: Int64[np.ndarray, "_"]
    knots: Float64[np.ndarray, "knot"]
    letter: Int32[np.ndarray, "knot"]

    @staticmethod
    def of(soft_bins: SoftBins, scaler: ChannelScaler | None) -> "HatBasis":
        """Of levels in the units of the values; `scaler` take these to the units of the path."""
        parts = []
        for name, raw in zip(soft_bins.channels, soft_bins.knots, strict=True):
            parts.append(np.array([knot if scaler is None else scaler.one(name, knot) for knot in raw], np.float64))
        sizes, knots = np.array([len(part) for part in parts]), np.concatenate(parts)
        ends, starts = offsets_of(sizes), offsets_of(np.where(sizes > 1, sizes + 1, 1))
        last = np.append(np.diff(knots) > 0, True)
        last[ends[1:] - 1] = True
        letter = len(parts) + np.arange(len(knots)) + np.repeat(starts[1:] - ends[1:], sizes)
        return HatBasis(starts, np.append(0, np.cumsum(last))[ends], knots[last], letter[last].astype(np.int32))

    @functools.cached_property
    def channel(self) -> Int64[np.ndarray, "letter"]:
        """The channel of each letter."""
        return owners(self.starts)

    def entries(
        self,
        channel: Int32[np.ndarray, "obs"],
        value: Float[np.ndarray, "obs"],
        change: Float64[np.ndarray, "obs"],
        threads: int | None = None,
    ) -> tuple[Int32[np.ndarray, "obs 4"], Float64[np.ndarray, "obs 4"]]:
        """The letters that each observation moves, and by how much: its value, the two levels next to it, its count."""
        letters, amounts = np.empty((len(channel), 4), np.int32), np.empty((len(channel), 4))
        letters[:, 0], amounts[:, 0] = channel, change
        letters[:, 3] = len(self.starts) - 1 + self.starts[channel]
        blocks = np.full(-(-len(channel) // SHARED), SHARED)
        given = (channel, value, self.offsets, self.knots, self.letter)
        spread(share, blocks, *given, letters, amounts, threads=threads)
        amounts[:, 3] = letters[:, 3] != letters[:, 1]  # a single level is the count
        return letters, amounts

    def weights(self, values: Values) -> Values:
        """By how much an observation of its channel moves each letter, for rows with one value for each channel.

        In NumPy or in JAX, where it is differentiable except at levels.
        """
        values = values[..., self.channel]
        first, low, rise, here, fall = (column.astype(values.dtype) for column in self._slopes)
        return first + ((values - low) / rise).clip(0, 1) - ((values - here) / fall).clip(0, 1)

    @functools.cached_property
    def _slopes(self) -> Float64[np.ndarray, "5 letter"]:
        """Which are 1 from the start, where each rises from and over what length, falls from and over what length."""
        first, low, rise, here, fall = np.zeros((5, len(self.channel)))
        rise[:] = fall[:] = np.inf
        at, gaps = self.letter - (len(self.starts) - 1), np.diff(self.knots)
        inner = np.ones(len(gaps), bool)
        inner[self.offsets[1:-1] - 1] = False
        here[at] = self.knots
        first[at[self.offsets[:-1]]] = first[self.starts[:-1]] = 1.0
        low[at[1:][inner]] = self.knots[:-1][inner]
        rise[at[1:][inner]] = fall[at[:-1][inner]] = gaps[inner]
        return np.stack([first, low, rise, here, fall])
