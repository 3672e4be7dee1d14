"""A folder of output: one Parquet file for each part, whole or absent, and a manifest that is written last.

Every part says in its own metadata what it was made of, its key, so that a later run knows which parts are done. The
part of a file holds the series of that file; where series cross files, the part of a bucket holds those whose ids have
the same hash. This module writes single parts; `logcde.scale.driver` knows all of them.
"""

import contextlib
import dataclasses
import os
import secrets
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from logcde._documents import read_document, write_document
from logcde._files import PREFIX, whole_file, write_whole
from logcde.errors import LogcdeError, LogcdeWarning, Remedy, TableError
from logcde.scale.plans import Plan, Reader
from logcde.scale.rows import Tally
from logcde.streams.file_scan import some_streams
from logcde.streams.file_summary import Layout, Summary, quiet, read_pieces, series_codes, summarise
from logcde.streams.files import PIECE, AbstractTable, check_alike, open_table
from logcde.streams.frames import arrow
from logcde.streams.locations import Location, reachable
from logcde.streams.streams import Streams

METADATA = b"logcde"
MANIFEST = "manifest.json"
FORMAT = 1


class UnwrittenError(TableError):
    """An output that cannot be written, whatever its content."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a file or a part could not be read or made. `fatal` if no other part can be written either."""

    source: str
    found: str
    remedy: Remedy | str = ""
    fatal: bool = False

    @classmethod
    def of(cls, source: object, error: LogcdeError) -> "Failure":
        """The failure that an error is."""
        return cls(str(source), error.found, error.remedy, isinstance(error, UnwrittenError))

    def error(self) -> LogcdeError:
        """The failure as an error, with the file named."""
        found = self.found if self.source in self.found else f"{self.source}: {self.found}"
        return (UnwrittenError if self.fatal else TableError)(found, self.remedy)


@dataclasses.dataclass(frozen=True)
class Part:
    """A file of the output that is complete.

    Attributes:
        name: The name of the file.
        source: What it was made of: a file, or a bucket.
        tally: What it holds.
        warnings: Warnings of the library while it was made.
        reused: Whether an earlier run made it.
    """

    name: str
    source: str
    tally: Tally
    warnings: tuple[LogcdeWarning, ...] = ()
    reused: bool = False


@dataclasses.dataclass(frozen=True)
class PartFile:
    """Where a part is to be written: the folder, the name, the key of what it is made of, and a word for that."""

    folder: Location
    name: str
    key: str
    source: str

    @property
    def path(self) -> Location:
        """The file."""
        return self.folder / self.name

    def done(self) -> Part | None:
        """The part if an earlier run has written it; refused if something else is there."""
        with reachable(self.path):
            if not self.path.exists():
                return None
        pyarrow = arrow()
        try:
            with self.path.open("rb") as file:
                metadata = pyarrow.parquet.read_metadata(file).metadata or {}
            record = read_document(metadata.get(METADATA, b""), FORMAT)
        except (OSError, ValueError, pyarrow.ArrowException):
            record = {}
        if record.get("key") != self.key:
            raise TableError(
                f"{self.path} is there already, and was made by another command or of other files.",
                f"Remove {self.folder}, or choose another folder with -o.",
            )
        return Part(self.name, self.source, Tally(**record["tally"]), reused=True)


def summarise_file(file: Location, layout: Layout, first: AbstractTable, epoch: str | None) -> Summary | Failure:
    """The summary of one file of several."""
    try:
        table = open_table(file)
        check_alike(first, table)
        return summarise(table, layout, epoch=epoch)
    except LogcdeError as error:
        return Failure.of(file, error)


def write_file_part(file: Location, seen: Summary, part: PartFile, plan: Plan, rows: int) -> Part | Failure:
    """Write the part of one file, about `rows` of whose rows are in memory at once."""
    try:
        with (
            scratch_of(part.folder) as scratch,
            contextlib.closing(some_streams(plan.reader.scan(file, seen), scratch, group=rows)) as groups,
        ):
            return _written(plan, groups, part)
    except LogcdeError as error:
        return Failure.of(file, error)


def write_bucket_part(plan: Plan, part: PartFile, *tables: Any) -> Part | Failure:
    """Write the part of one bucket from its rows, in the order of the files."""
    try:
        rows = together(tables) if tables else ()
        # Texts have been converted by those who sorted the rows.
        groups = [plan.reader.layout.read(rows, plan.reader.options)] if len(rows) else []
        return _written(plan, iter(groups), part)
    except LogcdeError as error:
        return Failure.of(part.source, error)


@contextlib.contextmanager
def scratch_of(folder: Location) -> Iterator[Path]:
    """A folder for temporary files: that of the output, or one of the system if that is remote."""
    if isinstance(folder, Path):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix=PREFIX) as scratch:
        yield Path(scratch)


def together(tables: Any) -> Any:
    """One table of several, whose columns may be of different types that hold the same."""
    return arrow().concat_tables(tables, promote_options="permissive")


