"""Smoothers: from the sums of windows to a signal, one number for each channel and window."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Float32, Float64

from logcde.errors import check_positive, check_whole
from logcde.features.windows import Windows
from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread

FEW_PAIRS = 30.0
"""Covariances over time are shrunk to zero as if this many pairs of windows without covariance had been seen."""


class AbstractFittedSmoother(abc.ABC):
    """Estimates the mean of each channel in each window from the observations in all windows of a series."""

    @abc.abstractmethod
    def __call__(self, windows: Windows) -> Float32[np.ndarray, "series channel window"]:
        """The signal; zero beyond the windows of a series. Each series is smoothed by itself."""


class AbstractSmoother(abc.ABC):
    """Learns from training series how to estimate means of windows."""

    @abc.abstractmethod
    def fit(self, windows: Windows) -> AbstractFittedSmoother:
        """Learn from the windows of training series."""


@dataclasses.dataclass(frozen=True)
class Shrinkage(AbstractSmoother, AbstractFittedSmoother):
    """Means of windows, each shrunk to that of the window of twice the width around it.

    Args:
        weight: Weight of the wider window, in observations.
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        check_positive("Shrinkage", "weight", self.weight)

    def fit(self, windows: Windows) -> "Shrinkage":
        """Return the same smoother: the weight is given."""
        return self

    def __call__(self, windows: Windows) -> Float32[np.ndarray, "series channel window"]:
        """From the whole series down to single windows."""
        series, channels, longest, _ = windows.sums.shape
        signal, work = np.zeros((series, channels, longest), np.float32), windows.count * channels
        spread(kernels.shrink_means, work, windows.sums, windows.count, self.weight, signal)
        return signal


@dataclasses.dataclass(frozen=True)
class GaussianProcess(AbstractSmoother):
    """Means of windows, each shrunk to its conditional mean given all observations of all channels.

    Channels are a stationary Gaussian process whose covariance is a product of one across channels and one over time.
    Both are moments of the training series; `rank` components of the product are kept. So a channel that is silent for
    a while is estimated from the others, and from its own oscillations before and after.

    Args:
        rank: Number of components.
        noise: Variance of an observation around the components, as a share of the channel's variance.
        weight: Weight of the conditional mean, in observations.
        pairs: Correlations of channels are shrunk to zero as if this many windows without correlation had been seen.
    """

    rank: int = 200
    noise: float = 0.3
    weight: float = 0.3
    pairs: float = 20.0

    def __post_init__(self) -> None:
        check_whole("GaussianProcess", "rank", self.rank)
        for name in ("noise", "weight", "pairs"):
            check_positive("GaussianProcess", name, getattr(self, name))

    def fit(self, windows: Windows) -> "FittedGaussianProcess":
        """Estimate means and covariances."""
        count, total = windows.observations, windows.sums[..., kernels.TOTAL]
        centre = total.sum(axis=(0, 2)) / np.maximum(count.sum(axis=(0, 2)), 1.0)
        seen = (count > 0).astype(np.float64)
        off = np.where(count > 0, total / np.maximum(count, 1.0) - centre[:, None], 0.0)
        variance = np.square(off).sum(axis=(0, 2)) / np.maximum(seen.sum(axis=(0, 2)), 1.0)
        variance = np.where(variance > 0, variance, 1.0)
        scaled = off / np.sqrt(variance)[:, None]
        across = _kept_positive(_shrunk(_across_channels(scaled), _across_channels(seen), self.pairs))
        along = _shrunk(_along_time(scaled), _along_time(seen), FEW_PAIRS)
        lags = np.arange(len(along))
        over = _kept_positive(along[np.abs(lags[:, None] - lags)])
        sizes = np.outer(across[0], over[0])
        kept = np.argsort(sizes, axis=None, kind="stable")[::-1][: self.rank]
        one, other = np.unravel_index(kept, sizes.shape)
        channel = across[1][:, one] * np.sqrt(variance)[:, None]
        return FittedGaussianProcess(
            centre, self.noise * variance, self.weight, channel, over[1][:, other] * np.sqrt(sizes.ravel()[kept])
        )


