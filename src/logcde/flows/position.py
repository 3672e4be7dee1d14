"""Where the driving path is, as a state: what has been observed last, how often, and how long it took."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from logcde.algebra import Basis
from logcde.flows.dynamics import AbstractDynamics, Carry


class Position(AbstractDynamics):
    """The sum of all increments so far, bent as arsinh(x), beside the state that it starts from, which stays.

    The inverse hyperbolic sine is the identity for small numbers and a logarithm, of either sign, for large ones: the
    hundredth observation of a channel tells less than the first. There is nothing to learn; once fitted to training
    series, places are seen from the `centre` of where these end, which lets layers that read them learn faster.

    >>> position = Position(Basis(("a", "#a", "time"), 1), size=1)
    >>> steps = jnp.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.5]])
    >>> position.unroll(jnp.ones(1), steps, jnp.asarray(2)).shape
    (2, 4)
    """

    basis: Basis = eqx.field(static=True)
    size: int = eqx.field(static=True)
    centre: tuple[float, ...] | None = eqx.field(static=True, default=None)

    @property
    def hidden(self) -> int:
        """The size of the state at the start."""
        return self.size

    @property
    def features(self) -> int:
        """The state at the start and a number for each letter."""
        return self.size + self.basis.width

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The position after every interval."""
        valid = jnp.arange(len(steps), dtype=length.dtype) < length
        places = jnp.cumsum(jnp.where(valid[:, None], steps[:, : self.basis.width], 0), axis=0)
        return jnp.concatenate([jnp.broadcast_to(hidden, (len(steps), self.size)), self._seen(places)], axis=1)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """At the origin."""
        return hidden, jnp.zeros(self.basis.width, hidden.dtype)

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """Further on."""
        hidden, place = carry
        return hidden, place + step[: self.basis.width]

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state at the start and the position."""
        hidden, place = carry
        return jnp.concatenate([hidden, self._seen(place)])

    def penalty(self) -> Float[Array, ""]:
        """None."""
        return jnp.asarray(0.0)

    def fitted_to(self, totals: Float[Array, "series lie"]) -> "Position":
        """With the mean of where these end as its centre, unless it has one."""
        if self.centre is not None or not len(totals):
            return self
        ends = np.arcsinh(np.asarray(totals[:, : self.basis.width], np.float64))
        return dataclasses.replace(self, centre=tuple(ends.mean(axis=0).tolist()))

    def _seen(self, places: Float[Array, "*interval letter"]) -> Float[Array, "*interval letter"]:
        bent = jnp.arcsinh(places)
        return bent if self.centre is None else bent - jnp.asarray(self.centre, bent.dtype)
