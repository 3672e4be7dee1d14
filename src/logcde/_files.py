"""Files that are whole or not there."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to, which becomes the file if all goes well and is gone if anything does not.

    The temporary file is there from the start, so that a folder that cannot be written to is found at once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "new", "note.txt")) as unfinished:
    ...         _ = unfinished.write_text("whole")
    ...     sorted(file.name for file in Path(folder, "new").iterdir())
    ['note.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        temporary.touch()
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str) -> Path:
    """Write a text under a temporary name and rename it, so that nobody ever sees half of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "note.txt"), "whole").read_text()
    'whole'
    """
    with whole_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return path
