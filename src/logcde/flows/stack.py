"""Deep SLiCEs: linear CDEs on top of each other, each driven by what the one below puts out.

The first layer is moved by log-signatures. After interval i a layer puts out y_i, and the layer above it moves over the
interval by the flow of A^0 + sum_j y_i^j A^j: a linear CDE of depth one whose control has the increments (1, y_i).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.fields import SCALE, BlockDiagonal
from logcde.flows.linear import LinearDynamics
from logcde.flows.scan import AbstractFlow, Exponential, FlowScan
from logcde.scans import Auto


class ResidualBlock(eqx.Module):
    """What lies around the linear CDE of a layer, in this order.

    `residual` adds what drives the layer to its state, `glu` adds a gated linear unit of the sum, and `norm` normalises
    the result over its entries, with a learnt scale and shift.
    """

    residual: bool = eqx.field(default=True, static=True)
    glu: bool = eqx.field(default=True, static=True)
    norm: bool = eqx.field(default=True, static=True)


class Mixer(eqx.Module):
    """The parameters of a block, and what it makes of a layer's state."""

    block: ResidualBlock
    gate: eqx.nn.Linear | None
    norm: eqx.nn.LayerNorm | None

    def __init__(self, block: ResidualBlock, features: int, *, dtype: DTypeLike, key: PRNGKeyArray) -> None:
        self.block = block
        self.gate = eqx.nn.Linear(features, 2 * features, dtype=dtype, key=key) if block.glu else None
        self.norm = eqx.nn.LayerNorm(features, dtype=dtype) if block.norm else None

    def __call__(
        self, state: Float[Array, "features"], below: Float[Array, "features"] | None
    ) -> Float[Array, "features"]:
        """What the layer puts out; nothing is `below` the first."""
        if self.block.residual and below is not None:
            state = state + below
        if self.gate is not None:
            state = state + jax.nn.glu(self.gate(state))
        return state if self.norm is None else self.norm(state)


class Stack(AbstractDynamics):
    """Any dynamics at the bottom and block-diagonal linear CDEs above them; `layers` counts all.

    The states of the upper layers begin at learnt vectors. `scale` is the size of their vector fields at the start,
    as that of `BlockDiagonal` and divided by the number of their letters, features + 1.

    >>> from logcde.flows import Diagonal
    >>> first = LinearDynamics(Diagonal(Basis.of_width(2, 2), 8, key=jax.random.key(0)))
    >>> stack = Stack(first, layers=3, block=4, key=jax.random.key(1))
    >>> stack.unroll(jnp.ones(8, jnp.float32), jnp.zeros((5, 3), jnp.float32), jnp.asarray(5)).shape
    (5, 8)
    """

    first: AbstractDynamics
    upper: tuple[LinearDynamics, ...]
    begin: Float[Array, "layer features"]
    mixers: tuple[Mixer, ...]

    def __init__(
        self,
        first: AbstractDynamics,
        layers: int,
        block: int,
        *,
        around: ResidualBlock = ResidualBlock(),
        flow: AbstractFlow = Exponential(),
        scan: FlowScan = Auto(),
        scale: float = SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if layers < 1:
            raise ModelError(f"A stack of {layers} layers was asked for. It has at least one.")
        size = first.features
        # The constant first, then what the layer below puts out.
        basis = Basis.of_width(size + 1, 1)
        for_fields, for_begin, for_mixers = jax.random.split(key, 3)
        self.first = first
        self.upper = tuple(
            LinearDynamics(BlockDiagonal(basis, size, block, scale=scale / (size + 1), dtype=dtype, key=k), flow, scan)
            for k in jax.random.split(for_fields, layers - 1)
        )
        self.begin = jax.random.normal(for_begin, (layers - 1, size), dtype)
        self.mixers = tuple(Mixer(around, size, dtype=dtype, key=k) for k in jax.random.split(for_mixers, layers))

    @property
    def hidden(self) -> int:
        """The size of the hidden state of the first layer."""
        return self.first.hidden

    @property
    def features(self) -> int:
        """The size of what every layer puts out."""
        return self.first.features

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """What the last layer puts out after every interval."""
        states = self.first.unroll(hidden, steps, length)
        out = jax.vmap(lambda state: self.mixers[0](state, None))(states)
        for layer, begin, mixer in zip(self.upper, self.begin, self.mixers[1:], strict=True):
            states = layer.unroll(begin, jax.vmap(_driving)(out), length)
            out = jax.vmap(mixer)(states, out)
        return out

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The states of all layers."""
        upper = [layer.start(begin) for layer, begin in zip(self.upper, self.begin, strict=True)]
        return (self.first.start(hidden), *upper)

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The states of all layers after one more interval."""
        moved = [self.first.advance(carry[0], step)]
        out = self.mixers[0](self.first.state(moved[0]), None)
        for layer, mixer, state in zip(self.upper, self.mixers[1:], carry[1:], strict=True):
            moved.append(layer.advance(state, _driving(out)))
            out = mixer(layer.state(moved[-1]), out)
        return tuple(moved)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """What the last layer puts out."""
        out = self.mixers[0](self.first.state(carry[0]), None)
        for layer, mixer, state in zip(self.upper, self.mixers[1:], carry[1:], strict=True):
            out = mixer(layer.state(state), out)
        return out

    def penalty(self) -> Float[Array, ""]:
        """The sum over all layers."""
        return sum((layer.penalty() for layer in self.upper), self.first.penalty())


def _driving(out: Float[Array, "features"]) -> Float[Array, "letter"]:
    return jnp.concatenate([jnp.ones_like(out[:1]), out])
