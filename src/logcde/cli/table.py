"""How to read a table: one group of options for all commands that read one."""

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.streams import Schema
    from logcde.streams.file_scan import Layout, Report, Scan
    from logcde.streams.ingest import ReadOptions

UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """How to read the table."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Table of observations, Parquet or CSV: long (one observation per row) or wide (one stamp per row).
    Also a folder of such files, a pattern in quotation marks such as 'vitals/*.parquet', or a URL that fsspec opens."""
    series: str = "series"
    """Column of series ids."""
    single: bool = False
    """The table has no such column: all rows are one series."""
    time: str = "time"
    """Column of stamps: numbers, datetimes, durations, or text in ISO 8601."""
    channel: str | None = None
    """Long tables: column of channel names. By default a table is long if it has columns named channel and value."""
    value: str | None = None
    """Long tables: column of values. Missing and NaN mean not observed."""
    channels: tuple[str, ...] = ()
    """Wide tables: value columns, by default all other columns. Long tables: all channel names, in order."""
    horizon: str | None = None
    """End of the observation window: a number, a duration such as 48h, or a datetime.
    By default the latest stamp; in training, one typical gap after the last stamp of each series."""
    origin: str | None = None
    """Where time counts from: the "earliest" stamp of the table, the "first" of each series, a datetime or a number.
    By default "earliest", in training "first"; and 0 for numbers that begin near it."""
    unit: str | None = None
    """Unit of time for datetimes and durations, such as 1min; by default 1h."""
    epoch: Literal["s", "ms", "us", "ns"] | None = None
    """Stamps are numbers in this unit since 1970: convert them to datetimes."""
    sort: bool = False
    """Sort rows by time, instead of refusing stamps that go back."""
    duplicates: Literal["refuse", "last", "mean"] = "refuse"
    """Different values of one channel at one stamp: refuse them, keep the last, or take the mean."""
    drop_empty: bool = False
    """Drop series without observations, instead of refusing them."""

    def scan(
        self,
        report: "Report | None" = None,
        *,
        exclude: tuple[str, ...] = (),
        schema: "Schema | None" = None,
        origin: Any = None,
    ) -> "Scan":
        """Read the file once to find its series, channels and clock, without keeping observations.

        Args:
            report: Called with the number of rows read since the last call.
            exclude: Columns of a wide table that are not channels, unless `channels` names them.
            schema: Schema of a trained model, to read the table as that of training.
            origin: The origin, where `--origin` is not given; with a schema, that of each series.
        """
        from logcde.streams import NumericClock
        from logcde.streams.file_scan import quiet, scan
        from logcde.streams.files import open_tables

        file = open_tables(self.file)
        reading = self.reading(schema, origin)
        layout = self.layout(file.types, exclude, trained=schema is not None)
        found = scan(file, layout, reading, epoch=self.epoch, report=report or quiet)
        if isinstance(found.schema.clock, NumericClock) and not isinstance(reading.horizon, float | None):
            raise TableError(f"--horizon is {self.horizon!r}, but the stamps are plain numbers.", "Give a number.")
        return found

    def reading(self, schema: "Schema | None" = None, origin: Any = None) -> "ReadOptions":
        """How to read series, as far as it is known before the table is; arguments as of `scan`."""
        from logcde.streams.ingest import ReadOptions
        from logcde.streams.rows import Average, Drop, Forbid, KeepLast
        from logcde.streams.stamps import OPEN_END

        horizon = None if self.horizon is None else read_moment(self.horizon, "--horizon")
        if horizon is None and schema is not None:
            horizon = OPEN_END  # estimators choose where further series end
        unit = None if self.unit is None else read_duration(self.unit, "--unit")
        rules = {"refuse": Forbid(), "last": KeepLast(), "mean": Average()}
        empty = Drop() if self.drop_empty else Forbid()
        begin = (origin or self._origin()) if schema is None else _origin_of_further(schema, origin)
        unit = unit if schema is None else None
        return ReadOptions.of(horizon, schema, unit, begin, self.sort, rules[self.duplicates], empty)

    def layout(self, types: Mapping[str, Any], exclude: tuple[str, ...] = (), *, trained: bool = False) -> "Layout":
        """The roles of the columns.

        Args:
            types: Types of all columns, by name.
            exclude: Columns of a wide table that are not channels, unless `channels` names them.
            trained: The channels are those of a trained model.

        Raises:
            TableError: If a column is missing, has two roles, or cannot hold values.
        """
        from logcde.streams.file_scan import Layout

        series = None if self.single else self.series
        named = self.channel is not None or self.value is not None
        if named or (not self.channels and {"channel", "value"} <= set(types)):
            channel, value = self.channel or "channel", self.value or "value"
            layout = Layout.long(series, self.time, channel, value, self.channels or None)
            wanted = {"series": series, "time": self.time, "channel": channel, "value": value}
        else:
            rest = tuple(name for name in types if name not in (series, self.time, *exclude))
            layout = Layout.wide(self.channels or rest, series, self.time)
            wanted = {"series": series, "time": self.time}
        _check_columns(wanted, layout, types, trained)
        return layout

    def _origin(self) -> Any:
        from logcde.streams.rows import Earliest, FirstStamp

        if self.origin in (None, "earliest", "first"):
            return FirstStamp() if self.origin == "first" else Earliest()
        moment = read_moment(self.origin, "--origin")
        if isinstance(moment, timedelta):
            raise TableError(
                f"--origin is {self.origin!r}.", 'Give "earliest", "first", a datetime in ISO 8601 or a number.'
            )
        return moment


