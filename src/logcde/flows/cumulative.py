"""Cumulative features: the values, counts and times of the driving path at the end of each interval, as a state.

The position of the path is the sum of its increments, so its coordinates are each channel's last value, the number of
its observations so far, and the time. It reads level one of the log-signatures and nothing else.
"""

import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logcde.algebra import Basis
from logcde.embedding.coordinates import values_of
from logcde.embedding.steps import AbstractRaggedSteps
from logcde.flows.dynamics import AbstractFittedDynamics, Carry, Step, Steps


class Place(NamedTuple):
    """What is kept between intervals: the initial state, the path's position, and the history of its values."""

    hidden: Float[Array, "hidden"]
    position: Float[Array, "letter"]
    highest: Float[Array, "value"]
    lowest: Float[Array, "value"]
    first: Float[Array, "value"]
    seen: Bool[Array, "value"]


class CumulativeFeatures(AbstractFittedDynamics):
    """The initial state, which stays, followed by arsinh of the path's position: last values, counts and time.

    The inverse hyperbolic sine is the identity for small numbers and a logarithm, of either sign, for large ones: the
    hundredth observation of a channel tells less than the first. The features have no parameters. Before training, the
    mean and the standard deviation of each feature at the end of the training series are fitted, and features are
    standardised by them.

    Args:
        basis: The basis of the log-signatures; only level one is read.
        size: The size of the initial state.
        history: Whether to add the highest, the lowest and the first value that each channel had at the end of an
            interval since it was first observed; 0 before.
        centre: Means of the features, None until they are fitted.
        spread: Standard deviations of the features, None until they are fitted.

    >>> features = CumulativeFeatures(Basis(("a", "#a", "time"), 1), size=1, history=True)
    >>> features.names
    ('a', '#a', 'time', 'highest a', 'lowest a', 'first a')
    >>> logsigs = jnp.array([[0.0, 0.0, 0.5], [2.0, 1.0, 0.5], [-1.0, 1.0, 0.5]])
    >>> jnp.sinh(features.unroll(jnp.ones(1), logsigs, jnp.asarray(3)))[2, 1:].round(3).tolist()
    [1.0, 2.0, 1.5, 2.0, 1.0, 2.0]
    """

    sparse: ClassVar[bool] = True
    factored: ClassVar[bool] = True
    basis: Basis = eqx.field(static=True)
    size: int = eqx.field(static=True)
    history: bool = eqx.field(static=True, default=False)
    centre: tuple[float, ...] | None = eqx.field(static=True, default=None)
    spread: tuple[float, ...] | None = eqx.field(static=True, default=None)

    @property
    def hidden(self) -> int:
        """The size of the initial state."""
        return self.size

    @property
    def features(self) -> int:
        """The initial state, one feature for each letter, and three for each value that has a history."""
        return self.size + self.basis.width + 3 * len(self._values)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features after the initial state."""
        values = [self.basis.letters[value] for value in self._values]
        return (*self.basis.letters, *(f"{what} {name}" for what in ("highest", "lowest", "first") for name in values))

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Steps, length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The features after every interval."""
        logsigs = _level_one(logsigs)
        valid = jnp.arange(len(logsigs), dtype=length.dtype) < length
        features = self._standardised(self._places(jnp.where(valid[:, None], logsigs, 0)))
        return jnp.concatenate([jnp.broadcast_to(hidden, (len(logsigs), self.size)), features], axis=1)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The path at the origin, nothing observed."""
        origin, nothing = jnp.zeros(self.basis.width, hidden.dtype), jnp.zeros(len(self._values), hidden.dtype)
        return Place(hidden, origin, nothing, nothing, nothing, nothing != 0)

    def advance(self, carry: Carry, logsig: Step) -> Carry:
        """The position and the history after one more interval."""
        hidden, position, highest, lowest, first, before = carry
        moved = logsig.level_one()[0] if isinstance(logsig, AbstractRaggedSteps) else logsig
        position = position + moved[: self.basis.width]
        value, seen = position[self._values], before | self._observed(position)
        return Place(
            hidden,
            position,
            jnp.where(before, jnp.maximum(highest, value), jnp.where(seen, value, 0)),
            jnp.where(before, jnp.minimum(lowest, value), jnp.where(seen, value, 0)),
            jnp.where(before, first, jnp.where(seen, value, 0)),
            seen,
        )

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The initial state and the features."""
        hidden, *places, _ = carry
        return jnp.concatenate([hidden, self._standardised(jnp.concatenate(places))])

    def penalty(self) -> Float[Array, ""]:
        """Zero: there are no parameters."""
        return jnp.asarray(0.0)

    def fit_preprocessing(
        self, logsigs: Float[Array, "series interval lie"] | AbstractRaggedSteps
    ) -> "CumulativeFeatures":
        """Fit `centre` and `spread` to the ends of these series; features that are all alike have spread one."""
        intervals = logsigs.shape if isinstance(logsigs, AbstractRaggedSteps) else logsigs.shape[:2]
        if self.centre is not None or not all(intervals):
            return self
        ends = np.arcsinh(np.asarray(_last(self, logsigs), np.float64))
        centre, spread = ends.mean(axis=0), ends.std(axis=0)
        spread = np.where(spread > 1e-6 * (1 + np.abs(centre)), spread, 1.0)
        return dataclasses.replace(self, centre=tuple(centre.tolist()), spread=tuple(spread.tolist()))

    @property
    def _values(self) -> np.ndarray:
        """The letters that have a history."""
        return np.array(values_of(self.basis.letters) if self.history else (), np.int32)

    def _observed(self, positions: Float[Array, "*interval letter"]) -> Bool[Array, "*interval value"]:
        """Which values have been observed: their count, if there is one, or the value itself is not zero."""
        letters = self.basis.letters
        counts = [letters.index(name) if (name := f"#{letters[value]}") in letters else value for value in self._values]
        return (positions[..., self._values] != 0) | (positions[..., np.array(counts, np.int32)] != 0)

    def _places(self, logsigs: Float[Array, "interval lie"]) -> Float[Array, "interval place"]:
        """The position of the path at the end of every interval, and the history of its values."""
        positions = jnp.cumsum(logsigs[:, : self.basis.width], axis=0)
        values = positions[:, self._values]
        seen = jax.lax.cummax(self._observed(positions).astype(jnp.int32), axis=0) > 0
        new = seen & ~jnp.pad(seen[:-1], ((1, 0), (0, 0)))
        highest = jax.lax.cummax(jnp.where(seen, values, -jnp.inf), axis=0)
        lowest = jax.lax.cummin(jnp.where(seen, values, jnp.inf), axis=0)
        first = jnp.cumsum(jnp.where(new, values, 0), axis=0)
        return jnp.concatenate([positions, *(jnp.where(seen, one, 0) for one in (highest, lowest, first))], axis=1)

    def _standardised(self, places: Float[Array, "*interval place"]) -> Float[Array, "*interval place"]:
        bent = jnp.arcsinh(places)
        if self.centre is None or self.spread is None:
            return bent
        return (bent - jnp.asarray(self.centre, bent.dtype)) / jnp.asarray(self.spread, bent.dtype)


@eqx.filter_jit
def _last(
    features: CumulativeFeatures, logsigs: Float[Array, "series interval lie"] | AbstractRaggedSteps
) -> Float[Array, "series place"]:
    return jax.lax.map(lambda one: features._places(_level_one(one))[-1], logsigs)


def _level_one(logsigs: Steps) -> Float[Array, "interval _"]:
    return logsigs.level_one() if isinstance(logsigs, AbstractRaggedSteps) else logsigs
