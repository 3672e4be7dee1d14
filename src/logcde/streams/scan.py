"""One pass over a table in a file: what must be known of the whole before any part of it can be read as streams.

That is the channels, the clock, the horizon, and where in the file each series is. Of the rows nothing is kept, of each
series its id and a few numbers.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Int64, Shaped

from logcde.errors import TableError
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.encode import encode_column
from logcde.streams.faults import check_horizon
from logcde.streams.files import PIECE, AbstractTable
from logcde.streams.frames import labelled, read_column
from logcde.streams.labels import id_array
from logcde.streams.layout import Layout
from logcde.streams.places import Places
from logcde.streams.policies import Earliest
from logcde.streams.reading import Reading
from logcde.streams.schema import Schema
from logcde.streams.streams import Streams
from logcde.streams.texts import Restart, Texts
from logcde.streams.timing import ClockOptions, time_rows

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
    >>> from logcde.streams.layout import Layout
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
