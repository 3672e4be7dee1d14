"""Random pooled units: convolutions of signals with random taps, as the share of windows in which they exceed a bias.

The taps are those of MiniRocket (Dempster, Schmidt, Webb, 2021): nine at equal distances, three of weight 2 and six of
weight -1, which add up to zero. Units mix random channels; biases are quantiles of responses to training series.
"""

import dataclasses
import itertools

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int64

from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread

TRIPLES = np.array(list(itertools.combinations(range(kernels.TAPS), kernels.HEAVY)))
MOST_MIXED = 9
"""Most channels of one unit."""


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """Random units with their biases.

    Attributes:
        heavy: The taps of weight 2.
        dilation: Windows between neighbouring taps.
        padded: Whether windows are pooled whose taps reach beyond the series, where signals count as 0.
        offsets: Unit u mixes `channels[offsets[u]]` to `channels[offsets[u + 1] - 1]`.
        channels: Channels of all units.
        bias: Biases of each unit.
    """

    heavy: Int64[np.ndarray, "unit 3"]
    dilation: Int64[np.ndarray, "unit"]
    padded: Bool[np.ndarray, "unit"]
    offsets: Int64[np.ndarray, "_"]
    channels: Int64[np.ndarray, "_"]
    bias: Float32[np.ndarray, "unit bias"]

    @staticmethod
    def draw(
        count: Int64[np.ndarray, "series"], channels: int, units: int, biases: int, rng: np.random.Generator
    ) -> "Drawn":
        """Draw units whose biases are still to be found from responses to training series.

        Args:
            count: Number of windows of each training series.
            channels: Number of channels.
            units: Number of units.
            biases: Biases of each unit.
            rng: Draws them.
        """
        reach = np.log2(max((np.median(count) - 1) / (kernels.TAPS - 1), 1.0))
        dilation = np.maximum(2 ** rng.uniform(0, reach, units), 1.0).astype(np.int64)
        mixed = np.minimum(2 ** rng.uniform(0, np.log2(min(channels, MOST_MIXED) + 1), units), channels)
        offsets = np.concatenate([[0], np.cumsum(mixed.astype(np.int64))])
        chosen = np.concatenate([rng.choice(channels, size, replace=False) for size in np.diff(offsets)])
        heavy = TRIPLES[np.resize(rng.permutation(len(TRIPLES)), units)]
        drawn = Units(heavy, dilation, rng.random(units) < 0.5, offsets, chosen, np.empty((units, biases), np.float32))
        return Drawn(drawn, rng.integers(len(count), size=units), rng.random((units, biases)))

    def __call__(
        self, signal: Float32[np.ndarray, "series channel window"], count: Int64[np.ndarray, "series"]
    ) -> Float32[np.ndarray, "series feature"]:
        """The share of windows above each bias."""
        out = np.empty((len(signal), self.bias.size), np.float32)
        drawn = self.heavy, self.dilation, self.padded, self.offsets, self.channels
        spread(kernels.pool_units, count * len(self.dilation), signal, count, *drawn, self.bias, out)
        return out

    def names(self, channels: tuple[str, ...]) -> list[str]:
        """One name for each feature: channels, taps, distance of the taps in windows, bias."""
        named = []
        for unit, taps in enumerate(self.heavy):
            mixed = "+".join(channels[k] for k in self.channels[self.offsets[unit] : self.offsets[unit + 1]])
            where = (
                f"{mixed} at {','.join(map(str, taps))}x{self.dilation[unit]}{'' if self.padded[unit] else ' inside'}"
            )
            named += [f"share({where} > {limit:.3g})" for limit in self.bias[unit]]
        return named


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """Units without their biases yet.

    Attributes:
        units: The units; `respond` writes their biases.
        series: The training series whose responses give the biases of each unit.
        shares: Where among these responses each bias lies.
    """

    units: Units
    series: Int64[np.ndarray, "unit"]
    shares: Float64[np.ndarray, "unit bias"]

    @property
    def needed(self) -> Int64[np.ndarray, "_"]:
        """The training series that are needed, each once."""
        return np.unique(self.series)

    def respond(
        self,
        some: Int64[np.ndarray, "series"],
        signal: Float32[np.ndarray, "series channel window"],
        count: Int64[np.ndarray, "series"],
    ) -> None:
        """Find the biases of units that need these training series."""
        units = self.units
        drawn = units.heavy, units.dilation, units.padded, units.offsets, units.channels
        for place, series in enumerate(some):
            for unit in np.flatnonzero(self.series == series):
                responses = np.sort(kernels.unit_responses(place, unit, signal, count, *drawn))
                units.bias[unit] = _between(responses, self.shares[unit])


def _between(responses: Float[np.ndarray, "_"], shares: Float[np.ndarray, "bias"]) -> Float[np.ndarray, "bias"]:
    """Quantiles halfway between two responses, so that rounding does not decide what exceeds them."""
    last = len(responses) - 1
    place = np.minimum((shares * len(responses)).astype(np.int64), last)
    return (responses[place] + responses[np.minimum(place + 1, last)]) / 2
