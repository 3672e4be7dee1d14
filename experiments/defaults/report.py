"""Report of the comparison of defaults: tables over data sets, for each set, of the other tasks; targets; a figure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from experiments.defaults.cells import DefaultsCell, Task
from experiments.defaults.rows import (
    ACCURACY,
    FREQUENCIES,
    LOSS,
    PERCENT,
    Average,
    Outcomes,
    Row,
    averages_of,
    judge,
    rows_of,
)
from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from logcde import plot
from logcde.errors import ExperimentError

TITLES = {
    "minirocket": "MiniRocket",
    "multirocket": "MultiRocket",
    "signature": "signatures (aeon)",
    "rf": "random forest",
    "grud": "GRU-D",
}
"""Names of methods in tables, where they are not those of configurations."""
PEERS = frozenset({*TITLES, "boosting"})
TASKS: dict[Task, str] = {
    "sepsis": "## Sepsis after the first day in intensive care",
    "regression": "## Beijing: mean of PM2.5 in the next 6 hours, RMSE",
    "forecasting": "## Beijing: forecasts, RMSE",
}
ROUNDING = 1e-9
NOTES = """\
Test parts of the archive. Observations are dropped from each channel by itself at random, at least two kept.
MiniRocket, MultiRocket, signatures (aeon's `SignatureClassifier`, of less depth for more than six channels), the random
forest and boosting get linearly interpolated series; forest (500 trees) and boosting get summaries of these.
Probabilities of MiniRocket and MultiRocket are the softmax of the scores of their ridge classifier, which is not made
for probabilities. GRU-D and ours get observations as they are. ± is the standard deviation over seeds of dropping."""


def conclude(cells: Sequence[DefaultsCell], outcomes: Outcomes, folder: Path) -> Conclusion:
    """Judge the targets, draw the figure, and write summary and text."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    rows, averages = rows_of(outcomes), averages_of(cells, outcomes)
    claims = judge(outcomes, rows, averages)
    _draw(averages, folder / "dropping.png")
    missing = [cell.label for cell in cells if cell not in outcomes]
    summary = {
        "unit": "fraction",
        "averages": msgspec.to_builtins(averages),
        "rows": msgspec.to_builtins(rows),
        "claims": msgspec.to_builtins(claims),
        "not_run": missing,
    }
    return Conclusion(summary, _text(outcomes, rows, averages, claims, len(missing), len(cells)), claims)


def _text(
    outcomes: Outcomes,
    rows: Sequence[Row],
    averages: Sequence[Average],
    claims: Sequence[Claim],
    missing: int,
    cells: int,
) -> str:
    classified = [row for row in rows if row.task == "classification"]
    parts = ["# Default estimators beside peers: results", NOTES, f"Of {cells} runs, {missing or 'none'} are missing."]
    if claims:
        parts += ["## Targets", claims_markdown(claims)]
    if averages:
        parts += [
            "## Mean accuracy over data sets, %",
            _average_table(averages, lambda average: average.accuracy, _percent),
            "## Mean log loss over data sets",
            _average_table(averages, lambda average: average.log_loss, _three),
        ]
    if classified:
        parts += [
            "## Seconds",
            "Process seconds on one core, medians over data sets, shares and seeds. The first fit of ours and of GRU-D "
            "compiles; peers have compiled on other series before.",
            _seconds_table(outcomes),
        ]
    for share in sorted({row.share for row in classified}):
        here = [row for row in classified if row.share == share]
        parts += [
            f"## Each data set, {share:.0%} dropped",
            "Accuracy, %:",
            _set_table(here, ACCURACY, _percent),
            "Log loss:",
            _set_table(here, LOSS, _three, more={"class frequencies": FREQUENCIES}),
        ]
        if any("AUROC" in row.scores for row in here):
            parts += ["AUROC, %, of two classes:", _set_table(here, "AUROC", _percent)]
    for task, title in TASKS.items():
        here = [row for row in rows if row.task == task]
        if here:
            parts += [title, _task_table(here)]
    return "\n\n".join(parts) + "\n"


def _average_table(
    averages: Sequence[Average], pick: Callable[[Average], Spread], form: Callable[[Spread], str]
) -> str:
    """A row for each method, a column for each share, and the mean over shares."""
    shares = sorted({average.share for average in averages})
    lines = []
    for method in dict.fromkeys(average.method for average in averages):
        mine = {average.share: average for average in averages if average.method == method}
        found = [form(pick(mine[share])) if share in mine else "" for share in shares]
        whole = len(mine) == len(shares)
        over = form(Spread(float(np.mean([pick(one).mean for one in mine.values()])), 0.0)) if whole else ""
        seeds = str(max(len(one.seeds) for one in mine.values()))
        lines.append([_name(method), *found, over, seeds])
    return markdown(["method", *(f"{share:.0%} dropped" for share in shares), "mean", "seeds"], lines)


def _seconds_table(outcomes: Outcomes) -> str:
    lines = []
    own = {cell: outcome for cell, outcome in outcomes.items() if cell.task == "classification"}
    for method in dict.fromkeys(cell.variant for cell in own):
        runs = [outcome for cell, outcome in own.items() if cell.variant == method]
        again = [run.refit_seconds for run in runs if run.refit_seconds is not None]
        fits, predictions = ([getattr(run, f"{what}_seconds") for run in runs] for what in ("fit", "predict"))
        second = f"{np.median(again):.2f}" if again else ""
        lines.append(
            [_name(method), f"{np.median(fits):.2f}", f"{max(fits):.1f}", second, f"{np.median(predictions):.2f}"]
        )
    return markdown(["method", "fit", "longest fit", "second fit", "prediction of the test part"], lines)


def _set_table(
    rows: Sequence[Row], score: str, form: Callable[[Spread], str], more: Mapping[str, str] | None = None
) -> str:
    """A row for each data set, a column for each method; `more` are scores that are the same for all methods."""
    methods = list(dict.fromkeys(row.method for row in rows))
    found = {(row.dataset, row.method): row.scores for row in rows}
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows if score in row.scores):
        own = [found.get((dataset, method)) for method in methods]
        same = next(scores for scores in own if scores is not None)
        shown = ["" if scores is None else form(scores[score]) for scores in own]
        lines.append([dataset, *shown, *(form(same[name]) for name in (more or {}).values())])
    return markdown(["data set", *map(_name, methods), *(more or {})], lines)


