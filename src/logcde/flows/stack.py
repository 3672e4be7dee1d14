"""Deep SLiCEs: a stack of linear CDEs, each driven by the output of the one below.

Log-signatures drive the first layer. With y_i the output of a layer after interval i, the layer above moves over that
interval by the flow of A^0 + sum_j y_i^j A^j: a linear CDE of depth one whose control has the increments (1, y_i).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry, Step, Steps, unroll_with
from logcde.flows.fields import INIT_SCALE, BlockDiagonal
from logcde.flows.linear import LinearDynamics
from logcde.flows.scan import AbstractFlow, Exponential
from logcde.scans import AbstractScan, Auto


class ResidualBlock(eqx.Module):
    """Options of a layer in a deep stack: what is applied to the state of its linear CDE, in this order.

    Attributes:
        residual: Add the input of the layer to the state; the first layer has none.
        glu: Add a gated linear unit of the sum.
        norm: Normalise the result over its entries, with a learnt scale and shift.
    """

    residual: bool = eqx.field(default=True, static=True)
    glu: bool = eqx.field(default=True, static=True)
    norm: bool = eqx.field(default=True, static=True)


class LayerOutput(eqx.Module):
    """The output of a layer as a function of its state: a `ResidualBlock` with its parameters."""

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
        """The output, given the output of the layer below, which is None for the first layer."""
        if self.block.residual and below is not None:
            state = state + below
        if self.gate is not None:
            state = state + jax.nn.glu(self.gate(state))
        return state if self.norm is None else self.norm(state)


class Stack(AbstractDynamics):
    """Any dynamics as the first layer and block-diagonal linear CDEs above; their initial states are learnt.

    Args:
        first: The first layer.
        layers: The number of layers, the first included.
        block: The block size of the upper layers.
        residual: What is applied to the state of each layer.
        flow: The flow of the upper layers.
        scan: The scan of the upper layers.
        init_scale: Multiplies the initial vector fields of the upper layers, as in `BlockDiagonal`; they are also
            divided by the number of their letters, features + 1.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> from logcde.flows import Diagonal
    >>> first = LinearDynamics(Diagonal(Basis.of_width(2, 2), 8, key=jax.random.key(0)))
    >>> stack = Stack(first, layers=3, block=4, key=jax.random.key(1))
    >>> stack.unroll(jnp.ones(8, jnp.float32), jnp.zeros((5, 3), jnp.float32), jnp.asarray(5)).shape
    (5, 8)
    """

    sparse: ClassVar[bool] = True
    factored: ClassVar[bool] = True
    first: AbstractDynamics
    upper: tuple[LinearDynamics, ...]
    begin: Float[Array, "layer features"]
    outputs: tuple[LayerOutput, ...]

    def __init__(
        self,
        first: AbstractDynamics,
        layers: int,
        block: int,
        *,
        residual: ResidualBlock = ResidualBlock(),
        flow: AbstractFlow = Exponential(),
        scan: AbstractScan = Auto(),
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if layers < 1:
            raise ModelError(f"A stack of {layers} layers cannot be built.", "Give at least one layer.")
        size = first.features
        # The constant first, then the output of the layer below.
        basis = Basis.of_width(size + 1, 1)
        for_fields, for_begin, for_outputs = jax.random.split(key, 3)
        scale = init_scale / (size + 1)
        self.first = first
        self.upper = tuple(
            LinearDynamics(BlockDiagonal(basis, size, block, init_scale=scale, dtype=dtype, key=k), flow, scan)
            for k in jax.random.split(for_fields, layers - 1)
        )
        self.begin = jax.random.normal(for_begin, (layers - 1, size), dtype)
        self.outputs = tuple(
            LayerOutput(residual, size, dtype=dtype, key=k) for k in jax.random.split(for_outputs, layers)
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
        states = unroll_with(self.first, hidden, logsigs, length, None)
        out = jax.vmap(lambda state: self.outputs[0](state, None))(states)
        for layer, begin, output in zip(self.upper, self.begin, self.outputs[1:], strict=True):
            states = layer.unroll(begin, jax.vmap(_increments)(out), length)
            out = jax.vmap(output)(states, out)
        return out

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The states of all layers."""
        upper = [layer.start(begin) for layer, begin in zip(self.upper, self.begin, strict=True)]
        return (self.first.start(hidden), *upper)

    def advance(self, carry: Carry, logsig: Step) -> Carry:
        """The states of all layers after one more interval."""
        step: Any = logsig
        moved = [self.first.advance(carry[0], step)]
        out = self.outputs[0](self.first.state(moved[0]), None)
        for layer, output, state in zip(self.upper, self.outputs[1:], carry[1:], strict=True):
            moved.append(layer.advance(state, _increments(out)))
            out = output(layer.state(moved[-1]), out)
        return tuple(moved)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The output of the last layer."""
        out = self.outputs[0](self.first.state(carry[0]), None)
        for layer, output, state in zip(self.upper, self.outputs[1:], carry[1:], strict=True):
            out = output(layer.state(state), out)
        return out

    def penalty(self) -> Float[Array, ""]:
        """The sum of the penalties of all layers."""
        return sum((layer.penalty() for layer in self.upper), self.first.penalty())


def _increments(out: Float[Array, "features"]) -> Float[Array, "letter"]:
    return jnp.concatenate([jnp.ones_like(out[:1]), out])
