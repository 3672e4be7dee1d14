"""The Log-ODE over intervals: solvers, padding, one interval at a time, gradients, precision."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from logcde import Basis
from logcde.errors import ModelError
from logcde.flows import Dense, LinearDynamics, LogODE, NeuralField, SiLU, Tanh
from logcde.flows.solving import integrate
from tests.flows.linear_field import LinearField

HIDDEN = 4


def neural(basis, dtype=jnp.float64, solver=diffrax.Heun(), steps=1):
    field = NeuralField(basis.width, HIDDEN, 6, (SiLU(), SiLU(), Tanh()), dtype=dtype, key=jax.random.key(0))
    return LogODE(field, basis, solver, steps)


def driving(basis, intervals, dtype=jnp.float64, size=0.3):
    return jnp.asarray(np.random.default_rng(0).normal(size=(intervals, basis.dimension)) * size, dtype)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_log_ode_of_a_linear_field_is_the_linear_flow(depth):
    basis = Basis.of_width(3, depth)
    field = Dense(basis, HIDDEN, init_scale=0.5, dtype=jnp.float64, key=jax.random.key(1))
    steps, start, length = driving(basis, 5), jnp.arange(1.0, 5.0), jnp.asarray(5)
    exact = LinearDynamics(field).unroll(start, steps, length)
    solved = LogODE(LinearField(field.matrices), basis, diffrax.Tsit5(), 32).unroll(start, steps, length)
    np.testing.assert_allclose(solved, exact, rtol=1e-9)


@pytest.mark.parametrize("solver", [diffrax.Heun(), diffrax.Tsit5(), diffrax.Dopri8(), diffrax.Euler()])
def test_integrate_matches_diffeqsolve(solver):
    def drift(time, state, row):
        return jnp.sin(time + row) * jnp.cos(state)

    start, rows = jnp.array([0.3, -0.2]), jnp.array([0.1, 0.7])
    state, expected = start, []
    for row in rows:
        solution = diffrax.diffeqsolve(diffrax.ODETerm(drift), solver, 0.0, 1.0, 0.25, state, args=row, max_steps=8)
        state = solution.ys[-1]
        expected.append(state)
    np.testing.assert_allclose(integrate(drift, start, rows, solver, 4), expected, rtol=1e-12)


def test_log_ode_converges_at_the_order_of_the_solver():
    basis = Basis.of_width(2, 2)
    steps, start, length = driving(basis, 3, size=0.8), jnp.ones(HIDDEN), jnp.asarray(3)
    exact = neural(basis, solver=diffrax.Tsit5(), steps=32).unroll(start, steps, length)[-1]
    errors = [float(jnp.linalg.norm(neural(basis, steps=n).unroll(start, steps, length)[-1] - exact)) for n in (4, 16)]
    np.testing.assert_allclose(-np.diff(np.log(errors)) / np.log(4), 2.0, atol=0.3)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_log_ode_ignores_padding_in_values_and_gradients(dtype):
    basis = Basis.of_width(2, 2)
    dynamics, steps, start = neural(basis, dtype), driving(basis, 7, dtype), jnp.ones(HIDDEN, dtype)

    @jax.jit
    def run(dynamics, steps):
        def final(dynamics, steps):
            states = dynamics.unroll(start, steps, jnp.asarray(4))
            return jnp.sum(states[-1] ** 2), states

        return jax.value_and_grad(final, argnums=(0, 1), has_aux=True)(dynamics, steps)

    (_, states), gradients = run(dynamics, steps.at[4:].set(0))
    (_, with_nan), with_nan_gradients = run(dynamics, steps.at[4:].set(jnp.nan))
    assert states.dtype == dtype
    np.testing.assert_array_equal(states[4:], np.broadcast_to(states[3], (3, HIDDEN)))
    np.testing.assert_array_equal(with_nan, states)
    assert np.all(gradients[1][:4] != 0)
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(with_nan_gradients), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(np.isfinite(a))


def test_log_ode_advance_equals_unroll():
    basis = Basis.of_width(2, 2)
    dynamics, steps = neural(basis, steps=2), driving(basis, 5)
    carry, states = dynamics.start(jnp.ones(HIDDEN)), []
    advance = eqx.filter_jit(dynamics.advance)
    for step in steps:
        carry = advance(carry, step)
        states.append(dynamics.state(carry))
    np.testing.assert_allclose(dynamics.unroll(jnp.ones(HIDDEN), steps, jnp.asarray(5)), states, rtol=1e-12)


def test_log_ode_gradients_match_finite_differences():
    basis = Basis.of_width(2, 3)
    dynamics, steps, start = neural(basis), driving(basis, 2), jnp.ones(HIDDEN)
    check_grads(
        jax.jit(lambda s, h: dynamics.unroll(h, s, jnp.asarray(2))), (steps, start), order=1, modes=["rev"], rtol=1e-5
    )


def test_log_ode_under_vmap_equals_single_series():
    basis = Basis.of_width(2, 2)
    dynamics = neural(basis)
    steps = driving(basis, 10).reshape(2, 5, -1)
    lengths = jnp.array([5, 3])
    together = jax.jit(jax.vmap(lambda s, n: dynamics.unroll(jnp.ones(HIDDEN), s, n)))(steps, lengths)
    for series in range(2):
        alone = dynamics.unroll(jnp.ones(HIDDEN), steps[series], lengths[series])
        np.testing.assert_allclose(together[series], alone, rtol=1e-12)


def test_log_ode_refuses_other_letters_steps_and_solvers():
    field = neural(Basis.of_width(2, 2)).field
    with pytest.raises(ModelError, match="2 letters"):
        LogODE(field, Basis.of_width(3, 2))
    with pytest.raises(ModelError, match="0 steps"):
        LogODE(field, Basis.of_width(2, 2), steps=0)
    with pytest.raises(ModelError, match="ImplicitEuler"):
        LogODE(field, Basis.of_width(2, 2), diffrax.ImplicitEuler())
    with pytest.raises(ModelError, match="width 0"):
        NeuralField(2, 4, 0, (SiLU(), Tanh()), key=jax.random.key(0))
