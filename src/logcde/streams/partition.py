"""Partitions: the query points that cut each series' horizon into intervals, independent of its observations.

The partition pi = {0 = r_0 < r_1 < ... < r_M = T} of `sec:procedure` in the paper, one for each series. Intervals
are half open; the embedding decides which event belongs to which.
"""

import abc
import dataclasses
import enum
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, timedelta
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import LogcdeWarning, PartitionError, Remedy, StreamError
from logcde.kernels.events import cut_every
from logcde.streams.clock import Clock, DatetimeClock, Stamps, zone_named
from logcde.streams.faults import Places, more
from logcde.streams.ragged import frozen, offsets_of, owners
from logcde.streams.stamps import read_stamps
from logcde.streams.streams import Streams

FIRST_MONDAY = 4  # days after 1970-01-01, a Thursday
MOST_INTERVALS = 10_000_000
"""Intervals of one series: more are a mistake in the units of time."""
MOST_TOGETHER = 50_000_000
"""Intervals of all series together, which a computer still holds."""


class Calendar(enum.Enum):
    """A unit of the calendar, with its length in NumPy's units. Weeks begin on Monday."""

    HOUR = (1, "h")
    DAY = (1, "D")
    WEEK = (7, "D")
    MONTH = (1, "M")
    QUARTER = (3, "M")
    YEAR = (1, "Y")


@dataclasses.dataclass(frozen=True, eq=False)
class Cuts:
    """The query points of every series, end to end; each series has at least two."""

    offsets: Int64[np.ndarray, "_"]
    points: Float64[np.ndarray, "point"]

    def __post_init__(self) -> None:
        for field in ("offsets", "points"):
            object.__setattr__(self, field, frozen(getattr(self, field)))


class Partition(abc.ABC):
    """A rule that cuts every series' horizon into intervals. Make one with its static methods.

    >>> streams = Streams.from_arrays([[0.0, 3.0, 6.0]], [[[1.0], [2.0], [3.0]]])
    >>> Partition.uniform(3).cuts(streams).points
    array([0., 2., 4., 6.])
    """

    @abc.abstractmethod
    def cuts(self, streams: Streams) -> Cuts:
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
        """Given query points: one increasing array for all series, or a list with one for each series.

        Points are stamps or durations. They go from the origin of time to the horizon; with `partial=True` they may
        start later and end earlier, and observations outside are not embedded.

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
        """Intervals with this many events each: cuts at each series' own events number `events`, 2 `events`, ...

        An event at a cut belongs to the interval that begins there. Events are counted from 0; the last interval may
        have fewer, or one more if an event is at the horizon.

        >>> Partition.every_events(10)
        Partition.every_events(10)
        """
        return EveryEvents(events)

    @staticmethod
    def calendar(unit: Calendar) -> "Partition":
        """Cuts where an hour, day, week, month, quarter or year begins on wall clocks of the data's time zone.

        >>> Partition.calendar(Calendar.DAY)
        Partition.calendar(Calendar.DAY)
        """
        return _ByCalendar(unit)


@dataclasses.dataclass(frozen=True, repr=False)
class _Uniform(Partition):
    intervals: int

    def __post_init__(self) -> None:
        if self.intervals < 1:
            raise PartitionError(
                f"The number of intervals is {self.intervals}.", "A partition has at least one interval."
            )

    def cuts(self, streams: Streams) -> Cuts:
        check_number(np.full(len(streams), min(self.intervals, _COUNTED), np.int64), streams)
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
    as_times: bool = False

    def cuts(self, streams: Streams) -> Cuts:
        if self.as_times:
            sizes = np.array([len(part) for part in self.points], np.int64)
            cuts = Cuts(offsets_of(sizes), np.concatenate([np.empty(0), *self.points]))
            _check(cuts, streams, self.partial)
            return cuts
        nested = _nested(self.points)
        if nested and len(self.points) != len(streams):
            raise PartitionError(
                f"There are {len(self.points)} lists of query points, but {len(streams)} series.",
                "Give one list for each series, or one for all.",
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
            found = f"These query points do not fit the streams. {error.found}"
            raise PartitionError(found, error.remedy, where=error.where) from error
        cuts = Cuts(offsets_of(sizes), points)
        _check(cuts, streams, self.partial)
        return cuts

    def _each(self, streams: Streams, nested: bool) -> list[np.ndarray]:
        """Every series' points as times."""
        if nested:
            return [_times(read_stamps(points), streams, series) for series, points in enumerate(self.points)]
        stamps = read_stamps(self.points)
        if streams.origins is not None:
            return [_times(stamps, streams, series) for series in range(len(streams))]
        return [streams.schema.clock.times(stamps)] * len(streams)

    def __repr__(self) -> str:
        end = ", partial=True" if self.partial else ""
        return f"Partition.at({self.points!r}{end})"


