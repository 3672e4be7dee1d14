"""The engine: groups of observations in, answers out, once everything that they changed is durable.

One thread calls it. States of series are live when they are needed, and the most recent ones are kept. If a group
cannot be committed, the series that it changed are forgotten and live again, so memory is never ahead of the store.
"""

import dataclasses
import hashlib
import logging
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.lines import Id, Line, Stamp, read_line, time_of
from logcde.online.predictors import predict_together
from logcde.online.rules import SeriesEvent, SeriesRules, unknown_series, where_of
from logcde.serve.alerts import Alert, check_outputs, numbers_of, risk_of
from logcde.serve.feed import Answer, Delivery
from logcde.serve.live import LiveSeries, SeriesCache, ServedModel
from logcde.serve.metrics import Metrics
from logcde.serve.store import AbstractStore, DeadLetter, Group, Observation, Outgoing
from logcde.serve.work import Due, RefusedError, Work
from logcde.streams.clock import Time

LONGEST_ID = 256
"""Bytes of the id of a series in JSON, and of an event id."""
LONGEST_LETTER = 4096
"""Bytes of a refused observation that are kept."""
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ServiceOptions:
    """What a service does besides taking observations.

    Attributes:
        each: Whether to predict after every observation, or on request only.
        alerts: Thresholds of outputs.
        risk: The output by which series are sorted; by default that of the first alert, or else the last one.
        rate: Units of time of the model in a second, by which time goes on where stamps are not datetimes.
        most_series: Series that may exist.
        cached: Series whose states are kept in memory.
    """

    each: bool = True
    alerts: tuple[Alert, ...] = ()
    risk: str | None = None
    rate: float | None = None
    most_series: int = 100_000
    cached: int = 20_000


