"""Contracting linear CDEs whose flows are the same in every interval: h_i = exp(A) h_(i-1) + phi(A) U x_i.

With rotation by time only, depth one and equal time steps, the linear part of the flow depends on parameters only. So
exp(A) and phi(A) = (exp(A) - 1) / A are computed once, and an interval costs one product with a small block instead of
an exponential. The states are those of `LinearDynamics` with the same field.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.embedding.coordinates import time_of
from logcde.errors import ModelError
from logcde.flows.blocks import expm, matmul, matvec
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.encoder import held
from logcde.flows.stable import Contracting
from logcde.scans import AbstractComposition, AbstractScan, Auto


class StationaryFlows(AbstractComposition):
    """The composition of affine maps with one linear part: a step is what is added, an element is a matrix and that."""

    matrix: Float[Array, "row column block"]
    recompute: ClassVar[bool] = False

    def prepare(self, steps: Float[Array, "interval row block"]) -> Array:
        """Steps are ready."""
        return steps

    def append(self, state: Float[Array, "row block"], step: Float[Array, "row block"]) -> Array:
        """Multiply and add."""
        return matvec(self.matrix, state) + step

    def lift(self, steps: Float[Array, "interval row block"], state: Float[Array, "row block"]) -> tuple[Array, Array]:
        """The same matrix for all steps."""
        return jnp.broadcast_to(self.matrix, (len(steps), *self.matrix.shape)), steps

    def combine(self, earlier: tuple[Array, Array], later: tuple[Array, Array]) -> tuple[Array, Array]:
        """The later map after the earlier one."""
        return matmul(later[0], earlier[0]), matvec(later[0], earlier[1]) + later[1]

    def act(self, elements: tuple[Array, Array], state: Float[Array, "row block"]) -> Array:
        """Apply every product."""
        return matvec(elements[0], state) + elements[1]

    def read(self, state: Float[Array, "row block"], step: Float[Array, "row block"]) -> Array:
        """The state itself."""
        return state


class StationaryDynamics(AbstractDynamics):
    """A contracting linear CDE with rotation by time only, over intervals of one unit of time each.

    Args:
        field: A `Contracting` field of depth one with `time_only=True`.
        scan: How the intervals of a series are composed.

    Rows are those of `LinearDynamics`, with the time letter equal to 1.

    >>> from logcde.flows import layer_basis
    >>> field = Contracting(layer_basis(2), hidden=4, block=2, time_only=True, key=jax.random.key(0))
    >>> rows = jnp.ones((5, 3), jnp.float32)
    >>> StationaryDynamics(field).unroll(jnp.zeros(4, jnp.float32), rows, jnp.asarray(5)).shape
    (5, 4)
    """

    field: Contracting
    scan: AbstractScan = Auto()

    def __check_init__(self) -> None:
        if self.field.basis.depth > 1 or not self.field.time_only:
            raise ModelError(
                "The flows of this field differ between intervals.",
                "Give a field of depth 1 with time_only=True, or use LinearDynamics.",
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
        self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state after every interval."""
        matrix, inputs = self._step()
        added = jnp.tensordot(logsigs, inputs, axes=1)
        states = self.scan(StationaryFlows(matrix), added, hidden.reshape(matrix.shape[1:]))
        return held(hidden, states.reshape(len(logsigs), -1), length)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """The state after one more interval."""
        matrix, inputs = self._step()
        state = matvec(matrix, carry.reshape(matrix.shape[1:])) + jnp.tensordot(logsig, inputs, axes=1)
        return state.reshape(-1)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The mean over letters of the norm of their matrices."""
        return jnp.mean(jnp.linalg.norm(self.field.letters(), axis=1))

    def _step(self) -> tuple[Float[Array, "row column block"], Float[Array, "letter row block"]]:
        """exp(A), and phi(A) u for each letter: both are parts of exp([[A, 1], [0, 0]])."""
        generators = self.field.generators()
        time = time_of(self.field.basis.letters)
        matrix, size = generators[time, :-1, :-1], generators.shape[1] - 1
        identity = jnp.broadcast_to(jnp.eye(size, dtype=matrix.dtype)[:, :, None], matrix.shape)
        whole = expm(jnp.pad(jnp.concatenate([matrix, identity], axis=1), ((0, size), (0, 0), (0, 0))))
        return whole[:size, :size], jax.vmap(lambda u: matvec(whole[:size, size:], u))(self.field.inputs)
