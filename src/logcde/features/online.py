"""Features of a growing series, updated event by event, with the same numbers as offline."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from logcde._typing import Numbers
from logcde.errors import StreamError, Where
from logcde.features.abstract import (
    AbstractFittedFeatures,
    AbstractOnlineFeatures,
    AbstractWindowed,
    strangeness_of,
)
from logcde.features.windows import MOST_WINDOWS, ROUNDING, Windows
from logcde.kernels import windows as kernels
from logcde.streams import Clock, Schema
from logcde.streams.labels import read_row
from logcde.streams.series_clock import begun_by, own_origin, shown, time_on, with_origin_number

AT_ONCE = 64
"""Events that are scaled together."""


class OnlineFeatures(AbstractOnlineFeatures):
    """Follows one series and computes its features at any time.

    An event costs the same however long the series is; memory grows with the number of windows.

    Args:
        features: Fitted features, or rows; of these it keeps the sums.

    >>> from logcde import Streams
    >>> from logcde.features import WindowFeatures
    >>> values = np.random.default_rng(0).normal(size=(20, 30, 1))
    >>> streams = Streams.from_dense(values, channels=["pulse"], horizon=30.0)
    >>> features = WindowFeatures(units=10).fit(streams)
    >>> online = features.online()
    >>> for time, value in zip(streams[0].times, streams[0].value):
    ...     online.observe(time, {"pulse": value})
    >>> bool((online.features(at=30.0) == features(streams)[0]).all())
    True
    """

    def __init__(self, features: AbstractWindowed) -> None:
        self._features = features
        self._sums = ChannelSums.empty(len(features.schema.channels), features.width)
        # Events that are checked only. Scaling many at once takes little longer than scaling one.
        self._new: list[tuple[float, np.ndarray]] = []
        # An event at the end of a window belongs to the next one, unless the series ends there. So it waits.
        self._waiting: list[tuple[float, np.ndarray]] = []
        self._outside, self._observations = 0, 0
        self.last = -math.inf
        self.clock: Clock = features.schema.clock

    def observe(self, time: object, values: Mapping[str, float] | Numbers) -> None:
        """Take one event, later than all before: values by channel, or one for each channel, NaN = not observed."""
        clock = begun_by(self.clock, time)
        time = float(time_on(clock, time))
        row = row_of(self._features.schema, values)
        self.check(time, row)
        check_later(clock, time, self.last)
        if np.isnan(row).all():
            return
        self._new.append((time, row.copy()))
        self.last, self.clock = time, clock
        if len(self._new) >= AT_ONCE:
            self._take_new()

    def _take_new(self) -> None:
        if not self._new:
            return
        times, new = zip(*self._new, strict=True)
        self._new = []
        rows, scaler, width = np.array(new), self._features.scaler, self._features.width
        self._outside += int(scaler.outside(rows).sum())
        self._observations += int((~np.isnan(rows)).sum())
        for time, row in zip(times, scaler.row(rows), strict=True):
            windows = _count(time, width)
            if self._waiting and windows > self._window(self._waiting[0][0]):
                self._take_waiting()
            self._waiting.append((time, row))
            if windows > self._window(time):
                self._take_waiting()

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse an event that no series can have: a stamp before 0 or far beyond all training, or infinite values."""
        check_event(self.clock, time, row, len(self._features.schema.channels))
        self._check_reach(time)

    def features(self, at: object = None) -> Float32[np.ndarray, "feature"]:
        """The features as if the series ended at this time, by default with the last event. Changes nothing."""
        assert isinstance(self._features, AbstractFittedFeatures)
        return self._features.of_windows(self.windows(at))[0]

    def windows(self, at: object = None) -> Windows:
        """The sums over windows as if the series ended at this time."""
        return windows_of([self], [self.end(at)])

    def end(self, at: object = None) -> float:
        """The time of a stamp at which the series may end, by default that of the last event."""
        known = max(self.last, 0.0)
        end = known if at is None else float(time_on(self.clock, at))
        check_finite(end)
        if end < known:
            raise StreamError(
                f"Features at {shown(self.clock, end)} are not possible: the series is known up to "
                f"{shown(self.clock, known)} already.",
                "Ask for that time or later.",
                where=Where(stamp=shown(self.clock, end)),
            )
        self._check_reach(end)
        return end

    def write(self, end: float, sums: Float64[np.ndarray, "channel window quantity"]) -> None:
        """Write the sums over windows as if the series ended at a time, into zeros."""
        self._take_new()
        self._sums.write(sums, self._waiting, end)

    @property
    def strangeness(self) -> Float64[np.ndarray, "series"]:
        """The share of observations that lie outside of the range of training."""
        self._take_new()
        return strangeness_of(np.array([self._outside]), np.array([self._observations]))

    @property
    def width(self) -> float:
        """Length of a window."""
        return self._features.width

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._features.schema

    @property
    def final(self) -> int:
        """Number of windows to which no later event adds anything."""
        if self.last == -math.inf:
            return 0
        self._take_new()
        return max(self._window(self.last) - bool(self._waiting), 0)

    def copy(self) -> "OnlineFeatures":
        """An independent series that has observed the same."""
        other = copy.copy(self)
        other._sums, other._waiting, other._new = self._sums.copy(), self._waiting.copy(), self._new.copy()
        return other

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """All that was observed, in numbers, lists and, if allowed, arrays, without windows that are zero."""
        self._take_new()
        return {
            "digest": self._features.digest,
            "last": None if self.last == -math.inf else self.last,
            "origin": own_origin(self.clock, self._features.schema.clock),
            "sums": self._sums.state(arrays),
            "waiting": [[time, _encode(row)] for time, row in self._waiting],
            "outside": [self._outside, self._observations],
        }

    def restore(self, state: Mapping[str, Any]) -> "OnlineFeatures":
        """Continue from what `state` returned."""
        if state["digest"] != self._features.digest:
            raise StreamError(
                "This state belongs to features of other channels, scales or windows.",
                "Restore it with the same model.",
            )
        sums = ChannelSums.restored(state["sums"], len(self._features.schema.channels), self._features.width)
        self._new, self._waiting = [], [(float(time), _decode(row)) for time, row in state["waiting"]]
        self._outside, self._observations = map(int, state["outside"])
        self._sums, self.last = sums, -math.inf if state["last"] is None else float(state["last"])
        self.clock = with_origin_number(self._features.schema.clock, state.get("origin"))
        return self

    def _window(self, time: float) -> int:
        return int(time / self._features.width)

    def _check_reach(self, time: float) -> None:
        if time / self._features.width > MOST_WINDOWS:
            raise StreamError(
                f"The stamp {shown(self.clock, time)} is {time / self._features.width:,.0f} windows of "
                f"{self._features.width:g} after the start, more than {MOST_WINDOWS:,}.",
                "Check that it is in the units of time of the training data.",
                where=Where(stamp=shown(self.clock, time)),
            )

    def _take_waiting(self) -> None:
        self._sums.reserve(self._window(self._waiting[-1][0]) + 1)
        for time, row in self._waiting:
            self._sums.observe(time, row)
        self._waiting = []


