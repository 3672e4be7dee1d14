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
