"""Stacks of stable flows: one interval at a time, dropout, sizes at initialisation, and the stationary recurrence."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde.errors import ModelError
from logcde.flows import (
    Contracting,
    LinearDynamics,
    Orthogonal,
    RowEncoder,
    StableStack,
    StationaryDynamics,
    layer_basis,
)
from logcde.flows.encoder import soft_limit
from logcde.scans import Associative, Chunked, MatrixFree, Sequential

KEY = jax.random.key(0)


def _field(features=3, hidden=6, dtype=np.float64):
    return Contracting(layer_basis(features), hidden, 2, time_only=True, init_scale=1.0, dtype=dtype, key=KEY)


def _rows(count=6, size=4, dtype=np.float64, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, size)), dtype)


@functools.cache
def _stack(kind="stationary", dropout=0.0):
    keys = jax.random.split(KEY, 4)
    basis = layer_basis(6)
    if kind == "stationary":
        fields = [Contracting(basis, 8, 2, time_only=True, dtype=np.float64, key=k) for k in keys[:2]]
        mixers = [StationaryDynamics(field, Sequential()) for field in fields]
    elif kind == "contracting":
        mixers = [LinearDynamics(Contracting(basis, 8, 2, dtype=np.float64, key=keys[0]), scan=MatrixFree())]
    else:
        mixers = [LinearDynamics(Orthogonal(basis, 8, 4, dtype=np.float64, key=keys[0]), scan=MatrixFree())]
    first = RowEncoder(4, 6, dropout=dropout, dtype=np.float64, key=keys[2])
    return StableStack(first, mixers, dropout=dropout, dtype=np.float64, key=keys[3])


@pytest.mark.parametrize("scan", [Sequential(), Associative(), Chunked(4)], ids=lambda scan: type(scan).__name__)
def test_stationary_dynamics_are_those_of_their_field(scan):
    """Values and gradients of the recurrence against exponentials of every interval."""
    field, rows, start = _field(), _rows().at[:, 0].set(1.0), jnp.arange(6.0)

    @eqx.filter_jit
    @functools.partial(jax.grad, has_aux=True)
    def slopes(dynamics, rows):
        states = dynamics.unroll(start, rows, jnp.asarray(5))
        return jnp.sum(jnp.cos(states[:5])), states

    ours, states = slopes(StationaryDynamics(field, scan), rows)
    theirs, expected = slopes(LinearDynamics(field, scan=MatrixFree()), rows)
    np.testing.assert_allclose(states, expected, rtol=1e-11, atol=1e-12)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_stationary_dynamics_refuse_flows_that_differ():
    with pytest.raises(ModelError, match="differ between intervals.*time_only=True"):
        StationaryDynamics(Contracting(layer_basis(3), 6, 2, key=KEY))


def test_row_encoder_is_affine_and_limited():
    encoder, start = RowEncoder(4, 6, limit=8.0, dtype=np.float64, key=KEY), jnp.arange(6.0)
    rows = _rows() * 0.01
    states = encoder.unroll(start, rows, jnp.asarray(4))
    np.testing.assert_allclose(states[:4], rows[:4] @ encoder.weight.T + start, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(states[4:], np.broadcast_to(states[3], (2, 6)))
    np.testing.assert_array_equal(encoder.unroll(start, rows, jnp.asarray(0)), np.broadcast_to(start, (6, 6)))
    wild = encoder.unroll(start, rows * 1e30, jnp.asarray(6)) - start
    assert np.all(np.abs(wild) <= 8.0 * np.abs(encoder.weight).sum(axis=1) + 1e-9)


def test_soft_limit_is_odd_increasing_and_bounded():
    values = jnp.linspace(-50.0, 50.0, 401)
    found = soft_limit(values, 8.0)
    np.testing.assert_allclose(found, -found[::-1], atol=1e-12)
    assert np.all(np.diff(found) >= 0)
    assert np.all(np.abs(found) <= 8.0)
    np.testing.assert_allclose(soft_limit(values / 100, 8.0), values / 100, rtol=2e-3)


@pytest.mark.parametrize("kind", ["stationary", "contracting", "orthogonal"])
def test_stable_stack_advance_equals_unroll(kind):
    stack, rows, start = _stack(kind), _rows(), jnp.arange(6.0)
    states = stack.unroll(start, rows.at[4:].set(1e6), jnp.asarray(4))
    carry, advance = stack.start(start), eqx.filter_jit(stack.advance)
    for interval in range(4):
        carry = advance(carry, rows[interval])
        np.testing.assert_allclose(stack.state(carry), states[interval], rtol=1e-9)
    np.testing.assert_allclose(states[4:], np.broadcast_to(states[3], (2, 6)), rtol=1e-11)
    other = stack.unroll(start, rows.at[2:].multiply(-2.0), jnp.asarray(4))
    np.testing.assert_allclose(other[:2], states[:2], rtol=1e-11)
    assert np.all(np.abs(other[3] - states[3]) > 1e-6)


def test_stable_stack_drops_out_in_training_only():
    stack, rows, start, length = _stack(dropout=0.4), _rows(), jnp.arange(6.0), jnp.asarray(6)
    np.testing.assert_array_equal(stack.unroll(start, rows, length), _stack().unroll(start, rows, length))
    one, same, other = (stack.unroll_train(start, rows, length, key=key) for key in (KEY, KEY, jax.random.key(1)))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    bare = _stack()
    np.testing.assert_allclose(
        bare.unroll_train(start, rows, length, key=KEY), bare.unroll(start, rows, length), rtol=1e-12
    )


@pytest.mark.parametrize("time_only", [True, False])
def test_five_layers_and_512_intervals_stay_near_unit_size_with_finite_gradients(time_only):
    keys = jax.random.split(KEY, 7)
    fields = [Contracting(layer_basis(32), 32, 2, time_only=time_only, init_scale=1.0, key=k) for k in keys[:5]]
    mixers = [
        StationaryDynamics(field, Sequential()) if time_only else LinearDynamics(field, scan=MatrixFree())
        for field in fields
    ]
    stack = StableStack(RowEncoder(12, 32, key=keys[5]), mixers, key=keys[6])
    rows = _rows(512, 12, np.float32)

    @eqx.filter_jit
    @functools.partial(eqx.filter_value_and_grad, has_aux=True)
    def loss(stack):
        states = stack.unroll(jnp.zeros(32, jnp.float32), rows, jnp.asarray(512))
        return jnp.mean(jnp.square(states)), states

    (_, states), gradients = loss(stack)
    sizes = jnp.sqrt(jnp.mean(jnp.square(states), axis=1))
    assert float(sizes.min()) > 0.3
    assert float(sizes.max()) < 5.0
    for leaf in jax.tree.leaves(gradients):
        assert np.all(np.isfinite(leaf))
        assert np.any(leaf != 0)
        assert np.abs(leaf).max() < 10.0


def test_stable_stack_refuses_a_share_outside_zero_to_one():
    with pytest.raises(ModelError, match="dropout is 1"):
        StableStack(RowEncoder(4, 6, key=KEY), [], dropout=1.0, key=KEY)
