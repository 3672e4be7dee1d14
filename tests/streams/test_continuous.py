"""Continuous channels: knots, their union, and what is refused."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import FirstStamp, Streams


def two_series(**options):
    return Streams.from_arrays([[0.0, 1.0], [2.0]], [[[1.0], [2.0]], [[3.0]]], ids=["p", "q"], **options)


def test_one_path_for_all_is_cut_at_each_horizon():
    streams = two_series(horizon=[1.0, 4.0]).with_continuous(("u", "v"), [0, 2, 8], [[0, 1], [2, 1], [8, -5]])
    assert streams.schema.continuous == ("u", "v")
    times, values = streams.knots.of(0)
    assert times.tolist() == [0.0, 1.0]
    assert values.tolist() == [[0.0, 1.0], [1.0, 1.0]]
    times, values = streams.knots.of(1)
    assert times.tolist() == [0.0, 2.0, 4.0]
    assert values.tolist() == [[0.0, 1.0], [2.0, 1.0], [4.0, -1.0]]
    assert streams[1].knots.of(0)[0].tolist() == times.tolist()
    assert not streams.knots.values.flags.writeable


def test_a_path_for_each_series():
    streams = two_series().with_continuous(("u",), [[0.0, 2.0], [0.0, 1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0, 5.0]])
    assert streams.knots.offsets.tolist() == [0, 2, 5]
    assert streams.knots.values[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


knots = st.lists(st.floats(0.01, 0.99), max_size=6, unique=True).map(lambda inner: [0.0, *sorted(inner), 1.0])


@given(knots, knots, st.randoms())
@settings(max_examples=40, deadline=None)
def test_union_of_knots_changes_no_path(first, second, random):
    u = np.array([random.uniform(-1, 1) for _ in first])
    v = np.array([random.uniform(-1, 1) for _ in second])
    streams = Streams.from_arrays([[1.0]], [[[1.0]]])
    both = streams.with_continuous(("u",), first, u).with_continuous(("v",), second, v)
    assert both.knots.times.tolist() == sorted({*first, *second})
    grid = np.linspace(0, 1, 50)
    for column, (times, values) in enumerate(((first, u), (second, v))):
        merged = np.interp(grid, both.knots.times, both.knots.values[:, column])
        np.testing.assert_allclose(merged, np.interp(grid, times, values), atol=1e-12)
        own = np.isin(both.knots.times, times)
        assert both.knots.values[own, column].tolist() == values.tolist()


def test_knots_at_datetimes_and_durations():
    start = np.datetime64("2024-01-01T00", "s")
    hours = np.array([0, 4]).astype("timedelta64[h]")
    streams = Streams.from_arrays([start + hours, start + hours + 3600], [[[1.0], [2.0]]] * 2, origin=FirstStamp())
    by_duration = streams.with_continuous(("u",), [timedelta(0), timedelta(hours=4)], [0.0, 1.0])
    assert by_duration.knots.times.tolist() == [0.0, 4.0, 0.0, 4.0]
    each = [start + hours, start + hours + 3600]
    assert streams.with_continuous(("u",), each, [[0.0, 1.0]] * 2) == by_duration


@pytest.mark.parametrize(
    ("names", "times", "values", "parts"),
    [
        (("u",), [0.0, 1.0], [0.0, 1.0], ("Series 'p'", "'u'", "from 0.0 to 1.0", "horizon, 2.0")),
        (("u",), [0.5, 2.0], [0.0, 1.0], ("from 0.5", "start, 0.0")),
        (("u",), [-1.0, 2.0], [0.0, 1.0], ("from -1.0", "start, 0.0")),
        (("u",), [0.0, 2.0, 2.0], [0.0, 1.0, 1.0], ("knot 2.0 follows 2.0",)),
        (("u",), [0.0, 2.0], [0.0, np.nan], ("value that is missing or infinite",)),
        (("u",), [0.0, np.nan, 2.0], [0.0, 1.0, 2.0], ("knot that is missing",)),
        (("u", "v"), [0.0, 2.0], [0.0, 1.0], ("2 knots", "shape (2,)", "2 channel(s)")),
        (("u",), [0.0, 2.0], ["low", 1.0], ("'low'", "not a number")),
        (("u",), [], [], ("are none",)),
        (("u",), [[0.0, 2.0]], [[0.0, 1.0]], ("2 series", "1 lists of knots")),
        (("x1",), [0.0, 2.0], [0.0, 1.0], ("Two channels are named 'x1'",)),
        (("time",), [0.0, 2.0], [0.0, 1.0], ("'time' is taken",)),
        ("u", [0.0, 2.0], [0.0, 1.0], ("['u']",)),
    ],
)
def test_refused_knots(names, times, values, parts):
    with pytest.raises(StreamError) as caught:
        two_series().with_continuous(names, times, values)
    for part in parts:
        assert part in str(caught.value)
