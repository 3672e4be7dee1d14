"""Non-linear NCDEs: Log-NCDE, NCDE and NRDE, each with the vector field of its paper."""

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


def log_ncde(  # noqa: N802
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
    scale: float = 1000.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A neural CDE solved by the Log-ODE method, driven by log-signatures in `basis`, of any depth.

    The vector field has `layers` hidden layers of `width`; all its weights are divided by `scale` at the start. Every
    interval takes `steps` steps of `solver`.

    >>> model = log_ncde(Basis.of_width(3, 2), hidden=16, outputs=2, width=32, layers=2, key=jax.random.key(0))
    >>> model.dynamics.hidden
    16
    """
    keys = jax.random.split(key, 3)
    activations = (*[SiLU()] * layers, Tanh())
    field = NeuralField(basis.width, hidden, width, activations, scale=scale, dtype=dtype, key=keys[0])
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=LogODE(field, basis, solver, steps),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )
