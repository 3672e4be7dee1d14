"""Scores of tasks are those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from logcde.cli.tasks import classification_scores, regression_scores


@pytest.mark.parametrize("count", [2, 3])
def test_classification_scores_match_scikit_learn(count):
    rng = np.random.default_rng(count)
    classes = list("abc"[:count])
    probabilities = rng.dirichlet(np.ones(count), 50).round(1) + 0.01
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    truth = rng.choice(classes, 50)
    guess = np.array(classes)[probabilities.argmax(axis=1)]
    expected = {
        "accuracy": metrics.accuracy_score(truth, guess),
        "balanced accuracy": metrics.balanced_accuracy_score(truth, guess),
        "log loss": metrics.log_loss(truth, probabilities),
    }
    if count == 2:
        expected["auroc"] = metrics.roc_auc_score(truth == "b", probabilities[:, 1])
    assert classification_scores(truth.tolist(), probabilities, classes) == pytest.approx(expected)


def test_regression_scores_match_scikit_learn():
    truth, guess = np.random.default_rng(0).normal(size=(2, 30, 2))
    expected = {
        "mse": metrics.mean_squared_error(truth, guess),
        "mae": metrics.mean_absolute_error(truth, guess),
        "r2": metrics.r2_score(truth, guess),
    }
    assert regression_scores(truth, guess) == pytest.approx(expected)
    assert "r2" not in regression_scores(np.ones((3, 1)), guess[:3, :1])