@dataclasses.dataclass(frozen=True, eq=False)
class FittedGaussianProcess(AbstractFittedSmoother):
    """A Gaussian process with the moments of training series. Longer series are smoothed piece by piece.

    Attributes:
        centre: Mean of each channel.
        noise: Variance of an observation around the components.
        weight: Weight of the conditional mean, in observations.
        channel: Loadings of the components in channels.
        window: Loadings in windows; a component is the product of both.
    """

    centre: Float64[np.ndarray, "channel"]
    noise: Float64[np.ndarray, "channel"]
    weight: float
    channel: Float64[np.ndarray, "channel rank"]
    window: Float64[np.ndarray, "window rank"]

    def __call__(self, windows: Windows) -> Float32[np.ndarray, "series channel window"]:
        """Condition on the observations of each series."""
        signal = np.zeros(windows.sums.shape[:3], np.float32)
        spread(self._smooth, windows.count * windows.sums.shape[1], windows, signal)
        return signal

    def _smooth(self, first: int, last: int, windows: Windows, signal: Float32[np.ndarray, "series channel _"]) -> None:
        for series in range(first, last):
            for begin in range(0, int(windows.count[series]), len(self.window)):
                end = min(begin + len(self.window), int(windows.count[series]))
                sums = windows.sums[series, :, begin:end]
                count, total = sums[..., kernels.COUNT], sums[..., kernels.TOTAL]
                mean = self.centre[:, None] + self._conditional(count, total)
                signal[series, :, begin:end] = (total + self.weight * mean) / (count + self.weight)

    def _conditional(
        self, count: Float64[np.ndarray, "channel window"], total: Float64[np.ndarray, "channel window"]
    ) -> Float64[np.ndarray, "channel window"]:
        channel, window = np.nonzero(count)
        number = count[channel, window]
        precision = number / self.noise[channel]
        loadings = self.channel[channel] * self.window[window]
        weighted = loadings * precision[:, None]
        matrix = np.eye(self.window.shape[1]) + weighted.T @ loadings
        state = np.linalg.solve(matrix, weighted.T @ (total[channel, window] / number - self.centre[channel]))
        return (self.channel * state) @ self.window[: count.shape[1]].T


def _across_channels(values: Float64[np.ndarray, "series channel window"]) -> Float64[np.ndarray, "channel channel"]:
    """Sums of products of channels in the same window."""
    flat = values.swapaxes(0, 1).reshape(values.shape[1], -1)
    return flat @ flat.T


def _along_time(values: Float64[np.ndarray, "series channel window"]) -> Float64[np.ndarray, "window"]:
    """Sums of products of two windows of a channel, by their distance."""
    length = values.shape[2]
    spectrum = np.square(np.abs(np.fft.rfft(values, 2 * length, axis=2))).sum(axis=(0, 1))
    return np.fft.irfft(spectrum, 2 * length)[:length]


def _shrunk(
    products: Float64[np.ndarray, "..."], pairs: Float64[np.ndarray, "..."], shrinkage: float
) -> Float64[np.ndarray, "..."]:
    """Correlations, shrunk to zero where there are few pairs; 1 on the diagonal, or at distance 0."""
    found = products / (np.round(pairs) + shrinkage)
    if found.ndim == 1:
        found[0] = 1.0
    else:
        np.fill_diagonal(found, 1.0)
    return found


def _kept_positive(
    matrix: Float64[np.ndarray, "size size"],
) -> tuple[Float64[np.ndarray, "size"], Float64[np.ndarray, "size size"]]:
    """Eigenvalues, negative ones as zero, and eigenvectors."""
    sizes, vectors = np.linalg.eigh(matrix)
    return np.maximum(sizes, 0.0), vectors
