"""Figures for the page, as markup."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde import plot
from logcde.report.html import Markup, tag
from logcde.report.record import Look
from logcde.train import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def training(looks: Sequence[Look]) -> Markup | None:
    """The loss over steps, and that of validation series if there are any. None if no loss is finite."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    shown = [_evaluation(look) for look in looks]
    if not np.isfinite([look.loss for look in shown]).any():
        return None
    figure = plot.figure_of(7, 3)
    axes = plot.history(figure.subplots(), shown)
    axes.set_ylabel("loss")
    if len(shown) == 1:
        axes.lines[0].set_marker("o")
    if axes.get_yscale() == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    gaps = any(look.loss is None for look in looks)
    note = " Where the line is broken, the loss was not a finite number." if gaps else ""
    return drawn(figure, "training", f"Mean loss since the look before.{note}")


def calibration(probabilities: np.ndarray, right: np.ndarray) -> Markup:
    """How far probabilities can be believed."""
    figure = plot.figure_of(4.6, 4.4)
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    plot.reliability(top, below, probabilities.max(axis=1), right)
    caption = (
        "Calibration. On the dashed line, what is said to be 80% probable is right in 80% of all cases; below it the "
        "model is too sure. Few series in a bin say little."
    )
    return drawn(figure, "calibration", caption)


def errors(truth: np.ndarray, prediction: np.ndarray, name: str, number: int) -> Markup:
    """Predictions of one output beside the truth."""
    figure = plot.figure_of(8, 3.4)
    left, right = figure.subplots(1, 2)
    plot.agreement(left, truth, prediction, plain(name))
    plot.residuals(right, truth, prediction, plain(name))
    caption = f"{name}: predicted against true (equal on the dashed line), and how the errors are spread."
    return drawn(figure, f"errors{number}", caption)


def examples(
    series: Sequence[str],
    rows: Sequence[np.ndarray],
    time: np.ndarray,
    truth: np.ndarray,
    prediction: np.ndarray,
    outputs: Sequence[str],
    unit: str,
) -> Markup:
    """Some series over time: those with these names, whose `rows` these are, a panel for each and each output."""
    figure = plot.figure_of(8, 0.6 + 1.7 * len(series))
    grid = figure.subplots(len(series), len(outputs), squeeze=False, sharex=True, sharey="col")
    for panels, name, mine in zip(grid, series, rows, strict=True):
        for number, axes in enumerate(panels):
            known = mine[np.isfinite(truth[mine, number]) & np.isfinite(prediction[mine, number])]
            plot.forecast(axes, time[known], truth[known, number], prediction[known, number])
            axes.set_title(plain(f"{name}, {outputs[number]}"), loc="left", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel(f"time, {unit}" if unit else "time")
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=2, loc="outside upper right"
    )
    return drawn(figure, "examples", "The first held-out series. Each prediction is made from what came before it.")


def drawn(figure: "Figure", name: str, caption: str) -> Markup:
    """A figure in the page."""
    return tag("figure", Markup(plot.as_svg(figure, name)), tag("figcaption", caption))


def plain(name: str, most: int = 40) -> str:
    """A user's text as a label: not too long, and never a formula."""
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")


def _evaluation(look: Look) -> Evaluation:
    loss = float("nan") if look.loss is None else look.loss
    return Evaluation(look.step, look.epoch, look.seconds, loss, look.validation, look.best)
