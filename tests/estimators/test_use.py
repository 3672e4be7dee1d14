"""What a fitted estimator is good for beside predictions: files, and series as they come in."""

import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import ArtefactError, CheckpointError
from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor
from tests.estimators.series import QUICK, labels, streams, values


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


def test_probabilities_are_as_sure_as_right_where_series_were_held_out(tmp_path, monkeypatch):
    plain = LogCDEClassifier(**QUICK).fit(streams(), labels())
    assert plain.temperature_ == 1.0
    options = {**QUICK, "validation_fraction": 0.5}
    cool = LogCDEClassifier(**options).fit(streams(), labels())
    assert cool.temperature_ != 1.0
    monkeypatch.setattr("logcde.estimators.classifier.cooled", lambda model, temperature: model)
    warm = LogCDEClassifier(**options).fit(streams(), labels())
    assert warm.temperature_ == cool.temperature_
    assert cool.predict(streams(1)).tolist() == warm.predict(streams(1)).tolist()
    expected = jax.nn.softmax(np.log(warm.predict_proba(streams(1))) / cool.temperature_)
    np.testing.assert_allclose(cool.predict_proba(streams(1)), expected, rtol=1e-4)
    online = cool.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    np.testing.assert_allclose(jax.nn.softmax(online.predict(at=8.0)), expected[0], rtol=1e-4)
    cool.save(tmp_path / "mine")
    again = LogCDEClassifier.load(tmp_path / "mine")
    assert again.temperature_ == cool.temperature_
    np.testing.assert_array_equal(again.predict_proba(streams(1)), cool.predict_proba(streams(1)))


def test_a_fit_that_was_stopped_goes_on(tmp_path, monkeypatch):
    def fitted(**options):
        place = lc.Checkpoints(tmp_path / "kept", seconds=0.0)
        return LogCDEClassifier(**{**QUICK, "checkpoints": place, **options}).fit(streams(), labels())

    def stop(self, content, step):
        save(self, content, step)
        if step >= 5:
            raise InterruptedError

    save = lc.Checkpoints.save
    with monkeypatch.context() as patch:
        patch.setattr(lc.Checkpoints, "save", stop)
        with pytest.raises(InterruptedError):
            fitted()
    with pytest.raises(CheckpointError, match="belongs to another run: optimiser was"):
        fitted(learning_rate=0.02)
    whole = LogCDEClassifier(**QUICK).fit(streams(), labels())
    np.testing.assert_array_equal(fitted().predict_proba(streams(1)), whole.predict_proba(streams(1)))
    fitted().save(tmp_path / "mine")
    assert LogCDEClassifier.load(tmp_path / "mine").checkpoints is None


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
