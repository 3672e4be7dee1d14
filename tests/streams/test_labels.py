"""Codes of labels."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import StreamError
from logcde.streams import KeepLast, Streams
from logcde.streams.labels import encode, factorise, read_row


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


LARGE = 2**60 + 1
WHOLE = {"series": [0, 0, 0], "time": [0.0, 1.0, 2.0], "channel": ["a", "a", "a"], "value": [1, LARGE, None]}


@pytest.mark.parametrize("large", [LARGE, -LARGE, 2**63 + 5, 10**400], ids=["+", "-", "unsigned", "beyond floats"])
@pytest.mark.parametrize(
    "read",
    [
        lambda large: Streams.from_arrays([[0.0, 1.0]], [[[1], [large]]], ["a"]),
        lambda large: Streams.from_arrays([[0.0, 1.0]], [[[0.5], [large]]], ["a"]),
        lambda large: Streams.from_arrays([[0.0, 1.0]], [[[None, 1], [large, 2]]], ["a", "b"]),
        lambda large: Streams.from_dense([[[0.5], [large]]], channels=["a"]),
        lambda large: Streams.from_events([(0, 0.0, {"a": 0.5}), (0, 1.0, {"a": large})]),
    ],
    ids=["whole", "mixed", "missing", "dense", "events"],
)
def test_whole_numbers_that_floats_cannot_hold_are_refused(read, large):
    number = f"the value {large}" if large < 10**100 else "a number of more than 100 digits"
    with pytest.raises(StreamError, match=f"^Series 0, channel 'a', at 1(.0)? has {number}, too large for float"):
        read(large)


def in_pandas(columns):
    return pandas.DataFrame({**columns, "value": pandas.array(columns["value"], "Int64")})


@pytest.mark.parametrize("make", [polars.DataFrame, pyarrow.table, in_pandas])
def test_whole_numbers_beside_missing_ones_are_not_rounded(make):
    with pytest.raises(StreamError, match=f"at 1.0 has the value {LARGE}, too large for float64 to hold exactly"):
        Streams.from_frame(make(WHOLE))
    exact = Streams.from_frame(make({**WHOLE, "value": [1, 2**53, None]}))
    assert exact.value.tolist() == [1.0, 2.0**53]


@pytest.mark.parametrize("large", [LARGE, 2**63 + 5, 10**400], ids=["signed", "unsigned", "beyond floats"])
@pytest.mark.parametrize(
    "read",
    [
        lambda large: Streams.from_arrays([[0, large]], [[[1.0], [2.0]]]),
        lambda large: Streams.from_arrays([[0.5, large]], [[[1.0], [2.0]]]),
        lambda large: Streams.from_arrays([[0.5, 1.0]], [[[1.0], [2.0]]], horizon=large),
        lambda large: Streams.from_events([(0, 0.5, {"a": 0.5}), (0, large, {"a": 1.0})]),
    ],
    ids=["whole", "mixed", "horizon", "events"],
)
def test_stamps_that_floats_cannot_hold_are_refused(read, large):
    with pytest.raises(
        StreamError, match=r"too large for float64 to hold exactly.* If they count from 1970, read an array"
    ):
        read(large)


def test_ragged_rows_are_refused():
    with pytest.raises(StreamError, match="rows of an array have different lengths"):
        Streams.from_arrays([[0.0, 1.0]], [[[1.0, 2.0], [3.0]]])


def test_read_row_takes_numbers_by_channel_and_in_order():
    places = {"pulse": 0, "temp": 1}
    for values in (
        [61, None],
        {"pulse": 61},
        {"pulse": np.float32(61)},
        {"pulse": np.int64(61), "temp": None},
        np.array([61.0, np.nan]),
    ):
        np.testing.assert_array_equal(read_row(places, values), [61.0, np.nan])


def test_ids_beyond_64_bits_are_refused():
    for ids in ([10**400, 1], [2**64, 1]):
        with pytest.raises(StreamError, match="A series id is .*, too large for 64 bits. Give it as text"):
            Streams.from_dense(np.zeros((2, 3, 1)), ids=ids)


def test_nanoseconds_since_1970_are_read_to_the_user():
    stamps = np.array([1_700_000_000_000_000_001, 1_700_000_001_000_000_000])
    with pytest.raises(StreamError, match=r"reads as 2023-11-14T22:13:20 in nanoseconds since 1970.*datetime64\[ns\]"):
        Streams.from_arrays([stamps], [np.zeros((2, 1))])
    assert len(Streams.from_arrays([stamps.astype("datetime64[ns]")], [np.zeros((2, 1))]).times) == 2


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_masked_numbers_are_not_observed(kind):
    values = np.ma.array(np.arange(12).reshape(2, 3, 2).astype(kind), mask=np.arange(12).reshape(2, 3, 2) % 5 == 1)
    streams = Streams.from_dense(values)
    assert streams.value.tolist() == [x for x in range(12) if x % 5 != 1]
    one = Streams.from_arrays([np.arange(3)] * 2, list(values))
    assert one.value.tolist() == streams.value.tolist()
    late = np.ma.array(np.array([0.0, 1.0, 2.0]), mask=[False, False, True])
    with pytest.raises(StreamError):
        Streams.from_arrays([late], [np.zeros((3, 1))])
