"""Figures of the report, as markup."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde import plot
from logcde.report import record
from logcde.report.html import Markup, tag
from logcde.train import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def loss_curve(evaluations: Sequence[record.Evaluation]) -> Markup | None:
    """Draw the loss over steps, and that of the validation series if there are any. None if no loss is finite."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    shown = [_evaluation(one) for one in evaluations]
    if not np.isfinite([one.loss for one in shown]).any():
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
    gaps = any(one.loss is None for one in evaluations)
    note = " Where the line is broken, the loss was not finite." if gaps else ""
    return _figure(figure, "training", f"Mean training loss since the previous evaluation.{note}")


def reliability_diagram(probabilities: np.ndarray, right: np.ndarray) -> Markup:
    """Draw the calibration of the probabilities (series, class)."""
    figure = plot.figure_of(4.6, 4.4)
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    plot.reliability(top, below, probabilities.max(axis=1), right)
    caption = (
        "Accuracy over the probability of the predicted class. Calibrated probabilities are on the dashed line; below "
        "it the model is overconfident. Bins with few series are unreliable."
    )
    return _figure(figure, "calibration", caption)


def error_plots(truth: np.ndarray, prediction: np.ndarray, name: str, number: int) -> Markup:
    """Draw predicted over true values of one output, and a histogram of the errors."""
    figure = plot.figure_of(8, 3.4)
    left, right = figure.subplots(1, 2)
    plot.parity(left, truth, prediction, _label(name))
    plot.residuals(right, truth, prediction, _label(name))
    caption = f"{name}: predicted over true values (equal on the dashed line), and the distribution of the errors."
    return _figure(figure, f"errors{number}", caption)


def forecasts(
    series: Sequence[str],
    rows: Sequence[np.ndarray],
    time: np.ndarray,
    truth: np.ndarray,
    prediction: np.ndarray,
    outputs: Sequence[str],
    unit: str,
) -> Markup:
    """Draw true and predicted values of some series over time, one panel for each series and output.

    Args:
        series: Names of the series.
        rows: Rows of each of them in the arrays.
        time: Time of each row.
        truth: True values (row, output).
        prediction: Predictions (row, output).
        outputs: Names of the outputs.
        unit: Unit of time.
    """
    figure = plot.figure_of(8, 0.6 + 1.7 * len(series))
    grid = figure.subplots(len(series), len(outputs), squeeze=False, sharex=True, sharey="col")
    for panels, name, mine in zip(grid, series, rows, strict=True):
        for number, axes in enumerate(panels):
            known = mine[np.isfinite(truth[mine, number]) & np.isfinite(prediction[mine, number])]
            plot.forecast(axes, time[known], truth[known, number], prediction[known, number])
            axes.set_title(_label(f"{name}, {outputs[number]}"), loc="left", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel(f"time, {unit}" if unit else "time")
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=2, loc="outside upper right"
    )
    return _figure(figure, "examples", "The first held-out series. Predictions use earlier observations only.")


def _figure(figure: "Figure", name: str, caption: str) -> Markup:
    return tag("figure", Markup(plot.as_svg(figure, name)), tag("figcaption", caption))


def _label(name: str, most: int = 40) -> str:
    """Shorten a user's name, and keep Matplotlib from reading it as a formula."""
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")


def _evaluation(one: record.Evaluation) -> Evaluation:
    loss = float("nan") if one.loss is None else one.loss
    return Evaluation(one.step, one.epoch, one.seconds, loss, one.validation, one.best)
