"""The observed prefix of a growing series: events in, log-signatures of intervals out.

Where intervals end follows the partition that the model was trained with. An interval ends once time has passed its
end, not when time has reached it: at the horizon an event belongs to the last interval, and until something later is
observed, now is the horizon. This module knows nothing of models.
"""

import abc
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from logcde.embedding import Coordinates, OnlineEmbedding
from logcde.embedding.online import Values, shallow_copy
from logcde.errors import ModelError, StreamError, Where
from logcde.online.known_path import KnownPath
from logcde.streams import Clock, Partition
from logcde.streams.partition import Every, EveryEvents

MOST_INTERVALS = 1_000_000
"""Intervals that may end between two stamps of a series: more are a mistake in the units of time."""
EMPTY_AT_ONCE = 4096
"""Intervals without an event whose log-signatures are computed together."""
MULTIPLES_AT_ONCE = 256


class Event(NamedTuple):
    """What was observed at one stamp: a value for each channel, NaN if not observed, and higher-order terms if any."""

    time: float
    row: np.ndarray
    terms: np.ndarray | None = None


class Arrival(NamedTuple):
    """What arrives at one stamp: first the end of an interval, if `closes`, then an event, if there is one."""

    time: float
    closes: bool = False
    event: Event | None = None


class Prefix:
    """The open interval of a series, the rule that ends it, and events that wait for its end.

    An event at the end of the open interval belongs to the next one, unless that end is the horizon. So it waits until
    time has passed.
    """

    def __init__(self, coordinates: Coordinates, boundaries: "AbstractBoundaries") -> None:
        continuous = coordinates.schema.continuous
        self.path = KnownPath(continuous) if continuous else None
        """What is known of the continuous channels, None if there are none besides time."""
        # From the base point 0, where paths begin, the first knot leads to where they are at time 0.
        self.online = OnlineEmbedding(coordinates, continuous=np.zeros(len(continuous)) if continuous else None)
        self.boundaries = boundaries
        self.waiting: list[Event] = []

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return self.waiting[-1].time if self.waiting else self.online.last

    @property
    def reached(self) -> float:
        """The time up to which the series is known."""
        return max(self.online.start, self.last, self.boundaries.closed_until)

    def check_reach(self, time: float, show: Callable[[float], str] = str) -> None:
        """Refuse a time before which so many intervals would end that it is most likely in other units."""
        if time - self.reached > MOST_INTERVALS * self.boundaries.length:
            raise StreamError(
                f"More than {MOST_INTERVALS:,} intervals of the model would end before the stamp {show(time)}.",
                "Check that it is in the units of time of the training data.",
                where=Where(stamp=show(time)),
            )

    def check_known(self, time: float, show: Callable[[float], str] = str) -> None:
        """Refuse a time up to which the continuous channels are not known, if there are any."""
        if self.path is not None:
            self.path.check_known(time, show)

    def knot(self, time: float, values: Values, show: Callable[[float], str] = str) -> None:
        """Take values of the continuous channels."""
        if self.path is None:
            raise StreamError("There are no continuous channels besides time.", "Give values of channels to `observe`.")
        row, first = self.path.row(values), self.path.until == -math.inf
        self.path.add(time, row, max(self.online.composed, self.last), show)
        if first:
            self.online.knot(time, row)

    def check(self, arrival: Arrival, show: Callable[[float], str] = str) -> None:
        """Refuse an arrival that is out of order, before it changes anything; `show` writes times as stamps."""
        time, closes, event = arrival
        if closes and (time < self.reached or time in (self.online.start, self.last)):
            raise StreamError(
                f"The interval that began at {show(self.online.start)} cannot end at {show(time)}: the series is known "
                f"up to {show(self.reached)}, and an event at the end of an interval belongs to the next one.",
                "Close the interval before observing the event.",
                where=Where(stamp=show(time)),
            )
        if event is not None and time < self.online.start and self.last == -math.inf:
            raise StreamError(
                f"The event at {show(time)} is before {show(self.online.start)}, from where the model counts time.",
                "Check that it is in the units of time of the training data.",
                where=Where(stamp=show(time)),
            )
        if event is not None and (time < self.reached or time == self.last):
            raise StreamError(
                f"The event at {show(time)} is not after what is known already (the last event was at "
                f"{show(self.last)}, the series is known up to {show(self.reached)}).",
                "Give events in order, and all observations of one stamp in one call; or pass reorder=window to the "
                "predictor.",
                where=Where(stamp=show(time)),
            )

    def advance_to(self, time: float) -> Iterator[Float64[np.ndarray, "interval lie"]]:
        """End all intervals that are over at this time; yields their log-signatures, some at a time."""
        while self.boundaries.is_over(time):
            waited = bool(self.waiting)
            yield self.end_interval()
            if not waited:
                yield from self._end_empty_intervals(time)

    def end_interval(self) -> Float64[np.ndarray, "interval lie"]:
        """End the open interval; returns its log-signature."""
        end = self.boundaries.end
        logsig = self.online.close(end, continuous=self._follow(self.online, end))
        self._forget()
        self.boundaries.move_on()
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            self._take_event(event)
        return logsig[None]

    def take(self, arrival: Arrival) -> None:
        """Take an arrival that was checked, after all intervals before it have ended."""
        if arrival.closes:
            assert isinstance(self.boundaries, ManualBoundaries)
            self.boundaries.close(arrival.time)
        if arrival.event is not None:
            self.boundaries.count_event(arrival.time)
            self._take_event(arrival.event)

    def open_logsig(self, at: float) -> Float64[np.ndarray, "interval lie"]:
        """The log-signature of the open interval up to `at`, at which it is not over; no row if its length is zero."""
        if not self.waiting:
            return self._logsig(at)
        # Take waiting events, read, and restore: cheaper than a copy.
        before = self.online.state()
        try:
            for event in self.waiting:
                self.online.take(*event, self._follow(self.online, event.time))
            return self._logsig(at)
        finally:
            self.online.restore(before)

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The whole state in values that JSON can represent, except for arrays if these are allowed."""
        online = self.online.state()
        path = {} if self.path is None else {"path": self.path.state(arrays)}
        return {
            **path,
            "online": online if arrays else [None if number == -math.inf else number for number in online.tolist()],
            "boundaries": self.boundaries.state(),
            "waiting": [encode_event(event) for event in self.waiting],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        online = state["online"]
        if not isinstance(online, np.ndarray):
            online = np.array([-math.inf if number is None else number for number in online])
        self.online.restore(online)
        self.boundaries.restore(state["boundaries"])
        if self.path is not None:
            self.path.restore(state["path"])
        self.waiting = [decode_event(event) for event in state["waiting"]]

    def copy(self) -> "Prefix":
        """An independent copy."""
        copy = object.__new__(Prefix)
        copy.online, copy.boundaries, copy.waiting = self.online.copy(), self.boundaries.copy(), self.waiting.copy()
        copy.path = None if self.path is None else self.path.copy()
        return copy

    def _follow(self, online: OnlineEmbedding, time: float) -> np.ndarray | None:
        """Pass the knots before a time; returns the continuous channels at that time, None if there are none."""
        if self.path is None:
            return None
        for knot in self.path.between(online.composed, time):
            online.knot(*knot)
        return self.path.at(time)

    def _forget(self) -> None:
        """Drop the pieces of the path that are passed."""
        if self.path is not None:
            self.path.forget(self.online.composed)

    def _logsig(self, at: float) -> Float64[np.ndarray, "interval lie"]:
        online = self.online
        if at == online.start and at != online.last:
            return np.empty((0, online.coordinates.basis.dimension))
        if self.path is None or at == online.composed:
            return online.logsig(at)[None]
        ahead = online.copy()
        ahead.knot(at, self._follow(ahead, at))
        return ahead.logsig(at)[None]

    def _take_event(self, event: Event) -> None:
        if event.time >= self.boundaries.end:
            self.waiting.append(event)
            self.boundaries.undisturbed_until = 0.0  # until the interval ends: no later event may precede this one
        else:
            self.online.take(*event, self._follow(self.online, event.time))
            self._forget()

    def _end_empty_intervals(self, time: float) -> Iterator[Float64[np.ndarray, "interval lie"]]:
        """End intervals before `time` in which nothing is observed and all paths are straight, without composition."""
        coordinates = self.online.coordinates
        while len(ends := self.boundaries.known_ends(time, EMPTY_AT_ONCE)):
            logsigs, last = np.zeros((len(ends), coordinates.basis.dimension)), None
            if self.path is not None:
                ends = ends[ends <= self.path.next_knot(self.online.start)]
                if not len(ends):
                    return  # there is a knot within the next interval
                here = self.path.along(np.append(self.online.start, ends))
                logsigs, last = logsigs[: len(ends)], here[-1]
                logsigs[:, coordinates.discrete : coordinates.discrete + here.shape[1]] = np.diff(here, axis=0)
            if coordinates.time:
                logsigs[:, coordinates.basis.width - 1] = np.diff(ends, prepend=self.online.start)
            self.online.close(float(ends[-1]), continuous=last)
            self._forget()
            self.boundaries.move_on(len(ends))
            yield logsigs


class AbstractBoundaries(abc.ABC):
    """Where the open interval of a growing series ends.

    Attributes:
        rule: The partition that decides, None if the user does.
        end: The end of the open interval; infinity while it is unknown.
        undisturbed_until: Events before this time change nothing here and need no check.
        closed_until: The last end of an interval that the user gave.
        length: The length of all intervals; infinity if they do not end by themselves.
        changing: Names of the attributes that make up the state.
    """

    rule: Partition | None
    end: float
    undisturbed_until: float
    closed_until: float = 0.0
    length: float = math.inf
    changing: tuple[str, ...]

    @abc.abstractmethod
    def is_over(self, time: float) -> bool:
        """Whether the open interval is over at this time."""

    @abc.abstractmethod
    def move_on(self, count: int = 1) -> None:
        """Go on to the end of the next interval, or of the one `count` later."""

    @abc.abstractmethod
    def count_event(self, time: float) -> None:
        """Take note of an event in the open interval or at its end."""

    @abc.abstractmethod
    def known_ends(self, time: float, most: int) -> Float64[np.ndarray, "interval"]:
        """The next ends, at most `most`, of intervals that are over at this time and whose ends are known already."""

    def state(self) -> dict[str, Any]:
        """The attributes that change, with None for infinity."""
        numbers = {name: getattr(self, name) for name in self.changing}
        return {name: None if number == math.inf else number for name, number in numbers.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        if not isinstance(state, dict) or state.keys() != set(self.changing):
            raise ModelError("This state belongs to another partition rule.", "Restore it with the same model.")
        for name, number in state.items():
            setattr(self, name, math.inf if number is None else number)

    def copy(self) -> "AbstractBoundaries":
        """An independent copy."""
        return shallow_copy(self)


class RegularBoundaries(AbstractBoundaries):
    """Ends at multiples of a length of time (`Partition.every`)."""

    changing = ("number", "end", "undisturbed_until")

    def __init__(self, rule: Every, clock: Clock) -> None:
        self.rule = self._every = rule
        self.clock, self.length = clock, rule.length(clock)
        self.number = 0
        self.move_on()

    def is_over(self, time: float) -> bool:
        """As offline, where a last interval shorter than rounding error does not exist."""
        return time >= self.end and self._ends_before(time) >= self.number

    def move_on(self, count: int = 1) -> None:
        """Go on to the next multiple."""
        self.number += count
        block, place = divmod(self.number, MULTIPLES_AT_ONCE)
        self.end = self.undisturbed_until = _multiples(self._every, self.clock, block)[place]

    def count_event(self, time: float) -> None:
        """Do nothing: events do not end intervals."""

    def known_ends(self, time: float, most: int) -> Float64[np.ndarray, "interval"]:
        """All multiples are known."""
        stop = min(self._ends_before(time), self.number + most - 1)
        if stop < self.number:
            return np.empty(0)
        return self._every.points(np.arange(self.number, stop + 1), self.clock)

    def _ends_before(self, time: float) -> int:
        return math.ceil(time / self.length * (1 - 1e-12)) - 1


@functools.lru_cache(maxsize=1024)
def _multiples(rule: Every, clock: Clock, block: int) -> list[float]:
    """Many at once, for all series: the exact multiple of a decimal step takes longer than all else about an interval.

    >>> from logcde.streams import NumericClock
    >>> _multiples(Every(0.5), NumericClock(), 0)[:3]
    [0.0, 0.5, 1.0]
    """
    numbers = np.arange(block * MULTIPLES_AT_ONCE, (block + 1) * MULTIPLES_AT_ONCE)
    return rule.points(numbers, clock).tolist()


class EventCountBoundaries(AbstractBoundaries):
    """A new interval begins at events number k, 2 k, ... (`Partition.every_events`)."""

    changing = ("count", "end")
    undisturbed_until = -math.inf

    def __init__(self, rule: EveryEvents) -> None:
        self.rule = rule
        self._events = rule.events
        self.count = 0
        self.end = math.inf

    def is_over(self, time: float) -> bool:
        """After the event at which a new interval begins."""
        return time > self.end

    def move_on(self, count: int = 1) -> None:
        """The next end is unknown until its event arrives."""
        self.end = math.inf

    def count_event(self, time: float) -> None:
        """Every k-th event begins a new interval."""
        if self.count and self.count % self._events == 0:
            self.end = time
        self.count += 1

    def known_ends(self, time: float, most: int) -> Float64[np.ndarray, "interval"]:
        """No end is known before its event arrives."""
        return np.empty(0)


class ManualBoundaries(AbstractBoundaries):
    """Intervals end where the user closes them."""

    rule = None
    changing = ("end", "undisturbed_until", "closed_until")

    def __init__(self) -> None:
        self.closed_until = 0.0
        self.move_on()

    def is_over(self, time: float) -> bool:
        """After the end that the user gave."""
        return time > self.end

    def move_on(self, count: int = 1) -> None:
        """The next end is unknown until the user gives it."""
        self.end = self.undisturbed_until = math.inf

    def count_event(self, time: float) -> None:
        """Do nothing: events do not end intervals."""

    def known_ends(self, time: float, most: int) -> Float64[np.ndarray, "interval"]:
        """No end is known before the user gives it."""
        return np.empty(0)

    def close(self, time: float) -> None:
        """End the open interval. Until time has passed its end, every event is checked: none may precede it."""
        self.end = self.closed_until = time
        self.undisturbed_until = 0.0


def boundaries_of(partition: Partition | None, clock: Clock) -> AbstractBoundaries:
    """The boundaries by a partition that a growing series can follow; otherwise the user closes intervals.

    >>> from logcde.streams import NumericClock
    >>> boundaries_of(Partition.every(0.5), NumericClock()).end
    0.5
    """
    match partition:
        case Every():
            return RegularBoundaries(partition, clock)
        case EveryEvents():
            return EventCountBoundaries(partition)
        case _:
            return ManualBoundaries()


def encode_event(event: Event) -> dict[str, Any]:
    """An event in values that JSON can represent, with None for channels that were not observed."""
    row = [None if math.isnan(x) else x for x in event.row.tolist()]
    return {"time": event.time, "row": row, "terms": None if event.terms is None else event.terms.tolist()}


def decode_event(document: dict[str, Any]) -> Event:
    """The event that `encode_event` was given."""
    if not isinstance(document, dict) or document.keys() != {"time", "row", "terms"}:
        raise ModelError(f"{document!r} is not an event of a predictor's state.")
    terms = document["terms"]
    return Event(
        document["time"], np.array(document["row"], np.float64), None if terms is None else np.array(terms, np.float64)
    )
