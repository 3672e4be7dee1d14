"""Observations of a group, one after another: each is taken by all models that follow its series, or refused."""

import hashlib
import logging
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.lines import Id, Line, read_line, time_of
from logcde.online.rules import Series, SeriesEvent, unknown_series, where_of
from logcde.serve.feed import Answer
from logcde.serve.live import LiveSeries, SeriesCache, ServedModel
from logcde.serve.metrics import Metrics
from logcde.serve.predicting import Predicting
from logcde.serve.store import AbstractStore, DeadLetter, Observation
from logcde.serve.work import Due, RefusedError, Work

LONGEST_ID = 256
"""Bytes of the id of a series in JSON, and of an event id."""
LONGEST_LETTER = 4096
"""Bytes of a refused observation that are kept."""
log = logging.getLogger(__name__)


class Taking:
    """Applies observations to the series of a service.

    Args:
        models: The models of the service.
        store: Where series are kept.
        cache: Those in memory.
        predicting: Makes predictions.
        metrics: Counts what happens.
        each: Whether to predict after every observation.
        most: Series that may exist.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        store: AbstractStore,
        cache: SeriesCache,
        predicting: Predicting,
        metrics: Metrics,
        each: bool,
        most: int,
    ) -> None:
        self._models, self._store, self._cache, self._predicting = models, store, cache, predicting
        self._metrics, self._each, self._most = metrics, each, most
        self._total = self._count()
        self.current: Id | None = None
        """The series that was taken last."""

    def take(self, deliveries: Sequence[Sequence[bytes]], work: Work) -> list[list[Answer]]:
        """Take the observations of deliveries; returns the answer to each."""
        lines = [[(text, _read(text)) for text in texts] for texts in deliveries]
        self._fetch([line for some in lines for _, line in some if isinstance(line, Line)], work)
        return [[self._answer(text, line, work) for text, line in some] for some in lines]

    def begun(self, count: int) -> None:
        """Note that so many new series are kept."""
        self._total += count

    def _count(self) -> int:
        counts = self._store.counts()
        return counts["open"] + counts["archived"]

    def _fetch(self, lines: Sequence[Line], work: Work) -> None:
        """Load what a group needs, together."""
        work.damaged = self._cache.fetch(list({one.series: None for one in lines if one.series not in self._cache}))
        pairs = set()
        for one in lines:
            if one.id is not None and one.series in self._cache and (live := self._cache.load(one.series)) is not None:
                pairs.add((live.key, one.id))
        work.accepted = self._store.accepted(pairs)

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
                return self._asked(line, live)
            assert line.close is not None
            if line.series in work.due:
                self._predicting.due(work)
            self._models[live.model].rules.close(live.series, line.close)
        except StreamError as error:
            raise RefusedError("impossible", error) from error
        self._others(live, lambda model, series: model.rules.close(series, line.close), work)  # type: ignore[arg-type]
        closed = float(time_of(line.close, live.series.clock))
        if closed > live.time:
            live.time, live.stamp = closed, line.close
        work.changed[live.name] = live
        return {"series": line.series, "time": line.close}

    def _asked(self, line: Line, live: LiveSeries) -> Answer:
        """A prediction that a line requests."""
        assert line.predict is not None
        found = self._predicting.one(live, time_of(line.predict, live.series.clock))
        self._metrics.add("predictions", "request")
        return {"series": line.series, "time": line.predict, "prediction": found}

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
        rules = self._models[0 if live is None else live.model].rules
        try:
            event = rules.event(line, None if live is None else live.series)
        except StreamError as error:
            raise RefusedError("unreadable", error) from error
        if line.series in work.due:  # that prediction is without this observation
            self._predicting.due(work)
        newest = -np.inf if live is None else live.time
        try:
            rules.observe(line, event)
        except StreamError as error:
            raise RefusedError(_reason(event, newest), error) from error
        if live is None:
            live = LiveSeries(
                [event.series, *(None for _ in self._models[1:])], self._store.new_key(), line.series,
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
        if self._total + work.begun >= self._most:
            self._total = self._count()  # other processes may have begun or ended some
            if self._total + work.begun >= self._most:
                raise RefusedError(
                    "limit",
                    StreamError(
                        f"There are {self._most:,} series already, as many as may be.",
                        "Check the ids; if they are meant, allow more with --max-series.",
                    ),
                )

    def _begin_others(self, live: LiveSeries, line: Line) -> None:
        """Let the other models follow a series from its first observation."""
        for place, model in enumerate(self._models[1:], 1):
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
                    change(self._models[place], series)
                except StreamError as error:
                    live.followers[place] = None
                    self._lost(live, place, error)

    def _lost(self, live: LiveSeries, place: int, error: StreamError) -> None:
        log.warning("Model %s does not follow series %r: %s", self._models[place].digest[:16], live.name, error)
        self._metrics.add("unfollowed")

    def _taken(self, line: Line, event: SeriesEvent, live: LiveSeries, digest: bytes, work: Work) -> Answer:
        """Note an observation that the predictor has taken."""
        live.events, live.updated, live.archived = live.events + 1, work.now, False
        # A plan of continuous channels may be ahead of what has happened.
        if line.values and event.time >= live.time:
            live.time, live.stamp = float(event.time), event.stamp
        work.changed[live.name] = live
        assert line.values is not None
        observation = Observation(
            live.key, live.events, work.now, event.stamp, line.values, None, None, None, line.terms, line.continuous,
            line.id, digest,
        )  # fmt: skip
        answer: Answer = {"series": line.series, "time": event.stamp, "prediction": None}
        if line.id is not None:
            work.ids[live.key, line.id] = digest, answer
        work.counts["observations", ""] += 1
        work.observations.append(observation)
        if self._each:
            work.due[line.series] = Due(live, observation, answer, "observation")
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

    def _known(self, name: Id, work: Work) -> LiveSeries | None:
        """A series; an observation of one whose state cannot be used is refused."""
        if name in work.damaged:
            raise RefusedError("damaged", work.damaged[name])
        return self._cache.load(name) if name in self._cache else None


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
