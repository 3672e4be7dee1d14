"""The directory of a saved model: written completely or not at all, and verified when it is read.

`model.json` holds the size and the checksum of every other file of the model, and a checksum of its own bytes, so that
any change of any of them is detected when it is read.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from logcde._documents import FormatError, read_document, write_document
from logcde._files import (
    read_regular,
    restore_set_aside,
    scratch_folder,
    set_aside,
    set_aside_versions,
    sync_folder,
    write_whole,
)
from logcde.artefact.encoding import Document, decode, encode, plain
from logcde.artefact.registry import Names
from logcde.errors import ArtefactError, Remedy

FORMAT = 3
"""1: logcde 0.1, whose classes had other names. 2: without checksums of extra files."""
MODEL_JSON, MODEL_TENSORS = "model.json", "model.safetensors"
REPORT = "report.html"
"""May be added to a saved model later; removed when the model is replaced."""
UNFINISHED = "unfinished"
"""A folder in the directory of a model while it is being trained; removed when the model is saved."""
LARGEST_DOCUMENT = 1 << 24
"""Bytes of a `model.json`, whose numbers are in the other file. Bounds the time and the memory to read one."""
LIBRARIES = ("logcde", "jax", "equinox", "numpy", "safetensors")
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "C64": "complex64",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
SAVE_AGAIN = "Save the model again, or copy the directory again from its origin."


def save(
    model: eqx.Module,
    path: str | os.PathLike,
    *,
    summary: Mapping[str, Any] | None = None,
    extra_files: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model as a directory. It appears complete or not at all.

    Args:
        model: Any module whose classes are part of logcde, Equinox or Diffrax, or registered.
        path: The directory.
        summary: Facts about the model for readers of `model.json`, such as scores; plain numbers and text.
        extra_files: Names and contents of further text files in the directory.
        overwrite: Replace an older model at `path`. Nothing else is ever replaced.

    Raises:
        ArtefactError: Something in the model cannot be saved, or `path` exists.
    """
    target = Path(path)
    tensors: dict[str, np.ndarray] = {}
    structure = encode(model, "", tensors, Names())
    texts = {} if extra_files is None else extra_files
    parts = {MODEL_TENSORS: safetensors.numpy.save(tensors), **{name: text.encode() for name, text in texts.items()}}
    document = {
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES}
        | {"python": platform.python_version()},
        "summary": plain({} if summary is None else summary),
        "files": {name: _facts(content) for name, content in parts.items()},
        "model": structure,
    }
    finish_interrupted(target)
    replaces = check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as until_replaced, scratch_folder(target) as new:
        old = until_replaced.enter_context(set_aside(target)) if replaces else None
        for name, content in parts.items():
            write_whole(new / name, content)
        write_whole(new / MODEL_JSON, write_document(document, FORMAT, indent=1))
        if old is not None:
            target.rename(old)
        new.rename(target)
        sync_folder(target.parent)


def load(path: str | os.PathLike) -> Any:
    """Load a saved model.

    Args:
        path: The directory.

    Returns:
        The model, equal to the saved one.

    Raises:
        ArtefactError: The directory is missing, damaged, or from another version of logcde.

    >>> import jax, logcde, tempfile
    >>> model = logcde.log_slice(logcde.Basis.of_width(2, 2), hidden=8, outputs=1, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/mine", summary={"epochs": 0})
    ...     same = load(f"{folder}/mine")
    >>> same.dynamics.field.basis.dimension
    3
    """
    target = Path(path)
    document = _document(target / MODEL_JSON)
    try:
        data = _part(target, MODEL_TENSORS, document)
        tensors = {name: _array(spec) for name, spec in safetensors.deserialize(data)}
        model = decode(document["model"], tensors, Names())
    except ArtefactError as error:
        raise ArtefactError(f"{target} cannot be loaded. {error.found}", error.remedy) from error
    except Exception as error:  # the checks of any class may have run
        raise ArtefactError(f"{target} cannot be loaded: {error!r:.300}.", SAVE_AGAIN) from error
    if not isinstance(model, eqx.Module):
        raise ArtefactError(f"{target / MODEL_JSON} holds a {type(model).__name__} and not a model.")
    return model


def read_extra(path: str | os.PathLike, name: str) -> bytes | None:
    """Read one of the extra files of a saved model; None if it was saved without.

    Raises:
        ArtefactError: The file, or `model.json`, is missing or damaged.
    """
    document = _document(Path(path) / MODEL_JSON)
    return _part(Path(path), name, document) if name in document["files"] else None


