"""Which data-frame library to use where the user has not said.

Data frames as input: any that narwhals takes (pandas, polars, pyarrow, modin, ...), long or wide, and files.

This module picks columns and turns labels into codes; what is wrong with the rows, `ingest` finds out.

Streams go back out as the long table that they are.
"""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool

from logcde.errors import StreamError, TableError
from logcde.streams.arrays import Reading, read_rows, read_table
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.columns import AbstractStreams
from logcde.streams.faults import more, name
from logcde.streams.ingest import Columns
from logcde.streams.labels import Encoded, as_numbers, channel_codes, encode_column, id_array, schema_for
from logcde.streams.ragged import owners
from logcde.streams.schema import Bracket, Term, missing, names_of
from logcde.streams.stamps import read_stamps, zone_name

KNOWN = ("polars", "pandas", "pyarrow")


def default_backend() -> ModuleType:
    """The first of polars, pandas and pyarrow that is installed; imported here and not before.

    >>> default_backend().__name__
    'polars'
    """
    for library in KNOWN:
        if importlib.util.find_spec(library):
            return importlib.import_module(library)
    raise StreamError(
        "No data-frame library is installed. Install one of polars, pandas and pyarrow: pip install logcde[frames]."
    )


def arrow() -> ModuleType:
    """pyarrow, with its parts for Parquet, CSV and computing; imported here and not before.

    >>> arrow().parquet.__name__
    'pyarrow.parquet'
    """
    try:
        for part in ("compute", "csv", "parquet"):
            importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise TableError(
            'Reading and writing files of tables needs pyarrow, which is not installed: pip install "logcde[frames]".'
        ) from error


def read_long(
    frame: Any,
    series: str | None,
    time: str,
    channel: str,
    value: str,
    channels: Sequence[str] | None,
    terms: Mapping[str, Bracket],
    reading: Reading,
) -> Columns:
    """One observation in each row."""
    made = _terms(terms, reading)
    table = _select(frame, [series, time, channel, value, *(term.name for term in made)])
    table = labelled(table, [series, channel], [value, *(term.name for term in made)])
    codes, ids = _series(table, series)
    names = encode_column(table[channel], "channel")

    def place(at: tuple[int, ...]) -> str:
        row = at[0]
        label = names.labels[names.codes[row]]
        return f"Series {name(ids[codes[row]])}, channel {label!r}, at {table[time][row]}"

    if channels is None and reading.schema is None:
        channels = _natural_order(table[channel], names)
    labels = [str(label) for label in names.labels]
    schema, where = channel_codes(names.codes, labels, channels, made, reading.schema, place)
    stamps = read_column(table[time])
    numbers = as_numbers(_numbers(table[value]), place)
    extra = [as_numbers(_numbers(table[term.name]), place) for term in made]
    stacked = np.stack(extra, axis=1) if extra else np.empty((len(numbers), 0))
    return read_rows(stamps, codes, where, numbers, stacked, ids, schema, reading)


def read_wide(
    frame: Any,
    series: str | None,
    time: str,
    channels: Sequence[str] | None,
    terms: Mapping[str, Bracket],
    reading: Reading,
) -> Columns:
    """One event in each row, one channel in each column."""
    made = _terms(terms, reading)
    if channels is None:
        taken = {series, time, *(term.name for term in made)}
        channels = reading.schema.channels if reading.schema else [c for c in _eager(frame).columns if c not in taken]
    channels = names_of(channels)
    table = _select(frame, [series, time, *channels, *(term.name for term in made)])
    table = labelled(table, [series], [*channels, *(term.name for term in made)])
    codes, ids = _series(table, series)
    schema = schema_for(channels, len(channels), made, reading.schema)

    def column(label: str) -> np.ndarray:
        return as_numbers(
            _numbers(table[label]),
            lambda at: f"Series {name(ids[codes[at[0]]])}, channel {label!r}, at {table[time][at[0]]}",
        )

    values = np.empty((len(codes), len(channels)))
    for index, label in enumerate(channels):
        values[:, index] = column(label)
    extra = [column(term.name) for term in made]
    stacked = np.stack(extra, axis=1) if extra else np.empty((len(codes), 0))
    return read_table(read_column(table[time]), codes, values, stacked, ids, schema, reading)


def read_csv(path: str | Path, time: str, backend: ModuleType | None) -> nw.DataFrame:
    """A CSV file. Stamps that are text are read as ISO 8601 datetimes."""
    frame = nw.read_csv(str(path), backend=backend or default_backend())
    if time in frame.columns and frame[time].dtype == nw.String:
        try:
            frame = frame.with_columns(nw.col(time).str.to_datetime())
        except Exception as error:
            raise StreamError(
                f"The column {time!r} of {str(path)!r} is text, but not datetimes in ISO 8601, such as "
                "2024-03-01T12:30:00. Read the file yourself, parse the column, and use Streams.from_frame."
            ) from error
    return frame


def read_parquet(path: str | Path, backend: ModuleType | None) -> nw.DataFrame:
    """A Parquet file."""
    return nw.read_parquet(str(path), backend=backend or default_backend())