def _origin_of_further(schema: "Schema", given: Any) -> Any:
    """The origin of further series: that of the schema's clock, or if it has none, as given or their first stamps."""
    from logcde.streams.rows import Earliest, FirstStamp

    return (given or FirstStamp()) if schema.clock.per_series else Earliest()


def _check_columns(wanted: Mapping[str, str | None], layout: "Layout", types: Mapping[str, Any], trained: bool) -> None:
    from logcde.streams.files import not_numbers
    from logcde.streams.frames import arrow
    from logcde.streams.schema import missing

    remedies = {name: f"Name the right one with --{name}." for name in wanted}
    remedies["series"] = "Name the column of series ids with --series, or pass --single if all rows are one series."
    for name, column in wanted.items():
        if column is not None and column not in types:
            raise TableError(missing(column, tuple(types)), remedies[name])
    rename = "It is a channel of the model: rename the column that holds it, or add an empty one."
    for column in layout.values:
        if column not in types:
            raise TableError(
                missing(column, tuple(types)), rename if trained else "Name the value columns with --channels."
            )
        known = arrow().types
        numeric = (known.is_integer, known.is_floating, known.is_boolean, known.is_decimal, known.is_null)
        if not any(kind(types[column]) for kind in numeric):
            raise not_numbers(column, f"values of type {types[column]}")
    twice = next((column for column, times in Counter(layout.columns).items() if times > 1), None)
    if twice is not None:
        raise TableError(f"The column {twice!r} is named for two purposes.", "Name another for one of them.")
    if not layout.values:
        raise TableError(
            "The table has no columns besides those of series and time.", "Add at least one column of values."
        )


def read_duration(text: str, option: str) -> timedelta:
    """Parse a duration such as 90s, 1.5h or 7d; errors name the option.

    >>> read_duration("1.5h", "--unit")
    datetime.timedelta(seconds=5400)
    """
    found = re.fullmatch(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(UNITS)})\s*", text)
    try:
        length = float(found[1]) * UNITS[found[2]] if found else timedelta(0)
    except OverflowError:
        raise TableError(f"{option} is {text!r}, which is too long.", "Give at most 999999999d.") from None
    if not length:
        raise TableError(
            f"{option} is {text!r}.", f"Give a positive number and one of {', '.join(UNITS)}, such as 90min."
        )
    return length


def read_length(text: str, option: str) -> float | timedelta:
    """Parse a number, in the units of the stamps, or a duration.

    >>> read_length("0.5", "--every"), read_length("30min", "--every")
    (0.5, datetime.timedelta(seconds=1800))
    """
    try:
        return float(text)
    except ValueError:
        return read_duration(text, option)


def read_moment(text: str, option: str) -> float | timedelta | datetime:
    """Parse a number, a duration, or a datetime in ISO 8601.

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
            f"{option} is {text!r}.",
            "Give a number, a duration such as 90min, or a datetime in ISO 8601, such as 2024-03-01T12:30:00.",
        ) from None
