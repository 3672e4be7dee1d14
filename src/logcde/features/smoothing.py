"""Smoothers: from the sums of windows to a signal, one number for each channel and window."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Float32

from logcde.features.windows import Windows
from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread


class AbstractSmoother(abc.ABC):
    """Estimates the mean of each channel in each window from the observations in all windows."""

    @abc.abstractmethod
    def fit(self, windows: Windows) -> "AbstractSmoother":
        """Learn from training series."""

    @abc.abstractmethod
    def __call__(self, windows: Windows) -> Float32[np.ndarray, "series channel window"]:
        """The signal; zero beyond the windows of a series."""


@dataclasses.dataclass(frozen=True)
class Shrinkage(AbstractSmoother):
    """Means of windows, each shrunk to that of the window of twice the width around it.

    Args:
        weight: Weight of the wider window, in observations.
    """

    weight: float = 0.1

    def fit(self, windows: Windows) -> "Shrinkage":
        """Return the same smoother: the weight is given."""
        return self

    def __call__(self, windows: Windows) -> Float32[np.ndarray, "series channel window"]:
        """From the whole series down to single windows."""
        series, channels, longest, _ = windows.sums.shape
        signal, work = np.zeros((series, channels, longest), np.float32), windows.count * channels
        spread(kernels.shrink_means, work, windows.sums, windows.count, self.weight, signal)
        return signal
