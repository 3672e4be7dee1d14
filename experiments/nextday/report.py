"""Tables of errors beside published ones, errors of each variable, coverage of intervals, and hour by hour."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from experiments.nextday.cells import Forecasted, NextDayCell, NextDayConfig, Online
from experiments.runner.abstract import Claim, Conclusion
from experiments.runner.tables import Spread, claims_markdown, markdown
from logcde import plot
from logcde.errors import ExperimentError
from logcde.plot.style import MARKS

PUBLISHED = {
    "t-PatchGNN": (4.98e-3, 3.72e-2),
    "GRU-D": (5.59e-3, 4.08e-2),
    "Warpformer": (5.94e-3, 4.21e-2),
    "Latent-ODE": (6.05e-3, 4.23e-2),
    "mTAND": (6.23e-3, 4.51e-2),
    "Neural Flow": (7.20e-3, 4.67e-2),
    "CRU": (8.56e-3, 5.16e-2),
    "Raindrop": (9.82e-3, 5.57e-2),
}
"""MSE and MAE from the paper of t-PatchGNN; its order of records is another, so test stays differ."""
MILLI, CENTI = 1e-3, 1e-2
GOAL = (4.75e-3, 3.30e-2)
PROTOCOL = "nextday"
MEAN, MEDIAN, AVERAGE = "logcde, mean", "logcde, median", "logcde, between mean and median"
BETWEEN = "logcde, between"
"""The forecaster of one loss between mean and median; `AVERAGE` is the mean of the forecasts for both."""
NETWORK = "logcde with a network, between"
"""The same loss, with a network for all variables."""
RIVALS, BASE = ("boosting", "boosting with windows"), "shrunk last value"
INSIDE = (0.88, 0.92)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A forecaster on one split; errors in units of the ranges of variables, averaged over variables."""

    protocol: str
    model: str
    split: int
    mse: float
    mae: float
    variable_mse: list[float]
    variable_mae: list[float]
    train_seconds: float


def conclude(config: NextDayConfig, outcomes: Mapping[NextDayCell, Forecasted], folder: Path) -> Conclusion:
    """Average over variables, judge the claims, draw, and write summary and text."""
    if not outcomes:
        raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
    rows, covered, online = [], {}, None
    for cell, outcome in outcomes.items():
        asked = np.array(outcome.counts) > 0
        for name, errors in outcome.models.items():
            rows.append(
                Row(
                    protocol=PROTOCOL,
                    model=name,
                    split=cell.seed,
                    mse=float(np.mean(np.array(errors.mse)[asked])),
                    mae=float(np.mean(np.array(errors.mae)[asked])),
                    variable_mse=errors.mse,
                    variable_mae=errors.mae,
                    train_seconds=outcome.train_seconds,
                )
            )
        if outcome.covered is not None:
            counts = np.array(outcome.counts)
            covered[cell.label] = (float(np.average(outcome.covered, weights=counts)), outcome.covered)
        online = outcome.online or online
    first = next(iter(outcomes.values()))
    claims = judge(rows, config.seeds[0], {name: share for name, (share, _) in covered.items()}, first.variables)
    if online is not None:
        draw(online, folder / "hours.png")
    summary = {
        "unit": "range of each variable in the seen part",
        "part": config.part,
        "variables": first.variables,
        "questions": first.counts,
        "rows": msgspec.to_builtins(rows),
        "published": {name: {"mse": mse, "mae": mae} for name, (mse, mae) in PUBLISHED.items()},
        "covered_by_90_percent_intervals": {name: share for name, (share, _) in covered.items()},
        "covered_of_each_variable": {name: each for name, (_, each) in covered.items()},
        "online": msgspec.to_builtins(online),
        "claims": msgspec.to_builtins(claims),
    }
    return Conclusion(summary, _text(config, rows, first, covered, claims), claims)


def judge(rows: Sequence[Row], split: int, covered: Mapping[str, float], variables: Sequence[str]) -> tuple[Claim, ...]:
    """Compare with boosting on every split; on the first with the goal, and by variable with the shrunk last value."""
    on_it = {row.model: row for row in rows if row.split == split}
    found = {(row.model, row.split): row for row in rows}
    claims = []
    for model in (NETWORK, BETWEEN, MEAN, AVERAGE):
        ours = on_it.get(model)
        if ours is None:
            continue
        for name in RIVALS:
            if name in on_it:
                other = on_it[name]
                text = f"{_both(ours)} against {_both(other)}"
                claims.append(Claim(f"{model}: both errors are below {name}", _below(ours, other.mse, other.mae), text))
            pairs = [
                (row, found[name, row.split])
                for row in rows
                if row.model == model and row.split != split and (name, row.split) in found
            ]
            if pairs:
                below = sum(_below(mine, other.mse, other.mae) for mine, other in pairs)
                text = f"{model}: both errors are below {name} on every further split"
                claims.append(Claim(text, below == len(pairs), f"on {below} of {len(pairs)}"))
        evidence = f"{_both(ours)} against {GOAL[0] / MILLI:.2f} / {GOAL[1] / CENTI:.2f}"
        claims.append(Claim(f"{model}: both errors reach the goal", _below(ours, *GOAL), evidence))
        best = (min(mse for mse, _ in PUBLISHED.values()), min(mae for _, mae in PUBLISHED.values()))
        evidence = f"{_both(ours)} against {best[0] / MILLI:.2f} / {best[1] / CENTI:.2f}, on other test stays"
        claims.append(Claim(f"{model}: both errors are below every published row", _below(ours, *best), evidence))
        if model != AVERAGE and BASE in on_it:
            three = zip(variables, ours.variable_mse, on_it[BASE].variable_mse, strict=True)
            worse = [f"{name} ({a / MILLI:.3g} against {b / MILLI:.3g})" for name, a, b in three if a > b]
            evidence = ", ".join(worse) or f"{len(variables)} variables"
            text = f"{model}: for no variable the squared error is above that of the shrunk last value"
            claims.append(Claim(text, not worse, evidence))
    if covered:
        shares = list(covered.values())
        evidence = f"{min(shares):.1%} to {max(shares):.1%} over splits"
        held = INSIDE[0] <= min(shares) and max(shares) <= INSIDE[1]
        claims.append(Claim("90 % intervals hold 88 to 92 % of the observations asked for", held, evidence))
    return tuple(claims)


