"""What a fitted estimator is good for beside predictions: files, and series as they come in."""

import jax
import numpy as np
import pytest
from tests.estimators.series import QUICK, labels, streams, values

import logcde as lc
from logcde.errors import ArtefactError
from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor


@pytest.mark.parametrize("answers", [labels(), np.arange(24) % 2 + 7])
def test_classifiers_are_saved_and_loaded(tmp_path, answers):
    classifier = LogCDEClassifier(**QUICK).fit(streams(), answers)
    classifier.save(tmp_path / "mine")
    again = LogCDEClassifier.load(tmp_path / "mine")
    np.testing.assert_array_equal(again.predict_proba(streams(1)), classifier.predict_proba(streams(1)))
    np.testing.assert_array_equal(again.predict(streams(1)), classifier.predict(streams(1)))
    assert again.get_params() == classifier.get_params()
    assert again.choices_ == classifier.choices_
    assert again.history_ == classifier.history_
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {"model.json", "model.safetensors"}


def test_what_is_no_such_estimator_is_not_loaded(tmp_path):
    LogCDERegressor(**QUICK).fit(values()[..., 0], values()[:, -1, 0]).save(tmp_path / "mine")
    with pytest.raises(ArtefactError, match="holds a LogCDERegressor and not a LogCDEClassifier"):
        LogCDEClassifier.load(tmp_path / "mine")
    with pytest.raises(ArtefactError, match="exists already"):
        LogCDERegressor.load(tmp_path / "mine").save(tmp_path / "mine")


def test_a_classifier_is_served_online():
    classifier = LogCDEClassifier(**QUICK).fit(streams(missing=0.3), labels())
    online = classifier.online()
    for time, row in enumerate(values(1, 0.3)[0]):
        online.observe(float(time), row)
    probabilities = jax.nn.softmax(online.predict(at=8.0))
    np.testing.assert_allclose(probabilities, classifier.predict_proba(streams(1, 0.3)[:1])[0], rtol=1e-4)


def test_a_regressor_is_served_online_in_the_units_of_its_targets():
    regressor = LogCDERegressor(**QUICK).fit(streams(), 1000 + 10 * values()[:, -1, 0])
    online = regressor.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    np.testing.assert_allclose(online.predict(at=8.0), regressor.predict(streams(1)[:1]), rtol=1e-5)
    assert 900 < online.predict(at=8.0)[0] < 1100


def test_a_forecaster_is_served_online():
    forecaster = LogCDEForecaster(**QUICK).fit(streams())
    online = forecaster.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    expected = forecaster.predict(streams(1)[:1], at=[8.5])
    np.testing.assert_allclose(online.predict(at=8.5), expected[0, 0], rtol=1e-4, atol=1e-5)


def test_estimators_are_there_under_the_name_of_the_package():
    assert lc.estimators.LogCDEClassifier is LogCDEClassifier
