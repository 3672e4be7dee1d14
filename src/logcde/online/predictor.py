"""`Predictor`: one series as it comes in, and what a model says about it at any moment.

The same two steps as offline, an interval's log-signature and the flow that it drives, folded one after another
(`eq:interval_log_signature_method`); intervals that are over are forgotten, so memory is constant.

`Predictors`: many series that are still coming in, and what a model says about all of them at once.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from logcde._typing import Numbers
from logcde.embedding import Embedding, InitialObservations
from logcde.embedding.online import Values
from logcde.errors import LogcdeError, ModelError, StreamError
from logcde.models import AbstractOnlineModel
from logcde.online.prefix import Event, Moment, Prefix, boundaries_of
from logcde.online.reordering import Reordering
from logcde.online.serving import Kept, Service, Steps
from logcde.streams import Partition, Schema

FORMAT = 1
WAITING = 64
"""Intervals that are over and may wait until a prediction needs them, or many series can go on together."""


class Predictor:
    """A model and one series that is still coming in.

    How events are embedded and where intervals end is taken from `model.spec`, how the model was trained; `schema`,
    `embedding` and `partition` say it where a model has none, or instead of it. Intervals end by the rule of
    `Partition.every` or `Partition.every_events`, otherwise where `close` says. `static` are the features of the series
    that do not change. With `reorder`, events may come late by that much time, and pieces of one event in several
    calls.

    Predictions equal those of the model offline on what has been observed, with the same ends of intervals and the
    time of the prediction as the horizon. They change nothing. The object changes with `observe` and `close` only, and
    `state` and `restore` keep it across processes.

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
        self._begin(Service.of(model, schema, embedding, partition, reorder), static)

    @classmethod
    def serving(cls, service: Service, static: Numbers | None = None) -> "Predictor":
        """A predictor that shares with others what all series share."""
        one = object.__new__(cls)
        one._begin(service, static)
        return one

    def _begin(self, service: Service, static: Numbers | None) -> None:
        self._service = service
        coordinates = service.coordinates
        self._static = np.zeros(0) if static is None else np.atleast_1d(np.asarray(static, np.float64))
        self._prefix = Prefix(coordinates, boundaries_of(service.partition, coordinates.schema.clock))
        self._online, self._boundaries = self._prefix.online, self._prefix.boundaries
        self._late = None if service.window is None else Reordering(service.window)
        self._kept = self._start(np.full(coordinates.channels, np.nan))
        self._over: list[Steps] = []

    @property
    def last(self) -> float:
        """The stamp of the last event, as time; minus infinity before the first."""
        return self._prefix.last

    def observe(self, time: object, values: Values, terms: Numbers | None = None) -> None:
        """Take one event: everything that was observed at this stamp, which is after all others.

        `values` maps channels to numbers, or has one number for each channel, NaN for those not observed. `time` is a
        time or a stamp such as the streams had. `terms` are the schema's higher-order terms.
        """
        stamp = time if type(time) is float else self._service.time(time)
        row = self._online.row(values)
        if 0.0 < stamp < self._boundaries.quiet and self._late is None and terms is None:
            self._online.take(stamp, row)  # the usual case, without detours
            return
        self._service.check(stamp, row)
        if not np.isnan(row).all():
            event = Event(stamp, row, None if terms is None else np.asarray(terms, np.float64))
            self._come(Moment(stamp, event=event))

    def close(self, time: object) -> None:
        """End the open interval here, for models that were not trained on a rule that can be followed.

        An event at this stamp belongs to the next interval: close first, then observe.
        """
        if self._boundaries.rule is not None:
            raise ModelError(
                f"Intervals end by the rule {self._boundaries.rule!r} that the model was trained on. To end them "
                "yourself, make the predictor with another partition, for example Partition.uniform(1)."
            )
        self._come(Moment(self._service.time(time), closes=True))

    def predict(self, at: object = None) -> Float[np.ndarray, "output"]:
        """The prediction if the series ended at this time, by default at the latest that is known. Changes nothing."""
        settle([self])
        return self._service.model.predict(*self.ahead(at))

    def ends(self, until: object) -> Iterator[tuple[float, Float[np.ndarray, "output"]]]:
        """The ends of intervals that would be over at this time, and the prediction at each. Changes nothing."""
        if self._late is not None:
            raise ModelError("Events may still come late, so that no interval has ended for good. Leave out reorder=.")
        time = until if type(until) is float else self._service.time(until)
        if not self._boundaries.passed(time):
            return
        settle([self])
        ahead = self.copy()
        while ahead._boundaries.passed(time):
            edge = ahead._boundaries.edge
            yield edge, ahead.predict(edge)
            ahead._kept = ahead._service.model.advance(ahead._kept, ahead._prefix.end())

    def ahead(self, at: object) -> tuple[Kept, Steps]:
        """What is kept and the log-signatures of all intervals since, if time had come to `at`."""
        reached = self._prefix.reached
        if at is None:
            time = reached if self._late is None else max(reached, self._late.newest)
        else:
            time = at if type(at) is float else self._service.time(at)
        if not reached <= time < math.inf:
            raise StreamError(f"The series is known up to {reached} already; asked for {time}.")
        held = [] if self._late is None else self._late.up_to(time)
        if not held and not self._boundaries.passed(time):
            return self._kept, np.concatenate([*self._over, self._prefix.open(time)])
        ahead = self.copy()
        for moment in held:
            ahead._take(moment)
        ahead._pass_to(time)
        return ahead._kept, np.concatenate([*ahead._over, ahead._prefix.open(time)])

    def state(self) -> dict[str, Any]:
        """Everything there is to know of the series so far, in numbers, lists and mappings that JSON can hold."""
        settle([self])
        return {
            "format": FORMAT,
            "prefix": self._prefix.state(),
            "kept": [leaf.tolist() for leaf in self._kept],
            "late": None if self._late is None else self._late.state(),
        }

    def restore(self, state: dict[str, Any]) -> "Predictor":
        """Go on from what `state` returned, with the same model and options."""
        try:
            if state["format"] != FORMAT:
                raise ModelError(f"This state has format {state['format']!r}; this version of logcde reads {FORMAT}.")
            kept = tuple(np.array(new, old.dtype) for new, old in zip(state["kept"], self._kept, strict=True))
            if [leaf.shape for leaf in kept] != [leaf.shape for leaf in self._kept]:
                raise ModelError("what is kept of the series has other sizes")
            if (self._late is None) != (state["late"] is None):
                raise ModelError("one has reorder=, the other has not")
            prefix = self._prefix.copy()
            prefix.restore(state["prefix"])
            late = None if self._late is None else self._late.copy()
            if late is not None:
                late.restore(state["late"])
        except (LogcdeError, KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"This state cannot be restored: it belongs to another model or schema ({error})."
            ) from error
        self._adopt(prefix, late, kept, [])
        return self

    def copy(self) -> "Predictor":
        """An independent predictor that has seen the same."""
        copy = object.__new__(Predictor)
        copy._service, copy._static = self._service, self._static
        copy._adopt(self._prefix.copy(), None if self._late is None else self._late.copy(), self._kept, [*self._over])
        return copy

    def _adopt(self, prefix: Prefix, late: Reordering | None, kept: Kept, over: list[Steps]) -> None:
        self._prefix, self._late, self._kept, self._over = prefix, late, kept, over
        self._online, self._boundaries = prefix.online, prefix.boundaries

    def _start(self, row: np.ndarray) -> Kept:
        """What is kept before the first interval, if this is what is observed at time 0."""
        seen = ~np.isnan(row)
        return self._service.model.start(InitialObservations(np.where(seen, row, 0.0), seen, seen), self._static)

    def _come(self, moment: Moment) -> None:
        if self._late is None:
            self._take(moment)
            return
        self._late.add(moment)
        for ready in self._late.ready():
            self._take(ready)

    def _take(self, moment: Moment) -> None:
        """The next moment, in order: first all intervals end that are over by then."""
        self._prefix.check(moment)
        self._pass_to(moment.time)
        self._prefix.place(moment)
        if moment.event is not None and moment.time == 0.0:
            self._kept = self._start(moment.event.row)

    def _pass_to(self, time: float) -> None:
        for steps in self._prefix.pass_to(time):
            self._over.append(steps)
            if len(self._over) >= WAITING:
                settle([self])