def _task_table(rows: Sequence[Row]) -> str:
    """A row for each share and score, a column for each method, and the seconds of a fit."""
    found = {(row.share, row.method): row for row in rows}
    methods = list(dict.fromkeys(row.method for row in rows))
    names = [name for name in rows[0].scores if name != ACCURACY]
    lines = []
    for share in sorted({row.share for row in rows}):
        mine = [found.get((share, method)) for method in methods]
        for name in names:
            shown = ["" if row is None else _number(row.scores[name]) for row in mine]
            lines.append([f"{share:.0%}", name, *shown])
        seconds = ["" if row is None else f"{row.fit_seconds:.1f}" for row in mine]
        lines.append([f"{share:.0%}", "seconds of a fit", *seconds])
    return markdown(["dropped", "", *map(_name, methods)], lines)


def _draw(averages: Sequence[Average], file: Path) -> None:
    """Draw accuracy over the dropped share, one line for each method."""
    methods = list(dict.fromkeys(average.method for average in averages))
    if not methods:
        return
    figure = plot.figure_of(6.4, 4.2)
    axes = figure.subplots()
    for number, method in enumerate(methods):
        mine = [average for average in averages if average.method == method]
        points = [(one.accuracy.mean / PERCENT, one.accuracy.std / PERCENT) for one in mine]
        shift = 0.4 * PERCENT * (number - (len(methods) - 1) / 2)  # so that bars do not hide each other
        drops = [one.share + shift for one in mine]
        plot.drop_curve(axes, drops, points, _name(method), number, open_marks=method in PEERS)
    axes.set_ylabel("mean test accuracy, %")
    figure.legend(frameon=False, fontsize=8, ncols=4, loc="outside lower center")
    plot.save(figure, file)


def _name(method: str) -> str:
    return TITLES.get(method, method)


def _percent(spread: Spread) -> str:
    return _with_std(f"{spread.mean / PERCENT:.1f}", f"{spread.std / PERCENT:.1f}", spread)


def _three(spread: Spread) -> str:
    return _with_std(f"{spread.mean:.3f}", f"{spread.std:.3f}", spread)


def _number(spread: Spread) -> str:
    return _with_std(f"{spread.mean:.3g}", f"{spread.std:.2g}", spread)


def _with_std(mean: str, std: str, spread: Spread) -> str:
    return f"{mean} ± {std}" if spread.std > ROUNDING else mean
