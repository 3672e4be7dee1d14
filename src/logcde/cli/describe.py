"""`logcde describe`: what is in a table of observations, and what an embedding would lose of it."""

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro

from logcde.cli.output import bar
from logcde.cli.table import Table, in_options

if TYPE_CHECKING:
    from logcde.paths import Unseen
    from logcde.streams import Streams, StreamsSummary
    from logcde.streams.file_scan import Scan

DRAWN = 12
"""Series in a figure."""
PRINTED = 3
"""Series in the terminal."""
LANES = 7
"""Channels of each of them, in both: as many as there are colours."""
COLUMNS, FEWEST = 80, 20
"""Characters in a line, and for the observations of a channel in it, however long its name is."""
LEVELS = " .:|#"


@dataclasses.dataclass(frozen=True)
class Describe:
    """Say what is in a table of observations: series, channels, gaps, and what would be lost without counts or time.

    The table is read into memory. Example:
    logcde describe vitals.parquet --series id --time t --channel name --value x --plot vitals.png
    """

    table: tyro.conf.OmitArgPrefixes[Table]
    plot: Path | None = None
    """Draw when the first channels of the first series were observed, into this file (.png, .pdf, .svg)."""
    json: bool = False
    """Print JSON, for machines."""

    def run(self) -> int:
        """Do it."""
        from logcde.paths.faithful import unseen
        from logcde.streams.file_scan import all_streams

        try:
            with in_options():
                with bar("looking", None) as report:
                    scan = self.table.scan(report)
                with bar("reading", scan.rows) as report:
                    streams = all_streams(scan, report)
                summary, lost = streams.describe(), unseen(streams)
                if self.plot is not None:
                    _draw(streams, self.plot)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped.\n")
            return 130
        text = _as_json(scan, streams, summary, lost) if self.json else _as_text(scan, streams, summary, lost)
        sys.stdout.write(text + "\n")
        return 0


def _as_text(scan: "Scan", streams: "Streams", summary: "StreamsSummary", lost: "Unseen") -> str:
    kind = "long" if scan.layout.channel else "wide"
    show = streams.schema.clock.show
    span = (
        f"from {show(0.0)} to {show(float(streams.horizon.max()))}"
        if streams.origins is None
        else "each from its own first stamp"
    )
    parts = [
        f"{scan.file.path}: a {kind} table of {scan.rows:,} rows; series are looked at {span}",
        str(summary),
        _together(summary),
        "\n".join(_notes(scan, streams, summary)),
        str(lost),
        "\n".join(_raster(streams)),
    ]
    return "\n\n".join(part for part in parts if part)


def _together(summary: "StreamsSummary") -> str:
    """How many events observe one channel, two, ..."""
    seen = [(number, count) for number, count in enumerate(summary.together.tolist()) if count]
    told = [
        f"{count:,} observe{'s' * (count == 1)} {number:,} channel{'s' * (number > 1)}" for number, count in seen[:5]
    ]
    if seen[5:]:
        told.append(f"{sum(count for _, count in seen[5:]):,} observe {seen[5][0]:,} to {seen[-1][0]:,}")
    return f"Of {summary.events:,} events, {', '.join(told)}."


