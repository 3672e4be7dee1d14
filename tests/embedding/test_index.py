"""`LogSignatureIndex` agrees with the host engine on every interval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding, Partition, Streams
from logcde.errors import EmbeddingError, StreamError
from logcde.streams import Term

HORIZON = 10.0


def some_streams(rng, sizes=(2, 40, 300), terms=False):
    times = [np.unique(np.round(rng.uniform(0, HORIZON, n), 2)) for n in sizes]
    values = [np.where(rng.uniform(size=(len(t), 2)) < 0.6, rng.normal(size=(len(t), 2)), np.nan) for t in times]
    for rows in values:
        rows[np.isnan(rows).all(axis=1), 0] = 1.0
    areas = {Term("area", ("a", "b")): [rng.normal(size=len(t)) for t in times]} if terms else {}
    return times, values, Streams.from_arrays(times, values, ("a", "b"), HORIZON, terms=areas)


def some_queries(rng, series, count=40):
    bounds = np.sort(np.round(rng.uniform(0, HORIZON, (count, 2)), 2), axis=1)
    bounds[0] = 0.0, HORIZON
    bounds[:, 1] = np.where(bounds[:, 0] == bounds[:, 1], bounds[:, 1] + 0.01, bounds[:, 1])
    return rng.integers(0, series, count), bounds.clip(0, HORIZON)


def one_by_one(embedding, streams, series, bounds):
    return np.array(
        [
            embedding(streams[int(s)], Partition.at(pair, partial=True)).values[0, 0]
            for s, pair in zip(series, bounds, strict=True)
        ]
    )


def assert_close(got, expected):
    scale = 1.0 + np.abs(expected).max(axis=0)
    np.testing.assert_allclose(got / scale, expected / scale, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("counts", "time", "terms"), [(True, True, False), (False, True, True), (True, False, True)])
def test_index_query_matches_host_engine(depth, counts, time, terms):
    rng = np.random.default_rng(depth)
    _, _, streams = some_streams(rng, terms=terms)
    embedding = Embedding(depth, counts=counts, time=time)
    series, bounds = some_queries(rng, len(streams))
    got = embedding.index(streams).query(series, bounds[:, 0], bounds[:, 1])
    assert_close(got, one_by_one(embedding, streams, series, bounds))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([2, 3]), counts=st.booleans())
def test_index_append_correct_retract_match_host_engine(seed, depth, counts):
    rng = np.random.default_rng(seed)
    times, values, streams = some_streams(rng, sizes=(5, 150))
    embedding = Embedding(depth, counts=counts)
    index = embedding.index(streams)
    for _ in range(40):
        s = int(rng.integers(2))
        n = int(rng.integers(len(times[s])))
        match rng.integers(3):
            case 0 if len(times[s]) > 1:
                index.retract(s, times[s][n])
                times[s], values[s] = np.delete(times[s], n), np.delete(values[s], n, axis=0)
            case 1:
                channel = int(np.flatnonzero(~np.isnan(values[s][n]))[0])
                values[s][n, channel] = rng.normal()
                index.correct(s, times[s][n], {"ab"[channel]: values[s][n, channel]})
            case _ if times[s][-1] < 9.9:
                row = np.array([rng.normal(), np.nan])
                index.append(s, times[s][-1] + 0.01, {"a": row[0]})
                times[s], values[s] = np.append(times[s], times[s][-1] + 0.01), np.vstack([values[s], row])
    now = Streams.from_arrays(times, values, ("a", "b"), HORIZON)
    series, bounds = some_queries(rng, 2, count=12)
    assert_close(index.query(series, bounds[:, 0], bounds[:, 1]), one_by_one(embedding, now, series, bounds))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("width", "every"), [(2.0, 0.5), (0.7, 1.0), (1.3, 0.4), (20.0, 3.0)])
def test_index_sliding_matches_host_engine(depth, width, every):
    rng = np.random.default_rng(8)
    _, _, streams = some_streams(rng)
    embedding = Embedding(depth)
    ends, got = embedding.index(streams).sliding(2, width, every)
    np.testing.assert_allclose(ends, np.arange(1, len(ends) + 1) * every)
    assert HORIZON - every < ends[-1] <= HORIZON
    bounds = np.stack([np.maximum(ends - width, 0), ends], axis=1)
    assert_close(got, one_by_one(embedding, streams, np.full(len(ends), 2), bounds))


def test_index_append_grows_the_tree():
    rng = np.random.default_rng(9)
    times, values, _ = some_streams(rng, sizes=(200,))
    short = Streams.from_arrays([times[0][:1]], [values[0][:1]], ("a", "b"), 0.5 + times[0][0])
    index = Embedding().index(short)
    for time, row in zip(times[0][1:], values[0][1:], strict=True):
        index.append(0, time, {name: x for name, x in zip("ab", row, strict=True) if not np.isnan(x)})
    end = times[0][-1]
    whole = Streams.from_arrays(times, values, ("a", "b"), end)
    assert_close(index.query(0, [0.0], [end]), one_by_one(Embedding(), whole, [0], [[0.0, end]]))


def test_index_errors():
    _, _, streams = some_streams(np.random.default_rng(0))
    index = Embedding().index(streams)
    with pytest.raises(
        EmbeddingError, match=r"\[3.0, 2.0\) is not an interval within \[0, 10.0\], the span of series 1"
    ):
        index.query(1, 3.0, 2.0)
    with pytest.raises(EmbeddingError, match="no series number 7: the index has 3"):
        index.query(7, 0.0, 1.0)
    with pytest.raises(StreamError, match="no event at 3.14159 in series 2"):
        index.retract(2, 3.14159)
    with pytest.raises(StreamError, match="cannot be appended"):
        index.append(2, 0.0, {"a": 1.0})
    with pytest.raises(StreamError, match="no channel 'z'"):
        index.append(2, 11.0, {"z": 1.0})
    with pytest.raises(EmbeddingError, match="positive"):
        index.sliding(0, 1.0, 0.0)
    with_dose = streams.with_continuous(["c"], [0.0, HORIZON], [[0.0], [1.0]])
    with pytest.raises(EmbeddingError, match="only continuous channel, but these streams also have c"):
        Embedding().index(with_dose)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_index_in_order_does_not_depend_on_the_rest_of_the_series(depth):
    rng = np.random.default_rng(depth)
    times, values, streams = some_streams(rng, sizes=(300,))
    index, bounds = Embedding(depth).index(streams), np.array([[1.0, 9.0], [0.0, 5.0]])
    found = index.query([0, 0], bounds[:, 0], bounds[:, 1], in_order=True)
    assert_close(found, index.query([0, 0], bounds[:, 0], bounds[:, 1]))
    few = times[0] < 9.0
    part = Embedding(depth).index(Streams.from_arrays([times[0][few]], [values[0][few]], ("a", "b"), HORIZON))
    np.testing.assert_array_equal(part.query([0, 0], bounds[:, 0], bounds[:, 1], in_order=True), found)


def test_index_set_horizon_moves_the_end_of_a_series():
    index = Embedding(1).index(Streams.from_arrays([[1.0, 2.0]], [[[1.0], [3.0]]], horizon=5.0))
    index.set_horizon(0, 2.0)
    np.testing.assert_array_equal(
        index.query([0], [1.5], [2.0]), [[2.0, 1.0, 0.5]]
    )  # the event at the end belongs to it
    index.set_horizon(0, 9.0)
    np.testing.assert_array_equal(index.query([0], [1.5], [2.0]), [[0.0, 0.0, 0.5]])
    np.testing.assert_array_equal(index.query([0], [2.0], [9.0]), [[2.0, 1.0, 7.0]])
    for time in (1.9, np.inf, np.nan, 0.0):
        with pytest.raises(StreamError, match="last event is at 2.0"):
            index.set_horizon(0, time)
