"""Series in memory: loaded from the store when they are needed, the most recent ones kept."""

import collections
import dataclasses
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from logcde.errors import StreamError, Where
from logcde.online.abstract import AbstractPredictor
from logcde.online.lines import Id, Stamp, time_of
from logcde.online.rules import Series, SeriesRules
from logcde.online.states import FAULTS
from logcde.serve.packing import pack, unpack
from logcde.serve.store import AbstractStore, SeriesRecord
from logcde.streams.clock import DatetimeClock, Time
from logcde.streams.series_clock import origin_number


@dataclasses.dataclass(frozen=True)
class ServedModel:
    """A model as it is served.

    Attributes:
        predictor: Has observed nothing; every series begins like it.
        digest: Identifies the model: states of another one are refused.
        statics: Number of static features of a series.
        to_json: From the model's outputs to a prediction in JSON.
    """

    predictor: AbstractPredictor
    digest: str
    statics: int = 0
    to_json: Callable[[np.ndarray], Any] = np.ndarray.tolist


@dataclasses.dataclass(slots=True)
class LiveSeries:
    """A series in memory: its predictor, and the fields of its record."""

    series: Series
    key: int
    name: Id
    began: float
    updated: float
    events: int
    stamp: Stamp
    time: float
    predicted: Stamp | None = None
    prediction: Any = None
    risk: float | None = None
    alerts: tuple[str, ...] = ()
    archived: bool = False

    def record(self, state: bytes | None) -> SeriesRecord:
        """What a store keeps of it."""
        return SeriesRecord(state=state, **{name: getattr(self, name) for name in RECORDED})

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


RECORDED = tuple(field.name for field in dataclasses.fields(SeriesRecord) if field.name != "state")


class SeriesCache:
    """The series in memory. Those that have changed since they were kept must be in `changed` of the work in hand.

    Args:
        model: Whose series they are.
        rules: Make predictors of that model.
        store: Where the others are.
        size: Series that are kept in memory after each group.
    """

    def __init__(self, model: ServedModel, rules: SeriesRules, store: AbstractStore, size: int) -> None:
        self._digest, self._rules, self._store, self._size = model.digest, rules, store, size
        self._series: collections.OrderedDict[Id, LiveSeries] = collections.OrderedDict()

    def load(self, name: Id) -> LiveSeries | None:
        """A series from memory or from the store; None if there is none with this id.

        Raises:
            StreamError: Its state is damaged.
        """
        live = self._series.get(name)
        if live is not None:
            self._series.move_to_end(name)
            return live
        record = self._store.load(name)
        if record is None:
            return None
        try:
            content = unpack(record.state or b"", self._digest, msgspec.json.encode(name))
            series = self._rules.restored(content["static"], content["origin"], content["state"])
        except FAULTS as error:
            raise StreamError(
                f"The state of series {name!r} cannot be read: {error}.",
                "Restore a backup of the store; other series are served.",
                where=Where(series=name),
            ) from error
        live = LiveSeries(series, **{field: getattr(record, field) for field in RECORDED})
        self._series[name] = live
        return live

    def keep(self, live: LiveSeries) -> None:
        """Keep a series that has begun or changed."""
        self._series[live.name] = live

    def forget(self, names: Iterable[Id | None]) -> None:
        """Load these series anew when they are needed next."""
        for name in names:
            self._series.pop(name, None)  # type: ignore[arg-type]

    def trim(self) -> None:
        """Forget the series that were not needed for longest. Nothing may be unkept then."""
        while len(self._series) > self._size:
            self._series.popitem(last=False)

    def packed(self, live: LiveSeries) -> bytes:
        """The state of a series for the store."""
        one = live.series
        content = {"static": one.static, "origin": origin_number(one.clock), "state": one.predictor.state()}
        return pack(content, self._digest, msgspec.json.encode(live.name))
