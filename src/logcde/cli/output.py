"""A table that is written piece by piece, and that is whole or not there.

A bar for people who wait, on standard error. Quiet where nobody looks.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from logcde._files import whole_file
from logcde.errors import TableError

ENDINGS = (".parquet", ".csv", ".jsonl")


class Lines:
    """A writer of JSON lines, one for each row; a number that is not finite is null."""

    def __init__(self, path: str, schema: Any) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115
        self._encode = msgspec.json.Encoder().encode_lines

    def write_table(self, table: Any) -> None:
        """Add rows."""
        self._file.write(self._encode(table.to_pylist()))

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


@dataclasses.dataclass
class Output:
    """A file that is being written; `begin` it with the schema of pyarrow that all pieces have."""

    path: Path
    temporary: Path
    rows: int = 0
    writer: Any = None

    def begin(self, schema: Any) -> None:
        """Say which columns there will be."""
        from logcde.streams.frames import arrow

        pyarrow = arrow()
        kinds = {".csv": pyarrow.csv.CSVWriter, ".parquet": pyarrow.parquet.ParquetWriter, ".jsonl": Lines}
        self.writer = kinds[self.path.suffix](str(self.temporary), schema)

    def write(self, table: Any) -> None:
        """Add rows."""
        self.writer.write_table(table)
        self.rows += len(table)


def check_output(path: Path, source: Path) -> None:
    """Refuse names that nothing can be written to, before any work is done."""
    if path.suffix not in ENDINGS:
        raise TableError(
            f"The output {path} ends in none of .parquet, .csv and .jsonl. Rename it, so that its kind is known."
        )
    if path.is_dir():
        raise TableError(f"The output {path} is a folder. Give the name of a file.")
    if path.exists() and source.exists() and path.samefile(source):
        raise TableError(f"The output {path} is the table itself, which would be lost. Choose another name.")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Output]:
    """Write under a temporary name. If anything goes wrong or is stopped, nothing is left behind."""
    try:
        with whole_file(path) as temporary:
            output = Output(path, temporary)
            try:
                yield output
            except BaseException:
                # What is buffered may no longer find room: only the first error counts.
                if output.writer is not None:
                    with contextlib.suppress(Exception):
                        output.writer.close()
                raise
            if output.writer is None:
                raise TableError(f"There is nothing to write to {path}: not one series is asked about.")
            output.writer.close()
    except OSError as error:
        raise TableError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was left behind. See whether the folder may "
            "be written to and has room, or choose another with -o."
        ) from error


@contextlib.contextmanager
def bar(doing: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over so many rows, or one without an end if that is not known; it is told how many more are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=rows)
        yield lambda more: progress.advance(task, more)