def bucket_of(ids: list[Any], buckets: int) -> Int64[np.ndarray, "series"]:
    """The bucket of each series: a hash of its id, the same in every process.

    >>> bucket_of(["p1", "p2", 3, "3"], 4).tolist()
    [3, 1, 3, 3]
    """
    return np.array([zlib.crc32(str(one).encode("utf-8", "surrogatepass")) % buckets for one in ids], np.int64)


def bucketed(reader: Reader, file: Location, buckets: int, wanted: frozenset[int]) -> Iterator[tuple[Any, np.ndarray]]:
    """The rows of a file that are in the wanted buckets, piece by piece, sorted by their buckets, and these."""
    table = open_table(file)
    choose = np.zeros(buckets, bool)
    choose[list(wanted)] = True
    for _, _, piece in read_pieces(table, reader.layout, reader.texts, quiet, PIECE):
        codes, ids = series_codes(piece, reader.layout)
        of_rows = bucket_of(ids, buckets)[codes]
        rows = np.flatnonzero(choose[of_rows])
        order = rows[np.argsort(of_rows[rows], kind="stable")]
        yield piece.to_native().take(order), of_rows[order]


def split_file(reader: Reader, file: Location, buckets: int, wanted: tuple[int, ...]) -> list[Any]:
    """The rows of a file by bucket: a table for each of the wanted ones, and at the end a `Failure` or None."""
    try:
        tables, of_rows = zip(*bucketed(reader, file, buckets, frozenset(wanted)), strict=True)
    except LogcdeError as error:
        return [None] * len(wanted) + [Failure.of(file, error)]
    whole, every = together(tables), np.concatenate(of_rows)
    order = np.argsort(every, kind="stable")
    edges = np.searchsorted(every[order], [*wanted, buckets])
    whole = whole.take(order).combine_chunks()
    # Slices share the memory of the whole, which is not to be sent with each of them: `take` copies.
    rows = [np.arange(start, stop) for start, stop in pairwise(edges)]
    return [whole.take(one) for one in rows] + [None]


def manifest_of(folder: Location) -> dict[str, Any] | None:
    """The manifest of a folder; None if there is none."""
    path = folder / MANIFEST
    with reachable(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            content = file.read()
    try:
        return read_document(content, FORMAT)
    except ValueError as error:
        raise TableError(
            f"{path} is not a manifest of logcde, or is damaged: {error}.",
            f"Remove {folder}, or choose another folder with -o.",
        ) from error


def write_manifest(folder: Location, content: dict[str, Any]) -> None:
    """Write the manifest of a folder."""
    text = write_document(content, FORMAT, indent=1)
    with writing(folder / MANIFEST):
        if isinstance(folder, Path):
            write_whole(folder / MANIFEST, text)
            return
        with _whole(folder / MANIFEST) as temporary:
            temporary.write_bytes(text)


def _written(plan: Plan, groups: Iterator[Streams], part: PartFile) -> Part:
    """Write a part to a temporary file that takes its name at the end."""
    pyarrow, tally = arrow(), Tally()
    # Tasks are processes of their own, so nothing else is warned of meanwhile.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LogcdeWarning)
        with (
            writing(part.path),
            _whole(part.path) as temporary,
            pyarrow.parquet.ParquetWriter(temporary, plan.columns) as writer,
        ):
            for table in plan.tables(groups, tally):
                writer.write_table(table)
            record = write_document({"key": part.key, "tally": dataclasses.asdict(tally)}, FORMAT)
            writer.add_key_value_metadata({METADATA: record})
    known = tuple(one.message for one in caught if isinstance(one.message, LogcdeWarning))
    for one in caught:
        if not isinstance(one.message, LogcdeWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return Part(part.name, part.source, tally, known)


@contextlib.contextmanager
def _whole(path: Location) -> Iterator[Path]:
    """A temporary local file that becomes `path` on success; remote ones are uploaded, then renamed."""
    if isinstance(path, Path):
        with whole_file(path) as temporary:
            yield temporary
        return
    system, name = path.system, path.path
    parent = name.rpartition("/")[0]
    hidden = f"{parent}/{PREFIX}{secrets.token_hex(8)}-{path.name}.unfinished"  # which is no name of a table
    handle, local = tempfile.mkstemp(prefix=PREFIX)
    os.close(handle)
    try:
        yield Path(local)
        system.makedirs(parent, exist_ok=True)
        try:
            system.put_file(local, hidden)
            system.mv(hidden, name)
        except BaseException:
            with contextlib.suppress(OSError):  # of the first error only
                system.rm_file(hidden)
            raise
    finally:
        Path(local).unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Location) -> Iterator[None]:
    """Raise errors of writing as `UnwrittenError`. Errors of reading are other ones already."""
    try:
        yield
    except OSError as error:
        raise UnwrittenError(
            f"{path} cannot be written: {error.strerror or error}. Parts that are complete were kept.",
            "Check the permissions and the free space of its folder, or choose another folder with -o.",
        ) from error
