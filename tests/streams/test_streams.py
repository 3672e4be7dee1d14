"""The container: selection, concatenation, and what it refuses."""

from datetime import datetime

import numpy as np
import pytest

from logcde.errors import StreamError
from logcde.streams import Streams


def three():
    return Streams.from_arrays(
        [[0.0, 1.0], [0.5], [0.0, 2.0]], [[[1.0], [2.0]], [[3.0]], [[4.0], [5.0]]], ids=["p", "q", "r"]
    )


def test_slices_are_views():
    streams = three()
    assert np.shares_memory(streams[1:].value, streams.value)
    assert streams[1:].offsets.tolist() == [0, 1, 3]


def test_indexing_by_position_mask_and_array():
    streams = three()
    assert streams[np.int32(1)] == streams[1] == streams[-2]
    assert streams[np.array([2, 0], np.int32)].ids.tolist() == ["r", "p"]
    assert streams[(2, 2)].value.tolist() == [4.0, 5.0, 4.0, 5.0]
    assert len(streams[[]]) == len(streams[3:]) == len(streams[2:1]) == 0
    for key in (3, -4, [5]):
        with pytest.raises(IndexError):
            streams[key]
    with pytest.raises(IndexError, match="2 entries, but there are 3 series"):
        streams[[True, False]]


def test_arrays_are_read_only():
    streams = three()
    with pytest.raises(ValueError, match="read-only"):
        streams.times[0] = 1.0
    with pytest.raises(AttributeError):
        streams.times = np.zeros(5)


def test_synchronous():
    assert three().synchronous
    assert not Streams.from_arrays([[0.0, 1.0]], [[[1.0, np.nan], [1.0, 2.0]]]).synchronous


def test_concatenate_refuses_different_schemas():
    streams = three()
    with pytest.raises(StreamError, match="Part 1 has the channels"):
        Streams.concatenate([streams, Streams.from_arrays([[1.0]], [[[1.0]]], channels=["other"], ids=["s"])])
    with pytest.raises(StreamError, match="ids of part 1"):
        Streams.concatenate([streams, Streams.from_arrays([[1.0]], [[[1.0]]])])
    with pytest.raises(StreamError, match="nothing to concatenate"):
        Streams.concatenate([])
    days = [Streams.from_arrays([[datetime(2024, 1, day)]], [[[1.0]]], horizon=5) for day in (1, 2)]
    with pytest.raises(StreamError, match="Part 1 has the clock"):
        Streams.concatenate(days)
