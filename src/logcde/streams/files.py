"""Tables in files, Parquet or CSV: the one reader that the library and the command line share.

Files are read in pieces, so that a file may be larger than memory. This module knows columns and their types, not what
they mean.
"""

import abc
import contextlib
import dataclasses
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from logcde.errors import Remedy, TableError
from logcde.streams.frames import arrow
from logcde.streams.locations import Location, location, opened, tables_at
from logcde.streams.schema import missing
from logcde.streams.texts import Texts

PIECE = 1 << 16
"""Rows read at a time."""
BUFFER = 1 << 20
"""Bytes of each column that are read ahead."""
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
SEPARATORS = (",", ";", "\t", "|")
MAGIC = b"PAR1"
LONGEST_HEADER = 1 << 24
"""Bytes of the first line of a CSV file. Also bounds what a small file that decompresses to a large one costs."""


class AbstractTable(abc.ABC):
    """A table in a file.

    Attributes:
        path: The file.
        types: The pyarrow type of each column, by name. Those of CSV files are guessed from the first block.
        rows: The number of rows; None if it is unknown.
        categories: The names of all categories, in order, of columns that are stored as an Enum.
        untyped: Whether the file holds only text, so that types must be inferred.
    """

    path: Location
    types: Mapping[str, Any]
    rows: int | None
    categories: Mapping[str, tuple[str, ...]]
    untyped: bool

    @abc.abstractmethod
    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Iterate over the file as pyarrow tables, in order.

        Args:
            columns: The columns to read.
            numbers: Those among them that hold numbers.
            rows: About how many rows a piece has.
        """


def open_table(path: str | Location) -> AbstractTable:
    """Open a table: Parquet if the file begins like one, otherwise CSV if its name says so (.csv, .tsv, .txt, or .gz).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id;x\\n1;2.5\\n")
    ...     table = open_table(Path(folder, "a.csv"))
    ...     next(table.pieces(["x"], ["x"]))["x"].to_pylist(), list(table.types)
    ([2.5], ['id', 'x'])
    """
    path = location(path)
    start = _first_bytes(path)
    if start == MAGIC:
        return open_parquet(path)
    if Path(path.stem if path.suffix == ".gz" else path.name).suffix in TEXT_ENDINGS:
        return open_csv(path)
    raise TableError(
        f"{path} is not a Parquet file: it begins with {start!r} and not with {MAGIC!r}.",
        "If it is text with columns, give it a name that ends in .csv; otherwise convert it to Parquet.",
    )


def open_parquet(path: str | Location) -> "ParquetTable":
    """Open a Parquet file, whatever its name."""
    path = location(path)
    start, pyarrow = _first_bytes(path), arrow()
    if start != MAGIC:
        raise TableError(
            f"{path} is not a Parquet file: it begins with {start!r} and not with {MAGIC!r}.",
            "Convert it to Parquet, or read it as what it is.",
        )
    with readable(path), opened(path) as content, pyarrow.parquet.ParquetFile(content) as file:
        schema = file.schema_arrow
        return ParquetTable(path, _types(path, schema), file.metadata.num_rows, _categories(schema))


def open_csv(path: str | Location) -> "CsvTable":
    """Open a CSV file, whatever its name; the separator is the most frequent of , ; tab and | in its first line."""
    path = location(path)
    _first_bytes(path)
    with readable(path):
        header = _first_line(path)
        separator = max(SEPARATORS, key=header.count)
        # A block must hold the longest line, which is not known: much more than the header is a fair guess.
        table = CsvTable(path, {}, separator, 16 * len(header))
        with opened(path) as content, table.reader(content, None, BUFFER) as reader:
            return dataclasses.replace(table, types=_types(path, reader.schema))


def read_columns(
    file: AbstractTable, labels: Sequence[str], time: str, numbers: Sequence[str], epoch: str | None = None
) -> Any:
    """Read some columns of a whole file into a pyarrow table.

    Args:
        file: An opened file.
        labels: Columns of series ids and channel names: whole numbers or text.
        time: The column of stamps: numbers, datetimes, durations, or text in ISO 8601.
        numbers: Columns of values.
        epoch: The unit ("s", "ms", "us" or "ns") of numbers that count from 1970.
    """
    columns = (*labels, time, *numbers)
    for column in columns:
        if column not in file.types:
            raise TableError(f"{file.path}: {missing(column, tuple(file.types))}")
    pieces = list(file.pieces(columns, numbers))
    if not pieces:
        raise TableError(f"{file.path} has columns but no rows.", "There is nothing to read.")
    return Texts(labels if file.untyped else (), time, epoch)(arrow().concat_tables(pieces))


@contextlib.contextmanager
def readable(path: Location) -> Iterator[None]:
    """Raise errors about reading a file as `TableError`."""
    pyarrow = arrow()
    try:
        yield
    except pyarrow.ArrowInvalid as error:
        found, remedy = _reason(str(error))
        raise TableError(f"{path} cannot be read: {found}", remedy) from error
    except UnicodeDecodeError as error:
        raise TableError(f"{path} cannot be read: it is not text in UTF-8.", "Convert it to UTF-8.") from error
    except (EOFError, zlib.error) as error:
        raise TableError(f"{path} cannot be decompressed: {error}.", "Was it written to its end?") from error
    except (OSError, pyarrow.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError(f"{path} cannot be read: {reason}.", "Is the name right, and may you read it?") from error


@dataclasses.dataclass(frozen=True)
class ParquetTable(AbstractTable):
    """A Parquet file."""

    path: Location
    types: Mapping[str, Any]
    rows: int | None
    categories: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    untyped: bool = False

    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Batches of rows. Dictionaries become the text that they stand for, since they differ between pieces."""
        pyarrow = arrow()
        with (
            readable(self.path),
            opened(self.path) as content,
            pyarrow.parquet.ParquetFile(content, buffer_size=BUFFER) as file,
        ):
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
    """A CSV file. Columns that do not hold numbers are text, as in the file, and missing where it is empty."""

    path: Location
    types: Mapping[str, Any]
    separator: str
    longest: int
    rows: int | None = None
    categories: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    untyped: bool = True

    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """Blocks of lines. Numbers are float64, or Boolean where the column holds true and false."""
        pyarrow = arrow()
        text, number = pyarrow.string(), pyarrow.float64()
        truth = {name for name in numbers if pyarrow.types.is_boolean(self.types[name])}
        numeric = {**dict.fromkeys(numbers, number), **dict.fromkeys(truth, pyarrow.bool_())}
        types = {name: numeric.get(name, text) for name in columns}
        options = pyarrow.csv.ConvertOptions(include_columns=list(types), column_types=types)
        with readable(self.path), opened(self.path) as content, self.reader(content, options, 64 * rows) as reader:
            for batch in reader:
                table = pyarrow.Table.from_batches([batch])
                for place, field in enumerate(table.schema):
                    if field.type == text:
                        filled = pyarrow.compute.if_else(pyarrow.compute.equal(table[place], ""), None, table[place])
                        table = table.set_column(place, field.name, filled)
                yield table

    def reader(self, content: Any, options: Any, size: int) -> Any:
        """pyarrow's reader of one block of bytes after another."""
        csv = arrow().csv
        parse = csv.ParseOptions(delimiter=self.separator)
        try:
            return csv.open_csv(content, csv.ReadOptions(block_size=max(size, self.longest)), parse, options)
        except arrow().ArrowInvalid as error:
            wrong = re.search(r"CSV column #(\d+): .* invalid value '(.*)'", str(error))
            if wrong is None or not self.types:
                raise
            raise not_numbers(list(self.types)[int(wrong[1])], wrong[2]) from error


