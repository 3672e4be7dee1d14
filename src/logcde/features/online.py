"""Features of a growing series, updated event by event, with the same numbers as offline."""

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from logcde.errors import StreamError, Where
from logcde.features.features import FittedFeatures
from logcde.features.windows import MOST_WINDOWS, Windows, window_count
from logcde.kernels import windows as kernels


class OnlineFeatures:
    """Follows one series and computes its features at any time.

    An event costs the same however long the series is; memory grows with the number of windows.

    Args:
        features: Fitted features.

    >>> from logcde import Streams
    >>> from logcde.features import WindowFeatures
    >>> values = np.random.default_rng(0).normal(size=(20, 30, 1))
    >>> streams = Streams.from_dense(values, channels=["pulse"], horizon=30.0)
    >>> features = WindowFeatures(units=10).fit(streams)
    >>> online = OnlineFeatures(features)
    >>> for time, value in zip(streams[0].times, streams[0].value):
    ...     online.observe(time, {"pulse": value})
    >>> bool((online.features(at=30.0) == features(streams)[0]).all())
    True
    """

    def __init__(self, features: FittedFeatures) -> None:
        self._features = features
        channels = len(features.schema.channels)
        self._sums = np.zeros((channels, 1, kernels.QUANTITIES))
        self._latest, self._stamp = np.full(channels, np.nan), np.zeros(channels)
        self.last = -math.inf

    def observe(self, time: float, values: Mapping[str, float] | Float64[np.ndarray, "channel"]) -> None:
        """Take one event, later than all before: values by channel, or one for each channel, NaN = not observed."""
        row = self._row(values) if isinstance(values, Mapping) else np.asarray(values, np.float64)
        if not (max(self.last, -0.0) < time < math.inf or time == 0.0 > self.last):
            raise StreamError(
                f"An event at {time} cannot be taken after one at {self.last}.",
                "Events of a series come in order, from time 0 on.",
                where=Where(stamp=time),
            )
        if row.shape != self._latest.shape or np.isinf(row).any():
            raise StreamError(
                f"The event at {time} has the values {row.tolist()}.",
                f"Give one finite number for each of the {len(self._latest)} channels, NaN = not observed.",
                where=Where(stamp=time),
            )
        self._reserve(time)
        width, windows = self._features.width, self._sums.shape[1]
        scaled = self._features.scaler.row(row)
        for k in np.flatnonzero(~np.isnan(row)):
            kernels.observe(self._sums[k], self._latest[k], self._stamp[k], scaled[k], time, width, windows)
            self._latest[k], self._stamp[k] = scaled[k], time
        self.last = time

    def features(self, at: float | None = None) -> Float32[np.ndarray, "feature"]:
        """The features as if the series ended at this time, by default with the last event. Changes nothing."""
        return self._features.of_windows(self.windows(at))[0]

    def windows(self, at: float | None = None) -> Windows:
        """The sums over windows as if the series ended at this time."""
        end = max(self.last, 0.0) if at is None else float(at)
        if not max(self.last, 0.0) <= end < math.inf:
            raise StreamError(
                f"Features at {end} are not possible: the series is known up to {self.last} already.",
                "Ask for that time or later.",
                where=Where(stamp=end),
            )
        count = window_count(np.array([end]), self._features.width)
        sums = np.zeros((len(self._latest), int(count[0]), kernels.QUANTITIES))
        known = min(self._sums.shape[1], int(count[0]))
        sums[:, :known] = self._sums[:, :known]
        # An event at the very end opens no window: it belongs to the last one.
        sums[:, -1] += self._sums[:, known:].sum(axis=1)
        for k in np.flatnonzero(~np.isnan(self._latest)):
            kernels.hold_until(sums[k], self._latest[k], self._stamp[k], end, self._features.width, int(count[0]))
        return Windows(self._features.width, count, sums[None])

    def copy(self) -> "OnlineFeatures":
        """An independent series that has observed the same."""
        other = copy.copy(self)
        other._sums, other._latest, other._stamp = self._sums.copy(), self._latest.copy(), self._stamp.copy()
        return other

    def state(self) -> dict[str, Any]:
        """All that was observed, in numbers and lists that JSON can represent."""
        latest = [None if math.isnan(x) else x for x in self._latest.tolist()]
        last = None if self.last == -math.inf else self.last
        return {"last": last, "latest": latest, "stamp": self._stamp.tolist(), "sums": self._sums.tolist()}

    def restore(self, state: Mapping[str, Any]) -> "OnlineFeatures":
        """Continue from what `state` returned."""
        latest = np.array([np.nan if x is None else x for x in state["latest"]], np.float64)
        stamp, sums = np.array(state["stamp"], np.float64), np.array(state["sums"], np.float64)
        if (
            latest.shape != self._latest.shape
            or stamp.shape != latest.shape
            or sums.shape[::2] != self._sums.shape[::2]
        ):
            raise StreamError("This state belongs to features of other channels.")
        self._latest, self._stamp, self._sums = latest, stamp, sums
        self.last = -math.inf if state["last"] is None else float(state["last"])
        return self

    def _row(self, values: Mapping[str, float]) -> Float64[np.ndarray, "channel"]:
        channels = self._features.schema.channels
        unknown = [name for name in values if name not in channels]
        if unknown:
            raise StreamError(
                f"There is no channel {unknown[0]!r}.",
                f"The channels are {', '.join(channels)}.",
                where=Where(channel=unknown[0]),
            )
        return np.array([values.get(name, np.nan) for name in channels], np.float64)

    def _reserve(self, time: float) -> None:
        needed = int(time / self._features.width) + 1
        if needed > MOST_WINDOWS:
            raise StreamError(
                f"The stamp {time} is {needed:,} windows of {self._features.width:g} after the start.",
                "Check that it is in the units of time of the training data.",
                where=Where(stamp=time),
            )
        have = self._sums.shape[1]
        if needed > have:
            more = max(needed, 2 * have) - have
            self._sums = np.pad(self._sums, ((0, 0), (0, more), (0, 0)))
