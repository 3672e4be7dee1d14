"""Merging channels, observing time as a channel, and dropping observations at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import (
    FirstStamp,
    Keep,
    PerChannel,
    PerEvent,
    Streams,
    Term,
    drop_observations,
    merge_channels,
    with_time_channel,
)

TIMES = st.lists(st.sets(st.integers(0, 8), max_size=6).map(sorted), min_size=3, max_size=3)


def drawn(times, channels, seed, missing):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(len(own), len(channels))) for own in times]
    for one in values:
        one[rng.random(one.shape) < missing] = np.nan
    return [np.array(own, float) for own in times], values


def made(times, values, channels):
    return Streams.from_arrays(times, values, channels, horizon=8.0, empty=Keep())


@given(TIMES, TIMES, st.integers(0, 99), st.sampled_from([0.0, 0.5]))
@settings(max_examples=60, deadline=None)
def test_merged_channels_equal_reading_both_sources_at_once(ours, theirs, seed, missing):
    first, second = drawn(ours, "ab", seed, missing), drawn(theirs, "c", seed + 1, missing)
    events = [
        (number, time, {name: value for name, value in zip(names, row, strict=True) if not np.isnan(value)})
        for (times, values), names in ((first, "ab"), (second, "c"))
        for number in range(3)
        for time, row in zip(times[number], values[number], strict=True)
    ]
    # Every series has an observation at the horizon, so that reading at once finds all three, in order.
    ends = [(number, 8.0, {"c": 1.0}) for number in range(3)]
    for (times, values), add in ((second, True), (first, False)):
        for number in range(3):
            keep = times[number] < 8
            times[number] = np.append(times[number][keep], [8.0] * add)
            values[number] = np.concatenate([values[number][keep], np.ones((int(add), values[number].shape[1]))])
    events = ends + [event for event in events if event[1] < 8]
    at_once = Streams.from_events(events, channels=("a", "b", "c"), horizon=8.0, sort=True)
    both = merge_channels(made(*first, ("a", "b")), made(*second, ("c",)))
    assert both == at_once
    for name in ("offsets", "times", "obs_offsets", "channel", "value"):
        np.testing.assert_array_equal(getattr(both, name), getattr(at_once, name))


def test_merge_channels_keeps_terms_and_continuous_channels():
    area = Term("area", ("a", "b"))
    first = Streams.from_arrays([[0.0, 2.0]], [np.ones((2, 2))], ("a", "b"), terms={area: [[5.0, 6.0]]})
    second = Streams.from_arrays([[1.0, 2.0]], [np.ones((2, 1), np.float32)], ("c",))
    both = merge_channels(first, second)
    assert both.terms.tolist() == [[5.0], [0.0], [6.0]]
    assert both.value.dtype == np.float64
    assert merge_channels(second, first).terms.tolist() == [[5.0], [0.0], [6.0]]
    first, second = (one.with_continuous((n,), [0, 2], [0, 1]) for one, n in ((first, "u"), (second, "v")))
    both = merge_channels(first, second)
    assert both.schema.continuous == ("u", "v")
    assert both.knots.values.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_time_channel_is_observed_at_every_stamp():
    streams = Streams.from_dense(np.arange(8.0).reshape(2, 4, 1) ** 2, np.arange(4) / 4, horizon=1.0)
    seen = with_time_channel(streams)
    assert seen.schema.channels == ("x1", "clock")
    assert seen.synchronous
    np.testing.assert_array_equal(seen.value.reshape(-1, 2), np.stack([streams.value, streams.times], axis=1))
    left = Streams.from_arrays([[0.25], [0.0]], [[[1.0]], [[16.0]]], horizon=1.0)
    seen = with_time_channel(left, streams)
    assert seen.times.tolist() == [0.0, 0.25, 0.5, 0.75] * 2
    assert seen.value[seen.channel == 1].tolist() == seen.times.tolist()
    assert seen.value[seen.channel == 0].tolist() == [1.0, 16.0]


def test_time_channel_counts_in_the_unit_of_the_clock():
    stamps = np.array(["2024-01-01T00:00", "2024-01-01T06:00"], "datetime64[s]")
    streams = Streams.from_arrays([stamps, stamps + 5], [np.ones((2, 1))] * 2, origin=FirstStamp(), horizon=7.0)
    assert with_time_channel(streams).value.tolist() == [1.0, 0.0, 1.0, 6.0] * 2


def test_merge_channels_refuses_different_series_and_common_channels():
    one = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]], ["a"])
    other = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]], ["b"], horizon=2.0)
    with pytest.raises(StreamError, match="Both streams have a channel 'a'. Rename one"):
        merge_channels(one, one)
    with pytest.raises(StreamError, match="Both streams have a channel 'clock'"):
        with_time_channel(with_time_channel(one))
    with pytest.raises(StreamError, match="different horizons of series"):
        merge_channels(one, other)
    with pytest.raises(StreamError, match="different ids of series"):
        merge_channels(one, Streams.concatenate([one, one]))
    hours = Streams.from_arrays([np.array([0, 1], "timedelta64[h]")], [[[1.0], [2.0]]], ["b"])
    with pytest.raises(StreamError, match="has the clock NumericClock.*, the other TimedeltaClock"):
        merge_channels(one, hours)


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
def test_drop_observations_keeps_the_expected_number(seed, lengths, fraction, by, missing):
    streams = ragged(seed, lengths, missing=missing)
    left = drop_observations(streams, fraction, by, seed=seed)
    everything = set(rows(streams))
    assert set(rows(left)) <= everything
    np.testing.assert_array_equal(left.horizon, streams.horizon)
    np.testing.assert_array_equal(left.ids, streams.ids)
    assert (np.diff(left.obs_offsets) > 0).all()
    for before, after in zip(streams, left, strict=True):
        if isinstance(by, PerEvent):
            counts, kept = len(before.times), len(after.times)
            assert {row for row in rows(before) if row[1] in after.times} == set(rows(after))
        else:
            counts, kept = (np.bincount(one.channel, minlength=3) for one in (before, after))
        if by.fixed:
            np.testing.assert_array_equal(kept, np.minimum(counts, np.maximum(1, np.round((1 - fraction) * counts))))
    if fraction == 0:
        assert left == streams


@pytest.mark.parametrize("by", [PerEvent, PerChannel])
@pytest.mark.parametrize("fixed", [True, False])
def test_drop_observations_is_uniform_and_independent(by, fixed):
    """Of 4,000 series of ten: frequencies within five standard deviations, neighbours uncorrelated."""
    streams = Streams.from_dense(np.ones((4000, 10, 2)))
    left = drop_observations(streams, 0.7, by(fixed=fixed), seed=0)
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
    assert channels == pytest.approx(1.0 if by is PerEvent else 0.0, abs=0.03)
    if not fixed:
        counts = taken[:, :, 0].sum(axis=1)
        assert counts.var() == pytest.approx(10 * 0.3 * 0.7, rel=0.1)
        assert (counts == 0).any() or by is PerChannel


def test_drop_observations_depends_on_the_seed_only():
    streams = ragged(0, [30, 20])
    one, same, other = (drop_observations(streams, 0.5, seed=seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert one == same
    assert one != other
    # What this draw is on any machine.
    grid = drop_observations(Streams.from_dense(np.ones((2, 10, 1))), 0.7, seed=2345)
    assert grid.times.tolist() == [4.0, 5.0, 8.0, 2.0, 3.0, 5.0]


def test_drop_observations_keeps_at_least_one():
    streams = ragged(0, [1, 2, 3])
    left = drop_observations(streams, 0.95, seed=0)
    assert np.diff(left.offsets).tolist() == [1, 1, 1]
    left = drop_observations(streams, 0.95, PerChannel(), seed=0)
    assert [np.bincount(one.channel).tolist() for one in left] == [[1, 1, 1]] * 3


def test_drop_observations_keeps_precision_terms_and_continuous_channels():
    streams = Streams.from_dense(np.ones((2, 5, 2), np.float32)).with_continuous(("dose",), [0.0, 4.0], [0.0, 1.0])
    left = drop_observations(streams, 0.5, seed=0)
    assert left.value.dtype == np.float32
    assert left.knots == streams.knots
    area = Term("area", ("a", "b"))
    numbers = [[1.0, 2.0, 3.0]]
    lie = Streams.from_arrays([[0.0, 1.0, 2.0]], [np.ones((3, 2))], ("a", "b"), terms={area: numbers})
    left = drop_observations(lie, 0.5, seed=0)
    assert left.terms[:, 0].tolist() == (left.times + 1).tolist()
    with pytest.raises(StreamError, match="terms, such as 'area', .* Use PerEvent"):
        drop_observations(lie, 0.5, PerChannel(), seed=0)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, float("nan")])
def test_drop_observations_refuses_fractions_outside_0_and_1(fraction):
    with pytest.raises(StreamError, match="The fraction to drop is"):
        drop_observations(ragged(0, [3]), fraction, seed=0)
