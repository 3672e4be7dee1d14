"""`Predictor` follows one growing series and predicts at any time; `predictors` has those of many.

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
from logcde.embedding.online import Values, open_logsigs
from logcde.errors import ModelError, StreamError, Where
from logcde.features.online import check_finite, row_of
from logcde.models import AbstractOnlineModel
from logcde.online.abstract import AbstractPredictor
from logcde.online.prefix import Arrival, Event, Prefix, boundaries_of
from logcde.online.reordering import ReorderBuffer
from logcde.online.serving import IntervalLogsigs, ModelState, PredictorSetup
from logcde.online.states import FAULTS
from logcde.online.watching import begun, copied, restored
from logcde.streams import Clock, Partition, Schema, TrainingRanges
from logcde.streams.clock import Time
from logcde.streams.series_clock import begun_by, own_origin, shown, time_on, with_origin_number, zero_for

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
        ranges: What the model was trained on. A series far outside of it is warned of, once for each reason.

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
        ranges: TrainingRanges | None = None,
    ) -> None:
        self._initialise(PredictorSetup.of(model, schema, embedding, partition, reorder, ranges), static)

    @classmethod
    def from_setup(cls, setup: PredictorSetup, static: Numbers | None = None, series: Hashable = None) -> "Predictor":
        """A predictor that shares its setup with those of other series; warnings name this one."""
        predictor = object.__new__(cls)
        predictor._initialise(setup, static, series)
        return predictor

    def _initialise(self, setup: PredictorSetup, static: Numbers | None, series: Hashable = None) -> None:
        self._setup = setup
        self._watch = begun(setup.watch, series)
        coordinates = setup.coordinates
        self._follow(coordinates.schema.clock)
        self._static = np.zeros(0) if static is None else np.atleast_1d(np.asarray(static, np.float64))
        self._prefix = Prefix(coordinates, boundaries_of(setup.partition, coordinates.schema.clock))
        self._online, self._boundaries = self._prefix.online, self._prefix.boundaries
        self._buffer = None if setup.window is None else ReorderBuffer(setup.window)
        self._direct = self._buffer is None and self._prefix.path is None
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

    def observe(
        self, time: object, values: Values, terms: Numbers | None = None, continuous: Values | None = None
    ) -> None:
        """Take one event: everything that was observed at one stamp, later than all events before.

        Args:
            time: A stamp of the streams' clock; where it has datetimes or durations, a number is the time itself.
            values: Maps channels to numbers, or has one number for each channel, NaN for those not observed.
            terms: The schema's higher-order terms.
            continuous: Values of the schema's continuous channels at this time, as `knot` takes them.

        Raises:
            StreamError: The event is out of order or not finite. Nothing has changed then.
        """
        if continuous is not None:
            ahead = self.copy()  # so that nothing changes if one of the two is refused
            ahead.knot(time, continuous)
            ahead.observe(time, values, terms)
            for name, value in vars(ahead).items():
                setattr(self, name, value)
            return
        kind = type(time)
        stamp = time - self._zero if kind is float else float(time) if kind is Time else math.nan  # type: ignore
        row = self._online.row(values)
        if 0.0 < stamp < self._boundaries.undisturbed_until and self._direct and terms is None:
            self._online.take(stamp, row)  # the fast path of most events
        else:
            clock = begun_by(self._clock, time)
            stamp = float(time_on(clock, time))
            self.check(stamp, row)
            if np.isnan(row).all():
                return
            self._prefix.check_known(stamp, self._show)
            event = Event(stamp, row, None if terms is None else np.asarray(terms, np.float64))
            self._receive(Arrival(stamp, event=event))
            self._follow(clock)
        if self._watch is not None:
            self._watch.take(stamp, row_of(self.schema, values))  # before scaling

    def knot(self, time: object, continuous: Values) -> None:
        """Take the values of the continuous channels at one stamp, to which they move along a straight line.

        The first stamp is the start of the series. Events, ends of intervals and predictions need the path up to their
        own time, so it may be given ahead, such as a planned dose. Knots are kept until an event or the end of an
        interval passes them; until then others may come between them.

        Args:
            time: A stamp of the streams' clock.
            continuous: Maps all continuous channels to numbers, or has one number for each.

        Raises:
            StreamError: There are no such channels, or the path is known otherwise. Nothing has changed then.
        """
        clock = begun_by(self._clock, time)
        moment = float(time_on(clock, time))
        self._setup.check(moment, np.full(len(self.schema.channels), np.nan))
        self._prefix.check_reach(moment, self._show)
        self._prefix.knot(moment, continuous, self._show)
        self._follow(clock)

    def check(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Refuse an event with an infinite or far stamp, infinite values or the wrong number of values."""
        self._setup.check(time, row)
        self._prefix.check_reach(time, self._show)
        if self._buffer is not None and time < 0.0:
            raise StreamError(
                f"The stamp {self._show(time)} is before the start of the series, {self._show(0.0)}.",
                "If each series counts from its own first stamp, that is the one that arrives first.",
                where=Where(stamp=self._show(time)),
            )

    def close(self, time: object) -> None:
        """End the open interval, for partitions that do not say where the intervals of a growing series end.

        An event at this stamp belongs to the next interval: close first, then observe.

        Args:
            time: A stamp of the streams' clock.
        """
        if self._boundaries.rule is not None:
            raise ModelError(
                f"Intervals end by the rule {self._boundaries.rule!r}, with which the model was trained.",
                "To end them yourself, make the predictor with another partition, for example Partition.uniform(1).",
            )
        moment = float(time_on(self._clock, time))
        self._prefix.check_reach(moment, self._show)
        self._prefix.check_known(moment, self._show)
        self._receive(Arrival(moment, closes=True))

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """Predict as if the series ended at this time. Changes nothing.

        Args:
            at: A stamp of the streams' clock; by default the latest time of the series.

        Returns:
            The outputs of the model.
        """
        advance_pending([self])
        return self._setup.model.predict(*self.state_at(self.moment(at)))

    def predict_each(
        self, predictors: Sequence[AbstractPredictor], at: Sequence[object]
    ) -> Float[np.ndarray, "series output"]:
        """Predict several series together."""
        own = [one for one in predictors if isinstance(one, Predictor)]
        assert len(own) == len(predictors)
        return self._setup.model.predict_many(*states_at(own, at))

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """Iterate over the ends of intervals that would be over at this time, with the prediction at each.

        Changes nothing.

        Args:
            until: A stamp of the streams' clock.
        """
        if self._buffer is not None:
            raise ModelError("Events may still arrive late, so no interval is final.", "Leave out reorder=.")
        time = float(time_on(self._clock, until))
        self._prefix.check_reach(time, self._show)
        if time > self._online.start:
            self._prefix.check_known(time, self._show)
        if not self._boundaries.is_over(time):
            return
        zero = zero_for(self._clock, until)
        advance_pending([self])
        ahead = self.copy()
        while ahead._boundaries.is_over(time):
            end = ahead._boundaries.end
            yield end + zero, ahead.predict(Time(end))
            ahead._model_state = ahead._setup.model.advance(ahead._model_state, ahead._prefix.end_interval())

    def state_at(self, time: float) -> tuple[ModelState, IntervalLogsigs]:
        """The model's state and the log-signatures of all intervals since, if the series ended at a `moment`."""
        held = [] if self._buffer is None else self._buffer.held_until(time)
        if not held and not self._boundaries.is_over(time):
            return self._model_state, np.concatenate([*self._pending, self._prefix.open_logsig(time)])
        ahead = self.copy()
        for arrival in held:
            ahead._take(arrival)
        ahead._advance_to(time)
        return ahead._model_state, np.concatenate([*ahead._pending, ahead._prefix.open_logsig(time)])

    def is_open(self, time: float) -> bool:
        """Whether a prediction at a `moment` needs nothing but the open interval, which has begun before it."""
        return (
            self._direct
            and not self._prefix.waiting
            and time > self._online.start
            and not self._boundaries.is_over(time)
        )

    def moment(self, at: object) -> float:
        """The time of a prediction at this stamp, by default at the latest one; refused if it is not possible."""
        reached = self._prefix.reached
        if at is None:
            time = reached if self._buffer is None else max(reached, self._buffer.newest)
        else:
            time = float(time_on(self._clock, at))
        check_finite(time)
        if time < reached:
            raise StreamError(
                f"A prediction at {self._show(time)} is not possible: the series is known up to {self._show(reached)} "
                "already.",
                "Predict at that time or later.",
                where=Where(stamp=self._show(time)),
            )
        self._prefix.check_reach(time, self._show)
        if time > self._online.start:
            self._prefix.check_known(time, self._show)
        if self._watch is not None:
            self._watch.ask(time)
        return time

    def state(self, arrays: bool = False) -> dict[str, Any]:
        """The whole state of the series; with `arrays`, its arrays of numbers are arrays of NumPy."""
        advance_pending([self])
        return {
            "format": FORMAT,
            "prefix": self._prefix.state(arrays),
            "model": [leaf if arrays else leaf.tolist() for leaf in self._model_state],
            "reorder": None if self._buffer is None else self._buffer.state(),
            "origin": own_origin(self._clock, self.schema.clock),
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
            clock = with_origin_number(self.schema.clock, state.get("origin"))
        except FAULTS as error:
            raise ModelError(
                f"This state cannot be restored: it belongs to another model or schema ({error})."
            ) from error
        self._adopt(prefix, buffer, model_state, [])
        self._follow(clock)
        self._watch = restored(self._watch, self.last)
        return self

    def copy(self) -> "Predictor":
        """An independent predictor that has observed the same."""
        copy = object.__new__(Predictor)
        copy._setup, copy._static = self._setup, self._static
        copy._watch = copied(self._watch)
        buffer = None if self._buffer is None else self._buffer.copy()
        copy._adopt(self._prefix.copy(), buffer, self._model_state, [*self._pending])
        copy._follow(self._clock)
        return copy

    def _adopt(
        self, prefix: Prefix, buffer: ReorderBuffer | None, model_state: ModelState, pending: list[IntervalLogsigs]
    ) -> None:
        self._prefix, self._buffer, self._model_state, self._pending = prefix, buffer, model_state, pending
        self._online, self._boundaries = prefix.online, prefix.boundaries
        self._direct = buffer is None and prefix.path is None

    def _follow(self, clock: Clock) -> None:
        """Count time by this clock: of all series, or of this one once it has begun."""
        self._clock, self._zero = clock, clock.zero

    def _show(self, time: float) -> str:
        return shown(self._clock, time)

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
        self._prefix.check(arrival, self._show)
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


def states_at(predictors: Sequence[Predictor], at: Sequence[object]) -> tuple[list[ModelState], list[IntervalLogsigs]]:
    """`Predictor.state_at` for series that share a setup; the open intervals of most in one kernel call."""
    advance_pending(predictors)
    times = [one.moment(time) for one, time in zip(predictors, at, strict=True)]
    places = [place for place, (one, time) in enumerate(zip(predictors, times, strict=True)) if one.is_open(time)]
    states, logsigs = [one._model_state for one in predictors], dict[int, IntervalLogsigs]()
    if places:
        online = [predictors[place]._online for place in places]
        rows = open_logsigs(online, np.array([times[place] for place in places]))
        logsigs = dict(zip(places, rows[:, None], strict=True))
    for place in set(range(len(predictors))) - logsigs.keys():
        states[place], logsigs[place] = predictors[place].state_at(times[place])
    return states, [logsigs[place] for place in range(len(predictors))]
