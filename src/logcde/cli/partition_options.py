"""Options that partition series into query intervals, and the reader of tables of query times."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from logcde.cli.table import TableOptions, read_length
from logcde.errors import TableError, Where

if TYPE_CHECKING:
    from logcde.streams import Partition, Streams
    from logcde.streams.clock import Clock
    from logcde.streams.file_scan import Scan

PartitionRule: TypeAlias = "Callable[[Streams], tuple[Streams, Partition]]"
"""From some series to those of them that have queries, and their partition."""
QueryTimes: TypeAlias = "Callable[[Streams], tuple[Streams, list[np.ndarray]]]"
"""From some series to those of them that have queries, and the query times of each."""


@dataclasses.dataclass(frozen=True)
class PartitionOptions:
    """Query intervals; by default each series is one interval."""

    every: str | None = None
    """Intervals of this length: a number in units of time, or a duration such as 90min. The last may be shorter."""
    intervals: int | None = None
    """This many intervals of equal length, from the start to the horizon."""
    events: int | None = None
    """Intervals of this many events."""
    calendar: Literal["hour", "day", "week", "month", "quarter", "year"] | None = None
    """Calendar intervals, in the time zone of the stamps."""
    at: Path | None = None
    """Table of query times, with columns named as in FILE: intervals end at these times."""

    def rule(self, table: TableOptions, scan: "Scan") -> PartitionRule:
        """The partition that the options select, for groups of series of the scanned table."""
        from logcde.streams import Calendar, Partition

        given = [field.name for field in dataclasses.fields(self) if getattr(self, field.name) is not None]
        if len(given) > 1:
            raise TableError(f"--{given[0]} and --{given[1]} exclude each other.", "Leave one of them out.")
        if self.at is not None:
            return _at_query_times(self.at, table, scan)
        if self.every is not None:
            partition = every_partition(self.every, scan.schema.clock)
        elif self.events is not None:
            partition = Partition.every_events(self.events)
        elif self.calendar is not None:
            partition = Partition.calendar(Calendar[self.calendar.upper()])
        else:
            partition = Partition.uniform(1 if self.intervals is None else self.intervals)
        return lambda streams: (streams, partition)


def every_partition(text: str, clock: "Clock") -> "Partition":
    """Intervals of the length that --every gives."""
    from logcde.streams import NumericClock, Partition

    length = read_length(text, "--every")
    if isinstance(length, timedelta) and isinstance(clock, NumericClock):
        raise TableError(
            f"--every is {text!r}, but the stamps are plain numbers of unknown unit.", "Give a number in their unit."
        )
    return Partition.every(length)


def read_query_times(file: Path, table: TableOptions, scan: "Scan") -> QueryTimes:
    """Query times from a table, which is read into memory, for groups of series of the scanned table.

    Without a series column the query times hold for all series. A query at the start of a series is left out.
    """
    stamps = _read_stamps(file, table, isinstance(next(iter(scan.numbers)), str))
    if isinstance(stamps, Mapping):
        unknown = next((key for key in stamps if key not in scan.numbers), None)
        if unknown is not None:
            raise TableError(
                f"{file} has query times of the series {unknown!r}, which is not in {scan.file.path}.",
                "Leave them out, or check that both tables write ids in the same way.",
                where=Where(series=unknown),
            )

    def query_times(streams: "Streams") -> "tuple[Streams, list[np.ndarray]]":
        clock = streams.schema.clock
        if isinstance(stamps, Mapping):
            streams = streams[np.array([key in stamps for key in streams.ids.tolist()], bool)]
        found = []
        for place, key in enumerate(streams.ids.tolist()):
            own = stamps[key] if isinstance(stamps, Mapping) else stamps
            origins = None if streams.origins is None else streams.origins[place : place + 1]
            times = np.unique(clock.times(own, origins))
            found.append(times[times != 0])
        return streams, found

    return query_times


def _at_query_times(file: Path, table: TableOptions, scan: "Scan") -> PartitionRule:
    from logcde.streams.partition import at_times

    query_times = read_query_times(file, table, scan)

    def rule(streams: "Streams") -> "tuple[Streams, Partition]":
        streams, times = query_times(streams)
        return streams, at_times([np.append(0.0, one) for one in times])

    return rule


def _read_stamps(file: Path, table: TableOptions, text: bool) -> Any:
    """Stamps by series id, or one set of stamps for all series; ids stay text if those of the series are `text`."""
    import narwhals as nw

    from logcde.streams.clock import Stamps
    from logcde.streams.files import open_tables
    from logcde.streams.frames import arrow, read_column
    from logcde.streams.labels import encode_column
    from logcde.streams.ragged import offsets_of, stable_order
    from logcde.streams.schema import missing
    from logcde.streams.texts import Texts

    opened = open_tables(file)
    if table.time not in opened.types:
        raise TableError(f"{file}: {missing(table.time, tuple(opened.types))}")
    labels = [table.series] if table.series in opened.types and not table.single else []
    pieces = list(opened.pieces([*labels, table.time], []))
    if not pieces:
        raise TableError(f"{file} has no rows.", "Give at least one query time.")
    texts = Texts(() if text else labels, table.time, table.epoch)
    frame = nw.from_native(texts(arrow().concat_tables(pieces)), eager_only=True)
    stamps = read_column(frame[table.time])
    if stamps.missing.any():
        raise TableError(f"Row {int(np.argmax(stamps.missing))} of {file} has no query time.", "Leave it out.")
    if not labels:
        return stamps
    codes, ids = encode_column(frame[table.series], "series")
    order, offsets = stable_order(codes, len(ids)), offsets_of(np.bincount(codes, minlength=len(ids)))
    ends = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    each = (Stamps(stamps.array[order[start:stop]], stamps.zone) for start, stop in ends)
    return dict(zip(ids.tolist(), each, strict=True))