class Service:
    """Takes observations of many series and predicts, durably.

    Args:
        model: What to serve.
        store: What was kept, and is to be kept. Its facts are those of the model.
        options: What else to do.
    """

    def __init__(self, model: ServedModel, store: AbstractStore, options: ServiceOptions = ServiceOptions()) -> None:
        self._model, self.store, self._options = model, store, options
        self._rules = SeriesRules(model.predictor, model.statics)
        self.clock = model.predictor.schema.clock
        """The clock of the model."""
        self.risk = options.risk or (options.alerts[0].output if options.alerts else None)
        """The output by which series are sorted; None for the last one."""
        self._cache = SeriesCache(model, self._rules, store, options.cached)
        # Compiles what predicts, before anybody waits.
        known = numbers_of(model.to_json(predict_together([model.predictor.copy()], [None])[0]))
        check_outputs(options.alerts, options.risk, tuple(known))
        counts = store.counts()
        self._total = counts["open"] + counts["archived"]
        self.metrics = Metrics()
        self.newest = store.outgoing_range()[1]
        """Number of the last outgoing entry that is durable."""
        self.current: Id | None = None
        """The series that was taken last."""

    def apply(self, feed: str, deliveries: Sequence[Delivery]) -> list[list[Answer]]:
        """Take deliveries in order and commit everything that they change; returns an answer for each observation.

        An answer is a prediction, `{"series", "time", "prediction"}`, or says why the observation was refused, with
        the keys `error`, `reason`, `series`, `channel` and `stamp`.

        Raises:
            StoreError: It cannot be committed. Nothing was taken.
        """
        work = Work(time.time())
        try:
            answers = [[self._answer(text, work) for text in delivery.texts] for delivery in deliveries]
            self._predict(work)
            self._commit(feed, deliveries[-1].position, work)
        except BaseException:
            self._cache.forget([*work.changed, self.current])
            raise
        self._total += work.begun
        return answers

    def predict(self, name: Id, at: Stamp | None = None) -> Answer:
        """The prediction for a series at a stamp, by default its latest one. Changes nothing.

        Raises:
            StreamError: There is no such series, or no prediction at that stamp.
        """
        answer = self._prediction(name, at)
        self._cache.trim()
        return answer

    def _prediction(self, name: Id, at: Stamp | None) -> Answer:
        self.current = name
        live = self._cache.load(name)
        if live is None:
            raise unknown_series(name)
        stamp = live.stamp if at is None else at
        try:
            outputs = live.series.predictor.predict(time_of(stamp, live.series.clock))
        except StreamError as error:
            raise StreamError(error.found, error.remedy, where=Where(series=name, stamp=stamp)) from error
        self.metrics.add("predictions", "request")
        return {"series": name, "time": stamp, "prediction": self._to_json(outputs)}

    def refresh(self, names: Sequence[Id]) -> None:
        """Predict series as of now, all together, though nothing was observed.

        Raises:
            StoreError: They cannot be kept.
        """
        work = Work(time.time())
        try:
            for name in names:
                live = self._cache.load(name)
                assert live is not None
                work.due[name] = Due(live, None, {}, "tick")
            self._predict(work)
            self._commit("tick", None, work, states=False)
            return
        except StreamError as error:
            # One of them cannot be predicted, or its state is damaged: leave it as it is, and refresh the others.
            self._cache.forget(names)
            if len(names) == 1:
                log.warning("Series %r cannot be refreshed: %s", names[0], error)
                self.metrics.add("unrefreshed")
                return
        except BaseException:
            self._cache.forget(names)
            raise
        half = len(names) // 2
        self.refresh(names[:half])
        self.refresh(names[half:])

    def archive(self, silence: float) -> int:
        """Archive the series without an observation for so many seconds; returns their number.

        They keep their states, and are opened again by their next observation.
        """
        self._cache.forget(names := self.store.archive(time.time() - silence))
        return len(names)

    def _answer(self, text: bytes, work: Work) -> Answer:
        """Apply one observation. A refused one is kept as a dead letter."""
        try:
            return self._take(text, work)
        except RefusedError as refused:
            error, reason = refused.error, refused.reason
        work.dead.append(DeadLetter(work.now, reason, str(error), text[:LONGEST_LETTER]))
        work.counts["refused", reason] += 1
        where = error.where or Where()
        place = {"series": where.series, "channel": where.channel, "stamp": where.stamp}
        return {"error": str(error), "reason": reason, **place}

    def _take(self, text: bytes, work: Work) -> Answer:
        try:
            line = read_line(text)
        except StreamError as error:
            raise RefusedError("malformed", error) from error
        self.current = line.series
        try:
            if line.values is None:
                return self._take_other(line, work)
            return self._observe(line, work)
        except RefusedError as refused:
            refused.error.where = where_of(line, refused.error)
            raise

    def _take_other(self, line: Line, work: Work) -> Answer:
        """A request, or the end of an interval."""
        live = self._known(line.series)
        if live is None:
            raise RefusedError("unknown", unknown_series(line.series))
        if line.forget:
            raise RefusedError(
                "unsupported",
                StreamError("A service forgets no series by request.", "It archives those that are silent."),
            )
        try:
            if line.predict is not None:
                return self._prediction(line.series, line.predict)
            assert line.close is not None
            if line.series in work.due:
                self._predict(work)
            self._rules.close(live.series, line.close)
        except StreamError as error:
            raise RefusedError("impossible", error) from error
        closed = float(time_of(line.close, live.series.clock))
        if closed > live.time:
            live.time, live.stamp = closed, line.close
        self._changed(live, work)
        return {"series": line.series, "time": line.close}

    def _observe(self, line: Line, work: Work) -> Answer:
        live = work.changed.get(line.series) or self._known(line.series)
        digest = b""
        if line.id is not None:
            _check_length("event id", line.id)
            digest = hashlib.blake2b(msgspec.json.encode(line, order="sorted"), digest_size=16).digest()
            before = None if live is None else self._repeated(line, live, digest, work)
            if before is not None:
                work.counts["repeated", ""] += 1
                return before
        if live is None:
            _check_length("id of the series", line.series)
            if line.series in (".", ".."):
                raise RefusedError("limit", StreamError(f"{line.series!r} cannot be a part of an address, as ids are."))
            if self._total + work.begun >= self._options.most_series:
                raise RefusedError(
                    "limit",
                    StreamError(
                        f"There are {self._options.most_series:,} series already, as many as may be.",
                        "Check the ids; if they are meant, allow more with --max-series.",
                    ),
                )
        try:
            event = self._rules.event(line, None if live is None else live.series)
        except StreamError as error:
            raise RefusedError("unreadable", error) from error
        if line.series in work.due:  # that prediction is without this observation
            self._predict(work)
        newest = -np.inf if live is None else live.time
        try:
            self._rules.observe(line, event)
        except StreamError as error:
            raise RefusedError(_reason(event, newest), error) from error
        if live is None:
            key = self.store.new_key()
            live = LiveSeries(event.series, key, line.series, work.now, work.now, 0, event.stamp, float(event.time))
            work.begun += 1
        return self._taken(line, event, live, digest, work)

    def _taken(self, line: Line, event: SeriesEvent, live: LiveSeries, digest: bytes, work: Work) -> Answer:
        """Note an observation that the predictor has taken."""
        live.events, live.updated, live.archived = live.events + 1, work.now, False
        if event.time >= live.time:
            live.time, live.stamp = float(event.time), event.stamp
        self._changed(live, work)
        assert line.values is not None
        observation = Observation(
            live.key, live.events, work.now, event.stamp, line.values, None, None, line.id, digest
        )
        answer: Answer = {"series": line.series, "time": event.stamp, "prediction": None}
        if line.id is not None:
            work.ids[live.key, line.id] = digest, answer
        work.counts["observations", ""] += 1
        if self._options.each:
            work.due[line.series] = Due(live, observation, answer, "observation")
        else:
            work.observations.append(observation)
        return answer

    def _repeated(self, line: Line, live: LiveSeries, digest: bytes, work: Work) -> Answer | None:
        """The answer to an observation whose event id was taken before; None if it was not."""
        assert line.id is not None
        in_group = work.ids.get((live.key, line.id))
        kept = self.store.accepted(live.key, line.id) if in_group is None else None
        if in_group is None and kept is None:
            return None
        if digest != (in_group[0] if in_group is not None else kept.digest if kept is not None else b""):
            raise RefusedError(
                "conflict",
                StreamError(
                    f"The event id {line.id!r} was used for another observation of series {line.series!r}.",
                    "Give every observation an id of its own.",
                ),
            )
        if in_group is not None:
            return in_group[1]
        assert kept is not None
        stamp = line.time if kept.predicted is None else kept.predicted
        return {"series": line.series, "time": stamp, "prediction": kept.prediction, "repeated": True}

    def _predict(self, work: Work) -> None:
        """Make all predictions that are due, together."""
        due, work.due = list(work.due.values()), {}
        times = [
            one.live.time_at(work.now, self._options.rate) if one.by == "tick" else Time(one.live.time) for one in due
        ]
        found = predict_together([one.live.series.predictor for one in due], times)
        for one, at, outputs in zip(due, times, found, strict=True):
            live = one.live
            live.predicted = live.stamp if at == live.time else live.series.stamp(at)
            live.prediction = self._to_json(outputs)
            self._changed(live, work)
            work.counts["predictions", one.by] += 1
            one.answer.update(series=live.name, time=live.predicted, prediction=live.prediction)
            work.outgoing.append(Outgoing("prediction", live.name, dict(one.answer)))
            if one.observation is not None:
                work.observations.append(
                    dataclasses.replace(one.observation, predicted=live.predicted, prediction=live.prediction)
                )
            self._alert(live, work)

    def _alert(self, live: LiveSeries, work: Work) -> None:
        """Sort the series anew, and raise or clear its alerts."""
        numbers = numbers_of(live.prediction)
        live.risk = risk_of(numbers, self.risk)
        names = []
        for alert in self._options.alerts:
            name, value = str(alert), numbers[alert.output]
            active = alert.after(name in live.alerts, value)
            if active:
                names.append(name)
            if active != (name in live.alerts):
                change = "raised" if active else "cleared"
                content = {"series": live.name, "time": live.predicted, "alert": name, "output": alert.output}
                work.outgoing.append(Outgoing("alert", live.name, {**content, "value": value, "change": change}))
                work.counts["alerts", change] += 1
        live.alerts = tuple(names)

    def _changed(self, live: LiveSeries, work: Work) -> None:
        work.changed[live.name] = live
        self._cache.keep(live)

    def _commit(self, feed: str, position: int | None, work: Work, states: bool = True) -> None:
        series = [one.record(self._cache.packed(one) if states else None) for one in work.changed.values()]
        before = time.perf_counter()
        self.newest = self.store.commit(Group(feed, position, series, work.observations, work.outgoing, work.dead))
        self.metrics.commit.add(time.perf_counter() - before)
        for (name, label), count in work.counts.items():
            self.metrics.add(name, label, count)
        self.metrics.add("groups")
        self._cache.trim()

    def _known(self, name: Id) -> LiveSeries | None:
        """A series; an observation of one that cannot be read is refused."""
        try:
            return self._cache.load(name)
        except StreamError as error:
            raise RefusedError("damaged", error) from error

    def _to_json(self, outputs: np.ndarray) -> Any:
        if not np.isfinite(outputs).all():
            self.metrics.add("not_finite")
        return self._model.to_json(outputs)


def _check_length(what: str, text: Id) -> None:
    size = len(msgspec.json.encode(text))
    if size > LONGEST_ID:
        error = StreamError(f"The {what} has {size:,} bytes, more than {LONGEST_ID}.", "Choose a shorter one.")
        raise RefusedError("limit", error)


def _reason(event: SeriesEvent, newest: float) -> str:
    """Why a predictor refuses an event, in a word."""
    if event.time < 0.0:
        return "before start"
    if event.time == event.series.predictor.last:
        return "repeated stamp"
    return "out of order" if event.time < newest else "impossible"
