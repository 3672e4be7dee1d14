"""Bounds: wild series get class frequencies, one wrong label costs a few nats, numbers stay near those of training."""

import numpy as np
import pytest

from logcde.errors import ModelError
from logcde.estimators import LogCDEClassifier, LogCDERegressor, WindowBoosting, WindowRidge, WindowTrees, load
from logcde.features.abstract import strangeness_of
from logcde.models.bounds import ClassBounds, NumberBounds

QUICK = [WindowRidge(units=60), WindowTrees(trees=30), WindowBoosting(rounds=20, rate=0.2)]
NAMES = [type(one).__name__ for one in QUICK]


def waves(count, seed=0, missing=0.5):
    """Series of two classes that differ in the sign of a wave."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    values = np.sin(np.arange(24) / 2) * np.where(labels, 1, -1)[:, None] + 0.3 * rng.normal(size=(count, 24))
    values = np.stack([values, rng.normal(size=(count, 24))], axis=-1)
    values[:, 1:][rng.uniform(size=(count, 23, 2)) < missing] = np.nan
    return values, labels


def log_loss(probabilities, labels):
    return -np.log(probabilities[np.arange(len(labels)), labels]).mean()


@pytest.mark.parametrize("learner", QUICK, ids=NAMES)
def test_wild_series_get_the_class_frequencies(learner):
    values, labels = waves(60)
    further, truth = waves(60, seed=1)
    classifier = LogCDEClassifier(learner=learner, random_state=0).fit(values, labels)
    assert log_loss(classifier.predict_proba(further), truth) < 0.3
    with pytest.warns(UserWarning, match="far outside"):
        wild = classifier.predict_proba(-10 * further)  # the other class, at first sight
    assert log_loss(wild, truth) < 1.15 * np.log(2)


@pytest.mark.parametrize("learner", QUICK, ids=NAMES)
def test_one_wrong_label_costs_a_few_nats(learner):
    values, labels = waves(64, missing=0.0)
    probabilities = LogCDEClassifier(learner=learner, random_state=0).fit(values, labels).predict_proba(values)
    assert probabilities.min() >= 0.1 / 64 / 2 * 0.999
    assert probabilities[np.arange(64), labels].min() > 0.5


@pytest.mark.filterwarnings("ignore:.*far outside")
@pytest.mark.parametrize("learner", [QUICK[0], QUICK[2]], ids=["ridge", "boosting"])
def test_numbers_stay_near_those_of_training(learner):
    values, labels = waves(80)
    targets = np.exp(3 * values[:, 0, 0] * labels)
    regressor = LogCDERegressor(learner=learner, random_state=0).fit(values, targets)
    wild = np.concatenate([values * 5, values * -5])
    found = regressor.predict(wild)
    middle = np.median(targets)
    assert found.min() >= targets.min() - 0.25 * (middle - targets.min()) - 1e-9
    assert found.max() <= targets.max() + 0.25 * (targets.max() - middle) + 1e-9
    assert np.ptp(found) > 0


@pytest.mark.filterwarnings("ignore:.*far outside")
def test_wild_series_are_predicted_alike_offline_online_and_saved(tmp_path):
    values, labels = waves(40)
    classifier = LogCDEClassifier(learner=QUICK[0], random_state=0).fit(values, labels)
    wild = values[:1] * 3
    expected = classifier.model_(classifier._read_further(wild))[0]
    classifier.save(tmp_path / "model")
    saved = load(tmp_path / "model")
    np.testing.assert_array_equal(saved.predict_proba(wild), classifier.predict_proba(wild))
    online = saved.online()
    for step, row in enumerate(wild[0]):
        if step == 12:
            online = saved.online().restore(online.state())
        if np.isfinite(row).any():
            online.observe(float(step), row)
    end = 1 + np.flatnonzero(np.isfinite(wild[0]).any(axis=1))[-1]
    np.testing.assert_array_equal(online.predict(at=float(end)), expected)
    assert online.copy().predict(at=float(end)).tolist() == expected.tolist()


def test_few_observations_outside_of_the_range_count_little():
    bounds, few = ClassBounds(np.array([0.5, 0.5]), least=0.0), strangeness_of(np.array([1, 0]), np.array([60, 60]))
    found = np.exp(bounds(np.array([[0.0, 9.0], [0.0, 9.0]]), few))[:, 0]
    assert found[1] == pytest.approx(np.exp(-9) / (1 + np.exp(-9)))
    assert found[0] < 0.02


def test_impossible_bounds_are_refused():
    with pytest.raises(ModelError, match="Class frequencies"):
        ClassBounds(np.array([0.5, 0.6]), 0.1)
    with pytest.raises(ModelError, match="Class frequencies"):
        ClassBounds(np.array([0.5, 0.5]), -0.1)
    with pytest.raises(ModelError, match="clipped"):
        NumberBounds(1.0, 0.0)
