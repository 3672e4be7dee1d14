"""Data frames as input and output: any that narwhals takes (pandas, polars, pyarrow, modin, ...), long or wide.

This module selects columns and encodes labels; `ingest` checks the rows.
"""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool

from logcde.errors import StreamError, TableError, Where
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.faults import more, name, plain_id
from logcde.streams.ingest import RawRows, ReadOptions, long_rows, wide_rows
from logcde.streams.labels import LARGEST_WHOLE, Encoded, as_numbers, channel_codes, encode_column, id_array, schema_for
from logcde.streams.schema import Bracket, Schema, Term, missing, names_of
from logcde.streams.stamps import read_stamps, zone_name

KNOWN = ("polars", "pandas", "pyarrow")


def default_backend() -> ModuleType:
    """The first of polars, pandas and pyarrow that is installed, imported when this is called.

    >>> default_backend().__name__
    'polars'
    """
    for library in KNOWN:
        if importlib.util.find_spec(library):
            return importlib.import_module(library)
    raise StreamError(
        "No data-frame library is installed.",
        "Install one of polars, pandas and pyarrow: pip install logcde[frames].",
    )


def arrow() -> ModuleType:
    """pyarrow, with its modules for Parquet, CSV and computing, imported when this is called.

    >>> arrow().parquet.__name__
    'pyarrow.parquet'
    """
    try:
        for part in ("compute", "csv", "parquet"):
            importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise TableError(
            "CSV and Parquet files are read and written with pyarrow, which is not installed.",
            'Install it: pip install "logcde[frames]".',
        ) from error


def read_long(
    frame: Any,
    series: str | None,
    time: str,
    channel: str,
    value: str,
    channels: Sequence[str] | None,
    terms: Mapping[str, Bracket],
    options: ReadOptions,
) -> RawRows:
    """Rows of a frame with one observation in each row."""
    made = _terms(terms, options)
    table = _select(frame, [series, time, channel, value, *(term.name for term in made)])
    table = labelled(table, [series, channel], [value, *(term.name for term in made)])
    codes, ids = _series(table, series)
    names = encode_column(table[channel], "channel")

    def place(at: tuple[int, ...]) -> Where:
        row = at[0]
        return Where(plain_id(ids[codes[row]]), str(names.labels[names.codes[row]]), table[time][row])

    if channels is None and options.schema is None:
        channels = _natural_order(table[channel], names)
    labels = [str(label) for label in names.labels]
    schema, channel_code = channel_codes(names.codes, labels, channels, made, options.schema, place)
    stamps = read_column(table[time])
    numbers = as_numbers(_numbers(table[value]), place)
    extra = [as_numbers(_numbers(table[term.name]), place) for term in made]
    stacked = np.stack(extra, axis=1) if extra else np.empty((len(numbers), 0))
    return long_rows(stamps, codes, channel_code, numbers, stacked, ids, schema, options)


def read_wide(
    frame: Any,
    series: str | None,
    time: str,
    channels: Sequence[str] | None,
    terms: Mapping[str, Bracket],
    options: ReadOptions,
) -> RawRows:
    """Rows of a frame with one stamp in each row and one channel in each column."""
    made = _terms(terms, options)
    if channels is None:
        taken = {series, time, *(term.name for term in made)}
        channels = options.schema.channels if options.schema else [c for c in _eager(frame).columns if c not in taken]
    channels = names_of(channels)
    table = _select(frame, [series, time, *channels, *(term.name for term in made)])
    table = labelled(table, [series], [*channels, *(term.name for term in made)])
    codes, ids = _series(table, series)
    schema = schema_for(channels, len(channels), made, options.schema)

    def column(label: str) -> np.ndarray:
        return as_numbers(
            _numbers(table[label]), lambda at: Where(plain_id(ids[codes[at[0]]]), label, table[time][at[0]])
        )

    values = np.empty((len(codes), len(channels)))
    for index, label in enumerate(channels):
        values[:, index] = column(label)
    extra = [column(term.name) for term in made]
    stacked = np.stack(extra, axis=1) if extra else np.empty((len(codes), 0))
    return wide_rows(read_column(table[time]), codes, values, stacked, ids, schema, options)


