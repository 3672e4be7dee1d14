"""`Predictor` follows one growing series and predicts at any time; `Predictors` follows many, predicted together.

The same two stages as offline, the log-signature of an interval and the flow that it drives, are folded interval by
interval (`eq:interval_log_signature_method`). Intervals that are over are forgotten, so memory is constant.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from logcde._typing import Numbers
from logcde.embedding import Embedding, InitialObservations
from logcde.embedding.online import Values
from logcde.errors import LogcdeError, ModelError, StreamError, Where
from logcde.models import AbstractOnlineModel
from logcde.online.abstract import AbstractPredictor
from logcde.online.prefix import Arrival, Event, Prefix, boundaries_of
from logcde.online.reordering import ReorderBuffer
from logcde.online.serving import IntervalLogsigs, ModelState, PredictorSetup
from logcde.streams import Partition, Schema

FORMAT = 2
MOST_PENDING = 64
"""Intervals that are over but not yet in the model's state: many series can advance together later."""


class Predictor(AbstractPredictor):
    """Predicts from one growing series.

    Predictions equal those of the model offline on the observations so far, with the same ends of intervals and the
    time of the prediction as the horizon. They use past observations only and change nothing: `observe` and `close`
    alone change the predictor. `state` and `restore` move it between processes.

    Args:
        model: A trained model whose initial state depends on no later observation.
        schema: Channels and clock; by default those that the model was trained with, in `model.spec`.
        embedding: How events are embedded; by default as in training.
        partition: Where intervals end; by default as in training. `Partition.every` and `Partition.every_events` are
            followed; with any other partition, call `close` at the end of each interval.
        static: Static features of the series.
        reorder: How late events may arrive, as a length of time. Observations of one stamp may then also come in
            several calls. By default events have to come in order.

    >>> import jax
    >>> from logcde import Embedding, log_slice, Partition, Schema
    >>> schema, embedding = Schema(("pulse", "temp")), Embedding(depth=2)
    >>> model = log_slice(embedding.basis(schema), hidden=8, outputs=1, key=jax.random.key(0))
    >>> predictor = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
    >>> predictor.observe(0.5, {"pulse": 61.0})
    >>> predictor.observe(2.25, {"pulse": 64.0, "temp": 37.2})
    >>> predictor.predict(at=4.0).shape
    (1,)
    """

    def __init__(
        self,
        model: AbstractOnlineModel,
        *,
        schema: Schema | None = None,
        embedding: Embedding | None = None,
        partition: Partition | None = None,
        static: Numbers | None = None,
        reorder: object = None,
    ) -> None:
        self._initialise(PredictorSetup.of(model, schema, embedding, partition, reorder), static)

    @classmethod
    def from_setup(cls, setup: PredictorSetup, static: Numbers | None = None) -> "Predictor":
        """A predictor that shares its setup with those of other series."""
        predictor = object.__new__(cls)
        predictor._initialise(setup, static)
        return predictor

    def _initialise(self, setup: PredictorSetup, static: Numbers | None) -> None:
        self._setup = setup
        coordinates = setup.coordinates
        self._static = np.zeros(0) if static is None else np.atleast_1d(np.asarray(static, np.float64))
        self._prefix = Prefix(coordinates, boundaries_of(setup.partition, coordinates.schema.clock))
        self._online, self._boundaries = self._prefix.online, self._prefix.boundaries
        self._buffer = None if setup.window is None else ReorderBuffer(setup.window)
        self._model_state = self._initial_state(np.full(coordinates.channels, np.nan))
        self._pending: list[IntervalLogsigs] = []

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        return self._setup.coordinates.schema

    @property
    def rule(self) -> Partition | None:
        """The rule by which intervals end, None if the user closes them."""
        return self._setup.partition

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return self._prefix.last

    def begin(self, static: Numbers | None = None) -> "Predictor":
        """A predictor of another series, which has observed nothing yet."""
        return Predictor.from_setup(self._setup, static)

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event: everything that was observed at one stamp, later than all events before.

        Args:
            time: A time, or a stamp of the streams' clock.
            values: Maps channels to numbers, or has one number for each channel, NaN for those not observed.
            terms: The schema's higher-order terms.

        Raises:
            StreamError: The event is out of order or not finite. Nothing has changed then.
        """
        stamp = time if type(time) is float else self._setup.time(time)
        row = self._online.row(values)
        if 0.0 < stamp < self._boundaries.undisturbed_until and self._buffer is None and terms is None:
            self._online.take(stamp, row)  # the fast path of most events
            return
        self.check(stamp, row)
        if not np.isnan(row).all():
            event = Event(stamp, row, None if terms is None else np.asarray(terms, np.float64))
            self._receive(Arrival(stamp, event=event))

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse an event with an infinite stamp, infinite values or the wrong number of values."""
        self._setup.check(time, row)

    def close(self, time: object) -> None:
        """End the open interval, for partitions that do not say where the intervals of a growing series end.

        An event at this stamp belongs to the next interval: close first, then observe.

        Args:
            time: A time, or a stamp of the streams' clock.
        """
        if self._boundaries.rule is not None:
            raise ModelError(
                f"Intervals end by the rule {self._boundaries.rule!r}, with which the model was trained.",
                "To end them yourself, make the predictor with another partition, for example Partition.uniform(1).",
            )
        self._receive(Arrival(self._setup.time(time), closes=True))

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict as if the series ended at this time. Changes nothing.

        Args:
            at: A time, or a stamp of the streams' clock; by default the latest time of the series.

        Returns:
            The outputs of the model.
        """
        advance_pending([self])
        return self._setup.model.predict(*self.state_at(at))

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of intervals that would be over at this time, with the prediction at each.

        Changes nothing.

        Args:
            until: A time, or a stamp of the streams' clock.
        """
        if self._buffer is not None:
            raise ModelError("Events may still arrive late, so no interval is final.", "Leave out reorder=.")
        time = until if type(until) is float else self._setup.time(until)
        if not self._boundaries.is_over(time):
            return
        advance_pending([self])
        ahead = self.copy()
        while ahead._boundaries.is_over(time):
            end = ahead._boundaries.end
            yield end, ahead.predict(end)
            ahead._model_state = ahead._setup.model.advance(ahead._model_state, ahead._prefix.end_interval())

    def state_at(self, at: object) -> tuple[ModelState, IntervalLogsigs]:
        """The model's state and the log-signatures of all intervals since, if the series ended at `at`."""
        reached = self._prefix.reached
        if at is None:
            time = reached if self._buffer is None else max(reached, self._buffer.newest)
        else:
            time = at if type(at) is float else self._setup.time(at)
        if not reached <= time < math.inf:
            raise StreamError(
                f"A prediction at {time} is not possible: the series is known up to {reached} already.",
                "Predict at that time or later.",
                where=Where(stamp=time),
            )
        held = [] if self._buffer is None else self._buffer.held_until(time)
        if not held and not self._boundaries.is_over(time):
            return self._model_state, np.concatenate([*self._pending, self._prefix.open_logsig(time)])
        ahead = self.copy()
        for arrival in held:
            ahead._take(arrival)
        ahead._advance_to(time)
        return ahead._model_state, np.concatenate([*ahead._pending, ahead._prefix.open_logsig(time)])

    def state(self) -> dict[str, Any]:
        """The whole state of the series, in numbers, lists and mappings that JSON can represent."""
        advance_pending([self])
        return {
            "format": FORMAT,
            "prefix": self._prefix.state(),
            "model": [leaf.tolist() for leaf in self._model_state],
            "reorder": None if self._buffer is None else self._buffer.state(),
        }

    def restore(self, state: dict[str, Any]) -> "Predictor":
        """Continue from what `state` returned, in a predictor with the same model and options."""
        found = state.get("format") if isinstance(state, dict) else None
        if found != FORMAT:
            raise ModelError(
                f"This state cannot be restored: it has format {found!r}; this version of logcde reads format {FORMAT}."
            )
        try:
            model_state = tuple(
                np.array(new, old.dtype) for new, old in zip(state["model"], self._model_state, strict=True)
            )
            if [leaf.shape for leaf in model_state] != [leaf.shape for leaf in self._model_state]:
                raise ModelError("The state of the model has another shape.")
            if (self._buffer is None) != (state["reorder"] is None):
                raise ModelError("One has reorder=, the other has not.")
            prefix = self._prefix.copy()
            prefix.restore(state["prefix"])
            buffer = None if self._buffer is None else self._buffer.copy()
            if buffer is not None:
                buffer.restore(state["reorder"])
        except (LogcdeError, KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"This state cannot be restored: it belongs to another model or schema ({error})."
            ) from error
        self._adopt(prefix, buffer, model_state, [])
        return self

    def copy(self) -> "Predictor":
        """An independent predictor that has observed the same."""
        copy = object.__new__(Predictor)
        copy._setup, copy._static = self._setup, self._static
        buffer = None if self._buffer is None else self._buffer.copy()
        copy._adopt(self._prefix.copy(), buffer, self._model_state, [*self._pending])
        return copy

    def _adopt(
        self, prefix: Prefix, buffer: ReorderBuffer | None, model_state: ModelState, pending: list[IntervalLogsigs]
    ) -> None:
        self._prefix, self._buffer, self._model_state, self._pending = prefix, buffer, model_state, pending
        self._online, self._boundaries = prefix.online, prefix.boundaries

    def _initial_state(self, row: np.ndarray) -> ModelState:
        """The model's state before the first interval, if this row is observed at time 0."""
        seen = ~np.isnan(row)
        return self._setup.model.start(InitialObservations(np.where(seen, row, 0.0), seen, seen), self._static)

    def _receive(self, arrival: Arrival) -> None:
        if self._buffer is None:
            self._take(arrival)
            return
        self._buffer.add(arrival)
        for released in self._buffer.release():
            self._take(released)

    def _take(self, arrival: Arrival) -> None:
        """Take the next arrival, in order, after ending all intervals that are over by then."""
        self._prefix.check(arrival)
        self._advance_to(arrival.time)
        self._prefix.take(arrival)
        if arrival.event is not None and arrival.time == 0.0:
            self._model_state = self._initial_state(arrival.event.row)

    def _advance_to(self, time: float) -> None:
        for logsigs in self._prefix.advance_to(time):
            self._pending.append(logsigs)
            if len(self._pending) >= MOST_PENDING:
                advance_pending([self])


