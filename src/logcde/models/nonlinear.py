"""Non-linear models: the Log-NCDE."""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import LogODE, NeuralField, SiLU, Tanh
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, ReadoutHead, Terminal
from logcde.models.scaling import AbstractScaling, NoScaling


def log_ncde(
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
    init_scale: float = 1e-3,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A neural CDE solved by the Log-ODE method, driven by log-signatures of any depth: Log-NCDE.

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

    >>> model = log_ncde(Basis.of_width(3, 2), hidden=16, outputs=2, width=32, layers=2, key=jax.random.key(0))
    >>> model.dynamics.hidden
    16
    """
    keys = jax.random.split(key, 3)
    activations = (*[SiLU()] * layers, Tanh())
    field = NeuralField(basis.width, hidden, width, activations, init_scale=init_scale, dtype=dtype, key=keys[0])
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=LogODE(field, basis, solver, steps),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )
