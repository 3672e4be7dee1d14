"""How good predictions are, in the numbers that people expect: of classes, and of numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

HIGHER = {"accuracy": True, "balanced accuracy": True, "log loss": False, "auroc": True}
HIGHER |= {"mse": False, "mae": False, "r2": True}
"""Whether more is better."""


def of_classes(truth: Sequence[Any], probabilities: np.ndarray, classes: Sequence[Any]) -> dict[str, float]:
    """Scores of probabilities (series, class). A class that is none of `classes` is never right.

    Log loss, and the area under the receiver operating characteristic, which is for two classes, are of the series
    whose class is known.

    >>> found = of_classes(["a", "b", "b"], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), ["a", "b"])
    >>> [f"{name} {value:.3f}" for name, value in found.items()]
    ['accuracy 0.667', 'balanced accuracy 0.750', 'log loss 0.415', 'auroc 1.000']
    """
    from sklearn.metrics import log_loss, recall_score, roc_auc_score

    places = {one: number for number, one in enumerate(classes)}
    code = np.array([places.get(one, -1) for one in truth], np.int64)
    found = probabilities.argmax(axis=1)
    each = recall_score(code, found, labels=np.unique(code), average="macro")
    scores = {"accuracy": (found == code).mean(), "balanced accuracy": each}
    known = code >= 0
    if known.any():
        scores["log loss"] = log_loss(code[known], probabilities[known], labels=np.arange(len(classes)))
    if len(classes) == 2 and {0, 1} <= set(code.tolist()):
        scores["auroc"] = roc_auc_score(code[known], probabilities[known, 1])
    return {name: float(score) for name, score in scores.items()}


def of_numbers(truth: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    """Scores of numbers (row, output), the mean over outputs; a truth that is NaN is not known.

    The coefficient of determination is left out where the truth does not vary.

    >>> of_numbers(np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [1.0], [7.0]]))
    {'mse': 0.5, 'mae': 0.5, 'r2': -1.0}
    """
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    known = np.isfinite(truth)
    outputs = [(truth[seen, n], prediction[seen, n]) for n, seen in enumerate(known.T) if seen.any()]
    scores = {
        "mse": np.mean([mean_squared_error(a, b) for a, b in outputs]),
        "mae": np.mean([mean_absolute_error(a, b) for a, b in outputs]),
    }
    if all(a.std() > 0 for a, _ in outputs):
        scores["r2"] = np.mean([r2_score(a, b) for a, b in outputs])
    return {name: float(score) for name, score in scores.items()}