def advance_pending(predictors: Sequence[Predictor]) -> None:
    """Advance the model's state over the pending intervals of series that share a setup, all series together."""
    waiting = [one for one in predictors if one._pending]
    if not waiting:
        return
    logsigs = [np.concatenate(one._pending) for one in waiting]
    states = waiting[0]._setup.model.advance_many([one._model_state for one in waiting], logsigs)
    for one, state in zip(waiting, states, strict=True):
        one._model_state, one._pending = state, []


class Predictors:
    """Predicts from many growing series, each with an id and with intervals of its own.

    A series begins with its first event, or with `add`, which takes its static features. `predictors[id]` is the
    `Predictor` of one series. The arguments are those of `Predictor`.

    >>> import jax
    >>> from logcde import Embedding, log_slice, Partition, Schema
    >>> schema, embedding = Schema(("pulse", "temp")), Embedding(depth=2)
    >>> model = log_slice(embedding.basis(schema), hidden=8, outputs=1, key=jax.random.key(0))
    >>> predictors = Predictors(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
    >>> predictors.observe("bed 3", 0.5, {"pulse": 61.0})
    >>> predictors.observe("bed 7", 1.25, {"temp": 37.2})
    >>> predictors.ids, predictors.predict(at=2.0).shape
    (('bed 3', 'bed 7'), (2, 1))
    """

    def __init__(
        self,
        model: AbstractOnlineModel,
        *,
        schema: Schema | None = None,
        embedding: Embedding | None = None,
        partition: Partition | None = None,
        reorder: object = None,
    ) -> None:
        self._setup = PredictorSetup.of(model, schema, embedding, partition, reorder)
        self._series: dict[Hashable, Predictor] = {}

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The ids of the series, in the order in which they began and in which they are predicted."""
        return tuple(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, series: Hashable) -> Predictor:
        """The predictor of one series."""
        if series not in self._series:
            raise ModelError(
                f"There is no series {series!r} yet.",
                "A series begins with its first event, or with `add`.",
                where=Where(series=series),
            )
        return self._series[series]

    def add(self, series: Hashable, static: Numbers | None = None) -> Predictor:
        """Begin a series, with its static features if the model takes some."""
        if series in self._series:
            raise ModelError(f"The series {series!r} has begun already.", where=Where(series=series))
        one = Predictor.from_setup(self._setup, static)
        self._series[series] = one
        return one

    def remove(self, series: Hashable) -> None:
        """Forget a series."""
        self._series.pop(series, None)

    def observe(self, series: Hashable, time: object, values: Values) -> None:
        """Take one event of one series. Events are in order within a series; series are independent of each other."""
        one = self._series.get(series)
        (self.add(series) if one is None else one).observe(time, values)

    def observe_many(
        self, series: Sequence[Hashable], times: Sequence | np.ndarray, values: Sequence | np.ndarray
    ) -> None:
        """Take events of many series, one after another: id, time and values of each."""
        for one, time, row in zip(series, times, values, strict=True):
            self.observe(one, time, row)

    def close(self, time: object) -> None:
        """End the open interval of every series."""
        for one in self._series.values():
            one.close(time)

    def predict(
        self, at: object = None, series: Sequence[Hashable] | None = None
    ) -> Float[np.ndarray, "series output"]:
        """Predict as if each series ended at this time. Changes nothing.

        Args:
            at: A time, or a stamp of the streams' clock; by default the latest time of each series.
            series: Ids of the series to predict; all by default.

        Returns:
            The outputs of the model, one row for each series.
        """
        chosen = list(self._series.values()) if series is None else [self[one] for one in series]
        if not chosen:
            raise ModelError("There are no series to predict yet.", "Observe events, or begin a series with `add`.")
        advance_pending(chosen)
        states, logsigs = zip(*(one.state_at(at) for one in chosen), strict=True)
        return self._setup.model.predict_many(list(states), list(logsigs))
