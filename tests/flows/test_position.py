"""Where the path is: extremes against a loop, units of training series, and one interval at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.flows import Position

BASIS = lc.Basis(("a", "b", "#a", "#b", "time"), 2)


def walk(series=6, intervals=5, seed=0):
    return np.random.default_rng(seed).normal(size=(series, intervals, BASIS.dimension))


def test_extremes_are_those_of_the_values_at_ends_of_intervals():
    steps = walk()[0]
    states = np.asarray(Position(BASIS, 0, extremes=True).unroll(jnp.zeros(0), jnp.asarray(steps), jnp.asarray(4)))
    places = steps[:, :5].cumsum(axis=0)
    places[4] = places[3]  # nothing moves from interval number `length` on
    for interval in range(5):
        values = places[: interval + 1, :2]
        expected = np.concatenate([places[interval], values.max(axis=0), values.min(axis=0)])
        np.testing.assert_allclose(np.sinh(states[interval]), expected, atol=1e-12)


@pytest.mark.parametrize("extremes", [False, True])
def test_one_interval_at_a_time(extremes):
    steps = jnp.asarray(walk())
    position = Position(BASIS, 2, extremes).fitted_to(lambda: steps)
    states = position.unroll(jnp.ones(2), steps[0], jnp.asarray(5))
    carry = position.start(jnp.ones(2))
    assert position.state(carry).shape == (position.features,)
    for step, expected in zip(steps[0], states, strict=True):
        carry = position.advance(carry, step)
        np.testing.assert_allclose(position.state(carry), expected, atol=1e-12)


def test_places_are_in_units_of_where_training_series_end():
    steps = walk(series=50)
    steps[:, :, 4] = 0.25  # time: all series end at the same place
    position = Position(BASIS, 0, extremes=True).fitted_to(lambda: jnp.asarray(steps))
    ends = np.stack([position.unroll(jnp.zeros(0), jnp.asarray(one), jnp.asarray(5))[-1] for one in steps])
    np.testing.assert_allclose(ends.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.delete(ends, 4, axis=1).std(axis=0), 1, atol=1e-9)
    np.testing.assert_allclose(ends[:, 4], 0, atol=1e-9)
    assert position.fitted_to(lambda: pytest.fail("it is fitted already")) is position


def test_without_series_there_is_nothing_to_fit():
    assert Position(BASIS, 0).fitted_to(lambda: jnp.zeros((0, 3, BASIS.dimension))).centre is None
