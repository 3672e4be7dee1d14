"""Streams of a file, some series at a time, in memory that does not grow with the file.

Series stay whole. They come in the order of their first row, and together they are what reading all at once gives. A
file whose series are scattered, such as one sorted by time, is first written out again to temporary files, one for
each group of series.
"""

import contextlib
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from logcde.errors import TableError
from logcde.streams.backends import arrow
from logcde.streams.files import PIECE
from logcde.streams.scan import Report, Scan, quiet
from logcde.streams.streams import Streams

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
    >>> from logcde.streams.layout import Layout
    >>> from logcde.streams.scan import scan
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
