"""What must be known of a table before its first row is read as a stream: channels, clock, horizon, and its series.

A `Summary` says it of one file, and is small: of each series it keeps the id and a few numbers. Summaries of several
files merge into that of all, in any grouping, because each of their numbers is a sum, a minimum or a maximum. `settled`
makes of the summary of the whole the options with which any part of it is read.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Int64, Shaped

from logcde.errors import TableError, Where
from logcde.streams.clock import NANOSECONDS, Stamps, Time
from logcde.streams.faults import Places, check_horizon
from logcde.streams.files import PIECE, AbstractTable
from logcde.streams.frames import labelled, read_column, read_long, read_wide, unobserved
from logcde.streams.ingest import ReadOptions, assemble
from logcde.streams.labels import encode_column, id_array
from logcde.streams.locations import Location
from logcde.streams.rows import Earliest
from logcde.streams.schema import Schema
from logcde.streams.stamps import ClockOptions, time_rows
from logcde.streams.streams import Streams
from logcde.streams.texts import Restart, Texts

Report: TypeAlias = Callable[[int], None]
"""A progress callback, called for every piece with its number of rows."""


def quiet(rows: int) -> None:
    """Report nothing."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a long or a wide table. Make one with `long` or `wide`.

    Attributes:
        series: The column of series ids; None if all rows are one series.
        time: The column of stamps.
        values: The columns of values: one in a long table, one for each channel in a wide one.
        channel: The column of channel names of a long table; None for a wide one.
        channels: The names of all channels in order; None if they are those seen, sorted.
    """

    series: str | None
    time: str
    values: tuple[str, ...]
    channel: str | None
    channels: tuple[str, ...] | None

    @classmethod
    def long(
        cls,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        channels: tuple[str, ...] | None = None,
    ) -> "Layout":
        """A table with one observation in each row.

        >>> Layout.long("patient", "hours").columns
        ('patient', 'channel', 'hours', 'value')
        """
        return cls(series, time, (value,), channel, channels)

    @classmethod
    def wide(cls, channels: tuple[str, ...], series: str | None = "series", time: str = "time") -> "Layout":
        """A table with one stamp in each row and one channel in each column of values.

        >>> Layout.wide(("pulse", "temp"), series=None).columns
        ('time', 'pulse', 'temp')
        """
        return cls(series, time, channels, None, channels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of series ids and channel names."""
        return tuple(label for label in (self.series, self.channel) if label is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read."""
        return (*self.labels, self.time, *self.values)

    def read(self, table: Any, options: ReadOptions) -> Streams:
        """The streams of a frame, as by `Streams.from_frame` or `Streams.from_wide`."""
        names = self.channels if options.schema is None else None
        if self.channel is None:
            return assemble(Streams, read_wide(table, self.series, self.time, names, {}, options))
        value = self.values[0]
        return assemble(Streams, read_long(table, self.series, self.time, self.channel, value, names, {}, options))

    def missing(self, table: nw.DataFrame) -> Bool[np.ndarray, "row column"]:
        """The mask of missing values, by row and column of values."""
        return np.stack([unobserved(table[value]) for value in self.values], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class Summary:
    """What a pass over a file, or over several, has found. Series are numbered in the order of their first rows.

    Attributes:
        path: The file; of several, the first one.
        texts: The inferred types of its columns of text.
        untyped: Whether ids and names of channels are text whose type was inferred.
        numbers: The number of each series, by id.
        rows: The number of rows.
        sizes: The number of rows of each series.
        first: The position of the first row of each series.
        last: The position of the last row of each series.
        low: The earliest stamp with a value of each series, in ticks of `stamps`.
        high: The latest one; below `low` if there is none.
        stamps: No stamps, of the type and with the time zone of all.
        missing: The number of rows without a value, by channel.
        categories: The names of all channels, in order, if their column is an Enum.
    """

    path: Location
    texts: Texts
    untyped: bool
    numbers: dict[Any, int]
    rows: int
    sizes: Int64[np.ndarray, "series"]
    first: Int64[np.ndarray, "series"]
    last: Int64[np.ndarray, "series"]
    low: Shaped[np.ndarray, "series"]
    high: Shaped[np.ndarray, "series"]
    stamps: Stamps
    missing: dict[Any, int]
    categories: tuple[str, ...] | None = None


def summarise(
    file: AbstractTable,
    layout: Layout,
    *,
    epoch: str | None = None,
    report: Report = quiet,
    rows: int = PIECE,
) -> Summary:
    """Pass over a file once.

    Args:
        file: An opened file.
        layout: The meaning of its columns.
        epoch: The unit ("s", "ms", "us" or "ns") of stamps that are numbers since 1970.
        report: A progress callback.
        rows: About how many rows are read at a time.
    """
    texts = Texts(layout.labels if file.untyped else (), layout.time, epoch)
    while True:
        seen = _Seen(layout)
        try:
            for start, stop, table in read_pieces(file, layout, texts, report, rows):
                seen.add(start, table)
                seen.rows = stop
            break
        except Restart:
            continue
    if not seen.numbers:
        raise TableError(f"{file.path} has columns but no rows with a series.", "There is nothing to read.")
    count = len(seen.numbers)
    categories = None if layout.channel is None else file.categories.get(layout.channel)
    stamps = Stamps(seen.stamps.array[:0].copy(), seen.stamps.zone)
    sizes, first, last = seen.sizes[:count], seen.first[:count], seen.last[:count]
    ends = (seen.low[:count], seen.high[:count], stamps)
    begin = (file.path, texts, file.untyped, seen.numbers, seen.rows)
    return Summary(*begin, sizes, first, last, *ends, seen.missing, categories)


def merged(summaries: Sequence[Summary]) -> Summary:
    """The summary of several files, one after another, from those of each. Groups of them may be merged first.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from logcde.streams.files import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in (("a.csv", "1,0,x,1\\n2,5,x,2\\n"), ("b.csv", "p,3,y,1\\n1,9,x,\\n")):
    ...         _ = Path(folder, name).write_text(f"series,time,channel,value\\n{rows}")
    ...     each = [summarise(open_table(Path(folder, name)), Layout.long()) for name in ("a.csv", "b.csv")]
    >>> whole = merged(each)
    >>> whole.numbers, whole.sizes.tolist(), whole.high.tolist(), whole.missing
    ({'1': 0, '2': 1, 'p': 2}, [2, 1, 1], [0.0, 5.0, 3.0], {'x': 1, 'y': 0})
    """
    stamps = _common_stamps(summaries)
    numbers: dict[Any, int] = {}
    missing: dict[Any, int] = {}
    alike = [_labels_alike(summaries, lambda one: one.numbers), _labels_alike(summaries, lambda one: one.missing)]
    places = []
    for summary, ids, counts in zip(summaries, *alike, strict=True):
        places.append(np.array([numbers.setdefault(one, len(numbers)) for one in ids], np.int64))
        for name, count in zip(counts, summary.missing.values(), strict=True):
            missing[name] = missing.get(name, 0) + count
    low, high = (np.full(len(numbers), end, _tick_type(stamps)) for end in _ends(_tick_type(stamps)))
    sizes, last = np.zeros((2, len(numbers)), np.int64)
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    start = 0
    for summary, place in zip(summaries, places, strict=True):
        sizes[place] += summary.sizes
        first[place] = np.minimum(first[place], summary.first + start)
        last[place] = np.maximum(last[place], summary.last + start)
        known, ticks = summary.low <= summary.high, _tick_length(summary.stamps) // _tick_length(stamps)
        here = place[known]
        low[here] = np.minimum(low[here], summary.low[known] * ticks)
        high[here] = np.maximum(high[here], summary.high[known] * ticks)
        start += summary.rows
    named = [one.categories for one in summaries]
    categories = None if None in named else tuple(dict.fromkeys(name for one in named for name in one or ()))
    texts = Texts.merged([one.texts for one in summaries])
    path, untyped = summaries[0].path, summaries[0].untyped
    return Summary(path, texts, untyped, numbers, start, sizes, first, last, low, high, stamps, missing, categories)


def labelled_alike(summaries: Sequence[Summary]) -> list[Summary]:
    """The same summaries, with ids of one type: text where any file has text."""
    ids = _labels_alike(summaries, lambda one: one.numbers)
    return [
        dataclasses.replace(one, numbers={label: number for number, label in enumerate(own)})
        for one, own in zip(summaries, ids, strict=True)
    ]


def check_whole(summaries: Sequence[Summary]) -> None:
    """Refuse series that are in several files."""
    owner: dict[Any, Location] = {}
    for summary, ids in zip(summaries, _labels_alike(summaries, lambda one: one.numbers), strict=True):
        crossing = [one for one in ids if one in owner]
        if crossing:
            others = f" (and {len(crossing) - 1:,} more series)" if len(crossing) > 1 else ""
            raise TableError(
                f"Series {crossing[0]!r} is in {owner[crossing[0]]} and in {summary.path}{others}, but every series "
                "was said to be in one file.",
                "Without whole=True, or --unsplit on the command line, such series are gathered.",
                where=Where(series=crossing[0]),
            )
        owner.update(dict.fromkeys(ids, summary.path))


def is_crossed(summaries: Sequence[Summary]) -> bool:
    """Whether a series is in several files."""
    ids = _labels_alike(summaries, lambda one: one.numbers)
    return len(set().union(*ids)) < sum(map(len, ids))


def _labels_alike(summaries: Sequence[Summary], labels: Callable[[Summary], dict[Any, int]]) -> list[list[Any]]:
    """Ids of series or names of channels, all of one type: text that was taken for numbers becomes text again."""
    found = [list(labels(one)) for one in summaries]
    text = [bool(each) and isinstance(each[0], str) for each in found]
    if not any(text) or all(text):
        return found
    one, other = text.index(True), text.index(False)
    if found[other] and not all(summary.untyped for summary in summaries):
        raise TableError(
            f"{summaries[one].path} has the label {found[one][0]!r}, which is text, and {summaries[other].path} has "
            f"{found[other][0]!r}, which is a number.",
            "Write ids and names of channels in the same way in all files.",
        )
    return [[str(label) for label in each] for each in found]


def _common_stamps(summaries: Sequence[Summary]) -> Stamps:
    """No stamps, of the finest type of all files that have any."""
    known = [one for one in summaries if (one.low <= one.high).any()] or list(summaries[:1])
    first = known[0]
    for one in known[1:]:
        kinds = [(other.stamps.array.dtype.kind, other.stamps.zone) for other in (first, one)]
        if kinds[0] != kinds[1]:
            names = {"f": "numbers", "m": "durations", "M": "datetimes"}
            what = [f"{names[kind]}{f' in the time zone {zone}' if zone else ''}" for kind, zone in kinds]
            raise TableError(
                f"The stamps are {what[0]} in {first.path}, but {what[1]} in {one.path}.", "Make all stamps alike."
            )
    return min((one.stamps for one in known), key=_tick_length)


def _tick_length(stamps: Stamps) -> int:
    kind = stamps.array.dtype
    return 1 if kind.kind == "f" else NANOSECONDS[np.datetime_data(kind)[0]]


def _tick_type(stamps: Stamps) -> np.dtype:
    return np.dtype(np.float64 if stamps.array.dtype.kind == "f" else np.int64)


def _ends(dtype: np.dtype) -> tuple[Any, Any]:
    """The largest number, as a minimum of nothing, and the smallest one."""
    return (np.inf, -np.inf) if dtype.kind == "f" else (np.iinfo(np.int64).max, np.iinfo(np.int64).min)


def settled(seen: Summary, layout: Layout, options: ReadOptions) -> ReadOptions:
    """Options to read any part of what was summarised: with the channels, the clock and the horizon of the whole.

    Args:
        seen: The summary of the whole.
        layout: The meaning of the columns.
        options: How to read it; the schema's clock is used, its channels are those of the layout.
    """
    ids = id_array(list(seen.numbers))
    known = np.flatnonzero(seen.low <= seen.high)
    extremes = np.concatenate([seen.low[known], seen.high[known]])
    if seen.stamps.array.dtype.kind != "f":
        extremes = extremes.view(seen.stamps.array.dtype)
    stamps = Stamps(extremes, seen.stamps.zone)
    observed = np.ones(len(stamps.array), bool)
    timing = time_rows(stamps, np.tile(known, 2), observed, ids, options.clock, options.horizon)
    schema = Schema(_channels(seen, layout), timing.clock)
    horizon = options.horizon
    if horizon is None:
        horizon = Time(check_horizon(None, timing.times, Places(ids, schema, timing.origins))[0])
    clock = ClockOptions(None, options.clock.origin if timing.clock.per_series else Earliest(), timing.clock)
    return dataclasses.replace(options, horizon=horizon, schema=schema, clock=clock)


def _channels(seen: Summary, layout: Layout) -> tuple[str, ...]:
    """The names of channels, in the order of `Streams.from_frame`: as given, of an Enum, or sorted."""
    if layout.channels is not None:
        return layout.channels
    if seen.categories is not None:
        return seen.categories
    return tuple(str(name) for name in sorted(seen.missing))


def read_pieces(
    file: AbstractTable, layout: Layout, texts: Texts, report: Report, rows: int
) -> Iterator[tuple[int, int, nw.DataFrame]]:
    """Labelled rows of each piece, with the positions of its first row and of the first row after it."""
    start = 0
    for piece in file.pieces(layout.columns, layout.values, rows):
        table = nw.from_native(texts(piece), eager_only=True)
        yield start, start + len(piece), labelled(table, layout.labels, layout.values, start)
        start += len(piece)
        report(len(piece))


def series_codes(table: nw.DataFrame, layout: Layout) -> tuple[Shaped[np.ndarray, "row"], list]:
    """Codes of the series, and their ids."""
    if layout.series is None:
        return np.zeros(len(table), np.int64), [0]
    encoded = encode_column(table[layout.series], "series")
    return encoded.codes, encoded.labels.tolist()


class _Seen:
    """What a scan has found so far."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.numbers: dict[Any, int] = {}
        self.missing: dict[Any, int] = dict.fromkeys(() if layout.channel else layout.values, 0)
        self.rows = 0
        self.sizes = self.first = self.last = np.zeros(0, np.int64)
        self.low = self.high = np.zeros(0)
        self.stamps = Stamps(np.zeros(0))

    def add(self, start: int, table: nw.DataFrame) -> None:
        codes, labels = series_codes(table, self.layout)
        number = np.array([self.numbers.setdefault(label, len(self.numbers)) for label in labels], np.int64)
        gone = self.layout.missing(table)
        self._count(table, gone)
        self.stamps = read_column(table[self.layout.time])
        array = self.stamps.array
        known = ~gone.all(axis=1) & (np.isfinite(array) if array.dtype.kind == "f" else ~np.isnat(array))
        ticks = array if array.dtype.kind == "f" else array.view(np.int64)
        self._grow(ticks.dtype)
        series = number[codes]
        where = start + np.arange(len(series))
        np.add.at(self.sizes, series, 1)
        np.minimum.at(self.first, series, where)
        np.maximum.at(self.last, series, where)
        np.minimum.at(self.low, series[known], ticks[known])
        np.maximum.at(self.high, series[known], ticks[known])

    def _count(self, table: nw.DataFrame, gone: np.ndarray) -> None:
        """Count rows without a value, by channel."""
        if self.layout.channel is None:
            for name, count in zip(self.layout.values, gone.sum(axis=0).tolist(), strict=True):
                self.missing[name] += count
            return
        codes, labels = encode_column(table[self.layout.channel], "channel")
        counts = np.bincount(codes[gone[:, 0]], minlength=len(labels))
        for name, count in zip(labels.tolist(), counts.tolist(), strict=True):
            self.missing[name] = self.missing.get(name, 0) + count

    def _grow(self, dtype: np.dtype) -> None:
        """Grow the arrays to twice the number of series known."""
        highest, lowest = _ends(dtype)
        if len(self.numbers) <= len(self.sizes):
            return
        more = 2 * len(self.numbers) - len(self.sizes)
        self.sizes = np.append(self.sizes, np.zeros(more, np.int64))
        self.first = np.append(self.first, np.full(more, np.iinfo(np.int64).max))
        self.last = np.append(self.last, np.zeros(more, np.int64))
        self.low = np.append(self.low.astype(dtype), np.full(more, highest, dtype))
        self.high = np.append(self.high.astype(dtype), np.full(more, lowest, dtype))