def read_column(column: nw.Series) -> Stamps:
    """The stamps in a column, with their time zone."""
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
            f"{type(frame).__name__} is no data frame that narwhals knows.",
            "Convert it to pandas, polars or pyarrow; arrays go through Streams.from_arrays or Streams.from_dense.",
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
    """Drop rows without a label and without a value; refuse rows without a label that have a value.

    Args:
        table: Rows of a frame or of a file.
        labels: The columns of series ids and channel names, None where there is none.
        values: The columns of values and terms.
        first: The number of the first row, where the table is a piece of a larger one.
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
                f"Row {first + bad[0]} has a value but nothing in column {label!r}: {found}{more(len(bad) - 1)}.",
                "Fill it in, or leave out the row.",
                where=Where(detail=f"row {first + bad[0]}"),
            )
        table = table.filter(~nw.col(label).is_null())
    return table


def unobserved(column: nw.Series) -> Bool[np.ndarray, "row"]:
    """The mask of missing values, null or NaN."""
    nothing = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    return nothing.fill_null(True).to_numpy().astype(bool)


def _series(table: nw.DataFrame, series: str | None) -> tuple[np.ndarray, np.ndarray]:
    if series is None:
        return np.zeros(len(table), np.int64), np.arange(1)
    encoded = encode_column(table[series], "series")
    return encoded.codes, id_array(encoded.labels)


def _natural_order(column: nw.Series, names: Encoded) -> Sequence[str] | None:
    """The order of channels that the type of their column has: the categories of an Enum, or numbers by size."""
    if isinstance(column.dtype, nw.Enum):
        return column.dtype.categories
    return [str(label) for label in np.sort(names.labels)] if column.dtype.is_integer() else None


def _numbers(column: nw.Series) -> np.ndarray:
    """A column as an array that nobody else will write to."""
    if column.dtype.is_integer() and column.null_count():
        whole = column.fill_null(0).to_numpy()
        if max(-int(whole.min()), int(whole.max())) > LARGEST_WHOLE:
            return whole  # will be refused; with its nulls it would become float64, and be rounded
    array = (column.cast(nw.Float64()) if column.dtype in (nw.Boolean, nw.Decimal) else column).to_numpy()
    # Frames of pandas and its like are mutable; those of polars and pyarrow may be shared.
    return array.copy() if column.implementation.is_pandas_like() else array


def _terms(terms: Mapping[str, Bracket], options: ReadOptions) -> tuple[Term, ...]:
    if options.schema is not None and not terms:
        return options.schema.terms
    return tuple(Term(column, bracket) for column, bracket in terms.items())


def write_long(columns: Mapping[str, np.ndarray], schema: Schema, backend: ModuleType) -> Any:
    """A long frame of the backend from its columns; channel names become an Enum, datetimes get their zone."""
    stamps = columns["time"]
    if backend.__name__ == "polars" and stamps.dtype.kind in "mM" and np.datetime_data(stamps.dtype)[0] == "s":
        # Polars has no seconds; its milliseconds hold the same stamps.
        stamps = stamps.astype(f"{stamps.dtype.name.partition('[')[0]}[ms]")
    frame = nw.from_dict({**columns, "time": stamps}, backend=backend)
    if backend.__name__ != "pyarrow":
        frame = frame.with_columns(nw.col("channel").cast(nw.Enum(schema.channels)))
    if isinstance(schema.clock, DatetimeClock) and schema.clock.zone is not None:
        frame = frame.with_columns(nw.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(schema.clock.zone))
    return frame.to_native()


def check_distinct(ids: np.ndarray) -> None:
    """Refuse to write a series twice: a table could not tell the copies apart."""
    seen, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = seen[counts > 1][0]
        raise StreamError(
            f"Series {name(twice)} is here {counts.max()} times, and a table could not tell the copies apart.",
            "Take each series once.",
            where=Where(series=plain_id(twice)),
        )
