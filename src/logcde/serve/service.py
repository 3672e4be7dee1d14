"""The engine: groups of observations in, answers out, once everything that they changed is durable.

One thread calls it. States of series are live when they are needed, and the most recent ones are kept. If a group
cannot be committed, the series that it changed are forgotten and live again, so memory is never ahead of the store.

Two models may follow the same series. The first one predicts those that it has followed from their beginning, the
second one the others; what the other model says is kept beside it.
"""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator, Sequence

from logcde.errors import StreamError, Where
from logcde.online.lines import Id, Stamp, time_of
from logcde.online.rules import unknown_series
from logcde.serve.alerts import Alert
from logcde.serve.explaining import Question
from logcde.serve.feed import Answer, Delivery
from logcde.serve.live import LiveSeries, SeriesCache, ServedModel, followed
from logcde.serve.metrics import Metrics
from logcde.serve.predicting import Predicting
from logcde.serve.store import AbstractStore, DeadLetter, Lease, Progress
from logcde.serve.taking import LONGEST_LETTER, Taking
from logcde.serve.work import Due, Work

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
        self.metrics = Metrics()
        self._cache = SeriesCache(self.models, store, options.cached)
        self._predicting = Predicting(self.models, options.alerts, self.risk, options.rate, self.metrics)
        self._taking = Taking(
            self.models, store, self._cache, self._predicting, self.metrics, options.each, options.most_series
        )
        self.newest = store.outgoing_range()[1]
        """Number of the last outgoing entry that is durable."""

    @property
    def current(self) -> Id | None:
        """The series that was taken last."""
        return self._taking.current

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
        with self._forgetting(work):
            answers = self._taking.take([delivery.texts for delivery in deliveries], work)
            self._predicting.due(work)
            self._commit(deliveries[-1].position, work)
        self._taking.begun(work.begun)
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
        live = self._asked(name)
        stamp = live.stamp if at is None else at
        try:
            found = self._predicting.one(live, time_of(stamp, live.series.clock))
        except StreamError as error:
            raise StreamError(error.found, error.remedy, where=Where(series=name, stamp=stamp)) from error
        self.metrics.add("predictions", "request")
        self._cache.trim()
        return {"series": name, "time": stamp, "prediction": found}

    def question(self, name: Id) -> Question:
        """What is to be known to explain the current prediction of a series, which may take long, in another thread.

        Raises:
            StreamError: There is no such series.
        """
        return Question.about(self._asked(name), self.models)

    def _asked(self, name: Id) -> LiveSeries:
        """A series as it is now, also one of another process."""
        self._taking.current = name
        self._cache.refetch(name)
        live = self._cache.load(name)
        if live is None:
            raise unknown_series(name)
        return live

    def refresh(self, lease: Lease, names: Sequence[Id]) -> None:
        """Predict series of a partition as of now, all together, though nothing was observed.

        Raises:
            StoreError: They cannot be kept.
        """
        work = Work(lease, time.time())
        try:
            with self._forgetting(work, names):
                for live in self._loaded(names):
                    work.due[live.name] = Due(live, None, {}, "tick")
                self._predicting.due(work)
                self._commit(None, work, states=False)
        except StreamError as error:
            # One of them cannot be predicted, or its state is damaged: leave it as it is, and refresh the others.
            if len(names) == 1:
                log.warning("Series %r cannot be refreshed: %s", names[0], error)
                self.metrics.add("unrefreshed")
                return
            half = len(names) // 2
            self.refresh(lease, names[:half])
            self.refresh(lease, names[half:])

    def follow(self, lease: Lease, names: Sequence[Id]) -> None:
        """Let all models follow series of a partition whose observations are all kept.

        Raises:
            StoreError: What follows them cannot be kept.
        """
        work = Work(lease, time.time())
        with self._forgetting(work, names):
            damaged = self._cache.fetch([name for name in names if name not in self._cache])
            for live in self._loaded([name for name in names if name not in damaged]):
                if self._follow(live):
                    work.changed[live.name] = live
            self._commit(None, work)

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

    def _loaded(self, names: Sequence[Id]) -> list[LiveSeries]:
        self._cache.fetch([name for name in names if name not in self._cache])
        return [live for name in names if (live := self._cache.load(name)) is not None]

    @contextlib.contextmanager
    def _forgetting(self, work: Work, names: Sequence[Id] = ()) -> Iterator[None]:
        """Forget all series that may have changed, if something in this context fails."""
        try:
            yield
        except BaseException:
            self._cache.forget([*work.changed, *names, self.current])
            raise

    def _commit(self, position: int | None, work: Work, states: bool = True) -> None:
        group = work.group(position)
        for live in work.changed.values():
            live.revision += states
            group.series.append(live.record(self._cache.packed(live) if states else ()))
        before = time.perf_counter()
        self.newest = max(self.newest, self.store.commit(group))
        self.metrics.commit.add(time.perf_counter() - before)
        self.metrics.add_all(work.counts)
        self._cache.keep(work.changed.values())
