"""What the columns of a table in a file mean: long, one observation in each row, or wide, one stamp in each row.

Columns of text become whole numbers, numbers or datetimes, whichever all of the column is.

A file is read in pieces and the first may look other than the last. What a column is taken for is therefore found out
on the way: if a piece does not fit, the next wider kind is tried, from the start.

Tables in files, Parquet or CSV, read in pieces so that a file may be larger than memory.

This module knows files, columns and their types; what a column means is the business of `layout` and `scan`.
"""

import abc
import contextlib
import dataclasses
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from jaxtyping import Bool

from logcde.errors import Remedy, StreamError, TableError
from logcde.streams.arrays import Reading
from logcde.streams.frames import arrow, read_long, read_wide, unobserved
from logcde.streams.streams import Streams


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns hold ids of series, stamps, values, and in long tables names of channels. See `long` and `wide`.

    Without a column of series, all rows are one series. `channels` are the names of all channels in order, None if they
    are those seen, sorted.
    """

    series: str | None
    time: str
    values: tuple[str, ...]
    channel: str | None
    channels: tuple[str, ...] | None

    @classmethod
    def long(
        cls,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        channels: tuple[str, ...] | None = None,
    ) -> "Layout":
        """One observation in each row.

        >>> Layout.long("patient", "hours").columns
        ('patient', 'channel', 'hours', 'value')
        """
        return cls(series, time, (value,), channel, channels)

    @classmethod
    def wide(cls, channels: tuple[str, ...], series: str | None = "series", time: str = "time") -> "Layout":
        """One stamp in each row, one channel in each column of values.

        >>> Layout.wide(("pulse", "temp"), series=None).columns
        ('time', 'pulse', 'temp')
        """
        return cls(series, time, channels, None, channels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that say what a row belongs to."""
        return tuple(label for label in (self.series, self.channel) if label is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.labels, self.time, *self.values)

    def read(self, table: Any, reading: Reading) -> Streams:
        """The streams of a table, as by `Streams.from_frame` or `Streams.from_wide`."""
        names = self.channels if reading.schema is None else None
        if self.channel is None:
            return Streams(*read_wide(table, self.series, self.time, names, {}, reading))
        return Streams(*read_long(table, self.series, self.time, self.channel, self.values[0], names, {}, reading))

    def missing(self, table: nw.DataFrame) -> Bool[np.ndarray, "row column"]:
        """Where there is no value."""
        return np.stack([unobserved(table[value]) for value in self.values], axis=1)


NUMBERS = ("int64", "double")
DATETIMES = ("us", "ns")
ZONE = r"^.*?(Z|[+-]\d\d:?\d\d)?$"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


class Restart(Exception):  # noqa: N818
    """What came before was read as the wrong kind: begin again."""


