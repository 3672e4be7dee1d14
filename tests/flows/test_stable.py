"""Rotating and contracting fields: structure against plain matrices, closure under brackets, and bounds of norms."""

import functools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings

from logcde import Basis
from logcde.errors import ModelError
from logcde.flows import Contracting, Euler, Exponential, LinearDynamics, Orthogonal, linear
from logcde.scans import Associative, Auto, Chunked, MatrixFree, Sequential

KEY = jax.random.key(0)
LETTERS = ("a", "time", "b")
SCANS = [Sequential(), Associative(), Chunked(2), MatrixFree(), Auto()]


def _made(kind, basis, block=3, hidden=12, dtype=np.float64):
    if kind == "orthogonal":
        return Orthogonal(basis, hidden, block, init_scale=0.7, dtype=dtype, key=KEY)
    return Contracting(basis, hidden, block, time_only=kind == "time only", init_scale=0.7, dtype=dtype, key=KEY)


KINDS = ["orthogonal", "contracting", "time only"]


@functools.cache
def _field(kind, depth=3, dtype=np.float64):
    """Made when it is first needed, because every process that runs tests imports this file."""
    return _made(kind, Basis(LETTERS, depth), dtype=dtype)


def _name(value):
    return type(value).__name__


def _logsigs(basis, intervals=5, scale=0.7, seed=0):
    rows = np.random.default_rng(seed).normal(size=(intervals, basis.dimension)) * scale
    rows[:, 1] = np.abs(rows[:, 1])
    return rows


def _start(field):
    return np.random.default_rng(1).normal(size=field.hidden)


def _expected(field, logsigs, flow):
    matrices = np.tensordot(logsigs, field.as_matrices(), axes=1)
    state = np.concatenate([_start(field), np.ones(matrices.shape[-1] - field.hidden)])
    states = []
    for matrix in matrices:
        whole = scipy.linalg.expm(matrix) if isinstance(flow, Exponential) else np.eye(len(matrix)) + matrix
        state = whole @ state
        states.append(state[: field.hidden])
    return np.stack(states)