def _notes(scan: "Scan", streams: "Streams", summary: "StreamsSummary") -> list[str]:
    """What a person should know of these rows before going on."""
    from logcde.streams import NumericClock
    from logcde.streams.schema import listed

    lines = []
    gone = {name: count for name, count in scan.missing.items() if count}
    if gone:
        most = sorted(gone, key=lambda name: -gone[name])[:5]
        told = ", ".join(f"{name}: {gone[name]:,}" for name in most) + (", ..." if len(gone) > 5 else "")
        lines.append(f"Missing values, which are no observations: {sum(gone.values()):,} ({told}).")
    if merged := _merged(scan, summary):
        lines.append(f"Stamps that repeat: {merged:,} values of a channel at a stamp that had one already.")
    counts = summary.channel_observations
    never = [summary.channels[k] for k in np.flatnonzero(counts == 0)]
    if never:
        lines.append(f"Channels without a single observation: {listed(never)}.")
    same = (counts > 1) & (summary.channel_lowest == summary.channel_highest)
    if same.any():
        constant = [summary.channels[k] for k in np.flatnonzero(same)]
        lines.append(f"Channels whose value is always the same, so that only counts tell of them: {listed(constant)}.")
    first = float(streams.times.min(initial=np.inf))
    span = float(streams.times.max(initial=0.0)) - first
    if isinstance(streams.schema.clock, NumericClock) and first > 10 * span:
        lines.append(
            f"Series begin at 0, but the first stamp is {first:.10g}: if stamps count from 1970, pass --epoch s (or "
            "ms, us, ns); otherwise subtract the first stamp."
        )
    return lines


def _merged(scan: "Scan", summary: "StreamsSummary") -> int:
    """How many values were told again, or told otherwise, at the same stamp."""
    rows = scan.sizes.sum() * len(scan.layout.values)
    return int(rows) - sum(scan.missing.values()) - summary.observations


def _raster(streams: "Streams") -> list[str]:
    """When the first series were observed, as text: the darker, the more observations."""
    if not len(streams):
        return []
    lines = [f"When channels were observed, from the start to the horizon (none to many: {LEVELS!r}):"]
    names, rest = streams.schema.channels[:LANES], len(streams.schema.channels) - LANES
    width = max(map(len, names))
    columns = max(FEWEST, COLUMNS - width - len("   []"))
    for series in range(min(PRINTED, len(streams))):
        one = streams[series]
        place = np.minimum(one.times / one.horizon[0] * columns, columns - 1).astype(np.int64)
        shown = one.channel < len(names)
        cells = np.zeros((len(names), columns), np.int64)
        np.add.at(cells, (one.channel[shown], np.repeat(place, np.diff(one.obs_offsets))[shown]), 1)
        level = np.ceil(cells / max(1, cells.max()) * (len(LEVELS) - 1)).astype(np.int64)
        lines.append(f"series {one.ids.tolist()[0]!r}")
        rows = ("".join(LEVELS[cell] for cell in row) for row in level)
        lines += [f"  {name:{width}} [{row}]" for name, row in zip(names, rows, strict=True)]
        if rest > 0:
            lines.append(f"  and {rest:,} channels more")
    return lines


def _draw(streams: "Streams", file: Path) -> None:
    from logcde.errors import TableError
    from logcde.plot import figure_of, save, series_raster

    lanes = min(DRAWN, len(streams))
    try:
        figure = figure_of(8, 1.2 + 0.45 * lanes)
        series_raster(figure.subplots(), streams[:lanes], streams.schema.channels[:LANES])
        save(figure, file)
    except ImportError as error:
        raise TableError('A figure needs Matplotlib, which is not installed: pip install "logcde[plot]".') from error
    except (OSError, ValueError) as error:
        raise TableError(f"The figure {file} cannot be written: {error}. Give another name with --plot.") from error


def _as_json(scan: "Scan", streams: "Streams", summary: "StreamsSummary", lost: "Unseen") -> str:
    content = {
        "file": str(scan.file.path),
        "rows": scan.rows,
        "merged": _merged(scan, summary),
        "missing": scan.missing,
        "horizon": float(streams.horizon.max(initial=0.0)),
        "summary": {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)},
        "unseen": dataclasses.asdict(lost),
    }
    return json.dumps(_plain(content), ensure_ascii=False, allow_nan=False)


def _plain(item: Any) -> Any:
    """Arrays as lists, and numbers that are none as null."""
    if isinstance(item, dict):
        return {key: _plain(value) for key, value in item.items()}
    if isinstance(item, np.ndarray | tuple | list):
        return [_plain(value) for value in (item.tolist() if isinstance(item, np.ndarray) else item)]
    return None if isinstance(item, float) and not math.isfinite(item) else item
