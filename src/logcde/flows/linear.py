"""Linear CDEs over intervals: log-signature to matrix to flow to state (`sec:theory`, the Log-ODE method).

The matrix of an interval is sum_c L^c A^c over the coordinates c of its log-signature, with A^c the iterated brackets
of the vector field; its flow is exact for linear CDEs up to what the truncated log-signature leaves out.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.fields import AbstractLinearField, AbstractOpenField
from logcde.flows.scan import AbstractFlow, Euler, Exponential, FlowScan, states_of
from logcde.scans import Associative, Auto, Chunked, MatrixFree

MATRICES = 2**20
"""Entries of the matrices of one series that may be in memory at a time."""


class LinearDynamics(AbstractDynamics):
    """A linear vector field, how its flow is computed, and how flows are composed over a series.

    >>> from logcde import Basis
    >>> from logcde.flows import BlockDiagonal
    >>> field = BlockDiagonal(Basis.of_width(3, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> steps = jnp.zeros((5, 6), jnp.float32)
    >>> LinearDynamics(field).unroll(jnp.ones(8, jnp.float32), steps, jnp.asarray(5))[-1].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    field: AbstractLinearField
    flow: AbstractFlow = Exponential()
    scan: FlowScan = Auto()

    def __check_init__(self) -> None:
        if isinstance(self.field, AbstractOpenField) and isinstance(self.scan, Associative | Chunked):
            raise ModelError(
                f"Flows of a {type(self.field).__name__} field do not compose within their structure, so there is no "
                f"parallel scan of them. Use Sequential(), MatrixFree() or Auto() instead of {self.scan}."
            )

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.field.hidden

    @property
    def features(self) -> int:
        """That of the hidden state."""
        return self.field.hidden

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state after every interval."""
        valid = jnp.arange(len(steps), dtype=length.dtype) < length
        steps = jnp.where(valid[:, None], steps, 0)
        if isinstance(self.field, AbstractOpenField) and isinstance(self.flow, Euler):
            return _applied(self.field, hidden, steps)
        generators = self.field.generators()
        steps = steps[:, : len(generators)]

        def extend(state: Array, steps: Array) -> tuple[Array, Array]:
            states = states_of(jnp.tensordot(steps, generators, axes=1), state, self.flow, self.scan)
            return states[-1], states

        start = hidden.reshape(generators.shape[-2:])
        most = max(1, MATRICES // math.prod(generators.shape[1:]))
        if len(steps) <= most:
            return extend(start, steps)[1].reshape(len(steps), -1)
        # In portions, and again in the backward pass, so that never more than one of them is in memory.
        portions = -(-len(steps) // most)
        padded = jnp.pad(steps, ((0, portions * most - len(steps)), (0, 0))).reshape(portions, most, -1)
        states = jax.lax.scan(jax.checkpoint(extend), start, padded)[1]
        return states.reshape(portions * most, -1)[: len(steps)]

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The state after one more interval."""
        return LinearDynamics(self.field, self.flow, MatrixFree()).unroll(carry, step[None], jnp.asarray(1))[0]

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The mean over letters of the Frobenius norm of their matrices."""
        return jnp.mean(jnp.linalg.norm(self.field.letters(), axis=1))


def _applied(
    field: AbstractOpenField, hidden: Float[Array, "hidden"], steps: Float[Array, "interval letter"]
) -> Float[Array, "interval hidden"]:
    def extend(state: Array, step: Array) -> tuple[Array, Array]:
        state = state + field.apply(step, state)
        return state, state

    return jax.lax.scan(extend, hidden, steps)[1]
