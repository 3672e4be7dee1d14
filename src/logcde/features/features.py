"""`WindowFeatures`: a row of numbers for each series, from windows of its observations.

Observations are never resampled. Sums over windows become signals, one number for each channel and window, by a
smoother: in a window without an observation of a channel, the signal is the shrunk mean of wider windows around it, or
what a Gaussian process expects there. Statistics and random units describe the signals. Everything is a function of the
sums, so that features of a growing series are those of the same series offline.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Int64

from logcde.errors import ModelError, StreamError, check_whole
from logcde.features import statistics
from logcde.features.abstract import AbstractFeatures, AbstractFittedFeatures, AbstractWindowed, distinct
from logcde.features.online import OnlineFeatures
from logcde.features.smoothing import AbstractFittedSmoother, AbstractSmoother, Shrinkage
from logcde.features.units import Units
from logcde.features.windows import Windows, window_count
from logcde.kernels.windows import QUANTITIES
from logcde.streams import ChannelScaler, Schema, StandardScaler, Streams
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed

CHUNK = 2**24
"""Sums in memory at a time."""
FEWEST, MOST = 8, 256
"""Windows of a series of typical length."""


@dataclasses.dataclass(frozen=True)
class WindowFeatures(AbstractFeatures):
    """Features of windows: `fit` to training series, then call with any.

    Args:
        windows: Number of windows of a series of typical length, the 90 % quantile of the training series' horizons.
            Longer series have more windows, shorter ones fewer. By default a power of two from 8 to 256, at least the
            number of events.
        smoother: How sums become a signal.
        statistics: Whether to compute statistics of each channel.
        lean: Whether to leave out statistics of fine parts, quantiles and covariances: a third is left.
        nan_unobserved: Whether statistics of a channel that a series never observes are NaN, for models that know of
            missing features. Otherwise they are 0.
        units: Number of random units.
        biases: Features of each unit.
        scaler: Scaler of the channels' values, which are first clipped to the range of those in training.
        seed: Seed of the random units.

    >>> rng = np.random.default_rng(0)
    >>> streams = Streams.from_dense(rng.normal(size=(20, 30, 2)), channels=["pulse", "temp"])
    >>> features = WindowFeatures(units=10).fit(streams)
    >>> rows = features(streams)
    >>> rows.shape == (20, len(features.names)), rows.dtype
    (True, dtype('float32'))
    >>> features.names[0], features.names[20]
    ('mean(pulse) in 1/1', 'change(pulse) to 3/8')
    """

    windows: int | None = None
    smoother: AbstractSmoother = Shrinkage()
    statistics: bool = True
    lean: bool = False
    nan_unobserved: bool = False
    units: int = 2000
    biases: int = 3
    scaler: AbstractScaler = StandardScaler()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.windows is not None:
            check_whole("WindowFeatures", "windows", self.windows)
        check_whole("WindowFeatures", "units", self.units, least=0)
        check_whole("WindowFeatures", "biases", self.biases)
        check_whole("WindowFeatures", "seed", self.seed, least=0)
        if not self.units and not self.statistics:
            raise ModelError(
                "WindowFeatures(units=0, statistics=False) has no features.", "Give units, or leave the statistics on."
            )

    def fit(self, streams: Streams) -> "FittedFeatures":
        """Choose the width of windows, scale channels, fit the smoother, draw units."""
        check_readable(streams)
        scaler = fit_scaler(streams, self.scaler)
        width, every = width_of(streams, self.windows), scaler(streams)
        count, channels = window_count(streams.horizon, width), len(streams.schema.channels)
        smoother = self.smoother.fit(Windows.of(every[_sample(count, channels)], width))
        units = None
        if self.units:
            drawn = Units.draw(count, channels, self.units, self.biases, np.random.default_rng(self.seed))
            for some in like_sized(count, channels, drawn.needed):
                drawn.respond(some, smoother(Windows.of(every[some], width)), count[some])
            units = drawn.units
        return FittedFeatures(
            streams.schema, scaler, width, smoother, self.statistics, self.lean, self.nan_unobserved, units
        )


@dataclasses.dataclass(frozen=True, eq=False)
class FittedFeatures(AbstractWindowed, AbstractFittedFeatures):
    """Features as fitted to training series: called with streams, they return a row for each series."""

    schema: Schema
    scaler: ChannelScaler
    width: float
    smoother: AbstractFittedSmoother
    statistics: bool
    lean: bool
    nan_unobserved: bool
    units: Units | None

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        channels = self.schema.channels
        named = statistics.names(channels, self.lean) if self.statistics else []
        return distinct(named + (self.units.names(channels) if self.units is not None else []))

    @property
    def size(self) -> int:
        """How many features there are, counted without making their names."""
        described = statistics.size(len(self.schema.channels), self.lean) if self.statistics else 0
        return described + (0 if self.units is None else self.units.bias.size)

    def __call__(self, streams: Streams) -> Float32[np.ndarray, "series feature"]:
        """Compute the features of streams."""
        self._check(streams.schema)
        every, channels = self.scaler(streams), len(self.schema.channels)
        rows = np.empty((len(streams), self.size), np.float32)
        for some in like_sized(window_count(streams.horizon, self.width), channels, np.arange(len(streams))):
            rows[some] = self.of_windows(Windows.of(every[some], self.width))
        return rows

    def of_windows(self, windows: Windows) -> Float32[np.ndarray, "series feature"]:
        """Compute the features from sums over windows of scaled values."""
        signal = self.smoother(windows)
        parts = [statistics.describe(signal, windows, self.lean, self.nan_unobserved)] if self.statistics else []
        if self.units is not None:
            parts.append(self.units(signal, windows.count))
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    def online(self) -> OnlineFeatures:
        """Start a series that is observed one event at a time."""
        return OnlineFeatures(self)

    def _check(self, found: Schema) -> None:
        if found.channels != self.schema.channels:
            raise StreamError(
                f"The features were fitted to the channels {listed(self.schema.channels)}, but these series have "
                f"{listed(found.channels)}.",
                "Give the same channels in the same order, NaN where nothing is observed.",
            )


def check_readable(streams: Streams) -> None:
    """Refuse to fit to no series, and to what windows do not read."""
    if not len(streams):
        raise StreamError("There are no series to fit features to.", "Give at least one.")
    if streams.schema.continuous or streams.schema.terms:
        raise StreamError(
            "Features of windows read observations only, not continuous channels or higher-order terms.",
            "Leave these out, or use log-signatures.",
        )


def width_of(streams: Streams, windows: int | None) -> float:
    """The width of windows, given their number in a series of typical length, or by default from its events."""
    length = float(np.quantile(streams.horizon, 0.9))
    if windows is None:
        events = max(np.quantile(np.diff(streams.offsets), 0.9), 1)
        windows = int(np.clip(2 ** np.ceil(np.log2(events)), FEWEST, MOST))
    return length / windows


def fit_scaler(streams: Streams, scaler: AbstractScaler) -> ChannelScaler:
    """Fit a scaler that clips values to the range that they have here: later ones can be wilder, never further out."""
    count = len(streams.schema.channels)
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, streams.channel, streams.value)
    np.maximum.at(greatest, streams.channel, streams.value)
    ranges = zip(streams.schema.channels, least.tolist(), greatest.tolist(), strict=True)
    return ChannelScaler.fit(streams, scaler, {name: (low, high) for name, low, high in ranges if low < high})


def _sample(count: Int64[np.ndarray, "series"], channels: int) -> Int64[np.ndarray, "_"]:
    """All series, or as many at equal distances as have their sums in memory at once."""
    groups = len(list(like_sized(count, channels, np.arange(len(count)))))
    return np.arange(len(count))[:: max(1, groups)]


def like_sized(
    count: Int64[np.ndarray, "series"], channels: int, chosen: Int64[np.ndarray, "_"]
) -> Iterator[Int64[np.ndarray, "_"]]:
    """Groups of the chosen series whose sums are in memory at once, series with like numbers of windows together."""
    order = chosen[np.argsort(count[chosen], kind="stable")]
    first = 0
    while first < len(order):
        # Each series of a group takes as much memory as its longest, which is the last one.
        numbers = count[order[first:]] * np.arange(1, len(order) - first + 1) * (channels * QUANTITIES)
        last = first + max(1, int(np.searchsorted(numbers, CHUNK, side="right")))
        yield order[first:last]
        first = last
