"""Tables in files, Parquet or CSV, read in pieces so that a file may be larger than memory.

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

from logcde.errors import TableError
from logcde.streams.backends import arrow

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
    return TableError(
        f"The column {column!r} has {found}, which is not a number. Choose other columns of values, or leave the "
        "field empty where nothing was observed."
    )


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
