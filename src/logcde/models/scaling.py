"""Input scaling that belongs to the model: a factor for each letter, which every bracket of it inherits.

Multiplying a channel by a number before embedding multiplies each coordinate by that number once for every time the
channel occurs in its word, exactly. So models can scale log-signatures that are there already, and nothing about the
scale has to be known when streams are embedded.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.algebra import Basis


class AbstractScaling(eqx.Module):
    """What a model does to its steps before anything else."""

    @abc.abstractmethod
    def fit(self, steps: Float[Array, "series interval lie"], basis: Basis) -> "AbstractScaling":
        """The scaling for these training data, zero where there is no interval. Once fitted, it stays."""

    @abc.abstractmethod
    def __call__(self, steps: Float[Array, "*interval lie"], basis: Basis) -> Float[Array, "*interval lie"]:
        """Scaled steps."""


class Unscaled(AbstractScaling):
    """Steps as they are."""

    def fit(self, steps: Float[Array, "series interval lie"], basis: Basis) -> "AbstractScaling":
        """Nothing to do."""
        return self

    def __call__(self, steps: Float[Array, "*interval lie"], basis: Basis) -> Float[Array, "*interval lie"]:
        """The same steps."""
        return steps


class UnitIncrements(AbstractScaling):
    """Each letter divided by the root mean square of its increments over the training data's intervals.

    >>> basis = Basis(("a", "b"), 2)
    >>> scaling = UnitIncrements().fit(jnp.array([[[2.0, 5.0, 1.0]]]), basis)
    >>> scaling(jnp.array([2.0, 5.0, 1.0]), basis).tolist()
    [1.0, 1.0, 0.1]
    """

    factors: tuple[float, ...] | None = eqx.field(default=None, static=True)

    def fit(self, steps: Float[Array, "series interval lie"], basis: Basis) -> "AbstractScaling":
        """A letter that never moves keeps its scale."""
        if self.factors is not None:
            return self
        increments = np.asarray(steps, np.float64)[..., : basis.width]
        valid = np.asarray(steps).any(axis=-1)
        size = np.sqrt(np.square(increments[valid]).mean(axis=0)) if valid.any() else np.zeros(basis.width)
        return type(self)(tuple((1 / np.where(size > 0, size, 1.0)).tolist()))

    def __call__(self, steps: Float[Array, "*interval lie"], basis: Basis) -> Float[Array, "*interval lie"]:
        """Every coordinate times its scale."""
        return steps if self.factors is None else steps * jnp.asarray(self.scale(basis), steps.dtype)

    def scale(self, basis: Basis) -> Float[np.ndarray, "lie"]:
        """Of every coordinate: the factors of the letters in its word, multiplied.

        >>> UnitIncrements((0.5, 0.2)).scale(Basis(("a", "b"), 2)).tolist()
        [0.5, 0.2, 0.1]
        """
        factors = np.ones(basis.width) if self.factors is None else np.array(self.factors)
        return np.array([factors[list(word)].prod() for word in basis.words])
