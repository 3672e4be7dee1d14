"""Cumulative features: the history of values against a loop, fitted constants, one interval at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.flows import CumulativeFeatures

BASIS = lc.Basis(("a", "b", "#a", "#b", "time"), 2)


def walk(series=6, intervals=5, seed=0):
    return np.random.default_rng(seed).normal(size=(series, intervals, BASIS.dimension))


@pytest.mark.parametrize("counted", [True, False])
def test_history_matches_a_loop_over_interval_ends(counted):
    logsigs = walk()[0]
    logsigs[:2, [0, 2]] = 0  # a is observed from the third interval on
    if counted:
        logsigs[:3, 1] = 0  # b is observed from the second interval on, and is worth 0 until the fourth
        logsigs[0, 3] = 0
    else:
        logsigs[:1, 1] = 0
        logsigs[:, [2, 3]] = 0  # no counts: values are seen when they move
    states = np.asarray(
        CumulativeFeatures(BASIS, 0, history=True).unroll(jnp.zeros(0), jnp.asarray(logsigs), jnp.asarray(4))
    )
    places = logsigs[:, :5].cumsum(axis=0)
    places[4] = places[3]  # nothing moves from interval number `length` on
    for interval in range(5):
        a, b = places[2 : interval + 1, 0], places[1 : interval + 1, 1]
        told = [[one.max(), one.min(), one[0]] if len(one) else [0.0] * 3 for one in (a, b)]
        expected = np.concatenate([places[interval], np.transpose(told).ravel()])
        np.testing.assert_allclose(np.sinh(states[interval]), expected, atol=1e-12)


def test_history_gradients_are_finite_before_the_first_observation():
    logsigs = walk()[0]
    logsigs[:3, [0, 2]] = 0
    features = CumulativeFeatures(BASIS, 0, history=True)
    slope = jax.grad(lambda logsigs: features.unroll(jnp.zeros(0), logsigs, jnp.asarray(5)).sum())(jnp.asarray(logsigs))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("history", [False, True])
def test_cumulative_advance_equals_unroll(history):
    logsigs = jnp.asarray(walk()).at[:, :2, jnp.array([0, 2])].set(0)
    features = CumulativeFeatures(BASIS, 2, history).fit_preprocessing(logsigs)
    states = features.unroll(jnp.ones(2), logsigs[0], jnp.asarray(5))
    carry = features.start(jnp.ones(2))
    assert features.state(carry).shape == (features.features,)
    for logsig, expected in zip(logsigs[0], states, strict=True):
        carry = features.advance(carry, logsig)
        np.testing.assert_allclose(features.state(carry), expected, atol=1e-12)


def test_features_are_standardised_at_the_ends_of_training_series():
    logsigs = walk(series=50)
    logsigs[:, :, 4] = 0.25  # time: all series end at the same place
    features = CumulativeFeatures(BASIS, 0, history=True).fit_preprocessing(jnp.asarray(logsigs))
    ends = np.stack([features.unroll(jnp.zeros(0), jnp.asarray(one), jnp.asarray(5))[-1] for one in logsigs])
    np.testing.assert_allclose(ends.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.delete(ends, 4, axis=1).std(axis=0), 1, atol=1e-9)
    np.testing.assert_allclose(ends[:, 4], 0, atol=1e-9)
    assert features.fit_preprocessing(2 * jnp.asarray(logsigs)) is features


def test_fit_preprocessing_without_series_keeps_features():
    assert CumulativeFeatures(BASIS, 0).fit_preprocessing(jnp.zeros((0, 3, BASIS.dimension))).centre is None
