"""`TrainingRanges`: what a model was trained on, and which series lie far outside of it.

A growing series is only ever found outside of a range that it has left for good: one that is young is short, not
unusual. So all is measured from its first event on, but for the empty parts of its window before and after its events.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.errors import StreamError
from logcde.streams.clock import moment_of, unit_name
from logcde.streams.faults import name
from logcde.streams.ragged import owners, stable_order
from logcde.streams.schema import listed
from logcde.streams.streams import Streams

FACTOR = 3.0
"""How many times the most that was seen in training is far outside: counts, gaps and lengths."""
SLACK = 5
"""Observations that are added to the limit of a count, because small numbers vary by chance."""
FEWEST = 20
"""Observations that a channel needs in training for the range of its values to mean anything."""
WIDTHS = 2.0
"""How many widths of a range of values beyond it are far outside."""
STRAYS = 5
"""Values of a channel that have to be far outside: one is a faulty reading, which real data have."""
SCALES = 7
"""Lengths of windows in which observations are counted: the longest training series, and halves of it."""
REMEDY = (
    "Predictions are extrapolated there. Check the units of stamps and values, thin the feed, or train on such series."
)

FAR_START = (
    "If time should count from where each series begins, train and predict with origin=FirstStamp(), in commands "
    "--origin first."
)
"""What to do about series that begin far from the origin."""

Reason: TypeAlias = Literal["density", "values", "gaps", "length", "window"]


@dataclasses.dataclass(frozen=True)
class Excess:
    """The series that is furthest outside of one range.

    Attributes:
        reason: Which range.
        text: What was found, and what was seen in training.
        ratio: What was found, as a multiple of the limit.
        series: The id of the series.
        channel: The channel; None if it is about all.
        remedy: What to do about just this; empty if there is nothing more to say.
    """

    reason: Reason
    text: str
    ratio: float
    series: object = None
    channel: str | None = None
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class OutOfRange:
    """Series that lie far outside of the ranges of training; `str` says which, how far, and what to do.

    Attributes:
        series: Number of these series.
        total: Number of all series.
        worst: For each range that was left the series that is furthest outside, the furthest first.
    """

    series: int
    total: int
    worst: tuple[Excess, ...]

    def __str__(self) -> str:
        cases = " ".join(f"{_subject(one.series)} {one.text}." for one in self.worst)
        remedies = " ".join([REMEDY, *dict.fromkeys(one.remedy for one in self.worst if one.remedy)])
        if self.total == 1:
            return f"{cases} That is far outside of what the model was trained on. {remedies}"
        verb = "lies" if self.series == 1 else "lie"
        return (
            f"{self.series:,} of {self.total:,} series {verb} far outside of what the model was trained on. {cases} "
            f"{remedies}"
        )

    def __add__(self, other: "OutOfRange") -> "OutOfRange":
        """Join what was found in other series."""
        return OutOfRange(self.series + other.series, self.total + other.total, _furthest(self.worst + other.worst))


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingRanges:
    """Ranges of the series that a model was trained on. A series is far outside of them

    - with more than three times the observations of a channel, or events, that a training series had within a window
      of the same length, and five more; windows are as long as the longest training series, half of it, ... to 1/64,
    - with five values of a channel that are beyond its range by more than twice the width of that range,
    - if a channel pauses more than three times longer than it was ever silent, and for half a training series,
    - with more than three times the time from first to last event,
    - if its window is empty, before its first or after its last event, for more than three times as long as in
      training, and for half a training series.

    Training series without a channel count as silence of it. Channels with fewer than 20 observations in training have
    no range of values.

    Attributes:
        channels: Names of the channels.
        lowest: Lowest value of each channel, minus infinity if it has no range.
        highest: Highest value, infinity if it has no range.
        most: Most observations of each channel within a window of each of `widths`, and last most events.
        silence: Longest time without an observation of each channel.
        longest: Longest time from first to last event.
        unit: Unit of time, empty for plain numbers.
        before: Longest time from the start of a window to its first event; infinity if that is not known.
        after: Longest time from the last event of a window to its end; infinity if that is not known.

    >>> training = Streams.from_dense(np.random.default_rng(0).uniform(size=(10, 30, 1)), channels=["pulse"])
    >>> ranges = TrainingRanges.of(training)
    >>> ranges.compare(training) is None
    True
    >>> dense = Streams.from_dense(np.zeros((1, 150, 1)), np.linspace(0, 29, 150), ["pulse"], ids=["p1"])
    >>> found = ranges.compare(dense)
    >>> found.series, found.worst[0].text
    (1, "has 150 observations of 'pulse' within 29, in training at most 30")
    """

    channels: tuple[str, ...]
    lowest: Float64[np.ndarray, "channel"]
    highest: Float64[np.ndarray, "channel"]
    most: Int64[np.ndarray, "width _"]
    silence: Float64[np.ndarray, "channel"]
    longest: float
    unit: str = ""
    before: float = np.inf
    after: float = np.inf

    def __post_init__(self) -> None:
        count = len(self.channels)
        shapes = {"lowest": (count,), "highest": (count,), "most": (SCALES, count + 1), "silence": (count,)}
        for field, shape in shapes.items():
            found = getattr(self, field)
            if found.shape != shape or np.isnan(found).any():
                raise StreamError(f"TrainingRanges.{field} has shape {found.shape}, not {shape}, or has NaN.")
        if not 0 < self.longest < np.inf:
            raise StreamError(f"TrainingRanges.longest is {self.longest}, which is not a positive, finite time.")
        if not (self.before >= 0 and self.after >= 0):
            raise StreamError(
                f"TrainingRanges.before and after are {self.before} and {self.after}, which are no times."
            )

    @staticmethod
    def of(streams: Streams) -> "TrainingRanges":
        """The ranges of these series.

        >>> streams = Streams.from_arrays([[0.0, 2.0, 8.0]], [[[1.0], [2.0], [3.0]]], ["pulse"])
        >>> ranges = TrainingRanges.of(streams)
        >>> ranges.longest, ranges.silence, ranges.most[:4].T.tolist()
        (8.0, array([6.]), [[3, 2, 2, 1], [3, 2, 2, 1]])
        """
        names = streams.schema.channels
        seen = _Observations(streams)
        lowest, highest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
        np.minimum.at(lowest, streams.channel, streams.value)
        np.maximum.at(highest, streams.channel, streams.value)
        few = np.bincount(streams.channel, minlength=len(names)) < FEWEST
        longest = next((float(one) for one in (seen.span.max(initial=0), streams.horizon.max(initial=0)) if one > 0), 1)
        most = np.zeros((SCALES, len(names) + 1), np.int64)
        for row, width in zip(most, _widths(longest), strict=True):
            count, first = seen.counts(width)
            np.maximum.at(row, seen.channel[first], count)
        return TrainingRanges(
            names,
            np.where(few, -np.inf, lowest),
            np.where(few, np.inf, highest),
            most,
            seen.silence(),
            float(longest),
            unit_name(streams.schema.clock),
            float(seen.start.max(initial=0.0)),
            float(seen.rest.max(initial=0.0)),
        )

    @functools.cached_property
    def widths(self) -> Float64[np.ndarray, "width"]:
        """Lengths of the windows in which observations are counted."""
        return _widths(self.longest)

    @functools.cached_property
    def most_allowed(self) -> Float64[np.ndarray, "width _"]:
        """Beyond these counts a series is far outside."""
        return FACTOR * self.most + SLACK

    @functools.cached_property
    def values_allowed(self) -> tuple[Float64[np.ndarray, "channel"], Float64[np.ndarray, "channel"]]:
        """Below the first and above the second a value is far outside."""
        with np.errstate(over="ignore"):
            return self.lowest - self._margin, self.highest + self._margin

    @functools.cached_property
    def gaps_allowed(self) -> Float64[np.ndarray, "channel"]:
        """Beyond these a gap between two observations of a channel is far outside."""
        return np.maximum(FACTOR * self.silence, self.longest / 2)

    @property
    def length_allowed(self) -> float:
        """Beyond this a series is too long."""
        return FACTOR * self.longest

    @functools.cached_property
    def before_allowed(self) -> float:
        """A window whose first event is later than this begins too early."""
        return max(FACTOR * self.before, self.longest / 2)

    @functools.cached_property
    def after_allowed(self) -> float:
        """A window that goes on for longer than this after its last event ends too late."""
        return max(FACTOR * self.after, self.longest / 2)

    @functools.cached_property
    def _margin(self) -> Float64[np.ndarray, "channel"]:
        with np.errstate(over="ignore"):  # a range as wide as all numbers allows every value
            width = WIDTHS * (self.highest - self.lowest)
        constant = 1e-6 * np.maximum(np.abs(self.lowest), np.abs(self.highest))
        return np.where(np.isinf(self.lowest), 1.0, np.maximum(width, constant))

    def compare(self, streams: Streams, ends: Float64[np.ndarray, "series"] | None = None) -> OutOfRange | None:
        """Find the series that lie far outside of these ranges; None if there are none.

        Args:
            streams: Series with the same channels.
            ends: For each series the time up to which it is asked for; by default its horizon.
        """
        seen = _Observations(streams, ends)
        found = [
            *(self._dense_series(seen, place) for place in range(SCALES)),
            self._wild_series(streams),
            self._pausing_series(seen),
            self._long_series(seen),
            self._late_series(seen),
            self._ended_series(seen),
        ]
        outside = np.zeros(len(streams), bool)
        for series, _ in found:
            outside[series] = True
        ids = streams.ids.tolist()
        worst = [dataclasses.replace(one, series=ids[series[0]]) for series, one in found if one is not None]
        return OutOfRange(int(outside.sum()), len(streams), _furthest(worst)) if worst else None

    def _dense_series(self, seen: "_Observations", place: int) -> tuple[np.ndarray, Excess | None]:
        """The series with too many observations in a window, the worst one first, and what is to say about it."""
        count, first = seen.counts(self.widths[place])
        channel = seen.channel[first]
        far = _furthest_first(count / self.most_allowed[place, channel])
        worst = self.dense(place, int(channel[far[0]]), int(count[far[0]])) if len(far) else None
        return seen.series[first[far]], worst

    def _wild_series(self, streams: Streams) -> tuple[np.ndarray, Excess | None]:
        channel, value = streams.channel, streams.value
        low, high = (allowed[channel] for allowed in self.values_allowed)
        stray = np.flatnonzero((value < low) | (value > high))
        series = owners(streams.offsets)[owners(streams.obs_offsets)[stray]]
        _, pair, count = np.unique(
            series * len(self.channels) + channel[stray], return_inverse=True, return_counts=True
        )
        kept = count[pair] >= STRAYS
        stray, series, count = stray[kept], series[kept], count[pair][kept]
        far = _furthest_first(self.beyond(channel[stray], value[stray]))
        if not len(far):
            return series, None
        worst = stray[far[0]]
        return series[far], self.wild(int(channel[worst]), float(value[worst]), int(count[far[0]]))

    def _pausing_series(self, seen: "_Observations") -> tuple[np.ndarray, Excess | None]:
        channel, series, gap = seen.gaps()
        far = _furthest_first(gap / self.gaps_allowed[channel])
        return series[far], self.pausing(int(channel[far[0]]), float(gap[far[0]])) if len(far) else None

    def _long_series(self, seen: "_Observations") -> tuple[np.ndarray, Excess | None]:
        far = _furthest_first(seen.span / self.length_allowed)
        return far, self.long(float(seen.span[far[0]])) if len(far) else None

    def _late_series(self, seen: "_Observations") -> tuple[np.ndarray, Excess | None]:
        far = _furthest_first(seen.start / self.before_allowed)
        return far, self.late(float(seen.start[far[0]])) if len(far) else None

    def _ended_series(self, seen: "_Observations") -> tuple[np.ndarray, Excess | None]:
        far = _furthest_first(seen.rest / self.after_allowed)
        return far, self.ended(float(seen.rest[far[0]])) if len(far) else None

    def beyond(self, channel: np.ndarray, value: np.ndarray) -> Float64[np.ndarray, "_"]:
        """How far values are beyond the ranges of their channels; more than 1 is far."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.maximum(value - self.highest[channel], self.lowest[channel] - value) / self._margin[channel]

    def dense(self, place: int, channel: int, count: int) -> Excess:
        """The excess of a count within a window of `widths[place]`."""
        of = (*self.channels, None)[channel]
        what = "events" if of is None else f"observations of {of!r}"
        most, limit = self.most[place, channel], self.most_allowed[place, channel]
        text = f"has {count:,} {what} within {self._time(self.widths[place])}, in training at most {most:,}"
        return Excess("density", text, float(count / limit), channel=of)

    def wild(self, channel: int, value: float, count: int) -> Excess:
        """The excess of some values, of which this one is the furthest."""
        of, low, high = self.channels[channel], self.lowest[channel], self.highest[channel]
        text = f"has {count:,} values of {of!r} such as {value:.4g}, in training {low:.4g} to {high:.4g}"
        ratio = self.beyond(np.array([channel]), np.array([value], np.float64))[0]
        return Excess("values", text, float(ratio), channel=of)

    def pausing(self, channel: int, gap: float) -> Excess:
        """The excess of a gap."""
        of, silence = self.channels[channel], self.silence[channel]
        text = f"has no observation of {of!r} for {self._time(gap)}, in training for at most {self._time(silence)}"
        return Excess("gaps", text, float(gap / self.gaps_allowed[channel]), channel=of)

    def long(self, span: float) -> Excess:
        """The excess of a length."""
        text = f"goes on for {self._time(span)}, in training for at most {self._time(self.longest)}"
        return Excess("length", text, float(span / self.length_allowed))

    def late(self, start: float) -> Excess:
        """The excess of the time of a first event."""
        text = f"begins {self._time(start)} after the start of time, in training at most {self._time(self.before)}"
        reading = "" if self.unit else moment_of(start)  # series with moments, but a model that counts from about 0
        if reading:
            text += f"; {start!r} reads as {reading}"
        return Excess("window", text, float(start / self.before_allowed), remedy=FAR_START)

    def ended(self, rest: float) -> Excess:
        """The excess of the time from the last event to the end of the window, or to a prediction."""
        text = f"is asked for {self._time(rest)} after its last event, in training for at most {self._time(self.after)}"
        return Excess("window", text, float(rest / self.after_allowed))

    def _time(self, length: float) -> str:
        return f"{length:.4g} {self.unit}".rstrip()

    def __repr__(self) -> str:
        return f"TrainingRanges({listed(self.channels, 6)}, up to {self._time(self.longest)} long)"


