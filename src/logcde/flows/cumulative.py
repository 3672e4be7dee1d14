"""Where the driving path is, as a state: what was observed last, how often, how long it took, and what came before."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logcde.algebra import Basis
from logcde.embedding.coordinates import values_of
from logcde.flows.dynamics import AbstractDynamics, Carry


class Place(NamedTuple):
    """What is kept between intervals: the state at the start, the place, and what is known of values seen so far."""

    hidden: Float[Array, "hidden"]
    place: Float[Array, "letter"]
    highest: Float[Array, "value"]
    lowest: Float[Array, "value"]
    first: Float[Array, "value"]
    seen: Bool[Array, "value"]


class CumulativeFeatures(AbstractDynamics):
    """The sum of all increments so far, bent as arsinh(x), beside the state that it starts from, which stays.

    The inverse hyperbolic sine is the identity for small numbers and a logarithm, of either sign, for large ones: the
    hundredth observation of a channel tells less than the first. With `history`, the greatest, the least and the first
    value that each channel had at the end of an interval are there as well, from when it was first observed; they are 0
    before. There is nothing to learn; once fitted to training series, places are seen from the `centre` of where these
    end and in units of their `spread`, which lets layers that read them learn faster.

    >>> position = CumulativeFeatures(Basis(("a", "#a", "time"), 1), size=1, history=True)
    >>> steps = jnp.array([[0.0, 0.0, 0.5], [2.0, 1.0, 0.5], [-1.0, 1.0, 0.5]])
    >>> jnp.sinh(position.unroll(jnp.ones(1), steps, jnp.asarray(3)))[2, 1:].round(3).tolist()
    [1.0, 2.0, 1.5, 2.0, 1.0, 2.0]
    """

    basis: Basis = eqx.field(static=True)
    size: int = eqx.field(static=True)
    history: bool = eqx.field(static=True, default=False)
    centre: tuple[float, ...] | None = eqx.field(static=True, default=None)
    spread: tuple[float, ...] | None = eqx.field(static=True, default=None)

    @property
    def hidden(self) -> int:
        """The size of the state at the start."""
        return self.size

    @property
    def features(self) -> int:
        """The state at the start, a number for each letter, and three for each value that has a history."""
        return self.size + self.basis.width + 3 * len(self._values)

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The position after every interval."""
        valid = jnp.arange(len(steps), dtype=length.dtype) < length
        seen = self._seen(self._places(jnp.where(valid[:, None], steps, 0)))
        return jnp.concatenate([jnp.broadcast_to(hidden, (len(steps), self.size)), seen], axis=1)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """At the origin."""
        origin, nothing = jnp.zeros(self.basis.width, hidden.dtype), jnp.zeros(len(self._values), hidden.dtype)
        return Place(hidden, origin, nothing, nothing, nothing, nothing != 0)

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """Further on."""
        hidden, place, highest, lowest, first, before = carry
        place = place + step[: self.basis.width]
        value, seen = place[self._values], before | self._observed(place)
        return Place(
            hidden,
            place,
            jnp.where(before, jnp.maximum(highest, value), jnp.where(seen, value, 0)),
            jnp.where(before, jnp.minimum(lowest, value), jnp.where(seen, value, 0)),
            jnp.where(before, first, jnp.where(seen, value, 0)),
            seen,
        )

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state at the start and the position."""
        hidden, *places, _ = carry
        return jnp.concatenate([hidden, self._seen(jnp.concatenate(places))])

    def penalty(self) -> Float[Array, ""]:
        """None."""
        return jnp.asarray(0.0)

    def fit_preprocessing(self, steps: Callable[[], Float[Array, "series interval lie"]]) -> "CumulativeFeatures":
        """With the mean and the standard deviation of where these end, unless it has them; one where all are alike."""
        if self.centre is not None:
            return self
        rows = steps()
        if not rows.shape[0] or not rows.shape[1]:
            return self
        ends = np.arcsinh(np.asarray(_last(self, rows), np.float64))
        centre, spread = ends.mean(axis=0), ends.std(axis=0)
        spread = np.where(spread > 1e-6 * (1 + np.abs(centre)), spread, 1.0)
        return dataclasses.replace(self, centre=tuple(centre.tolist()), spread=tuple(spread.tolist()))

    @property
    def _values(self) -> np.ndarray:
        """Which letters have a history."""
        return np.array(values_of(self.basis.letters) if self.history else (), np.int32)

    def _observed(self, places: Float[Array, "*interval letter"]) -> Bool[Array, "*interval value"]:
        """Which values have been observed by now: their count, if there is one, or the value itself is not at 0."""
        letters = self.basis.letters
        counts = [letters.index(name) if (name := f"#{letters[value]}") in letters else value for value in self._values]
        return (places[..., self._values] != 0) | (places[..., np.array(counts, np.int32)] != 0)

    def _places(self, steps: Float[Array, "interval lie"]) -> Float[Array, "interval place"]:
        """Where the path is at the end of every interval, and the history of its values."""
        places = jnp.cumsum(steps[:, : self.basis.width], axis=0)
        values = places[:, self._values]
        seen = jax.lax.cummax(self._observed(places).astype(jnp.int32), axis=0) > 0
        new = seen & ~jnp.pad(seen[:-1], ((1, 0), (0, 0)))
        highest = jax.lax.cummax(jnp.where(seen, values, -jnp.inf), axis=0)
        lowest = jax.lax.cummin(jnp.where(seen, values, jnp.inf), axis=0)
        first = jnp.cumsum(jnp.where(new, values, 0), axis=0)
        return jnp.concatenate([places, *(jnp.where(seen, one, 0) for one in (highest, lowest, first))], axis=1)

    def _seen(self, places: Float[Array, "*interval place"]) -> Float[Array, "*interval place"]:
        bent = jnp.arcsinh(places)
        if self.centre is None or self.spread is None:
            return bent
        return (bent - jnp.asarray(self.centre, bent.dtype)) / jnp.asarray(self.spread, bent.dtype)


@eqx.filter_jit
def _last(position: CumulativeFeatures, steps: Float[Array, "series interval lie"]) -> Float[Array, "series place"]:
    return jax.lax.map(lambda one: position._places(one)[-1], steps)