@pytest.mark.parametrize("flow", [Exponential(), Euler()], ids=_name)
@pytest.mark.parametrize("scan", SCANS, ids=_name)
@pytest.mark.parametrize("kind", KINDS)
def test_every_stable_field_flow_and_scan_matches_plain_matrices(kind, scan, flow):
    field = _field(kind)
    logsigs = _logsigs(field.basis)
    found = LinearDynamics(field, flow, scan).unroll(jnp.asarray(_start(field)), jnp.asarray(logsigs), jnp.asarray(5))
    np.testing.assert_allclose(found, _expected(field, logsigs, flow), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("block", [2, 4, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_stable_fields_of_every_depth_and_block_match_plain_matrices(kind, block, depth):
    field = _made(kind, Basis(LETTERS, depth), block, 2 * block)
    logsigs = _logsigs(field.basis)
    found = LinearDynamics(field, scan=MatrixFree()).unroll(
        jnp.asarray(_start(field)), jnp.asarray(logsigs), jnp.asarray(5)
    )
    np.testing.assert_allclose(found, _expected(field, logsigs, Exponential()), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_brackets_stay_in_the_algebra(kind):
    field = _field(kind)
    matrices = np.asarray(field.as_matrices())
    for place, (left, right) in enumerate(field.basis.brackets):
        if left >= 0:
            flipped = matrices[right] @ matrices[left] - matrices[left] @ matrices[right]
            np.testing.assert_allclose(matrices[place], flipped, atol=1e-13)
    linear_part = matrices[:, : field.hidden, : field.hidden]
    symmetric = (linear_part + linear_part.transpose(0, 2, 1)) / 2
    rates = np.zeros(field.hidden) if kind == "orthogonal" else np.tile(np.asarray(field.rates()), 3)
    expected = np.zeros_like(symmetric)
    expected[1] = -np.diag(rates)
    np.testing.assert_allclose(symmetric, expected, atol=1e-13)
    np.testing.assert_array_equal(matrices[:, field.hidden :], 0)


def test_rotation_by_time_only_leaves_other_letters_without_a_linear_part():
    field = _field("time only", 1)
    linear_part = np.asarray(field.as_matrices())[:, : field.hidden, : field.hidden]
    assert np.any(linear_part[1])
    np.testing.assert_array_equal(linear_part[[0, 2]], 0)


@pytest.mark.parametrize("scan", [Associative(), Chunked(3), MatrixFree()], ids=_name)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_stable_fields_agree_between_scans(kind, scan):
    field = _field(kind, 2)
    logsigs = jnp.asarray(_logsigs(field.basis))

    def loss(field, logsigs, scan):
        states = LinearDynamics(field, scan=scan).unroll(jnp.asarray(_start(field)), logsigs, jnp.asarray(4))
        return jnp.sum(jnp.cos(states))

    found, expected = (jax.grad(loss, argnums=(0, 1))(field, logsigs, one) for one in (scan, Sequential()))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
        assert np.any(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_stable_advance_equals_unroll_and_padding_does_nothing(kind):
    field = _field(kind)
    dynamics, logsigs = LinearDynamics(field), jnp.asarray(_logsigs(field.basis)).at[3:].set(1e6)
    states = dynamics.unroll(jnp.asarray(_start(field)), logsigs, jnp.asarray(3))
    carry = dynamics.start(jnp.asarray(_start(field)))
    for interval in range(3):
        carry = dynamics.advance(carry, logsigs[interval])
        np.testing.assert_allclose(dynamics.state(carry), states[interval], rtol=1e-12)
    np.testing.assert_allclose(states[3:], np.broadcast_to(states[2], (2, field.hidden)), rtol=1e-14)


def test_long_series_of_contracting_fields_in_portions(monkeypatch):
    field = _field("contracting")
    logsigs = jnp.asarray(_logsigs(field.basis))
    expected = LinearDynamics(field).unroll(jnp.asarray(_start(field)), logsigs, jnp.asarray(5))
    monkeypatch.setattr(linear, "MATRICES", 2 * 4 * 4 * 4)
    found = LinearDynamics(field).unroll(jnp.asarray(_start(field)), logsigs, jnp.asarray(5))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@functools.cache
def _unrolled(kind, depth):
    """Compiled once; states and bounds block by block, in single precision."""
    field = _field(kind, depth, np.float32)
    dynamics = LinearDynamics(field)

    @jax.jit
    def run(start, logsigs):
        def step(norms, logsig):
            norms = field.bound(norms, logsig)
            return norms, norms

        norms = jnp.linalg.norm(start.reshape(3, -1), axis=0)
        states = dynamics.unroll(start, logsigs, jnp.asarray(len(logsigs)))
        return jnp.linalg.norm(states.reshape(len(states), 3, -1), axis=1), jax.lax.scan(step, norms, logsigs)[1]

    return run


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-3, 1.0, 30.0, 1e3]), depth=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_norms_stay_within_their_bounds(kind, seed, size, depth):
    """Log-signatures of any size, far beyond those of training; time goes on by any amount."""
    field = _field(kind, depth, np.float32)
    rng = np.random.default_rng(seed)
    logsigs = _logsigs(field.basis, 8, size, seed).astype(np.float32)
    norms, bounds = _unrolled(kind, depth)(rng.normal(size=field.hidden).astype(np.float32), logsigs)
    assert np.all(np.isfinite(norms))
    assert np.all(norms <= bounds * 1.001 + 1e-4)
    if kind == "orthogonal":
        np.testing.assert_allclose(norms, bounds, rtol=1e-2)


@pytest.mark.parametrize("kind", ["contracting", "time only"])
def test_contracting_fields_forget_at_their_rates(kind):
    """The difference of two states shrinks by exp(-rate t) in each block, whatever happens in between."""
    field = _field(kind)
    logsigs = _logsigs(field.basis)
    dynamics = LinearDynamics(field)
    one, other = (
        dynamics.unroll(jnp.asarray(start), jnp.asarray(logsigs), jnp.asarray(5))[-1]
        for start in (_start(field), -2 * _start(field))
    )
    before = np.linalg.norm(3 * _start(field).reshape(3, -1), axis=0)
    after = np.linalg.norm(np.asarray(one - other).reshape(3, -1), axis=0)
    np.testing.assert_allclose(after, before * np.exp(-np.asarray(field.rates()) * logsigs[:, 1].sum()), rtol=1e-9)


def test_initial_states_of_contracting_fields_stay_near_unit_size():
    """Independent increments of unit size, many time constants long."""
    basis = Basis(("a", "b", "c", "time"), 1)
    field = Contracting(basis, 64, 2, memory=(1.0, 64.0), key=KEY)
    rows = np.random.default_rng(0).normal(size=(512, 4)).astype(np.float32)
    rows[:, 3] = 1.0
    states = LinearDynamics(field).unroll(jnp.zeros(64, jnp.float32), jnp.asarray(rows), jnp.asarray(512))
    assert 0.5 < float(jnp.sqrt(jnp.mean(jnp.square(states[128:])))) < 2.5
    np.testing.assert_allclose(sorted(1 / field.rates()), np.geomspace(1, 64, 32), rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Orthogonal(Basis.of_width(2, 1), 10, 4, key=KEY), "Rotating blocks of 4 do not fit"),
        (lambda: Orthogonal(Basis.of_width(2, 1), 4, 1, key=KEY), "Rotating blocks of 1"),
        (lambda: Contracting(Basis.of_width(2, 1), 4, 2, key=KEY), "no letter `time`.*time=True"),
        (lambda: Contracting(Basis(LETTERS, 1), 4, 2, memory=(4.0, 1.0), key=KEY), "time constants are \\(4.0, 1.0\\)"),
    ],
)  # fmt: skip
def test_stable_fields_refuse_what_does_not_fit(make, words):
    with pytest.raises(ModelError, match=words):
        make()
