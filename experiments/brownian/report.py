"""Report of the Brownian experiment: errors over intervals, compared with the paper and with the true system."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from experiments.brownian.cells import BrownianConfig
from experiments.runner.abstract import Claim, Conclusion, Record
from experiments.runner.tables import Spread, claims_markdown, markdown
from logcde import plot
from logcde.datasets import aligned_cuts, brownian

UNIT = 1e-6
PAPER = {
    1: {2: 6.97e-6, 4: 3.72e-6, 8: 2.10e-6, 16: 0.72e-6, 32: 0.41e-6, 64: 0.28e-6},
    2: {2: 0.29e-6, 4: 0.20e-6, 8: 0.15e-6, 16: 0.12e-6, 32: 0.11e-6, 64: 0.11e-6},
}
"""The means of `tab:intervals_vs_error`."""

PLATEAU = 1e-7
SHOWN = 16
Runs: TypeAlias = Mapping[tuple[str, int, int, int], Record]


class Row(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Errors for one number of intervals; columns that were not run are None and left out of the summary."""

    m: int
    level1: Spread | None = None
    level2: Spread | None = None
    level1_printed: Spread | None = None
    level2_printed: Spread | None = None
    oracle1: Spread | None = None
    oracle2: Spread | None = None
    paper1: float | None = None
    paper2: float | None = None


def conclude(
    config: BrownianConfig,
    runs: Runs,
    searched: Mapping[int, Mapping[str, float | None]],
    chosen: Mapping[int, str],
    seconds: float,
    folder: Path,
) -> Conclusion:
    """Judge the claims, draw the figures, and write summary and text."""
    rows = [row_of(runs, count) for count in config.intervals]
    best = "ours" if any(row.level2 for row in rows) else "printed"
    claims = judge(rows, _redundant(runs, best)) if best == "ours" else []
    others = {
        variant: {f"level {level}, {count}": _spread(runs, variant, level, count) for level, count in found}
        for variant in _others(runs)
        for found in [_places(runs, variant)]
    }
    _draw(config, runs, rows, best, folder)
    summary = {
        "seeds": sorted({seed for *_, seed in runs}),
        "rows": msgspec.to_builtins(rows),
        "variants": msgspec.to_builtins(others),
        "chosen": {f"level{level}": name for level, name in chosen.items()},
        "validation": {f"level{level}": dict(errors) for level, errors in searched.items()},
        "claims": msgspec.to_builtins(claims),
        "cell_seconds": round(seconds, 1),
    }
    return Conclusion(summary, _text(config, runs, rows, searched, chosen, claims, best), tuple(claims))


def row_of(runs: Runs, intervals: int) -> Row:
    """Collect the errors for one number of intervals."""
    row = Row(m=intervals, paper1=PAPER[1].get(intervals), paper2=PAPER[2].get(intervals))
    for level in (1, 2):
        for variant, name in (("ours", f"level{level}"), ("printed", f"level{level}_printed")):
            if mine := _some(runs, variant, level, intervals):
                setattr(row, name, Spread.of(record.outcome.mse for record in mine))
                setattr(row, f"oracle{level}", Spread.of(record.outcome.oracle for record in mine))
    return row


