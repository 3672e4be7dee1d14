"""Neural vector fields, and the drift of the Log-ODE method against nested brackets of the Lyndon basis."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde import Basis
from logcde.flows import NeuralField, ReLU, SiLU, Tanh
from logcde.flows.log_ode import drift, words_of


def bracket(u, v):
    return lambda state: jax.jacfwd(v)(state) @ u(state) - jax.jacfwd(u)(state) @ v(state)


def naive_drift(field, basis, state, logsig):
    fields = [lambda state, i=i: field(state)[i] for i in range(basis.width)]
    for left, right in basis.brackets[basis.width :]:
        fields.append(bracket(fields[left], fields[right]))
    return sum(amount * one(state) for amount, one in zip(logsig, fields, strict=True))


@pytest.mark.parametrize(("width", "depth"), [(3, 1), (3, 2), (3, 3), (2, 4)])
def test_drift_matches_nested_jacobians(width, depth):
    basis = Basis.of_width(width, depth)
    field = NeuralField(width, 3, 5, (SiLU(), Tanh()), dtype=jnp.float64, key=jax.random.key(depth))
    rng = np.random.default_rng(depth)
    state, logsig = jnp.asarray(rng.normal(size=3)), jnp.asarray(rng.normal(size=basis.dimension))
    expected = jax.jit(lambda s: naive_drift(field, basis, s, logsig))(state)
    found = jax.jit(lambda s: drift(field, s, words_of(logsig, basis)))(state)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("activation", "hidden"), [(SiLU(), 4), (ReLU(), 4), (SiLU(), 2)])
def test_linearise_sums_directional_derivatives(activation, hidden):
    """With fewer and with more letters than there are entries of the state."""
    field = NeuralField(3, hidden, 6, (activation, activation, Tanh()), dtype=jnp.float64, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    state, directions = jnp.asarray(rng.normal(size=hidden)), jnp.asarray(rng.normal(size=(3, hidden)))
    values, push = field.linearise(state)
    expected = sum(jax.jvp(lambda s, j=j: field(s)[j], (state,), (directions[j],))[1] for j in range(3))
    np.testing.assert_allclose(values, field(state), rtol=1e-14)
    np.testing.assert_allclose(push(directions), expected, rtol=1e-12)


def test_neural_field_penalty_is_mean_row_norm_plus_bias_norm():
    field = NeuralField(2, 3, 4, (SiLU(), Tanh()), dtype=jnp.float64, key=jax.random.key(0))
    expected = sum(
        np.mean(np.linalg.norm(weight, axis=1)) + np.linalg.norm(bias)
        for weight, bias in zip(field.weights, field.biases, strict=True)
    )
    np.testing.assert_allclose(field.penalty(), expected, rtol=1e-12)
    nothing = jax.tree.map(jnp.zeros_like, field)
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(jax.grad(lambda f: f.penalty())(nothing)))


def test_init_scale_multiplies_every_weight_and_bias():
    key = jax.random.key(0)
    large = NeuralField(2, 3, 4, (SiLU(), Tanh()), key=key)
    small = NeuralField(2, 3, 4, (SiLU(), Tanh()), init_scale=1e-3, key=key)
    for a, b in zip(jax.tree.leaves(large), jax.tree.leaves(small), strict=True):
        np.testing.assert_allclose(a, 1000 * b, rtol=1e-6)