def read_column(column: nw.Series) -> Stamps:
    """Stamps of a column, with their zone."""
    dtype = column.dtype
    stamps = read_stamps(_numbers(column) if dtype.is_numeric() else column.to_numpy())
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        return Stamps(stamps.array, zone_name(dtype.time_zone))
    return stamps


def _eager(frame: Any) -> nw.DataFrame:
    try:
        wrapped = nw.from_native(frame)
    except TypeError as error:
        raise StreamError(
            f"{type(frame).__name__} is no data frame that narwhals knows. Convert it to pandas, polars or pyarrow; "
            "arrays go through Streams.from_arrays or Streams.from_dense."
        ) from error
    return wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped


def _select(frame: Any, columns: Sequence[str | None]) -> nw.DataFrame:
    table = _eager(frame)
    wanted = [column for column in columns if column is not None]
    for column in wanted:
        if column not in table.columns:
            raise StreamError(missing(column, table.columns))
    return table.select(list(dict.fromkeys(wanted)))


def labelled(table: nw.DataFrame, labels: Sequence[str | None], values: Sequence[str], first: int = 0) -> nw.DataFrame:
    """Rows that say what they belong to. A row without value needs no label; one with a value does.

    `first` is the number of the first row, where the table is a piece of a larger one.
    """
    for label in labels:
        if label is None or not table[label].null_count():
            continue
        unlabelled = table[label].is_null().to_numpy().astype(bool)
        empty = np.ones(len(unlabelled), bool)
        for value in values:
            empty &= unobserved(table[value])
        bad = np.flatnonzero(unlabelled & ~empty)
        if bad.size:
            row = table.row(int(bad[0]))
            found = ", ".join(f"{column} = {item}" for column, item in zip(table.columns, row, strict=True))
            raise StreamError(
                f"Row {first + bad[0]} has a value but nothing in column {label!r}: {found}{more(len(bad) - 1)}. "
                "Fill it in, or leave out the row."
            )
        table = table.filter(~nw.col(label).is_null())
    return table


def unobserved(column: nw.Series) -> Bool[np.ndarray, "row"]:
    """Where a column has no value: nothing, or NaN."""
    nothing = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    return nothing.fill_null(True).to_numpy().astype(bool)


def _series(table: nw.DataFrame, series: str | None) -> tuple[np.ndarray, np.ndarray]:
    if series is None:
        return np.zeros(len(table), np.int64), np.arange(1)
    encoded = encode_column(table[series], "series")
    return encoded.codes, id_array(encoded.labels)


def _natural_order(column: nw.Series, names: Encoded) -> Sequence[str] | None:
    """The order that the column itself gives its channels, if it does."""
    if isinstance(column.dtype, nw.Enum):
        return column.dtype.categories
    return [str(label) for label in np.sort(names.labels)] if column.dtype.is_integer() else None


def _numbers(column: nw.Series) -> np.ndarray:
    """A column as an array that nobody else will write to."""
    array = (column.cast(nw.Float64()) if column.dtype in (nw.Boolean, nw.Decimal) else column).to_numpy()
    # Frames of pandas and its like are mutable; those of polars and pyarrow may be shared.
    return array.copy() if column.implementation.is_pandas_like() else array


def _terms(terms: Mapping[str, Bracket], reading: Reading) -> tuple[Term, ...]:
    if reading.schema is not None and not terms:
        return reading.schema.terms
    return tuple(Term(column, bracket) for column, bracket in terms.items())


def to_long(streams: AbstractStreams, backend: ModuleType) -> Any:
    """A long frame of the backend's own kind: series, time, channel, value, and one column for each term."""
    _check_ids(streams.ids)
    schema = streams.schema
    event, series = owners(streams.obs_offsets), owners(streams.offsets)
    stamps = schema.clock.stamps(streams.times, None if streams.origins is None else streams.origins[series])
    polars = backend.__name__ == "polars"
    if polars and stamps.dtype.kind in "mM" and np.datetime_data(stamps.dtype)[0] == "s":
        # Polars has no seconds; its milliseconds hold the same stamps.
        stamps = stamps.astype(f"{stamps.dtype.name.partition('[')[0]}[ms]")
    columns = {
        "series": streams.ids[series][event],
        "time": stamps[event],
        "channel": np.array(schema.channels, object)[streams.channel],
        "value": streams.value.astype(np.float64, copy=False),
        **{term.name: streams.terms[event, column] for column, term in enumerate(schema.terms)},
    }
    frame = nw.from_dict(columns, backend=backend)
    if backend.__name__ != "pyarrow":
        frame = frame.with_columns(nw.col("channel").cast(nw.Enum(schema.channels)))
    if isinstance(schema.clock, DatetimeClock) and schema.clock.zone is not None:
        frame = frame.with_columns(nw.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(schema.clock.zone))
    return frame.to_native()


def _check_ids(ids: np.ndarray) -> None:
    seen, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise StreamError(
            f"Series {name(seen[counts > 1][0])} is here {counts.max()} times, and a table could not tell the copies "
            "apart. Take each series once."
        )
