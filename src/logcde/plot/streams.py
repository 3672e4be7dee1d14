"""Figures of streams, their realised paths and their log-signatures."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from logcde.embedding import LogSignatures
from logcde.errors import StreamError, Where
from logcde.paths import RealisedPath
from logcde.plot.style import COLOURS, figure_of, without_frame
from logcde.streams import Cuts, Streams
from logcde.streams.clock import unit_name
from logcde.streams.schema import listed, names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COORDINATES = 30
FAINT, DARK = 0.02, 0.6
"""Relative to the largest value of a coordinate: dashes mark negative values above FAINT, in white above DARK."""
MOST_LANES = 40
"""Largest number of labelled series."""


def observations(axes: "Axes", streams: Streams, series: int = 0, path: RealisedPath | None = None) -> "Axes":
    """Draw the observations of one series as dots, one lane for each channel.

    Args:
        axes: Axes to draw on; they are returned.
        streams: The streams.
        series: Index of the series.
        path: Its realised path, to draw its value coordinates as lines.

    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0, np.nan], [4.0, 1.0]]], ("pulse", "temp"))
    >>> axes = observations(figure_of(6, 2).subplots(), streams)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['temp', 'pulse']
    """
    one = streams[series : series + 1]
    names = one.schema.channels
    stamps = np.repeat(one.times, np.diff(one.obs_offsets))
    for lane, name in enumerate(reversed(names)):
        channel = names.index(name)
        mine = one.channel == channel
        values = one.value[mine]
        low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
        # The base point 0, from which the first increment starts, is in view.
        low, high = min(low, 0.0), max(high, 0.0)
        height = 0.7 / (high - low if high > low else 1.0)
        colour = COLOURS[channel % len(COLOURS)]
        if path is not None:
            recorded = lane + (path.positions[:, channel] - low) * height
            axes.plot(path.times, recorded, color=colour, lw=1.0, alpha=0.45, solid_joinstyle="miter")
        axes.plot(stamps[mine], lane + (values - low) * height, "o", color=colour, ms=4.5, clip_on=False)
    axes.set_yticks(np.arange(len(names)) + 0.35, list(reversed(names)))
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, one.horizon[0])
    axes.set_ylim(-0.15, len(names) - 0.15)
    return without_frame(axes, "top", "right", "left")


def channel_raster(axes: "Axes", streams: Streams, series: int = 0) -> "Axes":
    """Draw the observation times of one series: one lane for each channel, one tick for each observation.

    Args:
        axes: Axes to draw on; they are returned.
        streams: The streams.
        series: Index of the series.

    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0, np.nan], [4.0, 1.0]]], ("pulse", "temp"))
    >>> axes = channel_raster(figure_of(6, 2).subplots(), streams)
    >>> [len(ticks.get_segments()) for ticks in axes.collections]
    [2, 1]
    """
    one = streams[series : series + 1]
    stamps = np.repeat(one.times, np.diff(one.obs_offsets))
    names = one.schema.channels
    for channel in range(len(names)):
        mine = stamps[one.channel == channel]
        axes.vlines(mine, channel + 0.15, channel + 0.85, color=COLOURS[channel % len(COLOURS)], lw=1.0)
    axes.set_yticks(np.arange(len(names)) + 0.5, list(names))
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, one.horizon[0])
    axes.set_ylim(len(names), 0)
    return without_frame(axes, "top", "right", "left")


def series_raster(axes: "Axes", streams: Streams, channels: Sequence[str] | None = None) -> "Axes":
    """Draw the observation times of many series: one lane for each series, one tick for each observation.

    Args:
        axes: Axes to draw on; they are returned.
        streams: The streams.
        channels: Channels to draw, by default all; they share the lane of a series from top to bottom.

    >>> streams = Streams.from_arrays([[0.5, 2.0], [1.0]], [[[3.0], [4.0]], [[5.0]]], ("pulse",), ids=["p1", "p2"])
    >>> axes = series_raster(figure_of(6, 2).subplots(), streams, ["pulse"])
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['p1', 'p2']
    """
    names = streams.schema.channels
    chosen = names if channels is None else names_of(channels)
    for name in chosen:
        if name not in names:
            raise StreamError(
                f"There is no channel {name!r}.", f"The channels are {listed(names)}.", where=Where(channel=name)
            )
    event = np.repeat(np.arange(len(streams.times)), np.diff(streams.obs_offsets))
    lane = np.repeat(np.arange(len(streams)), np.diff(streams.offsets))[event]
    height = 0.84 / len(chosen)
    for place, name in enumerate(chosen):
        mine = streams.channel == names.index(name)
        top = lane[mine] + 0.08 + place * height
        style = {"color": COLOURS[names.index(name) % len(COLOURS)], "lw": 0.9, "clip_on": False}
        axes.vlines(streams.times[event[mine]], top, top + 0.9 * height, label=name, **style)
    axes.hlines(np.arange(1, len(streams)), 0, streams.horizon.max(initial=1.0), color="0.88", lw=0.5, zorder=-1)
    every = max(1, -(-len(streams) // MOST_LANES))
    axes.set_yticks(np.arange(0, len(streams), every) + 0.5, [str(name) for name in streams.ids[::every]], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, streams.horizon.max(initial=0.0) or 1.0)
    axes.set_ylim(max(1, len(streams)), 0)
    unit = unit_name(streams.schema.clock)
    axes.set_xlabel(f"time, {unit}" if unit else "time")
    if 1 < len(chosen) <= len(COLOURS):
        style = {"frameon": False, "fontsize": 8, "title_fontsize": 8, "alignment": "left"}
        title = "In each lane, from top to bottom:"
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(chosen), title=title, **style)
    return without_frame(axes, "top", "right", "left")


def realised_path(axes: "Axes", path: RealisedPath, channels: Sequence[str]) -> "Axes":
    """Draw a realised path in the plane of two of its coordinates. The open circle is its start, dots are its corners.

    Args:
        axes: Axes to draw on; they are returned.
        path: The path.
        channels: Names of two coordinates: channels, their counts (`#name`), or `time`.

    >>> from logcde.embedding import Embedding
    >>> from logcde.paths import realise
    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0, 1.0], [4.0, 2.0]]], ("a", "b"))
    >>> axes = realised_path(figure_of(4, 4).subplots(), realise(streams, Embedding())[0], ("a", "b"))
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('a', 'b')
    """
    letters = path.basis.letters
    if len(channels) != 2 or not set(channels) <= set(letters):
        raise StreamError(
            f"{listed(list(channels))} are not two coordinates of the path.",
            f"Choose two of {listed(letters)}.",
        )
    across, up = (path.positions[:, letters.index(name)] for name in channels)
    axes.plot(across, up, color=COLOURS[0], lw=1.2, solid_joinstyle="miter")
    axes.plot(across, up, "o", color=COLOURS[0], ms=3)
    axes.plot(across[:1], up[:1], "o", color=COLOURS[0], mfc="white", ms=6)
    axes.set_xlabel(channels[0])
    axes.set_ylabel(channels[1])
    return without_frame(axes)


def intervals(axes: "Axes", points: np.ndarray) -> "Axes":
    """Draw query points as vertical lines, and shade every other interval.

    >>> axes = intervals(figure_of(6, 1).subplots(), np.array([0.0, 1.0, 3.0]))
    >>> len(axes.lines), len(axes.patches)
    (2, 1)
    """
    for number, (start, stop) in enumerate(pairwise(points)):
        if number % 2 == 0:
            axes.axvspan(start, stop, color="0.95", lw=0, zorder=-2)
        axes.axvline(stop, color="0.75", lw=0.6, zorder=-1)
    return axes


def logsig_heatmap(axes: "Axes", logsigs: LogSignatures, points: np.ndarray, series: int = 0) -> "Axes":
    """Draw the log-signatures of one series as a heat map: one column for each interval, one row for each coordinate.

    Each coordinate is relative to its largest absolute value. Negative values have a dash, for print without colours.

    Args:
        axes: Axes to draw on; they are returned.
        logsigs: The log-signatures.
        points: Query points of the series.
        series: Index of the series.

    >>> from logcde.embedding import Embedding
    >>> from logcde.streams import Partition
    >>> streams, partition = Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]], ("a",)), Partition.uniform(2)
    >>> logsigs = Embedding()(streams, partition)
    >>> axes = logsig_heatmap(figure_of(6, 2).subplots(), logsigs, partition.cuts(streams).points)
    >>> [label.get_text() for label in axes.get_yticklabels()][:3]
    ['a', '#a', 'time']
    """
    values = np.asarray(logsigs.values[series, : logsigs.lengths[series]]).T
    shown = min(len(values), MOST_COORDINATES)
    largest = np.abs(values).max(axis=1, keepdims=True)
    relative = np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)[:shown]
    axes.pcolormesh(points, np.arange(shown + 1), relative, cmap="RdBu_r", vmin=-1, vmax=1, edgecolors="white", lw=0.4)
    for dark, colour in ((False, "0.25"), (True, "white")):
        row, column = np.nonzero((relative < -FAINT) & ((np.abs(relative) > DARK) == dark))
        axes.plot((points[column] + points[column + 1]) / 2, row + 0.5, "_", color=colour, ms=4, mew=0.9)
    axes.set_yticks(np.arange(shown) + 0.5, logsigs.basis.labels[:shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(points[0], points[-1])
    return without_frame(axes, "top", "right", "left", "bottom")


def overview(
    streams: Streams, cuts: Cuts, logsigs: LogSignatures, path: RealisedPath, decoded: Streams, series: int = 0
) -> "Figure":
    """Draw one series in three panels: observations, log-signatures, and the realised path with what it decodes to.

    >>> from logcde.embedding import Embedding
    >>> from logcde.paths import decode, realise
    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]], ("a",))
    >>> embedding, partition = Embedding(), Partition.uniform(2)
    >>> (path,) = realise(streams, embedding)
    >>> figure = overview(streams, partition.cuts(streams), embedding(streams, partition), path, decode(path))
    >>> len(figure.axes)
    3
    """
    points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
    coordinates = min(logsigs.basis.dimension, MOST_COORDINATES)
    lanes = len(streams.schema.channels)
    heights = (0.6 * lanes, 0.17 * coordinates, 0.6 * lanes)
    figure = figure_of(9, 2.2 + sum(heights))
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    observations(top, streams, series)
    intervals(top, points)
    top.set_title("Observations (dots) and query intervals (bands), which need not match", loc="left", fontsize=10)
    logsig_heatmap(middle, logsigs, points, series)
    total = (
        f"{coordinates} of {logsigs.basis.dimension} coordinates"
        if coordinates < logsigs.basis.dimension
        else "all coordinates"
    )
    middle.set_title(
        f"One log-signature for each interval ({total}; blue with a dash: negative, red: positive)",
        loc="left",
        fontsize=10,
    )
    observations(bottom, decoded, 0, path)
    intervals(bottom, points)
    bottom.set_title("Realised path (lines), and the observations decoded from it (dots)", loc="left", fontsize=10)
    bottom.set_xlabel("time")
    return figure
