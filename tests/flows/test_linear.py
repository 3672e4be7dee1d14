"""Linear dynamics and their fields: structure against plain matrices, and the laws that the paper states of them."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from logcde import Basis
from logcde.errors import ModelError
from logcde.flows import (
    BlockDiagonal,
    Dense,
    Diagonal,
    DiagonalLowRank,
    Euler,
    Exponential,
    GroupedLetters,
    LinearDynamics,
    LowRankLetters,
    Sparse,
    WalshHadamard,
    linear,
)
from logcde.scans import Associative, Auto, Chunked, MatrixFree, Sequential

KEY = jax.random.key(0)
BASIS = Basis.of_width(3, 3)
FLAT = Basis.of_width(3, 1)
FIELDS = {
    "blocks of 4": lambda: BlockDiagonal(BASIS, 12, 4, dtype=np.float64, key=KEY),
    "blocks of 3": lambda: BlockDiagonal(BASIS, 12, 3, dtype=np.float64, key=KEY),
    "dense": lambda: Dense(BASIS, 4, dtype=np.float64, key=KEY),
    "diagonal": lambda: Diagonal(BASIS, 5, dtype=np.float64, key=KEY),
    "low rank": lambda: DiagonalLowRank(FLAT, 4, 2, dtype=np.float64, key=KEY),
    "sparse": lambda: Sparse(FLAT, 4, 2, dtype=np.float64, key=KEY),
    "walsh": lambda: WalshHadamard(FLAT, 4, dtype=np.float64, key=KEY),
}
PAIR = Basis.of_width(2, 3)
FIELDS |= {
    "letters of rank 2": lambda: LowRankLetters(
        BASIS, BlockDiagonal(PAIR, 12, 3, dtype=np.float64, key=KEY), key=jax.random.key(1)
    ),
    "diagonal letters of rank 2": lambda: LowRankLetters(
        BASIS, Diagonal(PAIR, 5, dtype=np.float64, key=KEY), key=jax.random.key(1)
    ),
    "groups": lambda: GroupedLetters(FIELDS["blocks of 3"](), [BASIS.letters[:1], BASIS.letters[1:2]]),
    "pairs": lambda: GroupedLetters(FIELDS["blocks of 3"](), [BASIS.letters[:2], BASIS.letters[1:]]),
}
CLOSED = ["blocks of 4", "blocks of 3", "dense", "diagonal"]
CLOSED += ["letters of rank 2", "diagonal letters of rank 2", "groups", "pairs"]


@functools.cache
def _field(name):
    """Made when it is first needed, because every process that runs tests imports this file."""
    return FIELDS[name]()


@pytest.fixture
def field(request):
    return _field(request.param)


@pytest.fixture
def blocks():
    return _field("blocks of 4")


def _name(value):
    return type(value).__name__


def _logsigs(field, intervals=5, scale=0.7):
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(intervals, field.basis.dimension)) * scale)


def _start(field):
    return jnp.asarray(np.random.default_rng(1).normal(size=field.hidden))


def _expected(field, logsigs, flow):
    matrices = np.tensordot(logsigs, field.as_matrices(), axes=1)
    states, state = [], np.asarray(_start(field))
    for matrix in matrices:
        whole = scipy.linalg.expm(matrix) if isinstance(flow, Exponential) else np.eye(len(matrix)) + matrix
        state = whole @ state
        states.append(state)
    return np.stack(states)


@pytest.mark.parametrize("flow", [Exponential(), Euler()], ids=_name)
@pytest.mark.parametrize("scan", [Sequential(), Associative(), Chunked(2), Auto()], ids=_name)
@pytest.mark.parametrize("field", FIELDS, indirect=True)
def test_every_field_flow_and_scan_matches_plain_matrices(field, scan, flow):
    if isinstance(field, DiagonalLowRank | Sparse | WalshHadamard) and isinstance(scan, Associative | Chunked):
        with pytest.raises(ModelError, match="lose their structure"):
            LinearDynamics(field, flow, scan)
        return
    logsigs = _logsigs(field)
    dynamics = LinearDynamics(field, flow, scan)
    found = eqx.filter_jit(dynamics.unroll)(_start(field), logsigs, jnp.asarray(5))
    expected = _expected(field, logsigs, flow)
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("field", CLOSED, indirect=True)
def test_brackets_are_flipped_commutators(field):
    matrices = np.asarray(field.as_matrices())
    for place, (left, right) in enumerate(BASIS.brackets):
        if left >= 0:
            flipped = matrices[right] @ matrices[left] - matrices[left] @ matrices[right]
            np.testing.assert_allclose(matrices[place], flipped, atol=1e-14)


@functools.cache
def _gradients(scan):
    field = _field("blocks of 4")

    def loss(field, logsigs):
        dynamics = LinearDynamics(field, Exponential(), scan)
        return jnp.sum(jnp.square(dynamics.unroll(_start(field), logsigs, jnp.asarray(4))))

    return jax.tree.leaves(jax.jit(jax.grad(loss, argnums=(0, 1)))(field, _logsigs(field)))


@pytest.mark.parametrize("scan", [Associative(), Chunked(3), MatrixFree()], ids=_name)
def test_gradients_agree_between_scans(scan):
    for ours, theirs in zip(_gradients(scan), _gradients(Sequential()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.parametrize("scan", [Sequential(), Associative(), Chunked(3), MatrixFree()], ids=_name)
def test_linear_dynamics_ignore_padding(blocks, scan):
    dynamics = LinearDynamics(blocks, Exponential(), scan)
    logsigs = _logsigs(blocks)
    rubbish = logsigs.at[3:].set(1e6)
    states = dynamics.unroll(_start(blocks), rubbish, jnp.asarray(3))
    np.testing.assert_array_equal(states[3:], np.broadcast_to(states[2], (2, 12)))
    np.testing.assert_allclose(states[:3], dynamics.unroll(_start(blocks), logsigs, jnp.asarray(5))[:3], rtol=1e-12)


def test_long_series_in_portions_give_the_same_gradients(blocks, monkeypatch):
    field, logsigs = blocks, _logsigs(blocks)

    def loss(field):
        return jnp.sum(jnp.square(LinearDynamics(field).unroll(_start(field), logsigs, jnp.asarray(5))))

    expected = jax.value_and_grad(loss)(field)
    monkeypatch.setattr(linear, "MATRICES", 2 * 12 * 4)
    found = jax.value_and_grad(loss)(field)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("field", ["blocks of 4", "dense", "low rank"], indirect=True)
def test_linear_advance_equals_unroll(field):
    dynamics, logsigs = LinearDynamics(field), _logsigs(field)
    carry = dynamics.start(_start(field))
    for step, expected in zip(logsigs, dynamics.unroll(_start(field), logsigs, jnp.asarray(5)), strict=True):
        carry = dynamics.advance(carry, step)
        np.testing.assert_allclose(dynamics.state(carry), expected, rtol=1e-12)


def test_diagonal_exponential_flows_depend_on_end_points_only():
    field = _field("diagonal")
    logsigs = _logsigs(field)
    dynamics = LinearDynamics(field)
    ends = [
        dynamics.unroll(_start(field), logsigs[np.array(order)], jnp.asarray(5))[-1]
        for order in itertools.islice(itertools.permutations(range(5)), 0, 120, 17)
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=1e-12)
    by_steps = LinearDynamics(field, Euler()).unroll(_start(field), logsigs[:1] * 2, jnp.asarray(1))[-1]
    in_two = LinearDynamics(field, Euler()).unroll(_start(field), jnp.stack([logsigs[0], logsigs[0]]), jnp.asarray(2))[
        -1
    ]
    assert np.abs(by_steps - in_two).max() > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda basis: DiagonalLowRank(basis, 4, 1, key=KEY),
        lambda basis: Sparse(basis, 4, 1, key=KEY),
        lambda basis: WalshHadamard(basis, 4, key=KEY),
    ],
)
def test_open_fields_refuse_depth_two(make):
    with pytest.raises(ModelError, match="depth 1, but this basis has depth 2"):
        make(Basis.of_width(2, 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BlockDiagonal(BASIS, 10, 4, key=KEY), "Blocks of 4 do not fit a hidden state of 10"),
        (lambda: WalshHadamard(FLAT, 6, key=KEY), "a power of two, but 6 is none"),
        (lambda: Sparse(FLAT, 4, 5, key=KEY), "5 entries do not fit a row of 4"),
    ],
)
def test_field_sizes_that_do_not_fit_are_refused(make, words):
    with pytest.raises(ModelError, match=words):
        make()


def test_linear_penalty_is_mean_norm_of_letters(blocks):
    expected = np.mean([np.linalg.norm(matrix) for matrix in np.asarray(blocks.as_matrices())[:3]])
    assert float(LinearDynamics(blocks).penalty()) == pytest.approx(expected)


@pytest.mark.parametrize("field", FIELDS, indirect=True)
def test_initial_fields_have_the_size_of_init_scale(field):
    assert 0.02 < float(jnp.std(field.as_matrices()[:3])) < 0.4
