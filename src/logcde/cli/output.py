"""What commands write: a table in pieces (.parquet, .csv or .jsonl), complete or absent, and a progress bar."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from logcde._files import whole_file
from logcde.errors import TableError

SUFFIXES = (".parquet", ".csv", ".jsonl")


@dataclasses.dataclass
class OutputTable:
    """A table that is being written. Call `begin` with the pyarrow schema, then `write` for each piece."""

    path: Path
    temporary: Path
    rows: int = 0
    writer: Any = None

    def begin(self, schema: Any) -> None:
        """Open the writer that the suffix of the path names."""
        from logcde.streams.frames import arrow

        pyarrow = arrow()
        writers = {
            ".csv": pyarrow.csv.CSVWriter,
            ".parquet": pyarrow.parquet.ParquetWriter,
            ".jsonl": _JsonLinesWriter,
        }
        self.writer = writers[self.path.suffix](str(self.temporary), schema)

    def write(self, table: Any) -> None:
        """Append the rows of a pyarrow table."""
        self.writer.write_table(table)
        self.rows += len(table)


class _JsonLinesWriter:
    """One JSON object per row, with the interface of pyarrow's writers; a number that is not finite is null."""

    def __init__(self, path: str, schema: Any) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115
        self._encode = msgspec.json.Encoder().encode_lines

    def write_table(self, table: Any) -> None:
        self._file.write(self._encode(table.to_pylist()))

    def close(self) -> None:
        self._file.close()


def check_output(path: Path, source: Path) -> None:
    """Refuse an output path that cannot be written, or that is the input table, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise TableError(
            f"The output {path} ends in none of .parquet, .csv and .jsonl.", "Choose one of these suffixes."
        )
    if path.is_dir():
        raise TableError(f"The output {path} is a folder.", "Give the name of a file.")
    if path.exists() and source.exists() and path.samefile(source):
        raise TableError(f"The output {path} is the input table, which would be lost.", "Choose another name.")


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[OutputTable]:
    """Write to a temporary file that replaces `path` at the end; after an error or Ctrl-C nothing is left behind."""
    try:
        with whole_file(path) as temporary:
            output = OutputTable(path, temporary)
            try:
                yield output
            except BaseException:
                # Flushing may fail as well, on a full disk: only the first error counts.
                if output.writer is not None:
                    with contextlib.suppress(Exception):
                        output.writer.close()
                raise
            if output.writer is None:
                raise TableError(f"There is nothing to write to {path}: none of the series has a query time.")
            output.writer.close()
    except OSError as error:
        raise TableError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was left behind.",
            "Check the permissions and the free space of its folder, or choose another path with -o.",
        ) from error


@contextlib.contextmanager
def progress_bar(description: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """Progress bar on standard error, off when that is not a terminal.

    Args:
        description: What is being done, such as "reading".
        rows: How many rows there are; None if unknown.

    Yields:
        A function that is called with the number of rows done since the last call.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=rows)
        yield lambda more: progress.advance(task, more)
