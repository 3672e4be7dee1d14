import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import Keep, PerChannel, PerEvent, Streams, Term, drop_observations


def ragged(seed, lengths, channels=3, missing=0.0):
    """Series of different lengths, some of whose values are not observed."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(length, channels)) for length in lengths]
    for one in values:
        one[rng.random(one.shape) < missing] = np.nan
    times = [np.sort(rng.choice(1000, length, replace=False)) / 100 for length in lengths]
    return Streams.from_arrays(times, values, horizon=10.0, empty=Keep())


def rows(streams):
    """Every observation as (series, time, channel, value)."""
    event = np.repeat(np.arange(len(streams.times)), np.diff(streams.obs_offsets))
    series = np.repeat(np.arange(len(streams)), np.diff(streams.offsets))[event]
    return list(zip(series, streams.times[event], streams.channel, streams.value, strict=True))


@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.95]),
    st.sampled_from([PerEvent(), PerChannel(), PerEvent(fixed=False), PerChannel(fixed=False)]),
    st.sampled_from([0.0, 0.4]),
)
@settings(max_examples=80, deadline=None)
def test_what_is_left_was_there_and_as_much_as_it_should_be(seed, lengths, fraction, kind, missing):
    streams = ragged(seed, lengths, missing=missing)
    left = drop_observations(streams, fraction, kind, seed=seed)
    everything = set(rows(streams))
    assert set(rows(left)) <= everything
    np.testing.assert_array_equal(left.horizon, streams.horizon)
    np.testing.assert_array_equal(left.ids, streams.ids)
    assert (np.diff(left.obs_offsets) > 0).all()
    for before, after in zip(streams, left, strict=True):
        if isinstance(kind, PerEvent):
            counts, kept = len(before.times), len(after.times)
            assert {row for row in rows(before) if row[1] in after.times} == set(rows(after))
        else:
            counts, kept = (np.bincount(one.channel, minlength=3) for one in (before, after))
        if kind.fixed:
            np.testing.assert_array_equal(kept, np.minimum(counts, np.maximum(1, np.round((1 - fraction) * counts))))
    if fraction == 0:
        assert left == streams


@pytest.mark.parametrize("kind", [PerEvent(), PerChannel()])
@pytest.mark.parametrize("fixed", [True, False])
def test_every_observation_is_as_likely_to_stay(kind, fixed):
    """Of 4,000 series of ten: frequencies within five standard deviations, and no neighbour knows of another."""
    streams = Streams.from_dense(np.ones((4000, 10, 2)))
    left = drop_observations(streams, 0.7, type(kind)(fixed=fixed), seed=0)
    taken = np.zeros((4000, 10, 2))
    event = np.repeat(np.arange(len(left.times)), np.diff(left.obs_offsets))
    series = np.repeat(np.arange(4000), np.diff(left.offsets))[event]
    taken[series, left.times[event].astype(int), left.channel] = 1
    assert abs(taken.mean(axis=0) - 0.3).max() < 5 * (0.3 * 0.7 / 4000) ** 0.5
    # Between steps without replacement the correlation is -1/9, otherwise none; between series there is none.
    between = np.corrcoef(taken[:, :, 0].T)[~np.eye(10, dtype=bool)]
    np.testing.assert_allclose(between, -1 / 9 if fixed else 0, atol=0.08)
    assert abs(np.corrcoef(taken[:-1].reshape(-1), taken[1:].reshape(-1))[0, 1]) < 0.02
    channels = np.corrcoef(taken[..., 0].reshape(-1), taken[..., 1].reshape(-1))[0, 1]
    assert channels == pytest.approx(1.0 if isinstance(kind, PerEvent) else 0.0, abs=0.03)
    if not fixed:
        counts = taken[:, :, 0].sum(axis=1)
        assert counts.var() == pytest.approx(10 * 0.3 * 0.7, rel=0.1)
        assert (counts == 0).any() or isinstance(kind, PerChannel)


def test_the_same_seed_drops_the_same_and_another_does_not():
    streams = ragged(0, [30, 20])
    one, same, other = (drop_observations(streams, 0.5, seed=seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert one == same
    assert one != other
    # What this draw is on any machine.
    grid = drop(Streams.from_dense(np.ones((2, 10, 1))), 0.7, seed=2345)
    assert grid.times.tolist() == [4.0, 5.0, 8.0, 2.0, 3.0, 5.0]


def test_a_series_keeps_one_observation_at_least():
    streams = ragged(0, [1, 2, 3])
    left = drop_observations(streams, 0.95, seed=0)
    assert np.diff(left.offsets).tolist() == [1, 1, 1]
    left = drop_observations(streams, 0.95, PerChannel(), seed=0)
    assert [np.bincount(one.channel).tolist() for one in left] == [[1, 1, 1]] * 3


def test_single_precision_terms_and_continuous_channels_stay():
    streams = Streams.from_dense(np.ones((2, 5, 2), np.float32)).with_continuous(("dose",), [0.0, 4.0], [0.0, 1.0])
    left = drop_observations(streams, 0.5, seed=0)
    assert left.value.dtype == np.float32
    assert left.knots == streams.knots
    area = Term("area", ("a", "b"))
    numbers = [[1.0, 2.0, 3.0]]
    lie = Streams.from_arrays([[0.0, 1.0, 2.0]], [np.ones((3, 2))], ("a", "b"), terms={area: numbers})
    left = drop_observations(lie, 0.5, seed=0)
    assert left.terms[:, 0].tolist() == (left.times + 1).tolist()
    with pytest.raises(StreamError, match="terms, such as 'area', .* Use WholePoints"):
        drop_observations(lie, 0.5, PerChannel(), seed=0)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, float("nan")])
def test_a_fraction_is_a_fraction(fraction):
    with pytest.raises(StreamError, match="The fraction to drop is"):
        drop_observations(ragged(0, [3]), fraction, seed=0)
