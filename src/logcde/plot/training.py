"""Figures of training runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS, MARKS, without_frame
from logcde.train import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def history(axes: "Axes", evaluations: Sequence[Evaluation], score: str = "loss") -> "Axes":
    """Draw the training loss of one run and a score of its validation series; the best evaluation is marked.

    Args:
        axes: Axes to draw on; they are returned.
        evaluations: The `history` of the result of `fit`.
        score: Name of the validation score. Values that are not finite are left out.

    >>> from logcde.plot import figure_of
    >>> evaluations = [
    ...     Evaluation(10, 1.0, 0.1, 0.9, {"loss": 1.0}, True),
    ...     Evaluation(20, 2.0, 0.2, 0.5, {"loss": 0.8}, True),
    ... ]
    >>> axes = history(figure_of(4, 3).subplots(), evaluations)
    >>> axes.get_legend_handles_labels()[1]
    ['training loss', 'validation loss', 'best']
    """
    steps = [one.step for one in evaluations]
    axes.plot(steps, [one.loss for one in evaluations], color=COLOURS[0], dashes=(4, 2), lw=1.4, label="training loss")
    scores = [np.nan if (value := one.validation.get(score)) is None else value for one in evaluations]
    if np.isfinite(scores).any():
        axes.plot(steps, scores, color=COLOURS[1], lw=1.4, label=f"validation {score}")
        best = max((k for k, one in enumerate(evaluations) if one.best), default=None)
        if best is not None:
            axes.plot(steps[best], scores[best], "o", color=COLOURS[1], mfc="white", ms=7, mew=1.6, label="best")
    if (
        score == "loss"
        and min((one.loss for one in evaluations), default=0) > 0
        and not np.nanmin([*scores, np.inf]) <= 0
    ):
        axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.legend(frameon=False, fontsize=8)
    return without_frame(axes)


def loss_curves(axes: "Axes", training: np.ndarray, held_out: np.ndarray, label: str, number: int = 0) -> "Axes":
    """Draw training and test losses of several seeds over epochs: their mean, and a band from minimum to maximum.

    Args:
        axes: Axes to draw on; they are returned.
        training: Training losses (seed, epoch).
        held_out: Test losses (seed, epoch).
        label: Name of the model in the legend.
        number: Index of colour and marker.

    >>> from logcde.plot import figure_of
    >>> losses = np.array([[1.0, 0.5, 0.3], [1.2, 0.6, 0.2]])
    >>> axes = loss_curves(figure_of(4, 3).subplots(), losses, 1.5 * losses, "small")
    >>> axes.get_legend_handles_labels()[1]
    ['small, training', 'small, test']
    """
    colour = COLOURS[number % len(COLOURS)]
    epochs = np.arange(1, np.shape(held_out)[1] + 1)
    style = {"color": colour, "lw": 1.4, "marker": MARKS[number % len(MARKS)], "ms": 4}
    style["markevery"] = max(1, len(epochs) // 8)  # enough to distinguish lines without colours
    for losses, dashes, what in ((training, (4, 2), "training"), (held_out, (1, 0), "test")):
        axes.plot(epochs, np.mean(losses, axis=0), dashes=dashes, label=f"{label}, {what}", **style)
        axes.fill_between(epochs, np.min(losses, axis=0), np.max(losses, axis=0), color=colour, alpha=0.15, lw=0)
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_xlim(1, len(epochs))
    return without_frame(axes)
