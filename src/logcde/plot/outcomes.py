"""Figures of predictions: time courses, errors, calibration, attributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS, DASHES, MARKS, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 10
"""Bins of the reliability diagram."""
MANY = 1000
"""More points are drawn as an image, which makes a smaller file."""


def predictions(
    axes: "Axes",
    times: np.ndarray,
    predicted: np.ndarray,
    truth: tuple[np.ndarray, np.ndarray],
    names: Sequence[str],
) -> "Axes":
    """Draw predictions of one series as markers over the true signals as lines.

    Args:
        axes: Axes to draw on; they are returned.
        times: Times of the predictions.
        predicted: Predictions (time, channel).
        truth: Times and values (time, channel) of the true signals.
        names: Names of the channels.

    >>> from logcde.plot import figure_of
    >>> times = np.linspace(0.0, 1.0, 5)
    >>> truth = (times, np.sin(times)[:, None])
    >>> axes = predictions(figure_of(4, 3).subplots(), times[::2], truth[1][::2] + 0.1, truth, ["wave"])
    >>> axes.get_legend_handles_labels()[1]
    ['wave, truth', 'wave, predicted']
    """
    for channel, name in enumerate(names):
        colour = COLOURS[channel % len(COLOURS)]
        style = {"color": colour, "dashes": DASHES[channel % len(DASHES)], "lw": 1.2, "alpha": 0.6}
        axes.plot(truth[0], truth[1][:, channel], label=f"{name}, truth", **style)
        mark = MARKS[channel % len(MARKS)]
        axes.plot(times, predicted[:, channel], mark, color=colour, ms=4, mfc="white", label=f"{name}, predicted")
    axes.set_xlim(truth[0][0], truth[0][-1])
    axes.set_xlabel("time")
    return without_frame(axes)


def forecast(axes: "Axes", times: np.ndarray, truth: np.ndarray, prediction: np.ndarray) -> "Axes":
    """Draw true values as dots, predictions as open markers, and their differences as vertical lines.

    Args:
        axes: Axes to draw on; they are returned.
        times: Times of the predictions.
        truth: True values.
        prediction: Predicted values.

    >>> from logcde.plot import figure_of
    >>> times = np.array([0.5, 1.0])
    >>> axes = forecast(figure_of(4, 2).subplots(), times, np.array([1.0, 2.0]), np.array([1.1, 1.8]))
    >>> axes.get_legend_handles_labels()[1]
    ['true', 'predicted']
    """
    axes.vlines(times, truth, prediction, color="0.6", lw=0.8)
    axes.plot(times, truth, "o", color=COLOURS[0], ms=3.5, label="true")
    axes.plot(times, prediction, "s", color=COLOURS[1], mfc="none", ms=5, label="predicted")
    return without_frame(axes)


def parity(axes: "Axes", truth: np.ndarray, prediction: np.ndarray, name: str) -> "Axes":
    """Draw a parity plot: predicted over true values, which are equal on the dashed line.

    Args:
        axes: Axes to draw on; they are returned.
        truth: True values.
        prediction: Predicted values.
        name: Name of the output.

    >>> from logcde.plot import figure_of
    >>> axes = parity(figure_of(3, 3).subplots(), np.array([1.0, 2.0]), np.array([1.1, 1.8]), "days")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('days, true', 'days, predicted')
    """
    both = np.concatenate([truth, prediction])
    ends = [both.min(), both.max()]
    axes.plot(ends, ends, color="0.55", lw=1.0, dashes=(4, 2))
    many = len(truth) > MANY
    style = {"ms": 2 if many else 4, "alpha": 0.35 if many else 0.6, "mew": 0, "rasterized": many}
    axes.plot(truth, prediction, "o", color=COLOURS[0], **style)
    axes.set_xlabel(f"{name}, true")
    axes.set_ylabel(f"{name}, predicted")
    return without_frame(axes)


def residuals(axes: "Axes", truth: np.ndarray, prediction: np.ndarray, name: str) -> "Axes":
    """Draw a histogram of the errors, predicted minus true. Arguments as those of `parity`.

    >>> from logcde.plot import figure_of
    >>> axes = residuals(figure_of(3, 3).subplots(), np.array([1.0, 2.0]), np.array([1.1, 1.8]), "days")
    >>> axes.get_xlabel()
    'days, predicted − true'
    """
    error = prediction - truth
    # Errors that are equal up to rounding cannot be binned.
    wide = float(np.ptp(error)) > 1e-9 * float(np.abs(error).max(initial=0.0))
    axes.hist(error, bins=min(40, max(5, round(len(error) ** 0.5))) if wide else 1, color=COLOURS[0], alpha=0.75)
    axes.axvline(0, color="0.55", lw=1.0, dashes=(4, 2))
    axes.set_xlabel(f"{name}, predicted − true")
    axes.set_ylabel("predictions")
    return without_frame(axes)


def reliability(axes: "Axes", below: "Axes", confidence: np.ndarray, right: np.ndarray) -> "Axes":
    """Draw a reliability diagram: accuracy over the probability of the predicted class, and the size of each bin.

    Args:
        axes: Axes of the diagram; they are returned.
        below: Axes of the histogram of probabilities.
        confidence: Probability of the predicted class of each series.
        right: Whether the prediction is right.

    >>> from logcde.plot import figure_of
    >>> top, below = figure_of(3, 4).subplots(2, 1)
    >>> axes = reliability(top, below, np.array([0.55, 0.58, 0.9]), np.array([True, False, True]))
    >>> axes.lines[1].get_xydata().round(3).tolist()
    [[0.565, 0.5], [0.9, 1.0]]
    """
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    some = count > 0
    said, happened = (np.bincount(place, part, BINS)[some] / count[some] for part in (confidence, right.astype(float)))
    axes.plot([0, 1], [0, 1], color="0.55", lw=1.0, dashes=(4, 2))
    axes.plot(said, happened, "o-", color=COLOURS[0], ms=5, lw=1.4)
    axes.set_ylabel("share that is right")
    axes.set_ylim(-0.03, 1.03)
    below.bar((np.arange(BINS) + 0.5) / BINS, count, 0.9 / BINS, color=COLOURS[0], alpha=0.75)
    for bar in np.flatnonzero(some):
        below.text((bar + 0.5) / BINS, count[bar], f"{count[bar]:,}", ha="center", va="bottom", fontsize=7)
    below.set_ylim(0, 1.3 * count.max())
    below.set_ylabel("series")
    below.set_xlabel("probability of the predicted class")
    for part in (axes, below):
        part.set_xlim(0, 1)
    without_frame(below)
    return without_frame(axes)


def attributions(
    axes: "Axes", times: np.ndarray, channels: Sequence[str], amounts: np.ndarray, shown: int = 18
) -> "Axes":
    """Draw the attribution of a prediction to observations: direction as the marker, amount as its size.

    Channels are sorted by the sum of their absolute amounts; their labels have the sum of amounts.

    Args:
        axes: Axes to draw on; they are returned.
        times: Times of the observations.
        channels: Channel of each observation.
        amounts: Attribution of each observation.
        shown: Largest number of channels.

    >>> from logcde.plot import figure_of
    >>> amounts = np.array([1.0, -4.0, 2.0])
    >>> axes = attributions(figure_of(4, 2).subplots(), np.array([1.0, 2.0, 2.0]), ["a", "b", "a"], amounts)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['b  −4.00', 'a  +3.00']
    """
    names = np.array(channels)
    weight = {str(name): float(np.abs(amounts[names == name]).sum()) for name in np.unique(names)}
    rows = sorted(weight, key=weight.__getitem__, reverse=True)[:shown]
    largest = float(np.abs(amounts).max(initial=0.0)) or 1.0
    for row, name in enumerate(rows):
        for up, mark, colour in ((True, "^", COLOURS[1]), (False, "v", COLOURS[0])):
            mine = (names == name) & ((amounts > 0) == up) & (amounts != 0)
            sizes = 4 + 220 * np.abs(amounts[mine]) / largest
            axes.scatter(times[mine], np.full(mine.sum(), row), sizes, colour, marker=mark, alpha=0.65, lw=0)
    for up, mark, colour in (("raises", "^", COLOURS[1]), ("lowers", "v", COLOURS[0])):
        axes.scatter([], [], 40, colour, marker=mark, alpha=0.65, lw=0, label=up)
    totals = [float(amounts[names == name].sum()) for name in rows]
    axes.set_yticks(range(len(rows)), [f"{name}  {_signed(total)}" for name, total in zip(rows, totals, strict=True)])
    axes.invert_yaxis()
    axes.grid(axis="y", color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return without_frame(axes)


def _signed(number: float) -> str:
    return f"{'−' if number < 0 else '+'}{abs(number):.2f}"