@dataclasses.dataclass(frozen=True)
class ManyTables(AbstractTable):
    """Tables with the same columns, one after another: the files of a folder or a pattern, which is their path."""

    path: Location
    types: Mapping[str, Any]
    rows: int | None
    categories: Mapping[str, tuple[str, ...]]
    untyped: bool
    parts: tuple[AbstractTable, ...]

    def pieces(self, columns: Sequence[str], numbers: Sequence[str], rows: int = PIECE) -> Iterator[Any]:
        """The pieces of each table, with columns of the types that all have in common."""
        for part in self.parts:
            for piece in part.pieces(columns, numbers, rows):
                for place, field in enumerate(piece.schema):
                    common = self.types[field.name]
                    if not self.untyped and field.type != common and not arrow().types.is_dictionary(common):
                        piece = piece.set_column(place, field.name, piece[place].cast(common))
                yield piece


def open_tables(given: str | Location) -> AbstractTable:
    """Open a table, or all tables of a folder or a pattern as one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, row in (("a.csv", "p,1"), ("b.csv", "q,2.5")):
    ...         _ = Path(folder, name).write_text(f"id,x\\n{row}\\n")
    ...     table = open_tables(folder)
    ...     [piece["x"].to_pylist() for piece in table.pieces(["x"], ["x"])], table.types["x"]
    ([[1.0], [2.5]], DataType(double))
    """
    files = tables_at(given)
    parts = tuple(open_table(file) for file in files)
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part in parts[1:]:
        check_alike(first, part)
    types = {name: _common_type(name, parts) for name in first.types}
    rows = [part.rows for part in parts]
    return ManyTables(
        path=location(given),
        types=types,
        rows=None if None in rows else sum(row or 0 for row in rows),
        categories=_common_categories(parts),
        untyped=first.untyped,
        parts=parts,
    )


