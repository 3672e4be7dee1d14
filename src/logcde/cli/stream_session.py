"""A model and the series of a stream: each line is applied completely or refused, and predictions come out."""

import enum
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from logcde.errors import ModelError, NonFiniteWarning, StreamError
from logcde.online import AbstractPredictor
from logcde.online.lines import Id, Line, PredictionLine, Stamp, read_line, time_of
from logcde.online.rules import Series, SeriesEvent, SeriesRules, unknown_series, where_of
from logcde.online.states import FAULTS
from logcde.streams.faults import not_finite
from logcde.streams.series_clock import origin_number


class When(enum.Enum):
    """When to predict, besides requests: after every event, at the ends of intervals, never."""

    EVENT = "event"
    INTERVAL = "interval"
    REQUEST = "request"


class Session:
    """A model and the state of all series.

    Args:
        predictor: Has observed nothing; every series begins like it.
        when: When to predict, besides requests.
        statics: Number of static features of a series.
        to_json: From the model's outputs to a prediction in JSON.
    """

    def __init__(
        self,
        predictor: AbstractPredictor,
        when: When = When.EVENT,
        *,
        statics: int = 0,
        to_json: Callable[[np.ndarray], Any] = np.ndarray.tolist,
    ) -> None:
        self._when, self._to_json = when, to_json
        self._rules = SeriesRules(predictor, statics)
        self._series: dict[Id, Series] = {}
        self._not_finite: set[Id] = set()
        self.current: Id | None = None
        """The series of the line that was taken last."""

    def __len__(self) -> int:
        return len(self._series)

    def take(self, text: bytes) -> list[PredictionLine]:
        """Apply one line, and return the predictions for it.

        Raises:
            StreamError: If the line is refused; then nothing has changed. `where` names its series and stamp.
        """
        line = read_line(text)
        self.current = line.series
        try:
            return self._apply(line)
        except StreamError as error:
            error.where = where_of(line, error)
            raise

    def state(self) -> list[Any]:
        """The state of all series, as lists, numbers and mappings that JSON can hold."""
        return [
            [name, one.static, origin_number(one.clock), one.predictor.state()] for name, one in self._series.items()
        ]

    def restore(self, state: list[Any]) -> None:
        """Continue from what `state` returned."""
        try:
            self._series = {name: self._rules.restored(*rest) for name, *rest in state}
        except FAULTS as error:
            raise ModelError(f"The state of the series cannot be read: {error}") from error

    def _apply(self, line: Line) -> list[PredictionLine]:
        if line.values is not None:
            return self._observe(line)
        series = self._series.get(line.series)
        if series is None:
            raise unknown_series(line.series)
        if line.predict is not None:
            at = time_of(line.predict, series.clock)
            return [self._prediction(line.series, line.predict, series.predictor.predict(at))]
        if line.close is not None:
            self._rules.close(series, line.close)
        else:
            del self._series[line.series]
            self._not_finite.discard(line.series)
        return []

    def _observe(self, line: Line) -> list[PredictionLine]:
        if line.id is not None:
            raise StreamError('"id" makes an observation of logcde serve idempotent.', "Leave it out here.")
        name, known = line.series, self._series.get(line.series)
        event = self._rules.event(line, known)
        lines = self._interval_ends(name, event) if self._when is When.INTERVAL else []
        self._rules.observe(line, event)
        if known is None:
            self._series[name] = event.series
        assert line.values is not None
        observes = event.continuous is None or any(value is not None for value in line.values.values())
        if self._when is When.EVENT and observes:
            lines.append(self._prediction(name, event.stamp, event.series.predictor.predict(event.time)))
        return lines

    def _interval_ends(self, name: Id, event: SeriesEvent) -> list[PredictionLine]:
        return [self._prediction(name, event.series.stamp(end), one) for end, one in self._rules.ends(event)]

    def _prediction(self, name: Id, stamp: Stamp, outputs: np.ndarray) -> PredictionLine:
        if name not in self._not_finite and not np.isfinite(outputs).all():
            self._not_finite.add(name)
            warnings.warn(NonFiniteWarning(not_finite([name])), stacklevel=1)
        return PredictionLine(name, stamp, self._to_json(outputs))
