import pickle

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from logcde.estimators import LogCDEClassifier, LogCDERegressor, Neural, Slice
from tests.estimators.series import COUNT, QUICK, labels, streams, values


def test_streams_go_through_cross_validation():
    scores = cross_val_score(LogCDEClassifier(**QUICK), streams(), labels(), cv=2, error_score="raise")
    assert scores.shape == (2,)


def test_parameters_are_searched():
    grid = {"learning_rate": [1e-2, 1e-3], "model": [Slice()]}
    search = GridSearchCV(LogCDEClassifier(**QUICK), grid, cv=2, error_score="raise").fit(streams(), labels())
    assert search.best_params_["model"] == Slice()
    assert search.predict(streams()).shape == (COUNT,)


def test_streams_are_split():
    train, test, answers, _ = train_test_split(streams(), labels(), random_state=0)
    assert LogCDEClassifier(**QUICK).fit(train, answers).predict(test).shape == (len(test),)


def test_pipelines():
    flat = make_pipeline(StandardScaler(), LogCDERegressor(**QUICK)).fit(values()[..., 0], values()[:, -1, 0])
    assert flat.predict(values()[..., 0]).shape == (COUNT,)
    deep = make_pipeline(FunctionTransformer(np.negative), LogCDERegressor(**QUICK)).fit(values(), values()[:, -1, 0])
    assert deep.predict(values()).shape == (COUNT,)


def test_parameters_are_kept_and_cloned():
    classifier = LogCDEClassifier(depth=2, model=Neural(hidden=8))
    copy = clone(classifier.set_params(batch_size=16))
    assert copy.get_params() == classifier.get_params()
    assert copy.get_params()["batch_size"] == 16


def test_the_same_random_state_gives_the_same_predictions():
    def found(random_state):
        return LogCDEClassifier(max_iter=20, random_state=random_state).fit(values(), labels()).predict_proba(values())

    np.testing.assert_array_equal(found(0), found(0))
    np.testing.assert_array_equal(found(np.random.RandomState(7)), found(np.random.RandomState(7)))
    assert (found(0) != found(1)).any()


def test_other_architectures():
    model = Neural(hidden=8, width=8, layers=1)
    classifier = LogCDEClassifier(model=model, **QUICK).fit(values(), labels())
    assert np.isfinite(classifier.predict_proba(values())).all()


@pytest.mark.parametrize("answers", [np.arange(COUNT) % 3 == 0, np.arange(COUNT) % 2 - 5, np.arange(COUNT) % 2 * 1.0])
def test_labels_of_any_kind_come_back(answers):
    classifier = LogCDEClassifier(**QUICK).fit(values(), answers)
    np.testing.assert_array_equal(classifier.classes_, np.unique(answers))
    assert classifier.predict(values()).dtype == answers.dtype


def test_a_fit_of_equal_shape_compiles_nothing(caplog):
    LogCDEClassifier(**QUICK).fit(values(), labels()).predict(values())
    with jax.log_compiles(), caplog.at_level("WARNING"):
        LogCDEClassifier(max_iter=20, random_state=3).fit(3 * values(2) + 1, labels(2)).predict(values(1)[:5])
    compiled = [one.getMessage() for one in caplog.records if "Finished XLA compilation" in one.getMessage()]
    assert not [one for one in compiled if "run" in one or "one_by_one" in one], compiled


def test_fitted_estimators_are_pickled():
    classifier = LogCDEClassifier(**QUICK).fit(streams(), labels())
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(streams(1)), classifier.predict_proba(streams(1)))