def judge(rows: Sequence[Row], redundant: tuple[float, float]) -> list[Claim]:
    """Judge the claims about our recipe."""
    first = {row.m: row.level1.mean / row.oracle1.mean for row in rows if row.level1 and row.oracle1}
    known = [(row, row.level2.mean, row.oracle2.mean) for row in rows if row.level2 and row.oracle2]
    second = {row.m: error / max(best, PLATEAU) for row, error, best in known}
    beaten = {row.m: error / row.paper2 for row, error, best in known if row.paper2 and best < row.paper2}
    gains = {row.m: row.level1.mean / error for row, error, _ in known[:1] if row.level1}
    return [
        Claim(
            "Level 1 is within 1.5 x of the true system on the same increments, for every number of intervals",
            all(ratio <= 1.5 for ratio in first.values()),
            _listed(first),
        ),
        Claim(
            "Level 2 is within 2 x of the larger of the true system's error and 1e-7, for every number of intervals",
            all(ratio <= 2 for ratio in second.values()),
            _listed(second),
        ),
        *(
            Claim(f"With {count} intervals level 2 is at least 20 x better than level 1", gain >= 20, f"{gain:.3g} x")
            for count, gain in gains.items()
        ),
        Claim(
            "Level 2 is better than the paper's wherever the true system is",
            all(ratio <= 1 for ratio in beaten.values()),
            "ours / paper: " + (_listed(beaten) or "nowhere"),
        ),
        Claim(
            "Channels 3 and 4 are ignored: at zero they change the error of level 2 by less than 10 % of the larger of "
            "it and 1e-7",
            redundant[1] < 0.1,
            f"at most {redundant[1]:.1%}; their matrices have {redundant[0]:.2f} of the norm of those of channels 1, 2",
        ),
    ]


def _redundant(runs: Runs, variant: str) -> tuple[float, float]:
    """Largest over intervals: norm of channels 3 and 4 relative to 1 and 2, and change of the error without them."""
    norms, changes = [], []
    for level, count in _places(runs, variant):
        if level == 2:
            mine = [record.outcome for record in _some(runs, variant, level, count)]
            norms.append(np.mean([(o.norms["W3"] + o.norms["W4"]) / (o.norms["W1"] + o.norms["W2"]) for o in mine]))
            error, without = (np.mean([getattr(o, name) for o in mine]) for name in ("mse", "mse_without_redundant"))
            changes.append(abs(without - error) / max(error, PLATEAU))
    return float(max(norms)), float(max(changes))


def _some(runs: Runs, variant: str, level: int, intervals: int) -> list[Record]:
    return [record for key, record in runs.items() if key[:3] == (variant, level, intervals)]


def _spread(runs: Runs, variant: str, level: int, intervals: int) -> Spread:
    return Spread.of(record.outcome.mse for record in _some(runs, variant, level, intervals))


def _places(runs: Runs, variant: str) -> list[tuple[int, int]]:
    """Levels and numbers of intervals that a variant was run with."""
    return sorted({(level, count) for name, level, count, _ in runs if name == variant})


def _others(runs: Runs) -> list[str]:
    return [name for name in dict.fromkeys(variant for variant, *_ in runs) if name not in ("printed", "ours")]


def _listed(ratios: Mapping) -> str:
    return ", ".join(f"m = {count}: {ratio:.3g}" for count, ratio in ratios.items())


def _text(
    config: BrownianConfig,
    runs: Runs,
    rows: Sequence[Row],
    searched: Mapping[int, Mapping[str, float | None]],
    chosen: Mapping[int, str],
    claims: Sequence[Claim],
    best: str,
) -> str:
    """All tables as Markdown."""
    columns = {
        "m": "intervals",
        "paper1": "paper, level 1",
        "level1_printed": "printed recipe, level 1",
        "level1": "ours, level 1",
        "oracle1": "true system, level 1",
        "paper2": "paper, level 2",
        "level2_printed": "printed recipe, level 2",
        "level2": "ours, level 2",
        "oracle2": "true system, level 2",
    }
    seeds = sorted({seed for *_, seed in runs})
    parts = [
        "# A linear system driven by Brownian motion: results",
        f"Test MSE in units of 1e-6, mean ± standard deviation over {len(seeds)} seeds; {config.train} training and "
        f"{config.test} test paths. The true system is the Log-ODE method with the true matrices, on the same "
        "log-signatures: what can be known from them.",
        markdown(list(columns.values()), [[_cell(getattr(row, name)) for name in columns] for row in rows]),
    ]
    if claims:
        parts.append(claims_markdown(claims))
    for level, errors in searched.items():
        if errors:
            parts += [
                f"## Candidates, level {level}" + (f": {chosen[level]} is chosen" if level in chosen else ""),
                markdown(
                    ["candidate", "validation MSE (1e-6)"],
                    [[name, "not run" if e is None else f"{e / UNIT:.3g}"] for name, e in errors.items()],
                ),
            ]
    parts += ["## Sizes of the learnt matrices, level 2", _norms_table(runs, best)]
    for name in _others(runs):
        errors = [[str(level), str(count), _spread(runs, name, level, count).text(UNIT)]
                  for level, count in _places(runs, name)]  # fmt: skip
        table = markdown(["level", "intervals", "test MSE (1e-6)"], errors)
        parts += [f"## {name}", config.variants[name].note, table]
    return "\n\n".join(parts) + "\n"


