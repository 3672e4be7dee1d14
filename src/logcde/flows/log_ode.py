"""The Log-ODE method with a neural vector field: Log-NCDE (`sec:theory` of the paper).

Over an interval with log-signature L the state follows dh/ds = sum_c L^c f^c(h) for s from 0 to 1, with f^c the
iterated Lie bracket that coordinate c stands for.
"""

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.algebra import Basis
from logcde.algebra.levels import Levels
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.lie_brackets import drift, words_of
from logcde.flows.neural import AbstractVectorField
from logcde.flows.solving import check_solver, integrate, over_interval


class LogODE(AbstractDynamics):
    """A vector field for each letter of `basis`, moved along log-signatures of its depth.

    Every interval is solved with `steps` steps of `solver`, any explicit one of Diffrax; Runge-Kutta methods, such as
    `Heun()` or `Tsit5()`, are the fast ones.

    >>> import jax
    >>> from logcde.flows import NeuralField, SiLU, Tanh
    >>> field = NeuralField(2, hidden=4, width=8, activations=(SiLU(), Tanh()), key=jax.random.key(0))
    >>> dynamics = LogODE(field, Basis.of_width(2, 3))
    >>> dynamics.unroll(jnp.ones(4, jnp.float32), jnp.zeros((6, 5), jnp.float32), jnp.asarray(6)).shape
    (6, 4)
    """

    field: AbstractVectorField
    basis: Basis = eqx.field(static=True)
    solver: diffrax.AbstractSolver = diffrax.Heun()
    steps: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_solver(self.solver, self.steps)
        if self.field.letters != self.basis.width:
            raise ModelError(
                f"The vector field has {self.field.letters} letters, but {self.basis!r} has {self.basis.width}. "
                "Make the field for this basis."
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
        words = words_of(jnp.where(valid[:, None], steps, 0), self.basis)
        return integrate(self._drift, hidden, words, self.solver, self.steps)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The state after one more interval."""
        return over_interval(self._drift, carry, words_of(step, self.basis), self.solver, self.steps)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """That of the field."""
        return self.field.penalty()

    def _drift(self, time: Float[Array, ""], hidden: Float[Array, "hidden"], words: Levels) -> Float[Array, "hidden"]:
        return drift(self.field, hidden, words)
