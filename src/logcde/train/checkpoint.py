"""What makes two runs the same run: short texts about everything that decides the parameters.

Checkpoints: one safetensors file for each, with the journal of the run as JSON in its header. No pickle.

A file is written under a temporary name, forced to disk and renamed, so a name always stands for a whole file; a
checksum finds what happens to it later. The one before is kept until the new one is there, and is used, with a line
in the log, if the new one cannot be read.
"""

import dataclasses
import logging
import os
import re
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import PyTree

from logcde.errors import CheckpointError, Remedy
from logcde.train.records import Journal
from logcde.train.steps import State, Task


def fingerprint_of(task: Task, state: State, data: PyTree, options: dict[str, object]) -> dict[str, str]:
    """A text for each part of a run. An optimiser is known by what it computes and begins with, data by a checksum."""
    parameters = state.parameters
    update = jax.make_jaxpr(task.optimise)(state, parameters, np.float32(0))
    shapes = jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), parameters)
    return {
        "model": _digest(f"{jax.tree.structure(parameters)} {shapes} {jax.tree.leaves(task.rest)}"),
        "optimiser": _digest(f"{update} {_data_checksum(state.optimiser)}"),
        "data": f"{_data_checksum(data):08x}",
        **{name: str(value) for name, value in options.items()},
    }


def _data_checksum(tree: PyTree) -> int:
    checksum = 0
    for leaf in jax.tree.leaves(tree):
        checksum = zlib.crc32(np.asarray(leaf).tobytes(), checksum)
    return checksum


def _digest(text: str) -> str:
    """A short number for a text, in which addresses in memory do not matter."""
    return f"{zlib.crc32(re.sub('0x[0-9a-f]+', '', text).encode()):08x}"


FORMAT = 1
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints are, how many seconds to train between two, and how many to keep.

    A run that finds one in its folder goes on from there, and ends with the same parameters, bit for bit, as one that
    was never interrupted.
    """

    folder: Path | str
    seconds: float = 60.0
    keep: int = 2

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise CheckpointError(f"keep={self.keep} would leave no checkpoint. Keep at least one; two are safer.")

    def save(self, content: bytes, step: int) -> None:
        """Write one, then remove those that are too old and what killed runs left half written."""
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"step-{step:012d}.safetensors"
        temporary = path.with_suffix(".temporary")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:  # a full disk, most often, on which half of it would only be in the way
            temporary.unlink(missing_ok=True)
            raise
        if os.name == "posix":  # elsewhere a folder cannot be opened
            directory = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(directory)  # the new name, too
            finally:
                os.close(directory)
        for old in (*self.found()[self.keep :], *folder.glob("step-*.temporary")):
            old.unlink()

    def found(self) -> list[Path]:
        """The files of all checkpoints, newest first."""
        return sorted(Path(self.folder).glob("step-*.safetensors"), reverse=True)

    def step(self) -> int | None:
        """After how many steps the newest one was written, None if there are none."""
        found = self.found()
        return int(found[0].stem.removeprefix("step-")) if found else None

    def newest(self) -> bytes | None:
        """The newest one that is whole, None if there are none at all. Damaged ones before it get another name."""
        damaged = {}
        for path in self.found():
            content = path.read_bytes()
            try:
                _read(content)
            except CheckpointError as fault:
                damaged[path] = fault
                continue
            for other, fault in damaged.items():
                log.warning("Going on from %s, since %s cannot be read: %s", path.name, other, fault)
                other.replace(other.with_suffix(".damaged"))
            return content
        if damaged:
            faults = " ".join(f"{path}: {fault}" for path, fault in damaged.items())
            raise CheckpointError(f"No checkpoint can be read. {faults}", Remedy.FRESH)
        return None


class _Header(msgspec.Struct):
    """What is written beside the arrays."""

    format: int
    checksum: int
    fingerprint: dict[str, str]
    journal: Journal


def encode(arrays: PyTree, journal: Journal, fingerprint: dict[str, str]) -> bytes:
    """Arrays by the names of their places in the tree, and the rest as JSON."""
    named = {name: _plain(leaf) for name, leaf in _named(arrays)}
    header = _Header(FORMAT, _checksum(named), fingerprint, journal)
    return safetensors.numpy.save(named, {"logcde": msgspec.json.encode(header).decode()})


def decode(content: bytes, like: PyTree, fingerprint: dict[str, str]) -> tuple[Any, Journal]:
    """Back again, into a tree like the given one, if it is of the same run."""
    named, header = _read(content)
    differing = [
        f"{name} was {header.fingerprint.get(name)}, is {value}"
        for name, value in fingerprint.items()
        if header.fingerprint.get(name) != value
    ]
    if differing:
        raise CheckpointError(
            "The checkpoint belongs to another run: " + "; ".join(differing) + ".", Remedy.OTHER_FOLDER
        )
    leaves = [_as(named[name], leaf) for name, leaf in _named(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header.journal


def _read(content: bytes) -> tuple[dict[str, np.ndarray], _Header]:
    try:
        named = safetensors.numpy.load(content)
        size = int.from_bytes(content[:8], "little")
        metadata = msgspec.json.decode(content[8 : 8 + size])["__metadata__"]
        header = msgspec.json.decode(metadata["logcde"], type=_Header)
    except (safetensors.SafetensorError, msgspec.MsgspecError, KeyError) as fault:
        raise CheckpointError(f"It is truncated or no checkpoint of this library ({fault}).") from fault
    if header.format != FORMAT:
        raise CheckpointError(f"It has format {header.format}, this version reads format {FORMAT}.")
    if header.checksum != _checksum(named):
        raise CheckpointError("Its checksum is wrong: it was damaged after it had been written.")
    return named, header


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


def _plain(leaf: Any) -> np.ndarray:
    """An array of a type that the format has; others as bytes."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.array(leaf, order="C")
    return array if array.dtype.kind in "fiub" else np.frombuffer(array.tobytes(), np.uint8)


def _as(stored: np.ndarray, leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(leaf))
    if stored.dtype != leaf.dtype:
        stored = np.frombuffer(stored.tobytes(), leaf.dtype)
    return stored.reshape(leaf.shape)


def _checksum(named: dict[str, np.ndarray]) -> int:
    total = 0
    for name in sorted(named):
        total = zlib.crc32(name.encode() + named[name].tobytes(), total)
    return total
