"""Figures that compare models: scores over a condition, a matrix of scores, distributions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS, DASHES, MARKS, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def heatmap(
    axes: "Axes", means: np.ndarray, spreads: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> "Axes":
    """Draw a matrix of means with their standard deviations, coloured on a logarithmic scale.

    Args:
        axes: Axes to draw on; they are returned.
        means: Means (row, column), positive.
        spreads: Standard deviations (row, column).
        rows: Labels of the rows.
        columns: Labels of the columns.

    >>> from logcde.plot import figure_of
    >>> means = np.array([[1.0, 4.0], [2.0, 1.0]])
    >>> axes = heatmap(figure_of(3, 3).subplots(), means, 0.1 * means, ["a", "b"], ["a", "b"])
    >>> axes.texts[1].get_text().splitlines()
    ['4', '± 0.4']
    """
    from matplotlib.colors import LogNorm

    norm = LogNorm(means.min(), max(means.max(), means.min() * 1.01))
    axes.imshow(means, cmap="YlGnBu", norm=norm, aspect="auto")
    for row, column in np.ndindex(means.shape):
        dark = norm(means[row, column]) > 0.55
        text = f"{means[row, column]:.3g}\n± {spreads[row, column]:.2g}"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    return without_frame(axes, "top", "right", "left", "bottom")


def loglog_errorbars(
    axes: "Axes",
    positions: Sequence[float],
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
    dashed: Sequence[str] = (),
) -> "Axes":
    """Draw lines of means with standard deviations on logarithmic axes.

    Args:
        axes: Axes to draw on; they are returned.
        positions: Positions on the x-axis.
        lines: Means and standard deviations at these positions, by the name of the line.
        dashed: Names of the lines to draw dashed, with open markers.

    >>> from logcde.plot import figure_of
    >>> line = (np.array([1.0, 0.5]), np.array([0.1, 0.1]))
    >>> axes = loglog_errorbars(figure_of(4, 3).subplots(), [8, 16], {"a": line})
    >>> axes.get_xscale(), [label.get_text() for label in axes.get_xticklabels()]
    ('log', ['8', '16'])
    """
    for number, (name, (means, spreads)) in enumerate(lines.items()):
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "ms": 5, "lw": 1.4}
        if name in dashed:
            style |= {"dashes": (4, 2), "mfc": "white"}
        low = np.minimum(spreads, 0.9 * means)  # error bars end above zero, which a logarithmic axis cannot show
        axes.errorbar(positions, means, yerr=[low, spreads], capsize=2, label=name, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(positions, [f"{position:g}" for position in positions])
    axes.legend(frameon=False, fontsize=8)
    return without_frame(axes)


def drop_curve(
    axes: "Axes",
    drops: Sequence[float],
    scores: Sequence[tuple[float, float]],
    label: str,
    number: int = 0,
    *,
    open_marks: bool = False,
) -> "Axes":
    """Draw means and standard deviations of a score over the fraction of observations that was dropped.

    Args:
        axes: Axes to draw on; they are returned.
        drops: Fractions of dropped observations.
        scores: Mean and standard deviation of the score for each of them.
        label: Name of the line in the legend.
        number: Index of colour and marker.
        open_marks: Draw the line dashed and with open markers, to set a second group of models apart.

    >>> from logcde.plot import figure_of
    >>> axes = drop_curve(figure_of(4, 3).subplots(), [0.0, 0.5], [(0.9, 0.01), (0.8, 0.02)], "model")
    >>> axes.get_xlabel()
    'dropped, %'
    """
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    means, spreads = np.transpose(scores)
    dashes, inside = ((4, 2), "white") if open_marks else ((1, 0), colour)
    axes.errorbar(
        [100 * drop for drop in drops], means, yerr=spreads, color=colour, marker=mark, ms=4, lw=1.3, capsize=2,
        elinewidth=0.6, dashes=dashes, mfc=inside, label=label,
    )  # fmt: skip
    axes.set_xlabel("dropped, %")
    return without_frame(axes)


def scores_over_time(axes: "Axes", times: np.ndarray, lines: Mapping[str, np.ndarray], unit: str = "hours") -> "Axes":
    """Draw the score of predictions over the length of the observed prefix, one line for each model.

    Args:
        axes: Axes to draw on; they are returned.
        times: Lengths of the prefixes.
        lines: Scores at these times, by the name of the model.
        unit: Unit of the times, the label of the x-axis.

    >>> from logcde.plot import figure_of
    >>> axes = scores_over_time(figure_of(4, 2).subplots(), np.array([1, 2]), {"model": np.array([0.6, 0.8])})
    >>> axes.get_xlabel()
    'hours'
    """
    for number, (name, line) in enumerate(lines.items()):
        style = {"color": COLOURS[number % len(COLOURS)], "dashes": DASHES[number % len(DASHES)]}
        axes.plot(times, line, lw=1.6, label=name, **style)
    axes.set_xlabel(unit)
    axes.legend(frameon=False, fontsize=8)
    return without_frame(axes)


def strip(axes: "Axes", groups: Mapping[str, Sequence[float]], number: int = 0) -> "Axes":
    """Draw a strip plot on a logarithmic axis: one row for each group, its values as dots and their mean as a bar.

    Args:
        axes: Axes to draw on; they are returned.
        groups: Values by the name of the group, positive.
        number: Index of the colour.

    >>> from logcde.plot import figure_of
    >>> axes = strip(figure_of(4, 2).subplots(), {"a": [1.0, 2.0], "b": [3.0]})
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['a', 'b']
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    colour = COLOURS[number % len(COLOURS)]
    for row, values in enumerate(groups.values()):
        axes.plot(values, [row] * len(values), "o", color=colour, ms=4, alpha=0.5, mew=0)
        axes.plot([np.mean(values)] * 2, [row - 0.32, row + 0.32], color=colour, lw=2)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xscale("log")
    everything = np.concatenate([np.asarray(values, float) for values in groups.values()])
    wide = everything.max() > 100 * everything.min()  # there is room for the powers of ten only
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="0.92", lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    return without_frame(axes)
