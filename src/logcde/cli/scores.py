"""How good predictions are, in the numbers that people expect: of classes, and of numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = np.finfo(np.float64).eps
"""A probability that is called zero counts as this, so that one sure mistake is not infinitely bad."""
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
    places = {one: number for number, one in enumerate(classes)}
    code = np.array([places.get(one, -1) for one in truth], np.int64)
    right = probabilities.argmax(axis=1) == code
    each = [right[[one == other for other in truth]].mean() for one in dict.fromkeys(truth)]
    scores = {"accuracy": right.mean(), "balanced accuracy": np.mean(each)}
    known = code >= 0
    if known.any():
        chance = probabilities[known, code[known]]
        scores["log loss"] = -np.log(np.clip(chance, LEAST, 1.0)).mean()
    if len(classes) == 2 and {0, 1} <= set(code.tolist()):
        scores["auroc"] = _area(probabilities[known, 1], code[known] == 1)
    return {name: float(score) for name, score in scores.items()}


def of_numbers(truth: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    """Scores of numbers (row, output), the mean over outputs; a truth that is NaN is not known.

    The coefficient of determination is left out where the truth does not vary.

    >>> of_numbers(np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [1.0], [7.0]]))
    {'mse': 0.5, 'mae': 0.5, 'r2': -1.0}
    """
    known = np.isfinite(truth)
    outputs = [(truth[seen, n], prediction[seen, n]) for n, seen in enumerate(known.T) if seen.any()]
    scores = {
        "mse": np.mean([np.square(a - b).mean() for a, b in outputs]),
        "mae": np.mean([np.abs(a - b).mean() for a, b in outputs]),
    }
    if all(a.std() > 0 for a, _ in outputs):
        scores["r2"] = np.mean([1.0 - np.square(a - b).mean() / a.var() for a, b in outputs])
    return {name: float(score) for name, score in scores.items()}


def _area(score: np.ndarray, positive: np.ndarray) -> float:
    """The chance that a positive one scores higher than a negative one; ties count half."""
    values, group = np.unique(score, return_inverse=True)
    count = np.bincount(group, minlength=len(values))
    rank = (np.cumsum(count) - (count - 1) / 2)[group]
    yes = int(positive.sum())
    return float((rank[positive].sum() - yes * (yes + 1) / 2) / (yes * (len(score) - yes)))
