"""A stack of recurrent layers on the values of the driving path: what S5, LRU, S6 and Mamba have in common.

The row of an interval is where the path is at its end. With one interval for each event these are the observed values
themselves, and of channels that were not observed just then the last ones; before a channel's first value it is zero.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.flows.dynamics import AbstractBatchDynamics, Carry, Noted
from logcde.flows.mixing import AbstractMixer
from logcde.flows.norms import AbstractNorm


class Layer(eqx.Module):
    """x + dropout(GLU(dropout(GELU(mix(norm(x)))))): nothing but the mixing looks at more than one row."""

    norm: AbstractNorm
    mixer: AbstractMixer
    gate: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """The rows after this layer."""
        return rows + jax.vmap(self._gated)(jax.nn.gelu(self.mixer(self.norm(rows))))

    def learn(
        self, rows: Float[Array, "interval features"], length: Int[Array, ""], key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], AbstractNorm | None]:
        """The rows after this layer in training, and the norm that remembers the batch."""
        first, second = jax.random.split(key)
        valid = jnp.arange(len(rows), dtype=length.dtype) < length
        normal, noted = self.norm.learn(rows, valid, axes)
        mixed = self.dropout(jax.nn.gelu(self.mixer(normal)), key=first)
        return rows + self.dropout(jax.vmap(self._gated)(mixed), key=second), noted

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """What the mixer keeps after one more row, and that row after this layer."""
        carry, mixed = self.mixer.advance(carry, self.norm(row))
        return carry, row + self._gated(jax.nn.gelu(mixed))

    def _gated(self, row: Float[Array, "features"]) -> Float[Array, "features"]:
        return jax.nn.glu(self.gate(row))


class Recurrent(AbstractBatchDynamics):
    """Layers on top of each other, above a linear map of where the path is; the initial state shifts that map.

    >>> from logcde.flows.norms import LayerNorm
    >>> from logcde.flows.state_space import LinearRecurrentUnit
    >>> unit = LinearRecurrentUnit(features=4, state=8, key=jax.random.key(0))
    >>> stack = Recurrent(letters=3, features=4, mixers=[unit], norms=[LayerNorm(4)], key=jax.random.key(1))
    >>> stack.unroll(jnp.zeros(4, jnp.float32), jnp.ones((5, 6), jnp.float32), jnp.asarray(5)).shape
    (5, 4)
    """

    encode: Float[Array, "features letter"]
    layers: tuple[Layer, ...]

    def __init__(
        self,
        letters: int,
        features: int,
        mixers: Sequence[AbstractMixer],
        norms: Sequence[AbstractNorm],
        *,
        dropout: float = 0.0,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        for_encode, *keys = jax.random.split(key, 1 + len(mixers))
        bound = letters**-0.5
        self.encode = jax.random.uniform(for_encode, (features, letters), dtype, -bound, bound)
        self.layers = tuple(
            Layer(norm, mixer, eqx.nn.Linear(features, 2 * features, dtype=dtype, key=k), eqx.nn.Dropout(dropout))
            for norm, mixer, k in zip(norms, mixers, keys, strict=True)
        )

    @property
    def hidden(self) -> int:
        """The size of the rows that all layers have."""
        return len(self.encode)

    @property
    def features(self) -> int:
        """The size of the rows that all layers have."""
        return len(self.encode)

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The rows of the last layer."""
        rows = self._rows(hidden, steps)
        for layer in self.layers:
            rows = layer(rows)
        return rows

    def learn(
        self,
        hidden: Float[Array, "hidden"],
        steps: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
        axes: tuple[str, ...],
    ) -> tuple[Float[Array, "interval features"], Noted]:
        """The rows of the last layer in training, and the norms of all layers that remember the batch."""
        rows = self._rows(hidden, steps)
        noted = []
        for layer, k in zip(self.layers, jax.random.split(key, len(self.layers)), strict=True):
            rows, norm = layer.learn(rows, length, k, axes)
            noted.append(norm)
        return rows, tuple(noted)

    def noting(self, noted: Noted) -> "Recurrent":
        """With the norms that remember."""
        norms = [layer.norm if norm is None else norm for layer, norm in zip(self.layers, noted, strict=True)]
        return eqx.tree_at(lambda stack: [layer.norm for layer in stack.layers], self, norms)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The shift, where the path is, what the mixers keep, and the last row."""
        origin = jnp.zeros(self.encode.shape[1], self.encode.dtype)
        return hidden, origin, tuple(layer.mixer.start() for layer in self.layers), jnp.zeros_like(hidden)

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The same after one more interval."""
        hidden, place, kept, _ = carry
        place = place + step[: len(place)]
        row = self.encode @ place + hidden
        after = []
        for layer, mine in zip(self.layers, kept, strict=True):
            mine, row = layer.advance(mine, row)
            after.append(mine)
        return hidden, place, tuple(after), row

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The last row."""
        return carry[-1]

    def penalty(self) -> Float[Array, ""]:
        """Nothing: there is no vector field."""
        return jnp.zeros((), self.encode.dtype)

    def _rows(self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"]) -> Array:
        letters = self.encode.shape[1]
        return jnp.cumsum(steps[:, :letters], axis=0) @ self.encode.T + hidden
