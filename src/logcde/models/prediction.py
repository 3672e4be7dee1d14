"""Predictions of many series. Everything that predicts a batch calls `predict`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from logcde.embedding import AbstractRaggedSteps, LogSignatures, SparseLogSignatures
from logcde.errors import ModelError
from logcde.models.inputs import Controls, Inputs
from logcde.models.model import AbstractModel, AbstractOnlineModel, dtype_of, suited_to

TOGETHER = 64
"""Series in one call when series are independent."""
SHORTEST = 8
"""Rows of the smallest program when series are independent."""


def predict(
    model: AbstractModel, inputs: Inputs | LogSignatures | SparseLogSignatures | Controls, *, independent: bool = False
) -> Float[Array, "series *interval output"]:
    """Predict many series in a compiled program.

    Args:
        model: The model.
        inputs: The series. Log-signatures and controls are taken in the precision of the model; with static features,
            give `Inputs`.
        independent: Compute every series by itself, in a program that its own length selects: its prediction is then
            the same to the last bit whatever the number, order and lengths of the other series. Slower.

    Returns:
        The predictions. For models with a prediction for each query interval, those beyond a series' own number of
        intervals have no meaning.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis(("pulse", "time"), 2)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> predict(model, LogSignatures(np.ones((5, 3, 3)), np.full(5, 3), basis)).shape
    (5, 2)
    """
    given = _inputs_of(model, inputs)
    return _independent(model, given) if independent and len(given) else _batched(model, given)


def predict_prefixes(
    model: AbstractOnlineModel, inputs: Inputs | LogSignatures | SparseLogSignatures
) -> Float[Array, "series interval output"]:
    """Predict every series as if it ended after each of its intervals, in a compiled program.

    These are the predictions that the model gives online, whatever its readout. Those beyond a series' own number of
    intervals have no meaning.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis(("pulse", "time"), 2)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((5, 3, 3)), np.full(5, 3), basis)
    >>> bool(jnp.allclose(predict_prefixes(model, logsigs)[:, -1], predict(model, logsigs), atol=1e-5))
    True
    """
    given = _inputs_of(model, inputs)
    if given.ends is not None:
        raise ModelError("Several pieces lie between two query points.", "Give log-signatures of intervals.")
    return _prefixes(model, given)


def _inputs_of(model: AbstractModel, inputs: Inputs | LogSignatures | SparseLogSignatures | Controls) -> Inputs:
    return (
        inputs
        if isinstance(inputs, Inputs)
        else Inputs.of(suited_to(model, inputs), dtype=dtype_of(model), factors=True)
    )


@eqx.filter_jit
def _batched(model: AbstractModel, inputs: Inputs) -> Float[Array, "series *interval output"]:
    return jax.vmap(lambda one: model(one))(inputs)


@eqx.filter_jit
def _prefixes(model: AbstractOnlineModel, inputs: Inputs) -> Float[Array, "series interval output"]:
    def along(one: Inputs) -> Float[Array, "interval output"]:
        def extend(kept: Any, row: Any) -> tuple[Any, Float[Array, "output"]]:
            step: Any = steps.interval(row) if isinstance(steps, AbstractRaggedSteps) else row
            kept = model.advance(kept, step)
            return kept, model.predict(kept)

        steps = one.logsigs
        rows = jnp.arange(steps.intervals, dtype=jnp.int32) if isinstance(steps, AbstractRaggedSteps) else steps
        return jax.lax.scan(extend, model.start(one.initial, one.static), rows)[1]

    return jax.vmap(along)(inputs)


def _independent(model: AbstractModel, inputs: Inputs) -> Float[Array, "series *interval output"]:
    """Group series by the size of their program, and pad each group to that size and a fixed number of series."""
    lengths, outputs = np.asarray(inputs.length), np.asarray(inputs.outputs)
    inputs = jax.tree.map(np.asarray, inputs)
    queries = inputs.intervals if inputs.ends is None else inputs.ends.shape[1]
    ragged = inputs.logsigs.needs() if isinstance(inputs.logsigs, AbstractRaggedSteps) else ()
    needs = np.column_stack([lengths, outputs, *ragged])
    sizes = np.array([[_rounded(need) for need in row] for row in needs.tolist()])
    out: np.ndarray | None = None
    for size in np.unique(sizes, axis=0):
        members = np.flatnonzero((sizes == size).all(axis=1))
        for start in range(0, len(members), TOGETHER):
            chosen = members[start : start + TOGETHER]
            part = _padded(inputs[chosen], *size.tolist())
            found = np.asarray(_one_by_one(model, part, jnp.asarray(len(chosen), jnp.int32)))[: len(chosen)]
            if out is None:
                shape = (queries, found.shape[-1]) if found.ndim == 3 else found.shape[1:]
                out = np.zeros((len(inputs), *shape), found.dtype)
            if found.ndim == 3:
                out[chosen, : found.shape[1]] = found[:, :queries]
            else:
                out[chosen] = found
    return jnp.asarray(out)


@eqx.filter_jit
def _one_by_one(model: AbstractModel, inputs: Inputs, count: Int[Array, ""]) -> Float[Array, "series *interval output"]:
    shape = jax.eval_shape(model, inputs[0])

    def one(number: Int[Array, ""], out: Array) -> Array:
        return out.at[number].set(model(jax.tree.map(lambda leaf: leaf[number], inputs)))

    return jax.lax.fori_loop(0, count, one, jnp.zeros((len(inputs), *shape.shape), shape.dtype))


def _padded(inputs: Inputs, intervals: int, queries: int, *needs: int) -> Inputs:
    def fill(given: Any, *sizes: int) -> np.ndarray:
        leaf = np.asarray(given)
        leaf = leaf[(slice(None), *(slice(size) for size in sizes))]
        missing = [size - have for size, have in zip((TOGETHER, *sizes), leaf.shape, strict=False)]
        return np.pad(leaf, [(0, more) for more in missing] + [(0, 0)] * (leaf.ndim - len(missing)))

    steps = inputs.logsigs
    ragged = isinstance(steps, AbstractRaggedSteps)
    logsigs = steps.resized(TOGETHER, intervals, *needs) if ragged else fill(steps, intervals)
    filled = eqx.tree_at(lambda tree: tree.logsigs, jax.tree.map(fill, inputs), logsigs)
    if inputs.ends is None:
        return filled
    return eqx.tree_at(lambda tree: tree.ends, filled, fill(inputs.ends, queries))


def _rounded(count: int) -> int:
    """The next power of two: few programs are compiled."""
    return max(SHORTEST, 1 << max(count - 1, 0).bit_length())
