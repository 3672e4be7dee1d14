"""Where the path is: the history of values against a loop, units of training series, and one interval at a time."""

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
def test_history_is_that_of_the_values_at_ends_of_intervals_from_when_they_are_observed(counted):
    steps = walk()[0]
    steps[:2, [0, 2]] = 0  # a is observed from the third interval on
    if counted:
        steps[:3, 1] = 0  # b is observed from the second interval on, and is worth 0 until the fourth
        steps[0, 3] = 0
    else:
        steps[:1, 1] = 0
        steps[:, [2, 3]] = 0  # no counts: values are seen when they move
    states = np.asarray(
        CumulativeFeatures(BASIS, 0, history=True).unroll(jnp.zeros(0), jnp.asarray(steps), jnp.asarray(4))
    )
    places = steps[:, :5].cumsum(axis=0)
    places[4] = places[3]  # nothing moves from interval number `length` on
    for interval in range(5):
        a, b = places[2 : interval + 1, 0], places[1 : interval + 1, 1]
        told = [[one.max(), one.min(), one[0]] if len(one) else [0.0] * 3 for one in (a, b)]
        expected = np.concatenate([places[interval], np.transpose(told).ravel()])
        np.testing.assert_allclose(np.sinh(states[interval]), expected, atol=1e-12)


def test_gradients_are_finite_before_a_value_is_observed():
    steps = walk()[0]
    steps[:3, [0, 2]] = 0
    position = CumulativeFeatures(BASIS, 0, history=True)
    slope = jax.grad(lambda steps: position.unroll(jnp.zeros(0), steps, jnp.asarray(5)).sum())(jnp.asarray(steps))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("history", [False, True])
def test_one_interval_at_a_time(history):
    steps = jnp.asarray(walk()).at[:, :2, jnp.array([0, 2])].set(0)
    position = CumulativeFeatures(BASIS, 2, history).fit_preprocessing(lambda: steps)
    states = position.unroll(jnp.ones(2), steps[0], jnp.asarray(5))
    carry = position.start(jnp.ones(2))
    assert position.state(carry).shape == (position.features,)
    for step, expected in zip(steps[0], states, strict=True):
        carry = position.advance(carry, step)
        np.testing.assert_allclose(position.state(carry), expected, atol=1e-12)


def test_places_are_in_units_of_where_training_series_end():
    steps = walk(series=50)
    steps[:, :, 4] = 0.25  # time: all series end at the same place
    position = CumulativeFeatures(BASIS, 0, history=True).fit_preprocessing(lambda: jnp.asarray(steps))
    ends = np.stack([position.unroll(jnp.zeros(0), jnp.asarray(one), jnp.asarray(5))[-1] for one in steps])
    np.testing.assert_allclose(ends.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.delete(ends, 4, axis=1).std(axis=0), 1, atol=1e-9)
    np.testing.assert_allclose(ends[:, 4], 0, atol=1e-9)
    assert position.fit_preprocessing(lambda: pytest.fail("it is fitted already")) is position


def test_without_series_there_is_nothing_to_fit():
    assert CumulativeFeatures(BASIS, 0).fit_preprocessing(lambda: jnp.zeros((0, 3, BASIS.dimension))).centre is None
