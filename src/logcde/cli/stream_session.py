"""A model and the series of a stream: each line is applied completely or refused, and predictions come out."""

import dataclasses
import enum
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from logcde.cli.stream_lines import (
    Id,
    Line,
    PredictionLine,
    Stamp,
    did_you_mean,
    read_line,
    time_of,
    with_origin,
)
from logcde.errors import ModelError, NonFiniteWarning, StreamError, Where
from logcde.online import AbstractPredictor
from logcde.online.states import FAULTS
from logcde.streams.clock import Clock, DatetimeClock, Time
from logcde.streams.faults import not_finite
from logcde.streams.series_clock import origin_number, with_origin_number


class When(enum.Enum):
    """When to predict, besides requests: after every event, at the ends of intervals, never."""

    EVENT = "event"
    INTERVAL = "interval"
    REQUEST = "request"


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """The state of one series: its predictor, its clock and its static features."""

    predictor: AbstractPredictor
    clock: Clock
    static: list[float] | None


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
        self._when, self._to_json, self._static = when, to_json, statics
        schema, self._rule = predictor.schema, predictor.rule
        self._clock, self._terms = schema.clock, len(schema.terms)
        self._channels = schema.places
        self._no_values = np.full(len(schema.channels), np.nan)
        self._initial = predictor
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
            channel = None if error.where is None else error.where.channel
            error.where = Where(series=line.series, channel=channel, stamp=line.stamp)
            raise

    def state(self) -> list[Any]:
        """The state of all series, as lists, numbers and mappings that JSON can hold."""
        return [
            [name, one.static, origin_number(one.clock), one.predictor.state()] for name, one in self._series.items()
        ]

    def restore(self, state: list[Any]) -> None:
        """Continue from what `state` returned."""
        try:
            self._series = {name: self._restored(*rest) for name, *rest in state}
        except FAULTS as error:
            raise ModelError(f"The state of the series cannot be read: {error}") from error

    def _restored(self, static: list[float] | None, origin: float | None, state: dict[str, Any]) -> Series:
        clock = with_origin_number(self._clock, origin)
        return Series(self._new_predictor(static).restore(state), clock, static)

    def _apply(self, line: Line) -> list[PredictionLine]:
        if line.values is not None:
            return self._observe(line, line.values)
        series = self._series.get(line.series)
        if series is None:
            raise StreamError(f"There is no series {line.series!r}.", 'A series begins with its first "values".')
        if line.predict is not None:
            at = time_of(line.predict, series.clock)
            return [self._prediction(line.series, line.predict, series.predictor.predict(at))]
        if line.close is not None:
            self._close(time_of(line.close, series.clock), series)
        else:
            del self._series[line.series]
            self._not_finite.discard(line.series)
        return []

    def _observe(self, line: Line, values: dict[str, float | None]) -> list[PredictionLine]:
        name, stamp, row = line.series, line.time, self._row(values)
        if stamp is None:
            raise StreamError('"time", the stamp of these values, is missing.')
        if line.terms is not None and len(line.terms) != self._terms:
            raise StreamError(f"The line has {len(line.terms)} terms, but the model takes {self._terms}.")
        known = self._series.get(name)
        if known is not None and (line.static is not None or line.origin is not None):
            raise StreamError(
                f"Series {name!r} has begun already.", 'Give "static" and "origin" in its first line only.'
            )
        series = self._begin(line, stamp) if known is None else known
        time = time_of(stamp, series.clock)
        lines = self._interval_ends(name, time, series) if self._when is When.INTERVAL else []
        try:
            series.predictor.observe(time, row, line.terms)
        except StreamError as error:
            in_stamps = _out_of_order(name, stamp, time, series)
            if in_stamps is None:
                raise
            raise in_stamps from error
        if known is None:
            self._series[name] = series
        if self._when is When.EVENT:
            lines.append(self._prediction(name, stamp, series.predictor.predict(time)))
        return lines

    def _interval_ends(self, name: Id, time: Time, series: Series) -> list[PredictionLine]:
        clock = series.clock

        def stamp(end: float) -> Stamp:
            return clock.show(end) if isinstance(clock, DatetimeClock) else end + clock.zero

        return [self._prediction(name, stamp(end), one) for end, one in series.predictor.ends(time)]

    def _prediction(self, name: Id, stamp: Stamp, outputs: np.ndarray) -> PredictionLine:
        if name not in self._not_finite and not np.isfinite(outputs).all():
            self._not_finite.add(name)
            warnings.warn(NonFiniteWarning(not_finite([name])), stacklevel=1)
        return PredictionLine(name, stamp, self._to_json(outputs))

    def _begin(self, line: Line, stamp: Stamp) -> Series:
        clock, static = self._clock, line.static
        if len(static or ()) != self._static:
            raise StreamError(
                f"The first line of series {line.series!r} has {len(static or ())} static features, but the model "
                f"takes {self._static}.",
                'Give them as "static": [...].',
            )
        if clock.per_series:
            clock = with_origin(stamp if line.origin is None else line.origin, clock)
        elif line.origin is not None:
            raise StreamError("All series of this model have the same origin of time.", 'Leave out "origin".')
        return Series(self._new_predictor(static), clock, static)

    def _new_predictor(self, static: list[float] | None) -> AbstractPredictor:
        # Without static features all series start in the same state, which is computed once.
        return self._initial.begin(static) if self._static else self._initial.copy()

    def _row(self, values: dict[str, float | None]) -> np.ndarray:
        row, empty = self._no_values.copy(), True
        for name, value in values.items():
            place = self._channels.get(name)
            if place is None:
                raise StreamError(
                    f"There is no channel {name!r}.",
                    did_you_mean(name, list(self._channels)),
                    where=Where(channel=name),
                )
            if value is not None:
                row[place], empty = value, False
        if empty:
            raise StreamError("The line has no observation.", 'To request a prediction, send "predict" with a time.')
        return row

    def _close(self, time: Time, series: Series) -> None:
        try:
            series.predictor.close(time)
        except ModelError as error:
            raise StreamError(
                f"The intervals of this model end by the rule {self._rule!r}.", 'Leave out "close".'
            ) from error


def _out_of_order(name: Id, stamp: Stamp, time: float, series: Series) -> StreamError | None:
    """The usual reason why a predictor refuses an event, in terms of the stamps of the input."""
    last = series.predictor.last
    if time < 0.0:
        start = series.clock.show(0.0)
        return StreamError(f"The stamp {stamp} is before the start of series {name!r}, {start}.")
    if time == last:
        return StreamError(
            f"Series {name!r} already has the stamp {stamp}.", "Put all values of one stamp into one line."
        )
    if time < last:
        return StreamError(
            f"The stamp {stamp} goes back: the last one of series {name!r} was {series.clock.show(last)}."
        )
    return None
