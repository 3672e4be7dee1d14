"""Results over data sets and seeds, and the targets that the defaults are to reach."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from experiments.defaults.cells import DefaultsCell, Measured, Task
from experiments.runner.abstract import Claim
from experiments.runner.tables import Spread

OURS, ROCKET, FOREST, BOOSTING, LAST = "logcde", "minirocket", "rf", "boosting", "last value"
ACCURACY, LOSS, FREQUENCIES = "accuracy", "log loss", "log loss of class frequencies"
PERCENT = 0.01
SLACK, LEAD, LED = 0.005, 0.01, (0.7, 0.9)
"""How far below the better of two peers the accuracy may be, and the lead that is the goal, at which shares."""
FIT_SECONDS, REFIT_SECONDS = 20.0, 5.0
LEAST_AUROC, MOST_LOSS = 0.735, 0.203
MOST_RMSE = {0.0: 36.0, 0.7: 48.0}
FORECASTS = tuple(f"{channel} after {hours} h" for channel in ("pm2.5", "TEMP") for hours in (1, 6, 24))
Outcomes: TypeAlias = Mapping[DefaultsCell, Measured]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A method on one data set at one share of dropped observations: each score and the seconds, over seeds."""

    task: Task
    method: str
    dataset: str
    share: float
    seeds: list[int]
    scores: dict[str, Spread]
    fit_seconds: float
    refit_seconds: float | None
    predict_seconds: float


class Average(msgspec.Struct, frozen=True, kw_only=True):
    """A method at one share: means over all data sets, and their spread over the seeds that it has on each."""

    method: str
    share: float
    seeds: list[int]
    accuracy: Spread
    log_loss: Spread


def rows_of(outcomes: Outcomes) -> list[Row]:
    """One row for each task, method, data set and share, in the order of the cells."""
    places: dict[tuple[Task, str, str, float], dict[int, Measured]] = {}
    for cell, outcome in outcomes.items():
        places.setdefault((cell.task, cell.variant, cell.dataset, cell.share), {})[cell.seed] = outcome
    return [_row(*place, found) for place, found in places.items()]


def _row(task: Task, method: str, dataset: str, share: float, found: Mapping[int, Measured]) -> Row:
    runs = list(found.values())
    again = [run.refit_seconds for run in runs if run.refit_seconds is not None]
    return Row(
        task=task,
        method=method,
        dataset=dataset,
        share=share,
        seeds=sorted(found),
        scores={name: Spread.of(run.scores[name] for run in runs) for name in runs[0].scores},
        fit_seconds=float(np.median([run.fit_seconds for run in runs])),
        refit_seconds=float(np.median(again)) if again else None,
        predict_seconds=float(np.median([run.predict_seconds for run in runs])),
    )


def averages_of(cells: Sequence[DefaultsCell], outcomes: Outcomes) -> list[Average]:
    """Averages of the methods that have finished all classification sets of the grid, with one seed or more."""
    datasets = dict.fromkeys(cell.dataset for cell in cells if cell.task == "classification")
    methods = dict.fromkeys(cell.variant for cell in cells if cell.task == "classification")
    shares = sorted({cell.share for cell in cells if cell.task == "classification"})
    seeds = sorted({cell.seed for cell in cells})
    found = []
    for method in methods:
        for share in shares:
            lines = {seed: _line(outcomes, method, tuple(datasets), share, seed) for seed in seeds}
            whole = {seed: line for seed, line in lines.items() if line is not None}
            if whole:
                found.append(
                    Average(
                        method=method,
                        share=share,
                        seeds=list(whole),
                        accuracy=_over(whole, ACCURACY),
                        log_loss=_over(whole, LOSS),
                    )
                )
    return found


def _line(outcomes: Outcomes, method: str, datasets: Sequence[str], share: float, seed: int) -> list[Measured] | None:
    """The outcomes on all data sets, or None if some are missing."""
    options = {"variant": method, "seed": seed, "task": "classification", "share": share}
    line = [outcomes.get(DefaultsCell(dataset=dataset, **options)) for dataset in datasets]
    whole = [outcome for outcome in line if outcome is not None]
    return whole if len(whole) == len(line) else None


def _over(lines: Mapping[int, Sequence[Measured]], score: str) -> Spread:
    return Spread.of(float(np.mean([outcome.scores[score] for outcome in line])) for line in lines.values())


def judge(outcomes: Outcomes, rows: Sequence[Row], averages: Sequence[Average]) -> tuple[Claim, ...]:
    """Judge the targets whose numbers are there."""
    return (
        *_accuracy_claims(averages),
        *_loss_claims(rows, averages),
        *_time_claims(outcomes),
        *_sepsis_claims(rows),
        *_regression_claims(rows),
        *_forecast_claims(rows),
    )


def _by_share(averages: Sequence[Average], method: str) -> dict[float, Average]:
    return {average.share: average for average in averages if average.method == method}


