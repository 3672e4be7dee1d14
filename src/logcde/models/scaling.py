"""Input scaling that belongs to the model: a factor for each letter, which every bracket of it inherits.

Multiplying a channel by a number before embedding multiplies each coordinate by that number once for every time the
channel occurs in its word, exactly. So models can scale log-signatures that are there already, and nothing about the
scale has to be known when streams are embedded.
"""

import abc
import dataclasses

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


class NoScaling(AbstractScaling):
    """Steps as they are."""

    def fit(self, steps: Float[Array, "series interval lie"], basis: Basis) -> "AbstractScaling":
        """Nothing to do."""
        return self

    def __call__(self, steps: Float[Array, "*interval lie"], basis: Basis) -> Float[Array, "*interval lie"]:
        """The same steps."""
        return steps


class AbstractLetterScaling(AbstractScaling):
    """A factor for each letter, found from training data."""

    factors: eqx.AbstractVar[tuple[float, ...] | None]

    @abc.abstractmethod
    def sizes(self, increments: Float[np.ndarray, "series interval letter"]) -> Float[np.ndarray, "letter"]:
        """What each letter is divided by, of increments that are zero where there is no interval; zero for one."""

    def fit(self, steps: Float[Array, "series interval lie"], basis: Basis) -> "AbstractLetterScaling":
        """A letter that never moves keeps its scale."""
        if self.factors is not None:
            return self
        size = self.sizes(np.asarray(steps, np.float64)[..., : basis.width])
        return dataclasses.replace(self, factors=tuple((1 / np.where(size > 0, size, 1.0)).tolist()))

    def __call__(self, steps: Float[Array, "*interval lie"], basis: Basis) -> Float[Array, "*interval lie"]:
        """Every coordinate times its scale."""
        return steps if self.factors is None else steps * jnp.asarray(self.scale(basis), steps.dtype)

    def scale(self, basis: Basis) -> Float[np.ndarray, "lie"]:
        """Of every coordinate: the factors of the letters in its word, multiplied.

        >>> IncrementRMSScaling((0.5, 0.2)).scale(Basis(("a", "b"), 2)).tolist()
        [0.5, 0.2, 0.1]
        """
        factors = np.ones(basis.width) if self.factors is None else np.array(self.factors)
        return np.array([factors[list(word)].prod() for word in basis.words])


class IncrementRMSScaling(AbstractLetterScaling):
    """Each letter divided by the root mean square of its increments over the training data's intervals.

    >>> basis = Basis(("a", "b"), 2)
    >>> scaling = IncrementRMSScaling().fit(jnp.array([[[2.0, 5.0, 1.0]]]), basis)
    >>> scaling(jnp.array([2.0, 5.0, 1.0]), basis).tolist()
    [1.0, 1.0, 0.1]
    """

    factors: tuple[float, ...] | None = eqx.field(default=None, static=True)

    def sizes(self, increments: Float[np.ndarray, "series interval letter"]) -> Float[np.ndarray, "letter"]:
        """The root mean square of all intervals in which something moves."""
        moved = increments[increments.any(axis=-1)]
        return np.sqrt(np.square(moved).mean(axis=0)) if len(moved) else np.zeros(increments.shape[-1])


class TotalStdScaling(AbstractLetterScaling):
    """Each letter divided by how much its total, from the first interval to the last, differs between training series.

    That is the standard deviation; for a letter whose total is always the same, such as time, the total itself.

    >>> basis = Basis(("a", "time"), 1)
    >>> TotalStdScaling().fit(jnp.array([[[2.0, 1.0], [1.0, 1.0]], [[6.0, 1.0], [1.0, 1.0]]]), basis).factors
    (0.5, 0.5)
    """

    factors: tuple[float, ...] | None = eqx.field(default=None, static=True)

    def sizes(self, increments: Float[np.ndarray, "series interval letter"]) -> Float[np.ndarray, "letter"]:
        """Standard deviations of totals."""
        totals = increments.sum(axis=1)
        spread, mean = totals.std(axis=0), np.abs(totals.mean(axis=0))
        return np.where(spread > 1e-9 * mean, spread, mean)
