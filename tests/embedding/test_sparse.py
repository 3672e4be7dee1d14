"""Sparse log-signatures: those of the host engine to the bit, over the letters that move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Basis, Embedding, Partition, SoftBins, Streams, artefact
from logcde.embedding import SparseLogSignatures, SparseSteps
from logcde.errors import BasisError, EmbeddingError
from logcde.kernels import moved
from logcde.streams import Keep
from tests.embedding import strategies


def wide(series=12, observations=30, channels=9, seed=0):
    """Streams of asynchronous events; the last series has none."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 8, (series - 1, observations)))
    table = np.full((series - 1, observations, channels), np.nan)
    which = rng.integers(0, channels, (series - 1, observations))
    np.put_along_axis(table, which[..., None], rng.normal(size=(series - 1, observations, 1)), axis=2)
    return Streams.from_arrays([*times, []], [*table, np.zeros((0, channels))], horizon=8.0, empty=Keep())


def assert_same(sparse, dense):
    found = sparse.dense()
    np.testing.assert_array_equal(found.values, dense.values)
    np.testing.assert_array_equal(found.lengths, dense.lengths)
    assert found.basis == dense.basis
    assert found.spec == dense.spec


@given(st.data())
@settings(deadline=None)
def test_sparse_is_dense_to_the_bit(data):
    streams = data.draw(strategies.streams(continuous=True, terms=True))
    partition, embedding = data.draw(strategies.partitions(streams)), data.draw(strategies.embeddings)
    assert_same(embedding(streams, partition, sparse=True), embedding(streams, partition))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"counts": False}, {"time": False}, {"roughness": True}, {"bins": True}])
def test_sparse_is_dense_to_the_bit_on_several_threads(depth, options, monkeypatch):
    monkeypatch.setattr("logcde.kernels.threads.SMALL", 1)
    streams = wide()
    bins = SoftBins.fit(streams) if options.pop("bins", False) else None
    embedding, partition = Embedding(depth, soft_bins=bins, **options), Partition.every(1.0)
    sparse = embedding(streams, partition, sparse=True, threads=2)
    assert_same(sparse, embedding(streams, partition))
    assert sparse.density < 0.5


def test_many_letters_are_found_in_order():
    partition, embedding = Partition.every(2.0), Embedding(2)
    many = wide(series=3, observations=400, channels=60)
    found = embedding(many, partition, sparse=True)
    assert found.counts.max() > moved.FEW
    assert_same(found, embedding(many, partition))


