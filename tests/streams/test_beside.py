import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import FirstStamp, Keep, Streams, Term, with_time_channel

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
def test_both_beside_each_other_are_what_was_read_at_once(ours, theirs, seed, missing):
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


def test_terms_and_continuous_channels_are_kept():
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


def test_the_clock_is_seen_at_every_stamp():
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


def test_the_clock_counts_in_the_unit_of_the_streams():
    stamps = np.array(["2024-01-01T00:00", "2024-01-01T06:00"], "datetime64[s]")
    streams = Streams.from_arrays([stamps, stamps + 5], [np.ones((2, 1))] * 2, origin=FirstStamp(), horizon=7.0)
    assert with_time_channel(streams).value.tolist() == [1.0, 0.0, 1.0, 6.0] * 2


def test_what_does_not_belong_together_is_refused():
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
