"""From observations to factors: one sparse Lie element for each event, and the events of each query interval.

Implements `eq:event_increment_method` of the paper and the assignment of events to half-open intervals. Gaps of time
are left to the kernels, which know the stamps; with further continuous
channels, gaps become factors of their own.

Gaps of continuous channels beside time: `Gamma` and `B_C` of the paper, exact for piecewise-linear paths.

Between two neighbouring moments, among events, knots and ends of intervals, such a path is straight, and its signature
is the exponential of its increment: one more factor, with the continuous letters as entries.
"""

import dataclasses

import numpy as np
from jaxtyping import Float64, Int32, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.kernels.events import increments, locate
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams


@dataclasses.dataclass(frozen=True)
class Factors:
    """Lie elements in the order in which they are composed, each with entries (letter, amount) of degree one.

    If `Coordinates.counted`, an entry of a channel's value stands for its count as well. `terms` are the coordinates
    above degree one, for those in `Coordinates.term_support`. `timed` says that gaps of time between the stamps are
    still to be composed.
    """

    times: Float64[np.ndarray, "factor"]
    entry_offsets: Int64[np.ndarray, "_"]
    letters: Int32[np.ndarray, "entry"]
    amounts: Float64[np.ndarray, "entry"]
    terms: Float64[np.ndarray, "factor support"]
    timed: bool


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Query intervals of all series, one after another: factors `begin` to `end`, from `start` to `stop`."""

    series: Int64[np.ndarray, "interval"]
    begin: Int64[np.ndarray, "interval"]
    end: Int64[np.ndarray, "interval"]
    start: Float64[np.ndarray, "interval"]
    stop: Float64[np.ndarray, "interval"]

    def __len__(self) -> int:
        return len(self.series)


def intervals_of(streams: Streams, cuts: Cuts) -> Intervals:
    """Which events each interval holds; one that ends at the horizon also takes an event there.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> found = intervals_of(streams, Cuts(np.array([0, 3]), np.array([0.0, 1.0, 2.0])))
    >>> found.begin, found.end
    (array([0, 1]), array([1, 3]))
    """
    count = len(cuts.points) - len(streams)  # every series has one point more than intervals
    found = Intervals(*np.empty((3, count), np.int64), *np.empty((2, count)))
    columns = (streams.offsets, streams.times, streams.horizon, cuts.offsets, cuts.points)
    spread(locate, np.diff(cuts.offsets), *columns, found.series, found.begin, found.end, found.start, found.stop)
    return found


def increments_of(streams: Streams, threads: int | None = None) -> Float64[np.ndarray, "obs"]:
    """Each observation's change since the previous one of its channel, from base point zero.

    >>> increments_of(Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]]))
    array([2., 7., 3.])
    """
    out = np.empty(len(streams.value))
    channels = len(streams.schema.channels)
    columns = (streams.offsets, streams.obs_offsets, streams.channel, streams.value)
    spread(increments, np.diff(streams.offsets), *columns, channels, out, threads=threads)
    return out


def entries_of(
    streams: Streams, coordinates: Coordinates, threads: int | None = None
) -> tuple[Int32[np.ndarray, "obs entry"], Float64[np.ndarray, "obs entry"]]:
    """The letters that each observation moves, and by how much; the letter of a plain count is left out.

    >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]])
    >>> entries_of(streams, Coordinates(streams.schema, depth=2, counts=True, time=True))[1].tolist()
    [[2.0], [7.0], [3.0]]
    """
    change = increments_of(streams, threads)
    if coordinates.hat_basis is None:
        return streams.channel[:, None], change[:, None]
    return coordinates.hat_basis.entries(streams.channel, streams.value, change, threads)


def factors_of(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, threads: int | None = None
) -> tuple[Factors, Intervals]:
    """All factors, and the intervals in terms of them."""
    support = coordinates.term_support
    terms = streams.terms @ coordinates.term_coordinates[:, support]
    letters, amounts = entries_of(streams, coordinates, threads)
    events = Factors(
        streams.times,
        streams.obs_offsets * letters.shape[1],
        letters.reshape(-1),
        amounts.reshape(-1),
        terms,
        timed=coordinates.time,
    )
    if streams.knots is None:
        return events, intervals
    first = coordinates.discrete
    columns, begin, end = weave(
        streams, intervals.series, intervals.begin, intervals.end, intervals.start, intervals.stop,
        events.entry_offsets, events.letters, events.amounts, events.terms, first, coordinates.time,
    )  # fmt: skip
    return Factors(*columns, timed=False), dataclasses.replace(intervals, begin=begin, end=end)


Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def weave(
    streams: Streams,
    series: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    entry_offsets: np.ndarray,
    letters: np.ndarray,
    amounts: np.ndarray,
    terms: np.ndarray,
    first_letter: int,
    timed: bool,
) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Put a gap factor before every event, knot and interval end, and `B_C` first in an interval from 0.

    Intervals are in the order of their series.
    Returns times, entry offsets, letters, amounts and terms of all factors, and the factors of each interval.
    """
    knots = streams.knots
    assert knots is not None
    # Every moment of every interval, in order: its start, then events and inner knots, then its end.
    low, high = np.empty_like(begin), np.empty_like(end)
    for s, part in _parts(series, len(streams)):
        low[part] = np.searchsorted(knots.of(s)[0], start[part], side="right") + knots.offsets[s]
        high[part] = np.searchsorted(knots.of(s)[0], stop[part], side="left") + knots.offsets[s]
    which = np.arange(len(series))
    moments = [
        (which, start, np.zeros_like(which), np.full_like(which, -1)),
        _ranges(which, begin, end, streams.times, 2),
        (*_ranges(which, low, high, knots.times, 1)[:3], np.full(int((high - low).sum()), -1)),
        (which, stop, np.full_like(which, 3), np.full_like(which, -1)),
    ]
    interval, time, kind, event = (np.concatenate(column) for column in zip(*moments, strict=True))
    order = np.lexsort((kind, time, interval))
    interval, time, kind, event = interval[order], time[order], kind[order], event[order]

    position = _evaluate(streams, series[interval], time)
    if timed:
        position = np.concatenate([position, time[:, None]], axis=1)
    step = np.diff(position, axis=0, prepend=position[:1])
    initial = kind == 0
    step[initial] = np.where(time[initial, None] == 0.0, position[initial], 0.0)  # B_C, or nothing

    # Two factors for each moment: its gap, then its event if it is one.
    width = position.shape[1]
    is_event = event >= 0
    sizes = np.zeros((len(time), 2), np.int64)
    sizes[:, 0] = width
    sizes[is_event, 1] = np.diff(entry_offsets)[event[is_event]]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    new_letters = np.empty(offsets[-1], np.int32)
    new_amounts = np.empty(offsets[-1])
    gap_slots = offsets[:-1:2, None] + np.arange(width)
    new_letters[gap_slots] = first_letter + np.arange(width)
    new_amounts[gap_slots] = step
    event_slots = np.repeat(offsets[1::2][is_event] - entry_offsets[event[is_event]], sizes[is_event, 1])
    source = _expand(entry_offsets[event[is_event]], sizes[is_event, 1])
    new_letters[event_slots + source] = letters[source]
    new_amounts[event_slots + source] = amounts[source]
    new_terms = np.zeros((2 * len(time), terms.shape[1]))
    new_terms[1::2][is_event] = terms[event[is_event]]

    edges = np.searchsorted(interval, np.arange(len(series) + 1)) * 2
    columns = (np.repeat(time, 2), offsets, new_letters, new_amounts, new_terms)
    return columns, edges[:-1], edges[1:]


def _expand(first: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The numbers first, first + 1, ..., for each range in turn."""
    ends = np.cumsum(size)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - size), size)


def _ranges(which: np.ndarray, low: np.ndarray, high: np.ndarray, times: np.ndarray, kind: int) -> tuple:
    rows = _expand(low, high - low)
    return np.repeat(which, high - low), times[rows], np.full(len(rows), kind), rows


def _evaluate(streams: Streams, series: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The continuous channels of each moment's series at its time."""
    knots = streams.knots
    assert knots is not None
    out = np.empty((len(time), knots.values.shape[1]))
    for s, part in _parts(series, len(streams)):
        t, values = knots.of(s)
        for channel in range(values.shape[1]):
            out[part, channel] = np.interp(time[part], t, values[:, channel])
    return out


def _parts(series: np.ndarray, count: int) -> list[tuple[int, slice]]:
    """Where each series is in a column that is in the order of the series."""
    edges = np.searchsorted(series, np.arange(count + 1))
    return [(s, slice(edges[s], edges[s + 1])) for s in range(count)]
