"""`WindowFeatures`: a row of numbers for each series, from windows of its observations. Nothing is filled in.

Sums over windows become signals, one number for each channel and window, by a smoother; statistics and random units
describe the signals. Everything is a function of the sums, so that features of a growing series are those of the same
series offline.
"""

import dataclasses
import functools
import hashlib

import numpy as np
from jaxtyping import Float32

from logcde.errors import StreamError
from logcde.features import statistics
from logcde.features.smoothing import AbstractSmoother, Shrinkage
from logcde.features.units import Units
from logcde.features.windows import Windows
from logcde.kernels.windows import QUANTITIES
from logcde.streams import ChannelScaler, Schema, StandardScaler, Streams
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed

CHUNK = 2**24
"""Sums in memory at a time."""
FEWEST, MOST = 8, 256
"""Windows of a series of typical length."""


@dataclasses.dataclass(frozen=True)
class WindowFeatures:
    """Features of windows: `fit` to training series, then call with any.

    Args:
        windows: Number of windows of a series of typical length, the 90 % quantile of the training series' horizons.
            Longer series have more windows, shorter ones fewer. By default a power of two from 8 to 256, at least the
            number of events.
        smoother: How sums become a signal.
        statistics: Whether to compute statistics of each channel.
        units: Number of random units.
        biases: Features of each unit.
        scaler: Scaler of the channels' values.
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
    units: int = 2000
    biases: int = 3
    scaler: AbstractScaler = StandardScaler()
    seed: int = 0

    def fit(self, streams: Streams) -> "FittedFeatures":
        """Choose the width of windows, scale channels, fit the smoother, draw units."""
        if not len(streams):
            raise StreamError("There are no series to fit features to.", "Give at least one.")
        if streams.schema.continuous or streams.schema.terms:
            raise StreamError(
                "Features of windows read observations only, not continuous channels or higher-order terms.",
                "Leave these out, or use log-signatures.",
            )
        scaler = ChannelScaler.fit(streams, self.scaler)
        width = self._width(streams)
        windows = Windows.of(_scaled(streams, scaler), width)
        smoother = self.smoother.fit(windows)
        units = None
        if self.units:
            rng = np.random.default_rng(self.seed)
            units = Units.fit(smoother(windows), windows.count, self.units, self.biases, rng)
        return FittedFeatures(streams.schema, scaler, width, smoother, self.statistics, units)

    def _width(self, streams: Streams) -> float:
        length = float(np.quantile(streams.horizon, 0.9))
        count = self.windows
        if count is None:
            events = max(np.quantile(np.diff(streams.offsets), 0.9), 1)
            count = int(np.clip(2 ** np.ceil(np.log2(events)), FEWEST, MOST))
        return length / count


@dataclasses.dataclass(frozen=True, eq=False)
class FittedFeatures:
    """Features as fitted to training series: called with streams, they return a row for each series."""

    schema: Schema
    scaler: ChannelScaler
    width: float
    smoother: AbstractSmoother
    statistics: bool
    units: Units | None

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        channels = self.schema.channels
        named = statistics.names(channels) if self.statistics else []
        return tuple(named + (self.units.names(channels) if self.units is not None else []))

    @functools.cached_property
    def digest(self) -> str:
        """Identifies what sums over windows depend on: the width, the channels and their scales."""
        scales = np.array([dataclasses.astuple(one) for one in self.scaler.each], np.float64).tolist()
        return hashlib.sha256(repr((float(self.width), self.scaler.channels, scales)).encode()).hexdigest()

    def __call__(self, streams: Streams) -> Float32[np.ndarray, "series feature"]:
        """Compute the features of streams."""
        self._check(streams.schema)
        scaled = _scaled(streams, self.scaler)
        windows = max(1, int(streams.horizon.max(initial=1.0) / self.width))
        size = max(1, CHUNK // (windows * len(self.schema.channels) * QUANTITIES))
        pieces = [self.of_windows(Windows.of(scaled[at : at + size], self.width)) for at in range(0, len(scaled), size)]
        return np.concatenate(pieces) if pieces else np.empty((0, len(self.names)), np.float32)

    def of_windows(self, windows: Windows) -> Float32[np.ndarray, "series feature"]:
        """Compute the features from sums over windows of scaled values."""
        signal = self.smoother(windows)
        parts = [statistics.describe(signal, windows)] if self.statistics else []
        if self.units is not None:
            parts.append(self.units(signal, windows.count))
        return np.concatenate(parts, axis=1) if parts else np.empty((len(windows), 0), np.float32)

    def _check(self, found: Schema) -> None:
        if found.channels != self.schema.channels:
            raise StreamError(
                f"The features were fitted to the channels {listed(self.schema.channels)}, but these series have "
                f"{listed(found.channels)}.",
                "Give the same channels in the same order, NaN where nothing is observed.",
            )


def _scaled(streams: Streams, scaler: ChannelScaler) -> Streams:
    """Scaled values in double precision, as a growing series has them."""
    return scaler(dataclasses.replace(streams, value=streams.value.astype(np.float64)))
