"""Normalisation of rows: over a batch, with running statistics for prediction, or over the entries of each row."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float

EPSILON = 1e-5


class AbstractNorm(eqx.Module):
    """A map from rows to rows of the same size; in training it may depend on the whole batch."""

    @abc.abstractmethod
    def __call__(self, rows: Float[Array, "*interval features"]) -> Float[Array, "*interval features"]:
        """Normalise one row or many for prediction."""

    @abc.abstractmethod
    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], "AbstractNorm | None"]:
        """Normalise the rows of one series of a batch in training.

        Args:
            rows: The rows of the series.
            valid: Which of them are no padding.
            axes: The names of the axes of the batch.

        Returns:
            The rows, and the norm with the statistics of the batch; None if it has no statistics.
        """


class BatchNorm(AbstractNorm):
    """Batch normalisation: over all valid rows of the batch, on all devices, and by running statistics in prediction.

    Running statistics are exponential means of those of batches, divided by the sum of their weights, so that they are
    unbiased from the first batch on. Before any batch, rows are not changed.

    Args:
        features: The size of the rows.
        momentum: What a batch multiplies the weights of those before it by.
        dtype: The dtype of the statistics.

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
        """Normalise by running statistics."""
        seen = jnp.where(self.weight > 0, self.weight, 1)
        variance = jnp.where(self.weight > 0, self.variance / seen, 1)
        return _scaled(rows - self.mean / seen, variance)

    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], "BatchNorm"]:
        """Normalise by the statistics of this batch."""
        sums = jnp.sum(valid), jnp.sum(rows, axis=0, where=valid[:, None])
        count, total = jax.lax.psum(sums, axes)
        count = jnp.maximum(count, 1).astype(rows.dtype)
        mean = total / count
        centred = rows - mean
        variance = jax.lax.psum(jnp.sum(jnp.square(centred), axis=0, where=valid[:, None]), axes) / count
        before, now = (self.weight, self.mean, self.variance), (jnp.ones_like(self.weight), mean, variance)
        after = [self.momentum * a + (1 - self.momentum) * b for a, b in zip(before, now, strict=True)]
        updated = eqx.tree_at(lambda norm: (norm.weight, norm.mean, norm.variance), self, after)
        return _scaled(centred, variance), updated


class LayerNorm(AbstractNorm):
    """Layer normalisation: over the entries of each row, with a learnt scale and shift.

    >>> LayerNorm(2)(jnp.array([[1.0, 3.0]], jnp.float32)).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    layer: eqx.nn.LayerNorm

    def __init__(self, features: int, *, dtype: DTypeLike = jnp.float32) -> None:
        self.layer = eqx.nn.LayerNorm(features, EPSILON, dtype=dtype)

    def __call__(self, rows: Float[Array, "*interval features"]) -> Float[Array, "*interval features"]:
        """Normalise row by row."""
        return self.layer(rows) if rows.ndim == 1 else jax.vmap(self.layer)(rows)

    def apply_train(
        self, rows: Float[Array, "interval features"], valid: Bool[Array, "interval"], axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], None]:
        """The same as in prediction; there are no statistics."""
        return self(rows), None


def _scaled(centred: Float[Array, "*interval features"], variance: Float[Array, "features"]) -> Array:
    return centred * jax.lax.rsqrt(variance + EPSILON)
