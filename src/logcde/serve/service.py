"""The engine: groups of observations in, answers out, once everything that they changed is durable.

One thread calls it. States of series are live when they are needed, and the most recent ones are kept. If a group
cannot be committed, the series that it changed are forgotten and live again, so memory is never ahead of the store.

Two models may follow the same series. The first one predicts those that it has followed from their beginning, the
second one the others; what the other model says is kept beside it.
"""

import dataclasses
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.lines import Id, Line, Stamp, read_line, time_of
from logcde.online.predictors import predict_together
from logcde.online.rules import Series, SeriesEvent, unknown_series, where_of
from logcde.serve.alerts import Alert, check_outputs, numbers_of, risk_of
from logcde.serve.feed import Answer, Delivery
from logcde.serve.live import LiveSeries, SeriesCache, ServedModel, followed
from logcde.serve.metrics import Metrics
from logcde.serve.store import AbstractStore, DeadLetter, Group, Lease, Observation, Outgoing, Progress
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
        models: What to serve: a model, and perhaps another one beside it.
        store: What was kept, and is to be kept. Its models are these.
        options: What else to do.
    """

    def __init__(
        self, models: Sequence[ServedModel], store: AbstractStore, options: ServiceOptions = ServiceOptions()
    ) -> None:
        self.models, self.store, self.options = tuple(models), store, options
        self.clock = self.models[0].predictor.schema.clock
        """The clock of the first model."""
        self.risk = options.risk or (options.alerts[0].output if options.alerts else None)
        """The output by which series are sorted; None for the last one."""
        self._cache = SeriesCache(self.models, store, options.cached)
        for model in self.models:  # compiles what predicts, before anybody waits
            known = numbers_of(model.to_json(predict_together([model.predictor.copy()], [None])[0]))
            check_outputs(options.alerts, options.risk, tuple(known))
        self._total = self._count()
        self.metrics = Metrics()
        self.newest = store.outgoing_range()[1]
        """Number of the last outgoing entry that is durable."""
        self.current: Id | None = None
        """The series that was taken last."""

    def hold(self, lease: Lease) -> Progress:
        """Serve the series of a partition from now on, and return how far it was taken."""
        self._cache.leave(lease.partition)
        progress = self.store.progress(lease)
        self._cache.partitions.add(lease.partition)
        return progress

    def leave(self, lease: Lease) -> None:
        """Leave the series of a partition to another process."""
        self._cache.leave(lease.partition)

    def apply(self, lease: Lease, deliveries: Sequence[Delivery]) -> list[list[Answer]]:
        """Take deliveries in order and commit everything that they change; returns an answer for each observation.

        An answer is a prediction, `{"series", "time", "prediction"}`, or says why the observation was refused, with
        the keys `error`, `reason`, `series`, `channel` and `stamp`.

        Raises:
            FencedError: Another process has the partition. Nothing was taken.
            StoreError: It cannot be committed. Nothing was taken, as far as is known.
        """
        work = Work(lease, time.time())
        try:
            lines = [[(text, _read(text)) for text in delivery.texts] for delivery in deliveries]
            self._fetch([line for some in lines for _, line in some if isinstance(line, Line)], work)
            answers = [[self._answer(text, line, work) for text, line in some] for some in lines]
            self._predict(work)
            self._commit(deliveries[-1].position, work)
        except BaseException:
            self._cache.forget([*work.changed, self.current])
            raise
        self._total += work.begun
        return answers

    def skip(self, lease: Lease, delivery: Delivery, error: Exception) -> None:
        """Keep a delivery at which the engine fails as dead letters, and go on behind it."""
        work = Work(lease, time.time())
        found = f"The service failed at this observation ({type(error).__name__}). Its log has more."
        work.dead = [DeadLetter(work.now, "failure", found, text[:LONGEST_LETTER]) for text in delivery.texts]
        work.counts["refused", "failure"] += len(delivery.texts)
        self._commit(delivery.position, work)

    def predict(self, name: Id, at: Stamp | None = None) -> Answer:
        """The prediction for a series at a stamp, by default its latest one. Changes nothing.

        Raises:
            StreamError: There is no such series, or no prediction at that stamp.
        """
        self._cache.refetch(name)
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
        return {"series": name, "time": stamp, "prediction": self._to_json(live.model, outputs)}

    def refresh(self, lease: Lease, names: Sequence[Id]) -> None:
        """Predict series of a partition as of now, all together, though nothing was observed.

        Raises:
            StoreError: They cannot be kept.
        """
        work = Work(lease, time.time())
        try:
            self._cache.fetch([name for name in names if name not in self._cache])
            for name in names:
                live = self._cache.load(name)
                assert live is not None
                work.due[name] = Due(live, None, {}, "tick")
            self._predict(work)
            self._commit(None, work, states=False)
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
        self.refresh(lease, names[:half])
        self.refresh(lease, names[half:])

    def follow(self, lease: Lease, names: Sequence[Id]) -> None:
        """Let all models follow series of a partition whose observations are all kept.

        Raises:
            StoreError: What follows them cannot be kept.
        """
        work = Work(lease, time.time())
        try:
            self._cache.fetch([name for name in names if name not in self._cache])
            for name in names:
                live = self._cache.load(name)
                if live is not None and self._follow(live):
                    self._changed(live, work)
            self._commit(None, work)
        except StreamError as error:
            log.warning("Series cannot be followed by another model: %s", error)
            self._cache.forget(names)
        except BaseException:
            self._cache.forget(names)
            raise

    def _follow(self, live: LiveSeries) -> bool:
        """Let those models follow a series that do not yet; whether one does now."""
        known, by = live.series, self.models[live.model].predictor
        history = self.store.history(live.key, live.events + 1)
        # What closes intervals is not kept.
        if len(history) < live.events or by.rule is None:
            return False
        changed = False
        for place, model in enumerate(self.models):
            if live.followers[place] is not None or model.predictor.rule is None:
                continue
            shared = model.predictor.schema.clock.per_series and by.schema.clock.per_series
            try:
                series = followed(model, live.name, history, known.static, known.stamp(0.0) if shared else None)
            except StreamError as error:
                log.warning("Series %r cannot be followed by model %s: %s", live.name, model.digest[:16], error)
                continue
            live.followers[place], changed = series, True
        return changed

    def archive(self, lease: Lease, silence: float) -> int:
        """Archive the series of a partition without an observation for so many seconds; returns their number.

        They keep their states, and are opened again by their next observation.
        """
        self._cache.forget(names := self.store.archive(lease, time.time() - silence))
        return len(names)

    def _count(self) -> int:
        counts = self.store.counts()
        return counts["open"] + counts["archived"]

    def _fetch(self, lines: Sequence[Line], work: Work) -> None:
        """Load what a group needs, together."""
        work.damaged = self._cache.fetch(list({one.series: None for one in lines if one.series not in self._cache}))
        named = [one for one in lines if one.id is not None and one.series in self._cache]
        pairs = {(live.key, one.id) for one in named if (live := self._cache.load(one.series)) is not None and one.id}
        work.accepted = self.store.accepted(pairs)

    def _answer(self, text: bytes, line: Line | StreamError, work: Work) -> Answer:
        """Apply one observation. A refused one is kept as a dead letter."""
        try:
            if isinstance(line, StreamError):
                raise RefusedError("malformed", line)
            return self._take(line, work)
        except RefusedError as refused:
            error, reason = refused.error, refused.reason
        work.dead.append(DeadLetter(work.now, reason, str(error), text[:LONGEST_LETTER]))
        work.counts["refused", reason] += 1
        where = error.where or Where()
        place = {"series": where.series, "channel": where.channel, "stamp": where.stamp}
        return {"error": str(error), "reason": reason, **place}

    def _take(self, line: Line, work: Work) -> Answer:
        self.current = line.series
        try:
            live = work.changed.get(line.series) or self._known(line.series, work)
            if live is not None and live.partition != work.lease.partition:
                raise RefusedError(
                    "misplaced",
                    StreamError(
                        f"Series {line.series!r} belongs to partition {live.partition} of the feed, and this "
                        f"observation came in partition {work.lease.partition}.",
                        "Send all observations of a series to one partition.",
                    ),
                )
            if line.values is None:
                return self._take_other(line, live, work)
            return self._observe(line, live, work)
        except RefusedError as refused:
            refused.error.where = where_of(line, refused.error)
            raise

    def _take_other(self, line: Line, live: LiveSeries | None, work: Work) -> Answer:
        """A request, or the end of an interval."""
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
            self.models[live.model].rules.close(live.series, line.close)
        except StreamError as error:
            raise RefusedError("impossible", error) from error
        self._others(live, lambda model, series: model.rules.close(series, line.close), work)  # type: ignore[arg-type]
        closed = float(time_of(line.close, live.series.clock))
        if closed > live.time:
            live.time, live.stamp = closed, line.close
        self._changed(live, work)
        return {"series": line.series, "time": line.close}

    def _observe(self, line: Line, live: LiveSeries | None, work: Work) -> Answer:
        digest = b""
        if line.id is not None:
            _check_length("event id", line.id)
            digest = hashlib.blake2b(msgspec.json.encode(line, order="sorted"), digest_size=16).digest()
            before = None if live is None else self._repeated(line, live, digest, work)
            if before is not None:
                work.counts["repeated", ""] += 1
                return before
        if live is None:
            self._check_new(line, work)
        rules = self.models[0 if live is None else live.model].rules
        try:
            event = rules.event(line, None if live is None else live.series)
        except StreamError as error:
            raise RefusedError("unreadable", error) from error
        if line.series in work.due:  # that prediction is without this observation
            self._predict(work)
        newest = -np.inf if live is None else live.time
        try:
            rules.observe(line, event)
        except StreamError as error:
            raise RefusedError(_reason(event, newest), error) from error
        if live is None:
            live = LiveSeries(
                [event.series, *(None for _ in self.models[1:])], self.store.new_key(), line.series,
                work.lease.partition, 0, work.now, work.now, 0, event.stamp, float(event.time),
            )  # fmt: skip
            work.begun += 1
            self._begin_others(live, line)
        else:
            self._others(live, lambda model, series: model.rules.observe(line, model.rules.event(line, series)), work)
        return self._taken(line, event, live, digest, work)

    def _check_new(self, line: Line, work: Work) -> None:
        """Refuse a series that may not begin."""
        _check_length("id of the series", line.series)
        if line.series in (".", ".."):
            raise RefusedError("limit", StreamError(f"{line.series!r} cannot be a part of an address, as ids are."))
        if self._total + work.begun >= self.options.most_series:
            self._total = self._count()  # other processes may have begun or ended some
            if self._total + work.begun >= self.options.most_series:
                raise RefusedError(
                    "limit",
                    StreamError(
                        f"There are {self.options.most_series:,} series already, as many as may be.",
                        "Check the ids; if they are meant, allow more with --max-series.",
                    ),
                )

    def _begin_others(self, live: LiveSeries, line: Line) -> None:
        """Let the other models follow a series from its first observation."""
        for place, model in enumerate(self.models[1:], 1):
            try:
                event = model.rules.event(line, None)
                model.rules.observe(line, event)
                live.followers[place] = event.series
            except StreamError as error:
                self._lost(live, place, error)

    def _others(self, live: LiveSeries, change: Callable[[ServedModel, Series], None], work: Work) -> None:
        """Change what follows a series for other models. One that cannot take it no longer follows the series."""
        for place, series in enumerate(live.followers):
            if place != live.model and series is not None:
                try:
                    change(self.models[place], series)
                except StreamError as error:
                    live.followers[place] = None
                    self._lost(live, place, error)

    def _lost(self, live: LiveSeries, place: int, error: StreamError) -> None:
        log.warning("Model %s does not follow series %r: %s", self.models[place].digest[:16], live.name, error)
        self.metrics.add("unfollowed")

    def _taken(self, line: Line, event: SeriesEvent, live: LiveSeries, digest: bytes, work: Work) -> Answer:
        """Note an observation that the predictor has taken."""
        live.events, live.updated, live.archived = live.events + 1, work.now, False
        if event.time >= live.time:
            live.time, live.stamp = float(event.time), event.stamp
        self._changed(live, work)
        assert line.values is not None
        observation = Observation(
            live.key, live.events, work.now, event.stamp, line.values, None, None, None, line.terms, line.id, digest
        )
        answer: Answer = {"series": line.series, "time": event.stamp, "prediction": None}
        if line.id is not None:
            work.ids[live.key, line.id] = digest, answer
        work.counts["observations", ""] += 1
        if self.options.each:
            work.due[line.series] = Due(live, observation, answer, "observation")
        else:
            work.observations.append(observation)
        return answer

    def _repeated(self, line: Line, live: LiveSeries, digest: bytes, work: Work) -> Answer | None:
        """The answer to an observation whose event id was taken before; None if it was not."""
        assert line.id is not None
        in_group, kept = work.ids.get((live.key, line.id)), work.accepted.get((live.key, line.id))
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
            one.live.time_at(work.now, self.options.rate) if one.by == "tick" else Time(one.live.time) for one in due
        ]
        found = [self._outputs(place, due, times) for place in range(len(self.models))]
        for number, (one, at) in enumerate(zip(due, times, strict=True)):
            live = one.live
            live.predicted = live.stamp if at == live.time else live.series.stamp(at)
            live.prediction = found[live.model][number]
            live.beside = self._beside(live, [outputs[number] for outputs in found])
            self._changed(live, work)
            work.counts["predictions", one.by] += 1
            one.answer.update(series=live.name, time=live.predicted, prediction=live.prediction)
            work.outgoing.append(Outgoing("prediction", live.name, dict(one.answer)))
            if one.observation is not None:
                beside = None if live.beside is None else live.beside["risk"]
                made = {"predicted": live.predicted, "prediction": live.prediction, "beside": beside}
                work.observations.append(dataclasses.replace(one.observation, **made))
            self._alert(live, work)

    def _outputs(self, place: int, due: Sequence[Due], times: Sequence[Time]) -> list[Any]:
        """What a model predicts for each of the series, None for those that it does not follow."""
        some = [number for number, one in enumerate(due) if one.live.followers[place] is not None]
        followers = [due[number].live.followers[place] for number in some]
        outputs = predict_together([one.predictor for one in followers if one is not None], [times[n] for n in some])
        found: list[Any] = [None] * len(due)
        for number, output in zip(some, outputs, strict=True):
            found[number] = self._to_json(place, output)
        return found

    def _beside(self, live: LiveSeries, found: Sequence[Any]) -> dict[str, Any] | None:
        """What another model says of a series, if one does."""
        for place, prediction in enumerate(found):
            if place != live.model and prediction is not None:
                risk = risk_of(numbers_of(prediction), self.risk)
                return {"model": self.models[place].digest, "prediction": prediction, "risk": risk}
        return None

    def _alert(self, live: LiveSeries, work: Work) -> None:
        """Sort the series anew, and raise or clear its alerts."""
        numbers = numbers_of(live.prediction)
        live.risk = risk_of(numbers, self.risk)
        names = []
        for alert in self.options.alerts:
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

    def _commit(self, position: int | None, work: Work, states: bool = True) -> None:
        for live in work.changed.values():
            live.revision += states
        series = [one.record(self._cache.packed(one) if states else ()) for one in work.changed.values()]
        before = time.perf_counter()
        last = self.store.commit(Group(work.lease, position, series, work.observations, work.outgoing, work.dead))
        self.newest = max(self.newest, last)
        self.metrics.commit.add(time.perf_counter() - before)
        for (name, label), count in work.counts.items():
            self.metrics.add(name, label, count)
        self.metrics.add("groups")
        self._cache.trim()

    def _known(self, name: Id, work: Work) -> LiveSeries | None:
        """A series; an observation of one whose state cannot be used is refused."""
        if name in work.damaged:
            raise RefusedError("damaged", work.damaged[name])
        return self._cache.load(name) if name in self._cache else None

    def _to_json(self, place: int, outputs: np.ndarray) -> Any:
        if not np.isfinite(outputs).all():
            self.metrics.add("not_finite")
        return self.models[place].to_json(outputs)


def _read(text: bytes) -> Line | StreamError:
    """A line, or why it is none."""
    try:
        return read_line(text)
    except StreamError as error:
        return error


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
