"""Neural CDEs and RDEs of the paper's comparison: dh = f(h) dX along the pieces of a control.

The derivative of the control over a piece is a polynomial, see `Controls`. A row without higher coefficients is a
straight piece: with one field for each coordinate of a log-signature, the same dynamics are those of a neural RDE,
which has no Lie structure.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows import Identity, NeuralField, ReLU, Tanh
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.flows.neural import AbstractVectorField
from logcde.flows.solving import check_solver, integrate, over_interval
from logcde.models.initial import AbstractInitial, FirstValueInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, ReadoutHead, Terminal
from logcde.models.scaling import AbstractScaling, NoScaling


class ControlODE(AbstractDynamics):
    """A non-linear CDE along the pieces of a control.

    Args:
        field: One vector field for each letter of the control.
        solver: An explicit solver of Diffrax.
        steps: Solver steps over each piece.

    >>> import jax
    >>> from logcde.flows import NeuralField, ReLU, Tanh
    >>> field = NeuralField(2, hidden=4, width=8, activations=(ReLU(), Tanh()), key=jax.random.key(0))
    >>> dynamics = ControlODE(field)
    >>> cubic = jnp.zeros((6, 3 * 2), jnp.float32)
    >>> dynamics.unroll(jnp.ones(4, jnp.float32), cubic, jnp.asarray(6)).shape
    (6, 4)
    """

    field: AbstractVectorField
    solver: diffrax.AbstractSolver = diffrax.Heun()
    steps: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_solver(self.solver, self.steps)

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
        """The state after every piece."""
        valid = jnp.arange(len(logsigs), dtype=length.dtype) < length
        rows = self._rows(jnp.where(valid[:, None], logsigs, 0))
        return integrate(self._drift, hidden, rows, self.solver, self.steps)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The carry is the hidden state itself, before the first piece the initial one."""
        return hidden

    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """The state after one more piece."""
        return over_interval(self._drift, carry, self._rows(logsig), self.solver, self.steps)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The carry is the hidden state itself."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The penalty of the field."""
        return self.field.penalty()

    def _rows(self, rows: Float[Array, "*interval lie"]) -> Float[Array, "*interval power letter"]:
        if rows.shape[-1] % self.field.letters:
            raise ModelError(
                f"A piece of the control has {rows.shape[-1]} numbers, which do not fit {self.field.letters} letters.",
                "Build the model with the basis of its controls.",
            )
        return rows.reshape(*rows.shape[:-1], -1, self.field.letters)

    def _drift(
        self, time: Float[Array, ""], hidden: Float[Array, "hidden"], row: Float[Array, "power letter"]
    ) -> Float[Array, "hidden"]:
        slope = row[-1]
        for power in range(len(row) - 2, -1, -1):
            slope = slope * time + row[power]
        return slope @ self.field(hidden)


def nrde(
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    width: int = 64,
    layers: int = 3,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    scaling: AbstractScaling = NoScaling(),
    solver: diffrax.AbstractSolver = diffrax.Heun(),
    steps: int = 1,
    static: int = 0,
    init_scale: float = 1.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A neural RDE: one vector field for each coordinate of the log-signature, with no relation between them.

    Args:
        basis: The basis of the log-signatures.
        hidden: The size of the hidden state.
        outputs: The number of outputs; for classifiers, of classes.
        width: The width of the hidden layers of the vector field.
        layers: The number of hidden layers of the vector field.
        initial: What the initial state depends on.
        readout: Which states are read, and by which layers.
        scaling: What log-signatures are scaled by; `fit` fits it.
        solver: An explicit solver of Diffrax.
        steps: Solver steps over each interval.
        static: The number of static features.
        init_scale: Multiplies all initial weights of the vector field, which are those of `eqx.nn.Linear`.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> model = nrde(Basis.of_width(3, 2), hidden=16, outputs=2, width=32, key=jax.random.key(0))
    >>> model.dynamics.field.letters
    6
    """
    keys = jax.random.split(key, 3)
    activations = (*[ReLU()] * (layers - 1), Tanh(), Identity())
    field = NeuralField(basis.dimension, hidden, width, activations, init_scale=init_scale, dtype=dtype, key=keys[0])
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=ControlODE(field, solver, steps),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )


def ncde(
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    width: int = 64,
    layers: int = 3,
    initial: AbstractInitial = FirstValueInitial(activation=Identity()),
    readout: AbstractReadout = Terminal(),
    solver: diffrax.AbstractSolver = diffrax.Heun(),
    steps: int = 1,
    static: int = 0,
    init_scale: float = 1.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A neural CDE along a path through the observations.

    Linear and Hermite controls have no base point, so the initial state carries it: by default it is affine in each
    channel's first value. With `RectilinearControl` and `LearntInitial()` the model is causal.

    Args:
        basis: The basis of the controls.
        hidden: The size of the hidden state.
        outputs: The number of outputs; for classifiers, of classes.
        width: The width of the hidden layers of the vector field.
        layers: The number of hidden layers of the vector field.
        initial: What the initial state depends on.
        readout: Which states are read, and by which layers.
        solver: An explicit solver of Diffrax.
        steps: Solver steps over each piece.
        static: The number of static features.
        init_scale: Multiplies all initial weights of the vector field, which are those of `eqx.nn.Linear`.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> from logcde import Inputs, Partition, Streams
    >>> from logcde.baselines import HermiteControl
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> controls = HermiteControl()(streams, Partition.uniform(2))
    >>> model = ncde(controls.basis, hidden=16, outputs=2, key=jax.random.key(0))
    >>> model(Inputs.of(controls)[0]).shape
    (2,)
    """
    keys = jax.random.split(key, 3)
    activations = (*[ReLU()] * layers, Tanh())
    field = NeuralField(basis.width, hidden, width, activations, init_scale=init_scale, dtype=dtype, key=keys[0])
    return SequenceModel(
        basis=None,
        scaling=NoScaling(),
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=ControlODE(field, solver, steps),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )
