"""Atomic writes: a file is either complete or absent."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` on success and deleted on failure.

    Creates missing folders. The temporary file is created first, so that a read-only folder is an error at once.

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
    """Write a text file atomically, so that no reader sees half of it; returns its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "note.txt"), "whole").read_text()
    'whole'
    """
    with whole_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return path