def _cell(value: Spread | float | int | None) -> str:
    match value:
        case None:
            return ""
        case Spread():
            return value.text(UNIT)
        case int():
            return str(value)
    return f"{value / UNIT:.3g}"


def _norms_table(runs: Runs, variant: str) -> str:
    rows = []
    for level, count in _places(runs, variant):
        if level == 2:
            found = [record.outcome.norms for record in _some(runs, variant, level, count)]
            rows.append([str(count), *(Spread.of(norms[letter] for norms in found).text() for letter in found[0])])
    letters = next(record.outcome.norms for key, record in runs.items() if key[:2] == (variant, 2)) if rows else []
    return markdown(["intervals", *letters], rows)


def _draw(config: BrownianConfig, runs: Runs, rows: Sequence[Row], best: str, folder: Path) -> None:
    suffix = "" if best == "ours" else "_printed"
    lines = {
        "level 1": f"level1{suffix}",
        "level 2": f"level2{suffix}",
        "true system, level 1": "oracle1",
        "true system, level 2": "oracle2",
    }
    drawn = {
        label: (np.array([cell.mean for cell in cells]), np.array([cell.std for cell in cells]))
        for label, name in lines.items()
        if all(cells := [getattr(row, name) for row in rows])
    }
    for level, errors in PAPER.items():
        if all(row.m in errors for row in rows):
            drawn[f"paper, level {level}"] = (np.array([errors[row.m] for row in rows]), np.zeros(len(rows)))
    figure = plot.figure_of(6.4, 4.8)
    dashed = [label for label in drawn if not label.startswith("level")]
    axes = plot.loglog_errorbars(figure.subplots(), [row.m for row in rows], drawn, dashed)
    axes.set_xlabel("query intervals")
    axes.set_ylabel("test MSE")
    plot.save(figure, folder / "errors.png")
    shown = SHOWN if SHOWN in config.intervals else config.intervals[-1]
    seed = min(seed for *_, seed in runs)
    for level in (1, 2):
        if (best, level, shown, seed) in runs:
            _draw_examples(runs[best, level, shown, seed], folder / f"examples_level{level}.png")


def _draw_examples(record: Record, file: Path) -> None:
    cell = record.cell
    cuts = aligned_cuts(cell.intervals, (cell.seed, cell.intervals), cell.steps)
    shown = record.outcome.predictions
    paths = brownian(cell.test, (cell.seed, 1), cell.steps)
    fine = np.linspace(0, 1, cell.steps + 1)
    figure = plot.figure_of(9, 1.7 * len(shown))
    panels = figure.subplots(len(shown), 2, sharex=True, squeeze=False)
    for (series, component), axes in np.ndenumerate(panels):
        chosen = slice(component, component + 1)
        truth = (fine, paths.states[series][:, chosen])
        plot.predictions(axes, fine[cuts[1:]], np.array(shown[series])[:, chosen], truth, ("X",))
    for component in (0, 1):
        panels[0, component].set_title(f"component {component + 1}", loc="left", fontsize=10)
        panels[-1, component].set_xlabel("time")
    figure.suptitle(f"Trained with level {cell.level}, {cell.intervals} intervals", fontsize=11)
    handles, _ = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, ("truth", "predicted"), frameon=False, fontsize=8, ncols=2, loc="outside lower center")
    plot.save(figure, file)
