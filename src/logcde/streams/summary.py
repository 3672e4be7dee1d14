"""Summary of a data set: counts, gaps and ranges of channels, as numbers and as a printed table."""

import dataclasses
import io

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped
from rich import box
from rich.console import Console
from rich.table import Table

from logcde.streams.clock import Clock, NumericClock, moment_of, unit_name
from logcde.streams.ragged import owners, stable_order
from logcde.streams.schema import Schema

SHARES = (0.05, 0.5, 0.95)
"""The quantiles of gaps."""
MOST_CHANNELS = 40
"""Channels in the printed table."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StreamsSummary:
    """Counts, shares and gaps of a data set, by `Streams.describe`; `print` shows them as a table.

    A gap is the time between neighbouring events of a series, or between neighbouring observations of a channel in a
    series. Quantiles are those at 5 %, 50 % and 95 %, NaN where there is no gap.

    Attributes:
        channels: The names of the channels.
        series: The number of series.
        events: The number of events.
        observations: The number of observations.
        simultaneous: The share of observations that share their stamp with another one of the same series.
        together: `together[k]` is the number of events that observe k channels.
        gaps: Quantiles of the gaps between events.
        longest_gap: The longest gap between events.
        channel_observations: The number of observations of each channel.
        channel_events: The share of events that observe it.
        channel_series: The share of series that observe it.
        channel_rate: Its number of observations per unit of time up to the horizon.
        channel_lowest: Its lowest value.
        channel_highest: Its highest value.
        channel_gaps: Quantiles of its gaps.
        channel_longest_gap: Its longest gap.
        unit: The unit of time, empty for plain numbers.
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
        """The median gap between events."""
        return float(self.gaps[1])

    @property
    def channel_median_gap(self) -> Float64[np.ndarray, "channel"]:
        """The median gap of each channel."""
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
        """Lines of a table: a row for each of the first channels, and a footer where a column has one more entry."""
        shown = self.channels[:MOST_CHANNELS]
        table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("channel", footer="all", no_wrap=True)
        for name, texts in columns.items():
            table.add_column(name, "".join(texts[len(self.channels) :]), justify="right")
        for k, channel in enumerate(shown):
            table.add_row(channel, *(texts[k] for texts in columns.values()))
        # As wide as the table needs, since a narrow terminal would break its lines.
        console = Console(file=io.StringIO(), width=140 + max(map(len, shown)), color_system=None, markup=False)
        with console.capture() as captured:
            console.print(table)
        return [line.rstrip() for line in captured.get().rstrip().splitlines()]


def summarise(
    *,
    schema: Schema,
    offsets: Int64[np.ndarray, "_"],
    times: Float64[np.ndarray, "event"],
    obs_offsets: Int64[np.ndarray, "_"],
    channel: Int32[np.ndarray, "obs"],
    value: Float[np.ndarray, "obs"],
    horizon: Float64[np.ndarray, "series"],
) -> StreamsSummary:
    """The summary of a data set from the fields of its `Streams`, which this module does not know."""
    width = len(schema.channels)
    events, observations = len(times), len(value)
    event_series = owners(offsets)
    gaps = np.diff(times)[event_series[1:] == event_series[:-1]]
    counts = np.diff(obs_offsets)
    order = stable_order(channel, width)
    ordered, event = channel[order], owners(obs_offsets)[order]
    series = event_series[event]
    same = (ordered[1:] == ordered[:-1]) & (series[1:] == series[:-1])
    between, owner = np.diff(times[event])[same], ordered[1:][same]
    splits = np.split(between, np.cumsum(np.bincount(owner, minlength=width))[:-1])
    per_channel = np.bincount(channel, minlength=width)
    # A series of a channel begins wherever the row before is of another channel or series.
    met = np.bincount(ordered[np.concatenate([[True] * bool(len(ordered)), ~same]).astype(bool)], minlength=width)
    lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(lowest, channel, value)
    np.maximum.at(highest, channel, value)
    return StreamsSummary(
        channels=schema.channels,
        series=len(horizon),
        events=events,
        observations=observations,
        simultaneous=float(counts[counts > 1].sum()) / max(observations, 1),
        together=np.bincount(counts),
        gaps=_quantiles(gaps),
        longest_gap=_longest(gaps),
        channel_observations=per_channel,
        channel_events=per_channel / max(events, 1),
        channel_series=met / max(len(horizon), 1),
        channel_rate=per_channel / (float(horizon.sum()) or 1.0),
        channel_lowest=np.where(per_channel > 0, lowest, np.nan),
        channel_highest=np.where(per_channel > 0, highest, np.nan),
        channel_gaps=np.array([_quantiles(part) for part in splits]),
        channel_longest_gap=np.array([_longest(part) for part in splits]),
        unit=unit_name(schema.clock),
    )


def _quantiles(gaps: np.ndarray) -> Float64[np.ndarray, "3"]:
    return np.quantile(gaps, SHARES) if gaps.size else np.full(len(SHARES), np.nan)


def _longest(gaps: np.ndarray) -> float:
    return float(gaps.max()) if gaps.size else float("nan")


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4g}"


def start_of_time(clock: Clock, origins: Shaped[np.ndarray, "series"] | None) -> str:
    """In words, from where the time of plain numbers counts; empty if that is 0, and for other stamps.

    >>> start_of_time(NumericClock(1.7e9), None)
    '1700000000.0, read as 2023-11-14T22:13:20 in seconds since 1970'
    >>> start_of_time(NumericClock(None), np.array([500.0, 400.0]))
    'the first stamp of each series'
    """
    if not isinstance(clock, NumericClock) or clock.origin == 0.0:
        return ""
    first = clock.origin if origins is None else float(origins.min(initial=np.inf))
    moment = "" if first is None else moment_of(first)
    place = "the first stamp of each series" if clock.origin is None else repr(clock.origin)
    reading = ", read as " if clock.origin is not None else ", the earliest read as "
    return f"{place}{reading}{moment}" if moment else place


def headline(
    schema: Schema,
    events: int,
    observations: int,
    horizon: Float64[np.ndarray, "series"],
    origins: Shaped[np.ndarray, "series"] | None,
) -> str:
    """A data set in a few lines, its `repr`."""
    channels = ", ".join(schema.channels[:6]) + (f", ... ({len(schema.channels)})" if len(schema.channels) > 6 else "")
    low, high = (horizon.min(), horizon.max()) if len(horizon) else (np.nan, np.nan)
    window = _number(low) if low == high else f"{_number(low)} to {_number(high)}"
    lines = [
        f"Streams: {len(horizon):,} series, {events:,} events, {observations:,} observations",
        f"  channels  {channels}",
        f"  horizon   {window} {unit_name(schema.clock)}".rstrip(),
    ]
    if start := start_of_time(schema.clock, origins):
        lines[-1] += f" from {start}"
    if schema.terms:
        lines.append(
            "  terms     "
            + ", ".join(term.name for term in schema.terms[:6])
            + (", ..." if len(schema.terms) > 6 else "")
        )
    if schema.continuous:
        lines.append("  continuous " + ", ".join(schema.continuous))
    return "\n".join(lines)
