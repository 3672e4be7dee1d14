"""All series of a stream: a line goes in, and is taken as a whole or not at all; answers come out."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from logcde.cli.stream_lines import Answer, Id, Line, Stamp, from_ticks, meant, read_line, since, ticks_of, time_of
from logcde.errors import ModelError, StreamError
from logcde.models import AbstractOnlineModel
from logcde.online import Predictor
from logcde.online.serving import PredictorSetup
from logcde.streams.clock import Clock, DatetimeClock
from logcde.streams.partition import Every

MOST_INTERVALS = 1_000_000
"""Intervals that may end between two stamps of a series: more are a mistake in the units of time."""


class When(enum.Enum):
    """What is answered beside requests: every observation, the ends of intervals, nothing."""

    EVENT = "event"
    INTERVAL = "interval"
    REQUEST = "request"


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """A series that has begun, what never changes about it, and how its stamps are read."""

    predictor: Predictor
    clock: Clock
    static: list[float] | None


class Session:
    """A model and the series that have begun.

    `present` makes an array of outputs into what is written of it: here outputs could get their names.
    """

    def __init__(
        self,
        model: AbstractOnlineModel,
        when: When = When.EVENT,
        *,
        present: Callable[[np.ndarray], Any] = np.ndarray.tolist,
    ) -> None:
        self._service = PredictorSetup.of(model)
        self._when, self._present = when, present
        schema, rule = self._service.coordinates.schema, self._service.partition
        self._clock, self._terms = schema.clock, len(schema.terms)
        self._channels = {name: place for place, name in enumerate(schema.channels)}
        self._blank = np.full(len(schema.channels), np.nan)
        self._static = model.statics
        self._far = MOST_INTERVALS * rule.length(schema.clock) if isinstance(rule, Every) else np.inf
        # Where all series begin the same, the model need be asked only once where that is.
        self._fresh = None if self._static else Predictor.from_setup(self._service)
        self._series: dict[Id, Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def take(self, text: bytes) -> list[Answer]:
        """Take one line and answer. If it is refused, by a `StreamError`, nothing has changed."""
        line = read_line(text)
        if line.values is not None:
            return self._observe(line, line.values)
        series = self._series.get(line.series)
        if series is None:
            raise StreamError(f"There is no series {line.series!r} yet. It begins with its first values.")
        if line.predict is not None:
            at = self._time(line.predict, series)
            return [Answer(line.series, line.predict, self._present(series.predictor.predict(at)))]
        if line.close is not None:
            self._close(self._time(line.close, series), series)
        else:
            del self._series[line.series]
        return []

    def state(self) -> list[Any]:
        """Everything there is to know of all series, in lists, numbers and mappings that JSON can hold."""
        return [[name, one.static, ticks_of(one.clock), one.predictor.state()] for name, one in self._series.items()]

    def restore(self, state: list[Any]) -> None:
        """Go on from what `state` returned."""
        try:
            self._series = {name: self._restored(*rest) for name, *rest in state}
        except (TypeError, ValueError) as error:
            raise ModelError(f"The state of the series cannot be read: {error}") from error

    def _restored(self, static: list[float] | None, ticks: int | None, state: dict[str, Any]) -> Series:
        clock = self._clock
        if isinstance(clock, DatetimeClock) and ticks is not None:
            clock = from_ticks(ticks, clock)
        return Series(self._new(static).restore(state), clock, static)

    def _observe(self, line: Line, values: dict[str, float | None]) -> list[Answer]:
        name, stamp, row = line.series, line.time, self._row(values)
        if stamp is None:
            raise StreamError('"time" is missing, the stamp of these values.')
        if line.terms is not None and len(line.terms) != self._terms:
            raise StreamError(f"The line has {len(line.terms)} terms, but the model takes {self._terms}.")
        known = self._series.get(name)
        if known is not None and (line.static is not None or line.origin is not None):
            raise StreamError(f"Series {name!r} has begun already: only its first line says what never changes.")
        series = self._begin(line, stamp) if known is None else known
        time = self._time(stamp, series)
        answers = self._ends(name, time, series) if self._when is When.INTERVAL else []
        try:
            series.predictor.observe(time, row, line.terms)
        except StreamError as error:
            raise StreamError(_out_of_order(name, stamp, time, series) or str(error)) from error
        if known is None:
            self._series[name] = series
        if self._when is When.EVENT:
            answers.append(Answer(name, stamp, self._present(series.predictor.predict(time))))
        return answers

    def _ends(self, name: Id, time: float, series: Series) -> list[Answer]:
        show = series.clock.show if isinstance(series.clock, DatetimeClock) else float
        return [Answer(name, show(end), self._present(one)) for end, one in series.predictor.ends(time)]

    def _begin(self, line: Line, stamp: Stamp) -> Series:
        clock, static = self._clock, line.static
        if len(static or ()) != self._static:
            raise StreamError(
                f"The first line of series {line.series!r} has {len(static or ())} static features, but the model "
                f'takes {self._static}. Give them as "static": [...].'
            )
        if isinstance(clock, DatetimeClock) and clock.origin is None:
            if not isinstance(stamp, str):
                time_of(stamp, clock)
            clock = since(line.origin or str(stamp), clock)
        elif line.origin is not None:
            raise StreamError("All series of this model count time from the same origin. Leave it out.")
        return Series(self._new(static), clock, static)

    def _new(self, static: list[float] | None) -> Predictor:
        return Predictor.from_setup(self._service, static) if self._fresh is None else self._fresh.copy()

    def _row(self, values: dict[str, float | None]) -> np.ndarray:
        row, nothing = self._blank.copy(), True
        for name, value in values.items():
            place = self._channels.get(name)
            if place is None:
                raise StreamError(f"There is no channel {name!r}. {meant(name, list(self._channels))}")
            if value is not None:
                row[place], nothing = value, False
        if nothing:
            raise StreamError('Nothing is observed in this line. To ask for a prediction, send "predict" with a time.')
        return row

    def _time(self, stamp: Stamp, series: Series) -> float:
        time = time_of(stamp, series.clock)
        if time > self._far and time - max(series.predictor.last, 0.0) > self._far:
            raise StreamError(
                f"More than {MOST_INTERVALS:,} intervals of the model would end before the stamp {stamp}. See whether "
                "it is in the units of time that the model was trained in."
            )
        return time

    def _close(self, time: float, series: Series) -> None:
        try:
            series.predictor.close(time)
        except ModelError as error:
            raise StreamError(
                f"The intervals of this model end by a rule of their own, {self._service.partition!r}. Leave this out."
            ) from error


def _out_of_order(name: Id, stamp: Stamp, time: float, series: Series) -> str | None:
    """The usual reason why an event is refused, in the user's own terms."""
    last = series.predictor.last
    if time < 0.0:
        return f"The stamp {stamp} is before the time from which series {name!r} counts, {series.clock.show(0.0)}."
    if time == last:
        return (
            f"Series {name!r} has had the stamp {stamp} already. Put all that is observed at one stamp into one line."
        )
    if time < last:
        return f"The stamp {stamp} goes back: the last one of series {name!r} was {series.clock.show(last)}."
    return None
