"""Streams of a file, some series at a time, in memory that does not grow with the file.

`scan` passes over the file once, to find what every part must share: the channels, the clock, the horizon, and where in
the file each series is. It keeps no rows, and of each series its id and a few numbers. `some_streams` then reads groups
of whole series, in the order of their first rows; together they equal the streams of reading the file at once. A file
whose series are scattered, such as one sorted by time, is first split into temporary files, one for each group.
"""

import contextlib
import dataclasses
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64

from logcde._files import scratch_folder
from logcde.errors import TableError
from logcde.streams.file_summary import Layout as Layout
from logcde.streams.file_summary import Report as Report
from logcde.streams.file_summary import Summary, read_pieces, series_codes, settled, summarise
from logcde.streams.file_summary import quiet as quiet
from logcde.streams.files import PIECE, AbstractTable
from logcde.streams.frames import arrow
from logcde.streams.ingest import ReadOptions
from logcde.streams.schema import Schema
from logcde.streams.streams import Streams
from logcde.streams.texts import Texts


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
        for _, _, table in read_pieces(self.file, self.layout, self.texts, report, rows):
            codes, labels = series_codes(table, self.layout)
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
    seen = summarise(file, layout, epoch=epoch, report=report, rows=rows)
    return scan_of(file, layout, seen, settled(seen, layout, options))


def scan_of(
    file: AbstractTable, layout: Layout, seen: Summary, options: ReadOptions, texts: Texts | None = None
) -> Scan:
    """The scan of a file from its summary.

    Args:
        file: The file.
        layout: The meaning of its columns.
        seen: Its summary.
        options: How to read any part of it.
        texts: The types of its columns of text, where those of the file alone are not meant.
    """
    return Scan(
        file=file,
        layout=layout,
        texts=seen.texts if texts is None else texts,
        numbers=seen.numbers,
        rows=seen.rows,
        sizes=seen.sizes,
        first=seen.first,
        last=seen.last,
        missing={str(name): seen.missing[name] for name in sorted(seen.missing)},
        options=options,
    )


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
