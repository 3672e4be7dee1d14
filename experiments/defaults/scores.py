"""Scores of predictions on the test part, by the names that tables show."""

import numpy as np
from jaxtyping import Float64, Int64
from sklearn.metrics import average_precision_score, roc_auc_score

from logcde.errors import ExperimentError

LEAST = 1e-15
"""Probabilities below this count as this."""


def classification_scores(
    probabilities: Float64[np.ndarray, "series class"],
    labels: Int64[np.ndarray, "series"],
    train_labels: Int64[np.ndarray, "more"],
) -> dict[str, float]:
    """Accuracy, log loss, that of the class frequencies in training, and the AUROC of two classes.

    >>> labels = np.array([0, 1])
    >>> classification_scores(np.array([[0.5, 0.5], [0.0, 1.0]]), labels, labels)["log loss"].__round__(3)
    0.347
    """
    if not np.isfinite(probabilities).all():
        raise ExperimentError("Some of the predicted probabilities are not finite.")
    classes = probabilities.shape[1]
    frequencies = np.bincount(train_labels, minlength=classes) / len(train_labels)
    found = {
        "accuracy": float(np.mean(probabilities.argmax(axis=1) == labels)),
        "log loss": log_loss(probabilities, labels),
        "log loss of class frequencies": log_loss(np.tile(frequencies, (len(labels), 1)), labels),
    }
    if classes == 2:
        found["AUROC"] = float(roc_auc_score(labels, probabilities[:, 1]))
    return found


def rare_scores(
    probabilities: Float64[np.ndarray, "series class"],
    labels: Int64[np.ndarray, "series"],
    train_labels: Int64[np.ndarray, "more"],
) -> dict[str, float]:
    """Those of a classification into two classes, and the AUPRC of the second, rare one."""
    auprc = float(average_precision_score(labels, probabilities[:, 1]))
    return {**classification_scores(probabilities, labels, train_labels), "AUPRC": auprc}


def log_loss(probabilities: Float64[np.ndarray, "series class"], labels: Int64[np.ndarray, "series"]) -> float:
    """Mean of minus the logarithm of the probability of the true class, clipped."""
    true = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.clip(true, LEAST, 1.0)).mean())


def rmse(predicted: np.ndarray, targets: np.ndarray) -> float:
    """Root of the mean squared error over known targets.

    >>> rmse(np.array([1.0, 5.0]), np.array([3.0, np.nan]))
    2.0
    """
    known = np.isfinite(targets)
    if not np.isfinite(predicted[known]).all():
        raise ExperimentError("Some of the predictions are not finite.")
    return float(np.sqrt(np.mean(np.square(predicted[known] - targets[known]))))
