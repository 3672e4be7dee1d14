"""Controls against the interpolations of Diffrax, and their own contract where Diffrax has none."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde import Partition, Streams
from logcde.baselines import HermiteControl, LinearControl, RectilinearControl
from logcde.errors import ModelError
from logcde.streams import Keep

CONTROLS = [HermiteControl(), LinearControl(), RectilinearControl()]
NAMES = ["hermite", "linear", "rectilinear"]


def ragged():
    """Asynchronous series: a full one, a sparse one, one with a single event, one with none, and a silent channel."""
    nan = np.nan
    times = [[0.0, 1.0, 1.5, 4.0], [0.5, 2.0, 3.0, 3.5, 5.0], [2.0], []]
    values = [
        [[1.0, 2.0, nan], [3.0, -1.0, nan], [2.0, 0.5, nan], [5.0, 1.0, nan]],
        [[1.0, nan, nan], [nan, 4.0, nan], [2.0, nan, nan], [nan, 1.0, nan], [6.0, nan, nan]],
        [[nan, 7.0, nan]],
        np.zeros((0, 3)),
    ]
    return Streams.from_arrays(times, values, channels=["a", "b", "silent"], horizon=6.0, empty=Keep())


def increments(controls):
    """The increment of every letter over every piece: the integral of its polynomial."""
    letters = controls.basis.width
    rows = controls.values.reshape(*controls.values.shape[:2], -1, letters)
    return np.einsum("spkl,k->spl", rows, 1 / np.arange(1, rows.shape[2] + 1))


def at_queries(controls):
    """Where the path has got to, from its start, at each query point."""
    return np.take_along_axis(np.cumsum(increments(controls), axis=1), controls.ends[..., None], axis=1)


@pytest.mark.parametrize("missing", [False, True])
def test_hermite_and_linear_controls_match_diffrax(missing):
    """With missing values, of Diffrax for each channel alone: it bends its cubics where other channels are observed."""
    rng = np.random.default_rng(0)
    times, values = np.arange(8) / 2, rng.normal(size=(8, 2))
    if missing:
        values[[2, 3, 5], [0, 0, 1]] = np.nan
    streams = Streams.from_arrays([times], [values])
    queries = np.array([0.0, 0.3, 1.1, 2.0, 3.5])
    cubic, straight = [], []
    for channel in values.T:
        seen = ~np.isnan(channel)
        knots = jnp.asarray(times[seen]), jnp.asarray(channel[seen])
        cubic.append(diffrax.CubicInterpolation(knots[0], diffrax.backward_hermite_coefficients(*knots)))
        straight.append(diffrax.LinearInterpolation(*knots))
    for control, paths in ((HermiteControl(), cubic), (LinearControl(), straight)):
        found = at_queries(control(streams, Partition.at(queries)))[0]
        expected = [[path.evaluate(0.0, query) for path in paths] for query in queries[1:]]
        np.testing.assert_allclose(found[:, :2], expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found[:, 2], queries[1:])
    # Within pieces as well: the derivative at their ends and in the middle.
    controls = HermiteControl(time=False)(streams, Partition.at([0.0, 3.5]))
    rows = controls.values[0].reshape(7, 3, 2)
    for piece, start in enumerate(times[:-1]):
        for share in (0.5, 1.0):
            slope = rows[piece, 0] + share * rows[piece, 1] + share**2 * rows[piece, 2]
            expected = [path.derivative(start + share * 0.5) * 0.5 for path in cubic]
            np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)


def test_rectilinear_control_matches_diffrax():
    times, values = np.array([0.0, 0.5, 2.0]), np.array([[1.0, 2.0], [3.0, np.nan], [0.0, 1.0]])
    controls = RectilinearControl()(Streams.from_arrays([times], [values]), Partition.uniform(1))
    stamps, filled = diffrax.rectilinear_interpolation(jnp.asarray(times), jnp.asarray(values))
    path = np.column_stack([filled, stamps])
    # Ours begins at the base point zero.
    np.testing.assert_array_equal(controls.values[0], np.diff(np.vstack([np.zeros(3), path]), axis=0))


@pytest.mark.parametrize("control", CONTROLS, ids=NAMES)
def test_controls_of_ragged_series_equal_single_series(control):
    streams = ragged()
    partition = Partition.at([[0.0, 2.5, 6.0], [0.0, 0.7, 2.0, 6.0], [0.0, 6.0], [0.0, 1.0, 6.0]])
    together = control(streams, partition)
    assert np.all(np.isfinite(together.values))
    assert together.queries.tolist() == [2, 3, 1, 2]
    for series, points in enumerate(partition.points):
        alone = control(streams[series], Partition.at(points))
        pieces, queries = int(alone.lengths[0]), int(alone.queries[0])
        assert together.lengths[series] == pieces
        np.testing.assert_array_equal(together.values[series, :pieces], alone.values[0])
        np.testing.assert_array_equal(together.values[series, pieces:], 0.0)
        np.testing.assert_array_equal(together.ends[series, :queries], alone.ends[0])
    path = at_queries(together)
    np.testing.assert_array_equal(path[:, :, 2], 0.0)  # never observed
    np.testing.assert_array_equal(path[3, :2, 3], [1.0, 6.0])  # without events only time goes on
    np.testing.assert_array_equal(together[1:3].ends, together.ends[1:3])


@pytest.mark.parametrize("control", CONTROLS, ids=NAMES)
def test_controls_do_not_depend_on_query_points(control):
    streams = ragged()
    coarse = control(streams, Partition.at([0.0, 2.2, 6.0]))
    fine = control(streams, Partition.at([0.0, 0.1, 1.0, 1.3, 2.2, 3.1, 4.4, 6.0]))
    np.testing.assert_allclose(at_queries(fine)[:, [3, 6]], at_queries(coarse), rtol=1e-12, atol=1e-12)


def test_controls_at_query_points():
    streams = Streams.from_arrays([[1.0, 3.0]], [[[2.0], [6.0]]], horizon=4.0)
    partition = Partition.at([0.0, 0.5, 1.0, 2.0, 4.0])
    # Linear and Hermite paths begin at the first value; the rectilinear one at zero, and jumps after a query point.
    np.testing.assert_allclose(at_queries(LinearControl(time=False)(streams, partition))[0, :, 0], [0, 0, 2, 4])
    np.testing.assert_allclose(at_queries(HermiteControl(time=False)(streams, partition))[0, :, 0], [0, 0, 2, 4])
    np.testing.assert_allclose(at_queries(RectilinearControl(time=False)(streams, partition))[0, :, 0], [0, 0, 2, 6])


def test_rectilinear_control_is_causal():
    streams = ragged()
    other = Streams.from_arrays(
        [[0.0, 1.0, 1.5, 3.0]],
        [[[1.0, 2.0, np.nan], [3.0, -1.0, np.nan], [2.0, 0.5, np.nan], [-9.0, np.nan, 8.0]]],
        channels=["a", "b", "silent"],
        horizon=6.0,
    )
    partition = Partition.at([0.0, 1.7, 3.0, 6.0])
    ours, theirs = (RectilinearControl()(one, partition) for one in (streams[0], other))
    np.testing.assert_array_equal(at_queries(ours)[0, :2], at_queries(theirs)[0, :2])
    assert not np.array_equal(at_queries(ours)[0, 2], at_queries(theirs)[0, 2])


def test_controls_over_a_part_of_the_horizon():
    streams = Streams.from_arrays([[0.0, 2.0, 4.0]], [[[0.0], [2.0], [8.0]]])
    partition = Partition.at([1.0, 2.0, 3.0], partial=True)
    np.testing.assert_allclose(LinearControl()(streams, partition).values[0], [[1.0, 1.0], [3.0, 1.0]])
    np.testing.assert_allclose(RectilinearControl()(streams, partition).values[0], [[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]])


def test_controls_refuse_continuous_channels():
    streams = Streams.from_arrays([[1.0]], [[[1.0]]]).with_continuous(("dose",), [0.0, 2.0], [0.0, 1.0])
    with pytest.raises(ModelError, match="dose"):
        LinearControl()(streams, Partition.uniform(1))