def test_only_letters_that_move_are_kept():
    streams = Streams.from_events(
        [("p", 0.5, {"b": 2.0}), ("p", 1.5, {"c": 1.0})], channels=("a", "b", "c"), horizon=3.0
    )
    found = Embedding(2)(streams, Partition.every(1.0), sparse=True)
    assert [found.basis.letters[letter] for letter in found.letters] == ["b", "#b", "time", "c", "#c", "time", "time"]
    assert found.counts.tolist() == [3, 3, 1]
    assert found.level(1).tolist() == [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert found.basis.labels[found.positions()[4]] == "[b, time]"


def test_no_series_and_no_letters():
    streams = wide()
    nothing = Embedding(2)(streams[:0], Partition.every(1.0), sparse=True)
    assert len(nothing) == 0
    assert len(nothing.dense()) == 0
    silent = Embedding(2, time=False)(streams[-1:], Partition.every(1.0), sparse=True)
    assert silent.counts.tolist() == [0] * 8
    assert not silent.dense().values.any()


@pytest.mark.parametrize("chosen", [slice(2, 5), [3, 0, 3], np.arange(12) % 2 == 0, np.array([-1])])
def test_series_are_chosen_as_those_of_dense_ones(chosen):
    streams = wide()
    partition = Partition.at([[0.0, 1.0 + s / 20, *([4.0] if s % 2 else []), 8.0] for s in range(12)])
    sparse, dense = (Embedding(2)(streams, partition, sparse=kind) for kind in (True, False))
    few, all_few = sparse[chosen], dense[chosen]
    np.testing.assert_array_equal(few.dense().values, all_few.values[:, : max(all_few.lengths)])
    np.testing.assert_array_equal(few.initial.first, all_few.initial.first)


def test_arithmetic_is_that_of_dense_ones():
    partition, embedding = Partition.every(1.0), Embedding(3)
    (one, dense_one), (other, dense_other) = (
        [embedding(wide(seed=seed), partition, sparse=kind) for kind in (True, False)] for seed in (0, 1)
    )
    np.testing.assert_array_equal((one + other).dense().values, (dense_one + dense_other).values)
    np.testing.assert_array_equal((2.0 * one - other).dense().values, (2.0 * dense_one - dense_other).values)
    with pytest.raises(EmbeddingError, match="cannot be combined"):
        one + dense_one
    with pytest.raises(EmbeddingError, match="numbers of intervals differ"):
        one + one[:3]
    with pytest.raises(BasisError, match="their depths differ"):
        one + Embedding(2)(wide(), partition, sparse=True)


def test_sparse_form_of_dense_ones():
    dense = Embedding(3)(wide(), Partition.every(1.0))
    found = SparseLogSignatures.of(dense)
    assert_same(found, dense)
    assert len(found.values) < dense.values.size / 4


def test_saved_and_loaded(tmp_path):
    logsigs = Embedding(2)(wide(), Partition.every(1.0), sparse=True)
    artefact.save(logsigs, tmp_path / "logsigs")
    assert_same(artefact.load(tmp_path / "logsigs"), logsigs.dense())


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(EmbeddingError, match="2 letters and 2 coordinates do not fit"):
        SparseLogSignatures(np.ones(2), np.array([0, 1]), np.array([2]), np.array([1]), Basis(("a", "b"), 2))


def one_series(logsigs, number):
    return jax.tree.map(lambda leaf: leaf[number], SparseSteps.of(logsigs, np.float64))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_steps_know_words_and_padded_coordinates(depth):
    logsigs = Embedding(depth)(wide(observations=12), Partition.every(2.0), sparse=True)
    dense, basis = logsigs.dense(), logsigs.basis
    for number in (0, 4, len(logsigs) - 1):
        steps = one_series(logsigs, number)
        own = logsigs[[number]]
        words = np.asarray(steps.words())
        expected = [basis.words[place] for place in own.positions()]
        assert [tuple(word[word >= 0].tolist()) for word in words[: len(expected)]] == expected
        assert (words[len(expected) :] == -1).all()
        letters, coordinates = map(np.asarray, steps.padded())
        local = Basis.of_width(steps.most, depth)
        for interval in range(steps.intervals):
            rows = np.zeros(basis.dimension)
            for place in np.flatnonzero(coordinates[interval]):
                word = tuple(letters[interval][list(local.words[place])].tolist())
                rows[basis.words.index(word)] = coordinates[interval, place]
            np.testing.assert_array_equal(rows, dense.values[number, interval])
            single = steps.interval(jnp.asarray(interval, jnp.int32))
            np.testing.assert_array_equal(single.level_one()[0], dense.values[number, interval, : basis.width])
        np.testing.assert_array_equal(steps.level_one(), dense.values[number, :, : basis.width])


def test_pairs_are_numbered_right_for_hundreds_of_letters():
    """Square roots in single precision decide the row of a pair; they are mended by comparisons."""
    count = 600
    basis = Basis.of_width(count, 2)
    values = np.zeros(basis.dimension)
    logsigs = SparseLogSignatures(values, np.arange(count), np.array([count]), np.array([1]), basis)
    words = np.asarray(one_series(logsigs, 0).words())[count:]
    np.testing.assert_array_equal(words, np.stack(np.triu_indices(count, 1), axis=1))


def test_padding_to_one_size():
    logsigs = Embedding(2)(wide(), Partition.every(1.0), sparse=True)
    small, large = SparseSteps.of(logsigs[:3], np.float64), SparseSteps.of(logsigs, np.float64)
    alike = SparseSteps.of_one_size([small, large])
    assert alike[0].values.shape[1] == alike[1].values.shape[1]
    np.testing.assert_array_equal(alike[0].values, alike[1].values[:3])
    cropped = large.cropped(2)
    assert cropped.counts.shape == (12, 2)
    assert cropped.needs()[2].max() == cropped.values.shape[1]
