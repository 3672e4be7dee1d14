"""A process that fits the methods of other libraries, in an environment of its own (`peers.txt`).

Started by `experiments.defaults.peers` as `python -m experiments.defaults.peer_process`. Imports NumPy, scikit-learn,
aeon and `experiments.defaults.summaries`, nothing else of this project.

A line of JSON on standard input names a method, a seed and a folder with `series.npz`: `train` and `test`, (series,
channel, step) without gaps, and `labels`, the classes 0, 1, ... of the training series. The answer is `answer.npz` in
that folder with `probabilities` of the test series, and a line of JSON on standard output: seconds and versions, or
`error`. Nothing is pickled.
"""

import importlib.metadata
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.defaults.summaries import summarised

TREES = 500
SMALLEST_LEAF = 5
"""Training series in a leaf of boosted trees; 20, the default, is half of the smallest training part."""
WINDOWS = 15
"""Dyadic windows of aeon's SignatureClassifier: 1 + 2 + 4 + 8."""
DEEPEST, MOST_FEATURES = 4, 50_000
LIBRARIES = ("aeon", "numba", "numpy", "roughpy", "scikit-learn")


class OnSummaries:
    """A classifier of scikit-learn on the summaries of each series."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Train on summaries."""
        self.classifier.fit(summarised(X), y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the classes."""
        return self.classifier.predict_proba(summarised(X))


class RidgeScores:
    """A classifier of aeon that ends in a `RidgeClassifierCV`, with the softmax of its scores as probabilities.

    aeon itself gives the predicted class probability 1, whose log loss is infinite with one mistake.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Train."""
        self.classifier.fit(X, y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Softmax of the scores; of two classes, the scores are opposite."""
        return softmax(self.classifier.pipeline_.decision_function(X))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities from scores (series, class), or (series,) of the second of two classes.

    >>> softmax(np.array([0.0])).tolist()
    [[0.5, 0.5]]
    """
    columns = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    raised = np.exp(columns - columns.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def signature_depth(channels: int) -> int:
    """The depth of aeon's SignatureClassifier, 4 by default, or less if there are more than 50,000 features.

    >>> [signature_depth(channels) for channels in (3, 6, 12, 24)]
    [4, 4, 3, 2]
    """
    width = channels + 1  # aeon adds time
    counts = [WINDOWS * sum(width**level for level in range(1, depth + 1)) for depth in range(1, DEEPEST + 1)]
    return max(1, sum(count <= MOST_FEATURES for count in counts))


def _minirocket(channels: int, seed: int) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier  # pyright: ignore[reportMissingImports]

    return RidgeScores(MiniRocketClassifier(random_state=seed))


def _multirocket(channels: int, seed: int) -> Any:
    from aeon.classification.convolution_based import MultiRocketClassifier  # pyright: ignore[reportMissingImports]

    return RidgeScores(MultiRocketClassifier(random_state=seed))


def _signature(channels: int, seed: int) -> Any:
    from aeon.classification.feature_based import SignatureClassifier  # pyright: ignore[reportMissingImports]

    return SignatureClassifier(depth=signature_depth(channels), random_state=seed)


def _forest(channels: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return OnSummaries(RandomForestClassifier(TREES, random_state=seed))


def _boosting(channels: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return OnSummaries(HistGradientBoostingClassifier(min_samples_leaf=SMALLEST_LEAF, random_state=seed))


METHODS: dict[str, Callable[[int, int], Any]] = {
    "minirocket": _minirocket,
    "multirocket": _multirocket,
    "signature": _signature,
    "rf": _forest,
    "boosting": _boosting,
}
"""A classifier with `fit` and `predict_proba` for a number of channels and a seed, by the name of the method."""


def answer(method: str, seed: int, folder: str) -> dict[str, Any]:
    """Fit a method on the series in a folder and write the probabilities of the test series beside them."""
    with np.load(Path(folder) / "series.npz", allow_pickle=False) as given:
        train, test, labels = given["train"], given["test"], given["labels"]
    classifier = METHODS[method](train.shape[1], seed)
    began = time.process_time()
    classifier.fit(train, labels)
    fitted = time.process_time()
    probabilities = np.asarray(classifier.predict_proba(test), np.float64)
    ended = time.process_time()
    np.savez(Path(folder) / "answer.npz", probabilities=probabilities)
    return {"fit_seconds": fitted - began, "predict_seconds": ended - fitted, "versions": _versions()}


def warm_up(method: str) -> None:
    """Fit a method on a few small series, so that what it compiles is not counted later."""
    random = np.random.default_rng(0)
    classifier = METHODS[method](2, 0)
    classifier.fit(random.normal(size=(12, 2, 32)), np.arange(12) % 3)
    classifier.predict_proba(random.normal(size=(3, 2, 32)))


def main() -> None:
    """Answer requests until standard input ends; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warm: set[str] = set()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["method"] not in warm:
                warm_up(request["method"])
                warm.add(request["method"])
            found = answer(**request)
        except Exception:
            found = {"error": traceback.format_exc()}
        out.write(json.dumps(found) + "\n")
        out.flush()


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