def check_alike(first: AbstractTable, other: AbstractTable) -> None:
    """Refuse a table that is not of the same kind and columns as the first one."""
    if first.untyped != other.untyped:
        kinds = {True: "CSV", False: "Parquet"}
        raise TableError(
            f"{first.path} is {kinds[first.untyped]}, but {other.path} is {kinds[other.untyped]}.",
            "Files that are read as one table are all Parquet, or all CSV.",
        )
    differing = sorted(set(first.types) ^ set(other.types))
    if differing:
        has, lacks = (first, other) if differing[0] in first.types else (other, first)
        raise TableError(
            f"{has.path} has a column {differing[0]!r}, which {lacks.path} does not have.",
            "Files that are read as one table have the same columns.",
        )


def _common_type(name: str, parts: Sequence[AbstractTable]) -> Any:
    """The type that the column has in all tables, or that holds what they have."""
    pyarrow = arrow()
    types = list(dict.fromkeys(part.types[name] for part in parts))
    if len(types) == 1:
        return types[0]
    if parts[0].untyped and pyarrow.string() in types:
        return pyarrow.string()  # types of CSV files are guesses
    plain = [one.value_type if pyarrow.types.is_dictionary(one) else one for one in types]
    schemas = [pyarrow.schema([(name, one)]) for one in plain]
    try:
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(name).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        one, other = (next(part for part in parts if part.types[name] == kind) for kind in types[:2])
        raise TableError(
            f"The column {name!r} is of type {types[0]} in {one.path}, but of type {types[1]} in {other.path}.",
            "Convert it to one type.",
        ) from error


def _common_categories(parts: Sequence[AbstractTable]) -> dict[str, tuple[str, ...]]:
    """Categories of columns that are an Enum in all tables, those of the first ones first."""
    shared = set.intersection(*(set(part.categories) for part in parts))
    return {
        name: tuple(dict.fromkeys(one for part in parts for one in part.categories[name])) for name in sorted(shared)
    }


def not_numbers(column: str, found: str) -> TableError:
    """The error for a column of values that holds something else."""
    return TableError(f"The column {column!r} has {found}, which is not a number.", Remedy.CHANNELS)


def _runs(sizes: Sequence[int], rows: int) -> Iterator[list[int]]:
    """Neighbouring row groups that have at least so many rows together; the last run may have fewer."""
    run: list[int] = []
    count = 0
    for group, size in enumerate(sizes):
        run, count = [*run, group], count + size
        if count >= rows:
            yield run
            run, count = [], 0
    if run:
        yield run


def _types(path: Location, schema: Any) -> dict[str, Any]:
    types = dict(zip(schema.names, schema.types, strict=True))
    if len(types) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise TableError(f"{path} has two columns named {twice!r}.", "Rename one of them.")
    return types


def _categories(schema: Any) -> dict[str, tuple[str, ...]]:
    """The categories of Enum columns. Polars writes them into a field's metadata, each after its length in bytes."""
    found = {}
    for field in schema:
        rest: bytes = (field.metadata or {}).get(b"_PL_ENUM_VALUES2", b"")
        names = []
        while rest:
            length, _, rest = rest.partition(b";")
            names.append(rest[: int(length)].decode())
            rest = rest[int(length) :]
        if names:
            found[field.name] = tuple(names)
    return found


def _first_bytes(path: Location) -> bytes:
    if path.is_dir():
        raise TableError(f"{path} is a folder.", "Give one file, Parquet or CSV.")
    if path.exists() and not path.is_file():
        raise TableError(f"{path} is not a regular file.", "Tables are read several times: write it to a file first.")
    with readable(path), path.open("rb") as file:
        start = file.read(len(MAGIC))
    if not start:
        raise TableError(f"{path} is empty: it has 0 bytes.", "Was it written to its end?")
    return start


def _first_line(path: Location) -> str:
    with path.open("rb") as content, gzip.open(content) if path.suffix == ".gz" else content as file:
        line = file.readline(LONGEST_HEADER + 1)
    if len(line) > LONGEST_HEADER:
        raise TableError(
            f"{path} has a first line of more than {LONGEST_HEADER:,} bytes, which cannot be names of columns.",
            "Is it a text with one line for each row?",
        )
    return line.decode("utf-8", errors="replace")


def _reason(message: str) -> tuple[str, str]:
    """What pyarrow found, and what to do about it."""
    if "magic bytes" in message or "Parquet file size" in message or "thrift" in message.lower():
        return "it begins like a Parquet file but does not end like one.", "It was probably not written to its end."
    if "Expected" in message and "columns" in message:
        return f"not all of its lines have the same number of columns ({message}).", "Mend that line."
    if "straddl" in message:
        return "one of its lines is too long to be a row.", "Is there a quotation mark that is not closed?"
    return f"{message.rstrip('.')}.", ""
