"""How JSON lines are applied to the series of a model: each completely, or refused with nothing changed."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from logcde.errors import ModelError, StreamError, Where
from logcde.online.abstract import AbstractPredictor
from logcde.online.lines import Id, Line, Stamp, did_you_mean, time_of, with_origin
from logcde.online.predictor import Predictor
from logcde.streams.clock import Clock, DatetimeClock, Time
from logcde.streams.schema import listed
from logcde.streams.series_clock import with_origin_number


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """The state of one series: its predictor, its clock and its static features."""

    predictor: AbstractPredictor
    clock: Clock
    static: list[float] | None

    def stamp(self, time: float) -> Stamp:
        """A time of this series as it is written in lines."""
        return self.clock.show(time) if isinstance(self.clock, DatetimeClock) else time + self.clock.zero


class SeriesEvent(NamedTuple):
    """An event that a line describes, and its series, which may begin with it."""

    series: Series
    stamp: Stamp
    time: Time
    row: Float64[np.ndarray, "channel"]
    continuous: Float64[np.ndarray, "continuous"] | None = None
    """Values of the continuous channels, if the line has them."""


class SeriesRules:
    """Applies lines to series of one model.

    Args:
        predictor: Has observed nothing; every series begins like it.
        statics: Number of static features of a series.

    >>> import jax
    >>> from logcde import Embedding, Partition, Schema, log_slice
    >>> from logcde.online import Predictor
    >>> from logcde.online.lines import read_line
    >>> schema, embedding = Schema(("pulse",)), Embedding(depth=1)
    >>> model = log_slice(embedding.basis(schema), hidden=4, outputs=1, key=jax.random.key(0))
    >>> predictor = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
    >>> rules = SeriesRules(predictor)
    >>> line = read_line(b'{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}')
    >>> event = rules.event(line, None)
    >>> rules.observe(line, event)
    >>> event.series.predictor.last
    0.5
    """

    def __init__(self, predictor: AbstractPredictor, statics: int = 0) -> None:
        self._initial, self._static = predictor, statics
        schema, self._rule = predictor.schema, predictor.rule
        self._clock, self._terms = schema.clock, len(schema.terms)
        self._channels, self._continuous = schema.places, schema.continuous
        self._no_values = np.full(len(schema.channels), np.nan)

    def event(self, line: Line, known: Series | None) -> SeriesEvent:
        """The event that a line with values describes, for a series that is known or begins with it. Changes nothing.

        Raises:
            StreamError: The line is refused.
        """
        assert line.values is not None
        continuous = None if line.continuous is None else self._continuous_row(line.continuous)
        row, stamp = self._row(line.values), line.time
        if row is self._no_values and (continuous is None or line.terms is not None):
            raise StreamError("The line has no observation.", 'To request a prediction, send "predict" with a time.')
        if stamp is None:
            raise StreamError('"time", the stamp of these values, is missing.')
        if line.terms is not None and len(line.terms) != self._terms:
            raise StreamError(f"The line has {len(line.terms)} terms, but the model takes {self._terms}.")
        if known is not None and (line.static is not None or line.origin is not None):
            raise StreamError(
                f"Series {line.series!r} has begun already.", 'Give "static" and "origin" in its first line only.'
            )
        series = self._begin(line, stamp) if known is None else known
        return SeriesEvent(series, stamp, time_of(stamp, series.clock), row, continuous)

    def observe(self, line: Line, event: SeriesEvent) -> None:
        """Give the event to the predictor of its series.

        Raises:
            StreamError: The event is refused; the series has not changed.
        """
        if event.continuous is not None:
            one = _following_paths(event)
            if event.row is self._no_values:
                one.knot(event.time, event.continuous)
            else:
                one.observe(event.time, event.row, line.terms, event.continuous)
            return
        try:
            event.series.predictor.observe(event.time, event.row, line.terms)
        except StreamError as error:
            in_stamps = _out_of_order(line.series, event)
            if in_stamps is None:
                raise
            raise in_stamps from error

    def ends(self, event: SeriesEvent) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """The ends of intervals that are over at this event, with the prediction at each. Changes nothing.

        Raises:
            StreamError: The series cannot have an event at that time.
        """
        predictor = event.series.predictor
        if event.continuous is not None:
            if event.row is self._no_values:
                return iter(())
            predictor = _following_paths(event).copy()
            predictor.knot(event.time, event.continuous)
        return predictor.ends(event.time)

    def close(self, series: Series, stamp: Stamp) -> None:
        """End the open interval of a series.

        Raises:
            StreamError: The intervals of the model end by a rule, or the stamp is out of order.
        """
        time = time_of(stamp, series.clock)
        try:
            series.predictor.close(time)
        except ModelError as error:
            raise StreamError(
                f"The intervals of this model end by the rule {self._rule!r}.", 'Leave out "close".'
            ) from error

    def restored(self, static: list[float] | None, origin: float | None, state: dict[str, Any]) -> Series:
        """The series with this state, static features and origin of time."""
        clock = with_origin_number(self._clock, origin)
        return Series(self._new_predictor(static).restore(state), clock, static)

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

    def _row(self, values: dict[str, float | None]) -> Float64[np.ndarray, "channel"]:
        """One number for each channel; `_no_values` itself if none was observed."""
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
        return self._no_values if empty else row

    def _continuous_row(self, values: dict[str, float | int | None]) -> Float64[np.ndarray, "continuous"]:
        if not self._continuous:
            raise StreamError("This model has no continuous channels.", 'Leave out "continuous".')
        for name in values:
            if name not in self._continuous:
                raise StreamError(
                    f"There is no continuous channel {name!r}.",
                    did_you_mean(name, self._continuous),
                    where=Where(channel=name),
                )
        found = [values.get(name) for name in self._continuous]
        for name, value in zip(self._continuous, found, strict=True):
            if value is None:
                raise StreamError(
                    f"The continuous channel {name!r} has no value.",
                    f"Give those of {listed(self._continuous)} together.",
                    where=Where(channel=name),
                )
        return np.array(found, np.float64)


def _following_paths(event: SeriesEvent) -> Predictor:
    """The predictor of a series that has continuous channels, which no others have."""
    assert isinstance(event.series.predictor, Predictor)
    return event.series.predictor


def where_of(line: Line, error: StreamError) -> Where:
    """The place of an error about a line, with the stamp as the line has it."""
    channel = None if error.where is None else error.where.channel
    return Where(series=line.series, channel=channel, stamp=line.stamp)


class UnknownSeriesError(StreamError):
    """A series that has not begun."""


def unknown_series(name: Id) -> UnknownSeriesError:
    """The error about a series that has not begun."""
    return UnknownSeriesError(f"There is no series {name!r}.", 'A series begins with its first "values".')


def _out_of_order(name: Id, event: SeriesEvent) -> StreamError | None:
    """The usual reason why a predictor refuses an event, in terms of the stamps of the input."""
    series, stamp, time = event[:3]
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
