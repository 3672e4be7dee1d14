"""Training on shards: the same bits as in memory, one shard in memory at a time, resumed and scored as `fit`."""

import jax
import numpy as np
import pytest

from logcde import Checkpoints, Embedding, Epochs, LogSignatures, Partition, Streams, fit, log_slice, losses
from logcde.algebra import Basis
from logcde.errors import TrainingError
from logcde.train import Batching, Selection, Shards, fit_shards
from logcde.train import shards as module

BASIS = Basis.of_width(2, 2)
SIZES = (40, 33, 27)


def part(series, seed, intervals=6):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, intervals + 1, series)
    values = rng.normal(size=(series, intervals, BASIS.dimension)).astype(np.float32)
    values[np.arange(intervals) >= lengths[:, None]] = 0
    return LogSignatures(values, lengths, BASIS), values.sum(axis=(1, 2))


def model():
    return log_slice(BASIS, hidden=4, block=2, outputs=1, key=jax.random.key(0))


def parameters(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result.last) if hasattr(leaf, "shape")]


def same(one, other):
    for a, b in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards") / "many"
    return Shards.write(folder, (part(size, seed, 4 + seed) for seed, size in enumerate(SIZES)))


def test_one_shard_gives_the_bits_of_fit(tmp_path):
    logsigs, targets = part(50, 0)
    options = {"duration": Epochs(3), "callbacks": (), "key": jax.random.key(3)}
    one = Shards.write(tmp_path / "one", [(logsigs, targets)])
    whole = fit(
        model(),
        logsigs,
        targets,
        batching=Batching(16, 1),
        selection=Selection(validation=(logsigs, targets)),
        **options,
    )
    streamed = fit_shards(model(), one, batch=16, validation=one, **options)
    same(whole, streamed)
    scores = [[look.validation for look in result.history] for result in (whole, streamed)]
    assert [one["mse"] for one in scores[0]] == pytest.approx([one["mse"] for one in scores[1]], rel=1e-6)
    assert whole.summary.validation_series == streamed.summary.validation_series == 50


def test_several_shards_give_the_bits_of_having_all_in_memory(shards, monkeypatch):
    options = {"batch": 16, "duration": Epochs(3), "callbacks": (), "key": jax.random.key(3)}
    streamed = fit_shards(model(), shards, **options)
    assert streamed.summary.steps == 3 * sum(-(-size // 16) for size in SIZES)

    reader = module.ShardReader
    monkeypatch.setattr(module, "ShardReader", lambda *given: _all_of(reader, *given))
    in_memory = fit_shards(model(), shards, **options)
    same(streamed, in_memory)


def _all_of(reader, shards, built, mesh):
    """All shards on the device at once, as `fit` has its buckets."""
    return tuple(reader(shards, built, mesh).at(number)[0] for number in range(len(shards)))


def test_each_epoch_reads_each_shard_once_and_one_at_a_time(shards, monkeypatch):
    read = []
    monkeypatch.setattr(Shards, "read", lambda self, number, of=Shards.read: read.append(number) or of(self, number))
    fit_shards(model(), shards, batch=16, duration=Epochs(4), callbacks=(), key=jax.random.key(3))
    turns = read[1:]  # the first one is that of the scaling
    assert len(turns) <= 4 * len(SIZES)
    assert {*turns} == {0, 1, 2}
    assert len({tuple(turns[first : first + 3]) for first in range(0, 9, 3)}) > 1


def test_an_interrupted_run_is_resumed(shards, tmp_path):
    options = {"batch": 16, "callbacks": (), "key": jax.random.key(3), "validation": shards}
    whole = fit_shards(model(), shards, duration=Epochs(4), **options)
    checkpoints = Checkpoints(tmp_path / "run", seconds=0.0)
    fit_shards(model(), shards, duration=Epochs(2), checkpoints=checkpoints, **options)
    resumed = fit_shards(model(), shards, duration=Epochs(4), checkpoints=checkpoints, **options)
    same(whole, resumed)
    assert len(resumed.history) == 4


def test_classes_and_metrics(tmp_path):
    logsigs, targets = part(30, 0)
    labels = (targets > 0).astype(int)
    one = Shards.write(tmp_path / "one", [(logsigs[:20], labels[:20]), (logsigs[20:], labels[20:])])
    classifier = log_slice(BASIS, hidden=4, block=2, outputs=2, key=jax.random.key(0))
    result = fit_shards(
        classifier,
        Shards.open(one.folder),
        loss=losses.cross_entropy,
        metrics=(losses.accuracy,),
        validation=one,
        duration=Epochs(2),
        callbacks=(),
        key=jax.random.key(1),
    )
    assert 0 <= result.history[-1].validation["accuracy"] <= 1


def test_embeddings_keep_first_observations_and_options(tmp_path):
    streams = Streams.from_arrays([[0.0, 1.0, 3.0]] * 4, [[[5.0], [6.0], [4.0]]] * 4)
    logsigs = Embedding(depth=2)(streams, Partition.uniform(2))
    Shards.write(tmp_path / "one", [(logsigs, np.zeros(4))])
    found, _ = Shards.open(tmp_path / "one").read(0)
    assert found.spec == logsigs.spec
    np.testing.assert_array_equal(found.initial.first, logsigs.initial.first)
    assert isinstance(found.values, np.memmap)


def test_what_is_refused(tmp_path, shards):
    with pytest.raises(TrainingError, match="exists"):
        Shards.write(shards.folder, [part(3, 0)])
    with pytest.raises(TrainingError, match="no shard at all"):
        Shards.write(tmp_path / "none", [])
    other = LogSignatures(np.ones((2, 3, 2)), np.full(2, 3), Basis.of_width(2, 1))
    with pytest.raises(TrainingError, match="Embed all parts with the same options"):
        Shards.write(tmp_path / "two", [part(3, 0), (other, np.zeros(2))])
    with pytest.raises(TrainingError, match="has no index of shards"):
        Shards.open(tmp_path)
    assert list(tmp_path.iterdir()) == []
    made = Shards.write(tmp_path / "cut", [part(9, 0)])
    (made.folder / "00000-targets.npy").write_bytes(b"no array")
    with pytest.raises(TrainingError, match=r"00000-targets.npy cannot be read"):
        made.read(0)
