"""Events that come late: held back until a window of time has passed, then given on in order."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from logcde.errors import ModelError, StreamError
from logcde.online.prefix import Event, Moment, read_event, written


class Reordering:
    """Moments of the last `window` of time, in whatever order they come."""

    def __init__(self, window: float) -> None:
        if not 0 < window < math.inf:
            raise ModelError(f"The window for reordering is {window}. It is a positive length of time.")
        self.window = window
        self.newest = 0.0
        self.given = -math.inf
        self.held: dict[float, Moment] = {}

    def add(self, moment: Moment) -> None:
        """Hold a moment back; what comes at the stamp of another joins it."""
        time = moment.time
        if not self.given < time < math.inf or time < self.newest - self.window:
            raise StreamError(
                f"The stamp {time} comes too late: time has come to {self.newest}, and reorder={self.window} waits no "
                "longer. Make the window longer, or leave this out."
            )
        there = self.held.get(time)
        self.held[time] = moment if there is None else _merged(there, moment)
        self.newest = max(self.newest, time)

    def ready(self) -> Iterator[Moment]:
        """Moments that nothing can come before any more, in order; they are held no longer."""
        for time in sorted(time for time in self.held if time < self.newest - self.window):
            self.given = time
            yield self.held.pop(time)

    def up_to(self, time: float) -> list[Moment]:
        """Moments that are held back, in order."""
        return [self.held[stamp] for stamp in sorted(self.held) if stamp <= time]

    def state(self) -> dict[str, Any]:
        """Everything there is to know, in lists and numbers."""
        held = [
            {"time": time, "closes": closes, "event": None if event is None else written(event)}
            for time, closes, event in self.held.values()
        ]
        return {"newest": self.newest, "given": None if self.given == -math.inf else self.given, "held": held}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.newest = state["newest"]
        self.given = -math.inf if state["given"] is None else state["given"]
        self.held = {
            moment["time"]: Moment(
                moment["time"], moment["closes"], None if moment["event"] is None else read_event(moment["event"])
            )
            for moment in state["held"]
        }

    def copy(self) -> "Reordering":
        """Independent of this one."""
        copy = Reordering(self.window)
        copy.newest, copy.given, copy.held = self.newest, self.given, self.held.copy()
        return copy


def _merged(one: Moment, two: Moment) -> Moment:
    closes = one.closes or two.closes
    if one.event is None or two.event is None:
        return Moment(one.time, closes, one.event or two.event)
    if one.event.terms is not None or two.event.terms is not None:
        raise StreamError(
            f"Two events at {one.time} have higher-order terms, which cannot be joined. Give them as one."
        )
    first, second = one.event.row, two.event.row
    both = ~np.isnan(first) & ~np.isnan(second)
    if (first[both] != second[both]).any():
        raise StreamError(
            f"Two events at {one.time} have different values of one channel: {first[both].tolist()} and "
            f"{second[both].tolist()}. Decide which one is right."
        )
    return Moment(one.time, closes, Event(one.time, np.where(np.isnan(first), second, first)))
