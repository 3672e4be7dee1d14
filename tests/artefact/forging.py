"""Saved models that someone edited and whose checksums are right again: a checksum is no signature."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from logcde._documents import write_document


def sealed_again(document: dict[str, Any]) -> bytes:
    """A document with a right checksum."""
    content = {name: value for name, value in document.items() if name not in ("seal", "format")}
    return write_document(content, document["format"], indent=1)


def forge(folder: Path, name: str, content: bytes) -> None:
    """Write a file of a saved model, with its new checksum in `model.json`."""
    (folder / name).write_bytes(content)
    document = json.loads((folder / "model.json").read_text())
    document["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "model.json").write_bytes(sealed_again(document))


def edited(model: Any, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Save a model in a folder, and edit its `model.json`."""
    model.save(folder / "model")
    document = json.loads((folder / "model" / "model.json").read_text())
    change(document)
    (folder / "model" / "model.json").write_bytes(sealed_again(document))
    return folder / "model"
