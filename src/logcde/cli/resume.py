"""Work that an interrupted command leaves behind, so that the same command resumes it: a folder and its key.

The key holds everything that determines the outcome: options, and checksums of the files that were read.
"""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logcde._files import write_whole
from logcde.errors import CheckpointError

KEY_FILE = "belongs.json"
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

    def begin(self, *, fresh: bool = False) -> None:
        """Claim the folder, with the work in it if its key is the same; refuse other work, or remove it if `fresh`."""
        if fresh:
            self.remove()
        file = self.folder / KEY_FILE
        if not file.exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise CheckpointError(f"{self.folder} cannot be resumed: its {KEY_FILE} is missing.", START_OVER)
            write_whole(file, json.dumps(self.key, ensure_ascii=False, indent=1) + "\n")
            return
        try:
            before = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{file} is damaged: it is not JSON ({error}).", START_OVER) from error
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


def checksums(files: Mapping[str, Path | None]) -> dict[str, str]:
    """The checksum of each file that exists, as entries of a key."""
    return {f"content of {name}": digest(file) for name, file in files.items() if file is not None and file.is_file()}


def digest(file: Path) -> str:
    """The SHA-256 checksum of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
