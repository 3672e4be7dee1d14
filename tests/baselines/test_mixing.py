"""Mixers against loops and dense systems; normalisation in training and prediction."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from logcde.baselines import (
    BatchNorm,
    Gated,
    LayerNorm,
    LinearRecurrentUnit,
    Recurrent,
    Selective,
    SimplifiedStateSpace,
)
from logcde.baselines.mixing import AbstractRecurrence
from logcde.baselines.state_space import hippo
from logcde.errors import ModelError, ScanError
from logcde.scans import Associative, Auto, Chunked, MatrixFree, Sequential

F64 = jnp.float64
ROWS = np.random.default_rng(0).normal(size=(7, 3))


def complex_of(pair):
    """The complex numbers of which these are the parts."""
    real, imaginary = np.asarray(pair)
    return real + 1j * imaginary


def by_hand(factors, terms, state):
    states = []
    for factor, term in zip(factors, terms, strict=True):
        state = factor * state + term
        states.append(state)
    return np.array(states)


class Pairs(AbstractRecurrence):
    """Rows are pairs of a factor and a term."""

    recompute: ClassVar[bool] = False

    def element(self, row):
        return row

    def read(self, state, step):
        return state


class RecomputedPairs(AbstractRecurrence):
    """The same, computed again in the backward pass."""

    recompute: ClassVar[bool] = True

    def element(self, row):
        return row

    def read(self, state, step):
        return state


@pytest.mark.parametrize("scan", [Sequential(), Associative(), Chunked(3), Auto()])
@pytest.mark.parametrize("recurrence", [Pairs, RecomputedPairs])
def test_every_scan_of_a_recurrence_is_the_loop_with_the_same_gradient(scan, recurrence):
    rng = np.random.default_rng(1)
    factors, terms = rng.normal(size=(2, 7, 2)) + 1j * rng.normal(size=(2, 7, 2))
    start = np.array([1.0, 2.0j])

    def states(factors, terms, start):
        return scan(recurrence(), (factors, terms), start)

    def first_way(factors, terms, start):
        state, total = start, 0.0
        for factor, term in zip(factors, terms, strict=True):
            state = factor * state + term
            total = total + jnp.sum(jnp.abs(state) ** 2)
        return total

    given = jnp.asarray(factors), jnp.asarray(terms), jnp.asarray(start)
    np.testing.assert_allclose(states(*given), by_hand(factors, terms, start), rtol=1e-12)
    slopes = jax.grad(lambda *args: jnp.sum(jnp.abs(states(*args)) ** 2), argnums=(0, 1, 2))(*given)
    for found, expected in zip(slopes, jax.grad(first_way, argnums=(0, 1, 2))(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_recurrence_without_rows_is_empty():
    nothing = jnp.zeros((0, 2))
    for scan in (Sequential(), Associative(), Chunked(4)):
        assert scan(Pairs(), (nothing, nothing), jnp.zeros(2)).shape == (0, 2)
        assert scan(RecomputedPairs(), (nothing, nothing), jnp.zeros(2)).shape == (0, 2)


def test_matrix_free_scan_of_a_recurrence_is_refused():
    with pytest.raises(ScanError, match="Pairs has no matrix-free form"):
        MatrixFree()(Pairs(), (jnp.zeros((3, 2)), jnp.zeros((3, 2))), jnp.zeros(2))


def test_linear_recurrent_unit_matches_its_loop():
    unit = LinearRecurrentUnit(features=3, state=4, dtype=F64, key=jax.random.key(0))
    eigenvalues = np.exp(-np.exp(np.asarray(unit.nu)) + 1j * np.exp(np.asarray(unit.theta)))
    assert (np.abs(eigenvalues) < 1).all()
    gain = np.exp(np.asarray(unit.gain))
    np.testing.assert_allclose(gain, np.sqrt(1 - np.abs(eigenvalues) ** 2), rtol=1e-6)
    enter, leave = complex_of(unit.enter), complex_of(unit.leave)
    state, expected = np.zeros(4, complex), []
    for row in ROWS:
        state = eigenvalues * state + gain * (enter @ row)
        expected.append((leave @ state).real + np.asarray(unit.through) * row)
    np.testing.assert_allclose(unit(jnp.asarray(ROWS)), expected, rtol=1e-10)


def test_simplified_state_space_matches_its_dense_system():
    """x' = A x + B u with all eigenvalues, not half of them; a constant u over a step, by one matrix exponential."""
    layer = SimplifiedStateSpace(features=3, state=8, blocks=2, dtype=F64, key=jax.random.key(0))
    poles, enter = layer.continuous()
    poles, enter = np.asarray(poles), np.asarray(enter)
    leave = complex_of(layer.leave)
    enter_all = np.concatenate([enter, enter.conj()])
    leave_all = np.concatenate([leave, leave.conj()], axis=1)
    block = np.zeros((11, 11), complex)
    block[:8, :8], block[:8, 8:] = np.diag(np.concatenate([poles, poles.conj()])), enter_all
    step = expm(block)
    state, expected = np.zeros(8, complex), []
    for row in ROWS:
        state = step[:8, :8] @ state + step[:8, 8:] @ row
        read = leave_all @ state
        np.testing.assert_allclose(read.imag, 0, atol=1e-12)
        expected.append(read.real + np.asarray(layer.through) * row)
    np.testing.assert_allclose(layer(jnp.asarray(ROWS)), expected, rtol=1e-9)


