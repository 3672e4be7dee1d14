"""What an interrupted command leaves for the same command to go on from: a folder, and in it what it belongs to."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logcde._files import write_whole
from logcde.errors import CheckpointError

BELONGS = "belongs.json"


@dataclasses.dataclass(frozen=True)
class Unfinished:
    """A folder of unfinished work, and what decides the outcome of that work: options, and checksums of files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     one, other = (Unfinished(Path(place, "unfinished"), {"steps": steps}) for steps in (10, 20))
    ...     one.begin()
    ...     other.begin()
    Traceback (most recent call last):
    ...
    logcde.errors.CheckpointError: ...unfinished is of a command that was stopped, with another 'steps'. ...
    """

    folder: Path
    of: Mapping[str, Any]

    def begin(self, *, fresh: bool = False) -> None:
        """Take the folder, with what is in it if that is of the same work. Other work is refused, or goes if fresh."""
        if fresh:
            self.remove()
        belongs = self.folder / BELONGS
        if not belongs.exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise CheckpointError(f"{self.folder} does not say what it is of: {BELONGS} is missing. {AGAIN}")
            write_whole(belongs, json.dumps(self.of, ensure_ascii=False, indent=1) + "\n")
            return
        try:
            before = json.loads(belongs.read_text("utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{belongs} is damaged: it is not JSON ({error}). {AGAIN}") from error
        names = dict.fromkeys([*before, *self.of])
        differing = [name for name in names if before.get(name) != self.of.get(name)]
        if differing:
            from logcde.streams.schema import listed

            raise CheckpointError(
                f"{self.folder} is of a command that was stopped, with another {listed(differing)}. To go on with it, "
                f"give what was given then. {AGAIN}"
            )

    def remove(self) -> None:
        """Remove the folder, and the one around it if that is empty then."""
        shutil.rmtree(self.folder, ignore_errors=True)
        around = self.folder.parent
        if around.is_dir() and around != Path.cwd() and not any(around.iterdir()):
            around.rmdir()


def checksums(files: Mapping[str, Path | None]) -> dict[str, str]:
    """What files hold, to know it again; those that are not there are left out."""
    return {f"content of {name}": digest(file) for name, file in files.items() if file is not None and file.is_file()}


def digest(file: Path) -> str:
    """The checksum of a file, to know it again."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


AGAIN = "To begin anew, pass --fresh."
