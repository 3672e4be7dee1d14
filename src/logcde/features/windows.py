"""`Windows`: sums over the observations of each channel in windows of one width, with the quantities read from them.

They can be read from the window's log-signature at depth two, with x_0 the value before the window, dx its increment
and c its count: the mean over events is x_0 + (dx c / 2 + [x, #x] + dx / 2) / c, the mean over time is
x_0 + dx / 2 + [x, time] / dt, and the sum of squared increments is twice the area between the channel's lead and lag.
Sums give them at a cost linear in channels, where all brackets would cost its square.
"""

import dataclasses

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import StreamError
from logcde.kernels import windows as kernels
from logcde.kernels.threads import spread
from logcde.streams import Streams

MOST_WINDOWS = 65_536
"""Windows of one series, above which the width was most likely meant for other series."""
ROUNDING = 1e-9
"""A last window shorter than this share of its width is rounding error."""


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """Sums over windows [0, width), [width, 2 width), ... of many series.

    Args:
        width: Length of a window.
        count: Number of windows of each series: as many as reach its horizon, at least one.
        sums: Sums of each channel: observations, values, squared increments, time with a latest value, integral of the
            latest value. Zero beyond the windows of a series.
        strangeness: The share of observations that were clipped to the range of those in training, if it is known.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"], horizon=4.0)
    >>> windows = Windows.of(streams, width=2.0)
    >>> windows.observations[0, 0], windows.event_means[0, 0], windows.time_means[0, 0], windows.roughness[0, 0]
    (array([2., 1.]), array([5.5, 4. ]), array([5.5, 5. ]), array([0.70710678, 2.        ]))
    """

    width: float
    count: Int64[np.ndarray, "series"]
    sums: Float64[np.ndarray, "series channel window quantity"]
    strangeness: Float64[np.ndarray, "series"] | None = None

    @staticmethod
    def of(streams: Streams, width: float, threads: int | None = None) -> "Windows":
        """Sum over the observations of streams, in their own units.

        Args:
            streams: The streams.
            width: Length of a window.
            threads: Number of threads; by default one for each core.
        """
        count = window_count(streams.horizon, width)
        longest = int(count.max(initial=1))
        if longest > MOST_WINDOWS:
            raise StreamError(
                f"The longest series has {longest:,} windows of {width:g}, more than {MOST_WINDOWS:,}.",
                "Choose wider windows, or check the horizon of the series.",
            )
        sums = np.zeros((len(streams), len(streams.schema.channels), longest, kernels.QUANTITIES))
        arrays = streams.offsets, streams.times, streams.obs_offsets, streams.channel, streams.value, streams.horizon
        spread(kernels.sum_windows, np.diff(streams.offsets), *arrays, width, count, sums, threads=threads)
        return Windows(width, count, sums)

    def __len__(self) -> int:
        return len(self.count)

    @property
    def observations(self) -> Float64[np.ndarray, "series channel window"]:
        """How often each channel was observed in each window."""
        return self.sums[..., kernels.COUNT]

    @property
    def event_means(self) -> Float64[np.ndarray, "series channel window"]:
        """Mean of the observed values, NaN without any."""
        return _ratio(self.sums[..., kernels.TOTAL], self.observations)

    @property
    def time_means(self) -> Float64[np.ndarray, "series channel window"]:
        """Mean over time of the latest value, NaN before the first."""
        return _ratio(self.sums[..., kernels.INTEGRAL], self.sums[..., kernels.HELD])

    @property
    def roughness(self) -> Float64[np.ndarray, "series channel window"]:
        """Root mean square of the increments from one observation to the next, NaN without observations."""
        return np.sqrt(_ratio(self.sums[..., kernels.VARIATION], self.observations))


def window_count(horizon: Float64[np.ndarray, "series"], width: float) -> Int64[np.ndarray, "series"]:
    """The number of windows that reach the horizon; up to rounding, a horizon at the end of a window opens no other."""
    return np.clip(np.ceil(horizon / width - ROUNDING), 1, 2**62).astype(np.int64)


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
