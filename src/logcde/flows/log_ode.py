"""The Log-ODE method with a neural vector field: the dynamics of the Log-NCDE (`sec:theory` of the paper).

Over an interval with log-signature L the state follows dh/ds = sum_c L^c f^c(h) for s from 0 to 1, with f^c the
iterated Lie bracket that coordinate c stands for. The sum is computed without forming a bracket, at any depth:

A field f acts on functions of the state by (f g)(h) = D g(h) f(h), and the bracket of the protocol,
[f_a, f_b] = J_{f_b} f_a - J_{f_a} f_b, is the commutator of these operators applied to the identity. So with l^w the
coefficients of the log-signature as a tensor over words w = i_1 ... i_k, the sum over all brackets of a Lyndon basis is

    sum_w l^w f_{i_1} ... f_{i_k} Id,

where the common first letter of many words is one directional derivative. The last two letters need no derivative by
JAX at all: sum_ij l^ij f_i f_j Id = sum_j D f_j (sum_i l^ij f_i).
"""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from logcde.algebra import Basis
from logcde.algebra.levels import Levels
from logcde.algebra.lie import expand_levels
from logcde.embedding.steps import AbstractRaggedSteps, SparseSteps
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry, Step, Steps
from logcde.flows.neural import AbstractVectorField
from logcde.flows.solving import check_solver, integrate, over_interval


def words_of(logsigs: Float[Array, "*interval lie"], basis: Basis) -> Levels:
    """Log-signatures as tensors: one array for each level k, with k axes of letters.

    >>> words_of(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2))[1].tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    levels = expand_levels(logsigs, basis)
    return tuple(
        array.reshape(*array.shape[:-1], *[basis.width] * level) for level, array in enumerate(levels, start=1)
    )


def drift(field: AbstractVectorField, hidden: Float[Array, "hidden"], words: Levels) -> Float[Array, "hidden"]:
    """The derivative of the state: the sum over all words of coefficient times iterated derivative."""
    if len(words) == 1:
        return words[0] @ field(hidden)
    values, push = field.linearise(hidden)
    if len(words) == 2:
        return words[0] @ values + push(words[1].T @ values)

    def along(direction: Float[Array, "hidden"], rest: Levels) -> Float[Array, "hidden"]:
        return jax.jvp(lambda state: drift(field, state, rest), (hidden,), (direction,))[1]

    return words[0] @ values + jnp.sum(jax.vmap(along)(values, words[1:]), axis=0)


class LogODE(AbstractDynamics):
    """A non-linear CDE solved by the Log-ODE method along log-signatures in `basis`.

    Args:
        field: One vector field for each letter of the basis.
        basis: The basis of the log-signatures, of any depth.
        solver: An explicit solver of Diffrax. Runge-Kutta methods, such as `Heun()` or `Tsit5()`, are fast.
        steps: Solver steps over each interval.

    >>> import jax
    >>> from logcde.flows import NeuralField, SiLU, Tanh
    >>> field = NeuralField(2, hidden=4, width=8, activations=(SiLU(), Tanh()), key=jax.random.key(0))
    >>> dynamics = LogODE(field, Basis.of_width(2, 3))
    >>> dynamics.unroll(jnp.ones(4, jnp.float32), jnp.zeros((6, 5), jnp.float32), jnp.asarray(6)).shape
    (6, 4)
    """

    sparse: ClassVar[bool] = True
    field: AbstractVectorField
    basis: Basis = eqx.field(static=True)
    solver: diffrax.AbstractSolver = diffrax.Heun()
    steps: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_solver(self.solver, self.steps)
        if self.field.letters != self.basis.width:
            raise ModelError(
                f"The vector field has {self.field.letters} letters, but {self.basis!r} has {self.basis.width}.",
                "Make the field for this basis.",
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
        if isinstance(logsigs, SparseSteps):
            letters, words = _own_words(logsigs.masked(length))
            return integrate(self._sparse_drift, hidden, (letters, words), self.solver, self.steps)
        assert not isinstance(logsigs, AbstractRaggedSteps)
        valid = jnp.arange(len(logsigs), dtype=length.dtype) < length
        words = words_of(jnp.where(valid[:, None], logsigs, 0), self.basis)
        return integrate(self._drift, hidden, words, self.solver, self.steps)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, logsig: Step) -> Carry:
        """The state after one more interval."""
        if isinstance(logsig, SparseSteps):
            row = jax.tree.map(lambda leaf: leaf[0], _own_words(logsig))
            return over_interval(self._sparse_drift, carry, row, self.solver, self.steps)
        assert not isinstance(logsig, AbstractRaggedSteps)
        return over_interval(self._drift, carry, words_of(logsig, self.basis), self.solver, self.steps)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The penalty of the field."""
        return self.field.penalty()

    def _drift(self, time: Float[Array, ""], hidden: Float[Array, "hidden"], words: Levels) -> Float[Array, "hidden"]:
        return drift(self.field, hidden, words)

    def _sparse_drift(
        self, time: Float[Array, ""], hidden: Float[Array, "hidden"], row: tuple[Int[Array, "letter"], Levels]
    ) -> Float[Array, "hidden"]:
        """Only the fields of letters that move."""
        return drift(self.field.of_letters(row[0]), hidden, row[1])


def _own_words(steps: SparseSteps) -> tuple[Int[Array, "interval letter"], Levels]:
    """The letters that move in each interval, padded, and the log-signatures as tensors over them."""
    letters, coordinates = steps.padded()
    return letters, words_of(coordinates, Basis.of_width(steps.most, steps.basis.depth))
