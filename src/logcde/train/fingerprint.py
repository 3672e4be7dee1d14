"""What makes two runs the same run: short texts about everything that decides the parameters."""

import re
import zlib

import jax
import numpy as np
from jaxtyping import PyTree

from logcde.train.steps import State, Task


def fingerprint_of(task: Task, state: State, data: PyTree, options: dict[str, object]) -> dict[str, str]:
    """A text for each part of a run. An optimiser is known by what it computes and begins with, data by a checksum."""
    parameters = state.parameters
    update = jax.make_jaxpr(task.optimise)(state, parameters, np.float32(0))
    shapes = jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), parameters)
    return {
        "model": _digest(f"{jax.tree.structure(parameters)} {shapes} {jax.tree.leaves(task.rest)}"),
        "optimiser": _digest(f"{update} {_checksum(state.optimiser)}"),
        "data": f"{_checksum(data):08x}",
        **{name: str(value) for name, value in options.items()},
    }


def _checksum(tree: PyTree) -> int:
    checksum = 0
    for leaf in jax.tree.leaves(tree):
        checksum = zlib.crc32(np.asarray(leaf).tobytes(), checksum)
    return checksum


def _digest(text: str) -> str:
    """A short number for a text, in which addresses in memory do not matter."""
    return f"{zlib.crc32(re.sub('0x[0-9a-f]+', '', text).encode()):08x}"
