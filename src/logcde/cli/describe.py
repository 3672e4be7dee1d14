"""`logcde describe`: summarise a table of observations, and what an embedding without counts or time would lose."""

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro

from logcde.cli.output import progress_bar
from logcde.cli.table import TableOptions
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.paths import Unseen
    from logcde.streams import Streams, StreamsSummary
    from logcde.streams.file_scan import Scan

FIGURE_SERIES, TEXT_SERIES = 12, 3
"""Series in the figure of --plot, and in the raster that is printed."""
MOST_CHANNELS = 7
"""Channels of each series in both: as many as there are colours."""
LINE_WIDTH, LEAST_RASTER_WIDTH = 80, 20
"""Characters of a printed line, and of the raster in it, however long the names of channels are."""
DENSITIES = " .:|#"
"""Characters of the raster, from no observation to many."""


@dataclasses.dataclass(frozen=True)
class Describe:
    """Summarise a table of observations: series, channels, gaps, and what is lost without counts or time.

    The table is read into memory. Example:

    logcde describe vitals.parquet --series id --time t --channel name --value x --plot vitals.png
    """

    table: tyro.conf.OmitArgPrefixes[TableOptions]
    plot: Path | None = None
    """Plot the observation times of the first series and channels to this file (.png, .pdf, .svg)."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print the summary and return the exit code."""
        from logcde.paths.faithful import unseen
        from logcde.streams.file_scan import all_streams

        try:
            with progress_bar("scanning", None) as report:
                scan = self.table.scan(report)
            with progress_bar("reading", scan.rows) as report:
                streams = all_streams(scan, report)
            summary, lost = streams.describe(), unseen(streams)
            if self.plot is not None:
                _plot(streams, self.plot)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped.\n")
            return 130
        text = _as_json(scan, streams, summary, lost) if self.json else _as_text(scan, streams, summary, lost)
        sys.stdout.write(text + "\n")
        return 0


def _as_text(scan: "Scan", streams: "Streams", summary: "StreamsSummary", lost: "Unseen") -> str:
    layout = "long" if scan.layout.channel else "wide"
    show = streams.schema.clock.show
    window = (
        f"from {show(0.0)} to {show(float(streams.horizon.max()))}"
        if streams.origins is None
        else "of each series from its own first stamp"
    )
    parts = [
        f"{scan.file.path}: {layout} table, {scan.rows:,} rows, observation window {window}",
        str(summary),
        _channels_per_event(summary),
        "\n".join(_notes(scan, streams, summary)),
        str(lost),
        "\n".join(_raster(streams)),
    ]
    return "\n\n".join(part for part in parts if part)


def _channels_per_event(summary: "StreamsSummary") -> str:
    seen = [(number, count) for number, count in enumerate(summary.together.tolist()) if count]
    parts = [
        f"{count:,} observe{'s' * (count == 1)} {number:,} channel{'s' * (number > 1)}" for number, count in seen[:5]
    ]
    if seen[5:]:
        parts.append(f"{sum(count for _, count in seen[5:]):,} observe {seen[5][0]:,} to {seen[-1][0]:,}")
    return f"Of {summary.events:,} events, {', '.join(parts)}."


def _notes(scan: "Scan", streams: "Streams", summary: "StreamsSummary") -> list[str]:
    """Properties of the table that a user should know before training on it."""
    from logcde.streams.schema import listed
    from logcde.streams.stamps import FAR
    from logcde.streams.summary import start_of_time

    lines = []
    gone = {name: count for name, count in scan.missing.items() if count}
    if gone:
        most = sorted(gone, key=lambda name: -gone[name])[:5]
        counts = ", ".join(f"{name}: {gone[name]:,}" for name in most) + (", ..." if len(gone) > 5 else "")
        lines.append(f"Missing values: {sum(gone.values()):,} ({counts}). They are not observations.")
    if repeated := _repeated_values(scan, summary):
        lines.append(f"Repeated values of a channel at one stamp: {repeated:,}.")
    observations = summary.channel_observations
    never = [summary.channels[k] for k in np.flatnonzero(observations == 0)]
    if never:
        lines.append(f"Channels without observations: {listed(never)}.")
    same = (observations > 1) & (summary.channel_lowest == summary.channel_highest)
    if same.any():
        constant = [summary.channels[k] for k in np.flatnonzero(same)]
        lines.append(f"Constant channels, of which only the observation times are informative: {listed(constant)}.")
    if start := start_of_time(streams.schema.clock, streams.origins):
        lines.append(f"Stamps begin far from 0: time counts from {start}. Pass --origin to change it.")
    some = np.flatnonzero(np.diff(streams.offsets))
    first, last = streams.times[streams.offsets[some]], streams.times[streams.offsets[some + 1] - 1]
    if len(some) and float(np.median(first)) > FAR * float((last - first).max()) > 0:
        lines.append(
            "Most series begin long after the observation window: to count time from the first stamp of each, pass "
            "--origin first."
        )
    return lines


def _repeated_values(scan: "Scan", summary: "StreamsSummary") -> int:
    """Values that were merged into another observation of the same channel at the same stamp."""
    rows = scan.sizes.sum() * len(scan.layout.values)
    return int(rows) - sum(scan.missing.values()) - summary.observations


def _raster(streams: "Streams") -> list[str]:
    """Observation times of the first series as lines of text."""
    if not len(streams):
        return []
    lines = [f"Observation times, from the start to the horizon (density: {DENSITIES!r}):"]
    names, rest = streams.schema.channels[:MOST_CHANNELS], len(streams.schema.channels) - MOST_CHANNELS
    width = max(map(len, names))
    columns = max(LEAST_RASTER_WIDTH, LINE_WIDTH - width - len("   []"))
    for series in range(min(TEXT_SERIES, len(streams))):
        one = streams[series]
        place = np.minimum(one.times / one.horizon[0] * columns, columns - 1).astype(np.int64)
        shown = one.channel < len(names)
        cells = np.zeros((len(names), columns), np.int64)
        np.add.at(cells, (one.channel[shown], np.repeat(place, np.diff(one.obs_offsets))[shown]), 1)
        density = np.ceil(cells / max(1, cells.max()) * (len(DENSITIES) - 1)).astype(np.int64)
        lines.append(f"series {one.ids.tolist()[0]!r}")
        rows = ("".join(DENSITIES[cell] for cell in row) for row in density)
        lines += [f"  {name:{width}} [{row}]" for name, row in zip(names, rows, strict=True)]
        if rest > 0:
            lines.append(f"  and {rest:,} more channels")
    return lines


def _plot(streams: "Streams", file: Path) -> None:
    from logcde.plot import figure_of, save, series_raster

    series = min(FIGURE_SERIES, len(streams))
    try:
        figure = figure_of(8, 1.2 + 0.45 * series)
        series_raster(figure.subplots(), streams[:series], streams.schema.channels[:MOST_CHANNELS])
        save(figure, file)
    except ImportError as error:
        raise TableError("Figures need Matplotlib, which is not installed.", 'pip install "logcde[plot]".') from error
    except (OSError, ValueError) as error:
        raise TableError(f"The figure {file} cannot be written: {error}.", "Give another name with --plot.") from error


def _as_json(scan: "Scan", streams: "Streams", summary: "StreamsSummary", lost: "Unseen") -> str:
    from logcde.streams.summary import start_of_time

    content = {
        "file": str(scan.file.path),
        "rows": scan.rows,
        "merged": _repeated_values(scan, summary),
        "missing": scan.missing,
        "origin": start_of_time(streams.schema.clock, streams.origins) or None,
        "horizon": float(streams.horizon.max(initial=0.0)),
        "summary": {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)},
        "unseen": dataclasses.asdict(lost),
    }
    return json.dumps(_json_value(content), ensure_ascii=False, allow_nan=False)


def _json_value(item: Any) -> Any:
    """Arrays as lists; numbers that are not finite as null."""
    if isinstance(item, dict):
        return {key: _json_value(value) for key, value in item.items()}
    if isinstance(item, np.ndarray | tuple | list):
        return [_json_value(value) for value in (item.tolist() if isinstance(item, np.ndarray) else item)]
    return None if isinstance(item, float) and not math.isfinite(item) else item
