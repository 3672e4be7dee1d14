import numpy as np
import pytest

from logcde import estimators
from logcde.errors import ArtefactError
from logcde.estimators import LogCDEClassifier, LogCDERegressor
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


def test_load_refuses_another_class(tmp_path):
    LogCDERegressor(**QUICK).fit(values()[..., 0], values()[:, -1, 0]).save(tmp_path / "mine")
    with pytest.raises(ArtefactError, match="holds a LogCDERegressor and not a LogCDEClassifier"):
        LogCDEClassifier.load(tmp_path / "mine")
    assert isinstance(estimators.load(tmp_path / "mine"), LogCDERegressor)
    with pytest.raises(ArtefactError, match="exists already"):
        LogCDERegressor.load(tmp_path / "mine").save(tmp_path / "mine")
