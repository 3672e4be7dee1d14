"""Partitions: where each series' horizon is cut into query intervals, free of where its observations are.

The partition pi = {0 = r_0 < r_1 < ... < r_M = T} of `sec:procedure` in the paper, one for each series. Intervals
are half open; which event falls into which is the embedding's business, not this module's.
"""

import abc
import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import PartitionError, Remedy, StreamError
from logcde.kernels.events import cut_every
from logcde.streams.calendar import Calendar, calendar_points
from logcde.streams.clock import Clock, Stamps
from logcde.streams.columns import AbstractStreams
from logcde.streams.faults import Places, more
from logcde.streams.knots import frozen
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.stamps import read_stamps


@dataclasses.dataclass(frozen=True, eq=False)
class Cuts:
    """The query points of every series, end to end, at least two for each."""

    offsets: Int64[np.ndarray, "_"]
    points: Float64[np.ndarray, "point"]

    def __post_init__(self) -> None:
        for field in ("offsets", "points"):
            object.__setattr__(self, field, frozen(getattr(self, field)))


class Partition(abc.ABC):
    """A rule that cuts every series' horizon into intervals: make one with the methods below.

    >>> from logcde.streams import Streams
    >>> streams = Streams.from_arrays([[0.0, 3.0, 6.0]], [[[1.0], [2.0], [3.0]]])
    >>> Partition.uniform(3).cuts(streams).points
    array([0., 2., 4., 6.])
    """

    @abc.abstractmethod
    def cuts(self, streams: AbstractStreams) -> Cuts:
        """The query points of every series."""

    @staticmethod
    def uniform(intervals: int) -> "Partition":
        """The same number of equally long intervals for every series.

        >>> Partition.uniform(24)
        Partition.uniform(24)
        """
        return _Uniform(intervals)

    @staticmethod
    def at(points: Sequence | np.ndarray, partial: bool = False) -> "Partition":
        """Given points: one increasing array for all series, or a list with one for each series.

        Points are times, datetimes or durations. They go from 0 to the horizon; with `partial=True` they may start
        later and end earlier, and what lies outside is not looked at.

        >>> Partition.at([0.0, 1.0, 6.0])
        Partition.at([0.0, 1.0, 6.0])
        """
        return _At(points, partial)

    @staticmethod
    def every(step: int | float | timedelta | np.timedelta64) -> "Partition":
        """Intervals of one length from 0 on; the last may be shorter.

        >>> Partition.every(0.5)
        Partition.every(0.5)
        """
        return Every(step)

    @staticmethod
    def every_events(events: int) -> "Partition":
        """A new interval begins at every series' own event number `events`, 2 `events`, ..., counted from 0.

        Since an event at a cut belongs to the interval that begins there, every interval but the last has this many.

        >>> Partition.every_events(10)
        Partition.every_events(10)
        """
        return EveryEvents(events)

    @staticmethod
    def calendar(unit: Calendar) -> "Partition":
        """Cuts where a new hour, day, week, month, quarter or year begins on the clock of the data's time zone.

        >>> Partition.calendar(Calendar.DAY)
        Partition.calendar(Calendar.DAY)
        """
        return _ByCalendar(unit)