def settle(predictors: Sequence[Predictor]) -> None:
    """Take the intervals that are over into what is kept, of all these series together; they share a model."""
    waiting = [one for one in predictors if one._over]
    if not waiting:
        return
    steps = [np.concatenate(one._over) for one in waiting]
    kept = waiting[0]._service.model.advance_many([one._kept for one in waiting], steps)
    for one, after in zip(waiting, kept, strict=True):
        one._kept, one._over = after, []


class Predictors:
    """A model and many series, each with an id, each with its own intervals: see `Predictor` for the options.

    A series begins with its first event, or with `add`, which takes its static features. `predictors[id]` is the
    `Predictor` of one series.

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
        self._service = Service.of(model, schema, embedding, partition, reorder)
        self._series: dict[Hashable, Predictor] = {}

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The series in the order in which they began, which is that of the predictions."""
        return tuple(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, series: Hashable) -> Predictor:
        """The predictor of one series."""
        if series not in self._series:
            raise ModelError(f"There is no series {series!r} yet. It begins with its first event, or with `add`.")
        return self._series[series]

    def add(self, series: Hashable, static: Numbers | None = None) -> Predictor:
        """Begin a series, with the features of it that do not change."""
        if series in self._series:
            raise ModelError(f"The series {series!r} has begun already.")
        one = Predictor.serving(self._service, static)
        self._series[series] = one
        return one

    def remove(self, series: Hashable) -> None:
        """Forget a series."""
        self._series.pop(series, None)

    def observe(self, series: Hashable, time: object, values: Values) -> None:
        """Take one event of one series, in the order of that series; other series may be elsewhere in time."""
        one = self._series.get(series)
        (self.add(series) if one is None else one).observe(time, values)

    def observe_many(
        self, series: Sequence[Hashable], times: Sequence | np.ndarray, values: Sequence | np.ndarray
    ) -> None:
        """Take events of many series, in this order."""
        for one, time, row in zip(series, times, values, strict=True):
            self.observe(one, time, row)

    def close(self, time: object) -> None:
        """End the open interval of every series here."""
        for one in self._series.values():
            one.close(time)

    def predict(
        self, at: object = None, series: Sequence[Hashable] | None = None
    ) -> Float[np.ndarray, "series output"]:
        """The predictions of all series, or of these, as if each ended at this time, by default at its latest."""
        chosen = list(self._series.values()) if series is None else [self[one] for one in series]
        if not chosen:
            raise ModelError("There is no series yet to predict for.")
        settle(chosen)
        kept, steps = zip(*(one.ahead(at) for one in chosen), strict=True)
        return self._service.model.predict_many(list(kept), list(steps))
