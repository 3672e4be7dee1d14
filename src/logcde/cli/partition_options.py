"""The options that say where series are cut into query intervals."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from logcde.cli.table import Table, read_length
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.streams import Partition, Streams
    from logcde.streams.clock import Clock
    from logcde.streams.file_scan import Scan

MOST_INTERVALS = 10_000_000
"""Intervals of one series: more are a mistake in the units of time."""

Cut: TypeAlias = "Callable[[Streams], tuple[Streams, Partition]]"
"""Some series to those of them that are asked about, and where."""


@dataclasses.dataclass(frozen=True)
class Cutting:
    """Into which intervals series are cut; the whole series is one if nothing is given."""

    every: str | None = None
    """Intervals of one length: a number in the units of time, or a duration such as 90min. The last may be shorter."""
    intervals: int | None = None
    """So many intervals of equal length, from the start to the horizon."""
    events: int | None = None
    """Intervals of so many events."""
    calendar: Literal["hour", "day", "week", "month", "quarter", "year"] | None = None
    """Intervals of the calendar, in the time zone of the stamps."""
    at: Path | None = None
    """A table of query times, with columns named as in FILE: intervals end there, the first begins at the start."""

    def cut(self, table: Table, scan: "Scan") -> Cut:
        """The rule that was chosen."""
        from logcde.streams import Calendar, Partition

        given = [field.name for field in dataclasses.fields(self) if getattr(self, field.name) is not None]
        if len(given) > 1:
            raise TableError(f"--{given[0]} and --{given[1]} exclude each other. Leave one of them out.")
        if self.intervals is not None and self.intervals > MOST_INTERVALS:
            raise TableError(f"--intervals is {self.intervals:,}. The most for a series are {MOST_INTERVALS:,}.")
        if self.at is not None:
            return _asked(self.at, table, scan)
        if self.every is not None:
            partition = of_length(self.every, scan.schema.clock)
        elif self.events is not None:
            partition = Partition.every_events(self.events)
        elif self.calendar is not None:
            partition = Partition.calendar(Calendar[self.calendar.upper()])
        else:
            partition = Partition.uniform(1 if self.intervals is None else self.intervals)

        def same(streams: "Streams") -> "tuple[Streams, Partition]":
            _check_number(streams, partition)
            return streams, partition

        return same


def of_length(text: str, clock: "Clock") -> "Partition":
    """Intervals of the length that --every says."""
    from logcde.streams import NumericClock, Partition

    length = read_length(text, "--every")
    if isinstance(length, timedelta) and isinstance(clock, NumericClock):
        raise TableError(
            f"--every is {text!r}, but the stamps are plain numbers, whose unit only you know. Give a number in the "
            "same unit."
        )
    return Partition.every(length)


def _check_number(streams: "Streams", partition: "Partition") -> None:
    """Refuse intervals without end, before there is no memory left for them."""
    from logcde.streams.partition import Every

    if not isinstance(partition, Every) or not len(streams):
        return
    most = int(streams.horizon.argmax())
    number = int(partition.inner(streams.horizon[most : most + 1], streams.schema.clock)[0]) + 1
    if number > MOST_INTERVALS:
        raise TableError(
            f"Series {streams.ids[most]!r} would have {number:,} intervals from 0 to "
            f"{float(streams.horizon[most]):.6g}. Choose longer ones; or if the stamps count from 1970, pass --epoch."
        )


def _asked(file: Path, table: Table, scan: "Scan") -> Cut:
    """Intervals that end at the query times of a table, the first of which begins at the start."""
    from logcde.streams import Partition

    asked = queries_of(file, table, scan)

    def cut(streams: "Streams") -> "tuple[Streams, Partition]":
        streams, times = asked(streams)
        return streams, Partition.at([np.append(0.0, one) for one in times], partial=True)

    return cut


def queries_of(file: Path, table: Table, scan: "Scan") -> "Callable[[Streams], tuple[Streams, list[np.ndarray]]]":
    """Query times after the start from a table, which is in memory as a whole, for those series that have some.

    Without a column of series they are those of all.
    """
    queries = _queries(file, table, isinstance(next(iter(scan.numbers)), str))
    if isinstance(queries, Mapping):
        unknown = next((key for key in queries if key not in scan.numbers), None)
        if unknown is not None:
            raise TableError(
                f"{file} has query times of the series {unknown!r}, which is not in {scan.file.path}. Leave them out, "
                "or see whether the ids are written alike."
            )

    def asked(streams: "Streams") -> "tuple[Streams, list[np.ndarray]]":
        clock = streams.schema.clock
        if isinstance(queries, Mapping):
            streams = streams[np.array([key in queries for key in streams.ids.tolist()], bool)]
        found = []
        for place, key in enumerate(streams.ids.tolist()):
            stamps = queries[key] if isinstance(queries, Mapping) else queries
            origins = None if streams.origins is None else streams.origins[place : place + 1]
            times = np.unique(clock.times(stamps, origins))
            found.append(times[times != 0])
        return streams, found

    return asked


def _queries(file: Path, table: Table, text: bool) -> Any:
    """Stamps of each series, or one set of stamps for all. Ids stay text if those of the series are."""
    import narwhals as nw

    from logcde.streams.clock import Stamps
    from logcde.streams.files import Restart, Texts, open_table
    from logcde.streams.frames import arrow, read_column
    from logcde.streams.labels import encode_column
    from logcde.streams.ragged import offsets_of, stable_order
    from logcde.streams.schema import missing

    opened = open_table(file)
    if table.time not in opened.types:
        raise TableError(f"{file}: {missing(table.time, tuple(opened.types))}")
    labels = [table.series] if table.series in opened.types and not table.single else []
    texts = Texts(() if text else labels, table.time, table.epoch)
    while True:
        try:
            pieces = [texts(piece) for piece in opened.pieces([*labels, table.time], [])]
            break
        except Restart:
            continue
    if not pieces:
        raise TableError(f"{file} has no rows. Give at least one query time.")
    frame = nw.from_native(arrow().concat_tables(pieces), eager_only=True)
    stamps = read_column(frame[table.time])
    if stamps.missing.any():
        raise TableError(f"Row {int(np.argmax(stamps.missing))} of {file} has no query time. Leave it out.")
    if not labels:
        return stamps
    codes, ids = encode_column(frame[table.series], "series")
    order, offsets = stable_order(codes, len(ids)), offsets_of(np.bincount(codes, minlength=len(ids)))
    ends = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    each = (Stamps(stamps.array[order[start:stop]], stamps.zone) for start, stop in ends)
    return dict(zip(ids.tolist(), each, strict=True))
