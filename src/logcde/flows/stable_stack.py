"""Deep stacks that train: residual layers with normalised inputs, stable flows that mix time, and gates.

With y_i the output of the layer below after interval i and z_i = y_i divided by its root mean square, the state h of a
layer is moved by the increments (1, z_i), and the output of the layer is

    y_i + P (v * sigmoid(g)),   (v, g) = G (h_i, z_i).

Inputs of all layers are of unit size and flows never grow a state, so that outputs stay bounded for any input, and
gradients pass through the sum.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding.coordinates import TIME
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDropoutDynamics, AbstractDynamics, Carry, Step, Steps, unroll_with


class StableLayer(eqx.Module):
    """One residual layer: norm, dynamics, gate, projection.

    Attributes:
        norm: Divides the output of the layer below by its root mean square, with a learnt scale.
        mixer: The dynamics, driven by (1, z).
        begin: The state of the dynamics before the first interval.
        gate: The gated linear unit of state and z.
        project: What is added to the output of the layer below.
    """

    norm: eqx.nn.RMSNorm
    mixer: AbstractDynamics
    begin: Float[Array, "hidden"]
    gate: eqx.nn.Linear
    project: eqx.nn.Linear

    def __init__(self, features: int, mixer: AbstractDynamics, *, dtype: DTypeLike, key: PRNGKeyArray) -> None:
        for_begin, for_gate, for_project = jax.random.split(key, 3)
        self.norm = eqx.nn.RMSNorm(features, use_bias=False, dtype=dtype)
        self.mixer = mixer
        self.begin = jax.random.normal(for_begin, (mixer.hidden,), dtype)
        self.gate = eqx.nn.Linear(mixer.features + features, 2 * features, dtype=dtype, key=for_gate)
        self.project = eqx.nn.Linear(features, features, use_bias=False, dtype=dtype, key=for_project)

    def increments(self, below: Float[Array, "features"]) -> Float[Array, "letter"]:
        """What drives the dynamics over an interval."""
        normal = self.norm(below)
        return jnp.concatenate([jnp.ones_like(normal[:1]), normal])

    def change(self, state: Float[Array, "hidden"], increments: Float[Array, "letter"]) -> Float[Array, "features"]:
        """What is added to the output of the layer below."""
        return self.project(jax.nn.glu(self.gate(jnp.concatenate([state, increments[1:]]))))


class StableStack(AbstractDropoutDynamics):
    """Any dynamics as the first layer, and residual layers above it.

    Args:
        first: The first layer: a `RowEncoder` of plain rows, or a linear CDE that log-signatures drive.
        mixers: The dynamics of each residual layer, with fields in `layer_basis(first.features)`.
        dropout: The share of what a layer adds that is dropped in training.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> from logcde.flows import Contracting, LinearDynamics, RowEncoder
    >>> keys = jax.random.split(jax.random.key(0), 4)
    >>> mixers = [LinearDynamics(Contracting(layer_basis(8), 16, 2, key=k)) for k in keys[:2]]
    >>> stack = StableStack(RowEncoder(3, 8, key=keys[2]), mixers, key=keys[3])
    >>> stack.unroll(jnp.ones(8, jnp.float32), jnp.zeros((5, 3), jnp.float32), jnp.asarray(5)).shape
    (5, 8)
    """

    sparse: ClassVar[bool] = True
    factored: ClassVar[bool] = True
    first: AbstractDynamics
    layers: tuple[StableLayer, ...]
    dropout: float = eqx.field(static=True)

    def __init__(
        self,
        first: AbstractDynamics,
        mixers: Sequence[AbstractDynamics],
        *,
        dropout: float = 0.0,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if not 0 <= dropout < 1:
            raise ModelError(f"The dropout is {dropout}.", "Give a share that is at least 0 and less than 1.")
        keys = jax.random.split(key, max(len(mixers), 1))
        self.first, self.dropout = first, dropout
        self.layers = tuple(
            StableLayer(first.features, mixer, dtype=dtype, key=k) for mixer, k in zip(mixers, keys, strict=False)
        )

    @property
    def hidden(self) -> int:
        """The size of the hidden state of the first layer."""
        return self.first.hidden

    @property
    def features(self) -> int:
        """The size of the output of every layer."""
        return self.first.features

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Steps, length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The output of the last layer after every interval."""
        return self._along(hidden, logsigs, length, None)

    def unroll_train(
        self,
        hidden: Float[Array, "hidden"],
        logsigs: Steps,
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "interval features"]:
        """The same with dropout."""
        return self._along(hidden, logsigs, length, key)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The states of all layers."""
        return (self.first.start(hidden), *(layer.mixer.start(layer.begin) for layer in self.layers))

    def advance(self, carry: Carry, logsig: Step) -> Carry:
        """The states of all layers after one more interval."""
        step: Any = logsig
        moved = [self.first.advance(carry[0], step)]
        out = self.first.state(moved[0])
        for layer, state in zip(self.layers, carry[1:], strict=True):
            increments = layer.increments(out)
            moved.append(layer.mixer.advance(state, increments))
            out = out + layer.change(layer.mixer.state(moved[-1]), increments)
        return tuple(moved)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The output of the last layer."""
        out = self.first.state(carry[0])
        for layer, state in zip(self.layers, carry[1:], strict=True):
            out = out + layer.change(layer.mixer.state(state), layer.increments(out))
        return out

    def penalty(self) -> Float[Array, ""]:
        """The sum of the penalties of all layers."""
        return sum((layer.mixer.penalty() for layer in self.layers), self.first.penalty())

    def _along(
        self, hidden: Array, logsigs: Steps, length: Int[Array, ""], key: PRNGKeyArray | None
    ) -> Float[Array, "interval features"]:
        count = 2 * len(self.layers) + 1
        keys = [None] * count if key is None else list(jax.random.split(key, count))
        out = unroll_with(self.first, hidden, logsigs, length, keys[0])
        drop = eqx.nn.Dropout(self.dropout, inference=key is None)
        for layer, for_mixer, for_dropout in zip(self.layers, keys[1::2], keys[2::2], strict=True):
            increments = jax.vmap(layer.increments)(out)
            states = unroll_with(layer.mixer, layer.begin, increments, length, for_mixer)
            out = out + drop(jax.vmap(layer.change)(states, increments), key=for_dropout)
        return out


def layer_basis(features: int) -> Basis:
    """The letters that drive a layer above one with this many features: the constant 1 as time, then the features.

    >>> layer_basis(2).letters
    ('time', '1', '2')
    """
    return Basis((TIME, *(str(place + 1) for place in range(features))), 1)
