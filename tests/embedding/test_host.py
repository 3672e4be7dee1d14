"""The host engine against a slow dense reference, an independent library, and its own other kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding, LogSignatures, Partition, Schema, Streams
from logcde.embedding import host
from logcde.embedding.factors import events_of, factors_of, intervals_of
from logcde.errors import EmbeddingError
from logcde.kernels import threads
from tests.embedding.reference import CASES, plain, reference


def flat(logsigs):
    return np.concatenate([rows[:n] for rows, n in zip(logsigs.values, logsigs.lengths, strict=True)])


def assert_close(got, expected, accuracy=1e-12):
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(got / scale, expected / scale, atol=accuracy)


@pytest.mark.parametrize("case", CASES)
def test_host_matches_dense_reference(case):
    make, partition, depth, counts, time = CASES[case]
    streams, embedding = make(), Embedding(depth, counts=counts, time=time)
    expected = np.stack(list(reference(streams, partition, embedding.coordinates(streams.schema))))
    assert_close(flat(embedding(streams, partition)), expected)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("time", [True, False])
def test_host_dense_kernels_match_sparse_kernels(depth, counts, time):
    """Many lanes, of different lengths, some empty, more than go side by side, and the way without lanes."""
    rng = np.random.default_rng(depth)
    lengths = rng.integers(1, 40, 30)
    times = [np.sort(rng.choice(np.arange(100), n, replace=False)) / 99 for n in lengths]
    streams = Streams.from_arrays(times, [rng.normal(size=(n, 2)) for n in lengths], horizon=1.0)
    assert streams.synchronous
    points = [np.unique(np.r_[0, rng.integers(0, 99, rng.integers(1, 6)) / 99, 1]) for _ in lengths]
    cuts, embedding = Partition.at(points).cuts(streams), Embedding(depth, counts=counts, time=time)
    coordinates, intervals = embedding.coordinates(streams.schema), intervals_of(streams, cuts)
    dense, sparse = (np.full((intervals.size, coordinates.basis.dimension), np.nan) for _ in range(2))
    order = np.argsort(intervals.end - intervals.begin, kind="stable")
    host.compose_dense(events_of(streams), intervals, order, coordinates, dense)
    host.compose_factors(*factors_of(streams, intervals, coordinates), coordinates, sparse)
    assert_close(dense, sparse, 1e-11)
    np.testing.assert_array_equal(flat(embedding(streams, Partition.at(points))), dense)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_host_matches_iisignature(depth):
    iisignature = pytest.importorskip("iisignature")
    rng = np.random.default_rng(depth)
    values = rng.normal(size=(3, 24, 3))
    streams = Streams.from_dense(values)
    got = Embedding(depth, counts=False, time=False)(streams, Partition.every_events(8)).values
    based = np.concatenate([np.zeros((3, 1, 3)), values], axis=1)  # the base point
    prepared = iisignature.prepare(3, depth)
    for window in range(3):
        expected = iisignature.logsig(based[:, 8 * window : 8 * window + 9], prepared)
        assert_close(got[:, window], expected, 1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([1, 2, 3]), workers=st.integers(2, 4))
def test_host_is_independent_of_threads(seed, depth, workers):
    rng = np.random.default_rng(seed)
    times = [np.sort(rng.uniform(size=n)) for n in rng.integers(1, 30, 12)]
    values = [np.where(rng.uniform(size=(len(t), 3)) < 0.5, 1.0, np.nan) * rng.normal(size=(len(t), 3)) for t in times]
    for rows in values:
        rows[:, 0] = np.where(np.isnan(rows).all(axis=1), 1.0, rows[:, 0])
    streams = Streams.from_arrays(times, values, horizon=1.0)
    embedding, partition = Embedding(depth), Partition.uniform(5)
    alone = embedding(streams, partition, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "SMALL", 1)
        together = embedding(streams, partition, threads=workers)
    np.testing.assert_array_equal(alone.values, together.values)


def test_host_pads_shorter_series_with_zeros():
    streams = plain()
    logsigs = Embedding(depth=2)(streams, Partition.every(1.0))
    assert logsigs.lengths.tolist() == [4, 5, 4]
    assert logsigs.values.shape[:2] == (3, 5)
    assert (logsigs.values[[0, 2], 4] == 0).all()
    assert (logsigs.values[1, 4] != 0).any()


def test_host_interval_without_events_has_its_gap():
    streams = Streams.from_arrays([[0.5]], [[[3.0]]], horizon=3.0)
    values = Embedding(depth=2)(streams, Partition.uniform(3)).values[0]
    np.testing.assert_array_equal(values[1], [0, 0, 1, 0, 0, 0])
    assert not Embedding(depth=2, time=False)(streams, Partition.uniform(3)).values[0, 1:].any()


def test_host_simultaneous_channels_have_no_area():
    streams = Streams.from_arrays([[0.5]], [[[3.0, 4.0]]], horizon=1.0)
    logsigs = Embedding(depth=2)(streams, Partition.uniform(1))
    assert logsigs.values[0, 0, logsigs.basis.index("[x1, x2]")] == 0
    assert logsigs.values[0, 0, logsigs.basis.index("[x1, time]")] == 3.0 * (1.0 - 0.5) / 2 - 3.0 * 0.5 / 2


def test_host_smaller_depth_is_a_prefix():
    streams, partition = plain(), Partition.uniform(3)
    deep = Embedding(depth=3)(streams, partition)
    shallow = Embedding(depth=2)(streams, partition)
    assert deep.basis.truncate(2) == shallow.basis
    assert_close(deep.values[..., : shallow.basis.dimension], shallow.values)


@pytest.mark.parametrize("depth", [2, 3])
def test_host_single_precision_is_the_rounded_double(depth):
    streams, partition = plain(), Partition.uniform(3)
    double = Embedding(depth)(streams, partition).values
    single = Embedding(depth, dtype=np.float32)(streams, partition).values
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))


def test_host_without_series():
    logsigs = Embedding(depth=2)(plain()[:0], Partition.uniform(3))
    assert logsigs.values.shape == (0, 0, 15)


def test_embedding_refuses_bad_options():
    with pytest.raises(EmbeddingError, match="depth is 0"):
        Embedding(depth=0)
    with pytest.raises(EmbeddingError, match="float32 or float64"):
        Embedding(dtype=np.int32)
    with pytest.raises(EmbeddingError, match="2 coordinates do not fit"):
        LogSignatures(np.zeros((1, 1, 2)), np.array([1]), Embedding(depth=1).basis(Schema(("a",))))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_host_takes_values_in_single_precision(depth, missing):
    values = np.random.default_rng(0).normal(size=(9, 40, 3)).astype(np.float32)
    values[..., 1] += 1000.0
    if missing:
        values[:, ::3, 0] = np.nan
    single, double = Streams.from_dense(values), Streams.from_dense(values.astype(np.float64))
    assert single.value.dtype == np.float32
    assert single == double
    partition, embedding = Partition.every_events(7), Embedding(depth)
    np.testing.assert_array_equal(embedding(single, partition).values, embedding(double, partition).values)
    assert Streams.concatenate([single, double]).value.dtype == np.float64
