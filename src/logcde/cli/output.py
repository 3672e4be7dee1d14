"""What commands write: a table in pieces (.parquet, .csv or .jsonl), complete or absent, standard output, progress."""

import contextlib
import dataclasses
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import msgspec

from logcde._files import whole_file
from logcde.errors import TableError

SUFFIXES = (".parquet", ".csv", ".jsonl")
UNWRITTEN = 74
"""Exit code of a command that did its work but could not write all of its standard output, EX_IOERR of sysexits.h."""


class StandardStream:
    """Standard output or standard error, of which a full disk or a closed pipe stops no work.

    What cannot be written is dropped; `error` says why. Characters that the encoding lacks are escaped.

    Args:
        stream: What is written to; None if it was closed when the process began.
        number: Its file descriptor by convention.
    """

    def __init__(self, stream: TextIO | None, number: int) -> None:
        self._stream, self._number, self.error = stream, number, cast("OSError | None", None)

    def write(self, text: str) -> int:
        """Write as far as possible; returns the length of the text."""
        if self._stream is None:
            self.error = self.error or OSError(errno.EBADF, os.strerror(errno.EBADF))
        elif self.error is None:
            try:
                self._stream.write(_encodable(text, self._stream.encoding or "utf-8"))
            except OSError as error:
                self.error = error
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, as far as possible."""
        if self._stream is not None and self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self.error = error

    def close(self) -> None:
        """Flush; after an error the rest goes to the null device, so that the interpreter meets no error at its end."""
        self.flush()
        if self._stream is not None and self.error is not None:
            with contextlib.suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self._stream.fileno())

    def fileno(self) -> int:
        """The file descriptor, also of a stream that was closed when the process began."""
        return self._number if self._stream is None else self._stream.fileno()

    def isatty(self) -> bool:
        """Whether a person may be reading."""
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def standard_streams() -> Iterator[StandardStream]:
    """Guard standard output, which is yielded, and standard error while a command runs."""
    before = sys.stdout, sys.stderr
    if None in (sys.stdin, *before):
        # No file that is opened later may take the number of a standard stream that is closed. Nothing can be written
        # to what takes it instead.
        while (handle := os.open(os.devnull, os.O_RDONLY)) <= 2:
            pass
        os.close(handle)
    output, errors = (StandardStream(stream, number) for number, stream in enumerate(before, 1))
    sys.stdout, sys.stderr = cast(TextIO, output), cast(TextIO, errors)
    try:
        yield output
    finally:
        sys.stdout, sys.stderr = before
        output.close()
        errors.close()


def unwritten(error: OSError) -> str:
    """The message about a standard output that could not be written to its end."""
    reasons = {errno.EPIPE: "its reader has gone", errno.EBADF: "it is closed"}
    reason = reasons.get(error.errno or 0, error.strerror or error)
    return f"logcde: Standard output could not be written to its end: {reason}."


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


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


def check_output(path: Path, source: Path, rows: int) -> None:
    """Refuse, before any work is done, an output that cannot be written or is the input, and no rows in memory."""
    from logcde.streams.locations import Remote, location, tables_at

    if rows < 1:
        raise TableError(f"--rows is {rows}.", "Give at least 1.")
    if path.suffix not in SUFFIXES:
        raise TableError(
            f"The output {path} ends in none of .parquet, .csv and .jsonl.", "Choose one of these suffixes."
        )
    if isinstance(location(path), Remote):
        raise TableError(
            f"The output {location(path)} is one file, and a URL, to which only folders of files are written.",
            "Give a local file; or many files as input, and a URL without such a suffix.",
        )
    if path.is_dir():
        raise TableError(f"The output {path} is a folder.", "Give the name of a file.")
    if path.exists() and any(
        isinstance(one, Path) and one.exists() and path.samefile(one) for one in tables_at(source)
    ):
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
def progress_bar(description: str, rows: int | None, unit: str = "rows") -> Iterator[Callable[[int], None]]:
    """Progress bar on standard error, off when that is not a terminal.

    Args:
        description: What is being done, such as "reading".
        rows: How many rows there are; None if unknown.
        unit: What is counted, if not rows.

    Yields:
        A function that is called with the number of rows done since the last call.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=rows)
        yield lambda more: progress.advance(task, more)
