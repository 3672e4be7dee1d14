"""Score a model on examples, against the best constant prediction as a baseline."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from logcde.cli.targets import Examples
from logcde.cli.tasks import AbstractTask, Predictions


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores of a model on some series, with its predictions and the truth row by row.

    Attributes:
        series: Number of series.
        ids: Series id of each row.
        truth: True value of each row.
        predictions: Predictions row by row.
        metrics: Scores of the model by name.
        baseline: Scores of the best constant prediction.
        constant: The constant prediction in words.
        unknown: True classes that the model does not know, and how many series have each.
    """

    series: int
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
    """Predict examples, and score the predictions and those of the prior."""
    at, truth = task.truth(examples.targets, examples.streams)
    predictions = task.predict(estimator, examples.streams, at)
    baseline = task.constant(prior, len(predictions.series), classes)
    unknown: dict[Any, int] = {}
    if classes is not None:
        for one in truth:
            if one not in classes:
                unknown[one] = unknown.get(one, 0) + 1
    return Scores(
        series=len(examples.streams),
        ids=examples.streams.ids[predictions.series],
        truth=truth,
        predictions=predictions,
        metrics=task.scores(truth, predictions, classes),
        baseline=task.scores(truth, baseline, classes),
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
