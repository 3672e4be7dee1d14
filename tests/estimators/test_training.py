import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import CheckpointError
from logcde.estimators import LogCDEClassifier, LogSLiCE
from tests.estimators.series import QUICK, labels, streams, values


def test_temperature_is_fitted_to_held_out_series(tmp_path, monkeypatch):
    plain = LogCDEClassifier(**QUICK).fit(streams(), labels())
    assert "temperature" not in plain.choices_
    options = {**QUICK, "learner": LogSLiCE(steps=20, validation=0.5)}
    calibrated = LogCDEClassifier(**options).fit(streams(), labels())
    temperature = calibrated.choices_["temperature"].value
    assert temperature != 1.0
    monkeypatch.setattr("logcde.estimators.learners.gradients.with_temperature", lambda model, temperature: model)
    raw = LogCDEClassifier(**options).fit(streams(), labels())
    assert calibrated.predict(streams(1)).tolist() == raw.predict(streams(1)).tolist()
    expected = jax.nn.softmax(np.log(raw.predict_proba(streams(1))) / temperature)
    np.testing.assert_allclose(calibrated.predict_proba(streams(1)), expected, rtol=1e-3)
    online = calibrated.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    np.testing.assert_allclose(jax.nn.softmax(online.predict(at=8.0)), expected[0], rtol=1e-3)
    calibrated.save(tmp_path / "mine")
    again = LogCDEClassifier.load(tmp_path / "mine")
    np.testing.assert_array_equal(again.predict_proba(streams(1)), calibrated.predict_proba(streams(1)))


def test_interrupted_fit_is_resumed(tmp_path, monkeypatch):
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
        fitted(learner=LogSLiCE(steps=20, rate=0.02))
    whole = LogCDEClassifier(**QUICK).fit(streams(), labels())
    np.testing.assert_array_equal(fitted().predict_proba(streams(1)), whole.predict_proba(streams(1)))
    fitted().save(tmp_path / "mine")
    assert LogCDEClassifier.load(tmp_path / "mine").checkpoints is None


def test_second_fit_of_same_shape_compiles_nothing(caplog):
    LogCDEClassifier(**QUICK).fit(values(), labels()).predict(values())
    with jax.log_compiles(), caplog.at_level("WARNING"):
        LogCDEClassifier(learner=LogSLiCE(steps=20), random_state=3).fit(3 * values(2) + 1, labels(2)).predict(
            values(1)[:5]
        )
    compiled = [one.getMessage() for one in caplog.records if "Finished XLA compilation" in one.getMessage()]
    assert not [one for one in compiled if "run" in one or "one_by_one" in one], compiled
