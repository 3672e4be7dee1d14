"""Probabilities that are as sure as they are right: a classifier's logits, divided by one number, its temperature.

The temperature is fitted to series that the classifier was not trained on (Guo et al., "On calibration of modern neural
networks", 2017). Which class is the most probable never changes.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from logcde.errors import TrainingError
from logcde.models import AbstractOnlineModel, Sum, predict
from logcde.train.data import Data, Targets, examples_of

LARGEST = 1e6
"""Of the inverse of a temperature and of the temperature itself."""


def calibrated(model: AbstractOnlineModel, logsigs: Data, targets: Targets, *, static: Any = None) -> Sum:
    """A classifier with its logits divided by the temperature that suits these series, which it was not trained on.

    It is an ordinary model: it can be saved, served online and be part of a `Sum`. The temperature is `1 / weight`.

    >>> import jax
    >>> from logcde import Basis, log_slice
    >>> from logcde.embedding import LogSignatures
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((20, 3, 2)), np.full(20, 3), basis)
    >>> labels = np.arange(20) % 2
    >>> sober = calibrated(model, logsigs, labels)
    >>> bool(sober.weight < 1)  # the series are all the same, so nothing can be told from them
    True
    """
    examples = examples_of(model, logsigs, targets, static)
    logits = np.asarray(predict(model, examples.inputs), np.float64)
    if examples.targets.ndim == logits.ndim:
        raise TrainingError(
            f"The targets have shape {examples.targets.shape} and are no class labels, so there are no probabilities "
            "to calibrate. Give a whole number for each series."
        )
    labels = np.asarray(examples.targets)
    if examples.each:
        valid = np.arange(labels.shape[1]) < np.asarray(examples.predicted)[:, None]
        logits, labels = logits[valid], labels[valid]
    return Sum([model], 1 / temperature_of(logits, labels), model.spec)


def temperature_of(logits: Float[np.ndarray, "series class"], labels: Int[np.ndarray, "series"]) -> float:
    """The temperature that makes the log loss of these logits smallest, and of one more that is wrong.

    Few series may all be right, and nothing would then be too sure for them. So one is added that is as sure as is
    usual among them, and whose label is the runner-up. With b = 1 / temperature, the loss is convex in b. Newton's
    method finds its minimum; a step that leaves the bracket around it becomes a bisection.

    >>> sure = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    >>> temperature_of(sure, np.array([0, 0, 0, 1])) > 5
    True
    """
    if not np.isfinite(logits).all():
        raise TrainingError("The model gives numbers for these series that are not finite. Leave such series out.")
    logits = logits - logits.max(axis=1, keepdims=True)
    usual = np.median(np.sort(logits, axis=1), axis=0)
    right = np.append(logits[np.arange(len(labels)), labels], usual[-2])
    logits = np.vstack([logits, usual])

    def slopes(b: float) -> tuple[float, float]:
        """The first and the second derivative."""
        raised = np.exp(b * logits)
        shares = raised / raised.sum(axis=1, keepdims=True)
        mean = (shares * logits).sum(axis=1)
        spread = (shares * np.square(logits - mean[:, None])).sum(axis=1)
        return float((mean - right).sum()), float(spread.sum())

    low, high, b = 1 / LARGEST, LARGEST, 1.0
    for _ in range(200):
        first, second = slopes(b)
        if first == 0:
            break
        low, high = (b, high) if first < 0 else (low, b)
        after = b - first / second if second > 0 else np.inf
        after = after if low < after < high else (low * high) ** 0.5
        if abs(after - b) <= 1e-12 * b:
            break
        b = after
    return 1 / b
