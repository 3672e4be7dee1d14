"""Linear flows: `act` by the kernel and by its twin in JAX against matrices of scipy, and extensions by users."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from logcde.flows import scan as flow_scan
from logcde.flows.scan import act
from logcde.kernels import flow_ffi as kernels

SHAPES = [(4, 4, 32), (3, 8, 8), (3, 4, 3), (2, 1, 20), (2, 3, 9), (2, 16, 3), (2, 20, 2)]


def _sample(shape, scale, dtype=np.float64, seed=0):
    intervals, size, blocks = shape
    rng = np.random.default_rng(seed)
    matrices = rng.normal(size=(intervals, size, size, blocks)) * scale / size**0.5
    return jnp.asarray(matrices, dtype), jnp.asarray(rng.normal(size=(size, blocks)), dtype)


def _expected(matrices, hidden):
    states, state = [], np.asarray(hidden, np.float64)
    for matrix in np.asarray(matrices, np.float64):
        flows = np.stack([scipy.linalg.expm(matrix[..., k]) for k in range(matrix.shape[-1])], axis=-1)
        state = np.einsum("ijk,jk->ik", flows, state)
        states.append(state)
    return np.stack(states)


def _twin(matrices, hidden, exact):
    function = jax.custom_vjp(functools.partial(flow_scan._twin_forward, exact))

    def forward(matrices, hidden):
        states = flow_scan._twin_forward(exact, matrices, hidden)
        return states, (matrices, hidden, states)

    function.defvjp(forward, lambda kept, cotangent: flow_scan._twin_backward(exact, *kept, cotangent))
    return function(matrices, hidden)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.3, 6.0])
def test_act_matches_scipy_exponentials(shape, scale):
    matrices, hidden = _sample(shape, scale)
    expected = _expected(matrices, hidden)
    assert np.abs(act(matrices, hidden, True) - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-5)])
@pytest.mark.parametrize(("shape", "scale"), [((4, 4, 32), 0.3), ((3, 4, 3), 4.0)])
def test_act_kernel_and_twin_agree_in_values_and_gradients(shape, scale, dtype, tolerance, exact):
    matrices, hidden = _sample(shape, scale, dtype)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(shape[0], *hidden.shape)), dtype)

    def gradient(function):
        return jax.jit(jax.value_and_grad(lambda *a: jnp.sum(weights * function(*a, exact)), argnums=(0, 1)))

    ours, theirs = gradient(act)(matrices, hidden), gradient(_twin)(matrices, hidden)
    for found, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert found.dtype == dtype
        assert np.abs(found - expected).max() <= tolerance * max(1e-30, np.abs(expected).max())


def test_act_gradients_match_finite_differences():
    matrices, hidden = _sample((3, 4, 9), 3.0)
    rng = np.random.default_rng(2)
    weights, d_matrices, d_hidden = (rng.normal(size=shape) for shape in ((3, 4, 9), matrices.shape, hidden.shape))

    def total(step):
        return float(jnp.sum(weights * act(matrices + step * d_matrices, hidden + step * d_hidden, True)))

    slopes = jax.grad(lambda m, h: jnp.sum(weights * act(m, h, True)), argnums=(0, 1))(matrices, hidden)
    found = float(jnp.sum(slopes[0] * d_matrices) + jnp.sum(slopes[1] * d_hidden))
    assert found == pytest.approx((total(1e-5) - total(-1e-5)) / 2e-5, rel=1e-6)


def test_act_under_vmap_equals_single_series():
    samples = [_sample((4, 4, 8), 0.5, seed=seed) for seed in range(3)]
    matrices, hidden = (jnp.stack(part) for part in zip(*samples, strict=True))
    together = jax.jit(jax.vmap(jax.vmap(lambda m, h: act(m, h, True))))(matrices[None], hidden[None])[0]
    for series in range(3):
        np.testing.assert_array_equal(together[series], act(matrices[series], hidden[series], True))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e9])
def test_act_gives_nan_where_the_exponential_overflows(bad):
    matrices, hidden = _sample((3, 4, 8), 0.1)
    broken = matrices.at[1, 0, 0, 0].set(bad)
    states, slopes = jax.value_and_grad(lambda m: jnp.sum(act(m, hidden, True)))(broken)
    assert np.isnan(states)
    assert np.isnan(slopes[0]).any()
    assert np.isfinite(act(broken, hidden, True)[0]).all()


def test_act_uses_the_twin_without_the_kernel(monkeypatch, caplog):
    monkeypatch.setattr(flow_scan, "target", lambda *_: None)
    matrices, hidden = _sample((4, 4, 8), 0.5)
    expected = _expected(matrices, hidden)
    assert np.abs(act(matrices, hidden, True) - expected).max() <= 1e-12 * np.abs(expected).max()


def test_refused_kernel_is_logged_and_no_error(monkeypatch, caplog):
    def refuse(*_, **__):
        raise RuntimeError("another version")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    # Past the cache: what is registered already must stay known, XLA refuses to register a name twice.
    assert kernels._registered.__wrapped__(kernels.FORWARD, False, True) is None
    assert "another version" in caplog.text
