"""Files that are whole or not there."""

import os
from pathlib import Path


def write_whole(path: Path, content: str) -> Path:
    """Write a text under a temporary name and rename it, so that nobody ever sees half of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "note.txt"), "whole").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
