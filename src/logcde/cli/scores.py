"""Score a model on examples, against the best constant prediction as a baseline."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from logcde.cli.targets import Examples
from logcde.cli.tasks import AbstractTask
from logcde.scale.predictions import Predictions


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores of a model on some series, with its predictions and the truth row by row.

    Attributes:
        series: Number of series that are scored.
        lost: Ids of the others, whose predictions are not finite.
        ids: Series id of each row.
        truth: True value of each row.
        predictions: Predictions row by row.
        metrics: Scores of the model by name.
        baseline: Scores of the best constant prediction.
        constant: The constant prediction in words.
        unknown: True classes that the model does not know, and how many series have each.
    """

    series: int
    lost: list[Any]
    ids: np.ndarray
    truth: Any
    predictions: Predictions
    metrics: dict[str, float]
    baseline: dict[str, float]
    constant: str
    unknown: dict[Any, int]


def score(
    task: AbstractTask, estimator: Any, examples: Examples, prior: Sequence[float], classes: Sequence[Any] | None
) -> Scores:
    """Predict examples, and score the predictions and those of the prior, on series whose predictions are finite."""
    at, truth = task.truth(examples.targets, examples.streams)
    predictions = task.predict(estimator, examples.streams, at)
    finite, ids = predictions.finite, examples.streams.ids
    lost = ids[np.unique(predictions.series[~finite])].tolist()
    predictions = predictions[finite]
    truth = truth[finite] if isinstance(truth, np.ndarray) else [truth[row] for row in np.flatnonzero(finite)]
    baseline = task.constant(prior, len(predictions.series), classes)
    unknown: dict[Any, int] = {}
    if classes is not None:
        for one in truth:
            if one not in classes:
                unknown[one] = unknown.get(one, 0) + 1
    return Scores(
        series=len(examples.streams) - len(lost),
        lost=lost,
        ids=ids[predictions.series],
        truth=truth,
        predictions=predictions,
        metrics=task.scores(truth, predictions, classes) if finite.any() else {},
        baseline=task.scores(truth, baseline, classes) if finite.any() else {},
        constant="the mean" if classes is None else f"{classes[int(np.argmax(prior))]!r}",
        unknown=unknown,
    )


def score_table(scores: Scores, title: str) -> list[str]:
    """Scores of the model and the baseline as lines of text."""
    head = f"always {scores.constant}"
    lines = [f"{title}:", f"  {'':18} {'model':>10}   {head:>{max(10, len(head))}}"]
    for name, value in scores.metrics.items():
        lines.append(f"  {name:18} {value:10.4g}   {scores.baseline[name]:{max(10, len(head))}.4g}")
    for one, count in scores.unknown.items():
        lines.append(
            f"{count:,} series have the class {one!r}, which the model does not know: its predictions for them are "
            "wrong, and log loss and AUROC leave them out. Train again with series of this class."
        )
    return lines


def learner_table(learners: Sequence[tuple[str, str, str]]) -> list[str]:
    """Learners that were compared, as lines of text; none if there was one only.

    >>> print(*learner_table([("WindowRidge", "0.7", "log loss 0.31 left out, 1.2 s")]), sep="\\n")
    Learners, compared on series left out, and the weight of each in the model:
      WindowRidge       0.7   log loss 0.31 left out, 1.2 s
    """
    title = "Learners, compared on series left out, and the weight of each in the model:"
    return [title, *(f"  {name:15} {weight:>5}   {how}" for name, weight, how in learners)] if learners else []