def finish_interrupted(path: str | os.PathLike) -> bool:
    """Finish what a killed `save` left beside a saved model: keep the new one if it is in place, else the older one.

    Returns:
        Whether there was anything to finish.
    """
    return restore_set_aside(Path(path))


def check_target(path: str | os.PathLike, overwrite: bool) -> bool:
    """Check that a model can be saved at `path`; returns whether it would replace an older one.

    Raises:
        ArtefactError: `path` is an older model and `overwrite` is False, or anything but a saved model.
    """
    target = Path(path)
    if not target.exists():
        return False
    if not target.is_dir():
        raise ArtefactError(f"{target} exists and is not a saved model.", "Choose another name, or move it away.")
    others = {part.name for part in target.iterdir()} - {MODEL_JSON, MODEL_TENSORS, UNFINISHED}
    if others and (target / MODEL_JSON).is_file():
        others -= {REPORT, *_document(target / MODEL_JSON)["files"]}
    if others:
        raise ArtefactError(
            f"{target} exists and is not a saved model: there is {min(others)!r} in it.",
            "Choose another name, or move it away.",
        )
    if not overwrite:
        raise ArtefactError(f"{target} exists already.", Remedy.OVERWRITE)
    return True


def saved_class_name(path: str | os.PathLike) -> str:
    """The name of the saved class, such as "models.SequenceModel", without loading it."""
    match _document(Path(path) / MODEL_JSON)["model"]:
        case {"type": str(name)}:
            return name
    raise ArtefactError(f"{Path(path) / MODEL_JSON} does not name the class of its model.")


def model_digest(path: str | os.PathLike) -> str:
    """The checksum of a saved model in 64 digits. It covers the parameters, whose checksum `model.json` holds.

    Raises:
        OSError: `model.json` cannot be read.
    """
    return hashlib.sha256(read_regular(Path(path) / MODEL_JSON)).hexdigest()


def _document(file: Path) -> Document:
    content = _read(file, LARGEST_DOCUMENT)
    try:
        document = read_document(content, FORMAT)
    except FormatError as error:
        raise _other_format(file, error.document) from error
    except ValueError as error:
        raise ArtefactError(f"{file} is damaged: {error}.", SAVE_AGAIN) from error
    if not isinstance(document.get("files"), dict) or "model" not in document:
        raise ArtefactError(f"{file} does not describe a model of logcde.")
    return document


def _other_format(file: Path, document: Mapping[str, Any]) -> ArtefactError:
    """The error about a file of another version of logcde, which it names."""
    found, versions = document["format"], document.get("versions")
    version = versions.get("logcde") if isinstance(versions, dict) else None
    saved_by = "another version of logcde" if version is None else f"logcde {version}"
    here = importlib.metadata.version("logcde")
    upgrade = isinstance(found, int) and found > FORMAT
    return ArtefactError(
        f"{file} was saved by {saved_by} and has format {found!r}; this version of logcde ({here}) reads format "
        f"{FORMAT}.",
        "Upgrade logcde." if upgrade else f"Load it with {saved_by}, or train the model again.",
    )


def _facts(content: bytes) -> dict[str, Any]:
    """What `model.json` says about another file."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _part(folder: Path, name: str, document: Document) -> bytes:
    """The content of a file that belongs to a model."""
    facts = document["files"].get(name)
    if not isinstance(facts, dict) or not isinstance(facts.get("bytes"), int):
        raise ArtefactError(f"{folder / MODEL_JSON} does not describe {name}.", SAVE_AGAIN)
    file = folder / name
    if file.is_file() and file.stat().st_size != facts["bytes"]:
        raise ArtefactError(f"{file} is not the file that was saved: its size differs.", SAVE_AGAIN)
    content = _read(file, facts["bytes"])
    if _facts(content) != facts:
        raise ArtefactError(f"{file} is not the file that was saved: its checksum differs.", SAVE_AGAIN)
    return content


def _array(spec: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(spec["data"], jnp.dtype(DTYPES[spec["dtype"]])).reshape(spec["shape"])


def _read(file: Path, most: int) -> bytes:
    try:
        return read_regular(file, most)
    except OSError as error:
        left = set_aside_versions(file.parent)
        interrupted = f" Replacing it was interrupted; the older model is in {left[0]}." if left else ""
        remedy = f"Rename {left[0].name} to {file.parent.name}." if left else "Check the path."
        raise ArtefactError(f"{file} cannot be read: {error.strerror}.{interrupted}", remedy) from error