def draw(online: Online, file: Path) -> None:
    """Draw errors over hours ahead, a line for each number of hours known; the last value in grey."""
    figure = plot.figure_of(8.0, 3.6)
    both = figure.subplots(1, 2)
    for axes, name, unit in zip(both, ("mse", "mae"), (MILLI, CENTI), strict=True):
        for number, known in enumerate(online.known):
            table, last = (np.array(getattr(online, kind)[number]) / unit for kind in (name, f"last_{name}"))
            some = table > 0
            places = np.arange(len(online.ahead))[some]
            colour, mark = plot.COLOURS[number % len(plot.COLOURS)], MARKS[number % len(MARKS)]
            face = "white" if number >= len(plot.COLOURS) else colour
            label = f"{known:g} hours known"
            axes.plot(places, table[some], color=colour, marker=mark, markerfacecolor=face, label=label)
            axes.plot(places, last[some], color="0.75", linewidth=0.8, zorder=0)
        axes.set_xticks(range(len(online.ahead)), [f"{hours:g}" for hours in online.ahead])
        axes.set_xlabel("hours ahead, at most")
        axes.set_ylabel({"mse": "MSE, $10^{-3}$", "mae": "MAE, $10^{-2}$"}[name])
    figure.legend(*both[0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=4, loc="outside lower center")
    plot.save(figure, file)


def _text(
    config: NextDayConfig,
    rows: Sequence[Row],
    first: Forecasted,
    covered: dict[str, tuple[float, Sequence[float]]],
    claims: Sequence[Claim],
) -> str:
    scored = "test stays" if config.part == "test" else "validation stays, by forecasters of training stays only"
    lines = []
    for name in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if row.model == name]
        on_it, further = (
            [row for row in mine if (row.split == config.seeds[0]) is is_first] for is_first in (True, False)
        )
        lines.append(
            [
                name,
                _both(on_it[0]) if on_it else "",
                _spreads(further) if further else "",
                str(len(further)),
                f"{np.mean([row.train_seconds for row in mine]) / 60:.1f}",
            ]
        )
    if config.part == "test":
        published = {name: f"{mse / MILLI:.2f} / {mae / CENTI:.2f}" for name, (mse, mae) in PUBLISHED.items()}
        lines += [[f"{name}, published", both, "", "", ""] for name, both in published.items()]
    parts = [
        "# The next 24 hours in intensive care: results",
        "MSE in thousandths and MAE in hundredths of the squared and plain range of each variable, averaged over "
        f"variables, on {scored}. Split {config.seeds[0]}, then mean ± standard deviation over further splits.",
        *([claims_markdown(claims)] if claims else []),
        markdown(["model", f"split {config.seeds[0]}", "further splits", "how many", "minutes of training"], lines),
        f"## Each variable, split {config.seeds[0]}: MSE, thousandths",
    ]
    on_it = {row.model: row for row in rows if row.split == config.seeds[0]}
    on_first = f"split {config.seeds[0]}"
    share = next((each for label, (_, each) in reversed(covered.items()) if on_first in label.split(", ")), None)
    order = np.argsort(-np.array(next(iter(on_it.values())).variable_mse)) if on_it else []
    table = [
        [
            first.variables[k],
            str(first.counts[k]),
            *(f"{row.variable_mse[k] / MILLI:.3g}" for row in on_it.values()),
            "" if share is None else f"{share[k]:.1%}",
        ]
        for k in order
    ]
    parts.append(markdown(["variable", "questions", *on_it, "inside 90 % intervals"], table))
    parts.append(
        "Over all observations, " + "; ".join(f"{name}: {inside:.1%}" for name, (inside, _) in covered.items())
    )
    return "\n\n".join(parts) + "\n"


def _spreads(rows: Sequence[Row]) -> str:
    return f"{Spread.of(r.mse / MILLI for r in rows).text()} / {Spread.of(r.mae / CENTI for r in rows).text()}"


def _both(row: Row) -> str:
    return f"{row.mse / MILLI:.2f} / {row.mae / CENTI:.2f}"


def _below(row: Row, mse: float, mae: float) -> bool:
    return row.mse < mse and row.mae < mae
