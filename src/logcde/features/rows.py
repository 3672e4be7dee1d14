"""`WindowRows`: a row of numbers for each window of a series, the input of networks that go from window to window.

A row uses its own window and earlier ones only, so that a growing series adds rows and changes none.
"""

import dataclasses

import numpy as np
from jaxtyping import Float32, Float64

from logcde.features.abstract import AbstractWindowed
from logcde.features.features import check_readable, fit_scaler, width_of
from logcde.features.windows import Windows
from logcde.kernels import rows as kernels
from logcde.kernels.threads import spread
from logcde.streams import ChannelScaler, Schema, StandardScaler, Streams
from logcde.streams.scaling import AbstractScaler

NAMES = ("level", "level over 8", "level over 2", "own level", "signal", "change", "share observed", "gap", "roughness")
LIMIT = 8.0
"""Standardised numbers are limited to this."""


@dataclasses.dataclass(frozen=True)
class WindowRows:
    """Rows of windows: `fit` to training series, then call with any.

    For each channel a row has the mean over all windows so far; what the means over the last eight and the last two
    windows and the window's own mean add to it; that mean, the signal, and its change; how much was observed; how long
    nothing was; and the roughness of the last windows. A mean of few observations is shrunk to the one before it.

    Args:
        windows: Number of windows of a series of typical length, the 90 % quantile of the training series' horizons.
        shrinkage: Weight of the wider mean, in observations.
        scaler: Scaler of the channels' values, which are first clipped to the range of those in training.

    >>> streams = Streams.from_dense(np.random.default_rng(0).normal(size=(20, 30, 2)), channels=["pulse", "temp"])
    >>> rows = WindowRows(windows=10).fit(streams)
    >>> rows(streams).values.shape, rows.names[9]
    ((20, 10, 18), 'level of temp')
    """

    windows: int = 32
    shrinkage: float = 0.1
    scaler: AbstractScaler = StandardScaler()

    def fit(self, streams: Streams, copies: tuple[Streams, ...] = ()) -> "FittedRows":
        """Choose the width of windows, scale channels, standardise rows.

        Args:
            streams: Training series.
            copies: Further versions of them, by which rows are standardised as well.
        """
        check_readable(streams)
        size = len(streams.schema.channels) * kernels.QUANTITIES
        scaler = fit_scaler(streams, self.scaler)
        plain = FittedRows(
            streams.schema, scaler, width_of(streams, self.windows), self.shrinkage, np.zeros(size), np.ones(size)
        )
        raw = [plain.raw(version) for version in (streams, *copies)]
        values = np.concatenate([one.values[one.valid] for one in raw]).astype(np.float64)
        deviation = values.std(axis=0)
        return dataclasses.replace(
            plain, centre=values.mean(axis=0), spread=np.where(deviation > 1e-6, deviation, np.inf)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of many series.

    Args:
        values: One row for each window, zero beyond those of a series.
        count: Number of windows of each series.
    """

    values: Float32[np.ndarray, "series window row"]
    count: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        """Which windows (series, window) belong to a series."""
        return np.arange(self.values.shape[1]) < self.count[:, None]


@dataclasses.dataclass(frozen=True, eq=False)
class FittedRows(AbstractWindowed):
    """Rows as fitted to training series."""

    schema: Schema
    scaler: ChannelScaler
    width: float
    shrinkage: float
    centre: Float64[np.ndarray, "row"]
    spread: Float64[np.ndarray, "row"]

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each number of a row."""
        return tuple(f"{name} of {channel}" for channel in self.schema.channels for name in NAMES)

    def __call__(self, streams: Streams) -> Rows:
        """Compute the rows of streams."""
        return self.of_windows(Windows.of(self.scaler(streams), self.width))

    def raw(self, streams: Streams) -> Rows:
        """Rows before they are limited."""
        return self.of_windows(Windows.of(self.scaler(streams), self.width), np.inf)

    def of_windows(self, windows: Windows, limit: float = LIMIT) -> Rows:
        """Compute rows from sums over windows of scaled values."""
        series, channels, longest, _ = windows.sums.shape
        out = np.zeros((series, longest, channels * kernels.QUANTITIES), np.float32)
        arrays = windows.sums, windows.count, self.shrinkage, self.centre, self.spread, limit
        spread(kernels.rows_of_windows, windows.count * channels * 4, *arrays, out)
        return Rows(out, windows.count)
