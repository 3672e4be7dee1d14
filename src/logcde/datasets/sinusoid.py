"""Coupled sinusoids under four observation regimes (`sec:sinusoid` and `app:sinusoid` in the paper).

Two channels share a latent phase, z(t) = omega t + phi and x_i(t) = A_i sin(z(t) + delta_i). They are observed without
noise at random times that depend on the regime; targets are their values at query points, which are independent of
these times. With one seed all regimes have the same waves and query points, and differ only in the observations.
"""

import abc
import dataclasses
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

from logcde.errors import DatasetError
from logcde.streams import Cuts, Partition, Streams


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Streams, a partition, and targets at the end of each interval; NaN pads series with fewer intervals."""

    streams: Streams
    partition: Partition
    targets: Float64[np.ndarray, "series interval output"]

    def __len__(self) -> int:
        return len(self.streams)

    def __repr__(self) -> str:
        return f"Dataset({self.streams!r}, targets {self.targets.shape})"


def by_interval(cuts: Cuts, targets: Float64[np.ndarray, "point output"]) -> Float64[np.ndarray, "series interval _"]:
    """Turn targets at all query points, end to end, into an array with one row for each interval, that of its end.

    >>> cuts = Cuts(np.array([0, 2, 5]), np.array([0.0, 9.0, 0.0, 4.0, 9.0]))
    >>> by_interval(cuts, cuts.points[:, None])[..., 0]
    array([[ 9., nan],
           [ 4.,  9.]])
    """
    intervals = np.diff(cuts.offsets) - 1
    filled = np.arange(intervals.max(initial=0)) < intervals[:, None]
    ends = np.ones(len(cuts.points), bool)
    ends[cuts.offsets[:-1]] = False
    rows = np.full((*filled.shape, targets.shape[1]), np.nan)
    rows[filled] = targets[ends]
    return rows


HORIZON = 10.0
CHANNELS = ("x1", "x2")
FREQUENCY, AMPLITUDE, INTERVALS = (0.8, 1.6), (0.7, 1.3), (16, 32)


class AbstractGrid(abc.ABC):
    """Distribution of the observation times of one channel."""

    @abc.abstractmethod
    def __call__(self, series: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw increasing times in (0, T) for each of `series` series."""


