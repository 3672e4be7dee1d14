"""The calibration temperature: recovered from simulated labels, at the minimum of its loss, part of a saved model."""

import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import TrainingError
from logcde.train import calibrated
from logcde.train.calibration import LARGEST, temperature_of
from tests.train import toys

RNG = np.random.default_rng(0)


def draw(logits):
    """Draw a class for each row from its probabilities."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (raised.cumsum(axis=1) < RNG.uniform(size=(len(logits), 1)) * raised.sum(axis=1, keepdims=True)).sum(axis=1)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 8.0])
def test_temperature_of_simulated_labels_is_recovered(temperature):
    logits = RNG.normal(size=(20_000, 4)) * 2
    assert temperature_of(logits * temperature, draw(logits)) == pytest.approx(temperature, rel=0.05)


@pytest.mark.parametrize("known", [6, 10])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_temperature_minimises_the_loss_of_few_series(known, size):
    """Also if all are classified correctly, where probabilities of one would be the best for these few."""
    logits = RNG.normal(size=(10, 3)) * size
    labels = logits.argmax(axis=1)
    labels[known:] = logits[known:].argmin(axis=1)
    ordered = np.sort(logits, axis=1)
    every = np.vstack([logits, np.median(ordered - ordered[:, -1:], axis=0)])
    right = np.append(labels, np.argsort(every[-1])[-2])

    def loss(temperature):
        return -np.asarray(jax.nn.log_softmax(every / temperature))[np.arange(11), right].sum()

    found = temperature_of(logits, labels)
    assert loss(found) < min(loss(found * 1.01), loss(found / 1.01))


def test_temperature_of_uninformative_logits():
    logits = RNG.normal(size=(10, 3))
    assert temperature_of(logits, logits.argmin(axis=1)) == pytest.approx(LARGEST)
    assert temperature_of(np.ones((10, 3)), np.zeros(10, int)) == 1.0


@pytest.mark.parametrize("readout", [lc.Terminal(), lc.PerInterval()])
def test_calibrated_model_predicts_saves_and_passes_the_laws(tmp_path, readout):
    model = lc.log_slice(toys.BASIS, hidden=4, outputs=3, block=1, readout=readout, key=jax.random.key(0))
    each = isinstance(readout, lc.PerInterval)
    labels = np.arange(toys.COUNT * 8).reshape(-1, 8) % 3 if each else np.arange(toys.COUNT) % 3
    scaled = calibrated(model, toys.logsigs(), labels)
    before, after = (np.asarray(lc.predict(one, toys.logsigs())) for one in (model, scaled))
    np.testing.assert_allclose(after, before * scaled.weight, rtol=1e-12)
    scaled.save(tmp_path / "model")
    np.testing.assert_array_equal(lc.predict(lc.load(tmp_path / "model"), toys.logsigs()), after)
    both = lc.Sum([scaled, scaled])
    np.testing.assert_allclose(lc.predict(both, toys.logsigs()), 2 * after, rtol=1e-12)
    lc.testing.check_model(scaled)


def test_calibration_refuses_targets_that_are_not_classes():
    model = lc.log_slice(toys.BASIS, hidden=4, outputs=2, block=1, key=jax.random.key(0))
    with pytest.raises(TrainingError, match="are no class labels"):
        calibrated(model, toys.logsigs(), toys.ends())
    with pytest.raises(TrainingError, match="not finite"):
        temperature_of(np.array([[np.nan, 0.0]]), np.array([0]))


def test_shrinkage_pulls_the_temperature_of_few_series_to_one():
    logits = RNG.normal(size=(12, 3)) * 2
    for labels in (logits.argmax(axis=1), logits.argmin(axis=1)):
        distances = [abs(np.log(temperature_of(logits, labels, shrinkage=size))) for size in (1.0, 5.0, 25.0, 1e6)]
        assert distances == sorted(distances, reverse=True)
        assert distances[-1] < 1e-3
    many = RNG.normal(size=(20_000, 4)) * 2
    assert temperature_of(many * 3, draw(many), shrinkage=20.0) == pytest.approx(3.0, rel=0.05)


def test_shrinkage_adds_series_with_the_predicted_probabilities():
    logits, labels = RNG.normal(size=(9, 3)) * 2, RNG.integers(0, 3, 9)
    own = np.asarray(jax.nn.softmax(logits))

    def loss(temperature):
        logs = np.asarray(jax.nn.log_softmax(logits / temperature))
        return -logs[np.arange(9), labels].sum() - 6 / 9 * (own * logs).sum()

    found = temperature_of(logits, labels, shrinkage=6.0)
    assert loss(found) < min(loss(found * 1.01), loss(found / 1.01))


@pytest.mark.parametrize("shrinkage", [0.0, 5.0])
def test_weights_of_series_in_calibration(shrinkage):
    """Weights matter by their ratios: those of series of weight zero are as if the others were alone."""
    logits, labels = RNG.normal(size=(30, 3)) * 2, RNG.integers(0, 3, 30)
    equal = temperature_of(logits, labels, np.full(30, 7.0), shrinkage=shrinkage)
    assert equal == pytest.approx(temperature_of(logits, labels, shrinkage=shrinkage), rel=1e-9)
    wrong = logits.argmin(axis=1) == labels
    sure, unsure = (
        temperature_of(logits, labels, weights, shrinkage=shrinkage) for weights in (1 - 0.9 * wrong, 1 + 9 * wrong)
    )
    assert sure < equal < unsure


def test_calibrated_takes_weights_and_shrinkage():
    model = lc.log_slice(toys.BASIS, 4, 3, block=1, readout=lc.PerInterval(), key=jax.random.key(0))
    labels, weights = np.arange(toys.COUNT * 8).reshape(-1, 8) % 3, np.arange(toys.COUNT) % 4
    scaled = calibrated(model, toys.logsigs(), labels, weights=weights, shrinkage=8.0)
    logits = np.asarray(lc.predict(model, toys.logsigs()), np.float64)
    valid = np.arange(8) < toys.lengths()[:, None]
    repeated = np.repeat(weights[:, None], 8, axis=1)[valid]
    expected = temperature_of(logits[valid], labels[valid], repeated, shrinkage=8.0)
    assert 1 / scaled.weight == pytest.approx(expected, rel=1e-6)


def test_temperature_refuses_labels_and_options_that_make_no_sense():
    logits = np.zeros((3, 2))
    with pytest.raises(TrainingError, match="labels go from 0 to 2, but the logits are of 2 classes"):
        temperature_of(logits, np.array([0, 1, 2]))
    with pytest.raises(TrainingError, match="There are no series"):
        temperature_of(logits[:0], np.zeros(0, int))
    with pytest.raises(TrainingError, match="shrinkage=-1.0"):
        temperature_of(logits, np.array([0, 1, 1]), shrinkage=-1.0)
    with pytest.raises(TrainingError, match="one weight for each series"):
        temperature_of(logits, np.array([0, 1, 1]), np.ones(2))
