"""`ForecastPredictor`: forecasts of one growing series, any time ahead."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding.online import Values
from logcde.errors import ModelError, StreamError, Where
from logcde.features.online import check_event, check_finite, check_later, row_of
from logcde.features.recent import Grouped
from logcde.models.forecast import ForecastModel
from logcde.online.abstract import AbstractPredictor
from logcde.online.states import FORMAT, check_format, restoring
from logcde.online.watching import RangeWatch, begun, copied, restored
from logcde.streams import Clock, Schema
from logcde.streams.clock import Time
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.series_clock import begun_by, own_origin, shown, time_on, with_origin_number


class ForecastPredictor(AbstractPredictor):
    """Predicts from the recent observations of one series; those that the model has forgotten are not kept.

    A prediction at a time uses the events before that time, as offline: not an event at that very time.

    >>> from logcde import Streams
    >>> from logcde.estimators import LogCDEForecaster
    >>> walks = np.cumsum(np.random.default_rng(0).normal(size=(30, 10, 1)), axis=1)
    >>> forecaster = LogCDEForecaster(random_state=0).fit(walks)
    >>> predictor = ForecastPredictor(forecaster.model_)
    >>> for step, value in enumerate(walks[3, :, 0]):
    ...     predictor.observe(float(step), {"x1": value})
    >>> bool(predictor.predict(at=12.0) == forecaster.predict(walks[3:4], at=[12.0])[0, 0])
    True
    """

    def __init__(self, model: ForecastModel, watch: RangeWatch | None = None) -> None:
        self._model, self._watch = model, watch
        self._clock: Clock = model.schema.clock
        self._events: list[tuple[float, np.ndarray]] = []

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._model.schema

    @property
    def rule(self) -> None:
        """There are no intervals."""
        return

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return self._events[-1][0] if self._events else -math.inf

    def begin(self, static: Numbers | None = None) -> "ForecastPredictor":
        """A predictor of another series."""
        return ForecastPredictor(self._model, begun(self._watch))

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event, later than all before."""
        clock = begun_by(self._clock, time)
        stamp, row = float(time_on(clock, time)), row_of(self.schema, values)
        self.check(stamp, row)
        check_later(clock, stamp, self.last)
        if np.isnan(row).all():
            return
        # The next prediction may be at the time of this event, which then does not count.
        oldest = self.last - self._model.features.reach
        if self._events and self._events[0][0] < oldest:
            self._events = [event for event in self._events if event[0] >= oldest]
        self._events.append((stamp, row))
        self._clock = clock
        if self._watch is not None:
            self._watch.take(stamp, row)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse a stamp before 0 and infinite values."""
        check_event(self._clock, time, row, len(self.schema.channels))

    def close(self, time: object) -> None:
        """Refuse: there are no intervals."""
        raise ModelError("This model forecasts at any time and has no intervals to close.", "Leave out close.")

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Forecast all targets at a time, by default that of the last event, from the events before it."""
        return self.predict_each([self], [at])[0]

    def predict_each(
        self, predictors: Sequence[AbstractPredictor], at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Forecast for several series together."""
        own = [one for one in predictors if isinstance(one, ForecastPredictor)]
        times = np.array([one._time(stamp) for one, stamp in zip(own, at, strict=True)])
        events = [one._events for one in own]
        return self._model.answers(_grouped(events, len(self.schema.channels)), np.arange(len(own)), times)

    def _time(self, at: object) -> float:
        """The time of a forecast; refused if it is in the past."""
        known = max(self.last, 0.0)
        time = known if at is None else float(time_on(self._clock, at))
        check_finite(time)
        if time < known:
            raise StreamError(
                f"A forecast for {shown(self._clock, time)} is not possible: the series is known up to "
                f"{shown(self._clock, known)} already.",
                "Ask for that time or later.",
                where=Where(stamp=time),
            )
        if self._watch is not None:
            self._watch.ask(time)
        return time

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Refuse: there are no intervals."""
        raise ModelError("This model forecasts at any time and has no intervals.", "Ask for predictions at times.")

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The recent events; as arrays, the time and the row of each, one after another."""
        if arrays:
            events: Any = np.concatenate([np.empty(0), *(np.append(time, row) for time, row in self._events)])
        else:
            events = [[time, [None if math.isnan(x) else x for x in row.tolist()]] for time, row in self._events]
        origin = own_origin(self._clock, self.schema.clock)
        head = {"format": FORMAT, "kind": "forecast", "channels": list(self.schema.channels), "origin": origin}
        return {**head, "events": events}

    def restore(self, state: dict[str, Any]) -> "ForecastPredictor":
        """Continue from what `state` returned."""

        def restore() -> None:
            check_format(state, "forecast")
            if state["channels"] != list(self.schema.channels):
                raise ModelError(f"it has the channels {state['channels']}")
            other = ForecastPredictor(self._model)
            events = state["events"]
            if isinstance(events, np.ndarray):
                rows = events.reshape(-1, 1 + len(self.schema.channels))
                events = [(time, row) for time, row in zip(rows[:, 0].tolist(), rows[:, 1:], strict=True)]
            for time, row in events:
                other.observe(Time(time), np.array([np.nan if x is None else x for x in row]))
            clock = with_origin_number(self.schema.clock, state.get("origin"))
            self._events, self._clock = other._events, clock
            self._watch = restored(self._watch, self.last)

        restoring(restore)
        return self

    def copy(self) -> "ForecastPredictor":
        """An independent predictor that has observed the same."""
        other = ForecastPredictor(self._model, copied(self._watch))
        other._events, other._clock = self._events.copy(), self._clock
        return other


def _grouped(series: Sequence[list[tuple[float, np.ndarray]]], channels: int) -> Grouped:
    """The observations of the events of many series."""
    events = [event for own in series for event in own]
    times = np.array([time for time, _ in events])
    rows = np.array([row for _, row in events]).reshape(len(times), channels)
    offsets = offsets_of(np.array([len(own) for own in series]))
    event, channel = np.nonzero(np.isfinite(rows))
    group = owners(offsets)[event] * channels + channel
    order = np.argsort(group, kind="stable")
    event, channel = event[order], channel[order]
    places = offsets_of(np.bincount(group, minlength=len(series) * channels))
    return Grouped(channels, places, times[event], rows[event, channel], offsets, times)
