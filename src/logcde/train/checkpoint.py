"""Checkpoints: one safetensors file each, with the progress of the run as JSON in its header. No pickle.

A file is written under a temporary name, forced to disk and renamed, so that a name always stands for a complete file;
a checksum over all its bytes detects later damage, and the step in its name is that of the progress. The checkpoint
before is kept until the new one is written, and is used, with a warning in the log, if the new one cannot be read. A
fingerprint of everything that decides the parameters keeps a run from resuming a checkpoint of another one, and a lock
keeps two runs from writing into one folder.
"""

import contextlib
import dataclasses
import logging
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

from logcde._documents import BLANK, SEAL, check_seal, parse, sealed
from logcde._files import held, read_regular, write_whole
from logcde.errors import CheckpointError, Remedy
from logcde.train.records import RunProgress
from logcde.train.steps import StepState, TrainStep

FORMAT = 4
"""Format 3 had a checksum of the arrays only."""
NAME = re.compile(r"step-(\d{12})\.safetensors")
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints.

    A run that finds a checkpoint in the folder resumes from it, and ends with the same parameters, bit for bit, as an
    uninterrupted run.

    Args:
        folder: Where the checkpoints are; created if it does not exist.
        seconds: Training time between two checkpoints.
        keep: How many checkpoints to keep.
    """

    folder: Path | str
    seconds: float = 60.0
    keep: int = 2

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise CheckpointError(f"keep={self.keep} would leave no checkpoint.", "Keep at least one; two are safer.")

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Hold the folder: a second run that wants to write there is refused."""
        return held(Path(self.folder), Path(self.folder) / ".lock")

    def save(self, content: bytes, step: int) -> None:
        """Write a checkpoint, then remove those beyond `keep`.

        Checkpoints of later steps are removed as well: a run that went back has abandoned them.
        """
        path = write_whole(Path(self.folder) / f"step-{step:012d}.safetensors", content)
        found = self.found()
        later = found.index(path)
        for old in (*found[:later], *found[later + self.keep :]):
            old.unlink()

    def found(self) -> list[Path]:
        """The files of all checkpoints, newest first."""
        named = Path(self.folder).glob("step-*.safetensors")
        return sorted((path for path in named if NAME.fullmatch(path.name)), reverse=True)

    def step(self) -> int | None:
        """The step of the newest checkpoint, None if there is none."""
        found = self.found()
        return _step_of(found[0]) if found else None

    def newest(self) -> bytes | None:
        """The newest checkpoint that can be read, None if there are none at all. Damaged newer ones are renamed."""
        damaged = {}
        for path in self.found():
            try:
                content = _content(path)
            except CheckpointError as error:
                damaged[path] = error
                continue
            for other, error in damaged.items():
                log.warning("Resuming from %s, since %s cannot be read: %s", path.name, other, error)
                other.replace(other.with_suffix(".damaged"))
            return content
        if damaged:
            reasons = " ".join(f"{path}: {error}" for path, error in damaged.items())
            raise CheckpointError(f"No checkpoint can be read. {reasons}", Remedy.FRESH)
        return None


class _Header(msgspec.Struct):
    """The JSON document in the header of the file."""

    format: int
    fingerprint: dict[str, str]
    progress: RunProgress


def encode(arrays: PyTree, progress: RunProgress, fingerprint: dict[str, str]) -> bytes:
    """The content of a checkpoint: arrays named by their paths in the tree, and a JSON header."""
    named = {name: _storable(leaf) for name, leaf in _named_leaves(arrays)}
    header = _Header(FORMAT, fingerprint, progress)
    return sealed(safetensors.numpy.save(named, {"logcde": msgspec.json.encode(header).decode(), SEAL: BLANK}))


def decode(content: bytes, like: PyTree, fingerprint: dict[str, str]) -> tuple[Any, RunProgress]:
    """The arrays, in a tree with the structure of `like`, and the progress.

    Raises:
        CheckpointError: The content is damaged, or has the fingerprint of another run.
    """
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
    try:
        leaves = [_restored(named[name], leaf) for name, leaf in _named_leaves(like)]
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"The arrays of the checkpoint are not those of this run ({error}).") from error
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header.progress


def fingerprint_of(train_step: TrainStep, state: StepState, data: PyTree, options: dict[str, object]) -> dict[str, str]:
    """A short text for everything that decides the parameters of a run.

    An optimiser is identified by the program of its update and by its initial state, data by a checksum.
    """
    parameters = state.parameters
    update = jax.make_jaxpr(train_step.optimise)(state, parameters, np.float32(0))
    shapes = jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), parameters)
    return {
        "model": _text_checksum(f"{jax.tree.structure(parameters)} {shapes} {jax.tree.leaves(train_step.rest)}"),
        "optimiser": _text_checksum(f"{update} {_tree_checksum(state.optimiser)}"),
        "data": f"{_tree_checksum(data):08x}",
        **{name: str(value) for name, value in options.items()},
    }


def _content(path: Path) -> bytes:
    """The content of a checkpoint whose journal is that of its name."""
    try:
        content = read_regular(path)
    except OSError as error:
        raise CheckpointError(f"It cannot be read: {error.strerror}.") from error
    step = _read(content)[1].progress.step
    if step != _step_of(path):
        raise CheckpointError(f"It is of step {step}, but its name says {_step_of(path)}.")
    return content


def _step_of(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _read(content: bytes) -> tuple[dict[str, np.ndarray], _Header]:
    try:
        size = int.from_bytes(content[:8], "little")
        document = parse(parse(content[8 : 8 + size])["__metadata__"]["logcde"])
        found = document["format"]
        if found == FORMAT:
            check_seal(content)
            return safetensors.numpy.load(content), msgspec.convert(document, _Header)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"It is damaged, or not a checkpoint of logcde ({error}).") from error
    raise CheckpointError(f"It has format {found!r}; this version of logcde reads format {FORMAT}.")


def _named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


def _storable(leaf: Any) -> np.ndarray:
    """An array of a dtype that safetensors supports; others as bytes."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.array(leaf, order="C")
    return array if array.dtype.kind in "fiub" else np.frombuffer(array.tobytes(), np.uint8)


def _restored(stored: np.ndarray, leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(leaf))
    if stored.dtype != leaf.dtype:
        stored = np.frombuffer(stored.tobytes(), leaf.dtype)
    return stored.reshape(leaf.shape)


def _tree_checksum(tree: PyTree) -> int:
    total = 0
    for leaf in jax.tree.leaves(tree):
        total = zlib.crc32(np.asarray(leaf).tobytes(), total)
    return total


def _text_checksum(text: str) -> str:
    """The checksum of a text without the memory addresses in it."""
    return f"{zlib.crc32(re.sub('0x[0-9a-f]+', '', text).encode()):08x}"