@dataclasses.dataclass(frozen=True, repr=False)
class Every(Partition):
    """`Partition.every`."""

    step: int | float | timedelta | np.timedelta64

    def cuts(self, streams: Streams) -> Cuts:
        """Multiples of the step, then the horizon."""
        clock = streams.schema.clock
        whole = self.inner(streams.horizon, clock) + 1
        check_number(whole, streams)
        offsets = offsets_of(whole + 1)
        number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], whole + 1)
        points = self.points(number, clock)
        points[offsets[1:] - 1] = streams.horizon
        return Cuts(offsets, points)

    def inner(self, horizon: Float64[np.ndarray, "_"], clock: Clock) -> Int64[np.ndarray, "_"]:
        """The number of cuts between 0 and each horizon. A last interval shorter than rounding errors is left out."""
        with np.errstate(over="ignore"):
            steps = np.ceil(horizon / self.length(clock) * (1 - 1e-12))
        return np.minimum(steps, _COUNTED).astype(np.int64) - 1  # far too many remain far too many

    def points(self, number: Int64[np.ndarray, "_"], clock: Clock) -> Float64[np.ndarray, "_"]:
        """The cuts with these numbers, as times."""
        return clock.lengths(Stamps(_multiples(read_stamps(np.asarray(self.step)[None]).array[0], number)))

    def length(self, clock: Clock) -> float:
        """The step as time."""
        try:
            step = float(clock.lengths(read_stamps(np.asarray(self.step)[None]))[0])
        except StreamError as error:
            found = f"The step {self.step!r} does not fit the streams. {error.found}"
            raise PartitionError(found, error.remedy, where=error.where) from error
        if not (np.isfinite(step) and step > 0):
            raise PartitionError(f"The step of the partition is {self.step!r}.", "It must be positive and finite.")
        return step

    def __repr__(self) -> str:
        return f"Partition.every({self.step!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class EveryEvents(Partition):
    """`Partition.every_events`."""

    events: int

    def __post_init__(self) -> None:
        if self.events < 1:
            raise PartitionError(f"The number of events is {self.events}.", "An interval has at least one event.")

    def cuts(self, streams: Streams) -> Cuts:
        """The stamps of events number `events`, 2 `events`, ..., between 0 and the horizon."""
        events = min(self.events, _COUNTED)
        inner = np.maximum(np.diff(streams.offsets) - 1, 0) // events
        some = np.flatnonzero(inner)
        # An event at the horizon cannot begin an interval: it joins the last one.
        last = streams.times[streams.offsets[some] + inner[some] * events]
        inner[some] -= last == streams.horizon[some]
        offsets = offsets_of(inner + 2)
        points = np.empty(offsets[-1])
        cut_every(0, len(streams), streams.offsets, streams.times, streams.horizon, events, offsets, points)
        return Cuts(offsets, points)

    def __repr__(self) -> str:
        return f"Partition.every_events({self.events})"


@dataclasses.dataclass(frozen=True, repr=False)
class _ByCalendar(Partition):
    unit: Calendar

    def cuts(self, streams: Streams) -> Cuts:
        series, points = _calendar_points(self.unit, streams)
        inside = (points > 0) & (points < streams.horizon[series])
        return _enclosed(series[inside], points[inside], streams)

    def __repr__(self) -> str:
        return f"Partition.calendar({self.unit})"


