import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from logcde.estimators import LogCDEClassifier, LogCDERegressor, LogNCDE, LogSLiCE, WindowRidge
from tests.estimators.series import COUNT, QUICK, labels, streams, values


def test_cross_val_score_of_streams():
    scores = cross_val_score(LogCDEClassifier(**QUICK), streams(), labels(), cv=2, error_score="raise")
    assert scores.shape == (2,)


def test_grid_search():
    grid = {"learner": [LogSLiCE(steps=5), WindowRidge(units=10)]}
    search = GridSearchCV(LogCDEClassifier(**QUICK), grid, cv=2, error_score="raise").fit(streams(), labels())
    assert search.best_params_["learner"] in grid["learner"]
    assert search.predict(streams()).shape == (COUNT,)


def test_train_test_split_of_streams():
    train, test, targets, _ = train_test_split(streams(), labels(), random_state=0)
    assert LogCDEClassifier(**QUICK).fit(train, targets).predict(test).shape == (len(test),)


def test_make_pipeline():
    flat = make_pipeline(StandardScaler(), LogCDERegressor(**QUICK)).fit(values()[..., 0], values()[:, -1, 0])
    assert flat.predict(values()[..., 0]).shape == (COUNT,)
    deep = make_pipeline(FunctionTransformer(np.negative), LogCDERegressor(**QUICK)).fit(values(), values()[:, -1, 0])
    assert deep.predict(values()).shape == (COUNT,)


def test_clone_keeps_parameters():
    classifier = LogCDEClassifier(learner=LogNCDE(hidden=8, depth=2))
    copy = clone(classifier.set_params(class_weight="balanced"))
    assert copy.get_params() == classifier.get_params()
    assert copy.get_params()["learner"] == LogNCDE(hidden=8, depth=2)


def test_random_state_determines_predictions():
    def found(random_state):
        return (
            LogCDEClassifier(learner=LogSLiCE(steps=20), random_state=random_state)
            .fit(values(), labels())
            .predict_proba(values())
        )

    np.testing.assert_array_equal(found(0), found(0))
    np.testing.assert_array_equal(found(np.random.RandomState(7)), found(np.random.RandomState(7)))
    assert (found(0) != found(1)).any()


def test_neural_architecture():
    learner = LogNCDE(hidden=8, width=8, layers=1, steps=5)
    classifier = LogCDEClassifier(learner=learner, random_state=0).fit(values(), labels())
    assert np.isfinite(classifier.predict_proba(values())).all()


@pytest.mark.parametrize("targets", [np.arange(COUNT) % 3 == 0, np.arange(COUNT) % 2 - 5, np.arange(COUNT) % 2 * 1.0])
def test_classes_keep_dtype_of_labels(targets):
    classifier = LogCDEClassifier(**QUICK).fit(values(), targets)
    np.testing.assert_array_equal(classifier.classes_, np.unique(targets))
    assert classifier.predict(values()).dtype == targets.dtype


def test_pickle_of_fitted_estimator():
    classifier = LogCDEClassifier(**QUICK).fit(streams(), labels())
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(streams(1)), classifier.predict_proba(streams(1)))
