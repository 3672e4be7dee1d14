"""Scaling of log-signatures, a part of the model: a factor for each letter, which every bracket of it inherits.

Multiplying a channel by a number before the embedding multiplies each coordinate by that number once for every
occurrence of the channel in its word, exactly. So a model can scale log-signatures that exist already, and streams can
be embedded before their scale is known. `logcde.scaling` says which scaler acts where.
"""

import abc
import dataclasses
from typing import ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.algebra import Basis
from logcde.embedding import AbstractRaggedSteps, FactorSteps, SparseSteps
from logcde.errors import ModelError
from logcde.flows.encoder import soft_limit

ManySteps: TypeAlias = Float[Array | np.ndarray, "series interval lie"] | AbstractRaggedSteps
"""The log-signatures of many series."""
SomeSteps: TypeAlias = Float[Array, "*interval lie"] | AbstractRaggedSteps
"""The log-signatures of one interval, one series or several series; sparse ones of one series."""


class Movements(NamedTuple):
    """What is known of the increments of training series.

    Attributes:
        totals: Each letter's sum of increments, of each series.
        squares: Each letter's sum of squared increments, over all intervals of all series.
        moved: The number of intervals in which some letter moves.
    """

    totals: Float[np.ndarray, "series letter"]
    squares: Float[np.ndarray, "letter"]
    moved: int


def movements_of(logsigs: ManySteps, basis: Basis) -> Movements:
    """Sum the increments of log-signatures of many series.

    >>> movements_of(jnp.array([[[2.0, 5.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]), Basis(("a", "b"), 1)).moved
    2
    """
    if isinstance(logsigs, FactorSteps):
        return _movements_of_factors(logsigs, basis)
    if not isinstance(logsigs, SparseSteps):
        increments = np.asarray(logsigs)[..., : basis.width].astype(np.float64)
        squares = np.square(increments).reshape(-1, basis.width).sum(axis=0)
        return Movements(increments.sum(axis=1), squares, int(increments.any(axis=-1).sum()))
    interval, amounts = map(np.asarray, jax.jit(jax.vmap(SparseSteps.increments))(logsigs))
    letters, amounts = np.asarray(logsigs.letters), amounts.astype(np.float64)
    series, slots = np.arange(len(letters))[:, None], logsigs.intervals + 1
    totals = np.bincount((series * basis.width + letters).ravel(), amounts.ravel(), len(letters) * basis.width)
    squares = np.bincount(letters.ravel(), np.square(amounts).ravel(), basis.width)
    moved = np.unique((series * slots + interval)[amounts != 0])
    return Movements(totals.reshape(-1, basis.width), squares, len(moved))