class Texts:
    """How to take columns of text: `labels` as whole numbers or text, `time` as numbers or ISO 8601 datetimes.

    With `epoch` ("s", "ms", "us" or "ns"), numbers in the time column count these since 1970, and become datetimes.

    >>> import pyarrow
    >>> piece = pyarrow.table({"id": ["1", "x7"], "time": ["2024-01-01", "2024-01-01 06:30"]})
    >>> texts = Texts(["id"], "time")
    >>> try:
    ...     texts(piece)
    ... except Restart:
    ...     [str(kind) for kind in texts(piece).schema.types]
    ['string', 'timestamp[us]']
    """

    def __init__(self, labels: Sequence[str], time: str, epoch: str | None = None) -> None:
        self._time, self._epoch = time, epoch
        self._kinds: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ("int64", "text"))
        self._first = self._zone = ""
        self._guessed = False

    def __call__(self, piece: Any) -> Any:
        """A piece with its columns as numbers, datetimes or text; `Restart` if earlier ones must be read again."""
        for name in (*self._kinds, self._time):
            place = piece.schema.get_field_index(name)
            types = arrow().types
            if types.is_string(piece[place].type) or types.is_large_string(piece[place].type):
                piece = piece.set_column(place, name, self._taken(name, piece[place]))
        if self._epoch is not None:
            place = piece.schema.get_field_index(self._time)
            piece = piece.set_column(place, self._time, self._since_1970(piece[place], self._epoch))
        return piece

    def _taken(self, name: str, column: Any) -> Any:
        pyarrow = arrow()
        compute = pyarrow.compute
        kinds = self._kinds.get(name) or self._kinds_of_time(column)
        if kinds[0] == "text":
            return column
        try:
            if kinds[0] in DATETIMES:
                return self._moments(column, kinds[0])
            if name == self._time:
                return compute.cast(compute.utf8_trim_whitespace(column), kinds[0])
            whole = compute.cast(column, kinds[0])
            # 007 and 7 are two names.
            if compute.all(compute.equal(compute.cast(whole, column.type), column)).as_py() is not False:
                return whole
        except pyarrow.ArrowInvalid as error:
            if len(kinds) == 1:
                raise self._unfit(name, kinds[0], str(error)) from error
        self._kinds[name] = kinds[1:]
        raise Restart

    def _kinds_of_time(self, column: Any) -> tuple[str, ...]:
        """What the first stamp looks like; while there is none, it can be anything."""
        first = next((item.strip() for item in column.drop_null()[:1].to_pylist()), None)
        if first is None:
            self._guessed = True
            return ("double",)
        try:
            float(first)
            kinds = NUMBERS
        except ValueError:
            kinds = DATETIMES
            self._zone = re.sub(ZONE, r"\1", first)
        self._first = first
        self._kinds[self._time] = kinds
        if self._guessed:
            raise Restart
        return kinds

    def _moments(self, column: Any, resolution: str) -> Any:
        pyarrow = arrow()
        compute = pyarrow.compute
        column = compute.utf8_trim_whitespace(column)
        zones = set(compute.unique(compute.replace_substring_regex(column.drop_null(), ZONE, r"\1")).to_pylist())
        if zones - {self._zone}:
            named = " and ".join(sorted(zone or "none" for zone in zones | {self._zone}))
            raise StreamError(
                f"The stamps of column {self._time!r} mix the time zones {named}. Convert them to one zone first."
            )
        return compute.cast(column, self._type(resolution))

    def _type(self, kind: str) -> Any:
        """What a kind of stamps is to pyarrow."""
        return arrow().timestamp(kind, _named(self._zone)) if kind in DATETIMES else kind

    def _unfit(self, name: str, kind: str, message: str) -> StreamError:
        pyarrow = arrow()
        try:
            pyarrow.array([self._first]).cast(self._type(kind))
        except pyarrow.ArrowInvalid:
            return StreamError(
                f"The column {name!r} is text such as {self._first!r}, which is neither a number nor a datetime in ISO "
                "8601, such as 2024-03-01T12:30:00. Convert it, or name another column of time."
            )
        wrong = re.search(r"string: '(.*?)' as", message)
        found = wrong[1] if wrong else "something else"
        what = "a datetime in ISO 8601" if kind in DATETIMES else "a number"
        return StreamError(
            f"The column {name!r} begins with {self._first!r}, {what}, but has {found!r} further on. "
            "Make all stamps alike."
        )

    def _since_1970(self, column: Any, epoch: str) -> Any:
        pyarrow = arrow()
        if pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type):
            # Datetimes are counted in nanoseconds, of which 64 bits hold 292 years before and after 1970.
            ends = pyarrow.compute.min_max(column)
            furthest = max(abs(float(ends[end].as_py() or 0)) for end in ("min", "max"))
            if np.isfinite(furthest) and furthest * MICROSECONDS[epoch] * 1000 >= 2**63:
                raise StreamError(
                    f"The column {self._time!r} has the stamp {furthest:.10g}, which as {epoch} since 1970 is beyond "
                    "the year 2262. If they count something finer, such as ms, us or ns, give that as the epoch."
                )
        if pyarrow.types.is_integer(column.type):
            return column.cast(pyarrow.int64()).cast(pyarrow.timestamp(epoch))
        if not pyarrow.types.is_floating(column.type):
            raise StreamError(
                f"The column {self._time!r} is of type {column.type}, but only numbers count since 1970.",
                Remedy.NO_EPOCH,
            )
        missing = column.is_null().to_numpy()
        ticks = np.rint(np.nan_to_num(column.fill_null(0).to_numpy()) * MICROSECONDS[epoch]).astype(np.int64)
        missing |= ~np.isfinite(column.fill_null(np.nan).to_numpy())
        return pyarrow.chunked_array([pyarrow.array(ticks, mask=missing).cast(pyarrow.timestamp("us"))])


def _named(zone: str) -> str | None:
    """The name of a zone that is written behind a stamp."""
    if zone in ("", "Z"):
        return "UTC" if zone else None
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"


PIECE = 1 << 16
"""Rows read at a time."""
BUFFER = 1 << 20
"""Bytes of each column that are read ahead."""
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
SEPARATORS = (",", ";", "\t", "|")
MAGIC = b"PAR1"


