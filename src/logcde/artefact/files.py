"""The directory of a saved model: written completely or not at all, and verified when it is read.

`model.json` holds the checksum of `model.safetensors` and one of its own content, so that any change of either is
detected. It also lists extra files in the directory, which are never read here.
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

from logcde.artefact.encoding import Document, decode, encode, plain
from logcde.artefact.registry import Names
from logcde.errors import ArtefactError, Remedy

FORMAT = 2
"""1: logcde 0.1, whose classes had other names."""
MODEL_JSON, MODEL_TENSORS = "model.json", "model.safetensors"
REPORT = "report.html"
"""May be added to a saved model later; removed when the model is replaced."""
UNFINISHED = "unfinished"
"""A folder in the directory of a model while it is being trained; removed when the model is saved."""
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
    arrays = safetensors.numpy.save(tensors)
    document = {
        "format": FORMAT,
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES}
        | {"python": platform.python_version()},
        "summary": plain({} if summary is None else summary),
        "model": structure,
        "tensors": {"file": MODEL_TENSORS, "sha256": hashlib.sha256(arrays).hexdigest()},
    }
    texts = {} if extra_files is None else extra_files
    if texts:
        document["extra_files"] = sorted(texts)
    document["sha256"] = _digest(document)
    replaces = check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex[:12]
    new, old = (target.with_name(f".{target.name}.{token}.{suffix}") for suffix in ("new", "old"))
    try:
        new.mkdir()
        _write(new / MODEL_TENSORS, arrays)
        for name, text in texts.items():
            _write(new / name, text.encode())
        _write(new / MODEL_JSON, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
        _sync(new)
        if replaces:
            target.rename(old)
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(new, ignore_errors=True)
        raise
    _sync(target.parent)
    if replaces:
        shutil.rmtree(old)


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
    data = _read(target / MODEL_TENSORS)
    if hashlib.sha256(data).hexdigest() != document["tensors"]["sha256"]:
        raise ArtefactError(
            f"{target / MODEL_TENSORS} is not the file that was saved: its checksum differs.", SAVE_AGAIN
        )
    try:
        tensors = {name: _array(spec) for name, spec in safetensors.deserialize(data)}
        model = decode(document["model"], tensors, Names())
    except ArtefactError as error:
        raise ArtefactError(f"{target / MODEL_JSON} cannot be decoded. {error.found}", error.remedy) from error
    except Exception as error:  # the checks of any class may have run
        raise ArtefactError(f"{target / MODEL_JSON} cannot be decoded: {error!r}.", SAVE_AGAIN) from error
    if not isinstance(model, eqx.Module):
        raise ArtefactError(f"{target / MODEL_JSON} holds a {type(model).__name__} and not a model.")
    return model


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
        others -= {REPORT, *_document(target / MODEL_JSON).get("extra_files", ())}
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
    return str(_document(Path(path) / MODEL_JSON)["model"]["type"])


def _document(file: Path) -> Document:
    content = _read(file)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ArtefactError(f"{file} is damaged: it is not JSON ({error}).", SAVE_AGAIN) from error
    if not isinstance(document, dict) or "format" not in document:
        raise ArtefactError(f"{file} does not describe a model of logcde.")
    if document["format"] != FORMAT:
        raise _other_format(file, document)
    stored = document.pop("sha256", None)
    if _digest(document) != stored:
        raise ArtefactError(f"{file} was changed after it was saved: its checksum differs.", SAVE_AGAIN)
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


def _digest(document: Document) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _array(spec: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(spec["data"], jnp.dtype(DTYPES[spec["dtype"]])).reshape(spec["shape"])


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        left = sorted(file.parent.parent.glob(f".{file.parent.name}.*.old"))
        interrupted = f" Replacing it was interrupted; the older model is in {left[0]}." if left else ""
        remedy = f"Rename {left[0].name} to {file.parent.name}." if left else "Check the path."
        raise ArtefactError(f"{file} cannot be read: {error.strerror}.{interrupted}", remedy) from error


def _write(file: Path, data: bytes) -> None:
    with file.open("xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    """Force a directory's entries to disk, where the system supports it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
