"""The options that say how to read a table in a file: one set, shared by all commands that read one."""

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from logcde.errors import LogcdeError, TableError

if TYPE_CHECKING:
    from logcde.streams import Schema
    from logcde.streams.file_scan import Layout, Report, Scan

UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
OPTIONS = {
    "pass sort=True": "pass --sort",
    "duplicates=KeepLast() or duplicates=Average()": "--duplicates last or --duplicates mean",
    "or pass empty=Drop() to leave out all such series, or empty=Keep() to keep them": "or pass "
    "--drop-empty to do so here",
    "Pass horizon=": "Pass --horizon",
    "Pass origin=": "Pass --origin",
    "origin=FirstStamp()": "--origin first",
    "Give a later horizon": "Give a later --horizon",
    "give the streams a later horizon": "give a later --horizon",
    "or give an earlier origin": "or, for datetimes, give an earlier --origin",
    "Turn them into datetimes": "If they count from 1970, turn them into datetimes with --epoch",
    "Leave out the epoch": "Leave out --epoch",
    "Choose other columns of values": "Choose the columns of values with --channels",
    "Leave such channels out": "Leave such channels out: name the others with --channels",
    "pass overwrite=True": "pass --overwrite",
    "Remove the folder to train from the start": "Pass --fresh to train from the start",
    "or another folder to train anew": "or pass --fresh to train anew",
    "Use Partition.every, or make the streams from datetimes": "Use --every, or a table with datetimes",
}
"""What errors advise in Python, and the same on the command line."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Which file, and what its columns mean."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """A table, Parquet or CSV: long, one observation in each row, or wide, one stamp in each row."""
    series: str = "series"
    """Column of series ids."""
    single: bool = False
    """There is no such column: all rows are one series."""
    time: str = "time"
    """Column of stamps: numbers, datetimes, durations, or text in ISO 8601."""
    channel: str | None = None
    """Long tables: column of channel names. Without this option a table is long if it has columns channel and value."""
    value: str | None = None
    """Long tables: column of values; missing or NaN is not observed."""
    channels: tuple[str, ...] = ()
    """Wide tables: columns of values, by default all that are left. Long tables: names of all channels, in order."""
    horizon: str | None = None
    """Up to where series are looked at: a number, a duration such as 48h or a datetime; by default the latest stamp, in
    training a usual gap after the last stamp of each series."""
    origin: str | None = None
    """Where datetimes count from: "earliest" of the table, "first" of each series, or a datetime; by default
    "earliest", and in training "first"."""
    unit: str | None = None
    """What datetimes and durations are counted in, such as 1min; by default 1h."""
    epoch: Literal["s", "ms", "us", "ns"] | None = None
    """The stamps are numbers that count these since 1970: take them as datetimes."""
    sort: bool = False
    """Put rows whose stamps go back in order, instead of refusing them."""
    duplicates: Literal["refuse", "last", "mean"] = "refuse"
    """Different values of one channel at one stamp: refuse them, keep the last, or take the mean."""
    drop_empty: bool = False
    """Leave out series without a single observation, instead of refusing them."""

    def scan(
        self,
        report: "Report | None" = None,
        *,
        apart: tuple[str, ...] = (),
        schema: "Schema | None" = None,
        origin: Any = None,
    ) -> "Scan":
        """Look through the file once.

        Columns that are kept `apart` hold no values of channels unless they are named. Series of other tables are read
        with their `schema`, and count from their `origin`.
        """
        from logcde.streams import NumericClock
        from logcde.streams.file_scan import quiet, scan
        from logcde.streams.files import open_table
        from logcde.streams.ingest import ReadOptions
        from logcde.streams.rows import Average, Drop, Forbid, KeepLast

        file = open_table(self.file)
        horizon = None if self.horizon is None else read_moment(self.horizon, "--horizon")
        unit = None if self.unit is None else read_duration(self.unit, "--unit")
        rules = {"refuse": Forbid(), "last": KeepLast(), "mean": Average()}
        empty = Drop() if self.drop_empty else Forbid()
        duplicates = rules[self.duplicates]
        begin = self._origin() if schema is None else (origin or _free_origin(schema))
        unit = unit if schema is None else None
        reading = ReadOptions.of(horizon, schema, unit, begin, self.sort, duplicates, empty)
        layout = self.layout(file.types, apart)
        found = scan(file, layout, reading, epoch=self.epoch, report=report or quiet)
        if isinstance(found.schema.clock, NumericClock) and not isinstance(horizon, float | None):
            raise TableError(f"--horizon is {self.horizon!r}, but the stamps are plain numbers. Give a number as well.")
        return found

    def layout(self, types: Mapping[str, Any], apart: tuple[str, ...] = ()) -> "Layout":
        """What the columns mean; refused if they are not there or do not hold numbers."""
        from logcde.streams.file_scan import Layout

        series = None if self.single else self.series
        named = self.channel is not None or self.value is not None
        if named or (not self.channels and {"channel", "value"} <= set(types)):
            channel, value = self.channel or "channel", self.value or "value"
            layout = Layout.long(series, self.time, channel, value, self.channels or None)
            wanted = {"series": series, "time": self.time, "channel": channel, "value": value}
        else:
            rest = tuple(name for name in types if name not in (series, self.time, *apart))
            layout = Layout.wide(self.channels or rest, series, self.time)
            wanted = {"series": series, "time": self.time}
        _check(wanted, layout, types)
        return layout

    def _origin(self) -> Any:
        from logcde.streams.rows import Earliest, FirstStamp

        if self.origin in (None, "earliest", "first"):
            return FirstStamp() if self.origin == "first" else Earliest()
        moment = read_moment(self.origin, "--origin")
        if not isinstance(moment, datetime):
            raise TableError(f'--origin is {self.origin!r}. Give "earliest", "first" or a datetime in ISO 8601.')
        return moment


def _free_origin(schema: "Schema") -> Any:
    """Where series count from that are read like earlier ones: from where these did, or each from its own start."""
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.rows import Earliest, FirstStamp

    return FirstStamp() if isinstance(schema.clock, DatetimeClock) and schema.clock.origin is None else Earliest()


def _check(wanted: dict[str, str | None], layout: "Layout", types: Mapping[str, Any]) -> None:
    """Refuse columns that are not there, that are used twice, or that cannot hold values."""
    from logcde.streams.files import not_numbers
    from logcde.streams.frames import arrow
    from logcde.streams.schema import missing

    hints = {name: f" Name the right one with --{name}." for name in wanted}
    hints["series"] = " Name the column of series ids with --series, or pass --single if all rows are one series."
    for name, column in wanted.items():
        if column is not None and column not in types:
            raise TableError(missing(column, tuple(types)) + hints[name])
    for column in layout.values:
        if column not in types:
            raise TableError(missing(column, tuple(types)) + " Name columns of values with --channels.")
        known = arrow().types
        numeric = (known.is_integer, known.is_floating, known.is_boolean, known.is_decimal, known.is_null)
        if not any(kind(types[column]) for kind in numeric):
            raise not_numbers(column, f"values of type {types[column]}")
    twice = next((column for column, times in Counter(layout.columns).items() if times > 1), None)
    if twice is not None:
        raise TableError(f"The column {twice!r} is named for two purposes. Name another for one of them.")
    if not layout.values:
        raise TableError("The table has no columns beside those of series and time: there is nothing to read.")


def read_duration(text: str, option: str) -> timedelta:
    """A duration such as 90s, 1.5h or 7d.

    >>> read_duration("1.5h", "--unit")
    datetime.timedelta(seconds=5400)
    """
    found = re.fullmatch(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(UNITS)})\s*", text)
    length = float(found[1]) * UNITS[found[2]] if found else timedelta(0)
    if not length:
        raise TableError(f"{option} is {text!r}. Give a positive number and one of {', '.join(UNITS)}, such as 90min.")
    return length


def read_length(text: str, option: str) -> float | timedelta:
    """A number, in the units that the stamps have, or a duration.

    >>> read_length("0.5", "--every"), read_length("30min", "--every")
    (0.5, datetime.timedelta(seconds=1800))
    """
    try:
        return float(text)
    except ValueError:
        return read_duration(text, option)


def read_moment(text: str, option: str) -> float | timedelta | datetime:
    """A number, a duration or a datetime in ISO 8601.

    >>> read_moment("2024-03-01T12:30", "--horizon")
    datetime.datetime(2024, 3, 1, 12, 30)
    """
    readers: tuple[Callable[[str], float | timedelta | datetime], ...] = (float, datetime.fromisoformat)
    for reader in readers:
        with contextlib.suppress(ValueError):
            return reader(text)
    try:
        return read_duration(text, option)
    except TableError:
        raise TableError(
            f"{option} is {text!r}. Give a number, a duration such as 90min, or a datetime in ISO 8601, such as "
            "2024-03-01T12:30:00."
        ) from None


@contextlib.contextmanager
def in_options(also: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let errors advise what can be done on the command line; `also` has further words, and what to say instead."""
    try:
        yield
    except LogcdeError as error:
        message = str(error)
        for python, option in (OPTIONS | dict(also or {})).items():
            message = message.replace(python, option)
        raise TableError(message) from error