class AbstractTable(abc.ABC):
    """A table in a file: the names and types of its columns, how many rows it has if that is known, and the rows.

    `untyped` says that types are only guessed, since all there is in the file is text.
    """

    path: Path
    types: Mapping[str, Any]
    rows: int | None
    untyped: ClassVar[bool]

    @abc.abstractmethod
    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Some columns as pyarrow tables of about so many rows, in order. Those of `numbers` hold numbers."""


def open_table(path: str | Path) -> AbstractTable:
    """A file that holds a table: Parquet by its first bytes, otherwise CSV by its name (.csv, .tsv, .txt, or these.gz).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id;x\\n1;2.5\\n")
    ...     table = open_table(Path(folder, "a.csv"))
    ...     next(table.pieces(["x"], ["x"]))["x"].to_pylist(), list(table.types)
    ([2.5], ['id', 'x'])
    """
    path = Path(path)
    pyarrow = arrow()
    if path.is_dir():
        raise TableError(f"{path} is a folder. Give one file, Parquet or CSV.")
    with readable(path):
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if not start:
            raise TableError(f"{path} is empty: it has 0 bytes. Was it written to its end?")
        if start == MAGIC:
            with pyarrow.parquet.ParquetFile(path) as parquet:
                return ParquetTable(path, _types(path, parquet.schema_arrow), parquet.metadata.num_rows)
        if (Path(path.stem) if path.suffix == ".gz" else path).suffix not in TEXT_ENDINGS:
            raise TableError(
                f"{path} is not a Parquet file: it begins with {start!r} and not with {MAGIC!r}. If it is text with "
                "columns, give it a name that ends in .csv; otherwise convert it to Parquet."
            )
        header = _first_line(path)
        separator = max(SEPARATORS, key=header.count)
        # A block must hold the longest line, which is not known: much more than the header is a fair guess.
        table = CsvTable(path, {}, separator, 16 * len(header))
        with table.reader(None, BUFFER) as reader:
            return dataclasses.replace(table, types=_types(path, reader.schema))


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what goes wrong in reading a file into a sentence."""
    pyarrow = arrow()
    try:
        yield
    except pyarrow.ArrowInvalid as error:
        raise TableError(f"{path} cannot be read: {_reason(str(error))}") from error
    except (OSError, pyarrow.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError(f"{path} cannot be read: {reason}. Is the name right, and may you read it?") from error


@dataclasses.dataclass(frozen=True)
class ParquetTable(AbstractTable):
    """A Parquet file."""

    untyped = False
    path: Path
    types: Mapping[str, Any]
    rows: int | None

    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Batches of rows. Categories become the text that they stand for: other pieces may have others."""
        pyarrow = arrow()
        with readable(self.path), pyarrow.parquet.ParquetFile(self.path, buffer_size=BUFFER) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            # One reader of all row groups would keep its buffers of each until the end.
            for groups in _runs(sizes, rows):
                for batch in file.iter_batches(rows, row_groups=groups, columns=list(dict.fromkeys(columns))):
                    table = pyarrow.Table.from_batches([batch])
                    for place, field in enumerate(table.schema):
                        if pyarrow.types.is_dictionary(field.type):
                            table = table.set_column(place, field.name, table[place].cast(field.type.value_type))
                    yield table


@dataclasses.dataclass(frozen=True)
class CsvTable(AbstractTable):
    """A CSV file. Columns that do not hold numbers are text, as it stands in the file, missing where it is empty."""

    untyped = True
    path: Path
    types: Mapping[str, Any]
    separator: str
    longest: int
    rows: int | None = None

    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Blocks of lines."""
        pyarrow = arrow()
        text, number = pyarrow.string(), pyarrow.float64()
        types = {name: number if name in numbers else text for name in columns}
        options = pyarrow.csv.ConvertOptions(include_columns=list(types), column_types=types)
        with readable(self.path), self.reader(options, 64 * rows) as reader:
            for batch in reader:
                table = pyarrow.Table.from_batches([batch])
                for place, field in enumerate(table.schema):
                    if field.type == text:
                        filled = pyarrow.compute.if_else(pyarrow.compute.equal(table[place], ""), None, table[place])
                        table = table.set_column(place, field.name, filled)
                yield table

    def reader(self, options: Any, size: int) -> Any:
        """pyarrow's reader of one block of bytes after another."""
        csv = arrow().csv
        parse = csv.ParseOptions(delimiter=self.separator)
        try:
            return csv.open_csv(self.path, csv.ReadOptions(block_size=max(size, self.longest)), parse, options)
        except arrow().ArrowInvalid as error:
            wrong = re.search(r"CSV column #(\d+): .* invalid value '(.*)'", str(error))
            if wrong is None or not self.types:
                raise
            raise not_numbers(list(self.types)[int(wrong[1])], wrong[2]) from error


def not_numbers(column: str, found: str) -> TableError:
    """A column of values that are no numbers."""
    return TableError(f"The column {column!r} has {found}, which is not a number.", Remedy.CHANNELS)


def _runs(sizes: Sequence[int], rows: int) -> Iterator[list[int]]:
    """Neighbouring groups that have at least so many rows together; the last may have fewer."""
    run: list[int] = []
    count = 0
    for group, size in enumerate(sizes):
        run, count = [*run, group], count + size
        if count >= rows:
            yield run
            run, count = [], 0
    if run:
        yield run


def _types(path: Path, schema: Any) -> dict[str, Any]:
    types = dict(zip(schema.names, schema.types, strict=True))
    if len(types) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise TableError(f"{path} has two columns named {twice!r}. Rename one of them.")
    return types


def _first_line(path: Path) -> str:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.readline().decode("utf-8", errors="replace")


def _reason(message: str) -> str:
    """What pyarrow found, as a sentence that says what to do."""
    if "magic bytes" in message or "Parquet file size" in message or "thrift" in message.lower():
        return "it begins like a Parquet file but does not end like one. It was probably not written to its end."
    if "Expected" in message and "columns" in message:
        return f"not all of its lines have the same number of columns ({message}). Mend that line."
    return f"{message.rstrip('.')}."