def at_times(points: Sequence[Float64[np.ndarray, "_"]]) -> Partition:
    """Query points of each series as times, on the clock of the streams; they may cover a part of the horizon.

    >>> streams = Streams.from_arrays([[500.0, 506.0]], [[[1.0], [2.0]]], origin=500.0)
    >>> at_times([np.array([0.0, 2.0])]).cuts(streams).points, Partition.at([500.0, 502.0, 506.0]).cuts(streams).points
    (array([0., 2.]), array([0., 2., 6.]))
    """
    return _At(points, partial=True, as_times=True)


def _calendar_points(
    unit: Calendar, streams: Streams
) -> tuple[Int64[np.ndarray, "point"], Float64[np.ndarray, "point"]]:
    """The series and the time of every beginning of a unit within a series' horizon, sorted by both."""
    clock = streams.schema.clock
    if not isinstance(clock, DatetimeClock):
        raise PartitionError(
            "These streams count time in plain numbers or durations, which have no calendar.", Remedy.CALENDAR
        )
    if not len(streams):
        return np.empty(0, np.int64), np.empty(0)
    starts = clock.stamps(np.zeros(len(streams)), streams.origins)
    ends = clock.stamps(streams.horizon, streams.origins)
    moments = beginnings(unit, starts.min(), ends.max(), clock.zone).astype(starts.dtype)
    first, last = np.searchsorted(moments, starts, side="left"), np.searchsorted(moments, ends, side="right")
    offsets = offsets_of(last - first)
    series = owners(offsets)
    position = np.arange(len(series)) + (first - offsets[:-1])[series]
    origins = None if streams.origins is None else streams.origins[series]
    return series, clock.times(Stamps(moments[position], clock.zone), origins)


