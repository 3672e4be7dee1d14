import itertools

import numpy as np
import pytest

from benchmarks.data import Events, cut, cut_every, dense, random_cuts, realise


def test_cut_every_shares_ends_and_owns_memory():
    paths = dense(np.random.default_rng(0), 2, 7, 3)
    (batch,) = cut_every(paths, 3).batches
    assert batch.base is None
    windows = batch.reshape(2, 3, 4, 3)
    np.testing.assert_array_equal(windows[:, 0], paths[:, :4])
    np.testing.assert_array_equal(windows[:, 1], paths[:, 3:7])
    np.testing.assert_array_equal(windows[:, 2], paths[:, [6, 7, 7, 7]])


def test_cut_every_without_padding():
    paths = dense(np.random.default_rng(0), 2, 6, 1)
    assert cut_every(paths, 3).batches[0].shape == (4, 4, 1)


@pytest.mark.parametrize("buckets", [1, 3, 100])
def test_cut_returns_the_pieces_between_cuts(buckets, reference):
    rng = np.random.default_rng(0)
    paths, cuts = dense(rng, 3, 20, 2), random_cuts(rng, 3, 20, 4)
    windows = cut(paths, cuts, buckets)
    found = windows.restore([np.stack([reference(path, 3) for path in batch]) for batch in windows.batches])
    pieces = [path[a : b + 1] for path, row in zip(paths, cuts, strict=True) for a, b in itertools.pairwise(row)]
    np.testing.assert_allclose(found, [reference(piece, 3) for piece in pieces], atol=1e-12)


def test_random_cuts_increase_and_leave_the_last_sample():
    cuts = random_cuts(np.random.default_rng(1), 50, 9, 5)
    assert cuts.shape == (50, 6)
    assert (np.diff(cuts) > 0).all()
    assert (cuts[:, 0] == 0).all()
    assert (cuts[:, -1] == 9).all()
    assert (cuts[:, -2] <= 7).all()


@pytest.mark.parametrize("observed", [1, 3])
@pytest.mark.parametrize("buckets", [1, 4])
def test_realise_matches_a_path_built_event_by_event(observed, buckets, reference):
    events = Events.random(np.random.default_rng(observed), 2, 6, 3, observed)
    points = np.linspace(0.0, 1.0, 5)
    windows = realise(events, points, buckets)
    found = windows.restore([np.stack([reference(path, 2) for path in batch]) for batch in windows.batches])
    expected = [
        reference(piece, 2)
        for times, channel, value in zip(events.times, events.channel, events.value, strict=True)
        for piece in pieces(times, channel, value, events.channels, points)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def pieces(times, channel, value, channels, points):
    state = np.zeros(2 * channels + 1)
    for start, stop in itertools.pairwise(points):
        state[-1] = start
        path = [state.copy()]
        for event in np.flatnonzero((times >= start) & (times < stop)):
            state[-1] = times[event]
            path.append(state.copy())
            state[channel[event]] = value[event]
            state[channels + channel[event]] += 1
            path.append(state.copy())
        state[-1] = stop
        path.append(state.copy())
        yield np.array(path)


def test_as_matrix_has_the_values_and_nan():
    events = Events.random(np.random.default_rng(0), 2, 5, 4, 2)
    values = events.as_matrix()
    assert np.isfinite(values).sum() == events.value.size
    np.testing.assert_array_equal(np.take_along_axis(values, events.channel, axis=2), events.value)