@dataclasses.dataclass(frozen=True)
class Regular(AbstractGrid):
    """The same equally spaced times inside (0, T) for every series."""

    points: int = 128

    def __call__(self, series: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the same times for all series."""
        return [np.arange(1, self.points + 1) * HORIZON / (self.points + 1)] * series


@dataclasses.dataclass(frozen=True)
class Poisson(AbstractGrid):
    """A Poisson process whose rate is uniform between two bounds, for each series; two times if it has fewer."""

    slowest: float
    fastest: float

    def __call__(self, series: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the numbers of times first, then the times."""
        rates = rng.uniform(self.slowest, self.fastest, series)
        counts = rng.poisson(rates * HORIZON)
        counts[counts < 2] = 2
        times = rng.uniform(0, HORIZON, counts.sum())
        return [np.sort(part) for part in np.split(times, np.cumsum(counts)[:-1])]


@dataclasses.dataclass(frozen=True)
class Regime:
    """Observation times of the two channels: two grids, or one if they are observed together."""

    grids: tuple[AbstractGrid, ...]

    @property
    def synchronous(self) -> bool:
        """Whether both channels are observed at each stamp."""
        return len(self.grids) == 1


REGIMES = MappingProxyType(
    {
        "sync_regular": Regime((Regular(128),)),
        "sync_irregular": Regime((Poisson(8.0, 10.0),)),
        "async_irregular": Regime((Poisson(8.0, 10.0), Poisson(8.0, 10.0))),
        "async_sparse": Regime((Poisson(12.0, 20.0), Poisson(2.0, 4.0))),
    }
)
"""The regimes of the paper by name."""


@dataclasses.dataclass(frozen=True, eq=False)
class Waves:
    """Parameters of the continuous signals."""

    frequency: Float64[np.ndarray, "series"]
    phase: Float64[np.ndarray, "series"]
    amplitude: Float64[np.ndarray, "series channel"]
    shift: Float64[np.ndarray, "series channel"]

    @classmethod
    def draw(cls, series: int, rng: np.random.Generator) -> "Waves":
        """Draw the parameters of `series` series."""
        shape = (series, len(CHANNELS))
        return cls(
            rng.uniform(*FREQUENCY, series),
            rng.uniform(0, 2 * np.pi, series),
            rng.uniform(*AMPLITUDE, shape),
            rng.uniform(0, 2 * np.pi, shape),
        )

    def __call__(self, series: int, times: Float64[np.ndarray, "time"]) -> Float64[np.ndarray, "time channel"]:
        """Evaluate the signals of one series at any times."""
        latent = self.frequency[series] * times + self.phase[series]
        return self.amplitude[series] * np.sin(latent[:, None] + self.shift[series])


@dataclasses.dataclass(frozen=True, eq=False)
class Sinusoids:
    """A data set and its continuous signals."""

    data: Dataset
    waves: Waves


def sinusoids(regime: str | Regime, series: int, seed: int | Sequence[int]) -> Sinusoids:
    """Generate coupled sinusoids. The same seed gives the same data on all machines.

    Args:
        regime: Observation regime, or the name of one of `REGIMES`.
        series: Number of series.
        seed: Seed of signals, query points and observation times.

    >>> drawn = sinusoids("async_sparse", series=4, seed=0)
    >>> drawn.data.streams.schema.channels, drawn.data.targets.shape[0]
    (('x1', 'x2'), 4)
    >>> same = sinusoids("sync_regular", series=4, seed=0).waves.frequency == drawn.waves.frequency
    >>> bool(same.all())
    True
    """
    chosen = _regime_of(regime)
    if series < 1:
        raise DatasetError(f"series={series} is too small.", "Generate at least one series.")
    for_waves, for_queries, for_grids = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(3))
    waves = Waves.draw(series, for_waves)
    points = _query_points(series, for_queries)
    grids = [grid(series, for_grids) for grid in chosen.grids]
    observed = [_observed(waves, number, [grid[number] for grid in grids]) for number in range(series)]
    times, values = (list(part) for part in zip(*observed, strict=True))
    streams = Streams.from_arrays(times, values, CHANNELS, HORIZON)
    partition = Partition.at(points)
    targets = np.concatenate([waves(number, points[number]) for number in range(series)])
    return Sinusoids(Dataset(streams, partition, by_interval(partition.cuts(streams), targets)), waves)


def _regime_of(regime: str | Regime) -> Regime:
    if isinstance(regime, Regime):
        return regime
    if regime not in REGIMES:
        raise DatasetError(f"There is no observation regime {regime!r}.", f"Choose one of {', '.join(REGIMES)}.")
    return REGIMES[regime]


def _query_points(series: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw 0, uniform points and T, a random number of them for each series."""
    inner = rng.integers(INTERVALS[0], INTERVALS[1], series, endpoint=True) - 1
    drawn = np.split(rng.uniform(0, HORIZON, inner.sum()), np.cumsum(inner)[:-1])
    return [np.concatenate([[0.0], np.sort(part), [HORIZON]]) for part in drawn]


def _observed(waves: Waves, series: int, grids: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the stamps of one series and its values there, NaN where a channel is not observed."""
    if len(grids) == 1:
        return grids[0], waves(series, grids[0])
    times = np.concatenate(grids)
    values = waves(series, times)
    channel = np.repeat(np.arange(len(grids)), [len(grid) for grid in grids])
    values[channel[:, None] != np.arange(len(CHANNELS))] = np.nan
    order = np.argsort(times)
    return times[order], values[order]
