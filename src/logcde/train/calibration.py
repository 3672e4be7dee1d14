"""Calibrated probabilities by temperature scaling: a classifier's logits are divided by one number.

The temperature is fitted to series that the classifier was not trained on (Guo et al., "On calibration of modern neural
networks", 2017). The most probable class never changes.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from logcde.errors import TrainingError
from logcde.models import AbstractOnlineModel, Sum, predict
from logcde.train.data import Data, Targets, examples_of

LARGEST = 1e6
"""Bound of the temperature and of its inverse."""


def calibrated(model: AbstractOnlineModel, logsigs: Data, targets: Targets, *, static: Any = None) -> Sum:
    """Divide a classifier's logits by the calibration temperature of series that it was not trained on.

    Args:
        model: A trained classifier.
        logsigs: Log-signatures, or `Inputs`, of the calibration series.
        targets: Their class labels.
        static: Static features (series, static) of models that take some.

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
    examples = examples_of(model, logsigs, targets, static)
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
        logits, labels = logits[valid], labels[valid]
    return Sum([model], 1 / temperature_of(logits, labels), model.spec)


def temperature_of(logits: Float[np.ndarray, "series class"], labels: Int[np.ndarray, "series"]) -> float:
    """The temperature that minimises the log loss of these logits and of one added, misclassified series.

    If all of a few series are classified correctly, the log loss alone would ask for a temperature of zero. So one
    series is added, with the median of the sorted logits and the second most probable class as its label. The loss is
    convex in b = 1 / temperature. Newton's method finds its minimum; a step that leaves the bracket around it becomes a
    bisection.

    >>> confident = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    >>> temperature_of(confident, np.array([0, 0, 0, 1])) > 5
    True
    """
    if not np.isfinite(logits).all():
        raise TrainingError("The model's predictions for these series are not finite.", "Leave such series out.")
    logits = logits - logits.max(axis=1, keepdims=True)
    median = np.median(np.sort(logits, axis=1), axis=0)
    right = np.append(logits[np.arange(len(labels)), labels], median[-2])
    logits = np.vstack([logits, median])

    def derivatives(b: float) -> tuple[float, float]:
        exponentials = np.exp(b * logits)
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        mean = (probabilities * logits).sum(axis=1)
        variance = (probabilities * np.square(logits - mean[:, None])).sum(axis=1)
        return float((mean - right).sum()), float(variance.sum())

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
    return 1 / b
