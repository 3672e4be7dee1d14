"""Linear CDEs over intervals: log-signature to matrix to flow to state (`sec:theory`, the Log-ODE method).

The matrix of an interval is sum_c L^c A^c over the coordinates c of its log-signature, with A^c the iterated brackets
of the vector field; its flow is exact for linear CDEs up to what the truncated log-signature leaves out.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.embedding.factor_steps import FactorSteps
from logcde.embedding.steps import AbstractRaggedSteps, SparseSteps
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry, Step, Steps
from logcde.flows.factors import composed_matrices
from logcde.flows.fields import AbstractLinearField, AbstractOpenField
from logcde.flows.scan import AbstractFlow, Exponential, LinearFlows
from logcde.flows.sparse import selected_matrices
from logcde.scans import AbstractScan, Auto, MatrixFree

MATRICES = 2**20
"""Most entries of the matrices of one series in memory at a time."""


class LinearDynamics(AbstractDynamics):
    """A linear CDE: the matrix of an interval is what its log-signature selects of a linear vector field.

    Args:
        field: One matrix for each coordinate of the log-signature.
        flow: What the matrix of an interval does to the state: `Exponential()` or `Euler()`.
        scan: How the intervals of a series are composed.

    >>> from logcde import Basis
    >>> from logcde.flows import BlockDiagonal
    >>> field = BlockDiagonal(Basis.of_width(3, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> logsigs = jnp.zeros((5, 6), jnp.float32)
    >>> LinearDynamics(field).unroll(jnp.ones(8, jnp.float32), logsigs, jnp.asarray(5))[-1].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    sparse: ClassVar[bool] = True
    factored: ClassVar[bool] = True
    field: AbstractLinearField
    flow: AbstractFlow = Exponential()
    scan: AbstractScan = Auto()

    def __check_init__(self) -> None:
        if isinstance(self.field, AbstractOpenField) and self.scan.parallel:
            raise ModelError(
                f"Products of flows of a {type(self.field).__name__} field lose their structure, so {self.scan} cannot "
                "run them.",
                "Use Sequential(), MatrixFree() or Auto().",
            )

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.field.hidden

    @property
    def features(self) -> int:
        """The size of the hidden state."""
        return self.field.hidden

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Steps, length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state after every interval."""
        if isinstance(logsigs, AbstractRaggedSteps):
            return self._unroll_ragged(hidden, logsigs.masked(length))
        valid = jnp.arange(len(logsigs), dtype=length.dtype) < length
        logsigs = jnp.where(valid[:, None], logsigs, 0)
        if isinstance(self.field, AbstractOpenField) and self.flow.first_order:
            return _applied(self.field, hidden, logsigs)
        generators = self.field.generators()
        logsigs, flows = logsigs[:, : len(generators)], LinearFlows(self.flow)

        def extend(state: Array, logsigs: Array) -> tuple[Array, Array]:
            states = self.scan(flows, jnp.tensordot(logsigs, generators, axes=1), state)
            return states[-1], states

        start, rows = extended(hidden, generators), self.hidden // generators.shape[-1]
        most = max(1, MATRICES // math.prod(generators.shape[1:]))
        if len(logsigs) <= most:
            return extend(start, logsigs)[1][:, :rows].reshape(len(logsigs), -1)
        # In portions that the backward pass computes again: never more than one of them is in memory.
        portions = -(-len(logsigs) // most)
        padded = jnp.pad(logsigs, ((0, portions * most - len(logsigs)), (0, 0))).reshape(portions, most, -1)
        states = jax.lax.scan(jax.checkpoint(extend), start, padded)[1]
        return states[:, :, :rows].reshape(portions * most, -1)[: len(logsigs)]

    def _unroll_ragged(
        self, hidden: Float[Array, "hidden"], steps: AbstractRaggedSteps
    ) -> Float[Array, "interval features"]:
        letters, flows = self.field.letter_generators(), LinearFlows(self.flow)
        start, rows = extended(hidden, letters), self.hidden // letters.shape[-1]

        def extend(state: Array, number: Int[Array, ""] | None) -> tuple[Array, Array]:
            some = steps if number is None else steps.interval(number)
            if isinstance(some, SparseSteps):
                matrices = selected_matrices(letters, some)
            else:
                assert isinstance(some, FactorSteps)
                matrices = composed_matrices(letters, some)
            states = self.scan(flows, matrices, state)
            return states[-1], states

        if steps.intervals * math.prod(letters.shape[1:]) <= MATRICES:
            states = extend(start, None)[1]
        else:  # one interval at a time, which the backward pass computes again
            numbers = jnp.arange(steps.intervals, dtype=jnp.int32)
            states = jax.lax.scan(jax.checkpoint(extend), start, numbers)[1][:, 0]
        return states[:, :rows].reshape(steps.intervals, -1)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, logsig: Step) -> Carry:
        """The state after one more interval."""
        one = logsig if isinstance(logsig, AbstractRaggedSteps) else logsig[None]
        return LinearDynamics(self.field, self.flow, MatrixFree()).unroll(carry, one, jnp.asarray(1, jnp.int32))[0]

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The mean over letters of the Frobenius norm of their matrices."""
        return jnp.mean(jnp.linalg.norm(self.field.letters(), axis=1))


def extended(
    hidden: Float[Array, "hidden"], generators: Float[Array, "read row column block"]
) -> Float[Array, "row block"]:
    """The state as generators act on it: constants 1 fill the rows beyond the hidden state.

    >>> extended(jnp.array([2.0, 3.0]), jnp.zeros((1, 2, 2, 2))).tolist()
    [[2.0, 3.0], [1.0, 1.0]]
    """
    rows, blocks = generators.shape[-2:]
    return jnp.concatenate([hidden, jnp.ones(rows * blocks - len(hidden), hidden.dtype)]).reshape(rows, blocks)


def _applied(
    field: AbstractOpenField, hidden: Float[Array, "hidden"], increments: Float[Array, "interval letter"]
) -> Float[Array, "interval hidden"]:
    """First-order steps of a field whose matrices can be applied but not multiplied: there is one way to run them."""

    def extend(state: Array, increment: Array) -> tuple[Array, Array]:
        state = state + field.apply(increment, state)
        return state, state

    return jax.lax.scan(extend, hidden, increments)[1]
