"""Events that carry more than values: Lie elements, or signatures whose logarithm is one.

The local records of `app:proof_faithfulness` in the paper: Delta is given, or Delta = log H. Its first level says how
far each channel moved; the brackets above become terms.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from logcde.algebra import Basis, Tensor, expand, log, project
from logcde.errors import StreamError
from logcde.streams.labels import series_ids
from logcde.streams.numeric import as_numbers
from logcde.streams.places import name
from logcde.streams.schema import Term, names_of

Lists = Sequence | np.ndarray
TOLERANCE = 1e-4


class LieEvents(NamedTuple):
    """Values and terms of every series, as `Streams.from_arrays` takes them."""

    values: list[np.ndarray]
    terms: dict[Term, list[np.ndarray]]


def from_lie(increments: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Coordinates (events, lie) of each series in `Basis(channels, depth)`, as values and terms."""
    basis = Basis(names_of(channels), depth)
    identifiers = series_ids(ids, len(increments))
    blocks = [
        _block(block, basis.dimension, f"a Lie element of depth {depth}", identifiers[series])
        for series, block in enumerate(increments)
    ]
    # The base point is 0, so what a channel has moved in all is its value.
    values = [np.cumsum(block[:, : basis.width], axis=0) for block in blocks]
    terms = {
        Term(basis.labels[place], nested(basis, place)): [block[:, place] for block in blocks]
        for place in range(basis.width, basis.dimension)
    }
    return LieEvents(values, terms)


def from_group(signatures: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Signatures (events, words) of each series, levels 1..depth flat in C order, as values and terms."""
    basis = Basis(names_of(channels), depth)
    identifiers = series_ids(ids, len(signatures))
    sizes = [basis.width**level for level in range(1, depth + 1)]
    blocks = [
        _block(block, sum(sizes), f"a signature of depth {depth} without its constant term", identifiers[series])
        for series, block in enumerate(signatures)
    ]
    joined = np.concatenate(blocks) if blocks else np.empty((0, sum(sizes)))
    levels = np.split(joined, np.cumsum(sizes)[:-1], axis=1)
    # Streams are float64 whatever the precision that JAX was set to.
    with jax.enable_x64(True):
        coordinates, defect = map(np.asarray, _logarithm(tuple(levels), basis))
    lengths = [len(block) for block in blocks]
    bad = np.flatnonzero(defect > TOLERANCE * (1 + np.abs(joined).max(axis=1, initial=0.0)))
    if bad.size:
        series = int(np.searchsorted(np.cumsum(lengths), bad[0], side="right"))
        row = int(bad[0] - sum(lengths[:series]))
        raise StreamError(
            f"Series {name(identifiers[series])}, event {row}: this is no signature, for its logarithm is not a Lie "
            f"element (it misses by {defect[bad[0]]:.2g}). Check the order of the words: levels 1 to {depth}, each in "
            "lexicographic order, without the constant term."
        )
    return from_lie(np.split(coordinates, np.cumsum(lengths)[:-1]), channels, depth, ids)


@partial(jax.jit, static_argnames="basis")
def _logarithm(levels: tuple, basis: Basis) -> tuple[Array, Array]:
    """Lyndon coordinates of log H for each event, and how far log H is from the Lie element that has them."""
    logarithm = log(Tensor((jnp.ones_like(levels[0][:, :1]), *levels), basis))
    element = project(logarithm)
    misses = [jnp.abs(a - b) for a, b in zip(expand(element).levels, logarithm.levels, strict=True)]
    return element.coordinates, jnp.concatenate(misses, axis=1).max(axis=1)


def nested(basis: Basis, place: int) -> str | tuple:
    """A coordinate's bracket as nested pairs of letters.

    >>> nested(Basis(("a", "b"), 3), 3)
    ('a', ('a', 'b'))
    """
    left, right = basis.brackets[place].tolist()
    return basis.letters[place] if left < 0 else (nested(basis, left), nested(basis, right))


def _block(block: object, width: int, what: str, identifier: object) -> np.ndarray:
    who = f"Series {name(identifier)}"
    numbers = as_numbers(block, lambda at: f"{who}, event {at[0]}, coordinate {at[1]}")
    if numbers.ndim != 2 or numbers.shape[1] != width:
        raise StreamError(
            f"{who} has increments of shape {numbers.shape}, but {what} has {width} coordinates. "
            f"Give an array of shape (events, {width})."
        )
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0].tolist()
        raise StreamError(
            f"{who}, event {row}, coordinate {column} is {float(numbers[row, column])!r}. Every coordinate of an event "
            "must be finite; zero means no movement."
        )
    return numbers