@dataclasses.dataclass(frozen=True, repr=False)
class _Uniform(Partition):
    intervals: int

    def __post_init__(self) -> None:
        if self.intervals < 1:
            raise PartitionError(f"A partition needs at least one interval, but {self.intervals} were asked for.")

    def cuts(self, streams: AbstractStreams) -> Cuts:
        # Multiply first: T k / M is a whole number wherever it should be, T (k / M) is not.
        points = streams.horizon[:, None] * np.arange(self.intervals + 1.0) / self.intervals
        points[:, -1] = streams.horizon
        return Cuts(np.arange(len(streams) + 1) * (self.intervals + 1), points.reshape(-1))

    def __repr__(self) -> str:
        return f"Partition.uniform({self.intervals})"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class _At(Partition):
    points: Sequence | np.ndarray
    partial: bool

    def cuts(self, streams: AbstractStreams) -> Cuts:
        nested = _nested(self.points)
        if nested and len(self.points) != len(streams):
            raise PartitionError(
                f"There are {len(self.points)} lists of query points, but {len(streams)} series. "
                "Give one list for each series, or one for all."
            )
        try:
            if nested and streams.origins is None and _alike(self.points):  # the usual case, all series at once
                sizes = np.array([len(part) for part in self.points], np.int64)
                points = streams.schema.clock.times(read_stamps(np.concatenate(self.points)))
            else:
                lists = self._each(streams, nested)
                sizes = np.array([len(part) for part in lists], np.int64)
                points = np.concatenate([np.empty(0), *lists])
        except StreamError as error:
            raise PartitionError(f"These query points do not fit the streams. {error}") from error
        cuts = Cuts(offsets_of(sizes), points)
        _check(cuts, streams, self.partial)
        return cuts

    def _each(self, streams: AbstractStreams, nested: bool) -> list[np.ndarray]:
        """Every series' points as times."""
        if nested:
            return [_times(read_stamps(points), streams, series) for series, points in enumerate(self.points)]
        stamps = read_stamps(self.points)
        if streams.origins is not None and stamps.array.dtype.kind == "M":
            return [_times(stamps, streams, series) for series in range(len(streams))]
        return [streams.schema.clock.times(stamps)] * len(streams)

    def __repr__(self) -> str:
        end = ", partial=True" if self.partial else ""
        return f"Partition.at({self.points!r}{end})"


@dataclasses.dataclass(frozen=True, repr=False)
class Every(Partition):
    """`Partition.every`."""

    step: int | float | timedelta | np.timedelta64

    def cuts(self, streams: AbstractStreams) -> Cuts:
        """Multiples of the step, then the horizon."""
        clock = streams.schema.clock
        whole = self.inner(streams.horizon, clock) + 1
        offsets = offsets_of(whole + 1)
        number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], whole + 1)
        points = self.points(number, clock)
        points[offsets[1:] - 1] = streams.horizon
        return Cuts(offsets, points)

    def inner(self, horizon: Float64[np.ndarray, "_"], clock: Clock) -> Int64[np.ndarray, "_"]:
        """How many cuts there are between 0 and each horizon. A last interval shorter than rounding is none."""
        return np.ceil(horizon / self.length(clock) * (1 - 1e-12)).astype(np.int64) - 1

    def points(self, number: Int64[np.ndarray, "_"], clock: Clock) -> Float64[np.ndarray, "_"]:
        """The cuts with these numbers, as times."""
        return clock.times(Stamps(_multiples(read_stamps(np.asarray(self.step)[None]).array[0], number)))

    def length(self, clock: Clock) -> float:
        """The step as time."""
        try:
            step = float(clock.times(read_stamps(np.asarray(self.step)[None]))[0])
        except StreamError as error:
            raise PartitionError(f"The step {self.step!r} does not fit the streams. {error}") from error
        if not (np.isfinite(step) and step > 0):
            raise PartitionError(f"The step of a partition must be positive and finite, but it is {self.step!r}.")
        return step

    def __repr__(self) -> str:
        return f"Partition.every({self.step!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class EveryEvents(Partition):
    """`Partition.every_events`."""

    events: int

    def __post_init__(self) -> None:
        if self.events < 1:
            raise PartitionError(f"An interval needs at least one event, but {self.events} were asked for.")

    def cuts(self, streams: AbstractStreams) -> Cuts:
        """The stamps of events number `events`, 2 `events`, ..., between 0 and the horizon."""
        inner = np.maximum(np.diff(streams.offsets) - 1, 0) // self.events
        some = np.flatnonzero(inner)
        # An event at the horizon cannot begin an interval: it joins the last one.
        last = streams.times[streams.offsets[some] + inner[some] * self.events]
        inner[some] -= last == streams.horizon[some]
        offsets = offsets_of(inner + 2)
        points = np.empty(offsets[-1])
        cut_every(0, len(streams), streams.offsets, streams.times, streams.horizon, self.events, offsets, points)
        return Cuts(offsets, points)

    def __repr__(self) -> str:
        return f"Partition.every_events({self.events})"


@dataclasses.dataclass(frozen=True, repr=False)
class _ByCalendar(Partition):
    unit: Calendar

    def cuts(self, streams: AbstractStreams) -> Cuts:
        series, points = calendar_points(self.unit, streams)
        inside = (points > 0) & (points < streams.horizon[series])
        return _enclosed(series[inside], points[inside], streams)

    def __repr__(self) -> str:
        return f"Partition.calendar({self.unit})"


