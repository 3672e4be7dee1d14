"""Late events: a buffer that holds arrivals for a window of time and releases them in order; a predictor with one."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding.online import Values
from logcde.errors import ModelError, StreamError, Where
from logcde.features.online import row_of
from logcde.online.abstract import AbstractPredictor
from logcde.online.prefix import Arrival, Event, decode_event, encode_event
from logcde.online.states import FORMAT, check_format, restoring
from logcde.streams import Clock, Partition, Schema
from logcde.streams.clock import Time
from logcde.streams.series_clock import begun_by, own_origin, time_on, with_origin_number


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


class ReorderingPredictor(AbstractPredictor):
    """Holds events back for a window of time, and gives them to another predictor in order.

    Where each series has its own origin, that is the stamp of the event that arrives first.
    """

    def __init__(self, inner: AbstractPredictor, window: float) -> None:
        self._inner, self._buffer = inner, ReorderBuffer(window)
        self._clock: Clock = inner.schema.clock

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._inner.schema

    @property
    def rule(self) -> Partition | None:
        """The rule of the inner predictor."""
        return self._inner.rule

    @property
    def last(self) -> float:
        """Time of the last event that is final."""
        return self._inner.last

    def begin(self, static: Numbers | None = None) -> "ReorderingPredictor":
        """A predictor of another series."""
        return ReorderingPredictor(self._inner.begin(static), self._buffer.window)

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Hold the event, and pass on those that nothing can precede any more."""
        clock = begun_by(self._clock, time)
        stamp, row = float(time_on(clock, time)), row_of(self.schema, values)
        self.check(stamp, row)  # now, not when the event is released
        if np.isnan(row).all():
            return
        self._buffer.add(Arrival(stamp, event=Event(stamp, row, None if terms is None else np.asarray(terms))))
        self._clock = clock
        for arrival in self._buffer.release():
            _pass(self._inner, arrival)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse what the inner predictor refuses."""
        self._inner.check(time, row)

    def close(self, time: object) -> None:
        """Refuse: intervals end by rules."""
        self._inner.close(time_on(self._clock, time))

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict from all events up to this time, also those that are held."""
        return self.predict_each([self], [at])[0]

    def predict_each(
        self, predictors: Sequence[AbstractPredictor], at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Predict several series together."""
        own = [one for one in predictors if isinstance(one, ReorderingPredictor)]
        ahead, times = zip(*(one._ahead(stamp) for one, stamp in zip(own, at, strict=True)), strict=True)
        return ahead[0].predict_each(ahead, times)

    def _ahead(self, at: object) -> tuple[AbstractPredictor, Time]:
        """The inner predictor, or a copy that has observed what is held up to this time; and the time."""
        time = Time(max(self._inner.last, self._buffer.newest)) if at is None else time_on(self._clock, at)
        held = self._buffer.held_until(time)
        ahead = self._inner.copy() if held else self._inner
        for arrival in held:
            _pass(ahead, arrival)
        return ahead, time

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Refuse: no interval is final."""
        raise ModelError("Events may still arrive late, so no interval is final.", "Leave out reorder=.")

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The inner state and the events that are held."""
        origin = own_origin(self._clock, self.schema.clock)
        head = {"format": FORMAT, "kind": "reorder", "origin": origin}
        return {**head, "inner": self._inner.state(arrays), "held": self._buffer.state()}

    def restore(self, state: dict[str, Any]) -> "ReorderingPredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            check_format(state, "reorder")
            buffer = self._buffer.copy()
            buffer.restore(state["held"])
            clock = with_origin_number(self.schema.clock, state.get("origin"))
            self._inner, self._buffer, self._clock = self._inner.copy().restore(state["inner"]), buffer, clock

        restoring(restore)
        return self

    def copy(self) -> "ReorderingPredictor":
        """An independent predictor that has observed the same."""
        other = ReorderingPredictor(self._inner.copy(), self._buffer.window)
        other._buffer, other._clock = self._buffer.copy(), self._clock
        return other


def _pass(predictor: AbstractPredictor, arrival: Arrival) -> None:
    assert arrival.event is not None
    predictor.observe(Time(arrival.time), arrival.event.row, arrival.event.terms)
