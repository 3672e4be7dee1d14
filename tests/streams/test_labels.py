"""Codes of labels."""

import numpy as np
import polars
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.streams import KeepLast, Streams
from logcde.streams.labels import encode, factorise


@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))), st.booleans())
@settings(max_examples=60, deadline=None)
def test_factorise_in_order_of_first_appearance(numbers, ordered):
    numbers = sorted(numbers) if ordered else numbers
    codes, first = factorise(np.array(numbers, np.int64))
    expected, labels = encode(numbers)
    assert codes.tolist() == expected.tolist()
    assert [numbers[row] for row in first] == labels


def test_factorise_across_blocks():
    numbers = np.random.default_rng(0).integers(0, 150_000, 200_000)
    codes, first = factorise(numbers)
    expected, labels = encode(numbers.tolist())
    assert np.array_equal(codes, expected)
    assert numbers[first].tolist() == labels


def test_many_mixed_series_out_of_order():
    rng = np.random.default_rng(2)
    series, time = rng.integers(0, 100_000, 300_000), rng.integers(0, 50, 300_000)
    frame = polars.DataFrame({"series": series, "time": time, "channel": "a", "value": rng.normal(size=300_000)})
    streams = Streams.from_frame(frame, sort=True, duplicates=KeepLast())
    again = Streams.from_frame(frame.sort("series", "time", maintain_order=True), duplicates=KeepLast())
    order = np.argsort(streams.ids)
    assert streams[order] == again
