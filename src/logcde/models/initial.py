"""Where the hidden state starts (`app:sinusoid` in the paper: "input-dependent initialisation").

Only `FirstValueInitial` and `RawFirstValues` look ahead: a channel's first value may be observed after the first query point,
and then early predictions know of something that has not happened yet. The base-point increment carries that value in
any case, in time, so that a model with `LearntInitial` or `TimeZeroInitial` loses nothing by waiting for it.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding import InitialObservations
from logcde.embedding.coordinates import values_of
from logcde.errors import ModelError


class AbstractInitial(eqx.Module):
    """What of a series the initial state depends on, beside its static features."""

    causal: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def size(self, channels: int) -> int:
        """How many numbers it reads."""

    @abc.abstractmethod
    def __call__(self, initial: InitialObservations) -> Float[Array, "look"]:
        """These numbers."""


class LearntInitial(AbstractInitial):
    """Nothing: one learnt vector for all series. Causal."""

    causal: bool = eqx.field(default=True, init=False, static=True)

    def size(self, channels: int) -> int:
        """None."""
        return 0

    def __call__(self, initial: InitialObservations) -> Float[Array, "look"]:
        """No numbers."""
        return jnp.asarray(initial.first[:0])


class FirstValueInitial(AbstractInitial):
    """The hyperbolic tangent of each channel's first value, as in the paper. It looks ahead: not for online use."""

    causal: bool = eqx.field(default=False, init=False, static=True)

    def size(self, channels: int) -> int:
        """One for each channel."""
        return channels

    def __call__(self, initial: InitialObservations) -> Float[Array, "look"]:
        """Zero for a channel that is never observed."""
        return jnp.tanh(initial.first)


class RawFirstValues(AbstractInitial):
    """Each channel's first value as it is, as in earlier NCDEs. It looks ahead: not for online use."""

    causal: bool = eqx.field(default=False, init=False, static=True)

    def size(self, channels: int) -> int:
        """One for each channel."""
        return channels

    def __call__(self, initial: InitialObservations) -> Float[Array, "look"]:
        """Zero for a channel that is never observed."""
        return jnp.asarray(initial.first)


class TimeZeroInitial(AbstractInitial):
    """As `FirstValueInitial`, of values that are stamped 0 only, and which channels have one. Causal."""

    causal: bool = eqx.field(default=True, init=False, static=True)

    def size(self, channels: int) -> int:
        """Two for each channel."""
        return 2 * channels

    def __call__(self, initial: InitialObservations) -> Float[Array, "look"]:
        """Values, then whether there is one."""
        known = initial.at_start.astype(initial.first.dtype)
        return jnp.concatenate([known * jnp.tanh(initial.first), known])


class InitialState(eqx.Module):
    """The first hidden state: affine in what `look` sees and in the static features.

    >>> from logcde.embedding import InitialObservations
    >>> initial = InitialState(LearntInitial(), channels=1, static=2, hidden=4, key=jax.random.key(0))
    >>> initial = InitialObservations(jnp.ones(1), jnp.ones(1, bool), jnp.zeros(1, bool))
    >>> initial(initial, jnp.zeros(2, jnp.float32)).shape
    (4,)
    """

    look: AbstractInitial
    weight: Float[Array, "hidden look"]
    bias: Float[Array, "hidden"]

    def __init__(
        self,
        look: AbstractInitial,
        channels: int,
        static: int,
        hidden: int,
        *,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        size = look.size(channels) + static
        bound = max(size, 1) ** -0.5
        for_weight, for_bias = jax.random.split(key)
        self.look = look
        self.weight = jax.random.uniform(for_weight, (hidden, size), dtype, -bound, bound)
        self.bias = jax.random.uniform(for_bias, (hidden,), dtype, -bound, bound)

    def __call__(self, initial: InitialObservations, static: Float[Array, "static"]) -> Float[Array, "hidden"]:
        """The state before the first interval."""
        seen = jnp.concatenate([self.look(initial).astype(self.weight.dtype), static.astype(self.weight.dtype)])
        if len(seen) != self.weight.shape[1]:
            raise ModelError(
                f"The initial state reads {self.weight.shape[1]} numbers, {len(seen) - len(static)} of the "
                f"{len(initial.first)} channels and {len(static)} static features come in. Give the model the number "
                "of channels and static features that its inputs have, and log-signatures made by an Embedding."
            )
        return self.weight @ seen + self.bias


def channels_of(basis: Basis) -> int:
    """How many letters are values of channels: neither counts nor time.

    >>> channels_of(Basis(("a", "b", "#a", "#b", "time"), 2))
    2
    """
    return len(values_of(basis.letters))
