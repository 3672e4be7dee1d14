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

SHARES = (0.05, 0.5, 0.95)
"""The quantiles of gaps that are told."""
MOST_CHANNELS = 40
"""Channels in the printed table; the numbers are there for all."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Counts, shares and gaps of a data set; `print` shows them as a table.

    Gaps are lengths of time between neighbouring events of a series, or between neighbouring observations of a channel
    in a series, NaN where there are none; `gaps` and `channel_gaps` are their quantiles at 5 %, 50 % and 95 %.
    `simultaneous` is the share of observations that share their stamp with another one of the same series, and
    `together[k]` the number of events that observe k channels. A rate is the number of observations for each unit of
    time that series are looked at.
    """

    channels: tuple[str, ...]
    series: int
    events: int
    observations: int
    simultaneous: float
    together: Int64[np.ndarray, "_"]
    gaps: Float64[np.ndarray, "3"]
    longest_gap: float
    channel_observations: Int64[np.ndarray, "channel"]
    channel_events: Float64[np.ndarray, "channel"]
    channel_series: Float64[np.ndarray, "channel"]
    channel_rate: Float64[np.ndarray, "channel"]
    channel_lowest: Float64[np.ndarray, "channel"]
    channel_highest: Float64[np.ndarray, "channel"]
    channel_gaps: Float64[np.ndarray, "channel 3"]
    channel_longest_gap: Float64[np.ndarray, "channel"]
    unit: str

    @property
    def median_gap(self) -> float:
        """The gap that half of all are not longer than."""
        return float(self.gaps[1])

    @property
    def channel_median_gap(self) -> Float64[np.ndarray, "channel"]:
        """The same for each channel."""
        return self.channel_gaps[:, 1]

    def __str__(self) -> str:
        title = f"{self.series:,} series, {self.events:,} events, {self.simultaneous:.1%} of observations simultaneous"
        seen = {
            "observations": [f"{count:,}" for count in (*self.channel_observations, self.observations)],
            "of events": [f"{share:.1%}" for share in self.channel_events],
            "of series": [f"{share:.1%}" for share in self.channel_series],
            "rate": list(map(_number, self.channel_rate)),
            "lowest": list(map(_number, self.channel_lowest)),
            "highest": list(map(_number, self.channel_highest)),
        }
        gaps = np.vstack(
            [np.column_stack([self.channel_gaps, self.channel_longest_gap]), [*self.gaps, self.longest_gap]]
        )
        names = ("gap 5%", "gap median", "gap 95%", "gap longest")
        apart = {name: list(map(_number, column)) for name, column in zip(names, gaps.T, strict=True)}
        unit = f"; gaps in {self.unit}" if self.unit else ""
        more = len(self.channels) - MOST_CHANNELS
        rest = [f"and {more:,} channels more"] if more > 0 else []
        return "\n".join([f"{title}{unit}", *self._table(seen), *self._table(apart), *rest])

    __repr__ = __str__

    def _table(self, columns: dict[str, list[str]]) -> list[str]:
        """Lines of a table: a row for each of the first channels, and one for all where there is more to tell."""
        shown = self.channels[:MOST_CHANNELS]
        table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("channel", footer="all", no_wrap=True)
        for name, texts in columns.items():
            table.add_column(name, "".join(texts[len(self.channels) :]), justify="right")
        for k, channel in enumerate(shown):
            table.add_row(channel, *(texts[k] for texts in columns.values()))
        # As wide as the table needs: a line broken by a narrow terminal would no longer be aligned.
        console = Console(file=io.StringIO(), width=140 + max(map(len, shown)), color_system=None, markup=False)
        with console.capture() as captured:
            console.print(table)
        return [line.rstrip() for line in captured.get().rstrip().splitlines()]


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
    lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(lowest, streams.channel, streams.value)
    np.maximum.at(highest, streams.channel, streams.value)
    return Summary(
        channels=streams.schema.channels,
        series=len(streams),
        events=events,
        observations=observations,
        simultaneous=float(counts[counts > 1].sum()) / max(observations, 1),
        together=np.bincount(counts),
        gaps=_quantiles(gaps),
        longest_gap=_longest(gaps),
        channel_observations=per_channel,
        channel_events=per_channel / max(events, 1),
        channel_series=met / max(len(streams), 1),
        channel_rate=per_channel / (float(streams.horizon.sum()) or 1.0),
        channel_lowest=np.where(per_channel > 0, lowest, np.nan),
        channel_highest=np.where(per_channel > 0, highest, np.nan),
        channel_gaps=np.array([_quantiles(part) for part in splits]),
        channel_longest_gap=np.array([_longest(part) for part in splits]),
        unit=unit_name(streams.schema.clock),
    )


def _quantiles(gaps: np.ndarray) -> Float64[np.ndarray, "3"]:
    return np.quantile(gaps, SHARES) if gaps.size else np.full(len(SHARES), np.nan)


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