def _accuracy_claims(averages: Sequence[Average]) -> list[Claim]:
    ours, rocket, forest = (_by_share(averages, method) for method in (OURS, ROCKET, FOREST))
    shares = [share for share in ours if share in rocket and share in forest]
    claims, goals = [], []
    for share in shares:
        mine, peers = ours[share].accuracy.mean, (rocket[share].accuracy.mean, forest[share].accuracy.mean)
        evidence = f"{_percent(mine)} against {_percent(peers[0])} (MiniRocket) and {_percent(peers[1])} (forest)"
        text = f"Accuracy with {share:.0%} dropped is not below the better of MiniRocket and forest by more than 0.5"
        claims.append(Claim(text, mine >= max(peers) - SLACK, evidence))
        lead = LEAD if share in LED else 0.0
        text = f"Goal: accuracy with {share:.0%} dropped is above both{' by 1 point' if lead else ''}"
        goals.append(Claim(text, mine - max(peers) >= lead and mine > max(peers), evidence))
    if shares:
        means = [float(np.mean([found[share].accuracy.mean for share in shares])) for found in (ours, rocket, forest)]
        evidence = (
            f"{_percent(means[0])} against {_percent(means[1])} and {_percent(means[2])} over {len(shares)} levels"
        )
        claims.append(Claim("Accuracy is above both in the mean over levels", means[0] > max(means[1:]), evidence))
    return [*claims, *goals]


def _loss_claims(rows: Sequence[Row], averages: Sequence[Average]) -> list[Claim]:
    ours, forest = (_by_share(averages, method) for method in (OURS, FOREST))
    claims = [
        Claim(
            f"Log loss with {share:.0%} dropped is below the forest's",
            ours[share].log_loss.mean < forest[share].log_loss.mean,
            f"{ours[share].log_loss.mean:.3f} against {forest[share].log_loss.mean:.3f}",
        )
        for share in ours
        if share in forest
    ]
    mine = [row for row in rows if row.task == "classification" and row.method == OURS]
    if mine:
        worst = max(mine, key=lambda row: row.scores[LOSS].mean - row.scores[FREQUENCIES].mean)
        evidence = (
            f"closest: {worst.dataset} with {worst.share:.0%} dropped, {worst.scores[LOSS].mean:.3f} against "
            f"{worst.scores[FREQUENCIES].mean:.3f}"
        )
        held = worst.scores[LOSS].mean < worst.scores[FREQUENCIES].mean
        claims.append(Claim("Log loss is on no set worse than that of the class frequencies", held, evidence))
    return claims


def _time_claims(outcomes: Outcomes) -> list[Claim]:
    mine = [outcome for cell, outcome in outcomes.items() if cell.task == "classification" and cell.variant == OURS]
    again = [outcome.refit_seconds for outcome in mine if outcome.refit_seconds is not None]
    found = (
        ("with", FIT_SECONDS, [outcome.fit_seconds for outcome in mine]),
        ("without", REFIT_SECONDS, again),
    )
    return [
        Claim(
            f"The median fit of a set takes at most {limit:.0f} s on one core {which} compiling",
            float(np.median(seconds)) <= limit,
            f"{np.median(seconds):.1f} s, at most {max(seconds):.1f} s",
        )
        for which, limit, seconds in found
        if seconds
    ]


def _sepsis_claims(rows: Sequence[Row]) -> list[Claim]:
    return [
        Claim(text, held(row.scores[score].mean), f"{row.scores[score].mean:.3f}")
        for row in rows
        if row.task == "sepsis" and row.method == OURS
        for text, score, held in (
            (f"Sepsis: AUROC is at least {LEAST_AUROC}", "AUROC", LEAST_AUROC.__le__),
            (f"Sepsis: log loss is at most {MOST_LOSS}", LOSS, MOST_LOSS.__ge__),
        )
    ]


def _regression_claims(rows: Sequence[Row]) -> list[Claim]:
    return [
        Claim(
            f"Beijing: RMSE with {row.share:.0%} dropped is at most {MOST_RMSE[row.share]:.1f}",
            row.scores["RMSE"].mean <= MOST_RMSE[row.share],
            f"{row.scores['RMSE'].mean:.2f}",
        )
        for row in rows
        if row.task == "regression" and row.method == OURS and row.share in MOST_RMSE
    ]


def _forecast_claims(rows: Sequence[Row]) -> list[Claim]:
    complete = {row.method: row for row in rows if row.task == "forecasting" and row.share == 0.0}
    if not {OURS, BOOSTING, LAST} <= set(complete):
        return []

    def errors(score: str) -> list[float]:
        return [complete[method].scores[score].mean for method in (OURS, BOOSTING, LAST)]

    return [
        Claim(
            f"Forecast of {score}: RMSE is below boosting's and the last value's",
            errors(score)[0] < min(errors(score)[1:]),
            "{:.2f} against {:.2f} and {:.2f}".format(*errors(score)),
        )
        for score in FORECASTS
    ]


def _percent(value: float) -> str:
    return f"{value / PERCENT:.1f}"
