"""From hidden states to predictions: which states are read, and the layers that read them."""

import abc
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray, PyTree

from logcde.errors import ModelError

Tally: TypeAlias = PyTree[Any]
"""What a reading keeps while intervals pass."""


class AbstractReadout(eqx.Module):
    """Which states are read: all at once with `offline`, or as they come with `start`, `add` and `read`."""

    widths: eqx.AbstractVar[tuple[int, ...]]
    dropout: eqx.AbstractVar[float]

    @abc.abstractmethod
    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "*interval features"]:
        """What is read of a series, from the state before the first interval and the states after each."""

    @abc.abstractmethod
    def start(self, start: Float[Array, "features"]) -> Tally:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def read(self, tally: Tally) -> Float[Array, "features"]:
        """What would be read if this were the end."""


class Terminal(AbstractReadout):
    """The state after the last interval, read by an affine layer, or by an MLP with hidden layers of these `widths`.

    In training every layer leaves out a share of what it is given, drawn at random: `dropout`, for all readings.
    """

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "features"]:
        """The state after interval number `length`."""
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
    """The state after every interval, read one by one: one prediction for each query point."""

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """All states; those beyond `length` mean nothing."""
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
    """The mean of the states after all intervals; `initial` counts the state before the first one as well."""

    widths: tuple[int, ...] = eqx.field(default=(), static=True)
    dropout: float = eqx.field(default=0.0, static=True)
    initial: bool = eqx.field(default=False, static=True)

    def offline(
        self, start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
    ) -> Float[Array, "features"]:
        """The mean over intervals up to `length`."""
        valid = jnp.arange(len(states), dtype=length.dtype) < length
        total = jnp.sum(jnp.where(valid[:, None], states, 0), axis=0)
        return self.read((total + start if self.initial else total, length + int(self.initial)))

    def start(self, start: Float[Array, "features"]) -> Tally:
        """A sum and how many it has."""
        return (start if self.initial else jnp.zeros_like(start)), jnp.asarray(int(self.initial), jnp.int32)

    def add(self, tally: Tally, state: Float[Array, "features"]) -> Tally:
        """One more."""
        total, count = tally
        return total + state, count + 1

    def read(self, tally: Tally) -> Float[Array, "features"]:
        """Zero if there is nothing yet."""
        total, count = tally
        return total / jnp.maximum(count, 1).astype(total.dtype)


class ReadoutHead(eqx.Module):
    """A reading and its layers.

    >>> readout = ReadoutHead(Mean(widths=(8,)), features=4, outputs=2, key=jax.random.key(0))
    >>> readout.offline(jnp.zeros(4, jnp.float32), jnp.ones((5, 4), jnp.float32), jnp.asarray(3)).shape
    (2,)
    """

    reading: AbstractReadout
    layers: tuple[eqx.nn.Linear, ...]

    def __init__(
        self,
        reading: AbstractReadout,
        features: int,
        outputs: int,
        *,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if not 0 <= reading.dropout < 1:
            raise ModelError(f"A share of {reading.dropout} would be left out. It is at least 0 and less than 1.")
        sizes = (features, *reading.widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        self.reading = reading
        self.layers = tuple(
            eqx.nn.Linear(a, b, dtype=dtype, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def head(self, features: Float[Array, "features"], key: PRNGKeyArray | None = None) -> Float[Array, "output"]:
        """One prediction from what was read; with a `key`, as in training."""
        drop = eqx.nn.Dropout(self.reading.dropout, inference=key is None)
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
        """The prediction, or the predictions, of one series; in training all of them leave out the same."""
        read = self.reading.offline(start, states, length)
        return self.head(read, key) if read.ndim == 1 else jax.vmap(lambda one: self.head(one, key))(read)

    def online(self, tally: Tally) -> Float[Array, "output"]:
        """The prediction if this were the end."""
        return self.head(self.reading.read(tally))
