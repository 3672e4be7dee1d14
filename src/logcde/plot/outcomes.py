"""Pictures of how good predictions are and what they are made of: agreement, errors, calibration, attributions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS, DASHES

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


def attributions(
    axes: "Axes", times: np.ndarray, channels: Sequence[str], amounts: np.ndarray, shown: int = 18
) -> "Axes":
    """Draw by how much each observation moves a prediction: up or down by the mark, how much by its size.

    Channels are in the order of how much they matter, at most so many are `shown`, each with the sum of its amounts.

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
    return _plain(axes)


def hours(axes: "Axes", places: np.ndarray, lines: Mapping[str, np.ndarray]) -> "Axes":
    """Draw how good predictions are over how long a series has been watched, a line for each model.

    >>> from logcde.plot import figure_of
    >>> axes = hours(figure_of(4, 2).subplots(), np.array([1, 2]), {"model": np.array([0.6, 0.8])})
    >>> axes.get_xlabel()
    'hours'
    """
    for number, (name, line) in enumerate(lines.items()):
        style = {"color": COLOURS[number % len(COLOURS)], "dashes": DASHES[number % len(DASHES)]}
        axes.plot(places, line, lw=1.6, label=name, **style)
    axes.set_xlabel("hours")
    axes.legend(frameon=False, fontsize=8)
    return _plain(axes)


def _signed(number: float) -> str:
    return f"{'−' if number < 0 else '+'}{abs(number):.2f}"


def _plain(axes: "Axes") -> "Axes":
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