def windows_of(series: Sequence[OnlineFeatures], ends: Sequence[float]) -> Windows:
    """The sums over windows of series with the same features, as if each ended at a time of its own.

    Args:
        series: At least one.
        ends: For each what `OnlineFeatures.end` returned.
    """
    first = series[0]
    counts = [_count(end, first.width) for end in ends]
    sums = np.zeros((len(series), len(first.schema.channels), max(counts), kernels.QUANTITIES))
    for one, end, count, own in zip(series, ends, counts, sums, strict=True):
        one.write(end, own[:, :count])
    return Windows(first.width, np.array(counts), sums, np.concatenate([one.strangeness for one in series]))


class ChannelSums:
    """Sums over the windows of one series (channel, window, quantity), and the latest observation of each channel."""

    def __init__(self, width: float, sums: np.ndarray, latest: np.ndarray, stamp: np.ndarray) -> None:
        self.width, self._sums, self._latest, self._stamp = width, sums, latest, stamp

    @staticmethod
    def empty(channels: int, width: float) -> "ChannelSums":
        """The sums of no observations."""
        sums = np.zeros((channels, 1, kernels.QUANTITIES))
        return ChannelSums(width, sums, np.full(channels, np.nan), np.zeros(channels))

    def reserve(self, windows: int) -> None:
        """Make room for windows; twice as many as before if that is more, so that events cost the same on average."""
        have = self._sums.shape[1]
        if windows > have:
            self._sums = np.pad(self._sums, ((0, 0), (0, max(windows, 2 * have) - have), (0, 0)))

    def observe(self, time: float, row: Float64[np.ndarray, "channel"]) -> None:
        """Add scaled values; what lies beyond the last window belongs to it."""
        kernels.observe_channels(self._sums, self._latest, self._stamp, row, time, self.width, self._sums.shape[1])

    def write(
        self,
        sums: Float64[np.ndarray, "channel window quantity"],
        further: list[tuple[float, Float64[np.ndarray, "channel"]]],
        end: float,
    ) -> None:
        """Write the sums after further events into zeros, with the latest values kept until the series ends.

        Args:
            sums: Has as many windows as reach the end; beyond them there was nothing.
            further: Time and scaled values of each event.
            end: Where the series ends.
        """
        windows, latest, stamp = sums.shape[1], self._latest, self._stamp
        known = self._sums[:, :windows]
        sums[:, : known.shape[1]] = known
        if further:
            latest, stamp = latest.copy(), stamp.copy()
        for time, row in further:
            kernels.observe_channels(sums, latest, stamp, row, time, self.width, windows)
        kernels.hold_until(sums, latest, stamp, end, self.width, windows)

    def copy(self) -> "ChannelSums":
        """An independent copy."""
        return ChannelSums(self.width, self._sums.copy(), self._latest.copy(), self._stamp.copy())

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The sums of windows that are not zero, and the latest observations. An array is flat."""
        places = np.nonzero(self._sums.any(axis=2))
        windows = np.column_stack([*places, self._sums[places]])
        if arrays:
            return {"latest": self._latest.copy(), "stamp": self._stamp.copy(), "windows": windows.reshape(-1)}
        return {
            "latest": _encode(self._latest),
            "stamp": self._stamp.tolist(),
            "windows": [[int(k), int(window), *quantities] for k, window, *quantities in windows.tolist()],
        }

    @staticmethod
    def restored(state: Mapping[str, Any], channels: int, width: float) -> "ChannelSums":
        """The sums whose `state` this is."""
        sums = ChannelSums.empty(channels, width)
        sums._latest[:], sums._stamp[:] = _decode(state["latest"]), state["stamp"]
        windows = np.array(state["windows"], np.float64)
        if isinstance(state["windows"], np.ndarray) or not windows.size:
            windows = windows.reshape(-1, 2 + kernels.QUANTITIES)
        places = windows[:, :2]
        wrong = ~((places >= 0) & (places <= [channels - 1, MOST_WINDOWS]) & (places == np.floor(places))).all(axis=1)
        if wrong.any():
            k, window = places[wrong][0].tolist()
            raise StreamError(f"This state has sums over window {window:g} of channel {k:g}, which there cannot be.")
        k, window = places.astype(np.int64).T
        sums.reserve(1 + int(max(window, default=-1)))
        sums._sums[k, window] = windows[:, 2:]
        return sums


def row_of(schema: Schema, values: Mapping[str, float] | Numbers) -> Float64[np.ndarray, "_"]:
    """One number for each channel, NaN for those that are not observed, as long as `values` are named.

    >>> row_of(Schema(("pulse", "temp")), {"temp": 37.0})
    array([nan, 37.])
    """
    if type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1:
        return values  # the common case, as fast as possible
    return read_row(schema.places, values)


def check_event(clock: Clock, time: float, row: Float64[np.ndarray, "_"], channels: int) -> None:
    """Refuse an event with a stamp before 0 or infinite, infinite values or the wrong number of values."""
    if not 0.0 <= time < math.inf:
        raise StreamError(
            f"The stamp of an event is {shown(clock, time)}.",
            f"Stamps are finite, from {shown(clock, 0.0).removesuffix('.0')} on.",
            where=Where(stamp=shown(clock, time)),
        )
    if row.shape != (channels,) or np.isinf(row).any():
        raise StreamError(
            f"The event at {shown(clock, time)} has the values {row.tolist()}.",
            f"Give one finite number for each of the {channels} channels, NaN = not observed.",
            where=Where(stamp=shown(clock, time)),
        )


def check_finite(time: float) -> None:
    """Refuse a prediction at no time.

    >>> check_finite(float("nan"))
    Traceback (most recent call last):
    logcde.errors.StreamError: A prediction at nan is not possible. Give a finite stamp.
    """
    if not math.isfinite(time):
        found = f"A prediction at {time} is not possible."
        raise StreamError(found, "Give a finite stamp.", where=Where(stamp=str(time)))


def check_later(clock: Clock, time: float, last: float) -> None:
    """Refuse an event that is not later than the last one."""
    if time <= last:
        raise StreamError(
            f"An event at {shown(clock, time)} cannot be taken after one at {shown(clock, last)}.",
            "Give the events of a series in order, and all observations of one stamp in one call.",
            where=Where(stamp=shown(clock, time)),
        )


def _count(end: float, width: float) -> int:
    """As `window_count`, for one series and faster."""
    return max(math.ceil(end / width - ROUNDING), 1)


def _encode(row: Float64[np.ndarray, "channel"]) -> list[float | None]:
    return [None if math.isnan(x) else x for x in row.tolist()]


def _decode(row: Sequence[float | None] | np.ndarray) -> Float64[np.ndarray, "channel"]:
    return np.array([np.nan if x is None else x for x in row], np.float64)
