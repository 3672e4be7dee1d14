"""Initial hidden states (`app:sinusoid` of the paper: "input-dependent initialisation").

Only `FirstValueInitial` uses later observations: a channel's first value may be observed after the first query point,
and then early predictions depend on the future. The base-point increment carries that value in any case, at its own
time, so a model with `LearntInitial` or `TimeZeroInitial` loses nothing by waiting for it.
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
from logcde.flows import AbstractActivation, Tanh


class AbstractInitial(eqx.Module):
    """The features of a series' initial observations that its initial state is affine in.

    Attributes:
        causal: Whether the features are known at the start of the series.
    """

    causal: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def size(self, channels: int) -> int:
        """The number of features."""

    @abc.abstractmethod
    def __call__(self, initial: InitialObservations) -> Float[Array, "feature"]:
        """The features of one series."""


class LearntInitial(AbstractInitial):
    """No features: one learnt initial state for all series, static features aside. Causal."""

    causal: bool = eqx.field(default=True, init=False, static=True)

    def size(self, channels: int) -> int:
        """Zero."""
        return 0

    def __call__(self, initial: InitialObservations) -> Float[Array, "feature"]:
        """No features."""
        return jnp.asarray(initial.first[:0])


class FirstValueInitial(AbstractInitial):
    """Each channel's first value, as in the paper. It uses later observations: not for online prediction.

    Args:
        activation: Applied to the values: `Tanh()` in the paper, `Identity()` in earlier NCDEs.
    """

    activation: AbstractActivation = Tanh()
    causal: bool = eqx.field(default=False, init=False, static=True)

    def size(self, channels: int) -> int:
        """One for each channel."""
        return channels

    def __call__(self, initial: InitialObservations) -> Float[Array, "feature"]:
        """First values after the activation; a channel that is never observed has the value 0."""
        return self.activation(jnp.asarray(initial.first))


class TimeZeroInitial(AbstractInitial):
    """The hyperbolic tangent of values observed at time 0, and which channels have one. Causal."""

    causal: bool = eqx.field(default=True, init=False, static=True)

    def size(self, channels: int) -> int:
        """Two for each channel."""
        return 2 * channels

    def __call__(self, initial: InitialObservations) -> Float[Array, "feature"]:
        """Values, then indicators."""
        known = initial.at_start.astype(initial.first.dtype)
        return jnp.concatenate([known * jnp.tanh(initial.first), known])


class InitialState(eqx.Module):
    """The hidden state before the first interval: affine in the features of `rule` and in the static features.

    Args:
        rule: Which features of the initial observations are used.
        channels: The number of channels.
        static: The number of static features.
        hidden: The size of the hidden state.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> state = InitialState(LearntInitial(), channels=1, static=2, hidden=4, key=jax.random.key(0))
    >>> initial = InitialObservations(jnp.ones(1), jnp.ones(1, bool), jnp.zeros(1, bool))
    >>> state(initial, jnp.zeros(2, jnp.float32)).shape
    (4,)
    """

    rule: AbstractInitial
    weight: Float[Array, "hidden feature"]
    bias: Float[Array, "hidden"]

    def __init__(
        self,
        rule: AbstractInitial,
        channels: int,
        static: int,
        hidden: int,
        *,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        size = rule.size(channels) + static
        bound = max(size, 1) ** -0.5
        for_weight, for_bias = jax.random.split(key)
        self.rule = rule
        self.weight = jax.random.uniform(for_weight, (hidden, size), dtype, -bound, bound)
        self.bias = jax.random.uniform(for_bias, (hidden,), dtype, -bound, bound)

    def __call__(self, initial: InitialObservations, static: Float[Array, "static"]) -> Float[Array, "hidden"]:
        """The hidden state of one series."""
        features = jnp.concatenate([self.rule(initial).astype(self.weight.dtype), static.astype(self.weight.dtype)])
        if len(features) != self.weight.shape[1]:
            raise ModelError(
                f"The initial state has weights for {self.weight.shape[1]} features, but the inputs have "
                f"{len(features)}: {len(features) - len(static)} from {len(initial.first)} channels and {len(static)} "
                "static ones.",
                "Build the model for the number of channels and static features of its inputs, and give it "
                "log-signatures made by an Embedding.",
            )
        return self.weight @ features + self.bias


def channels_of(basis: Basis) -> int:
    """The number of letters that are values of channels: neither counts nor time.

    >>> channels_of(Basis(("a", "b", "#a", "#b", "time"), 2))
    2
    """
    return len(values_of(basis.letters))
