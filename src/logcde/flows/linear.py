"""Linear CDEs over intervals: log-signature to matrix to flow to state (`sec:theory`, the Log-ODE method).

The matrix of an interval is sum_c L^c A^c over the coordinates c of its log-signature, with A^c the iterated brackets
of the vector field; its flow is exact for linear CDEs up to what the truncated log-signature leaves out.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.fields import AbstractBlockField
from logcde.flows.scan import AbstractFlow, Acting, Exponential, Fastest, FlowScan, states_of


class LinearDynamics(AbstractDynamics):
    """A linear vector field, how its flow is computed, and how flows are composed over a series.

    >>> import jax
    >>> from logcde import Basis
    >>> from logcde.flows import BlockDiagonal
    >>> field = BlockDiagonal(Basis.of_width(3, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> steps = jnp.zeros((5, 6), jnp.float32)
    >>> LinearDynamics(field).unroll(jnp.ones(8, jnp.float32), steps, jnp.asarray(5))[-1].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    field: AbstractBlockField
    flow: AbstractFlow = Exponential()
    scan: FlowScan = Fastest()

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
        generators = self.field.generators()
        valid = jnp.arange(len(steps), dtype=length.dtype) < length
        read = jnp.where(valid[:, None], steps[:, : len(generators)], 0)
        matrices = jnp.tensordot(read, generators, axes=1)
        states = states_of(matrices, hidden.reshape(generators.shape[-2:]), self.flow, self.scan)
        return states.reshape(len(steps), -1)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The state after one more interval."""
        return LinearDynamics(self.field, self.flow, Acting()).unroll(carry, step[None], jnp.asarray(1))[0]

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The mean over letters of the Frobenius norm of their matrices."""
        return jnp.mean(jnp.linalg.norm(self.field.letters(), axis=1))
