"""Tables of the study: each variant's mean over data sets at each share, and the other tasks."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from experiments.choices.cells import ChoicesCell, Validated
from experiments.defaults.cells import Task
from experiments.runner.abstract import Conclusion
from experiments.runner.tables import markdown
from logcde.errors import ExperimentError

SCORES: dict[Task, tuple[tuple[str, float, int], ...]] = {
    "classification": (("accuracy", 100.0, 1), ("log loss", 1.0, 3)),
    "sepsis": (("AUROC", 1.0, 4), ("log loss", 1.0, 4)),
    "regression": (("RMSE", 1.0, 2),),
}
"""Scores of each task, their unit and the digits that are shown."""
TITLES: dict[Task, str] = {
    "classification": "Classification, mean over data sets",
    "sepsis": "Sepsis after the first day in intensive care",
    "regression": "Beijing: mean of PM2.5 in the next 6 hours",
}
NOTES = """\
Every number is of training series, predicted by learners that did not see them: three stratified folds of series, or
four consecutive blocks of Beijing's windows. Test parts are not read. Means over seeds of dropping and folds; seconds
are process time of all fits and predictions of one run. Variants are shown if they finished all data sets."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A variant on a task at one share: means over data sets and seeds."""

    task: Task
    variant: str
    share: float
    datasets: int
    seeds: int
    scores: dict[str, float]
    seconds: float


def conclude(cells: Sequence[ChoicesCell], outcomes: Mapping[ChoicesCell, Validated]) -> Conclusion:
    """Average, and write tables."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    rows = rows_of(cells, outcomes)
    parts = ["# Where the defaults come from: results", NOTES]
    for task, title in TITLES.items():
        own = [row for row in rows if row.task == task]
        if own:
            parts += [f"## {title}", _table(task, own)]
    summary = {"rows": msgspec.to_builtins(rows), "not_run": [cell.label for cell in cells if cell not in outcomes]}
    return Conclusion(summary, "\n\n".join(parts) + "\n", ())


def rows_of(cells: Sequence[ChoicesCell], outcomes: Mapping[ChoicesCell, Validated]) -> list[Row]:
    """One row for each task, variant and share whose cells are all finished."""
    groups: dict[tuple[Task, str, float], list[ChoicesCell]] = {}
    for cell in cells:
        groups.setdefault((cell.task, cell.variant, cell.share), []).append(cell)
    found = []
    for (task, variant, share), own in groups.items():
        if all(cell in outcomes for cell in own):
            runs = [outcomes[cell] for cell in own]
            scores = {name: float(np.mean([run.scores[name] for run in runs])) for name, _, _ in SCORES[task]}
            found.append(
                Row(
                    task=task,
                    variant=variant,
                    share=share,
                    datasets=len({cell.dataset for cell in own}),
                    seeds=len({cell.seed for cell in own}),
                    scores=scores,
                    seconds=float(np.mean([run.fit_seconds for run in runs])),
                )
            )
    return found


def _table(task: Task, rows: Sequence[Row]) -> str:
    shares = sorted({row.share for row in rows})
    header = [
        "learner",
        *(f"{name}, {share:.0%} dropped" for name, _, _ in SCORES[task] for share in shares),
        "seconds",
    ]
    lines = []
    for variant in dict.fromkeys(row.variant for row in rows):
        own = {row.share: row for row in rows if row.variant == variant}
        shown = [
            f"{unit * own[share].scores[name]:.{digits}f}" if share in own else ""
            for name, unit, digits in SCORES[task]
            for share in shares
        ]
        lines.append([variant, *shown, f"{np.mean([row.seconds for row in own.values()]):.1f}"])
    return markdown(header, lines)
