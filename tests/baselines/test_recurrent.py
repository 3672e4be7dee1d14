"""GRU-D against the equations of its paper, and the rows of `HeldControl`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde import Inputs, Partition, Streams
from logcde.baselines import FadingGRU, HeldControl, gru_d
from logcde.errors import ModelError
from logcde.streams import Keep

NAN = np.nan


def held(times, values, partition, horizon):
    streams = Streams.from_arrays(times, values, channels=["a", "b"], horizon=horizon, empty=Keep())
    return HeldControl()(streams, partition)


def test_held_control_rows_are_values_masks_and_gaps():
    rows = held([[1.0, 2.5]], [[[3.0, NAN], [5.0, 7.0]]], Partition.at([0.0, 2.0, 4.0]), 4.0)
    expected = [
        [3.0, 0.0, 1.0, 0.0, 1.0, 1.0],  # a is seen; neither was before, so both are as old as the series
        [3.0, 0.0, 0.0, 0.0, 1.0, 2.0],  # the first query point
        [5.0, 7.0, 1.0, 1.0, 1.5, 2.5],
        [5.0, 7.0, 0.0, 0.0, 1.5, 1.5],  # the last one
    ]
    np.testing.assert_allclose(rows.values[0], expected)
    np.testing.assert_array_equal(rows.ends[0], [1, 3])


def test_held_control_events_at_query_points_belong_to_the_next_interval():
    rows = held([[2.0, 4.0]], [[[3.0, NAN], [NAN, 7.0]]], Partition.at([0.0, 2.0, 4.0]), 4.0)
    np.testing.assert_allclose(rows.values[0, :, :2], [[0, 0], [3, 0], [3, 0], [3, 7]])
    np.testing.assert_array_equal(rows.values[0, :, 2:4], [[0, 0], [1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(rows.ends[0], [0, 3])


def test_held_control_series_are_independent():
    alone = held([[1.0]], [[[NAN, 2.0]]], Partition.uniform(2), 4.0)
    after = held([[3.0], [1.0], []], [[[8.0, 9.0]], [[NAN, 2.0]], np.zeros((0, 2))], Partition.uniform(2), 4.0)
    np.testing.assert_array_equal(after.values[1], alone.values[0])
    np.testing.assert_array_equal(after.values[2, :2, :4], np.zeros((2, 4)))


def test_fading_gru_step_matches_the_paper():
    dynamics = FadingGRU(channels=2, hidden=3, dtype=jnp.float64, key=jax.random.key(0))
    hidden, row = np.array([0.3, -0.2, 0.9]), np.array([2.0, -1.0, 0.0, 1.0, 1.5, 0.7])
    last, observed, ago = np.split(row, 3)
    gamma_x = np.exp(-np.maximum(np.asarray(dynamics.fade_values) * ago, 0))
    gamma_h = np.exp(-np.maximum(np.asarray(dynamics.fade_hidden) @ ago + np.asarray(dynamics.delay), 0))
    seen = np.concatenate([observed * last + (1 - observed) * gamma_x * last, observed])
    expected = dynamics.cell(jnp.asarray(seen), jnp.asarray(gamma_h * hidden))
    np.testing.assert_allclose(dynamics.advance(jnp.asarray(hidden), jnp.asarray(row)), expected, rtol=1e-12)


def test_fading_gru_unroll_equals_advance_and_ignores_padding():
    dynamics = FadingGRU(channels=1, hidden=3, dtype=jnp.float64, key=jax.random.key(0))
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    state, states = jnp.ones(3), dynamics.unroll(jnp.ones(3), rows, jnp.asarray(4))
    for number in range(4):
        state = dynamics.advance(state, rows[number])
        np.testing.assert_allclose(states[number], state, rtol=1e-12)
    np.testing.assert_array_equal(states[4], states[3])


def test_gru_d_refuses_other_rows():
    rows = held([[1.0]], [[[1.0, 2.0]]], Partition.uniform(1), 2.0)
    model = gru_d(rows.basis, hidden=4, outputs=1, key=jax.random.key(0))
    assert model(Inputs.of(rows)[0]).shape == (1,)
    with pytest.raises(ModelError, match="2 channels need three each. Give the model the rows of a HeldControl"):
        model.dynamics.advance(jnp.ones(4, jnp.float32), jnp.ones(5, jnp.float32))
