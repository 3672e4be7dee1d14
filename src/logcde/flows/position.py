"""Where the driving path is, as a state: what has been observed last, how often, how long it took, and extremes."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logcde.algebra import Basis
from logcde.flows.dynamics import AbstractDynamics, Carry


class Place(NamedTuple):
    """What is kept between intervals: the state at the start, the place, and its extremes once there is an interval."""

    hidden: Float[Array, "hidden"]
    place: Float[Array, "letter"]
    highest: Float[Array, "value"]
    lowest: Float[Array, "value"]
    begun: Bool[Array, ""]


class Position(AbstractDynamics):
    """The sum of all increments so far, bent as arsinh(x), beside the state that it starts from, which stays.

    The inverse hyperbolic sine is the identity for small numbers and a logarithm, of either sign, for large ones: the
    hundredth observation of a channel tells less than the first. With `extremes`, the greatest and the least value that
    each channel had at the end of an interval are there as well. There is nothing to learn; once fitted to training
    series, places are seen from the `centre` of where these end and in units of their `spread`, which lets layers that
    read them learn faster.

    >>> position = Position(Basis(("a", "#a", "time"), 1), size=1, extremes=True)
    >>> steps = jnp.array([[2.0, 1.0, 0.5], [-1.0, 1.0, 0.5]])
    >>> jnp.sinh(position.unroll(jnp.ones(1), steps, jnp.asarray(2)))[1, 1:].round(3).tolist()
    [1.0, 2.0, 1.0, 2.0, 1.0]
    """

    basis: Basis = eqx.field(static=True)
    size: int = eqx.field(static=True)
    extremes: bool = eqx.field(static=True, default=False)
    centre: tuple[float, ...] | None = eqx.field(static=True, default=None)
    spread: tuple[float, ...] | None = eqx.field(static=True, default=None)

    @property
    def hidden(self) -> int:
        """The size of the state at the start."""
        return self.size

    @property
    def features(self) -> int:
        """The state at the start, a number for each letter, and two for each value that has extremes."""
        return self.size + self.basis.width + 2 * len(self._values)

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
        return Place(hidden, origin, nothing, nothing, jnp.asarray(False))

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """Further on."""
        hidden, place, highest, lowest, begun = carry
        place = place + step[: self.basis.width]
        value = place[self._values]
        highest = jnp.where(begun, jnp.maximum(highest, value), value)
        lowest = jnp.where(begun, jnp.minimum(lowest, value), value)
        return Place(hidden, place, highest, lowest, jnp.asarray(True))

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state at the start and the position."""
        hidden, place, highest, lowest, _ = carry
        return jnp.concatenate([hidden, self._seen(jnp.concatenate([place, highest, lowest]))])

    def penalty(self) -> Float[Array, ""]:
        """None."""
        return jnp.asarray(0.0)

    def fitted_to(self, steps: Callable[[], Float[Array, "series interval lie"]]) -> "Position":
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
        """Which letters have extremes: neither counts, which only grow, nor time."""
        letters = self.basis.letters if self.extremes else ()
        found = [place for place, name in enumerate(letters) if not name.startswith("#") and name != "time"]
        return np.array(found, np.int32)

    def _places(self, steps: Float[Array, "interval lie"]) -> Float[Array, "interval place"]:
        """Where the path is at the end of every interval, and its extremes so far."""
        places = jnp.cumsum(steps[:, : self.basis.width], axis=0)
        values = places[:, self._values]
        return jnp.concatenate([places, jax.lax.cummax(values, axis=0), jax.lax.cummin(values, axis=0)], axis=1)

    def _seen(self, places: Float[Array, "*interval place"]) -> Float[Array, "*interval place"]:
        bent = jnp.arcsinh(places)
        if self.centre is None or self.spread is None:
            return bent
        return (bent - jnp.asarray(self.centre, bent.dtype)) / jnp.asarray(self.spread, bent.dtype)


@eqx.filter_jit
def _last(position: Position, steps: Float[Array, "series interval lie"]) -> Float[Array, "series place"]:
    return jax.lax.map(lambda one: position._places(one)[-1], steps)
