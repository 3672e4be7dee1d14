"""Temperatures that are found again, at their minimum, and models that are divided by them."""

import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import TrainingError
from logcde.train import calibrated
from logcde.train.calibration import LARGEST, temperature_of
from tests.train import tasks

RNG = np.random.default_rng(0)


def draw(logits):
    """A class for each row, by its probabilities."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (raised.cumsum(axis=1) < RNG.uniform(size=(len(logits), 1)) * raised.sum(axis=1, keepdims=True)).sum(axis=1)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 8.0])
def test_what_was_put_in_is_found(temperature):
    logits = RNG.normal(size=(20_000, 4)) * 2
    assert temperature_of(logits * temperature, draw(logits)) == pytest.approx(temperature, rel=0.05)


@pytest.mark.parametrize("known", [6, 10])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_minimum_is_found_however_few_there_are(known, size):
    """Also where all are right, and probabilities of one would be the best for these few."""
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


def test_where_nothing_can_be_told():
    logits = RNG.normal(size=(10, 3))
    assert temperature_of(logits, logits.argmin(axis=1)) == pytest.approx(LARGEST)
    assert temperature_of(np.ones((10, 3)), np.zeros(10, int)) == 1.0


@pytest.mark.parametrize("readout", [lc.Terminal(), lc.PerInterval()])
def test_a_calibrated_model_is_a_model(tmp_path, readout):
    model = lc.log_slice(tasks.BASIS, hidden=4, outputs=3, block=1, readout=readout, key=jax.random.key(0))
    each = isinstance(readout, lc.PerInterval)
    labels = np.arange(tasks.COUNT * 8).reshape(-1, 8) % 3 if each else np.arange(tasks.COUNT) % 3
    sober = calibrated(model, tasks.logsigs(), labels)
    before, after = (np.asarray(lc.predict(one, tasks.logsigs())) for one in (model, sober))
    np.testing.assert_allclose(after, before * sober.weight, rtol=1e-12)
    sober.save(tmp_path / "model")
    np.testing.assert_array_equal(lc.predict(lc.load(tmp_path / "model"), tasks.logsigs()), after)
    both = lc.Sum([sober, sober])
    np.testing.assert_allclose(lc.predict(both, tasks.logsigs()), 2 * after, rtol=1e-12)
    lc.testing.check_model(sober)


def test_numbers_have_no_probabilities():
    model = lc.log_slice(tasks.BASIS, hidden=4, outputs=2, block=1, key=jax.random.key(0))
    with pytest.raises(TrainingError, match="are no class labels"):
        calibrated(model, tasks.logsigs(), tasks.ends())
    with pytest.raises(TrainingError, match="not finite"):
        temperature_of(np.array([[np.nan, 0.0]]), np.array([0]))
