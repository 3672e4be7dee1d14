"""Streams of a file, some series at a time, in memory that does not grow with the file.

`scan` passes over the file once, to find what every part must share: the channels, the clock, the horizon, and where in
the file each series is. It keeps no rows, and of each series its id and a few numbers. `some_streams` then reads groups
of whole series, in the order of their first rows; together they equal the streams of reading the file at once. A file
whose series are scattered, such as one sorted by time, is first split into temporary files, one for each group.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Int64, Shaped

from logcde._files import scratch_folder
from logcde.errors import TableError
from logcde.streams.clock import Stamps, Time
from logcde.streams.faults import Places, check_horizon
from logcde.streams.files import PIECE, AbstractTable
from logcde.streams.frames import arrow, labelled, read_column, read_long, read_wide, unobserved
from logcde.streams.ingest import ReadOptions, assemble
from logcde.streams.labels import encode_column, id_array
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


class Piece(NamedTuple):
    """Rows of the file as a pyarrow table, and the number of each row's series."""

    table: Any
    series: Int64[np.ndarray, "row"]


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """The result of `scan`. Series are numbered in the order of their first rows.

    Attributes:
        file: The file.
        layout: The meaning of its columns.
        texts: The inferred types of its columns of text.
        numbers: The number of each series, by id.
        rows: The number of rows.
        sizes: The number of rows of each series.
        first: The position of the first row of each series.
        last: The position of the last row of each series.
        missing: The number of rows without a value, by channel.
        options: How to read any part of the file: with the channels, the clock and the horizon of the whole.
    """

    file: AbstractTable
    layout: Layout
    texts: Texts
    numbers: dict[Any, int]
    rows: int
    sizes: Int64[np.ndarray, "series"]
    first: Int64[np.ndarray, "series"]
    last: Int64[np.ndarray, "series"]
    missing: dict[str, int]
    options: ReadOptions

    @property
    def schema(self) -> Schema:
        """Channels and clock of all series."""
        assert self.options.schema is not None
        return self.options.schema

    def pieces(self, report: Report = quiet, rows: int = PIECE) -> Iterator[Piece]:
        """Iterate over the rows again."""
        for _, _, table in _pieces(self.file, self.layout, self.texts, report, rows):
            codes, labels = _series(table, self.layout)
            yield Piece(table.to_native(), np.array([self.numbers[label] for label in labels], np.int64)[codes])

    def read(self, table: Any) -> Streams:
        """The streams of some rows, which must be whole series."""
        return self.layout.read(table, self.options)


def scan(
    file: AbstractTable,
    layout: Layout,
    options: ReadOptions = ReadOptions(),
    *,
    epoch: str | None = None,
    report: Report = quiet,
    rows: int = PIECE,
) -> Scan:
    """Pass over a file once.

    Args:
        file: An opened file.
        layout: The meaning of its columns.
        options: How to read it; the schema's clock is used, its channels are those of the layout.
        epoch: The unit ("s", "ms", "us" or "ns") of stamps that are numbers since 1970.
        report: A progress callback.
        rows: About how many rows are read at a time.

    >>> import tempfile
    >>> from logcde.streams.files import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("series,time,channel,value\\np,0,b,1\\nq,1,a,2\\np,4,a,\\n")
    ...     found = scan(open_table(Path(folder, "a.csv")), Layout.long())
    >>> found.schema.channels, found.sizes.tolist(), found.missing, found.options.horizon
    (('a', 'b'), [2, 1], {'a': 1, 'b': 0}, 1.0)
    """
    texts = Texts(layout.labels if file.untyped else (), layout.time, epoch)
    while True:
        seen = _Seen(layout)
        try:
            for start, stop, table in _pieces(file, layout, texts, report, rows):
                seen.add(start, table)
                seen.rows = stop
            break
        except Restart:
            continue
    if not seen.numbers:
        raise TableError(f"{file.path} has columns but no rows with a series.", "There is nothing to read.")
    count = len(seen.numbers)
    return Scan(
        file=file,
        layout=layout,
        texts=texts,
        numbers=seen.numbers,
        rows=seen.rows,
        sizes=seen.sizes[:count],
        first=seen.first[:count],
        last=seen.last[:count],
        missing={str(name): seen.missing[name] for name in sorted(seen.missing)},
        options=_settled(seen, file, layout, options),
    )


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
        codes, labels = _series(table, self.layout)
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
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        if len(self.numbers) <= len(self.sizes):
            return
        more = 2 * len(self.numbers) - len(self.sizes)
        self.sizes = np.append(self.sizes, np.zeros(more, np.int64))
        self.first = np.append(self.first, np.full(more, np.iinfo(np.int64).max))
        self.last = np.append(self.last, np.zeros(more, np.int64))
        self.low = np.append(self.low.astype(dtype), np.full(more, high, dtype))
        self.high = np.append(self.high.astype(dtype), np.full(more, low, dtype))


def _pieces(
    file: AbstractTable, layout: Layout, texts: Texts, report: Report, rows: int
) -> Iterator[tuple[int, int, nw.DataFrame]]:
    """Labelled rows of each piece, with the positions of its first row and of the first row after it."""
    start = 0
    for piece in file.pieces(layout.columns, layout.values, rows):
        table = nw.from_native(texts(piece), eager_only=True)
        yield start, start + len(piece), labelled(table, layout.labels, layout.values, start)
        start += len(piece)
        report(len(piece))


def _series(table: nw.DataFrame, layout: Layout) -> tuple[Shaped[np.ndarray, "row"], list]:
    """Codes of the series, and their ids."""
    if layout.series is None:
        return np.zeros(len(table), np.int64), [0]
    encoded = encode_column(table[layout.series], "series")
    return encoded.codes, encoded.labels.tolist()


def _settled(seen: _Seen, file: AbstractTable, layout: Layout, options: ReadOptions) -> ReadOptions:
    """Options with the channels, the clock and the horizon of the whole file."""
    ids = id_array(list(seen.numbers))
    known = np.flatnonzero(seen.low[: len(ids)] <= seen.high[: len(ids)])
    extremes = np.concatenate([seen.low[known], seen.high[known]])
    if seen.stamps.array.dtype.kind != "f":
        extremes = extremes.view(seen.stamps.array.dtype)
    stamps = Stamps(extremes, seen.stamps.zone)
    observed = np.ones(len(stamps.array), bool)
    timing = time_rows(stamps, np.tile(known, 2), observed, ids, options.clock, options.horizon)
    schema = Schema(_channels(seen, file, layout), timing.clock)
    horizon = options.horizon
    if horizon is None:
        horizon = Time(check_horizon(None, timing.times, Places(ids, schema, timing.origins))[0])
    clock = ClockOptions(None, options.clock.origin if timing.clock.per_series else Earliest(), timing.clock)
    return dataclasses.replace(options, horizon=horizon, schema=schema, clock=clock)


def _channels(seen: _Seen, file: AbstractTable, layout: Layout) -> tuple[str, ...]:
    """The names of channels, in the order of `Streams.from_frame`: as given, of an Enum, or sorted."""
    if layout.channels is not None:
        return layout.channels
    if layout.channel is not None and layout.channel in file.categories:
        return file.categories[layout.channel]
    return tuple(str(name) for name in sorted(seen.missing))


MOST_FILES = 200
"""Temporary files that are open at once; systems allow about a thousand."""


def all_streams(scan: Scan, report: Report = quiet) -> Streams:
    """Read all series into memory."""
    tables = [piece.table for piece in scan.pieces(report)]
    return scan.read(arrow().concat_tables(tables))


def some_streams(
    scan: Scan, folder: Path, report: Report = quiet, *, group: int = 500_000
) -> Generator[Streams, None, None]:
    """Read whole series, about `group` rows of them at a time.

    Args:
        scan: The result of `scan`.
        folder: Where temporary files may be written, for files whose series are scattered.
        report: A progress callback.
        group: About how many rows of the file the series of one group have.

    >>> import tempfile
    >>> from logcde.streams.files import open_table
    >>> from logcde.streams.file_scan import scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_text("series,time,channel,value\\np,0,a,1\\nq,1,a,2\\np,4,a,3\\n")
    ...     parts = list(some_streams(scan(open_table(file), Layout.long()), Path(folder), group=1))
    >>> [(part.ids.tolist(), part.value.tolist()) for part in parts]
    [(['p'], [1.0, 3.0]), (['q'], [2.0])]
    """
    groups, rows = _groups(scan.sizes, group), min(group, PIECE)
    if in_order(scan, groups):
        yield from _passing(scan, groups, report, rows)
    else:
        yield from _spilled(scan, groups, folder, report, rows)


def in_order(scan: Scan, groups: Int64[np.ndarray, "series"]) -> bool:
    """Whether the rows of each group all come before those of the next."""
    starts = np.append(0, np.flatnonzero(np.diff(groups)) + 1)
    begin, end = np.minimum.reduceat(scan.first, starts), np.maximum.reduceat(scan.last, starts)
    return bool((end[:-1] < begin[1:]).all())


def _groups(sizes: Int64[np.ndarray, "series"], rows: int) -> Int64[np.ndarray, "series"]:
    """The group of each series: neighbouring series with about `rows` rows together."""
    before = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    rows = max(min(rows, total), total // MOST_FILES + 1)
    return np.unique(before // rows, return_inverse=True)[1].astype(np.int64)


def _passing(scan: Scan, groups: np.ndarray, report: Report, rows: int) -> Iterator[Streams]:
    """Read groups that follow each other in the file."""
    parts: list[Any] = []
    current = 0
    for piece in scan.pieces(report, rows):
        for group, part in _runs(piece.table, groups[piece.series]):
            if group != current:
                yield scan.read(arrow().concat_tables(parts))
                parts, current = [], group
            parts.append(part)
    yield scan.read(arrow().concat_tables(parts))


def _spilled(scan: Scan, groups: np.ndarray, folder: Path, report: Report, rows: int) -> Iterator[Streams]:
    """Read groups that are scattered over the file, by way of one temporary file for each."""
    ipc = arrow().ipc
    with scratch_folder(folder / "series") as place:
        files = [place / f"{group}.arrow" for group in range(groups[-1] + 1)]
        writers: dict[int, Any] = {}
        try:
            with contextlib.ExitStack() as opened:
                for piece in scan.pieces(report, rows):
                    of_rows = groups[piece.series]
                    order = np.argsort(of_rows, kind="stable")
                    for group, part in _runs(piece.table.take(order), of_rows[order]):
                        if group not in writers:
                            writers[group] = opened.enter_context(ipc.new_stream(str(files[group]), part.schema))
                        writers[group].write_table(part)
        except OSError as error:
            raise TableError(
                f"The series of {scan.file.path} are scattered over the file, and gathering them in temporary files in "
                f"{folder} failed: {error.strerror or error}.",
                "Make room there, or sort the table by series.",
            ) from error
        for file in files:
            with ipc.open_stream(str(file)) as reader:
                table = reader.read_all()
            file.unlink()
            yield scan.read(table)


def _runs(table: Any, groups: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Runs of neighbouring rows of one group."""
    starts = np.append(0, np.flatnonzero(np.diff(groups)) + 1)[: len(groups)]
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(groups)], strict=False):
        yield int(groups[start]), table.slice(start, stop - start)
