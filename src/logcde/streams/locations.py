"""Where tables are: local paths, URLs that fsspec opens, and folders and patterns of both.

A `Remote` has the few methods of `Path` that readers of tables need. This module knows names, not what is in the files.
"""

import contextlib
import dataclasses
import gzip
import importlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from logcde._files import PREFIX
from logcde.errors import TableError

TABLE_ENDINGS = (".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
"""Ends of the names of files that are taken from a folder."""
WILD = "*?["
VERSIONS = ("ETag", "etag", "mtime", "LastModified", "created")
"""What file systems of fsspec say of when a file was written, the best first."""
# pathlib merges the two slashes of a URL into one. A single letter would be a drive.
URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)(?::/{1,2}|::)(?=[^/]|$)")


@dataclasses.dataclass(frozen=True)
class Remote:
    """A file or folder that fsspec opens, such as `s3://bucket/vitals.parquet`."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on."""
        return PurePosixPath(self.url).suffix

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.url).stem

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def open(self, mode: str = "rb") -> Any:
        """Open the file."""
        return self.system.open(self.path, mode)

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return self.system.exists(self.path)

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self.system.isdir(self.path)

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.system.isfile(self.path)

    @property
    def system(self) -> Any:
        """The file system of fsspec."""
        return _fsspec(self.url).core.url_to_fs(self.url)[0]

    @property
    def path(self) -> str:
        """The path in that file system."""
        return _fsspec(self.url).core.url_to_fs(self.url)[1]


Location: TypeAlias = Path | Remote
"""A local path or a URL."""


def location(given: str | Path | Remote) -> Location:
    """A local path, or a URL, also where it has been through `Path`, which merges slashes.

    >>> location("vitals.csv").name, str(location(Path("s3://bucket/vitals.csv")))
    ('vitals.csv', 's3://bucket/vitals.csv')
    >>> location("file:///data/a.csv") == Path("/data/a.csv")
    True
    """
    if isinstance(given, Remote):
        return given
    text = str(given)
    found = URL.match(text)
    if text.lower().startswith("file:/"):
        return Path(re.sub("^file:/+", "/", text, flags=re.IGNORECASE))
    if found is None:
        return Path(given)
    return Remote(f"{found[1]}://{text[found.end() :]}")


def tables_at(given: str | Path | Remote) -> list[Location]:
    """The files that a path, a folder, a pattern such as `vitals/*.parquet` or a URL of these stands for, sorted.

    Of a folder these are the tables in it and in the folders below, by their names; hidden ones, which begin with a dot
    or an underscore, are left out. A path that stands for no other file stands for itself.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", ".hidden.csv", "notes.md"):
    ...         _ = Path(folder, name).write_text("id,x")
    ...     [file.name for file in tables_at(folder)], [file.name for file in tables_at(f"{folder}/b*")]
    (['a.csv', 'b.csv'], ['b.csv'])
    """
    whole = location(given)
    with reachable(whole):
        if whole.is_dir():
            return _in_folder(whole) or [whole]
        if not whole.exists() and any(sign in str(whole) for sign in WILD):
            found = _matching(whole)
            if not found:
                raise TableError(f"No file matches {whole}.", "Check the pattern.")
            return found
    return [whole]


def is_many(given: str | Path | Remote) -> bool:
    """Whether this stands for a folder or a pattern rather than for one file."""
    whole = location(given)
    with reachable(whole):
        return whole.is_dir() or (any(sign in str(whole) for sign in WILD) and not whole.exists())


def identity(file: Location) -> tuple[str, int, str]:
    """Name, size and time of writing (or tag) of a file: what has to be the same for it to count as unchanged."""
    with reachable(file):
        if isinstance(file, Path):
            status = file.stat()
            return str(file), status.st_size, str(status.st_mtime_ns)
        known = file.system.info(file.path)
        tag = next(
            (str(known[key]) for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in known), ""
        )
        return str(file), int(known.get("size") or 0), tag


@contextlib.contextmanager
def opened(file: Location) -> Iterator[Any]:
    """What pyarrow reads: the path of a local file, or an open remote one."""
    if isinstance(file, Path):
        yield file
        return
    with file.open() as content, gzip.open(content) if file.suffix == ".gz" else content as text:
        yield text


@contextlib.contextmanager
def reachable(place: Location) -> Iterator[None]:
    """Raise errors of a file system as `TableError`."""
    try:
        yield
    except TableError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise TableError(f"{place} cannot be read: {reason}.", "Is the name right, and may you read it?") from error


def _in_folder(folder: Location) -> list[Location]:
    if isinstance(folder, Path):
        under = ((file, file.relative_to(folder).parts) for file in folder.rglob("*") if file.is_file())
        return [*sorted(file for file, parts in under if _is_table(parts))]
    root = folder.path.rstrip("/")
    under = ((path, PurePosixPath(path[len(root) :].lstrip("/")).parts) for path in folder.system.find(root))
    return [_again(folder, path) for path in sorted(path for path, parts in under if _is_table(parts))]


def _matching(pattern: Location) -> list[Location]:
    if isinstance(pattern, Path):
        anchor = Path(pattern.anchor) if pattern.is_absolute() else Path()
        found = (file for file in anchor.glob(str(pattern.relative_to(anchor))) if file.is_file())
        return [*sorted(file for file in found if not file.name.startswith(PREFIX))]
    return [_again(pattern, path) for path in sorted(pattern.system.glob(pattern.path)) if pattern.system.isfile(path)]


def _again(like: Remote, path: str) -> Remote:
    return Remote(like.system.unstrip_protocol(path))


def _is_table(parts: tuple[str, ...]) -> bool:
    return not any(part.startswith((".", "_")) for part in parts) and parts[-1].endswith(TABLE_ENDINGS)


def _fsspec(url: str) -> Any:
    try:
        importlib.import_module("fsspec.core")
        return importlib.import_module("fsspec")
    except ImportError as error:
        raise TableError(
            f"{url} is a URL, and fsspec, which opens URLs, is not installed.", 'pip install "logcde[ray]" or fsspec.'
        ) from error
