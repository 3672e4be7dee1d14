"""Temperatures that are found again, at their minimum, and models that are divided by them."""

import jax
import numpy as np
import pytest
from tests.train import tasks

import logcde as lc
from logcde.errors import TrainingError
from logcde.train import calibrated
from logcde.train.calibration import temperature_of

RNG = np.random.default_rng(0)


def draw(logits):
    """A class for each row, by its probabilities."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (raised.cumsum(axis=1) < RNG.uniform(size=(len(logits), 1)) * raised.sum(axis=1, keepdims=True)).sum(axis=1)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 8.0])
def test_what_was_put_in_is_found(temperature):
    logits = RNG.normal(size=(20_000, 4)) * 2
    assert temperature_of(logits * temperature, draw(logits)) == pytest.approx(temperature, rel=0.05)


@pytest.mark.parametrize("right", [0, 5, 10])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_minimum_is_found_however_few_there_are(right, size):
    """Also where without a prior there would be none, since all are right or all are wrong."""
    logits = RNG.normal(size=(10, 3)) * size
    labels = logits.argmax(axis=1)
    labels[right:] = logits[right:].argmin(axis=1)

    def objective(temperature):
        scaled = logits / temperature
        chosen = scaled[np.arange(10), labels] - scaled.max(axis=1)
        normal = np.log(np.exp(scaled - scaled.max(axis=1, keepdims=True)).sum(axis=1))
        return (normal - chosen).sum() + 1 / temperature + np.log(temperature)

    found = temperature_of(logits, labels)
    assert objective(found) < min(objective(found * 1.01), objective(found / 1.01))


@pytest.mark.parametrize("readout", [lc.Terminal(), lc.EachInterval()])
def test_a_calibrated_model_is_a_model(tmp_path, readout):
    model = lc.LogSLiCE(tasks.BASIS, hidden=4, outputs=3, block=1, readout=readout, key=jax.random.key(0))
    each = isinstance(readout, lc.EachInterval)
    labels = np.arange(tasks.COUNT * 8).reshape(-1, 8) % 3 if each else np.arange(tasks.COUNT) % 3
    sober = calibrated(model, tasks.logsigs(), labels)
    before, after = (np.asarray(lc.predict_all(one, tasks.logsigs())) for one in (model, sober))
    np.testing.assert_allclose(after, before * sober.weight, rtol=1e-12)
    sober.save(tmp_path / "model")
    np.testing.assert_array_equal(lc.predict_all(lc.load(tmp_path / "model"), tasks.logsigs()), after)
    both = lc.Sum([sober, sober])
    np.testing.assert_allclose(lc.predict_all(both, tasks.logsigs()), 2 * after, rtol=1e-12)
    lc.testing.check_model(sober)


def test_numbers_have_no_probabilities():
    model = lc.LogSLiCE(tasks.BASIS, hidden=4, outputs=2, block=1, key=jax.random.key(0))
    with pytest.raises(TrainingError, match="are no class labels"):
        calibrated(model, tasks.logsigs(), tasks.ends())
    with pytest.raises(TrainingError, match="not finite"):
        temperature_of(np.array([[np.nan, 0.0]]), np.array([0]))