def beginnings(unit: Calendar, start: np.datetime64, end: np.datetime64, zone: str | None) -> np.ndarray:
    """Every moment from `start` to `end`, and possibly some outside, at which a unit begins on the zone's wall clock.

    >>> start, end = np.datetime64("2024-03-31T03", "s"), np.datetime64("2024-03-31T23", "s")
    >>> beginnings(Calendar.DAY, start, end, "Europe/Paris")
    array(['2024-03-29T23:00:00', '2024-03-30T23:00:00',
           '2024-03-31T22:00:00'], dtype='datetime64[s]')
    """
    step, counted = unit.value
    day = np.timedelta64(1, "D")
    # A day on either side covers every offset from UTC.
    low, high = (start - day).astype("datetime64[h]"), (end + day).astype("datetime64[h]")
    shift = FIRST_MONDAY if unit is Calendar.WEEK else 0
    first = (low.astype(f"datetime64[{counted}]").astype(np.int64) - shift) // step
    last = (high.astype(f"datetime64[{counted}]").astype(np.int64) - shift) // step
    if last - first > MOST_INTERVALS:
        raise PartitionError(
            f"There are {last - first:,} calendar intervals from {start} to {end}, of at most {MOST_INTERVALS:,}.",
            "Choose longer ones, or check the stamps.",
        )
    walls = (np.arange(first, last + 1) * step + shift).astype(f"datetime64[{counted}]").astype("datetime64[s]")
    if zone is None:
        return walls
    # An hour that wall clocks show twice begins twice. One that they skip begins where the next one does.
    place, folds = zone_named(zone), (0, 1) if unit is Calendar.HOUR else (0,)
    moments = {
        wall.replace(tzinfo=place, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for wall in walls.tolist()
        for fold in folds
    }
    return np.array(sorted(moments), "datetime64[s]")


def _enclosed(series: np.ndarray, points: np.ndarray, streams: Streams) -> Cuts:
    """Inner points, sorted by series and time, between 0 and each horizon."""
    counts = np.bincount(series, minlength=len(streams))
    offsets = offsets_of(counts + 2)
    everything = np.zeros(offsets[-1])
    everything[offsets[1:] - 1] = streams.horizon
    # Each inner point moves by one for the 0 of its own series and by two for each series before it.
    everything[np.arange(len(points)) + 2 * series + 1] = points
    return Cuts(offsets, everything)


def _multiples(step: np.generic, number: Int64[np.ndarray, "point"]) -> np.ndarray:
    """Multiples of a step, exact for decimal steps: an observation at 0.3 falls on the third cut of step 0.1."""
    if step.dtype.kind == "m":
        return number * step
    ratio = Fraction(float(step)).limit_denominator(1_000_000)
    exact = float(ratio) == step and ratio.numerator * int(number.max(initial=0)) < 2**63
    return number * ratio.numerator / ratio.denominator if exact else number * step


_COUNTED = 2**62
"""More intervals than this are counted as this many."""


def check_number(intervals: Int64[np.ndarray, "series"], streams: Streams) -> None:
    """Refuse more intervals than anybody can mean: of one series, or of all together."""
    if not len(intervals):
        return
    most, total = int(intervals.argmax()), float(intervals.sum(dtype=np.float64))
    if intervals[most] > MOST_INTERVALS:
        places = Places(streams.ids, streams.schema, streams.origins)
        raise PartitionError(
            f"{places.series(most)} would have {_amount(int(intervals[most]))} intervals from 0 to "
            f"{float(streams.horizon[most]):.6g}, of at most {MOST_INTERVALS:,}.",
            Remedy.LONGER_INTERVALS,
            where=places.where(most),
        )
    if total > MOST_TOGETHER:
        raise PartitionError(
            f"These {len(intervals):,} series would have {total:,.0f} intervals together, of at most "
            f"{MOST_TOGETHER:,}.",
            "Choose longer ones, or take fewer series at a time.",
        )


def _amount(intervals: int) -> str:
    """A number of intervals for a sentence, however large."""
    if intervals >= _COUNTED - 1:
        return "more than 1e18"
    return f"{intervals:,}" if intervals < 10**15 else f"{intervals:.0e}"


LEAST_FILLED = 0.1
"""The share of intervals with an event below which a partition is warned of."""


def warn_if_mostly_empty(intervals: int, filled: int) -> None:
    """Warn of a partition that leaves most intervals without an event: most likely time counts from elsewhere.

    Args:
        intervals: The number of intervals of all series.
        filled: How many of them have an event.
    """
    if filled < LEAST_FILLED * intervals:
        found = f"The partition leaves most intervals empty: only {filled:,} of {intervals:,} hold an event."
        warnings.warn(LogcdeWarning(found, Remedy.EMPTY_INTERVALS), stacklevel=2)


def _nested(points: Sequence | np.ndarray) -> bool:
    """Whether there is a list of points for each series, rather than one for all."""
    if isinstance(points, np.ndarray) and points.dtype != object:
        return points.ndim > 1
    return len(points) > 0 and isinstance(points[0], Sequence | np.ndarray)


def _alike(points: Sequence | np.ndarray) -> bool:
    """Whether the points of every series are an array, all of one type."""
    return all(type(part) is np.ndarray and part.ndim == 1 for part in points) and (
        len({part.dtype for part in points}) == 1
    )


def _times(stamps: Stamps, streams: Streams, series: int) -> Float64[np.ndarray, "point"]:
    origins = None if streams.origins is None else streams.origins[series : series + 1]
    return streams.schema.clock.times(stamps, origins)


def _check(cuts: Cuts, streams: Streams, partial: bool) -> None:
    """Refuse points that are too few, missing, not increasing, outside the horizon, or that do not cover it."""
    places = Places(streams.ids, streams.schema, streams.origins)
    counts, series = np.diff(cuts.offsets), owners(cuts.offsets)

    def refuse(bad: np.ndarray, of: np.ndarray, found: Callable[[int, int], str], remedy: Remedy | str) -> None:
        if bad.size:
            code = int(of[bad[0]])
            found_there = f"{places.series(code)}: {found(int(bad[0]), code)}{more(len(bad) - 1)}."
            raise PartitionError(found_there, remedy, where=places.where(code))

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
        Remedy.PARTIAL,
    )
    refuse(
        np.flatnonzero(cuts.points[cuts.offsets[1:] - 1] < streams.horizon),
        every,
        lambda _, code: (
            f"the last query point is {places.stamp(code, cuts.points[cuts.offsets[code + 1] - 1])} and not the "
            f"horizon, {places.stamp(code, streams.horizon[code])}"
        ),
        Remedy.PARTIAL,
    )
