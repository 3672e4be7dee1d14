"""`RecentFeatures`: rows of numbers for questions about the future of a series, from what was observed lately.

A question asks for a value at a time, after a prefix of a series. Its row has the last value of the channel in
question and its age, earlier values and means of windows that slide back from the latest event minus the last value,
the last values of all other channels, and the time asked for. Nothing is filled in: NaN where nothing was observed.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64

from logcde.errors import StreamError
from logcde.kernels import recent as kernels
from logcde.kernels.threads import spread
from logcde.streams import Schema, Streams
from logcde.streams.clock import DatetimeClock
from logcde.streams.ragged import by_channel, offsets_of, owners

TYPICAL = 0.9
"""Quantile of the lengths of series that is the length of a typical one."""
FINEST = 96
"""Windows of a typical series are not shorter than its length divided by this."""
PREFIX_WORK = 500
"""Rough cost of a prefix, in events, by which threads share the work."""
FAR = 1000.0
"""Values this many times larger than their range are counted from their median."""
AHEAD, AGE = 0, 1
"""Where a row has the time ahead, and the age of the last value at the time asked for."""
TIMES = ("time ahead", "age at the time asked", "time since start", "sine of the day", "cosine of the day")
LAST = len(TIMES)
"""Where a row has the last value of the channel in question."""


@dataclasses.dataclass(frozen=True, eq=False)
class Grouped:
    """Observations by series, then by channel, in order of time; and the times of all events of a series.

    Args:
        channels: Number of channels.
        offsets: Where each group of one series and one channel begins, and the total.
        times: Time of each observation.
        values: Value of each observation.
        event_offsets: Where the events of each series begin, and the total.
        event_times: Time of each event.
    """

    channels: int
    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "obs"]
    values: Float64[np.ndarray, "obs"]
    event_offsets: Int64[np.ndarray, "_"]
    event_times: Float64[np.ndarray, "event"]

    @staticmethod
    def of(streams: Streams) -> "Grouped":
        """Group the observations of streams.

        >>> grouped = Grouped.of(Streams.from_arrays([[0.0, 1.0]], [[[1.0, np.nan], [2.0, 3.0]]]))
        >>> grouped.offsets, grouped.values
        (array([0, 2, 3]), array([1., 2., 3.]))
        """
        channels = len(streams.schema.channels)
        event = owners(streams.obs_offsets)
        group = owners(streams.offsets)[event] * channels + streams.channel
        order = np.argsort(group, kind="stable")
        return Grouped(
            channels,
            offsets_of(np.bincount(group, minlength=len(streams) * channels)),
            streams.times[event[order]],
            streams.value[order].astype(np.float64),
            streams.offsets,
            streams.times,
        )

    def prefixes(self, series: Int64[np.ndarray, "prefix"], until: Float64[np.ndarray, "prefix"]) -> "Prefixes":
        """The prefixes of series that end before given times."""
        count, end = np.zeros(len(series), np.int64), np.zeros(len(series))
        arrays = self.event_offsets, self.event_times, count, end
        spread(kernels.latest_events, np.full(len(series), 10), series, until, *arrays)
        return Prefixes(series, until, count, end)


@dataclasses.dataclass(frozen=True, eq=False)
class Prefixes:
    """Prefixes of series: the events before a time, their number, and the time of the latest, 0 without any."""

    series: Int64[np.ndarray, "prefix"]
    until: Float64[np.ndarray, "prefix"]
    count: Int64[np.ndarray, "prefix"]
    end: Float64[np.ndarray, "prefix"]

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, chosen: np.ndarray) -> "Prefixes":
        return Prefixes(self.series[chosen], self.until[chosen], self.count[chosen], self.end[chosen])

    def distinct(self) -> tuple["Prefixes", Int64[np.ndarray, "prefix"]]:
        """The prefixes that differ, in order of series and length, and the place of each one among them."""
        number = self.series * (self.count.max(initial=0) + 1) + self.count
        _, first, place = np.unique(number, return_index=True, return_inverse=True)
        return self[first], place.reshape(-1)


@dataclasses.dataclass(frozen=True, eq=False)
class RecentFeatures:
    """Features of what was observed lately.

    Args:
        schema: Channels and clock of the series.
        reach: Observations older than this before the latest event are forgotten.
        width: For each channel, the length of the windows that lie one behind the other.
        longest: Times asked for lie at most this long after the latest event; later ones count as that.
        reference: For each channel, what its last values are counted from: 0, unless its values are so large beside
            their range that single precision would round it away.
        totals: Whether the number and the mean of all observations in reach are features of each channel.

    >>> streams = Streams.from_dense(np.arange(8.0).reshape(1, 8, 1), channels=["pulse"])
    >>> features = RecentFeatures.fit(streams, longest=2.0)
    >>> grouped = Grouped.of(streams)
    >>> prefixes = grouped.prefixes(np.array([0]), np.array([5.0]))
    >>> rows = features.rows(grouped, prefixes, np.array([0, 0]), np.array([5.0, 6.0]), channel=0)
    >>> dict(zip(features.names(0), rows[1].tolist()))["time ahead"], rows.shape[1] == len(features.names(0))
    (2.0, True)
    """

    schema: Schema
    reach: float
    width: Float64[np.ndarray, "channel"]
    longest: float
    reference: Float64[np.ndarray, "channel"]
    totals: bool = False

    @staticmethod
    def fit(streams: Streams, longest: float, *, totals: bool = False) -> "RecentFeatures":
        """Choose how far back to look: as far as a typical series reaches; a single one is not read that coarsely."""
        if streams.schema.continuous or streams.schema.terms:
            raise StreamError(
                "Recent features read observations only, not continuous channels or higher-order terms.",
                "Leave these out, or forecast with a network.",
            )
        grouped = Grouped.of(streams)
        lengths = grouped.prefixes(np.arange(len(streams)), np.full(len(streams), np.inf)).end
        reach = float(np.quantile(lengths, TYPICAL)) or 1.0
        owner = owners(grouped.offsets)
        inner = owner[1:] == owner[:-1]
        gaps, channel = np.diff(grouped.times)[inner], owner[1:][inner] % grouped.channels
        typical = [
            float(np.median(gaps[channel == k])) if (channel == k).any() else reach for k in range(grouped.channels)
        ]
        if len(streams) == 1:
            reach = min(reach, FINEST * max(typical))
        reference = np.zeros(grouped.channels)
        for k, values in enumerate(by_channel(streams.channel, streams.value, grouped.channels)):
            if len(values) and np.abs(values).min() > FAR * np.ptp(values):
                reference[k] = np.median(values)
        return RecentFeatures(streams.schema, reach, np.maximum(typical, reach / FINEST), longest, reference, totals)

    def level(self, channel: int | None) -> float:
        """What values of the channel of a question are counted from."""
        return 0.0 if channel is None else float(self.reference[channel])

    @property
    def day(self) -> float | None:
        """The length of a day in units of time, if stamps are datetimes with an origin that all series share."""
        clock = self.schema.clock
        if not isinstance(clock, DatetimeClock) or clock.origin is None:
            return None
        return timedelta(days=1) / clock.unit

    def names(self, channel: int | None) -> tuple[str, ...]:
        """The names of the features of a question about a channel; None if it is about none of them."""
        detail = () if channel is None else _detail_names(self.schema.channels[channel])
        windows = [f"mean - last in the last 1/{4**scale}" for scale in range(kernels.COARSE)]
        counted = ["log count", "mean"] if self.totals else []
        brief = (f"{what}({one})" for one in self.schema.channels for what in ("last", "age", *windows, *counted))
        return (*TIMES, *detail, *brief)

    @property
    def most(self) -> int:
        """The number of features of a question about a channel."""
        return len(TIMES) + kernels.DETAILS + len(self.schema.channels) * self._each

    @property
    def _each(self) -> int:
        """The number of features of every channel."""
        return kernels.BRIEF + (kernels.TOTALS if self.totals else 0)

    def brief(self, grouped: Grouped, prefixes: Prefixes) -> Float32[np.ndarray, "prefix common"]:
        """The features of all channels, which do not depend on the question."""
        out = np.empty((len(prefixes), grouped.channels, self._each))
        self._spread(kernels.describe_channels, grouped, prefixes, (), (out,))
        out[:, :, 0] -= self.reference
        if self.totals:
            out[:, :, -1] -= self.reference
        return out.reshape(len(prefixes), -1).astype(np.float32)

    def rows(
        self,
        grouped: Grouped,
        prefixes: Prefixes,
        place: Int64[np.ndarray, "question"],
        time: Float64[np.ndarray, "question"],
        channel: int | None,
        brief: Float32[np.ndarray, "prefix common"] | None = None,
    ) -> Float32[np.ndarray, "question feature"]:
        """One row for each question.

        Args:
            grouped: The observations.
            prefixes: What is known of the series.
            place: The prefix of each question.
            time: The time asked for.
            channel: The channel asked for; None if it is none of them.
            brief: What `brief` returned for these prefixes.
        """
        brief = self.brief(grouped, prefixes) if brief is None else brief
        closely = np.empty((len(prefixes), 0))
        age = np.full(len(time), np.nan)
        ahead = np.minimum(time - prefixes.end[place], self.longest)
        if channel is not None:
            closely = np.empty((len(prefixes), kernels.DETAILS))
            self._spread(kernels.describe_closely, grouped, prefixes, (channel,), (float(self.width[channel]), closely))
            closely[:, 0] -= self.level(channel)
            age = ahead + closely[place, 1]
        columns = np.stack([ahead, age, prefixes.end[place] + ahead, *self._day(time)], axis=1)
        return np.concatenate([columns.astype(np.float32), closely.astype(np.float32)[place], brief[place]], axis=1)

    def _spread(
        self, kernel: Callable[..., Any], grouped: Grouped, prefixes: Prefixes, before: tuple, after: tuple
    ) -> None:
        where = prefixes.series, prefixes.until, prefixes.end
        observed = grouped.offsets, grouped.times, grouped.values, grouped.channels
        spread(kernel, np.full(len(prefixes), PREFIX_WORK), *where, *before, *observed, self.reach, *after)

    def _day(self, time: Float64[np.ndarray, "question"]) -> Sequence[Float64[np.ndarray, "question"]]:
        day = self.day
        if day is None:
            return [np.full(len(time), np.nan)] * 2
        clock = self.schema.clock
        assert isinstance(clock, DatetimeClock)
        assert clock.origin is not None
        midnight = clock.origin.astype("datetime64[D]").astype(clock.origin.dtype)
        begun = (clock.origin - midnight) / np.timedelta64(1, "D")
        turns = (time / day + begun) * (2 * math.pi)
        return np.sin(turns), np.cos(turns)


def _detail_names(channel: str) -> tuple[str, ...]:
    """The names of the features of the channel in question."""
    shape = [f"{what}(asked {channel})" for what in ("last", "age", "spread", "least - last", "greatest - last")]
    lags = [
        f"{what}(asked {channel}, {back} back)"
        for what in ("value - last", "time")
        for back in range(1, kernels.LAGS + 1)
    ]
    scales = [
        f"{what}(asked {channel}) in the last 1/{2**scale}"
        for what in ("mean - last", "log count")
        for scale in range(kernels.SCALES)
    ]
    slides = [f"mean - last(asked {channel}, {number} windows back)" for number in range(kernels.SLIDES)]
    return (*shape, *lags, *scales, *slides)
