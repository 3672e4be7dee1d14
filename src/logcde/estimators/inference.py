"""Predictions of many series, each of which depends on that series and on nothing else, to the last bit.

A series is computed by a program that its own length chooses, and by itself: one after another in a compiled loop. How
many there are, in which order and beside which others, changes nothing.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from logcde.models import CDE, Inputs, Unscaled

TOGETHER = 64
"""Series in one call."""
SHORTEST = 8


def bare(model: CDE) -> CDE:
    """The model without what differs between data sets, so that one compiled program serves all."""
    return dataclasses.replace(model, scaling=Unscaled(), source=None)


def predictions(model: CDE, inputs: Inputs) -> Float32[np.ndarray, "series *interval output"]:
    """What a model says about inputs that are scaled already; rows beyond a series' own mean nothing."""
    model = bare(model)
    lengths, asked = np.asarray(inputs.length), np.asarray(inputs.outputs)
    inputs = jax.tree.map(np.asarray, inputs)
    queries = 0 if inputs.ends is None else inputs.ends.shape[1]
    sizes = np.array([(_rounded(int(a)), _rounded(int(b))) for a, b in zip(lengths, asked, strict=True)])
    out: np.ndarray | None = None
    for size in np.unique(sizes, axis=0):
        members = np.flatnonzero((sizes == size).all(axis=1))
        for start in range(0, len(members), TOGETHER):
            chosen = members[start : start + TOGETHER]
            part = _padded(inputs[chosen], int(size[0]), int(size[1]))
            found = np.asarray(_one_by_one(model, part, jnp.asarray(len(chosen), jnp.int32)))[: len(chosen)]
            if out is None:
                shape = (queries, found.shape[-1]) if found.ndim == 3 else found.shape[1:]
                out = np.zeros((len(inputs), *shape), found.dtype)
            if found.ndim == 3:
                out[chosen, : found.shape[1]] = found[:, :queries]
            else:
                out[chosen] = found
    assert out is not None
    return out


@eqx.filter_jit
def _one_by_one(model: CDE, inputs: Inputs, count: Int[Array, ""]) -> Float[Array, "series *interval output"]:
    shape = jax.eval_shape(model, inputs[0])

    def one(number: Int[Array, ""], out: Array) -> Array:
        return out.at[number].set(model(jax.tree.map(lambda leaf: leaf[number], inputs)))

    return jax.lax.fori_loop(0, count, one, jnp.zeros((len(inputs), *shape.shape), shape.dtype))


def _padded(inputs: Inputs, intervals: int, queries: int) -> Inputs:
    """Of one size, whatever there is."""

    def fill(leaf: np.ndarray, *sizes: int) -> np.ndarray:
        leaf = leaf[(slice(None), *(slice(size) for size in sizes))]
        missing = [size - have for size, have in zip((TOGETHER, *sizes), leaf.shape, strict=False)]
        return np.pad(leaf, [(0, more) for more in missing] + [(0, 0)] * (leaf.ndim - len(missing)))

    filled = eqx.tree_at(lambda tree: tree.steps, jax.tree.map(fill, inputs), fill(np.asarray(inputs.steps), intervals))
    if inputs.ends is None:
        return filled
    return eqx.tree_at(lambda tree: tree.ends, filled, fill(np.asarray(inputs.ends), queries))


def _rounded(count: int) -> int:
    """The next power of two, so that few sizes are compiled."""
    return max(SHORTEST, 1 << max(count - 1, 0).bit_length())
