"""The two files of a saved model: written completely or not at all, and checked when they are read.

`model.json` holds the checksum of `model.safetensors` and one of its own content, so that whatever changes in either is
noticed. It also names the other files that were saved beside the model, which are never looked into here.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from logcde.artefact.decoding import decode
from logcde.artefact.encoding import Document, encode, plain
from logcde.artefact.registry import Names
from logcde.errors import ArtefactError, Remedy

FORMAT = 1
TEXT, NUMBERS = "model.json", "model.safetensors"
REPORT = "report.html"
"""What may be added to a saved model later; it goes when the model is replaced."""
UNFINISHED = "unfinished"
"""A folder in it while a model is being trained; it goes when the model is saved."""
LIBRARIES = ("logcde", "jax", "equinox", "numpy", "safetensors")
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "C64": "complex64",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
AGAIN = "Save the model again, or copy the directory again from where it came."


def save(
    model: eqx.Module,
    path: str | os.PathLike,
    *,
    summary: Mapping[str, Any] | None = None,
    extra_files: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model as a directory. It appears complete or not at all.

    `summary` is what people should know of its training, `extra_files` are names and contents of further text files. An
    older model of that name is replaced with `overwrite=True` only, and nothing else is ever replaced.
    """
    target = Path(path)
    tensors: dict[str, np.ndarray] = {}
    structure = encode(model, "", tensors, Names())
    numbers = safetensors.numpy.save(tensors)
    document = {
        "format": FORMAT,
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES}
        | {"python": platform.python_version()},
        "summary": plain({} if summary is None else summary),
        "model": structure,
        "tensors": {"file": NUMBERS, "sha256": hashlib.sha256(numbers).hexdigest()},
    }
    texts = {} if extra_files is None else extra_files
    if texts:
        document["extra_files"] = sorted(texts)
    document["sha256"] = _digest(document)
    replaces = check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex[:12]
    fresh, old = (target.with_name(f".{target.name}.{token}.{what}") for what in ("new", "old"))
    try:
        fresh.mkdir()
        _write(fresh / NUMBERS, numbers)
        for name, text in texts.items():
            _write(fresh / name, text.encode())
        _write(fresh / TEXT, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
        _sync(fresh)
        if replaces:
            target.rename(old)
        fresh.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync(target.parent)
    if replaces:
        shutil.rmtree(old)


def load(path: str | os.PathLike) -> Any:
    """Read a model that was saved. Whatever is wrong with it is an `ArtefactError`.

    >>> import jax, logcde, tempfile
    >>> model = logcde.log_slice(logcde.Basis.of_width(2, 2), hidden=8, outputs=1, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/mine", summary={"epochs": 0})
    ...     same = load(f"{folder}/mine")
    >>> same.dynamics.field.basis.dimension
    3
    """
    target = Path(path)
    document = _document(target / TEXT)
    data = _read(target / NUMBERS)
    if hashlib.sha256(data).hexdigest() != document["tensors"]["sha256"]:
        raise ArtefactError(f"{target / NUMBERS} is not the file that was saved: its checksum differs. {AGAIN}")
    try:
        tensors = {name: _array(spec) for name, spec in safetensors.deserialize(data)}
        model = decode(document["model"], tensors, Names())
    except ArtefactError as error:
        raise ArtefactError(f"{target / TEXT} cannot be made into a model. {error}") from error
    except Exception as error:  # the checks of any class may have run
        raise ArtefactError(f"{target / TEXT} cannot be made into a model: {error!r}. {AGAIN}") from error
    if not isinstance(model, eqx.Module):
        raise ArtefactError(f"{target / TEXT} holds a {type(model).__name__} and not a model.")
    return model


def check_target(path: str | os.PathLike, overwrite: bool) -> bool:
    """Whether a model saved there would replace an older one; anything else in the way is refused."""
    target = Path(path)
    if not target.exists():
        return False
    if not target.is_dir():
        raise ArtefactError(f"{target} exists and is not a saved model. Choose another name, or move it away.")
    further = {part.name for part in target.iterdir()} - {TEXT, NUMBERS, UNFINISHED}
    if further and (target / TEXT).is_file():
        further -= {REPORT, *_document(target / TEXT).get("extra_files", ())}
    if further:
        raise ArtefactError(
            f"{target} exists and is not a saved model: there is {min(further)!r} in it. Choose another name, or move "
            "it away."
        )
    if not overwrite:
        raise ArtefactError(f"{target} exists already.", Remedy.OVERWRITE)
    return True


def kind_of(path: str | os.PathLike) -> str:
    """The name of the class that is saved there, such as "models.CDE", without making anything of it."""
    return str(_document(Path(path) / TEXT)["model"]["type"])


def _document(file: Path) -> Document:
    content = _read(file)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ArtefactError(f"{file} is damaged: it is not JSON ({error}). {AGAIN}") from error
    if not isinstance(document, dict) or "format" not in document:
        raise ArtefactError(f"{file} is not the description of a model of logcde.")
    if document["format"] != FORMAT:
        raise ArtefactError(
            f"{file} has format {document['format']!r}; this version of logcde reads {FORMAT}. If the model was saved "
            "by a newer logcde, upgrade."
        )
    said = document.pop("sha256", None)
    if _digest(document) != said:
        raise ArtefactError(f"{file} was changed after it was saved: its checksum differs. {AGAIN}")
    return document


def _digest(document: Document) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _array(spec: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(spec["data"], jnp.dtype(DTYPES[spec["dtype"]])).reshape(spec["shape"])


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        left = sorted(file.parent.parent.glob(f".{file.parent.name}.*.old"))
        hint = f" Saving over it was interrupted; the older model is in {left[0]}: rename it." if left else ""
        raise ArtefactError(f"{file} cannot be read: {error.strerror}. Check the path.{hint}") from error


def _write(file: Path, data: bytes) -> None:
    with file.open("xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    """Let a directory's entries reach the disk, where the system can do that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
