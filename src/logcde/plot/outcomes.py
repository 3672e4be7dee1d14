"""Pictures of how good predictions are: agreement, errors, calibration, and forecasts over time."""

from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 10
MANY = 1000
"""Points from which on they are drawn as an image, which is smaller."""


def agreement(axes: "Axes", truth: np.ndarray, prediction: np.ndarray, name: str) -> "Axes":
    """Draw predictions over the truth; on the line they are equal.

    >>> from logcde.plot import figure_of
    >>> axes = agreement(figure_of(3, 3).subplots(), np.array([1.0, 2.0]), np.array([1.1, 1.8]), "days")
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
    return _plain(axes)


def residuals(axes: "Axes", truth: np.ndarray, prediction: np.ndarray, name: str) -> "Axes":
    """Draw how many errors there are of each size.

    >>> from logcde.plot import figure_of
    >>> axes = residuals(figure_of(3, 3).subplots(), np.array([1.0, 2.0]), np.array([1.1, 1.8]), "days")
    >>> axes.get_xlabel()
    'days, predicted − true'
    """
    error = prediction - truth
    # Errors that are equal but for rounding have no width that could be cut into bins.
    wide = float(np.ptp(error)) > 1e-9 * float(np.abs(error).max(initial=0.0))
    axes.hist(error, bins=min(40, max(5, round(len(error) ** 0.5))) if wide else 1, color=COLOURS[0], alpha=0.75)
    axes.axvline(0, color="0.55", lw=1.0, dashes=(4, 2))
    axes.set_xlabel(f"{name}, predicted − true")
    axes.set_ylabel("predictions")
    return _plain(axes)


def reliability(axes: "Axes", below: "Axes", confidence: np.ndarray, right: np.ndarray) -> "Axes":
    """Draw how often the most probable class is right over how probable it is said to be, and below how many there are.

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
    _plain(below)
    return _plain(axes)


def forecast(axes: "Axes", times: np.ndarray, truth: np.ndarray, prediction: np.ndarray) -> "Axes":
    """Draw the truth as dots, predictions as open marks, and how far they are apart.

    >>> from logcde.plot import figure_of
    >>> times = np.array([0.5, 1.0])
    >>> axes = forecast(figure_of(4, 2).subplots(), times, np.array([1.0, 2.0]), np.array([1.1, 1.8]))
    >>> axes.get_legend_handles_labels()[1]
    ['true', 'predicted']
    """
    axes.vlines(times, truth, prediction, color="0.6", lw=0.8)
    axes.plot(times, truth, "o", color=COLOURS[0], ms=3.5, label="true")
    axes.plot(times, prediction, "s", color=COLOURS[1], mfc="none", ms=5, label="predicted")
    return _plain(axes)


def _plain(axes: "Axes") -> "Axes":
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
