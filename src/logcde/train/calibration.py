"""Calibrated probabilities by temperature scaling: a classifier's logits are divided by one number.

The temperature is fitted to series that the classifier was not trained on (Guo et al., "On calibration of modern neural
networks", 2017). The most probable class never changes.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from logcde.errors import TrainingError
from logcde.models import AbstractOnlineModel, Sum, predict
from logcde.train.data import Data, Targets, checked_weights, examples_of

LARGEST = 1e6
"""Bound of the temperature and of its inverse."""


def calibrated(
    model: AbstractOnlineModel,
    logsigs: Data,
    targets: Targets,
    *,
    static: Any = None,
    weights: Any = None,
    shrinkage: float = 0.0,
) -> Sum:
    """Divide a classifier's logits by the calibration temperature of series that it was not trained on.

    Args:
        model: A trained classifier.
        logsigs: Log-signatures, or `Inputs`, of the calibration series.
        targets: Their class labels.
        static: Static features (series, static) of models that take some.
        weights: A weight for each series; equal by default.
        shrinkage: As for `temperature_of`.

    Returns:
        An ordinary model, which can be saved, served online and be part of a `Sum`; the temperature is `1 / weight`.

    >>> import jax
    >>> from logcde import Basis, log_slice
    >>> from logcde.embedding import LogSignatures
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((20, 3, 2)), np.full(20, 3), basis)
    >>> labels = np.arange(20) % 2
    >>> calibrated_model = calibrated(model, logsigs, labels)
    >>> bool(calibrated_model.weight < 1)  # equal series say nothing about the class
    True
    """
    examples = examples_of(model, logsigs, targets, static, weights)
    logits = np.asarray(predict(model, examples.inputs), np.float64)
    if examples.targets.ndim == logits.ndim:
        raise TrainingError(
            f"The targets have shape {examples.targets.shape} and are no class labels, so there are no probabilities "
            "to calibrate.",
            "Give one integer for each series.",
        )
    labels = np.asarray(examples.targets)
    if examples.per_interval:
        valid = np.arange(labels.shape[1]) < np.asarray(examples.predicted)[:, None]
        weights = None if weights is None else np.broadcast_to(np.asarray(weights)[:, None], valid.shape)[valid]
        logits, labels = logits[valid], labels[valid]
    return Sum([model], 1 / temperature_of(logits, labels, weights, shrinkage=shrinkage), model.spec)


def temperature_of(
    logits: Float[np.ndarray, "series class"],
    labels: Int[np.ndarray, "series"],
    weights: Any = None,
    *,
    shrinkage: float = 0.0,
) -> float:
    """The calibration temperature of logits, for example out-of-fold ones: it minimises the log loss.

    If all of a few series are classified correctly, the log loss alone would ask for a temperature of zero, and a few
    that are not would ask for a large one by chance. With `shrinkage`, that many series are added whose classes have
    just the predicted probabilities; by themselves they ask for a temperature of 1. Without, one series is added, with
    the median of the sorted logits and the second most probable class as its label.

    Args:
        logits: The logits of series that the classifier was not trained on.
        labels: Their classes, from 0 on.
        weights: A weight for each series; equal by default. Only their ratios matter.
        shrinkage: How many series pull the temperature to 1; 10 to 20 suit a few dozen series.

    Returns:
        What to divide logits by.

    >>> confident = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    >>> temperature_of(confident, np.array([0, 0, 0, 1])) > 5
    True
    >>> modest = np.array([[2.0, 0.0]] * 8)
    >>> always_right = np.zeros(8, int)
    >>> round(temperature_of(modest, always_right, shrinkage=20.0), 1), round(temperature_of(modest, always_right), 1)
    (0.8, 1.0)
    """
    _check_calibration(logits, labels, shrinkage)
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(axis=1, keepdims=True)
    given = np.ones(len(labels)) if weights is None else checked_weights(weights, len(labels))
    given = given * (len(given) / given.sum())
    right = logits[np.arange(len(labels)), labels]
    if shrinkage:
        expected = _moments(logits, 1.0)[0]
        right = np.concatenate([right, expected])
        logits = np.vstack([logits, logits])
        given = np.concatenate([given, given * (shrinkage / len(given))])
    else:
        median = np.median(np.sort(logits, axis=1), axis=0)
        right, logits, given = np.append(right, median[-2]), np.vstack([logits, median]), np.append(given, 1.0)
    return 1 / _least_loss(logits, right, given)


def _check_calibration(logits: np.ndarray, labels: np.ndarray, shrinkage: float) -> None:
    if not np.isfinite(logits).all():
        raise TrainingError("The model's predictions for these series are not finite.", "Leave such series out.")
    series, classes = logits.shape
    if not series or labels.min() < 0 or labels.max() >= classes:
        found = f"The labels go from {labels.min()} to {labels.max()}" if series else "There are no series"
        raise TrainingError(f"{found}, but the logits are of {classes} classes.", "Give a class for each series.")
    if not 0 <= shrinkage < np.inf:
        raise TrainingError(f"shrinkage={shrinkage} is no number of series.", "Give at least 0.")


def _moments(logits: Float[np.ndarray, "row class"], b: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the logits under the probabilities that they have at the inverse temperature b."""
    exponentials = np.exp(b * logits)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    mean = (probabilities * logits).sum(axis=1)
    return mean, (probabilities * np.square(logits - mean[:, None])).sum(axis=1)


def _least_loss(
    logits: Float[np.ndarray, "row class"], right: Float[np.ndarray, "row"], weights: Float[np.ndarray, "row"]
) -> float:
    """The inverse temperature b of the least log loss, given the (expected) logit of the right class of each row.

    The loss is convex in b. Newton's method finds its minimum; a step that leaves the bracket around it becomes a
    bisection.
    """

    def derivatives(b: float) -> tuple[float, float]:
        mean, variance = _moments(logits, b)
        return float((weights * (mean - right)).sum()), float((weights * variance).sum())

    low, high, b = 1 / LARGEST, LARGEST, 1.0
    for _ in range(200):
        first, second = derivatives(b)
        if first == 0:
            break
        low, high = (b, high) if first < 0 else (low, b)
        after = b - first / second if second > 0 else np.inf
        after = after if low < after < high else (low * high) ** 0.5
        if abs(after - b) <= 1e-12 * b:
            break
        b = after
    return b
