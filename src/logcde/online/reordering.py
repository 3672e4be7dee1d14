"""Late events: a buffer that holds arrivals for a window of time and releases them in order."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from logcde.errors import ModelError, StreamError, Where
from logcde.online.prefix import Arrival, Event, decode_event, encode_event


class ReorderBuffer:
    """Holds the arrivals of the last `window` of time, in any order, and merges those with equal stamps.

    Attributes:
        window: How late an event may arrive.
        newest: The latest time that has arrived.
        released: Time of the last arrival that was released; minus infinity before the first.
        held: Arrivals by time.
    """

    def __init__(self, window: float) -> None:
        if not 0 < window < math.inf:
            raise ModelError(f"The window for reordering is {window}.", "Give a positive length of time.")
        self.window = window
        self.newest = 0.0
        self.released = -math.inf
        self.held: dict[float, Arrival] = {}

    def add(self, arrival: Arrival) -> None:
        """Hold an arrival, merged with what is held at the same stamp."""
        time = arrival.time
        if not self.released < time < math.inf or time < self.newest - self.window:
            raise StreamError(
                f"The stamp {time} comes too late: the series is at {self.newest}, and reorder={self.window} waits no "
                "longer.",
                "Make the window longer, or leave the event out.",
                where=Where(stamp=time),
            )
        there = self.held.get(time)
        self.held[time] = arrival if there is None else _merged(there, arrival)
        self.newest = max(self.newest, time)

    def release(self) -> Iterator[Arrival]:
        """Release, in order, the arrivals that nothing can precede any more."""
        for time in sorted(time for time in self.held if time < self.newest - self.window):
            self.released = time
            yield self.held.pop(time)

    def held_until(self, time: float) -> list[Arrival]:
        """The held arrivals up to this time, in order; they stay in the buffer."""
        return [self.held[stamp] for stamp in sorted(self.held) if stamp <= time]

    def state(self) -> dict[str, Any]:
        """The whole state in values that JSON can represent."""
        held = [
            {"time": time, "closes": closes, "event": None if event is None else encode_event(event)}
            for time, closes, event in self.held.values()
        ]
        released = None if self.released == -math.inf else self.released
        return {"newest": self.newest, "released": released, "held": held}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.newest = state["newest"]
        self.released = -math.inf if state["released"] is None else state["released"]
        self.held = {
            arrival["time"]: Arrival(
                arrival["time"], arrival["closes"], None if arrival["event"] is None else decode_event(arrival["event"])
            )
            for arrival in state["held"]
        }

    def copy(self) -> "ReorderBuffer":
        """An independent copy."""
        copy = ReorderBuffer(self.window)
        copy.newest, copy.released, copy.held = self.newest, self.released, self.held.copy()
        return copy


def _merged(one: Arrival, two: Arrival) -> Arrival:
    closes = one.closes or two.closes
    if one.event is None or two.event is None:
        return Arrival(one.time, closes, one.event or two.event)
    if one.event.terms is not None or two.event.terms is not None:
        raise StreamError(
            f"Two events at {one.time} have higher-order terms, which cannot be merged.",
            "Give them as one event.",
            where=Where(stamp=one.time),
        )
    first, second = one.event.row, two.event.row
    both = ~np.isnan(first) & ~np.isnan(second)
    if (first[both] != second[both]).any():
        raise StreamError(
            f"Two events at {one.time} have different values of one channel: {first[both].tolist()} and "
            f"{second[both].tolist()}.",
            "Keep one of them.",
            where=Where(stamp=one.time),
        )
    return Arrival(one.time, closes, Event(one.time, np.where(np.isnan(first), second, first)))
