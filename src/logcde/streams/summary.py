"""What a data set holds, in numbers and as a table."""

import dataclasses
import io

import numpy as np
from jaxtyping import Float64, Int64
from rich import box
from rich.console import Console
from rich.table import Table

from logcde.streams.clock import unit_name
from logcde.streams.columns import AbstractStreams
from logcde.streams.ragged import owners
from logcde.streams.rows import stable_order


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Counts, shares and gaps of a data set; `print` shows them as a table.

    Gaps are lengths of time between neighbouring events of a series, or between neighbouring observations of a channel
    in a series, NaN where there are none. `simultaneous` is the share of observations that share their stamp with
    another one of the same series.
    """

    channels: tuple[str, ...]
    series: int
    events: int
    observations: int
    simultaneous: float
    median_gap: float
    longest_gap: float
    channel_observations: Int64[np.ndarray, "channel"]
    channel_events: Float64[np.ndarray, "channel"]
    channel_series: Float64[np.ndarray, "channel"]
    channel_median_gap: Float64[np.ndarray, "channel"]
    channel_longest_gap: Float64[np.ndarray, "channel"]
    unit: str

    def __str__(self) -> str:
        title = f"{self.series:,} series, {self.events:,} events, {self.simultaneous:.1%} of observations simultaneous"
        table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False)
        table.add_column("channel", footer="all", no_wrap=True)
        table.add_column("observations", f"{self.observations:,}", justify="right")
        table.add_column("of events", justify="right")
        table.add_column("of series", justify="right")
        table.add_column("median gap", _number(self.median_gap), justify="right")
        table.add_column("longest gap", _number(self.longest_gap), justify="right")
        for k, channel in enumerate(self.channels):
            table.add_row(
                channel,
                f"{self.channel_observations[k]:,}",
                f"{self.channel_events[k]:.1%}",
                f"{self.channel_series[k]:.1%}",
                _number(self.channel_median_gap[k]),
                _number(self.channel_longest_gap[k]),
            )
        # As wide as the table needs: a line broken by a narrow terminal would no longer be aligned.
        console = Console(file=io.StringIO(), width=80 + max(map(len, self.channels)), color_system=None, markup=False)
        with console.capture() as captured:
            console.print(table)
        unit = f"; gaps in {self.unit}" if self.unit else ""
        return f"{title}{unit}\n" + "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())

    __repr__ = __str__


def summarise(streams: AbstractStreams) -> Summary:
    """Count a data set."""
    width = len(streams.schema.channels)
    events, observations = len(streams.times), len(streams.value)
    event_series = owners(streams.offsets)
    gaps = np.diff(streams.times)[event_series[1:] == event_series[:-1]]
    counts = np.diff(streams.obs_offsets)
    obs_event = owners(streams.obs_offsets)
    order = stable_order(streams.channel, width)
    channel, event = streams.channel[order], obs_event[order]
    series = event_series[event]
    same = (channel[1:] == channel[:-1]) & (series[1:] == series[:-1])
    between, owner = np.diff(streams.times[event])[same], channel[1:][same]
    splits = np.split(between, np.cumsum(np.bincount(owner, minlength=width))[:-1])
    per_channel = np.bincount(streams.channel, minlength=width)
    # A channel meets a series anew wherever the row before is of another channel or series.
    met = np.bincount(channel[np.concatenate([[True] * bool(len(channel)), ~same]).astype(bool)], minlength=width)
    return Summary(
        channels=streams.schema.channels,
        series=len(streams),
        events=events,
        observations=observations,
        simultaneous=float(counts[counts > 1].sum()) / max(observations, 1),
        median_gap=_median(gaps),
        longest_gap=_longest(gaps),
        channel_observations=per_channel,
        channel_events=per_channel / max(events, 1),
        channel_series=met / max(len(streams), 1),
        channel_median_gap=np.array([_median(part) for part in splits]),
        channel_longest_gap=np.array([_longest(part) for part in splits]),
        unit=unit_name(streams.schema.clock),
    )


def _median(gaps: np.ndarray) -> float:
    return float(np.median(gaps)) if gaps.size else float("nan")


def _longest(gaps: np.ndarray) -> float:
    return float(gaps.max()) if gaps.size else float("nan")


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4g}"


def headline(streams: AbstractStreams) -> str:
    """A data set in a few lines."""
    schema = streams.schema
    channels = ", ".join(schema.channels[:6]) + (f", ... ({len(schema.channels)})" if len(schema.channels) > 6 else "")
    low, high = (streams.horizon.min(), streams.horizon.max()) if len(streams) else (np.nan, np.nan)
    horizon = _number(low) if low == high else f"{_number(low)} to {_number(high)}"
    lines = [
        f"Streams: {len(streams):,} series, {len(streams.times):,} events, {len(streams.value):,} observations",
        f"  channels  {channels}",
        f"  horizon   {horizon} {unit_name(schema.clock)}".rstrip(),
    ]
    if schema.terms:
        lines.append(
            "  terms     "
            + ", ".join(term.name for term in schema.terms[:6])
            + (", ..." if len(schema.terms) > 6 else "")
        )
    if schema.continuous:
        lines.append("  beside    " + ", ".join(schema.continuous))
    return "\n".join(lines)
