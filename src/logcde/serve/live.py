"""Series in memory: loaded from the store when they are needed, the most recent ones kept."""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.abstract import AbstractPredictor
from logcde.online.lines import Id, Line, Stamp, time_of
from logcde.online.rules import Series, SeriesRules
from logcde.online.states import FAULTS
from logcde.serve.packing import pack, unpack
from logcde.serve.store import AbstractStore, Observation, SeriesRecord
from logcde.streams.clock import DatetimeClock, Time
from logcde.streams.series_clock import origin_number


class ServedModel:
    """A model as it is served.

    Args:
        predictor: Has observed nothing; every series begins like it.
        digest: Identifies the model: states of another one are refused.
        statics: Number of static features of a series.
        to_json: From the model's outputs to a prediction in JSON.
    """

    def __init__(
        self,
        predictor: AbstractPredictor,
        digest: str,
        statics: int = 0,
        to_json: Callable[[np.ndarray], Any] = np.ndarray.tolist,
    ) -> None:
        self.predictor, self.digest, self.statics, self.to_json = predictor, digest, statics, to_json
        self.rules = SeriesRules(predictor, statics)


@dataclasses.dataclass(slots=True)
class LiveSeries:
    """A series in memory: what follows it, and the fields of its record.

    `followers` has for each model of the service what follows the series for it; None if that does not know the series
    from its beginning. The first one that there is predicts it.
    """

    followers: list[Series | None]
    key: int
    name: Id
    partition: int
    revision: int
    began: float
    updated: float
    events: int
    stamp: Stamp
    time: float
    predicted: Stamp | None = None
    prediction: Any = None
    risk: float | None = None
    alerts: tuple[str, ...] = ()
    beside: Any = None
    archived: bool = False

    @property
    def model(self) -> int:
        """The place of the model that predicts it."""
        followers = self.followers
        return 0 if followers[0] is not None else next(n for n, one in enumerate(followers) if one is not None)

    @property
    def series(self) -> Series:
        """What follows it for that model."""
        series = self.followers[self.model]
        assert series is not None
        return series

    def record(self, states: tuple[bytes | None, ...]) -> SeriesRecord:
        """What a store keeps of it."""
        return SeriesRecord(
            self.key, self.name, self.partition, states, self.revision, self.began, self.updated, self.events,
            self.stamp, self.time, self.predicted, self.prediction, self.risk, self.alerts, self.beside, self.archived,
        )  # fmt: skip

    def time_at(self, now: float, rate: float | None) -> Time:
        """The time of the series at a moment in seconds since 1970, never before what is known of it.

        Args:
            now: The moment, which is UTC where datetimes have no time zone.
            rate: Units of time in a second, by which time goes on where stamps are not datetimes.
        """
        clock = self.series.clock
        if isinstance(clock, DatetimeClock):
            moment = datetime.fromtimestamp(now, UTC)
            moment = moment.replace(tzinfo=None) if clock.zone is None else moment
            time = float(time_of(moment.isoformat(), clock))
        else:
            assert rate is not None
            time = self.time + (now - self.updated) * rate
        return Time(max(time, self.time))


RECORDED = tuple(field.name for field in dataclasses.fields(SeriesRecord) if field.name != "states")


class SeriesCache:
    """The series of this process's partitions in memory, as far as they are kept in the store.

    Those that have changed since then must be in `changed` of the work in hand.

    Args:
        models: Whose series they are.
        store: Where the others are.
        size: Series that are kept in memory after each group.
    """

    def __init__(self, models: Sequence[ServedModel], store: AbstractStore, size: int) -> None:
        self._models, self._store, self._size = models, store, size
        self._series: collections.OrderedDict[Id, LiveSeries] = collections.OrderedDict()
        self.partitions: set[int] = set()
        """Partitions whose series no other process changes."""

    def __contains__(self, name: Id) -> bool:
        return name in self._series

    def load(self, name: Id) -> LiveSeries | None:
        """A series from memory or from the store; None if there is none with this id.

        Raises:
            StreamError: Its state is damaged, or of a model that is not served.
        """
        if name not in self._series and (error := self.fetch([name]).get(name)) is not None:
            raise error
        live = self._series.get(name)
        if live is not None:
            self._series.move_to_end(name)
        return live

    def refetch(self, name: Id) -> None:
        """Forget a series that other processes may have changed."""
        if name in self._series and self._series[name].partition not in self.partitions:
            del self._series[name]

    def fetch(self, names: Sequence[Id]) -> dict[Id, StreamError]:
        """Load series that are not in memory, all at once; returns why the states of some cannot be used."""
        faults = {}
        for record in self._store.load(names):
            try:
                self._series[record.name] = self._restored(record)
            except StreamError as error:
                faults[record.name] = error
        return faults

    def _restored(self, record: SeriesRecord) -> LiveSeries:
        followers: list[Series | None] = []
        for model, state in zip(self._models, record.states, strict=True):
            try:
                content = None if state is None else unpack(state, model.digest, msgspec.json.encode(record.name))
                followers.append(
                    None
                    if content is None
                    else model.rules.restored(content["static"], content["origin"], content["state"])
                )
            except FAULTS as error:
                raise StreamError(
                    f"The state of series {record.name!r} cannot be read: {error}.",
                    "Restore a backup of the store; other series are served.",
                    where=Where(series=record.name),
                ) from error
        if all(one is None for one in followers):
            raise StreamError(
                f"Series {record.name!r} was archived with another model, and has no state of this one.",
                "Serve that one as well, by --beside, or give the series a new id.",
                where=Where(series=record.name),
            )
        return LiveSeries(followers, **{field: getattr(record, field) for field in RECORDED})

    def keep(self, changed: Iterable[LiveSeries]) -> None:
        """Keep series that have begun or changed, now that they are in the store."""
        self._series.update((live.name, live) for live in changed)
        self.trim()

    def forget(self, names: Iterable[Id | None]) -> None:
        """Load these series anew when they are needed next."""
        for name in names:
            self._series.pop(name, None)  # type: ignore[arg-type]

    def leave(self, partition: int) -> None:
        """Forget all series of a partition, which other processes change from now on."""
        self.partitions.discard(partition)
        self.forget([name for name, live in self._series.items() if live.partition == partition])

    def trim(self) -> None:
        """Forget the series that were not needed for longest. Nothing may be unkept then."""
        while len(self._series) > self._size:
            self._series.popitem(last=False)

    def packed(self, live: LiveSeries) -> tuple[bytes | None, ...]:
        """The states of a series for the store."""
        id = msgspec.json.encode(live.name)
        return tuple(
            None
            if one is None
            else pack(
                {"static": one.static, "origin": origin_number(one.clock), "state": one.predictor.state(arrays=True)},
                model.digest,
                id,
            )
            for model, one in zip(self._models, live.followers, strict=True)
        )


def followed(
    model: ServedModel, name: Id, history: Sequence[Observation], static: list[float] | None, origin: Stamp | None
) -> Series:
    """What follows a series for a model, from all of its observations in the order in which they arrived.

    Raises:
        StreamError: The model cannot take one of them.
    """
    series = None
    for one in history:
        line = Line(name, one.stamp, dict(one.values), terms=one.terms, continuous=one.continuous)
        if series is None:
            line.static, line.origin = static, origin
        event = model.rules.event(line, series)
        model.rules.observe(line, event)
        series = event.series
    assert series is not None
    return series
