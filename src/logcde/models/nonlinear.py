"""Non-linear NCDEs: Log-NCDE, NCDE and NRDE, each with the vector field of its paper."""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.flows import ControlODE, Identity, LogODE, NeuralField, ReLU, SiLU, Tanh
from logcde.models.initial import AbstractLook, Initial, Learnt, RawFirstValues, channels_of
from logcde.models.model import CDE
from logcde.models.readout import AbstractReading, Readout, Terminal
from logcde.models.scaling import AbstractScaling, Unscaled


def LogNCDE(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    width: int = 64,
    layers: int = 3,
    initial: AbstractLook = Learnt(),
    readout: AbstractReading = Terminal(),
    scaling: AbstractScaling = Unscaled(),
    solver: diffrax.AbstractSolver = diffrax.Heun(),
    steps: int = 1,
    static: int = 0,
    scale: float = 1000.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """A neural CDE solved by the Log-ODE method, driven by log-signatures in `basis`, of any depth.

    The vector field has `layers` hidden layers of `width`; all its weights are divided by `scale` at the start. Every
    interval takes `steps` steps of `solver`.

    >>> model = LogNCDE(Basis.of_width(3, 2), hidden=16, outputs=2, width=32, layers=2, key=jax.random.key(0))
    >>> model.dynamics.hidden
    16
    """
    keys = jax.random.split(key, 3)
    activations = (*[SiLU()] * layers, Tanh())
    field = NeuralField(basis.width, hidden, width, activations, scale=scale, dtype=dtype, key=keys[0])
    return CDE(
        basis=basis,
        scaling=scaling,
        initial=Initial(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=LogODE(field, basis, solver, steps),
        readout=Readout(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )


def NRDE(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    width: int = 64,
    layers: int = 3,
    initial: AbstractLook = Learnt(),
    readout: AbstractReading = Terminal(),
    scaling: AbstractScaling = Unscaled(),
    solver: diffrax.AbstractSolver = diffrax.Heun(),
    steps: int = 1,
    static: int = 0,
    scale: float = 1.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """A neural RDE, the ancestor of `LogNCDE`: a field of its own for each coordinate, brackets as well.

    >>> model = NRDE(Basis.of_width(3, 2), hidden=16, outputs=2, width=32, key=jax.random.key(0))
    >>> model.dynamics.field.letters
    6
    """
    keys = jax.random.split(key, 3)
    activations = (*[ReLU()] * (layers - 1), Tanh(), Identity())
    field = NeuralField(basis.dimension, hidden, width, activations, scale=scale, dtype=dtype, key=keys[0])
    return CDE(
        basis=basis,
        scaling=scaling,
        initial=Initial(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=ControlODE(field, solver, steps),
        readout=Readout(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )


def NCDE(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    width: int = 64,
    layers: int = 3,
    initial: AbstractLook = RawFirstValues(),
    readout: AbstractReading = Terminal(),
    solver: diffrax.AbstractSolver = diffrax.Heun(),
    steps: int = 1,
    static: int = 0,
    scale: float = 1.0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """A neural CDE along a path through the observations; `basis` is that of its controls.

    Linear and Hermite controls do not tell where the path begins, so the initial state should: by default it is affine
    in each channel's first value. With `RectilinearControl` and `Learnt()` the model is causal.

    >>> from logcde import HermiteControl, Inputs, Partition, Streams
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> controls = HermiteControl()(streams, Partition.uniform(2))
    >>> model = NCDE(controls.basis, hidden=16, outputs=2, key=jax.random.key(0))
    >>> model(Inputs.of(controls)[0]).shape
    (2,)
    """
    keys = jax.random.split(key, 3)
    activations = (*[ReLU()] * layers, Tanh())
    field = NeuralField(basis.width, hidden, width, activations, scale=scale, dtype=dtype, key=keys[0])
    return CDE(
        basis=None,
        scaling=Unscaled(),
        initial=Initial(initial, channels_of(basis), static, hidden, dtype=dtype, key=keys[1]),
        dynamics=ControlODE(field, solver, steps),
        readout=Readout(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )
