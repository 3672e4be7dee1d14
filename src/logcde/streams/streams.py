"""`Streams`: many irregular, asynchronous observation streams at once, and every way to make them.

The observation streams x = ((t_0, s_0, x_0), ...) of "From observations to log-signatures" (`sec:procedure` in the
paper). The class holds and slices arrays; each constructor hands its input to a reader (`arrays`, `frames`, `files`),
and the rows of the reader to the gate, `ingest.assemble`.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped

from logcde.errors import Remedy, StreamError
from logcde.kernels.events import increments
from logcde.kernels.records import Events
from logcde.streams.arrays import (
    LieEvents,
    Lists,
    read_dense,
    read_events,
    read_increments,
    read_lists,
    read_signatures,
)
from logcde.streams.clock import NumericClock, Stamps
from logcde.streams.continuous import Knots, read_knots
from logcde.streams.faults import Places, name
from logcde.streams.files import AbstractTable, open_csv, open_parquet, read_columns
from logcde.streams.frames import check_distinct, default_backend, read_long, read_wide, write_long
from logcde.streams.ingest import ReadOptions, assemble
from logcde.streams.ragged import frozen, join_offsets, owners, take
from logcde.streams.rows import Average, Drop, Earliest, Forbid, Keep, KeepLast
from logcde.streams.schema import Bracket, Schema, Term, check_same, names_of
from logcde.streams.stamps import Horizon, Origin
from logcde.streams.summary import StreamsSummary, headline, summarise

Duplicates: TypeAlias = Forbid | KeepLast | Average
Empty: TypeAlias = Forbid | Drop | Keep
ARRAYS = ("ids", "offsets", "times", "obs_offsets", "channel", "value", "horizon", "terms")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Streams:
    """Observation streams of many series: ragged, columnar, read-only. Nothing in them is filled or resampled.

    Make them with one of the `from_...` methods. `streams[3]`, `streams[:10]`, a mask or an array of positions select
    series, always as `Streams`. The methods share these options:

    - `horizon`: T, the end of the observation window. One number (or duration, or datetime) for all series, one for
      each in order, or a mapping from ids. By default the latest stamp of the whole data set. It is a stamp, like those
      of events; for datetimes it may also be a duration, or a number, since the origin.
    - `schema`: the schema of other streams, to read more data with the same channels, terms and clock.
    - `unit`, `origin`: datetimes and durations become the number of `unit`s (by default hours) since `origin`. The
      origin is `Earliest()`, the earliest stamp of the data set; `FirstStamp()`, each series' own; or a stamp, one
      for each series in order, or a mapping from ids. With `Earliest()`, plain numbers count from 0, unless they read
      as moments, such as seconds since 1970.
    - `sort`: sort rows whose stamps go backwards, instead of refusing them. The order of series in the rows is free.
    - `duplicates`: two different values of one channel at one stamp are refused by default; `KeepLast()`, `Average()`.
    - `empty`: a series without observations is refused by default; `Drop()`, `Keep()`.

    Attributes:
        schema: Channels, clock, higher-order terms and continuous channels.
        ids: The id of each series.
        offsets: Series k has the events `offsets[k]` to `offsets[k + 1]`.
        times: The time of each event, from the origin in the unit of the clock.
        obs_offsets: Event k has the observations `obs_offsets[k]` to `obs_offsets[k + 1]`.
        channel: The channel of each observation, as an index into `schema.channels`.
        value: The value of each observation. Values given in single precision stay so, to halve the memory traffic; all
            computations are in double precision.
        horizon: The horizon of each series.
        terms: The higher-order terms of each event, one column for each.
        knots: The continuous channels, if there are any.
        origins: The origin of each series as a stamp, where they differ.
        change: The change of each observation since the previous one of its channel, where streams were given by
            increments, which may be small beside the values; otherwise None, and it is the difference of values.
    """

    schema: Schema
    ids: Shaped[np.ndarray, "series"]
    offsets: Int64[np.ndarray, "series+1"]
    times: Float64[np.ndarray, "event"]
    obs_offsets: Int64[np.ndarray, "event+1"]
    channel: Int32[np.ndarray, "obs"]
    value: Float[np.ndarray, "obs"]
    horizon: Float64[np.ndarray, "series"]
    terms: Float64[np.ndarray, "event terms"]
    knots: Knots | None = None
    origins: Shaped[np.ndarray, "series"] | None = None
    change: Float64[np.ndarray, "obs"] | None = None

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
        """Read lists over series of stamps (events,) and values (events, channels), NaN where not observed.

        A row of NaN is no event. Channels without names are called x1, x2, ...; series without `ids` are numbered.
        `terms` maps each higher-order term to a list over series of numbers, one for each row.

        >>> streams = Streams.from_arrays([[0.0, 1.5]], [[[1.0, np.nan], [2.0, 3.0]]], channels=("a", "b"))
        >>> streams.times, streams.channel, streams.value
        (array([0. , 1.5]), array([0, 0, 1], dtype=int32), array([1., 2., 3.]))
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return assemble(cls, read_lists(times, values, channels, ids, terms or {}, options))

    @classmethod
    def from_dense(
        cls,
        values: Any,
        times: Lists | None = None,
        channels: Sequence[str] | None = None,
        horizon: Horizon | None = None,
        *,
        channels_first: bool | None = None,
        ids: Lists | None = None,
        schema: Schema | None = None,
        unit: timedelta | None = None,
        origin: Origin = Earliest(),
        sort: bool = False,
        duplicates: Duplicates = Forbid(),
        empty: Empty = Forbid(),
    ) -> "Streams":
        """Read one array (series, step, channel), NaN where not observed: padding with NaN leaves no trace.

        Stamps are (step,), (series, step), or by default the number of the step: 0, 1, ..., L - 1. With
        `channels_first=True` the array is (series, channel, step), as in aeon. By default it is not, and a warning says
        which axis is which if there are many more channels than steps; `channels_first=False` is without it.

        >>> streams = Streams.from_dense(np.array([[[1.0], [np.nan], [2.0]], [[3.0], [4.0], [np.nan]]]))
        >>> streams.offsets, streams.times, streams.horizon
        (array([0, 2, 4]), array([0., 2., 0., 1.]), array([2., 2.]))
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return assemble(cls, read_dense(values, times, channels, ids, options, channels_first))

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
        """Read tuples (series, stamp, {channel: value}). Without `channels`, they are those seen, sorted by name.

        >>> events = [("p1", 0.0, {"pulse": 61.0}), ("p2", 1.0, {"pulse": 80.0}), ("p1", 2.0, {"glucose": 5.5})]
        >>> streams = Streams.from_events(events)
        >>> streams.schema.channels, streams.ids
        (('glucose', 'pulse'), array(['p1', 'p2'], dtype=object))
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return assemble(cls, read_events(events, channels, options))

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
        """Read a long data frame: one observation in each row, missing or NaN where not observed.

        Takes any data frame that narwhals does; lazy ones are collected. With `series=None` all rows are one series.
        Series are in order of first appearance. Channels are as given, or the categories of an Enum column, or those
        seen, sorted by name. `terms` maps columns to brackets of channels, as in `{"area": ("W1", "W2")}`.

        >>> import polars
        >>> rows = [("p1", 0.0, "pulse", 61.0), ("p1", 2.0, "temp", 37.2), ("p2", 1.0, "pulse", 80.0)]
        >>> frame = polars.DataFrame(rows, schema=["who", "hours", "vital", "x"], orient="row")
        >>> streams = Streams.from_frame(frame, series="who", time="hours", channel="vital", value="x")
        >>> streams.schema.channels, len(streams)
        (('pulse', 'temp'), 2)
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return assemble(cls, read_long(frame, series, time, channel, value, channels, terms or {}, options))

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
        """Read a wide data frame: one stamp in each row, one channel in each column, missing or NaN where not observed.

        Without `channels`, every column that has no other use is one.

        >>> import polars
        >>> frame = polars.DataFrame({"time": [0.0, 1.0], "pulse": [61.0, None], "temp": [37.2, 37.4]})
        >>> Streams.from_wide(frame, series=None).channel
        array([0, 1, 1], dtype=int32)
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return assemble(cls, read_wide(frame, series, time, channels, terms or {}, options))

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
    ) -> "Streams":
        """Read a long table in a CSV file, as `from_frame` does; the command line reads files in the same way.

        Stamps that are text are ISO 8601 datetimes. The file may be compressed (.gz), with fields separated by
        commas, semicolons, tabs or bars. Needs pyarrow: `pip install "logcde[frames]"`. For a wide file, read it with a
        data-frame library and use `from_wide`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "long.csv").write_text("who,time,channel,value\\np1,0,pulse,61\\np1,2,pulse,64\\n")
        ...     streams = Streams.from_csv(Path(folder, "long.csv"), series="who")
        >>> streams.value
        array([61., 64.])
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls._from_file(open_csv(path), series, time, channel, value, channels, terms or {}, options)

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
    ) -> "Streams":
        """Read a long table in a Parquet file, as `from_frame` does. Needs pyarrow: `pip install "logcde[frames]"`.

        >>> import tempfile
        >>> once = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     once.to_frame().write_parquet(Path(folder, "long.parquet"))
        ...     Streams.from_parquet(Path(folder, "long.parquet")) == once
        True
        """
        options = ReadOptions.of(horizon, schema, unit, origin, sort, duplicates, empty)
        return cls._from_file(open_parquet(path), series, time, channel, value, channels, terms or {}, options)

    @classmethod
    def _from_file(
        cls,
        file: AbstractTable,
        series: str | None,
        time: str,
        channel: str,
        value: str,
        channels: Sequence[str] | None,
        terms: Mapping[str, Bracket],
        options: ReadOptions,
    ) -> "Streams":
        columns = [term.name for term in options.schema.terms] if options.schema and not terms else list(terms)
        labels = [label for label in (series, channel) if label is not None]
        frame = read_columns(file, labels, time, [value, *columns])
        if channels is None and options.schema is None:
            channels = file.categories.get(channel)
        return assemble(cls, read_long(frame, series, time, channel, value, channels, terms, options))

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
        """Read lists over series of stamps (events,) and Lie elements (events, lie) in `Basis(channels, depth)`.

        The first level is the increment of each channel, starting from 0; every event observes every channel. The
        levels above become terms. Increments are kept exactly, also a small one after large ones.

        >>> streams = Streams.from_increments([[0.5, 1.0]], [[[1.0, 2.0, 0.3], [1.0, 0.0, 0.0]]], ("W1", "W2"), depth=2)
        >>> streams.value, streams.schema.terms[0].name, streams.terms[:, 0]
        (array([1., 2., 2., 2.]), '[W1, W2]', array([0.3, 0. ]))
        """
        return cls._from_lie(
            times, read_increments(increments, channels, depth, ids), channels, horizon, ids, unit, origin
        )

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
        """Read lists over series of stamps (events,) and truncated signatures H (events, words) of the events.

        A signature has its levels 1 to `depth` end to end, words in lexicographic order, without the constant term.
        The Lie element of the event is log H; the rest is as in `from_increments`.

        >>> streams = Streams.from_signatures([[1.0]], [[[1.0, 2.0, 0.5, 1.3, 0.7, 2.0]]], ("W1", "W2"), depth=2)
        >>> streams.value, streams.terms.round(12)
        (array([1., 2.]), array([[0.3]]))
        """
        return cls._from_lie(
            times, read_signatures(signatures, channels, depth, ids), channels, horizon, ids, unit, origin
        )

    @classmethod
    def _from_lie(
        cls,
        times: Lists,
        events: LieEvents,
        channels: Sequence[str],
        horizon: Horizon | None,
        ids: Lists | None,
        unit: timedelta | None,
        origin: Origin,
    ) -> "Streams":
        values, changes, terms = events
        streams = cls.from_arrays(times, values, channels, horizon, ids=ids, terms=terms, unit=unit, origin=origin)
        change = np.concatenate([block.reshape(-1) for block in changes])
        if len(change) != len(streams.value):
            series = next(one for one, block in zip(streams, changes, strict=True) if len(one.value) != block.size)
            raise StreamError(
                f"Series {name(series.ids[0])} has two events at one stamp.", "Give the product of events at one stamp."
            )
        return streams if np.array_equal(change, changes_of(streams)) else dataclasses.replace(streams, change=change)

    @classmethod
    def concatenate(cls, parts: Sequence["Streams"]) -> "Streams":
        """Join the series of all parts, one after another. The parts must have the same schema.

        Where plain numbers count from different stamps, they count from the earliest of these.

        >>> streams = Streams.from_dense(np.arange(6.0).reshape(3, 2, 1))
        >>> Streams.concatenate([streams[:1], streams[1:]]) == streams
        True
        """
        if not parts:
            raise StreamError("There is nothing to concatenate.", "Give at least one data set.")
        parts = on_one_clock(parts)
        first = parts[0]
        for number, part in enumerate(parts):
            check_same(first.schema, part.schema, number)
            if part.ids.dtype.kind != first.ids.dtype.kind:
                raise StreamError(
                    f"The ids of part {number} are {part.ids.dtype}, but those of part 0 {first.ids.dtype}.",
                    "Convert them to one type.",
                )
        joined = {field: np.concatenate([getattr(part, field) for part in parts]) for field in ARRAYS}
        joined |= {
            field: join_offsets([getattr(part, field) for part in parts]) for field in ("offsets", "obs_offsets")
        }
        if any(part.change is not None for part in parts):
            joined["change"] = np.concatenate([changes_of(part) for part in parts])
        knots = [part.knots for part in parts if part.knots is not None]
        origins = [part.origins for part in parts if part.origins is not None]
        return dataclasses.replace(
            first,
            **joined,
            knots=Knots.concatenate(knots) if knots else None,
            origins=np.concatenate(origins) if origins else None,
        )

    def on_clock(self, clock: NumericClock) -> "Streams":
        """The same stamps, plain numbers, with times on another clock, such as that of training series.

        >>> streams = Streams.from_arrays([[500.0, 502.0]], [[[1.0], [2.0]]], origin=500.0)
        >>> streams.times, streams.on_clock(NumericClock(499.0)).times, streams.on_clock(NumericClock(None)).origins
        (array([0., 2.]), array([1., 3.]), array([500.]))
        """
        ours, before = self.schema.clock, self.origins
        if ours == clock:
            return self
        series = owners(self.offsets)
        stamps = Stamps(ours.stamps(self.times, None if before is None else before[series]))
        origins = None
        if clock.per_series:
            # A series without events keeps its start.
            origins = ours.stamps(np.zeros(len(self)), before).astype(np.float64)
            some = np.diff(self.offsets) > 0
            origins[some] = stamps.array[self.offsets[:-1][some]]
        times = clock.times(stamps, None if origins is None else origins[series])
        horizon = clock.times(Stamps(ours.stamps(self.horizon, before)), origins)
        early = np.flatnonzero(times < 0)
        if early.size:
            where = Places(self.ids, self.schema, before).where(series[early[0]], self.times[early[0]])
            raise StreamError(
                f"{where}: this is before {clock.show(0.0)}, from where the clock counts.",
                Remedy.COMMON_ORIGIN,
                where=where,
            )
        if self.knots is not None:
            raise StreamError(
                "The clock of streams with continuous channels cannot be changed: their paths begin at its origin.",
                "Read all of them with one schema.",
            )
        schema = dataclasses.replace(self.schema, clock=clock)
        return dataclasses.replace(self, schema=schema, times=times, horizon=horizon, origins=origins)

    def with_continuous(self, names: Sequence[str], times: Lists, values: Lists) -> "Streams":
        """Add continuous channels, piecewise linear between knots. Time itself need not be given.

        Args:
            names: The names of the channels.
            times: The stamps (knots,) of one path for all series, or a list with those of each series. A path must be
                known from 0 to the horizon; its part after the horizon is not used.
            values: The values (knots, channels), or a list of these.

        >>> streams = Streams.from_arrays([[1.0, 4.0]], [[[1.0], [2.0]]])
        >>> streams.with_continuous(("dose",), [0.0, 2.0, 8.0], [0.0, 1.0, 4.0]).knots.values[:, 0]
        array([0., 1., 2.])
        """
        names = names_of(names)
        knots = read_knots(Places(self.ids, self.schema, self.origins), self.horizon, names, times, values)
        schema = dataclasses.replace(self.schema, continuous=(*self.schema.continuous, *names))
        return dataclasses.replace(self, schema=schema, knots=knots if self.knots is None else self.knots.merge(knots))

    def to_frame(self, backend: ModuleType | None = None) -> Any:
        """A long data frame: columns series, time, channel, value, and one for each term.

        Reading it with the same schema, horizons and origins, all as stamps, gives equal streams. `backend` is polars,
        pandas or pyarrow, by default the first of these that is installed. The frame holds neither continuous channels
        nor increments that were given (`change`).

        >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
        >>> streams.to_frame().columns
        ['series', 'time', 'channel', 'value']
        >>> Streams.from_frame(streams.to_frame(), schema=streams.schema, horizon=streams.horizon) == streams
        True
        """
        check_distinct(self.ids)
        event, series = owners(self.obs_offsets), owners(self.offsets)
        stamps = self.schema.clock.stamps(self.times, None if self.origins is None else self.origins[series])
        columns = {
            "series": self.ids[series][event],
            "time": stamps[event],
            "channel": np.array(self.schema.channels, object)[self.channel],
            "value": self.value.astype(np.float64, copy=False),
            **{term.name: self.terms[event, column] for column, term in enumerate(self.schema.terms)},
        }
        return write_long(columns, self.schema, backend or default_backend())

    def describe(self) -> StreamsSummary:
        """Summarise series, events, observations of each channel, gaps, and simultaneous observations.

        >>> summary = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]]).describe()
        >>> summary.observations, summary.longest_gap
        (2, 1.0)
        """
        return summarise(
            schema=self.schema,
            offsets=self.offsets,
            times=self.times,
            obs_offsets=self.obs_offsets,
            channel=self.channel,
            value=self.value,
            horizon=self.horizon,
        )

    @functools.cached_property
    def synchronous(self) -> bool:
        """Whether every event observes every channel."""
        return len(self.value) == len(self.times) * len(self.schema.channels)

    def __post_init__(self) -> None:
        for field in (*ARRAYS, "origins", "change"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, frozen(getattr(self, field)))
        series, events, observations = len(self.ids), len(self.times), len(self.value)
        expected = {
            "offsets": (np.int64, (series + 1,)),
            "times": (np.float64, (events,)),
            "obs_offsets": (np.int64, (events + 1,)),
            "channel": (np.int32, (observations,)),
            "value": (np.float32 if self.value.dtype == np.float32 else np.float64, (observations,)),
            "horizon": (np.float64, (series,)),
            "terms": (np.float64, (events, len(self.schema.terms))),
        }
        if self.change is not None:
            expected["change"] = (np.float64, (observations,))
        for field, (dtype, shape) in expected.items():
            array = getattr(self, field)
            if array.dtype != dtype or array.shape != shape:
                raise StreamError(
                    f"Streams.{field} must be {np.dtype(dtype)} of shape {shape}, but it is {array.dtype} of shape "
                    f"{array.shape}.",
                    "Use one of the constructors, such as Streams.from_arrays.",
                )
        if self.offsets[-1] != events or self.obs_offsets[-1] != observations:
            raise StreamError("The offsets of these streams do not end where their events and observations end.")
        if (self.knots is None) != (not self.schema.continuous):
            raise StreamError("Knots and names of continuous channels come together.", "Use Streams.with_continuous.")

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> "Iterator[Streams]":
        return (self[series] for series in range(len(self)))

    def __getitem__(self, key: int | np.integer | slice | Sequence | Shaped[np.ndarray, "_"]) -> "Streams":
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"There is no series number {key}: there are {len(self)} series, counted from 0.")
            start = int(key) % len(self)
            return self._run(start, start + 1)
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            return self._run(start, max(start, stop))
        index = np.asarray(key) if not isinstance(key, slice) else np.arange(len(self))[key]
        if index.dtype == np.bool_ and len(index) != len(self):
            raise IndexError(f"The mask has {len(index)} entries, but there are {len(self)} series.")
        return self._take(np.arange(len(self))[index if index.size else index.astype(np.int64)])

    def _run(self, start: int, stop: int) -> "Streams":
        """Neighbouring series, as views."""
        first, last = self.offsets[start], self.offsets[stop]
        begin, end = self.obs_offsets[first], self.obs_offsets[last]
        offsets = self.offsets[start : stop + 1] - first, self.obs_offsets[first : last + 1] - begin
        return self._select(np.s_[start:stop], np.s_[first:last], np.s_[begin:end], *offsets)

    def _take(self, index: Int64[np.ndarray, "_"]) -> "Streams":
        """Any series in any order, as copies."""
        offsets, events = take(self.offsets, index)
        obs_offsets, observations = take(self.obs_offsets, events)
        return self._select(index, events, observations, offsets, obs_offsets)

    def _select(
        self,
        series: slice | np.ndarray,
        events: slice | np.ndarray,
        observations: slice | np.ndarray,
        offsets: np.ndarray,
        obs_offsets: np.ndarray,
    ) -> "Streams":
        return dataclasses.replace(
            self,
            ids=self.ids[series],
            offsets=offsets,
            times=self.times[events],
            obs_offsets=obs_offsets,
            channel=self.channel[observations],
            value=self.value[observations],
            horizon=self.horizon[series],
            terms=self.terms[events],
            knots=None if self.knots is None else self.knots.rows(np.arange(len(self))[series]),
            origins=None if self.origins is None else self.origins[series],
            change=None if self.change is None else self.change[observations],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Streams):
            return NotImplemented
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS)
        return (
            self.schema == other.schema
            and self.ids.dtype == other.ids.dtype
            and all(same)
            and self.knots == other.knots
            and _same_or_none(self.origins, other.origins)
            and _same_or_none(self.change, other.change)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return headline(self.schema, len(self.times), len(self.value), self.horizon, self.origins)


def on_one_clock(parts: Sequence[Streams]) -> list[Streams]:
    """Streams on one clock, if their stamps are plain numbers that count from different ones: from the earliest."""
    clocks = [part.schema.clock for part in parts]
    origins = [clock.origin for clock in clocks if isinstance(clock, NumericClock) and clock.origin is not None]
    if len(origins) < len(parts) or len(set(origins)) == 1:
        return list(parts)
    return [part.on_clock(NumericClock(min(origins))) for part in parts]


def changes_of(streams: Streams, value: Float[np.ndarray, "obs"] | None = None) -> Float64[np.ndarray, "obs"]:
    """The change of each observation since the previous one of its channel, from 0 on.

    Args:
        streams: Any streams.
        value: Other values in place of theirs, one for each observation.

    >>> changes_of(Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]]))
    array([2., 7., 3.])
    >>> changes_of(Streams.from_increments([[0.5, 1.0]], [[[1e16], [0.25]]], ("a",), depth=1))
    array([1.0e+16, 2.5e-01])
    """
    if value is None and streams.change is not None:
        return streams.change
    value = streams.value if value is None else value
    events = Events(streams.offsets, streams.times, streams.horizon, streams.obs_offsets, streams.channel, value)
    out = np.empty(len(value))
    increments(0, len(streams), events, len(streams.schema.channels), out)
    return out


def _same_or_none(ours: np.ndarray | None, theirs: np.ndarray | None) -> bool:
    return ours is theirs if ours is None or theirs is None else np.array_equal(ours, theirs)
