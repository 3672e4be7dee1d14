"""Normalisation of rows: over a batch, with statistics that outlast it, or over the entries of each row."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float

EPSILON = 1e-5


class AbstractNorm(eqx.Module):
    """Rows to rows of the same size. `apply_train` is for training: it may look at the whole batch, and remembers some."""

    @abc.abstractmethod
    def __call__(self, rows: Float[Array, "*interval features"]) -> Float[Array, "*interval features"]:
        """One row, or many, by what is remembered."""

    @abc.abstractmethod
    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], "AbstractNorm | None"]:
        """The rows of one series of a batch, whose axes have these names, and the norm that remembers the batch.

        None if there is nothing to remember.
        """


class BatchNorm(AbstractNorm):
    """Each entry over all valid rows of the batch, on all devices; later by the mean of recent batches.

    That mean gives a batch `1 - momentum` times the weight of all before it, and is right from the first batch on:
    `weight` says how much it has seen. Before any batch, rows stay as they are.

    >>> norm = BatchNorm(2)
    >>> rows = jnp.array([[[0, 1], [4, 1]], [[2, 3], [9, 9]]], jnp.float32)  # two series
    >>> valid = jnp.array([[True, True], [True, False]])  # the last row is none
    >>> apply_train = jax.vmap(lambda r, v: norm.apply_train(r, v, ("batch",)), axis_name="batch", out_axes=(0, None))
    >>> out, after = apply_train(rows, valid)
    >>> jnp.round(out[:, :1], 2).tolist()
    [[[-1.2200000286102295, -0.7099999785423279]], [[0.0, 1.409999966621399]]]
    >>> bool(jnp.allclose(after(rows), out, atol=1e-4))
    True
    """

    weight: Float[Array, ""]
    mean: Float[Array, "features"]
    variance: Float[Array, "features"]
    momentum: float = eqx.field(static=True)

    def __init__(self, features: int, momentum: float = 0.99, *, dtype: DTypeLike = jnp.float32) -> None:
        self.weight = jnp.zeros((), dtype)
        self.mean = jnp.zeros(features, dtype)
        self.variance = jnp.zeros(features, dtype)
        self.momentum = momentum

    def __call__(self, rows: Float[Array, "*interval features"]) -> Float[Array, "*interval features"]:
        """By the recent batches."""
        seen = jnp.where(self.weight > 0, self.weight, 1)
        variance = jnp.where(self.weight > 0, self.variance / seen, 1)
        return _scaled(rows - self.mean / seen, variance)

    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], "BatchNorm"]:
        """By this batch."""
        sums = jnp.sum(valid), jnp.sum(rows, axis=0, where=valid[:, None])
        count, total = jax.lax.psum(sums, axes)
        count = jnp.maximum(count, 1).astype(rows.dtype)
        mean = total / count
        centred = rows - mean
        variance = jax.lax.psum(jnp.sum(jnp.square(centred), axis=0, where=valid[:, None]), axes) / count
        before, now = (self.weight, self.mean, self.variance), (jnp.ones_like(self.weight), mean, variance)
        after = [self.momentum * a + (1 - self.momentum) * b for a, b in zip(before, now, strict=True)]
        batch_stats = eqx.tree_at(lambda norm: (norm.weight, norm.mean, norm.variance), self, after)
        return _scaled(centred, variance), batch_stats


class LayerNorm(AbstractNorm):
    """The entries of each row among themselves, with a learnt scale and shift.

    >>> LayerNorm(2)(jnp.array([[1.0, 3.0]], jnp.float32)).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    layer: eqx.nn.LayerNorm

    def __init__(self, features: int, *, dtype: DTypeLike = jnp.float32) -> None:
        self.layer = eqx.nn.LayerNorm(features, EPSILON, dtype=dtype)

    def __call__(self, rows: Float[Array, "*interval features"]) -> Float[Array, "*interval features"]:
        """Row by row."""
        return self.layer(rows) if rows.ndim == 1 else jax.vmap(self.layer)(rows)

    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], None]:
        """The same; there is nothing to remember."""
        return self(rows), None


def _scaled(centred: Float[Array, "*interval features"], variance: Float[Array, "features"]) -> Array:
    return centred * jax.lax.rsqrt(variance + EPSILON)