def _enclosed(series: np.ndarray, points: np.ndarray, streams: AbstractStreams) -> Cuts:
    """Inner points, sorted by series and time, between 0 and each horizon."""
    counts = np.bincount(series, minlength=len(streams))
    offsets = offsets_of(counts + 2)
    everything = np.zeros(offsets[-1])
    everything[offsets[1:] - 1] = streams.horizon
    # Each inner point moves by one for the 0 of its own series and by two for each series before it.
    everything[np.arange(len(points)) + 2 * series + 1] = points
    return Cuts(offsets, everything)


def _multiples(step: np.generic, number: Int64[np.ndarray, "point"]) -> np.ndarray:
    """Multiples of a step, so exact that an observation stamped 0.3 falls on the third cut at 0.1."""
    if step.dtype.kind == "m":
        return number * step
    ratio = Fraction(float(step)).limit_denominator(1_000_000)
    return number * ratio.numerator / ratio.denominator if float(ratio) == step else number * step


def _nested(points: Sequence | np.ndarray) -> bool:
    """Whether these are points of each series rather than points of all."""
    if isinstance(points, np.ndarray) and points.dtype != object:
        return points.ndim > 1
    return len(points) > 0 and isinstance(points[0], Sequence | np.ndarray)


def _alike(points: Sequence | np.ndarray) -> bool:
    """Whether the points of every series are an array of one and the same type."""
    return all(type(part) is np.ndarray and part.ndim == 1 for part in points) and (
        len({part.dtype for part in points}) == 1
    )


def _times(stamps: Stamps, streams: AbstractStreams, series: int) -> Float64[np.ndarray, "point"]:
    origins = None if streams.origins is None else streams.origins[series : series + 1]
    return streams.schema.clock.times(stamps, origins)


def _check(cuts: Cuts, streams: AbstractStreams, partial: bool) -> None:
    """Refuse points that are too few, missing, not increasing, outside the horizon, or that do not cover it."""
    places = Places(streams.ids, streams.schema, streams.origins)
    counts, series = np.diff(cuts.offsets), owners(cuts.offsets)

    def refuse(bad: np.ndarray, of: np.ndarray, found, advice: Remedy | str) -> None:
        if bad.size:
            code = of[bad[0]]
            raise PartitionError(f"{places.series(code)}: {found(bad[0], code)}{more(len(bad) - 1)}.", advice)

    every = np.arange(len(streams))
    refuse(
        np.flatnonzero(counts < 2),
        every,
        lambda _, code: f"{counts[code]} query point(s)",
        "An interval has two ends: give at least two points.",
    )
    refuse(
        np.flatnonzero(~np.isfinite(cuts.points)),
        series,
        lambda at, _: f"the query point number {at - cuts.offsets[series[at]]} is {float(cuts.points[at])!r}",
        "Query points are finite.",
    )
    refuse(
        np.flatnonzero((np.diff(cuts.points) <= 0) & (series[1:] == series[:-1])),
        series,
        lambda at, code: (
            f"the query point {places.stamp(code, cuts.points[at + 1])} follows {places.stamp(code, cuts.points[at])}"
        ),
        "Query points must increase: sort them and leave out repeated ones.",
    )
    refuse(
        np.flatnonzero((cuts.points < 0) | (cuts.points > streams.horizon[series])),
        series,
        lambda at, code: (
            f"the query point {places.stamp(code, cuts.points[at])} lies outside "
            f"[{places.stamp(code, 0.0)}, {places.stamp(code, streams.horizon[code])}]"
        ),
        Remedy.LATER_HORIZON,
    )
    if partial:
        return
    refuse(
        np.flatnonzero(cuts.points[cuts.offsets[:-1]] > 0),
        every,
        lambda _, code: (
            f"the first query point is {places.stamp(code, cuts.points[cuts.offsets[code]])} and not the start, "
            f"{places.stamp(code, 0.0)}"
        ),
        "Add the start, or pass partial=True to look at a part only.",
    )
    refuse(
        np.flatnonzero(cuts.points[cuts.offsets[1:] - 1] < streams.horizon),
        every,
        lambda _, code: (
            f"the last query point is {places.stamp(code, cuts.points[cuts.offsets[code + 1] - 1])} and not the "
            f"horizon, {places.stamp(code, streams.horizon[code])}"
        ),
        "Add the horizon, or pass partial=True to look at a part only.",
    )
