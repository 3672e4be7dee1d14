"""A model against answers that are known: scores, beside those of knowing nothing about a series."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.cli.tasks import AbstractTask, Predicted

if TYPE_CHECKING:
    from logcde.cli.examples import Examples


@dataclasses.dataclass(frozen=True)
class Scored:
    """Predictions with what is right, row by row, for so many series. `always` says what the baseline answers."""

    series: int
    ids: np.ndarray
    truth: Any
    found: Predicted
    metrics: dict[str, float]
    baseline: dict[str, float]
    always: str
    unknown: dict[Any, int]


def score(
    task: AbstractTask, estimator: Any, examples: "Examples", prior: Sequence[float], classes: Sequence[Any] | None
) -> Scored:
    """Predict, and compare."""
    at, truth = task.truth(examples.answers, examples.streams)
    found = task.predict(estimator, examples.streams, at)
    baseline = task.always(prior, len(found.series), classes)
    unknown: dict[Any, int] = {}
    if classes is not None:
        for one in truth:
            if one not in classes:
                unknown[one] = unknown.get(one, 0) + 1
    return Scored(
        series=len(examples.streams),
        ids=examples.streams.ids[found.series],
        truth=truth,
        found=found,
        metrics=task.scores(truth, found, classes),
        baseline=task.scores(truth, baseline, classes),
        always="the mean" if classes is None else f"{classes[int(np.argmax(prior))]!r}",
        unknown=unknown,
    )


def table_of(scored: Scored, title: str) -> list[str]:
    """Scores for people."""
    head = f"always {scored.always}"
    lines = [f"{title}:", f"  {'':18} {'model':>10}   {head:>{max(10, len(head))}}"]
    for name, value in scored.metrics.items():
        lines.append(f"  {name:18} {value:10.4g}   {scored.baseline[name]:{max(10, len(head))}.4g}")
    for one, count in scored.unknown.items():
        lines.append(
            f"The model has never seen the class {one!r}, which is that of {count:,} series: it is never right "
            "about it. Log loss and AUROC are of the others. Train again with such series."
        )
    return lines
