"""Readouts: which hidden states are read, and the layers that turn them into predictions."""

import abc
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray, PyTree

from logcde.errors import ModelError

Tally: TypeAlias = PyTree[Any]
"""What a readout keeps between intervals."""


class AbstractReadout(eqx.Module):
    """Which states are read: all at once with `offline`, or one interval at a time with `start`, `add` and `read`.

    Attributes:
        widths: The widths of the hidden layers of an MLP that reads the states; none for an affine layer.
        dropout: The share of the inputs of every layer that is dropped in training.
    """

    widths: eqx.AbstractVar[tuple[int, ...]]
    dropout: eqx.AbstractVar[float]

    @abc.abstractmethod
    def size(self, features: int) -> int:
        """The size of what is read of states with so many features."""

    @abc.abstractmethod
    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "*interval read"]:
        """What is read of a series, given the state before the first interval and the states after each."""

    @abc.abstractmethod
    def start(self, start: Float[Array, "features"]) -> Tally:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def read(self, tally: Tally) -> Float[Array, "read"]:
        """What is read of a series that ends here."""


class Terminal(AbstractReadout):
    """Read the state after the last interval.

    Args:
        widths: The widths of the hidden layers of an MLP that reads it; none for an affine layer.
        dropout: The share of the inputs of every layer that is dropped in training.
    """

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)

    def size(self, features: int) -> int:
        """That of a state."""
        return features

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "features"]:
        """The state after the last interval of the series."""
        return jnp.concatenate([start[None], states])[length]

    def start(self, start: Float[Array, "features"]) -> Tally:
        """The state."""
        return start

    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """The new state."""
        return state

    def read(self, tally: Tally) -> Float[Array, "features"]:
        """The state."""
        return tally


class PerInterval(AbstractReadout):
    """Read the state after every interval: one prediction for each query point.

    Args:
        widths: The widths of the hidden layers of an MLP that reads it; none for an affine layer.
        dropout: The share of the inputs of every layer that is dropped in training.
    """

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)

    def size(self, features: int) -> int:
        """That of a state."""
        return features

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """All states; those beyond `length` have no meaning."""
        return states

    def start(self, start: Float[Array, "features"]) -> Tally:
        """The state."""
        return start

    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """The new state."""
        return state

    def read(self, tally: Tally) -> Float[Array, "features"]:
        """The state."""
        return tally


class Mean(AbstractReadout):
    """Read the mean of the states after all intervals.

    Args:
        widths: The widths of the hidden layers of an MLP that reads it; none for an affine layer.
        dropout: The share of the inputs of every layer that is dropped in training.
        initial: Whether the state before the first interval counts as well.
    """

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)
    initial: bool = eqx.field(default=False, static=True)

    def size(self, features: int) -> int:
        """That of a state."""
        return features

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "features"]:
        """The mean over intervals up to `length`."""
        valid = jnp.arange(len(states), dtype=length.dtype) < length
        total = jnp.sum(jnp.where(valid[:, None], states, 0), axis=0)
        return self.read((total + start if self.initial else total, length + int(self.initial)))

    def start(self, start: Float[Array, "features"]) -> Tally:
        """The sum of the states and their number."""
        return (start if self.initial else jnp.zeros_like(start)), jnp.asarray(int(self.initial), jnp.int32)

    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """Add the state to the sum."""
        total, count = tally
        return total + state, count + 1

    def read(self, tally: Tally) -> Float[Array, "features"]:
        """The mean; zero before the first state."""
        total, count = tally
        return total / jnp.maximum(count, 1).astype(total.dtype)


class MeanMax(AbstractReadout):
    """Read the mean and, entry by entry, the maximum of the states after all intervals.

    Args:
        widths: The widths of the hidden layers of an MLP that reads them; none for an affine layer.
        dropout: The share of the inputs of every layer that is dropped in training.
    """

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)

    def size(self, features: int) -> int:
        """Twice that of a state."""
        return 2 * features

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "read"]:
        """Mean and maximum over intervals up to `length`."""
        valid = (jnp.arange(len(states), dtype=length.dtype) < length)[:, None]
        lowest = jnp.finfo(states.dtype).min
        highest = jnp.max(jnp.where(valid, states, lowest), axis=0, initial=lowest)
        return self.read((jnp.sum(jnp.where(valid, states, 0), axis=0), highest, length))

    def start(self, start: Float[Array, "features"]) -> Tally:
        """The sum of the states, their maximum and their number."""
        return jnp.zeros_like(start), jnp.full_like(start, jnp.finfo(start.dtype).min), jnp.asarray(0, jnp.int32)

    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """Add the state to sum and maximum."""
        total, highest, count = tally
        return total + state, jnp.maximum(highest, state), count + 1

    def read(self, tally: Tally) -> Float[Array, "read"]:
        """The mean, then the maximum; zero before the first state."""
        total, highest, count = tally
        mean = total / jnp.maximum(count, 1).astype(total.dtype)
        return jnp.concatenate([mean, jnp.where(count > 0, highest, 0)])


class ReadoutHead(eqx.Module):
    """A readout with its layers.

    Args:
        rule: Which states are read.
        features: The size of the states.
        outputs: The number of outputs.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> head = ReadoutHead(Mean(widths=(8,)), features=4, outputs=2, key=jax.random.key(0))
    >>> head.offline(jnp.zeros(4, jnp.float32), jnp.ones((5, 4), jnp.float32), jnp.asarray(3)).shape
    (2,)
    """

    rule: AbstractReadout
    layers: tuple[eqx.nn.Linear, ...]

    def __init__(
        self,
        rule: AbstractReadout,
        features: int,
        outputs: int,
        *,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if not 0 <= rule.dropout < 1:
            raise ModelError(f"The dropout is {rule.dropout}.", "Give a share that is at least 0 and less than 1.")
        sizes = (rule.size(features), *rule.widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        self.rule = rule
        self.layers = tuple(
            eqx.nn.Linear(a, b, dtype=dtype, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def head(self, features: Float[Array, "features"], key: PRNGKeyArray | None = None) -> Float[Array, "output"]:
        """One prediction from what was read; with a `key`, with dropout."""
        drop = eqx.nn.Dropout(self.rule.dropout, inference=key is None)
        keys = [None] * len(self.layers) if key is None else jax.random.split(key, len(self.layers))
        *inner, last = self.layers
        for layer, own in zip(inner, keys[:-1], strict=True):
            features = jax.nn.gelu(layer(drop(features, key=own)))
        return last(drop(features, key=keys[-1]))

    def offline(
        self,
        start: Float[Array, "features"],
        states: Float[Array, "interval features"],
        length: Int[Array, ""],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*interval output"]:
        """The prediction or predictions of one series; dropout is the same for all of them."""
        read = self.rule.offline(start, states, length)
        return self.head(read, key) if read.ndim == 1 else jax.vmap(lambda one: self.head(one, key))(read)

    def online(self, tally: Tally) -> Float[Array, "output"]:
        """The prediction for a series that ends here."""
        return self.head(self.rule.read(tally))
