import json

import numpy as np
import pytest

from logcde import estimators
from logcde.errors import ArtefactError
from logcde.estimators import DeepSLiCE, LogCDEClassifier, LogCDERegressor, WindowRidge
from logcde.models.heads import log_softmax
from tests.artefact.forging import sealed_again
from tests.estimators.series import QUICK, labels, streams, values


@pytest.mark.parametrize("targets", [labels(), np.arange(24) % 2 + 7])
def test_saved_classifier_predicts_the_same(tmp_path, targets):
    classifier = LogCDEClassifier(**QUICK).fit(streams(), targets)
    classifier.save(tmp_path / "mine")
    again = LogCDEClassifier.load(tmp_path / "mine")
    np.testing.assert_array_equal(again.predict_proba(streams(1)), classifier.predict_proba(streams(1)))
    np.testing.assert_array_equal(again.predict(streams(1)), classifier.predict(streams(1)))
    assert again.get_params() == classifier.get_params()
    assert again.choices_ == classifier.choices_
    assert again.history_ == classifier.history_
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {"model.json", "model.safetensors"}


def test_saved_deep_ensemble_predicts_the_same(tmp_path):
    learner = DeepSLiCE(hidden=4, layers=1, steps=5, members=2)
    classifier = LogCDEClassifier(learner=learner, random_state=0).fit(streams(missing=0.3), labels())
    classifier.save(tmp_path / "mine")
    again = LogCDEClassifier.load(tmp_path / "mine")
    np.testing.assert_array_equal(again.predict_proba(streams(1)), classifier.predict_proba(streams(1)))
    assert again.get_params() == classifier.get_params()
    online = again.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    expected = classifier.predict_proba(streams(1))[0]
    np.testing.assert_allclose(
        np.exp(log_softmax(online.predict(at=8.0)[None].astype(np.float64)))[0], expected, rtol=1e-4
    )


def test_load_refuses_another_class(tmp_path):
    LogCDERegressor(**QUICK).fit(values()[..., 0], values()[:, -1, 0]).save(tmp_path / "mine")
    with pytest.raises(ArtefactError, match="holds a LogCDERegressor and not a LogCDEClassifier"):
        LogCDEClassifier.load(tmp_path / "mine")
    assert isinstance(estimators.load(tmp_path / "mine"), LogCDERegressor)
    with pytest.raises(ArtefactError, match="exists already"):
        LogCDERegressor.load(tmp_path / "mine").save(tmp_path / "mine")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda stored: stored["learnt"]["mapping"]["classes_"]["mapping"].update(dtype="<U500000000"), "would take"),
        (lambda stored: stored["learnt"]["mapping"]["classes_"]["mapping"].update(dtype="nonsense"), "TypeError"),
        (lambda stored: stored["learnt"]["mapping"].update(classes_=[1, 2]), "TypeError"),
        (lambda stored: stored["parameters"]["mapping"].update(extra=1), "unexpected keyword"),
    ],
)
def test_load_refuses_forged_labels_and_parameters(change, said, tmp_path):
    LogCDEClassifier(learner=WindowRidge()).fit(streams(), labels()).save(tmp_path / "mine")
    file = tmp_path / "mine" / "model.json"
    document = json.loads(file.read_text())
    change(document["model"])
    file.write_bytes(sealed_again(document))
    with pytest.raises(ArtefactError, match=f"mine cannot be loaded as a LogCDEClassifier: .*{said}"):
        estimators.load(tmp_path / "mine")