class _Observations:
    """Observations by channel, series and time, then all events as one more channel."""

    def __init__(self, streams: Streams, ends: Float64[np.ndarray, "series"] | None = None) -> None:
        self._channels, count = len(streams.schema.channels), len(streams)
        owner, some = owners(streams.offsets), np.diff(streams.offsets) > 0
        self.start, self.span, self.rest = np.zeros((3, count))
        self.start[some] = streams.times[streams.offsets[:-1][some]]
        last = streams.times[streams.offsets[1:][some] - 1]
        self.span[some] = last - self.start[some]
        self.rest[some] = (streams.horizon if ends is None else ends)[some] - last
        times = streams.times - self.start[owner]
        order = stable_order(streams.channel, self._channels)
        event = owners(streams.obs_offsets)[order]
        self.channel = np.concatenate([streams.channel[order], np.full(len(times), self._channels)])
        self.series = np.concatenate([owner[event], owner])
        self.time = np.concatenate([times[event], times])

    @functools.cached_property
    def _begins(self) -> Bool[np.ndarray, "obs"]:
        """Which observations are the first of their series and channel."""
        begins = np.ones(len(self.time), bool)
        begins[1:] = (self.channel[1:] != self.channel[:-1]) | (self.series[1:] != self.series[:-1])
        return begins

    def counts(self, width: float) -> tuple[Int64[np.ndarray, "window"], Int64[np.ndarray, "window"]]:
        """The number of observations in each window that has some, and the position of the first of these."""
        window, begins = np.floor(self.time / width), self._begins.copy()
        begins[1:] |= window[1:] != window[:-1]
        first = np.flatnonzero(begins)
        return np.diff(first, append=len(begins)), first

    def gaps(self) -> tuple[np.ndarray, np.ndarray, Float64[np.ndarray, "gap"]]:
        """Channel and series of each gap between two observations of a channel, and its length."""
        later = np.flatnonzero(~self._begins & (self.channel < self._channels))
        return self.channel[later], self.series[later], self.time[later] - self.time[later - 1]

    def silence(self) -> Float64[np.ndarray, "channel"]:
        """The longest time without an observation of each channel, from the first to the last event of a series."""
        longest = np.zeros(self._channels)
        channel, _, gap = self.gaps()
        np.maximum.at(longest, channel, gap)
        first = np.flatnonzero(self._begins)
        last = np.append(first[1:], len(self.time)) - 1
        own = self.channel[first] < self._channels
        first, last = first[own], last[own]
        edge = np.maximum(self.time[first], self.span[self.series[last]] - self.time[last])
        np.maximum.at(longest, self.channel[first], edge)
        groups = np.split(self.series[first], np.searchsorted(self.channel[first], np.arange(1, self._channels)))
        for channel, series in enumerate(groups):  # sorted by channel
            observed = np.zeros(len(self.span), bool)
            observed[series] = True
            longest[channel] = max(longest[channel], self.span[~observed].max(initial=0.0))
        return longest


def _widths(longest: float) -> Float64[np.ndarray, "width"]:
    # Just longer, so that the last event of the longest series is in the first window.
    return np.nextafter(longest, np.inf) / 2.0 ** np.arange(SCALES)


def _subject(series: object) -> str:
    return "The series" if series is None else f"Series {name(series)}"


def _furthest_first(ratio: np.ndarray) -> Int64[np.ndarray, "_"]:
    """The places where a ratio is above 1, that of the largest first."""
    far = np.flatnonzero(ratio > 1)
    if len(far):
        largest = int(ratio[far].argmax())
        far[[0, largest]] = far[[largest, 0]]
    return far


def _furthest(found: Iterable[Excess]) -> tuple[Excess, ...]:
    """For each reason the one that is furthest outside, in this order."""
    kept: dict[Reason, Excess] = {}
    for one in sorted(found, key=lambda one: -one.ratio):
        kept.setdefault(one.reason, one)
    return tuple(kept.values())
