"""Models as the published code computes them, as baselines for the time of a training step."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.baselines import ControlODE
from logcde.flows import LinearDynamics, LogODE
from logcde.models import Inputs, SequenceModel


def first_order_by_tree(model: SequenceModel, inputs: Inputs) -> Float[Array, "output"]:
    """Block-diagonal linear CDE: 1 + A for every interval, all products by `jax.lax.associative_scan`."""
    assert isinstance(model.dynamics, LinearDynamics)
    generators = jnp.moveaxis(model.dynamics.field.generators(), -1, 1)
    flows = jnp.tensordot(inputs.rows, generators, axes=1) + jnp.eye(generators.shape[-1], dtype=generators.dtype)
    products = jax.lax.associative_scan(lambda earlier, later: later @ earlier, flows)
    hidden = model.initial(inputs.initial, inputs.static)
    size, blocks = generators.shape[-1], generators.shape[1]
    states = jnp.einsum("tkij,jk->tik", products, hidden.reshape(size, blocks)).reshape(len(inputs.rows), -1)
    return model.readout.offline(hidden, states, inputs.length)


def log_ncde_by_one_solve(model: SequenceModel, inputs: Inputs) -> Float[Array, "output"]:
    """Log-NCDE of depth two: one `diffeqsolve` over the horizon, with a lookup of the interval at every step.

    Brackets take one Jacobian-vector product of the whole vector field for each letter.
    """
    assert isinstance(model.dynamics, LogODE)
    field, intervals, width = model.dynamics.field, len(inputs.rows), model.dynamics.basis.width
    ends = jnp.linspace(0.0, 1.0, intervals + 1)
    left, right = np.triu_indices(width, 1)

    def drift(time, state, _):
        interval = jnp.clip(jnp.searchsorted(ends, time) - 1, 0, intervals - 1)
        step = inputs.rows[interval] * intervals
        values = field(state)
        turns = jax.vmap(lambda direction: jax.jvp(field, (state,), (direction,))[1])(values)
        return step[:width] @ values + step[width:] @ (turns[left, right] - turns[right, left])

    hidden = model.initial(inputs.initial, inputs.static)
    return model.readout.head(_solved(drift, hidden, intervals))


def ncde_by_one_solve(model: SequenceModel, inputs: Inputs) -> Float[Array, "output"]:
    """NCDE along its cubic pieces: one `diffeqsolve` over the horizon, with a lookup of the piece at every step."""
    assert isinstance(model.dynamics, ControlODE)
    field, pieces = model.dynamics.field, len(inputs.rows)
    rows = inputs.rows.reshape(pieces, -1, field.letters)
    ends = jnp.linspace(0.0, 1.0, pieces + 1)

    def drift(time, state, _):
        piece = jnp.clip(jnp.searchsorted(ends, time) - 1, 0, pieces - 1)
        within = (time - ends[piece]) * pieces
        powers = within ** jnp.arange(rows.shape[1])
        return (powers @ rows[piece] * pieces) @ field(state)

    hidden = model.initial(inputs.initial, inputs.static)
    return model.readout.head(_solved(drift, hidden, pieces))


def _solved(drift, hidden, steps):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(drift), diffrax.Heun(), 0.0, 1.0, 1 / steps, hidden, max_steps=steps + 8
    )
    assert solution.ys is not None
    return solution.ys[-1]
