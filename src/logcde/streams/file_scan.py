"""One pass over a table in a file: what must be known of the whole before any part of it can be read as streams.

That is the channels, the clock, the horizon, and where in the file each series is. Of the rows nothing is kept, of each
series its id and a few numbers.

Streams of a file, some series at a time, in memory that does not grow with the file.

Series stay whole. They come in the order of their first row, and together they are what reading all at once gives. A
file whose series are scattered, such as one sorted by time, is first written out again to temporary files, one for
each group of series.
"""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Int64, Shaped

from logcde.errors import TableError
from logcde.streams.arrays import Reading
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.faults import Places, check_horizon
from logcde.streams.files import PIECE, AbstractTable, Layout, Restart, Texts
from logcde.streams.frames import arrow, labelled, read_column
from logcde.streams.labels import encode_column, id_array
from logcde.streams.rows import Earliest
from logcde.streams.schema import Schema
from logcde.streams.stamps import ClockOptions, time_rows
from logcde.streams.streams import Streams

Report = Callable[[int], None]
"""Is told of every piece how many rows it has."""


def quiet(rows: int) -> None:
    """Tell nobody."""


class Piece(NamedTuple):
    """Rows of the file, and the number of the series that each belongs to."""

    table: Any
    series: Int64[np.ndarray, "row"]


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """What is known of a table in a file. Series are numbered in order of their first row.

    `sizes`, `first` and `last` are how many rows each series has, and the numbers of its first and last one. `missing`
    is how many rows, by channel, have no value. `reading` says how to read any part: with the channels, the clock and
    the horizon of the whole.
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
    reading: Reading

    @property
    def schema(self) -> Schema:
        """Channels and clock."""
        assert self.reading.schema is not None
        return self.reading.schema

    def pieces(self, report: Report = quiet, rows: int = PIECE) -> Iterator[Piece]:
        """The table again, piece by piece."""
        for _, _, table in _pieces(self.file, self.layout, self.texts, report, rows):
            codes, labels = _series(table, self.layout)
            yield Piece(table.to_native(), np.array([self.numbers[label] for label in labels], np.int64)[codes])

    def read(self, table: Any) -> Streams:
        """Rows of whole series as streams, in the same way as all others of this file."""
        return self.layout.read(table, self.reading)


def scan(
    file: AbstractTable,
    layout: Layout,
    reading: Reading = Reading(),
    *,
    epoch: str | None = None,
    report: Report = quiet,
    rows: int = PIECE,
) -> Scan:
    """Look through a table, `rows` rows at a time. With `epoch`, stamps are numbers that count these since 1970.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from logcde.streams.files import open_table
    >>> from logcde.streams.files import Layout
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("series,time,channel,value\\np,0,b,1\\nq,1,a,2\\np,4,a,\\n")
    ...     found = scan(open_table(Path(folder, "a.csv")), Layout.long())
    >>> found.schema.channels, found.sizes.tolist(), found.missing, found.reading.horizon
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
        raise TableError(f"{file.path} has columns but no rows with a series. There is nothing to read.")
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
        reading=_settled(seen, layout, reading),
    )


class _Seen:
    """What is known so far."""

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
        """Rows without value, by channel."""
        if self.layout.channel is None:
            for name, count in zip(self.layout.values, gone.sum(axis=0).tolist(), strict=True):
                self.missing[name] += count
            return
        codes, labels = encode_column(table[self.layout.channel], "channel")
        counts = np.bincount(codes[gone[:, 0]], minlength=len(labels))
        for name, count in zip(labels.tolist(), counts.tolist(), strict=True):
            self.missing[name] = self.missing.get(name, 0) + count

    def _grow(self, dtype: np.dtype) -> None:
        """Room for all series, and again as much, so that it need not be made often."""
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
    """Labelled rows, with the numbers of the first row of each piece and of the first after it."""
    start = 0
    for piece in file.pieces(layout.columns, layout.values, rows):
        table = nw.from_native(texts(piece), eager_only=True)
        yield start, start + len(piece), labelled(table, layout.labels, layout.values, start)
        start += len(piece)
        report(len(piece))


def _series(table: nw.DataFrame, layout: Layout) -> tuple[Shaped[np.ndarray, "row"], list]:
    """Codes of series, and what they stand for."""
    if layout.series is None:
        return np.zeros(len(table), np.int64), [0]
    encoded = encode_column(table[layout.series], "series")
    return encoded.codes, encoded.labels.tolist()


def _settled(seen: _Seen, layout: Layout, reading: Reading) -> Reading:
    """How to read any part: with the channels, the clock and the horizon of the whole."""
    ids = id_array(list(seen.numbers))
    known = np.flatnonzero(seen.low[: len(ids)] <= seen.high[: len(ids)])
    extremes = np.concatenate([seen.low[known], seen.high[known]])
    if seen.stamps.array.dtype.kind != "f":
        extremes = extremes.view(seen.stamps.array.dtype)
    stamps = Stamps(extremes, seen.stamps.zone)
    timing = time_rows(stamps, np.tile(known, 2), np.ones(len(stamps.array), bool), ids, reading.clock)
    schema = Schema(_channels(seen, layout), timing.clock)
    horizon = reading.horizon
    if horizon is None:
        horizon = float(check_horizon(None, timing.times, Places(ids, schema, timing.origins))[0])
    own = isinstance(timing.clock, DatetimeClock) and timing.clock.origin is None
    options = ClockOptions(None, reading.clock.origin if own else Earliest(), timing.clock)
    return dataclasses.replace(reading, horizon=horizon, schema=schema, clock=options)


def _channels(seen: _Seen, layout: Layout) -> tuple[str, ...]:
    """The names of channels, in the order that `Streams.from_frame` gives them."""
    if layout.channels is not None:
        return layout.channels
    return tuple(str(name) for name in sorted(seen.missing))


MOST_FILES = 200
"""Temporary files that are open at once; systems allow about a thousand."""


def all_streams(scan: Scan, report: Report = quiet) -> Streams:
    """Everything in memory."""
    tables = [piece.table for piece in scan.pieces(report)]
    return scan.read(arrow().concat_tables(tables))


def some_streams(
    scan: Scan, folder: Path, report: Report = quiet, *, group: int = 500_000
) -> Generator[Streams, None, None]:
    """Whole series, about `group` rows of them at a time; `folder` is for temporary files.

    >>> import tempfile
    >>> from logcde.streams.files import open_table
    >>> from logcde.streams.files import Layout
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
    """Neighbouring series in groups: the number of the group of each."""
    before = np.cumsum(sizes) - sizes
    rows = max(rows, int(sizes.sum()) // MOST_FILES + 1)
    return np.unique(before // rows, return_inverse=True)[1].astype(np.int64)


def _passing(scan: Scan, groups: np.ndarray, report: Report, rows: int) -> Iterator[Streams]:
    """Groups that follow each other in the file."""
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
    """Groups that are scattered over the file, by way of one temporary file for each."""
    ipc = arrow().ipc
    with tempfile.TemporaryDirectory(prefix=".logcde-", dir=folder) as place:
        files = [Path(place, f"{group}.arrow") for group in range(groups[-1] + 1)]
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
                f"{folder} failed: {error.strerror or error}. Make room there, or sort the table by series."
            ) from error
        for file in files:
            with ipc.open_stream(str(file)) as reader:
                table = reader.read_all()
            file.unlink()
            yield scan.read(table)


def _runs(table: Any, groups: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Neighbouring rows of one group."""
    starts = np.append(0, np.flatnonzero(np.diff(groups)) + 1)[: len(groups)]
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(groups)], strict=False):
        yield int(groups[start]), table.slice(start, stop - start)
