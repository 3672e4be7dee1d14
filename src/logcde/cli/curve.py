"""The dropping curve of `logcde stress`: what was measured, put together, told and drawn."""

import dataclasses
from pathlib import Path

import numpy as np

from logcde.cli.scores import HIGHER
from logcde.errors import TableError

ENOUGH = 0.02
"""A score that is worse by no more than this, of errors by no more than this share, is called about as good."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One share of observations left out, by one draw."""

    drop: float
    seed: int
    score: str
    series: int
    metrics: dict[str, float]
    baseline: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Point:
    """One share of observations left out: means and standard deviations over draws."""

    drop: float
    mean: dict[str, float]
    std: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Result:
    """The curve. `retrained` says whether each point has a model of its own."""

    subject: str
    retrained: bool
    by: str
    series: int
    seeds: list[int]
    score: str
    points: list[Point]
    baseline: dict[str, float]


def gathered(cells: list[Cell], by: str, subject: str, retrained: bool) -> Result:
    """Means over draws, share by share."""
    points = []
    for share in dict.fromkeys(cell.drop for cell in cells):
        here = [cell.metrics for cell in cells if cell.drop == share]
        names = [name for name in here[0] if all(name in one for one in here)]
        values = {name: [one[name] for one in here] for name in names}
        means = {name: float(np.mean(numbers)) for name, numbers in values.items()}
        points.append(Point(share, means, {name: float(np.std(numbers)) for name, numbers in values.items()}))
    first = cells[0]
    seeds = list(dict.fromkeys(cell.seed for cell in cells))
    score = first.score if all(first.score in point.mean for point in points) else next(iter(points[0].mean))
    return Result(subject, retrained, by, first.series, seeds, score, points, first.baseline)


def as_text(result: Result) -> list[str]:
    """The curve for people, and what follows from it."""
    how = (
        "trained anew on what is left" if result.retrained else "trained on all observations, asked about what is left"
    )
    what = "whole points in time" if result.by == "points" else "observations of each channel by itself"
    names = list(result.points[0].mean)
    lines = [
        f"{result.subject}, {how}. Of {result.series:,} series, {what} are left out, {_drawn(len(result.seeds))}.",
        f"  {'left out':>9}" + "".join(f"  {name:>18}" for name in names),
    ]
    for point in result.points:
        cells = (f"{point.mean[name]:.4g} ± {point.std[name]:.2g}" if name in point.mean else "" for name in names)
        lines.append(f"  {point.drop:9.0%}" + "".join(f"  {cell:>18}" for cell in cells))
    alone = "".join(f"  {result.baseline.get(name, float('nan')):>18.4g}" for name in names)
    return [*lines, f"  {'no model':>9}{alone}", _verdict(result)]


def _drawn(count: int) -> str:
    return "drawn once" if count == 1 else f"drawn {count} times"


def _verdict(result: Result) -> str:
    """How far one can go."""
    name, sign = result.score, 1 if HIGHER[result.score] else -1
    best, fine = result.points[0].mean[name], 0.0
    allowed = ENOUGH if sign > 0 else ENOUGH * abs(best)
    for point in result.points:
        if sign * (best - point.mean[name]) > allowed:
            falls = f"with {point.drop:.0%} left out it is {point.mean[name]:.4g}"
            if not fine:
                return f"On all observations {name} is {best:.4g}; {falls}."
            return f"Up to {fine:.0%} left out, {name} stays about as good as on all observations, {best:.4g}; {falls}."
        fine = point.drop
    return f"Even with {fine:.0%} left out, {name} stays about as good as on all observations, {best:.4g}."


def draw(result: Result, file: Path) -> None:
    """The curve as a figure."""
    try:
        from logcde.plot import dropping, figure_of, save

        figure = figure_of(5.5, 3.6)
        axes = figure.subplots()
        pairs = [(point.mean[result.score], point.std[result.score]) for point in result.points]
        label = "trained anew" if result.retrained else Path(result.subject).name
        dropping(axes, [point.drop for point in result.points], pairs, label)
        alone = result.baseline.get(result.score)
        if alone is not None:
            axes.axhline(alone, color="0.6", lw=1, ls=":", label="without a model")
        axes.set_ylabel(result.score)
        axes.legend(frameon=False, fontsize=8)
        save(figure, file)
    except ImportError as error:
        raise TableError('A figure needs Matplotlib, which is not installed: pip install "logcde[plot]".') from error
    except (OSError, ValueError) as error:
        raise TableError(f"The figure {file} cannot be written: {error}. Give another name with --plot.") from error