def test_simplified_state_space_starts_at_hippo_poles():
    size = 6
    scale = np.sqrt(2 * np.arange(size) + 1)
    matrix = -np.tril(np.outer(scale, scale), -1) - np.diag(np.arange(size) + 1)
    normal = matrix + np.outer(scale, scale) / 2  # the low-rank part is taken away
    poles, vectors = hippo(size)
    np.testing.assert_allclose(vectors @ np.diag(poles) @ vectors.conj().T, normal, atol=1e-12)
    layer = SimplifiedStateSpace(features=2, state=2 * size, blocks=2, dtype=F64, key=jax.random.key(0))
    np.testing.assert_allclose(complex_of(layer.poles), np.tile(poles[: size // 2], 2), rtol=1e-12)


def test_simplified_state_space_is_stable_for_any_poles():
    layer = SimplifiedStateSpace(features=2, state=4, dtype=F64, key=jax.random.key(0))
    wild = eqx.tree_at(lambda tree: tree.poles, layer, jnp.ones_like(layer.poles))
    assert (np.abs(wild.system()[0]) < 1).all()


def selective_by_hand(layer, rows):
    """The recurrence of one selective layer, entry by entry."""
    features, size = layer.decay.shape
    rank = layer.project.out_features - 2 * size
    state, expected = np.zeros((features, size)), []
    for row in rows:
        projected = np.asarray(layer.project.weight) @ row
        narrow, enter, leave = projected[:rank], projected[rank : rank + size], projected[rank + size :]
        raw = np.asarray(layer.widen.weight) @ narrow + np.asarray(layer.widen.bias)
        step = np.log1p(np.exp(raw))
        out = np.zeros(features)
        for f in range(features):
            for n in range(size):
                decay = np.exp(-np.exp(float(layer.decay[f, n])) * step[f])
                state[f, n] = decay * state[f, n] + step[f] * enter[n] * row[f]
                out[f] += leave[n] * state[f, n]
        expected.append(out + np.asarray(layer.through) * row)
    return np.array(expected)


@pytest.mark.parametrize("scan", [Sequential(), Chunked(2)])
def test_selective_matches_its_loop(scan):
    layer = Selective(features=3, state=2, scan=scan, dtype=F64, key=jax.random.key(0))
    np.testing.assert_allclose(layer(jnp.asarray(ROWS)), selective_by_hand(layer, ROWS), rtol=1e-10)
    steps = np.log1p(np.exp(np.asarray(layer.widen.bias)))
    assert (steps > 0.9e-3).all()
    assert (steps < 0.11).all()


def test_gated_is_convolution_selection_and_gate():
    layer = Gated(features=3, state=2, width=3, expansion=2, dtype=F64, key=jax.random.key(0))
    assert layer.inner.widen.in_features == 1

    def silu(x):
        return x / (1 + np.exp(-x))

    both = ROWS @ np.asarray(layer.split.weight).T
    inner, gates = both[:, :6], both[:, 6:]
    before = np.concatenate([np.zeros((2, 6)), inner])
    kernel = np.asarray(layer.kernel)
    convolved = np.array([sum(kernel[k] * before[t + k] for k in range(3)) for t in range(len(ROWS))])
    mixed = selective_by_hand(layer.inner, silu(convolved + np.asarray(layer.bias)))
    expected = (mixed * silu(gates)) @ np.asarray(layer.join.weight).T
    np.testing.assert_allclose(layer(jnp.asarray(ROWS)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "mixer",
    [
        LinearRecurrentUnit(3, 4, dtype=F64, key=jax.random.key(0)),
        SimplifiedStateSpace(3, 4, dtype=F64, key=jax.random.key(0)),
        Selective(3, 2, dtype=F64, key=jax.random.key(0)),
        Gated(3, 2, dtype=F64, key=jax.random.key(0)),
    ],
    ids=lambda mixer: type(mixer).__name__,
)
def test_mixer_advance_equals_call(mixer):
    carry, out = mixer.start(), []
    advance = eqx.filter_jit(lambda carry, row: mixer.advance(carry, row))
    for row in ROWS:
        carry, one = advance(carry, jnp.asarray(row))
        out.append(one)
    np.testing.assert_allclose(jnp.stack(out), mixer(jnp.asarray(ROWS)), rtol=1e-10)


def test_mixers_refuse_sizes_that_do_not_fit():
    key = jax.random.key(0)
    with pytest.raises(ModelError, match="multiple of twice the blocks"):
        SimplifiedStateSpace(4, 10, blocks=4, key=key)
    for build in (LinearRecurrentUnit, SimplifiedStateSpace, Selective):
        with pytest.raises(ModelError, match="cannot be built"):
            build(0, 4, key=key)
    with pytest.raises(ModelError, match="at least 1"):
        Gated(4, 4, width=0, key=key)


def trained(norm, batch, lengths):
    valid = np.arange(batch.shape[1]) < np.asarray(lengths)[:, None]
    apply_train = jax.vmap(lambda rows, ok: norm.apply_train(rows, ok, ("b",)), axis_name="b", out_axes=(0, None))
    return apply_train(jnp.asarray(batch), jnp.asarray(valid))


def test_batch_norm_uses_valid_rows_of_the_whole_batch():
    batch = np.random.default_rng(2).normal(3.0, 2.0, size=(4, 6, 2))
    lengths = [6, 2, 0, 5]
    rows = np.concatenate([series[:n] for series, n in zip(batch, lengths, strict=True)])
    out, _ = trained(BatchNorm(2, dtype=F64), batch, lengths)
    expected = (batch[0] - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5)
    np.testing.assert_allclose(out[0], expected, rtol=1e-10)


def test_batch_norm_running_statistics_are_unbiased():
    rng = np.random.default_rng(3)
    norm = BatchNorm(2, momentum=0.9, dtype=F64)
    np.testing.assert_allclose(norm(jnp.ones(2)), np.ones(2), rtol=1e-4)
    means, variances = [], []
    for shift in (1.0, 5.0, -2.0):
        batch = rng.normal(shift, 1.5, size=(3, 5, 2))
        _, norm = trained(norm, batch, [5, 5, 5])
        means.append(batch.mean((0, 1)))
        variances.append(batch.var((0, 1)))
        weights = 0.9 ** np.arange(len(means))[::-1]
        mean, variance = (np.average(seen, axis=0, weights=weights) for seen in (means, variances))
        np.testing.assert_allclose(norm(jnp.zeros(2)), -mean / np.sqrt(variance + 1e-5), rtol=1e-10)


def test_batch_norm_of_an_empty_batch_is_finite():
    _, norm = trained(BatchNorm(2, dtype=F64), np.ones((2, 3, 2)), [0, 0])
    assert np.isfinite(norm(jnp.ones(2))).all()


def test_batch_norm_gradient_goes_through_batch_statistics():
    """Shifting all rows of a normalised batch changes nothing."""
    norm, batch = BatchNorm(2, dtype=F64), np.random.default_rng(4).normal(size=(3, 5, 2))
    slope = jax.grad(lambda shift: jnp.sum(trained(norm, batch + shift, [5, 5, 4])[0][0] ** 3))(jnp.zeros(2))
    np.testing.assert_allclose(slope, 0, atol=1e-10)


def test_recurrent_dropout_in_training_only():
    unit = LinearRecurrentUnit(3, 4, dtype=F64, key=jax.random.key(0))
    stack = Recurrent(2, 3, [unit], [LayerNorm(3, dtype=F64)], dropout=0.5, dtype=F64, key=jax.random.key(1))
    steps, hidden, length = jnp.asarray(ROWS[:, :2]), jnp.zeros(3), jnp.asarray(7)

    def apply_train(seed):
        return stack.apply_train(hidden, steps, length, key=jax.random.key(seed), axes=())[0]

    assert not np.allclose(apply_train(0), apply_train(1))
    np.testing.assert_array_equal(stack.unroll(hidden, steps, length), stack.unroll(hidden, steps, length))
