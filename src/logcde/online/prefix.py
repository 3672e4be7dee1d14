"""Where intervals end while a series is still coming in: the rule of the partition that a model was trained with.

An interval ends at the `edge` once time has passed it, not when time has reached it: at the horizon itself an event
belongs to the last interval, and until something later is known, now is the horizon.

A series so far, as the intervals that it has had and the open one: events in, log-signatures of intervals out.
"""

import abc
import copy
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from logcde.embedding import Coordinates, OnlineEmbedding
from logcde.errors import ModelError, StreamError
from logcde.streams import Clock, Partition
from logcde.streams.partition import Every, EveryEvents

AT_ONCE = 256


class AbstractBoundaries(abc.ABC):
    """The next end of an interval.

    `quiet`: events before that time need no attention. `told`: up to where the user said that intervals end.
    `rule` is the partition that says it otherwise.
    """

    rule: Partition | None
    edge: float
    quiet: float
    told: float = 0.0
    changing: tuple[str, ...]

    @abc.abstractmethod
    def passed(self, time: float) -> bool:
        """Whether the interval that ends at the edge is over at this time."""

    @abc.abstractmethod
    def move(self, count: int = 1) -> None:
        """Go on to the next edge, or by some more."""

    @abc.abstractmethod
    def arrive(self, time: float) -> None:
        """Take note of an event, all edges before which are passed."""

    @abc.abstractmethod
    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """Edges from the next one on, as many as are passed at this time and known already, and not too many."""

    def state(self) -> dict[str, Any]:
        """The numbers that change, None for an edge that is not known yet."""
        return {
            name: None if number == math.inf else number for name, number in vars(self).items() if name in self.changing
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        if not isinstance(state, dict) or state.keys() != set(self.changing):
            raise ModelError("This state belongs to another partition rule. Restore it with the same model.")
        vars(self).update({name: math.inf if number is None else number for name, number in state.items()})

    def copy(self) -> "AbstractBoundaries":
        """Independent of this one."""
        return copy.copy(self)


class AtMultiples(AbstractBoundaries):
    """Edges at multiples of a step, as `Partition.every` cuts."""

    changing = ("number", "edge", "quiet")

    def __init__(self, rule: Every, clock: Clock) -> None:
        self.rule = self._every = rule
        self.clock, self.length = clock, rule.length(clock)
        self.number = self._first = 0
        self._points: list[float] = []
        self.move()

    def passed(self, time: float) -> bool:
        """As offline, where a last interval that is shorter than rounding is none."""
        return time >= self.edge and self._inner(time) >= self.number

    def move(self, count: int = 1) -> None:
        """The next multiple."""
        self.number += count
        # Some at a time: the exact multiple of a decimal step takes longer than all else about an interval.
        if not 0 <= self.number - self._first < len(self._points):
            self._first = self.number
            self._points = self._every.points(np.arange(self.number, self.number + AT_ONCE), self.clock).tolist()
        self.edge = self.quiet = self._points[self.number - self._first]

    def arrive(self, time: float) -> None:
        """Events change nothing."""

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """As many multiples as there are."""
        stop = min(self._inner(time), self.number + most - 1)
        if stop < self.number:
            return np.empty(0)
        return self._every.points(np.arange(self.number, stop + 1), self.clock)

    def _inner(self, time: float) -> int:
        return math.ceil(time / self.length * (1 - 1e-12)) - 1


class AtEvents(AbstractBoundaries):
    """A new interval begins at events number k, 2 k, ..., as `Partition.every_events` cuts."""

    changing = ("count", "edge")
    quiet = -math.inf

    def __init__(self, rule: EveryEvents) -> None:
        self.rule = rule
        self._events = rule.events
        self.count = 0
        self.edge = math.inf

    def passed(self, time: float) -> bool:
        """After the event at which a new interval begins."""
        return time > self.edge

    def move(self, count: int = 1) -> None:
        """Not known before the event comes."""
        self.edge = math.inf

    def arrive(self, time: float) -> None:
        """Count it."""
        if self.count and self.count % self._events == 0:
            self.edge = time
        self.count += 1

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """None."""
        return np.empty(0)


class WhereTold(AbstractBoundaries):
    """Intervals end where the user says."""

    rule = None
    changing = ("edge", "quiet", "told")

    def __init__(self) -> None:
        self.told = 0.0
        self.move()

    def passed(self, time: float) -> bool:
        """After what was said."""
        return time > self.edge

    def move(self, count: int = 1) -> None:
        """Not known before it is said."""
        self.edge = self.quiet = math.inf

    def arrive(self, time: float) -> None:
        """Events change nothing."""

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """None."""
        return np.empty(0)

    def close(self, time: float) -> None:
        """An edge. Until it is passed every event needs attention: none may come before it any more."""
        self.edge = self.told = time
        self.quiet = 0.0


def boundaries_of(partition: Partition | None, clock: Clock) -> AbstractBoundaries:
    """The rule that a series still coming in can follow; where there is none, the user ends intervals.

    >>> from logcde.streams import NumericClock
    >>> boundaries_of(Partition.every(0.5), NumericClock()).edge
    0.5
    """
    match partition:
        case Every():
            return AtMultiples(partition, clock)
        case EveryEvents():
            return AtEvents(partition)
        case _:
            return WhereTold()


MOST = 4096
"""How many intervals without an event are taken at once."""


class Event(NamedTuple):
    """What was observed at one stamp, and its higher-order terms if there are any."""

    time: float
    row: np.ndarray
    terms: np.ndarray | None = None


class Moment(NamedTuple):
    """What comes at one stamp: whether an interval ends there, then what was observed."""

    time: float
    closes: bool = False
    event: Event | None = None


class Prefix:
    """The open interval, where it will end, and events that wait for that.

    An event at the edge belongs to the next interval, unless this is the horizon: so it waits until time has passed.
    """

    def __init__(self, coordinates: Coordinates, boundaries: AbstractBoundaries) -> None:
        self.online = OnlineEmbedding(coordinates)
        self.boundaries = boundaries
        self.waiting: list[Event] = []

    @property
    def last(self) -> float:
        """The stamp of the last event; minus infinity before the first."""
        return self.waiting[-1].time if self.waiting else self.online.last

    @property
    def reached(self) -> float:
        """The time up to which everything is known."""
        return max(self.online.start, self.last, self.boundaries.told)

    def check(self, moment: Moment) -> None:
        """Refuse what cannot come next, before it changes anything."""
        time, closes, event = moment
        if closes and (time < self.reached or time in (self.online.start, self.last)):
            raise StreamError(
                f"The interval that began at {self.online.start} cannot end at {time}: it is known up to "
                f"{self.reached}, and an event at its end would belong to the next. Close before observing it."
            )
        if event is not None and (time < self.reached or time == self.last):
            raise StreamError(
                f"The event at {time} is not after what is known already (the last event was at {self.last}, time has "
                f"come to {self.reached}). Give events in order, and all observations of one stamp in one call; or "
                "pass reorder=window to the predictor."
            )

    def pass_to(self, time: float) -> Iterator[Float64[np.ndarray, "interval lie"]]:
        """End all intervals that are over at this time; yields their log-signatures, some at a time."""
        while self.boundaries.passed(time):
            waited = bool(self.waiting)
            yield self.end()
            if not waited:
                yield from self._empty(time)

    def end(self) -> Float64[np.ndarray, "interval lie"]:
        """End the open interval at the edge; returns its log-signature."""
        step = self.online.close(self.boundaries.edge)
        self.boundaries.move()
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            self._place(event)
        return step[None]

    def place(self, moment: Moment) -> None:
        """Take what was checked, all intervals before which have ended."""
        if moment.closes:
            assert isinstance(self.boundaries, WhereTold)
            self.boundaries.close(moment.time)
        if moment.event is not None:
            self.boundaries.arrive(moment.time)
            self._place(moment.event)

    def open(self, at: float) -> Float64[np.ndarray, "interval lie"]:
        """The log-signature of the open interval up to a time, at which it has not ended; no row if it is a point."""
        if not self.waiting:
            return self._look(at)
        # Take those that wait, look, and take them back: cheaper than a copy.
        before = self.online.state()
        try:
            for event in self.waiting:
                self.online.take(*event)
            return self._look(at)
        finally:
            self.online.restore(before)

    def state(self) -> dict[str, Any]:
        """Everything there is to know, in lists and numbers."""
        online = self.online.state().tolist()
        return {
            "online": [None if number == -math.inf else number for number in online],
            "boundaries": self.boundaries.state(),
            "waiting": [written(event) for event in self.waiting],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        numbers = [-math.inf if number is None else number for number in state["online"]]
        self.online.restore(np.array(numbers))
        self.boundaries.restore(state["boundaries"])
        self.waiting = [read_event(event) for event in state["waiting"]]

    def copy(self) -> "Prefix":
        """Independent of this one."""
        copy = object.__new__(Prefix)
        copy.online, copy.boundaries, copy.waiting = self.online.copy(), self.boundaries.copy(), self.waiting.copy()
        return copy

    def _look(self, at: float) -> Float64[np.ndarray, "interval lie"]:
        online = self.online
        if at == online.start and at != online.last:
            return np.empty((0, online.coordinates.basis.dimension))
        return online.logsig(at)[None]

    def _place(self, event: Event) -> None:
        if event.time >= self.boundaries.edge:
            self.waiting.append(event)
        else:
            self.online.take(*event)

    def _empty(self, time: float) -> Iterator[Float64[np.ndarray, "interval lie"]]:
        """Intervals in which nothing but time happens need no composing."""
        coordinates = self.online.coordinates
        while len(edges := self.boundaries.run(time, MOST)):
            steps = np.zeros((len(edges), coordinates.basis.dimension))
            if coordinates.time:
                steps[:, coordinates.basis.width - 1] = np.diff(edges, prepend=self.online.start)
            self.online.close(float(edges[-1]))
            self.boundaries.move(len(edges))
            yield steps


def written(event: Event) -> dict[str, Any]:
    """An event in lists and numbers, None for what was not observed."""
    row = [None if math.isnan(x) else x for x in event.row.tolist()]
    return {"time": event.time, "row": row, "terms": None if event.terms is None else event.terms.tolist()}


def read_event(document: dict[str, Any]) -> Event:
    """An event as `written` wrote it."""
    if not isinstance(document, dict) or document.keys() != {"time", "row", "terms"}:
        raise ModelError(f"{document!r} is not an event of a predictor's state.")
    terms = document["terms"]
    return Event(
        document["time"], np.array(document["row"], np.float64), None if terms is None else np.array(terms, np.float64)
    )
