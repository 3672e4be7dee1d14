"""Pictures of what was learnt: curves, predictions beside the truth, errors under one condition and another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from logcde.plot.style import COLOURS, DASHES, MARKS
from logcde.train import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curves(axes: "Axes", training: np.ndarray, held_out: np.ndarray, label: str, number: int = 0) -> "Axes":
    """Draw losses (seed, epoch) over epochs: the mean over seeds, and a band from the least to the largest.

    >>> from logcde.plot import figure_of
    >>> losses = np.array([[1.0, 0.5, 0.3], [1.2, 0.6, 0.2]])
    >>> axes = curves(figure_of(4, 3).subplots(), losses, 1.5 * losses, "small")
    >>> axes.get_legend_handles_labels()[1]
    ['small, training', 'small, test']
    """
    colour = COLOURS[number % len(COLOURS)]
    epochs = np.arange(1, np.shape(held_out)[1] + 1)
    style = {"color": colour, "lw": 1.4, "marker": MARKS[number % len(MARKS)], "ms": 4}
    style["markevery"] = max(1, len(epochs) // 8)  # enough to tell lines apart without colours
    for losses, dashes, what in ((training, (4, 2), "training"), (held_out, (1, 0), "test")):
        axes.plot(epochs, np.mean(losses, axis=0), dashes=dashes, label=f"{label}, {what}", **style)
        axes.fill_between(epochs, np.min(losses, axis=0), np.max(losses, axis=0), color=colour, alpha=0.15, lw=0)
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_xlim(1, len(epochs))
    return _plain(axes)


def history(axes: "Axes", looks: Sequence[Evaluation], score: str = "loss") -> "Axes":
    """Draw one run, from the `history` of what `fit` gives: its loss, and a score of the validation series.

    The best of the evaluations is marked. Scores that are not finite numbers are left out.

    >>> from logcde.plot import figure_of
    >>> looks = [Evaluation(10, 1.0, 0.1, 0.9, {"loss": 1.0}, True), Evaluation(20, 2.0, 0.2, 0.5, {"loss": 0.8}, True)]
    >>> axes = history(figure_of(4, 3).subplots(), looks)
    >>> axes.get_legend_handles_labels()[1]
    ['training loss', 'validation loss', 'best']
    """
    steps = [look.step for look in looks]
    axes.plot(steps, [look.loss for look in looks], color=COLOURS[0], dashes=(4, 2), lw=1.4, label="training loss")
    scores = [np.nan if (value := look.validation.get(score)) is None else value for look in looks]
    if np.isfinite(scores).any():
        axes.plot(steps, scores, color=COLOURS[1], lw=1.4, label=f"validation {score}")
        best = max((k for k, look in enumerate(looks) if look.best), default=None)
        if best is not None:
            axes.plot(steps[best], scores[best], "o", color=COLOURS[1], mfc="white", ms=7, mew=1.6, label="best")
    if score == "loss" and min((look.loss for look in looks), default=0) > 0 and not np.nanmin([*scores, np.inf]) <= 0:
        axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.legend(frameon=False, fontsize=8)
    return _plain(axes)


def predictions(
    axes: "Axes",
    times: np.ndarray,
    predicted: np.ndarray,
    truth: tuple[np.ndarray, np.ndarray],
    names: Sequence[str],
) -> "Axes":
    """Draw predictions (time, channel) as marks over the truth, which is a pair of times and values (time, channel).

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
    return _plain(axes)


def heatmap(
    axes: "Axes", means: np.ndarray, spreads: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> "Axes":
    """Draw a table of means and standard deviations, dark where they are large, on a logarithmic scale.

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
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def against(
    axes: "Axes",
    places: Sequence[float],
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
    dashed: Sequence[str] = (),
) -> "Axes":
    """Draw several lines of means with standard deviations over places, both axes logarithmic.

    >>> from logcde.plot import figure_of
    >>> line = (np.array([1.0, 0.5]), np.array([0.1, 0.1]))
    >>> axes = against(figure_of(4, 3).subplots(), [8, 16], {"a": line})
    >>> axes.get_xscale(), [label.get_text() for label in axes.get_xticklabels()]
    ('log', ['8', '16'])
    """
    for number, (name, (means, spreads)) in enumerate(lines.items()):
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "ms": 5, "lw": 1.4}
        if name in dashed:
            style |= {"dashes": (4, 2), "mfc": "white"}
        low = np.minimum(spreads, 0.9 * means)  # a bar that ends above zero, which a logarithmic axis does not have
        axes.errorbar(places, means, yerr=[low, spreads], capsize=2, label=name, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.legend(frameon=False, fontsize=8)
    return _plain(axes)


def dropping(
    axes: "Axes",
    drops: Sequence[float],
    accuracies: Sequence[tuple[float, float]],
    label: str,
    number: int = 0,
    *,
    open_marks: bool = False,
) -> "Axes":
    """Draw means and standard deviations over the share of observations that was dropped.

    `number` picks colour and mark of the line. With `open_marks` it is dashed and its marks are open: for a second kind
    of models.

    >>> from logcde.plot import figure_of
    >>> axes = dropping(figure_of(4, 3).subplots(), [0.0, 0.5], [(0.9, 0.01), (0.8, 0.02)], "model")
    >>> axes.get_xlabel()
    'dropped, %'
    """
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    means, spreads = np.transpose(accuracies)
    dashes, inside = ((4, 2), "white") if open_marks else ((1, 0), colour)
    axes.errorbar(
        [100 * drop for drop in drops], means, yerr=spreads, color=colour, marker=mark, ms=4, lw=1.3, capsize=2,
        elinewidth=0.6, dashes=dashes, mfc=inside, label=label,
    )  # fmt: skip
    axes.set_xlabel("dropped, %")
    return _plain(axes)


def dots(axes: "Axes", groups: Mapping[str, Sequence[float]], number: int = 0) -> "Axes":
    """Draw one row for each group: all its values as dots and their mean as a bar, on a logarithmic axis.

    >>> from logcde.plot import figure_of
    >>> axes = dots(figure_of(4, 2).subplots(), {"a": [1.0, 2.0], "b": [3.0]})
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
    wide = everything.max() > 100 * everything.min()  # no room for more than the powers of ten
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="0.92", lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    return _plain(axes)


def _plain(axes: "Axes") -> "Axes":
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
