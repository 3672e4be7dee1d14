"""NCDEs along controls, against one Diffrax solve over the whole path."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde import Partition, Streams
from logcde.baselines import ControlODE, HermiteControl, LinearControl, RectilinearControl
from logcde.errors import ModelError
from logcde.flows import NeuralField, ReLU, SiLU, Tanh

HIDDEN = 4


def field(letters, activation=ReLU(), dtype=jnp.float64):
    return NeuralField(letters, HIDDEN, 6, (activation, Tanh()), dtype=dtype, key=jax.random.key(0))


def walk(events=7):
    rng = np.random.default_rng(0)
    return np.arange(events) / 2, np.cumsum(rng.normal(size=(events, 2)), axis=0)


def test_control_ode_matches_one_diffeqsolve():
    times, values = walk()
    controls = HermiteControl()(Streams.from_arrays([times], [values]), Partition.uniform(1))
    vector_field, start = field(3), jnp.ones(HIDDEN)
    states = ControlODE(vector_field).unroll(start, jnp.asarray(controls.values[0]), jnp.asarray(6))
    stamps, path = jnp.asarray(times), jnp.asarray(np.column_stack([values, times]))
    spline = diffrax.CubicInterpolation(stamps, diffrax.backward_hermite_coefficients(stamps, path))
    term = diffrax.ControlTerm(lambda t, y, args: vector_field(y).T, spline).to_ode()
    solution = diffrax.diffeqsolve(
        term, diffrax.Heun(), 0.0, 3.0, None, start, max_steps=8,
        saveat=diffrax.SaveAt(ts=stamps[1:]), stepsize_controller=diffrax.StepTo(stamps),
    )  # fmt: skip
    np.testing.assert_allclose(states, solution.ys, rtol=1e-10)


@pytest.mark.parametrize("control", [HermiteControl(), LinearControl(), RectilinearControl()])
def test_control_ode_converges_at_the_order_of_the_solver(control):
    times, values = walk()
    rows = jnp.asarray(control(Streams.from_arrays([times], [values]), Partition.uniform(1)).values[0])
    smooth, length = field(3, SiLU()), jnp.asarray(len(rows))

    def final(solver, steps):
        return ControlODE(smooth, solver, steps).unroll(jnp.ones(HIDDEN), rows, length)[-1]

    exact = final(diffrax.Tsit5(), 64)
    errors = [float(jnp.linalg.norm(final(diffrax.Heun(), steps) - exact)) for steps in (8, 32)]
    np.testing.assert_allclose(-np.diff(np.log(errors)) / np.log(4), 2.0, atol=0.3)


def test_control_ode_ignores_padding_and_advance_equals_unroll():
    times, values = walk()
    rows = jnp.asarray(HermiteControl()(Streams.from_arrays([times], [values]), Partition.uniform(1)).values[0])
    dynamics, start = ControlODE(field(3)), jnp.ones(HIDDEN)
    states = dynamics.unroll(start, rows.at[4:].set(jnp.nan), jnp.asarray(4))
    np.testing.assert_array_equal(states[4:], np.broadcast_to(states[3], (2, HIDDEN)))
    carry, advance = dynamics.start(start), eqx.filter_jit(dynamics.advance)
    for row in rows[:4]:
        carry = advance(carry, row)
    np.testing.assert_allclose(dynamics.state(carry), states[-1], rtol=1e-12)


def test_control_ode_refuses_rows_of_other_letters():
    with pytest.raises(ModelError, match="8 numbers"):
        ControlODE(field(3)).unroll(jnp.ones(HIDDEN), jnp.zeros((2, 8)), jnp.asarray(2))
