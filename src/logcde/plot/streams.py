"""Pictures of streams, of what the embedding keeps of them, and of what comes back."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from logcde.embedding import LogSignatures
from logcde.paths import RealisedPath
from logcde.plot.style import COLOURS, figure_of
from logcde.streams import Cuts, Streams

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COORDINATES = 30


def observations(axes: "Axes", streams: Streams, series: int = 0, path: RealisedPath | None = None) -> "Axes":
    """Draw what was observed of one series, a lane for each channel; with `path`, also the recorded values."""
    one = streams[series : series + 1]
    names = one.schema.channels
    stamps = np.repeat(one.times, np.diff(one.obs_offsets))
    for lane, name in enumerate(reversed(names)):
        channel = names.index(name)
        mine = one.channel == channel
        values = one.value[mine]
        low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
        # Room for the base point, from which the first observation moves.
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
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return axes


def raster(axes: "Axes", streams: Streams, series: int = 0) -> "Axes":
    """Draw who was observed when: a lane for each channel, a tick for each observation."""
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
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return axes


def intervals(axes: "Axes", points: np.ndarray) -> "Axes":
    """Draw query points as lines, and shade every other interval."""
    for number, (start, stop) in enumerate(pairwise(points)):
        if number % 2 == 0:
            axes.axvspan(start, stop, color="0.95", lw=0, zorder=-2)
        axes.axvline(stop, color="0.75", lw=0.6, zorder=-1)
    return axes


def kept(axes: "Axes", logsigs: LogSignatures, points: np.ndarray, series: int = 0) -> "Axes":
    """Draw the log-signature of each interval, each coordinate relative to its largest."""
    values = np.asarray(logsigs.values[series, : logsigs.lengths[series]]).T
    shown = min(len(values), MOST_COORDINATES)
    largest = np.abs(values).max(axis=1, keepdims=True)
    relative = np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)[:shown]
    axes.pcolormesh(points, np.arange(shown + 1), relative, cmap="RdBu_r", vmin=-1, vmax=1, edgecolors="white", lw=0.4)
    axes.set_yticks(np.arange(shown) + 0.5, logsigs.basis.labels[:shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(points[0], points[-1])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def overview(
    streams: Streams, cuts: Cuts, logsigs: LogSignatures, path: RealisedPath, decoded: Streams, series: int = 0
) -> "Figure":
    """One series in three panels: what was observed, what the embedding kept, what comes back out of its path."""
    points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
    coordinates = min(logsigs.basis.dimension, MOST_COORDINATES)
    lanes = len(streams.schema.channels)
    heights = (0.6 * lanes, 0.17 * coordinates, 0.6 * lanes)
    figure = figure_of(9, 2.2 + sum(heights))
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    observations(top, streams, series)
    intervals(top, points)
    top.set_title(
        "Observed: dots, and nothing in between. Bands: query intervals, chosen freely", loc="left", fontsize=10
    )
    kept(middle, logsigs, points, series)
    total = (
        f"{coordinates} of {logsigs.basis.dimension} coordinates" if coordinates < logsigs.basis.dimension else "all"
    )
    middle.set_title(
        f"Kept: one log-signature for each interval ({total}; blue negative, red positive)", loc="left", fontsize=10
    )
    observations(bottom, decoded, 0, path)
    intervals(bottom, points)
    bottom.set_title("Decoded: the realised path (lines) gives every observation back (dots)", loc="left", fontsize=10)
    bottom.set_xlabel("time")
    return figure
