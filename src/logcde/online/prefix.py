"""A series so far, as the intervals that it has had and the open one: events in, log-signatures of intervals out."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from logcde.embedding import Coordinates, Online
from logcde.errors import ModelError, StreamError
from logcde.online.boundaries import AbstractBoundaries, WhereTold

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
        self.online = Online(coordinates)
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
