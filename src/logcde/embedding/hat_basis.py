"""How an observation is split between the soft bins of its channel: hat functions, which add up to one everywhere.

An observation between two knots is split linearly between their bins; below the first knot or above the last it counts
for that bin only. A single bin is the plain count; several bins are counted next to it.
"""

import dataclasses
import functools
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Float, Float64, Int32, Int64

from logcde.kernels.events import OBS_BLOCK, split_between_knots
from logcde.kernels.threads import spread
from logcde.streams import ChannelScaler, SoftBins
from logcde.streams.ragged import offsets_of, owners

ArrayT = TypeVar("ArrayT", np.ndarray, jax.Array)


def count_letters(soft_bins: SoftBins) -> tuple[str, ...]:
    """Names of the count of each channel, followed by its bins if there are several.

    >>> count_letters(SoftBins(("pulse", "sex"), ((60.0, 75.0), (1.0,))))
    ('#pulse', '#pulse~60', '#pulse~75', '#sex')
    """
    names = []
    for channel, knots in zip(soft_bins.channels, soft_bins.knots, strict=True):
        names += [f"#{channel}"]
        if len(knots) > 1:
            # As few digits as tell the knots apart.
            written = ([f"#{channel}~{knot:.{digits}g}" for knot in knots] for digits in range(6, 18))
            names += next(some for some in written if len({*some}) == len(knots))
    return tuple(names)


@dataclasses.dataclass(frozen=True, eq=False)
class HatBasis:
    """Soft bins in the units of the path, with the letters that count for them.

    Letters are numbered from the first count on, after the values of all channels. Knots that coincide in the units of
    the path, because the scaler clips them to the same limit, are merged; the last of their letters is counted.

    Attributes:
        starts: Where the letters of each channel start, of which the first is its count, and where the last ones end.
        offsets: Channel k has the increasing knots `offsets[k]` to `offsets[k + 1]`.
        knots: Knots of all channels, end to end.
        letter: The letter of each knot among all letters of the path.

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
        """The basis of soft bins in the units of measurement, which `scaler` takes to the units of the path."""
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
        """The letters that each observation moves, and by how much: its value, its two nearest bins, its count."""
        letters, amounts = np.empty((len(channel), 4), np.int32), np.empty((len(channel), 4))
        letters[:, 0], amounts[:, 0] = channel, change
        letters[:, 3] = len(self.starts) - 1 + self.starts[channel]
        blocks = np.full(-(-len(channel) // OBS_BLOCK), OBS_BLOCK)
        given = (channel, value, self.offsets, self.knots, self.letter)
        spread(split_between_knots, blocks, *given, letters, amounts, threads=threads)
        amounts[:, 3] = letters[:, 3] != letters[:, 1]  # a single bin is the count itself
        return letters, amounts

    def weights(self, values: ArrayT) -> ArrayT:
        """By how much observations move each letter, for rows with one value for each channel.

        Takes NumPy or JAX arrays; differentiable except at knots.
        """
        return self.weights_at(self.distances(values))

    def distances(self, values: ArrayT) -> ArrayT:
        """How far values are above each knot of their channel, for rows with one value for each channel."""
        return values[..., self.knot_channel] - self.knots.astype(values.dtype)

    def weights_at(self, distances: ArrayT) -> ArrayT:
        """`weights` of values at these `distances` from the knots, which single precision tells apart better."""
        constant, rise, fall = (column.astype(distances.dtype) for column in self._slopes)
        rise_from, fall_from = self._slope_starts
        rising, falling = distances[..., rise_from] / rise, distances[..., fall_from] / fall
        return constant + rising.clip(0, 1) - falling.clip(0, 1)

    @functools.cached_property
    def knot_channel(self) -> Int64[np.ndarray, "knot"]:
        """The channel of each knot."""
        return owners(self.offsets)

    @functools.cached_property
    def _slopes(self) -> Float64[np.ndarray, "3 letter"]:
        """Each letter's weight below all knots, then over what length it rises, and over what length it falls.

        A length is infinite where the weight does not rise or fall.
        """
        constant, rise, fall = np.zeros((3, len(self.channel)))
        rise[:] = fall[:] = np.inf
        at, gaps, inner = self._places
        constant[at[self.offsets[:-1]]] = constant[self.starts[:-1]] = 1.0
        rise[at[1:][inner]] = fall[at[:-1][inner]] = gaps[inner]
        return np.stack([constant, rise, fall])

    @functools.cached_property
    def _slope_starts(self) -> Int64[np.ndarray, "2 letter"]:
        """The knots above which each letter's weight rises and falls; some knot of its channel where it does not."""
        first = self.offsets[self.channel]
        rise_from, fall_from = first.copy(), first.copy()
        at, _, inner = self._places
        rise_from[at[1:][inner]] = np.flatnonzero(inner)
        fall_from[at] = np.arange(len(self.knots))
        return np.stack([rise_from, fall_from])

    @functools.cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The letter of each knot, the gaps to the next knots, and which of these gaps are within one channel."""
        gaps = np.diff(self.knots)
        inner = np.ones(len(gaps), bool)
        inner[self.offsets[1:-1] - 1] = False
        return self.letter - (len(self.starts) - 1), gaps, inner
