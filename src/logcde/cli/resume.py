"""Work that an interrupted command leaves behind, so that the same command resumes it: a folder and its key.

The key holds everything that determines the outcome: options, and checksums of the files that were read.
"""

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from logcde._documents import read_document, write_document
from logcde._files import held, read_regular, remove_abandoned, write_whole
from logcde.errors import CheckpointError, LogcdeError

KEY_FILE = "belongs.json"
FORMAT = 1
"""Of the documents in the folder."""
START_OVER = "Pass --fresh to start over."


@dataclasses.dataclass(frozen=True)
class ResumableWork:
    """A folder of unfinished work, and the key of that work.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     one, other = (ResumableWork(Path(place, "unfinished"), {"steps": steps}) for steps in (10, 20))
    ...     one.begin()
    ...     other.begin()
    Traceback (most recent call last):
    ...
    logcde.errors.CheckpointError: ...unfinished is of an interrupted command with a different 'steps'. ...
    """

    folder: Path
    key: Mapping[str, Any]

    @property
    def checksum(self) -> str:
        """Checksum of the key."""
        return hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()

    def begin(self, *, fresh: bool = False) -> None:
        """Claim the folder, with the work in it if its key is the same; refuse other work, or remove it if `fresh`."""
        if fresh:
            self.remove()
        file = self.folder / KEY_FILE
        if not file.exists():
            if self.folder.exists():
                remove_abandoned(self.folder)  # of a kill before there was a key
            if self.folder.exists() and any(self.folder.iterdir()):
                raise CheckpointError(f"{self.folder} cannot be resumed: its {KEY_FILE} is missing.", START_OVER)
            try:
                write_whole(file, write_document(self.key, FORMAT, indent=1))
            except OSError:
                self.remove()
                raise
            return
        before = read_part(file)
        names = dict.fromkeys([*before, *self.key])
        differing = [name for name in names if before.get(name) != self.key.get(name)]
        if differing:
            from logcde.streams.schema import listed

            raise CheckpointError(
                f"{self.folder} is of an interrupted command with a different {listed(differing)}.",
                f"Repeat the options of that command to resume it. {START_OVER}",
            )

    def remove(self) -> None:
        """Remove the folder, and its parent if that becomes empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        parent = self.folder.parent
        if parent.is_dir() and parent != Path.cwd() and not any(parent.iterdir()):
            parent.rmdir()


@contextlib.contextmanager
def held_output(path: Path, unwritable: Callable[[OSError], LogcdeError]) -> Iterator[None]:
    """Hold what a command writes, so that a second one is refused; `unwritable` explains why it cannot be written."""
    with contextlib.ExitStack() as until_done:
        try:
            until_done.enter_context(held(path))
        except OSError as error:
            raise unwritable(error) from error
        yield


def read_part(file: Path) -> dict[str, Any]:
    """A document in the folder of unfinished work."""
    try:
        return read_document(read_regular(file), FORMAT)
    except ValueError as error:
        raise CheckpointError(f"{file} is damaged: {error}.", START_OVER) from error
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}.", START_OVER) from error


def checksums(files: Mapping[str, Path | None]) -> dict[str, str]:
    """The checksum of each file, folder or pattern of tables that exists, as entries of a key."""
    return {f"content of {name}": digest(file) for name, file in files.items() if file is not None and is_there(file)}


def is_there(file: Path) -> bool:
    """Whether this is a file, or a folder, a pattern or a URL of some."""
    from logcde.streams.locations import is_many, location

    return location(file).is_file() or is_many(file)


def digest(file: Path) -> str:
    """The SHA-256 checksum of a file; of a folder or a pattern of tables, that of the names and checksums of each."""
    from logcde.streams.locations import is_many, reachable, tables_at

    each = []
    for one in tables_at(file):
        with reachable(one), one.open("rb") as content:
            each.append((one.name, hashlib.file_digest(content, "sha256").hexdigest()))
    if not is_many(file):
        return each[0][1]
    return hashlib.sha256("".join(f"{name} {checksum}\n" for name, checksum in each).encode()).hexdigest()