def _movements_of_factors(steps: FactorSteps, basis: Basis) -> Movements:
    of_factor, of_entry = map(np.asarray, jax.jit(jax.vmap(FactorSteps.places))(steps))
    amounts, letters = np.asarray(steps.amounts, np.float64), np.asarray(jax.jit(jax.vmap(FactorSteps.named))(steps))
    # Padding belongs to one more interval, which is left out.
    interval = np.take_along_axis(np.pad(of_factor, ((0, 0), (0, 1)), constant_values=steps.intervals), of_entry, 1)
    slots = np.arange(len(letters))[:, None] * (steps.intervals + 1)
    spans = np.asarray(steps.spans, np.float64)
    at_time = slots + np.arange(steps.intervals)
    keys = np.concatenate(
        [((slots + interval) * basis.width + letters).ravel(), (at_time * basis.width + basis.width - 1).ravel()]
    )
    known, place = np.unique(keys, return_inverse=True)
    sums = np.bincount(place, np.concatenate([amounts.ravel(), spans.ravel()]))
    inside = (known // basis.width) % (steps.intervals + 1) < steps.intervals
    known, sums = known[inside], sums[inside]
    series, letter = known // (basis.width * (steps.intervals + 1)), known % basis.width
    totals = np.bincount(series * basis.width + letter, sums, len(letters) * basis.width)
    moved = np.unique((known // basis.width)[sums != 0])
    return Movements(totals.reshape(-1, basis.width), np.bincount(letter, np.square(sums), basis.width), len(moved))


class AbstractScaling(eqx.Module):
    """What a model does to its log-signatures before anything else.

    Attributes:
        by_letters: Whether it only multiplies letters, so that factors can be scaled as well.
    """

    by_letters: ClassVar[bool] = False

    @abc.abstractmethod
    def fit(self, logsigs: ManySteps, basis: Basis) -> "AbstractScaling":
        """Fit the scaling to training data, zero beyond a series' own intervals; once fitted, it stays."""

    @abc.abstractmethod
    def __call__(self, logsigs: SomeSteps, basis: Basis) -> SomeSteps:
        """Scale log-signatures."""


class NoScaling(AbstractScaling):
    """Leaves log-signatures as they are."""

    by_letters: ClassVar[bool] = True

    def fit(self, logsigs: ManySteps, basis: Basis) -> "AbstractScaling":
        """There is nothing to fit."""
        return self

    def __call__(self, logsigs: SomeSteps, basis: Basis) -> SomeSteps:
        """The same log-signatures."""
        return logsigs


class AbstractLetterScaling(AbstractScaling):
    """A factor for each letter, fitted to training data. Subclasses say what letters are divided by.

    Attributes:
        factors: The factors, None until they are fitted.
    """

    by_letters: ClassVar[bool] = True
    factors: eqx.AbstractVar[tuple[float, ...] | None]

    @abc.abstractmethod
    def sizes(self, movements: Movements) -> Float[np.ndarray, "letter"]:
        """What each letter is divided by. A letter of size zero is not scaled."""

    def fit(self, logsigs: ManySteps, basis: Basis) -> "AbstractLetterScaling":
        """Fit the factors, unless there are some. A letter that never moves keeps its scale."""
        if self.factors is not None:
            return self
        size = self.sizes(movements_of(logsigs, basis))
        return dataclasses.replace(self, factors=tuple((1 / np.where(size > 0, size, 1.0)).tolist()))

    def __call__(self, logsigs: SomeSteps, basis: Basis) -> SomeSteps:
        """Multiply every coordinate by its scale."""
        if self.factors is None:
            return logsigs
        if isinstance(logsigs, AbstractRaggedSteps):
            return logsigs.scaled(jnp.asarray(self.factors, logsigs.dtype))
        return logsigs * jnp.asarray(self.scale(basis), logsigs.dtype)

    def scale(self, basis: Basis) -> Float[np.ndarray, "lie"]:
        """The scale of every coordinate: the product of the factors of the letters in its word.

        >>> IncrementRMSScaling((0.5, 0.2)).scale(Basis(("a", "b"), 2)).tolist()
        [0.5, 0.2, 0.1]
        """
        factors = np.ones(basis.width) if self.factors is None else np.array(self.factors)
        return np.array([factors[list(word)].prod() for word in basis.words])


class IncrementRMSScaling(AbstractLetterScaling):
    """Divides each letter by the root mean square of its increments over the training intervals.

    >>> basis = Basis(("a", "b"), 2)
    >>> scaling = IncrementRMSScaling().fit(jnp.array([[[2.0, 5.0, 1.0]]]), basis)
    >>> scaling(jnp.array([2.0, 5.0, 1.0]), basis).tolist()
    [1.0, 1.0, 0.1]
    """

    factors: tuple[float, ...] | None = eqx.field(default=None, static=True)

    def sizes(self, movements: Movements) -> Float[np.ndarray, "letter"]:
        """Root mean squares over all intervals in which some letter moves."""
        return np.sqrt(movements.squares / max(movements.moved, 1))


class TotalStdScaling(AbstractLetterScaling):
    """Divides each letter by the standard deviation, between training series, of its total over all intervals.

    A letter whose total is the same for all series, such as time, is divided by that total.

    >>> basis = Basis(("a", "time"), 1)
    >>> TotalStdScaling().fit(jnp.array([[[2.0, 1.0], [1.0, 1.0]], [[6.0, 1.0], [1.0, 1.0]]]), basis).factors
    (0.5, 0.5)
    """

    factors: tuple[float, ...] | None = eqx.field(default=None, static=True)

    def sizes(self, movements: Movements) -> Float[np.ndarray, "letter"]:
        """Standard deviations of totals."""
        spread, mean = movements.totals.std(axis=0), np.abs(movements.totals.mean(axis=0))
        return np.where(spread > 1e-9 * mean, spread, mean)


class SoftLimit(AbstractScaling):
    """Another scaling, after which every coordinate is limited softly: `limit` tanh(x / `limit`).

    Coordinates much smaller than the limit hardly change. A feed that is denser or wilder than in training moves a
    model by a bounded amount in each interval.

    Args:
        scaling: Applied first.
        limit: The size that no coordinate exceeds.

    >>> scaling = SoftLimit(IncrementRMSScaling((0.5,)), limit=8.0)
    >>> scaling(jnp.array([[0.02], [1e6]]), Basis(("a",), 1)).round(4).tolist() == jnp.array([[0.01], [8.0]]).tolist()
    True
    """

    scaling: AbstractScaling = IncrementRMSScaling()
    limit: float = eqx.field(static=True, default=8.0)

    def __check_init__(self) -> None:
        if not self.limit > 0:
            raise ModelError(f"The limit is {self.limit}.", "Give a positive number.")

    def fit(self, logsigs: ManySteps, basis: Basis) -> "SoftLimit":
        """Fit the other scaling."""
        return dataclasses.replace(self, scaling=self.scaling.fit(logsigs, basis))

    def __call__(self, logsigs: SomeSteps, basis: Basis) -> SomeSteps:
        """Scale, then limit."""
        scaled = self.scaling(logsigs, basis)
        if isinstance(scaled, SparseSteps):
            return scaled.with_values(soft_limit(jnp.asarray(scaled.values), self.limit))
        if isinstance(scaled, AbstractRaggedSteps):
            raise ModelError("Factors have no coordinates that could be limited.", "Give logsigs.dense().")
        return soft_limit(scaled, self.limit)
