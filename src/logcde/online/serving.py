"""A model as predictors use it: on plain arrays of the host, one series or many at a time.

What is kept of a series is a tuple of arrays. Any model goes through `CompiledModel`; `logcde.online.linear` has a
faster way for linear ones.
"""

import abc
import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeAlias, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, PyTree

from logcde.embedding import Opening
from logcde.models import AbstractOnlineModel
from logcde.models.model import dtype_of

Kept: TypeAlias = tuple[np.ndarray, ...]
Steps: TypeAlias = Float64[np.ndarray, "_interval lie"]


class AbstractServed(abc.ABC):
    """A model that serves predictions."""

    @abc.abstractmethod
    def start(self, opening: Opening, static: Float64[np.ndarray, "static"]) -> Kept:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """What is kept after more intervals."""

    @abc.abstractmethod
    def advance_many(self, kept: list[Kept], steps: list[Steps]) -> list[Kept]:
        """The same for many series."""

    @abc.abstractmethod
    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """The prediction after more intervals, perhaps none."""

    @abc.abstractmethod
    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """The same for many series."""


class CompiledModel(AbstractServed):
    """Any model that can go one interval at a time, compiled by JAX. Many series are mapped."""

    def __init__(self, model: AbstractOnlineModel) -> None:
        leaves, structure = jax.tree.flatten(model)
        self._arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
        self._run = _compiled(structure, tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves))
        self._dtype = dtype_of(model)

    def start(self, opening: Opening, static: Float64[np.ndarray, "static"]) -> Kept:
        """What is kept before the first interval."""
        known = Opening(opening.first.astype(self._dtype), opening.seen, opening.at_start)
        kept = self._run.start(self._arrays, known, static.astype(self._dtype))
        leaves, self._treedef = jax.tree.flatten(kept)
        return tuple(np.asarray(leaf) for leaf in leaves)

    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """One interval after another."""
        tree = self._tree(kept)
        for step in steps.astype(self._dtype):
            tree = self._run.advance(self._arrays, tree, step)
        return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(tree))

    def advance_many(self, kept: list[Kept], steps: list[Steps]) -> list[Kept]:
        """All series together."""
        if len(kept) == 1:
            return [self.advance(kept[0], steps[0])]
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self._run.advance_many(*self._together(kept, steps)))]
        return [tuple(np.array(leaf[number]) for leaf in leaves) for number in range(len(kept))]

    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """All intervals but the last, then the last."""
        if not len(steps):
            return np.asarray(self._run.predict(self._arrays, self._tree(kept)))
        tree = self._tree(self.advance(kept, steps[:-1]) if len(steps) > 1 else kept)
        return np.asarray(self._run.ahead(self._arrays, tree, steps[-1].astype(self._dtype)))

    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """All series together."""
        return np.asarray(self._run.predict_many(*self._together(kept, steps)))[: len(kept)]

    def _together(self, kept: list[Kept], steps: list[Steps]) -> tuple[list[Array], PyTree, np.ndarray, np.ndarray]:
        """What the compiled functions of many series take, padded to powers of two so that few shapes are compiled."""
        lengths = np.array([len(part) for part in steps])
        series, longest = _rounded(len(kept)), _rounded(int(lengths.max()))
        padded = np.zeros((series, longest, steps[0].shape[1]), self._dtype)
        for row, part in zip(padded, steps, strict=False):
            row[: len(part)] = part
        stacked = [np.stack([*leaves, *[leaves[0]] * (series - len(kept))]) for leaves in zip(*kept, strict=True)]
        lengths = np.concatenate([lengths, np.zeros(series - len(kept), np.int64)])
        return self._arrays, self._tree(tuple(stacked)), padded, lengths

    def _tree(self, kept: Kept) -> PyTree:
        return jax.tree.unflatten(self._treedef, kept)


class _Functions(NamedTuple):
    """The steps of a model, each compiled, as functions of its arrays and of what is kept."""

    start: Callable[..., Any]
    advance: Callable[..., Any]
    predict: Callable[..., Any]
    ahead: Callable[..., Any]
    advance_many: Callable[..., Any]
    predict_many: Callable[..., Any]


@functools.lru_cache(maxsize=64)
def _compiled(structure: Hashable, others: tuple[Any, ...]) -> _Functions:
    """Compiled once for all models of one structure. `others` has None where a leaf is an array."""

    def whole(arrays: list[Array]) -> AbstractOnlineModel:
        rest = iter(arrays)
        return jax.tree.unflatten(cast(Any, structure), [next(rest) if leaf is None else leaf for leaf in others])

    def extended(arrays: list[Array], kept: PyTree, steps: Array, length: Array) -> PyTree:
        model = whole(arrays)

        def over(kept: PyTree, numbered: tuple[Array, Array]) -> tuple[PyTree, None]:
            step, number = numbered
            moved = model.advance(kept, step)
            return jax.tree.map(lambda new, old: jnp.where(number < length, new, old), moved, kept), None

        return jax.lax.scan(over, kept, (steps, jnp.arange(len(steps))))[0]

    return _Functions(
        start=jax.jit(lambda arrays, opening, static: whole(arrays).start(opening, static)),
        advance=jax.jit(lambda arrays, kept, step: whole(arrays).advance(kept, step)),
        predict=jax.jit(lambda arrays, kept: whole(arrays).predict(kept)),
        ahead=jax.jit(lambda arrays, kept, step: whole(arrays).predict(whole(arrays).advance(kept, step))),
        advance_many=jax.jit(jax.vmap(extended, in_axes=(None, 0, 0, 0))),
        predict_many=jax.jit(
            jax.vmap(lambda arrays, *series: whole(arrays).predict(extended(arrays, *series)), in_axes=(None, 0, 0, 0))
        ),
    )


def _rounded(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
