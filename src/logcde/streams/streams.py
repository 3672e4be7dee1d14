"""`Streams`: many irregular, asynchronous observation streams at once, and every way to make them.

The input of "From observations to log-signatures" (`sec:procedure` in the paper). This module is the list of what can
be asked of a data set; each method hands its work to the module that does it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from logcde.streams.arrays import Reading, from_group, from_lie, read_dense, read_events, read_lists
from logcde.streams.columns import AbstractStreams
from logcde.streams.continuous import read_knots
from logcde.streams.frames import default_backend, read_csv, read_long, read_parquet, read_wide, to_long
from logcde.streams.knots import merge
from logcde.streams.rows import Average, Drop, Earliest, Forbid, Keep, KeepLast
from logcde.streams.schema import Bracket, Schema, Term, names_of
from logcde.streams.stamps import Horizon, Origin
from logcde.streams.summary import Summary, headline, summarise
from logcde.streams.transforms import join

Lists: TypeAlias = Sequence | np.ndarray
Duplicates: TypeAlias = Forbid | KeepLast | Average
Empty: TypeAlias = Forbid | Drop | Keep


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Streams(AbstractStreams):
    """Observation streams of many series: ragged, columnar, read-only. Nothing in them is filled or resampled.

    Make them with one of the `from_...` methods. Series are taken with `streams[3]`, `streams[:10]`, a mask or an array
    of positions, always as `Streams`. The options that the methods share:

    - `horizon`: T, up to where the series are looked at. One number (or duration, or datetime) for all, one for each
      series in order, or a mapping from ids. By default the latest stamp of the whole data set.
    - `schema`: that of other streams, to read more data in the same way: same channels, terms and clock.
    - `unit`, `origin`: how datetimes and durations become numbers: how many of `unit` (by default hours) have passed
      since `origin`. The origin is `Earliest()`, the earliest stamp of the data set; `FirstStamp()`, each series' own;
      or a datetime, one for each series in order, or a mapping from ids.
    - `sort`: put rows whose stamps go backwards in order, instead of refusing them. Rows of different series may be
      mixed in any case.
    - `duplicates`: two different values of one channel at one stamp are refused by default; `KeepLast()`, `Average()`.
    - `empty`: a series without observation is refused by default; `Drop()` or `Keep()`.
    """

    @classmethod
    def from_arrays(
        cls,
        times: Lists,
        values: Lists,
        channels: Sequence[str] | None = None,
        horizon: Horizon | None = None,
        *,
        ids: Lists | None = None,
        terms: Mapping[Term, Lists] | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """Lists over series: stamps (events,) and values (events, channels), NaN = not observed.

        A row of NaN is no event. Channels without names are called x1, x2, ...; series without `ids` are numbered.
        `terms` gives each higher-order term a list over series of numbers, one for each row.

        >>> streams = Streams.from_arrays([[0.0, 1.5]], [[[1.0, np.nan], [2.0, 3.0]]], channels=("a", "b"))
        >>> streams.times, streams.channel, streams.value
        (array([0. , 1.5]), array([0, 0, 1], dtype=int32), array([1., 2., 3.]))
        """
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_lists(times, values, channels, ids, terms or {}, reading))

    @classmethod
    def from_dense(
        cls,
        values: Any,
        times: Lists | None = None,
        channels: Sequence[str] | None = None,
        horizon: Horizon | None = None,
        *,
        ids: Lists | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """One array (series, step, channel), NaN = not observed, so that padding with NaN leaves no trace.

        Stamps are (step,), (series, step), or by default the number of the step: 0, 1, ..., L - 1.

        >>> streams = Streams.from_dense(np.array([[[1.0], [np.nan], [2.0]], [[3.0], [4.0], [np.nan]]]))
        >>> streams.offsets, streams.times, streams.horizon
        (array([0, 2, 4]), array([0., 2., 0., 1.]), array([2., 2.]))
        """
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_dense(values, times, channels, ids, reading))

    @classmethod
    def from_events(
        cls,
        events: Iterable[tuple],
        channels: Sequence[str] | None = None,
        horizon: Horizon | None = None,
        *,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """Tuples (series, stamp, {channel: value}). Without `channels`, they are those seen, sorted by name.

        >>> events = [("p1", 0.0, {"pulse": 61.0}), ("p2", 1.0, {"pulse": 80.0}), ("p1", 2.0, {"glucose": 5.5})]
        >>> streams = Streams.from_events(events)
        >>> streams.schema.channels, streams.ids
        (('glucose', 'pulse'), array(['p1', 'p2'], dtype=object))
        """
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_events(events, channels, reading))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        horizon: Horizon | None = None,
        *,
        channels: Sequence[str] | None = None,
        terms: Mapping[str, Bracket] | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """A long table: one observation in each row, a missing or NaN value = not observed.

        Any data frame that narwhals takes; lazy ones are collected. `series=None` means that all rows are one series.
        Series are in order of first appearance. Channels are as given, or the categories of an Enum column, or those
        seen, sorted by name. `terms` maps columns to brackets of channels, as in `{"area": ("W1", "W2")}`.

        >>> import polars
        >>> rows = [("p1", 0.0, "pulse", 61.0), ("p1", 2.0, "temp", 37.2), ("p2", 1.0, "pulse", 80.0)]
        >>> frame = polars.DataFrame(rows, schema=["who", "hours", "vital", "x"], orient="row")
        >>> streams = Streams.from_frame(frame, series="who", time="hours", channel="vital", value="x")
        >>> streams.schema.channels, len(streams)
        (('pulse', 'temp'), 2)
        """
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_long(frame, series, time, channel, value, channels, terms or {}, reading))

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        series: str | None = "series",
        time: str = "time",
        channels: Sequence[str] | None = None,
        horizon: Horizon | None = None,
        *,
        terms: Mapping[str, Bracket] | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """A wide table: one stamp in each row, one channel in each column, missing or NaN = not observed.

        Without `channels`, every column that is not used otherwise is one.

        >>> import polars
        >>> frame = polars.DataFrame({"time": [0.0, 1.0], "pulse": [61.0, None], "temp": [37.2, 37.4]})
        >>> Streams.from_wide(frame, series=None).channel
        array([0, 1, 1], dtype=int32)
        """
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_wide(frame, series, time, channels, terms or {}, reading))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        horizon: Horizon | None = None,
        *,
        channels: Sequence[str] | None = None,
        terms: Mapping[str, Bracket] | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
        backend: ModuleType | None = None,
    ) -> "Streams":
        """A long table in a CSV file, as `from_frame`. Stamps that are text are read as ISO 8601 datetimes.

        `backend` reads the file: polars, pandas or pyarrow, by default the first of these that is installed. A wide
        file goes through `from_wide`, read by whichever library you like.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "long.csv").write_text("who,time,channel,value\\np1,0,pulse,61\\np1,2,pulse,64\\n")
        ...     streams = Streams.from_csv(Path(folder, "long.csv"), series="who")
        >>> streams.value
        array([61., 64.])
        """
        frame = read_csv(path, time, backend)
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_long(frame, series, time, channel, value, channels, terms or {}, reading))

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        horizon: Horizon | None = None,
        *,
        channels: Sequence[str] | None = None,
        terms: Mapping[str, Bracket] | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
        backend: ModuleType | None = None,
    ) -> "Streams":
        """A long table in a Parquet file, as `from_frame`; `backend` as in `from_csv`.

        >>> import tempfile
        >>> once = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     once.to_frame().write_parquet(Path(folder, "long.parquet"))
        ...     Streams.from_parquet(Path(folder, "long.parquet")) == once
        True
        """
        frame = read_parquet(path, backend)
        reading = Reading.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls(*read_long(frame, series, time, channel, value, channels, terms or {}, reading))

    @classmethod
    def from_increments(
        cls,
        times: Lists,
        increments: Lists,
        channels: Sequence[str],
        depth: int,
        horizon: Horizon | None = None,
        *,
        ids: Lists | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
    ) -> "Streams":
        """Lists over series: stamps (events,) and Lie elements (events, lie), coordinates in `Basis(channels, depth)`.

        The first level is how far each channel moves, starting from 0; every event observes every channel. The levels
        above become terms.

        >>> streams = Streams.from_increments([[0.5, 1.0]], [[[1.0, 2.0, 0.3], [1.0, 0.0, 0.0]]], ("W1", "W2"), depth=2)
        >>> streams.value, streams.schema.terms[0].name, streams.terms[:, 0]
        (array([1., 2., 2., 2.]), '[W1, W2]', array([0.3, 0. ]))
        """
        values, terms = from_lie(increments, channels, depth, ids)
        return cls.from_arrays(times, values, channels, horizon, ids=ids, terms=terms, unit=unit, origin=origin)

    @classmethod
    def from_signatures(
        cls,
        times: Lists,
        signatures: Lists,
        channels: Sequence[str],
        depth: int,
        horizon: Horizon | None = None,
        *,
        ids: Lists | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
    ) -> "Streams":
        """Lists over series: stamps (events,) and truncated signatures H of what happened at each event.

        A signature has its levels 1 to `depth` end to end, words in lexicographic order, without the constant term.
        The Lie element of the event is log H; the rest is as in `from_increments`.

        >>> streams = Streams.from_signatures([[1.0]], [[[1.0, 2.0, 0.5, 1.3, 0.7, 2.0]]], ("W1", "W2"), depth=2)
        >>> streams.value, streams.terms.round(12)
        (array([1., 2.]), array([[0.3]]))
        """
        values, terms = from_group(signatures, channels, depth, ids)
        return cls.from_arrays(times, values, channels, horizon, ids=ids, terms=terms, unit=unit, origin=origin)

    @classmethod
    def concatenate(cls, parts: Sequence["Streams"]) -> "Streams":
        """The series of all parts, one after another. They must have the same schema.

        >>> streams = Streams.from_dense(np.arange(6.0).reshape(3, 2, 1))
        >>> Streams.concatenate([streams[:1], streams[1:]]) == streams
        True
        """
        return join(parts)

    def with_continuous(self, names: Sequence[str], times: Lists, values: Lists) -> "Streams":
        """These streams with further continuous channels, piecewise linear between knots.

        One path for all series, stamps (knots,) and values (knots, channels), or lists of these, one for each series. A
        path must be known from 0 to the horizon; what comes later is not used. Time itself need not be given.

        >>> streams = Streams.from_arrays([[1.0, 4.0]], [[[1.0], [2.0]]])
        >>> streams.with_continuous(("dose",), [0.0, 2.0, 8.0], [0.0, 1.0, 4.0]).knots.values[:, 0]
        array([0., 1., 2.])
        """
        names = names_of(names)
        knots = read_knots(self, names, times, values)
        schema = dataclasses.replace(self.schema, continuous=(*self.schema.continuous, *names))
        return dataclasses.replace(self, schema=schema, knots=knots if self.knots is None else merge(self.knots, knots))

    def to_frame(self, backend: ModuleType | None = None) -> Any:
        """The long table again: columns series, time, channel, value, and one for each term.

        Reading it with the same schema, horizon and origins gives equal streams. `backend` is polars, pandas or
        pyarrow, by default the first of these that is installed. Continuous channels are not part of the table.

        >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
        >>> streams.to_frame().columns
        ['series', 'time', 'channel', 'value']
        >>> Streams.from_frame(streams.to_frame(), schema=streams.schema, horizon=streams.horizon) == streams
        True
        """
        return to_long(self, backend or default_backend())

    def describe(self) -> Summary:
        """Series, events, observations of each channel, gaps, and the share of simultaneous observations.

        >>> summary = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]]).describe()
        >>> summary.observations, summary.longest_gap
        (2, 1.0)
        """
        return summarise(self)

    def __repr__(self) -> str:
        return headline(self)
