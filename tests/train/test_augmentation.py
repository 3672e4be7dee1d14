"""Copies as augmentation: which version of a series a batch holds, reproducibly, and never in validation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.errors import TrainingError
from logcde.train import Batching, dropped_copies
from logcde.train.data import BatchOrder, buckets_of, concatenated, copies_of, examples_of
from tests.train import toys

KEY = jax.random.key(7)


def copy(number):
    """The toy series with values that tell the copy."""
    data = toys.logsigs()
    valid = np.arange(8)[None, :, None] < toys.lengths()[:, None, None]
    return lc.LogSignatures(np.where(valid, 10.0 * number, 0.0) * np.ones_like(data.values), data.lengths, data.basis)


def train(copies, **options):
    given = {"size": 8, "optimiser": toys.OPTIMISER, "duration": lc.Steps(12), "every": lc.Steps(4), "key": KEY}
    return lc.fit(toys.model(), toys.logsigs(), toys.ends(), **toys.options(**{**given, "copies": copies, **options}))


def test_batches_hold_each_series_once_in_a_version_of_its_own():
    order = BatchOrder(sizes=(50, 30), batch=8, width=9, seed=(0, 1), versions=3)
    plain = BatchOrder(sizes=(50, 30), batch=8, width=9, seed=(0, 1))
    drawn = []
    for epoch in range(6):
        bucket, rows = order.epoch(epoch)
        expected_bucket, expected = plain.epoch(epoch)
        size = np.array(order.sizes)[bucket][:, None]
        np.testing.assert_array_equal(bucket, expected_bucket)
        np.testing.assert_array_equal(np.where(rows >= 0, rows % size, -1), expected)
        drawn.append((rows // size)[rows >= 0])
    share = np.bincount(np.concatenate(drawn), minlength=3) / (6 * 80)
    np.testing.assert_allclose(share, 1 / 3, atol=0.1)
    assert not np.array_equal(drawn[0], drawn[1])


def test_rows_of_a_bucket_are_the_versions_of_its_series():
    examples = examples_of(toys.model(), toys.logsigs(), toys.ends())
    versions = (examples, *copies_of(toys.model(), examples, [copy(1), copy(2)]))
    parts = [buckets_of(version, Batching(8)) for version in versions]
    for plain, *others in zip(*parts, strict=True):
        bucket = concatenated([plain, *others])
        assert len(bucket) == 3 * len(plain)
        for number in (1, 2):
            version = bucket[np.arange(len(plain)) + number * len(plain)]
            np.testing.assert_array_equal(version.targets, plain.targets)
            np.testing.assert_array_equal(version.inputs.length, plain.inputs.length)
            assert set(np.unique(version.inputs.logsigs)) <= {0.0, 10.0 * number}


def test_one_step_takes_the_drawn_versions():
    """All series in one batch: the loss of the step is that of the versions that the order draws."""
    copies = [copy(1), copy(2)]
    result = train(copies, size=64, buckets=1, duration=lc.Steps(1), validation=None)
    seed = tuple(np.asarray(jax.random.key_data(KEY)).ravel().tolist())
    _, rows = BatchOrder((toys.COUNT,), 64, 64, (*seed, 1), 3).epoch(0)
    series, version = rows[rows >= 0] % toys.COUNT, rows[rows >= 0] // toys.COUNT
    values = np.stack([one.values for one in (toys.logsigs(), *copies)])[version, series]
    drawn = lc.LogSignatures(values, toys.lengths()[series], toys.BASIS)
    assert len(set(version.tolist())) == 3
    assert result.history[0].loss == pytest.approx(lc.score(toys.model(), drawn, toys.ends()[series]), rel=1e-12)


def test_copies_that_equal_the_series_change_nothing():
    plain = train(())
    same = train([toys.logsigs(), toys.logsigs()])
    assert toys.same(plain.last, same.last)
    assert [one.validation for one in plain.history] == [one.validation for one in same.history]


def test_validation_is_on_the_series_themselves():
    result = train([copy(1)], validation=toys.HELD_OUT)
    held_out = toys.logsigs()[toys.HELD_OUT], toys.ends()[toys.HELD_OUT]
    expected = lc.score(result.last, *held_out, batching=Batching(8))
    assert result.history[-1].validation["mse"] == pytest.approx(expected, rel=1e-12)
    wild = np.array(copy(1).values)
    wild[toys.HELD_OUT] *= 1e6
    unseen = train([lc.LogSignatures(wild, toys.lengths(), toys.BASIS)], validation=toys.HELD_OUT)
    assert toys.same(result.last, unseen.last)


def test_resumed_run_draws_the_same_copies(tmp_path):
    copies = [copy(1), copy(2)]
    whole = train(copies)
    train(copies, duration=lc.Steps(5), every=lc.Steps(4), checkpoints=lc.Checkpoints(tmp_path))
    resumed = train(copies, checkpoints=lc.Checkpoints(tmp_path))
    assert toys.same(whole.last, resumed.last)
    with pytest.raises(lc.errors.CheckpointError, match="data was"):
        train([copy(1), copy(3)], checkpoints=lc.Checkpoints(tmp_path))


def test_copies_of_other_series_or_intervals_are_refused():
    data = toys.logsigs()
    with pytest.raises(TrainingError, match="Copy 1 does not have the series and intervals.*39 series"):
        train([data, data[:39]])
    shorter = lc.LogSignatures(data.values, np.maximum(data.lengths - 1, 1), data.basis)
    with pytest.raises(TrainingError, match="Copy 0 does not have the series and intervals"):
        train([shorter])


def test_dropped_copies_drop_more_in_each_channel():
    streams = lc.Streams.from_dense(np.random.default_rng(0).normal(size=(3, 20, 2)))
    embedding, partition = lc.Embedding(depth=1), lc.Partition.uniform(4)
    whole = embedding(streams, partition)
    few, many, again = dropped_copies(streams, embedding, partition, fractions=(0.2, 0.7, 0.7), seed=3)
    counts = [place for place, letter in enumerate(whole.basis.letters) if letter.startswith("#")]
    for logsigs, kept in ((whole, 20), (few, 16), (many, 6)):
        np.testing.assert_allclose(np.asarray(logsigs.values)[..., counts].sum(axis=1), kept)
        np.testing.assert_array_equal(logsigs.lengths, whole.lengths)
    assert not np.array_equal(many.values, again.values)
    repeated = dropped_copies(streams, embedding, partition, fractions=(0.2, 0.7, 0.7), seed=3)
    np.testing.assert_array_equal(repeated[1].values, many.values)
    model = lc.log_slice(whole.basis, 4, 1, key=jax.random.key(0))
    result = lc.fit(
        model, whole, np.arange(3.0), copies=(few, many), duration=lc.Steps(2), callbacks=(), key=KEY,
        selection=lc.train.Selection(validation=None),
    )  # fmt: skip
    assert bool(jnp.isfinite(result.last.initial.bias).all())
