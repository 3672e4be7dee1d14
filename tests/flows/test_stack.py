"""Stacks of linear CDEs: one interval at a time, and residual blocks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde import Basis
from logcde.errors import ModelError
from logcde.flows import BlockDiagonal, LinearDynamics, ResidualBlock, Stack
from logcde.scans import MatrixFree

BASIS = Basis.of_width(2, 2)


def stack(layers=3, residual=ResidualBlock(), dtype=jnp.float64):
    field = BlockDiagonal(BASIS, 4, 2, init_scale=0.5, dtype=dtype, key=jax.random.key(0))
    return Stack(
        LinearDynamics(field, scan=MatrixFree()),
        layers,
        2,
        residual=residual,
        scan=MatrixFree(),
        init_scale=1.0,
        dtype=dtype,
        key=jax.random.key(1),
    )


def driving(dtype=jnp.float64):
    return jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)) * 0.5, dtype)


@pytest.mark.parametrize("residual", [ResidualBlock(), ResidualBlock(residual=False, glu=False, norm=False)])
def test_stack_advance_equals_unroll(residual):
    dynamics, steps, start = stack(residual=residual), driving(), jnp.arange(1.0, 5.0)
    states = dynamics.unroll(start, steps, jnp.asarray(4))
    carry, advance = dynamics.start(start), eqx.filter_jit(dynamics.advance)
    for interval in range(4):
        carry = advance(carry, steps[interval])
        np.testing.assert_allclose(dynamics.state(carry), states[interval], rtol=1e-10)
    np.testing.assert_allclose(states[4:], np.broadcast_to(states[3], (2, 4)), rtol=1e-12)


def test_upper_layers_are_driven_by_the_output_below():
    """Two bare layers by hand: the flow of A^0 + sum_j y^j A^j, with y the state of the first."""
    dynamics = stack(2, ResidualBlock(residual=False, glu=False, norm=False))
    steps, start = driving(), jnp.arange(1.0, 5.0)
    below = dynamics.first.unroll(start, steps, jnp.asarray(6))
    letters = dynamics.upper[0].field.as_matrices()
    state = dynamics.begin[0]
    for out in below:
        state = jax.scipy.linalg.expm(letters[0] + jnp.tensordot(out, letters[1:], 1)) @ state
    np.testing.assert_allclose(dynamics.unroll(start, steps, jnp.asarray(6))[-1], state, rtol=1e-9)


def test_stack_is_causal():
    dynamics, steps, start = stack(), driving(), jnp.ones(4)
    states = dynamics.unroll(start, steps, jnp.asarray(6))
    other = dynamics.unroll(start, steps.at[3:].multiply(-2.0), jnp.asarray(6))
    np.testing.assert_allclose(states[:3], other[:3], rtol=1e-12)
    assert np.all(np.abs(states[3] - other[3]) > 1e-6)


def test_stack_of_one_bare_layer_is_its_first_layer():
    dynamics, steps, start = stack(1, ResidualBlock(glu=False, norm=False)), driving(), jnp.ones(4)
    length = jnp.asarray(6)
    np.testing.assert_array_equal(dynamics.unroll(start, steps, length), dynamics.first.unroll(start, steps, length))


def test_stack_gradients_are_finite_in_single_precision():
    dynamics, steps = stack(dtype=jnp.float32), driving(jnp.float32)

    def loss(dynamics):
        return jnp.sum(dynamics.unroll(jnp.ones(4, jnp.float32), steps, jnp.asarray(5))[:, 0]) + dynamics.penalty()

    for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(dynamics)):
        assert leaf.dtype == jnp.float32
        assert np.all(np.isfinite(leaf))
        assert np.any(leaf != 0)


def test_stack_without_layers_is_refused():
    with pytest.raises(ModelError, match="0 layers"):
        stack(0)
