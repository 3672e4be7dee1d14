"""Factors of the driving path: one sparse Lie element for each event and, where needed, for each gap.

Implements `eq:event_increment_method` of the paper and assigns events to half-open query intervals. If time is the only
continuous channel, kernels compose the gaps from the times of the events. Other continuous channels are piecewise
linear: between neighbouring moments, among events, knots and interval ends, such a path is straight and its signature
is the exponential of its increment. So each of their gaps (`Gamma` and `B_C` of the paper) is one more factor, with
the continuous letters as entries.

Knows nothing of depths and kernels' states: see `logcde.embedding.host`.
"""

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.kernels.events import increments, locate, locate_windows, squared_increments
from logcde.kernels.records import Events, Factors, Intervals
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams
from logcde.streams.streams import changes_of


def events_of(streams: Streams) -> Events:
    """The columns of streams as kernels take them."""
    return Events(
        streams.offsets, streams.times, streams.horizon, streams.obs_offsets, streams.channel, streams.value
    )  # fmt: skip


def intervals_of(streams: Streams, cuts: Cuts) -> Intervals:
    """Assign events to query intervals; an interval that ends at the horizon also takes an event there.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> found = intervals_of(streams, Cuts(np.array([0, 3]), np.array([0.0, 1.0, 2.0])))
    >>> found.begin, found.end
    (array([0, 1]), array([1, 3]))
    """
    count = len(cuts.points) - len(streams)  # every series has one query point more than intervals
    found = Intervals(*np.empty((3, count), np.int64), *np.empty((2, count)))
    spread(locate, np.diff(cuts.offsets), events_of(streams), cuts.offsets, cuts.points, found)
    return found


def windows_of(
    streams: Streams,
    series: Int64[np.ndarray, "window"],
    start: Float64[np.ndarray, "window"],
    stop: Float64[np.ndarray, "window"],
) -> Intervals:
    """Assign events to windows of given series, which may overlap; those that end at the horizon take an event there.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> found = windows_of(streams, np.array([0, 0]), np.array([0.0, 0.5]), np.array([1.0, 2.0]))
    >>> found.begin, found.end
    (array([0, 1]), array([1, 3]))
    """
    begin, end = np.empty((2, len(series)), np.int64)
    found = Intervals(series, begin, end, start, stop)
    spread(locate_windows, np.ones(len(series)), events_of(streams), stop == streams.horizon[series], found)
    return found


def increments_of(streams: Streams, threads: int | None = None) -> Float64[np.ndarray, "obs"]:
    """Each observation's change since the previous one of its channel, starting from the base point zero.

    >>> increments_of(Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]]))
    array([2., 7., 3.])
    """
    if streams.change is not None:
        return streams.change
    out = np.empty(len(streams.value))
    channels = len(streams.schema.channels)
    spread(increments, np.diff(streams.offsets), events_of(streams), channels, out, threads=threads)
    return out


def squared_increments_of(streams: Streams, threads: int | None = None) -> Float64[np.ndarray, "obs"]:
    """The square of each observation's change; the first of a channel has nothing before it and adds nothing.

    >>> squared_increments_of(Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]]))
    array([0., 0., 9.])
    """
    if streams.change is not None:
        first = changes_of(streams, np.ones(len(streams.value))) > 0
        return np.where(first, 0.0, streams.change**2)
    out = np.empty(len(streams.value))
    channels = len(streams.schema.channels)
    spread(squared_increments, np.diff(streams.offsets), events_of(streams), channels, out, threads=threads)
    return out


def entries_of(
    streams: Streams, coordinates: Coordinates, threads: int | None = None
) -> tuple[Int32[np.ndarray, "obs entry"], Float64[np.ndarray, "obs entry"]]:
    """The letters that each observation moves, and by how much; plain counts are implied and left out.

    >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]])
    >>> entries_of(streams, Coordinates(streams.schema, depth=2, counts=True, time=True))[1].tolist()
    [[2.0], [7.0], [3.0]]
    """
    change = increments_of(streams, threads)
    square = squared_increments_of(streams, threads) if coordinates.roughness else None
    return observation_entries(streams.channel, streams.value, change, square, coordinates, threads)


def observation_entries(
    channel: Int32[np.ndarray, "obs"],
    value: Float[np.ndarray, "obs"],
    change: Float64[np.ndarray, "obs"],
    square: Float64[np.ndarray, "obs"] | None,
    coordinates: Coordinates,
    threads: int | None = None,
) -> tuple[Int32[np.ndarray, "obs entry"], Float64[np.ndarray, "obs entry"]]:
    """`entries_of` for observations whose changes are known, and their squares if the letters include roughness."""
    letters, amounts = channel[:, None], change[:, None]
    if coordinates.hat_basis is not None:
        letters, amounts = coordinates.hat_basis.entries(channel, value, change, threads)
    if square is not None:
        letters = np.column_stack([letters, channel + np.int32(coordinates.first_roughness)])
        amounts = np.column_stack([amounts, square])
    return letters, amounts


def factors_of(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, threads: int | None = None
) -> tuple[Factors, Intervals]:
    """All factors, and the same intervals with `begin` and `end` counting factors instead of events."""
    letters, amounts = entries_of(streams, coordinates, threads)
    events = Factors(
        times=streams.times,
        entry_offsets=streams.obs_offsets * letters.shape[1],
        letters=letters.reshape(-1),
        amounts=amounts.reshape(-1),
        terms=streams.terms @ coordinates.term_coordinates[:, coordinates.term_support],
    )
    return (events, intervals) if streams.knots is None else _with_gaps(streams, intervals, events, coordinates)


def _with_gaps(
    streams: Streams, intervals: Intervals, events: Factors, coordinates: Coordinates
) -> tuple[Factors, Intervals]:
    """Put a gap factor before every event, knot and interval end, and `B_C` first in an interval that starts at 0.

    Intervals must be in the order of their series.
    """
    assert streams.knots is not None
    interval, time, rank, event, piece = _moments(streams, intervals)
    gap, initial = np.diff(time, prepend=time[:1]), rank == 0
    gap[initial] = 0.0
    step = _along(streams, piece, gap)
    step[initial] = np.where(time[initial, None] == 0.0, streams.knots.values[piece[initial]], 0.0)  # B_C, or nothing
    if coordinates.time:
        step = np.concatenate([step, gap[:, None]], axis=1)

    # Two factors for each moment: its gap, then its event if it is one.
    width = step.shape[1]
    is_event = event >= 0
    sizes = np.zeros((len(time), 2), np.int64)
    sizes[:, 0] = width
    sizes[is_event, 1] = np.diff(events.entry_offsets)[event[is_event]]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    letters, amounts = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    gap_slots = offsets[:-1:2, None] + np.arange(width)
    letters[gap_slots] = coordinates.discrete + np.arange(width)
    amounts[gap_slots] = step
    first_entry = events.entry_offsets[event[is_event]]
    event_slots = np.repeat(offsets[1::2][is_event] - first_entry, sizes[is_event, 1])
    source = ranges(first_entry, sizes[is_event, 1])
    letters[event_slots + source] = events.letters[source]
    amounts[event_slots + source] = events.amounts[source]
    terms = np.zeros((2 * len(time), events.terms.shape[1]))
    terms[1::2][is_event] = events.terms[event[is_event]]

    edges = np.searchsorted(interval, np.arange(intervals.size + 1)) * 2
    factors = Factors(np.repeat(time, 2), offsets, letters, amounts, terms)
    return factors, intervals._replace(begin=edges[:-1], end=edges[1:])


def _moments(streams: Streams, intervals: Intervals) -> tuple[np.ndarray, ...]:
    """Every moment of every interval, in order: its start, then inner knots and events, then its end.

    Returns:
        The interval of each moment, its time, its rank among moments of the same time (start 0, knot 1, event 2, end
        3), its event, or -1, and the knot at which the piece of the path begins that holds it or ends there.
    """
    knots = streams.knots
    assert knots is not None
    low, high = np.empty_like(intervals.begin), np.empty_like(intervals.end)
    for s, part in _parts(intervals.series, len(streams)):
        low[part] = np.searchsorted(knots.of(s)[0], intervals.start[part], side="right") + knots.offsets[s]
        high[part] = np.searchsorted(knots.of(s)[0], intervals.stop[part], side="left") + knots.offsets[s]
    which = np.arange(intervals.size)
    inner_knots = ranges(low, high - low)
    events = ranges(intervals.begin, intervals.end - intervals.begin)
    none = np.full_like(which, -1)
    moments = [
        (which, intervals.start, np.zeros_like(which), none),
        (np.repeat(which, intervals.end - intervals.begin), streams.times[events], np.full(len(events), 2), events),
        (
            np.repeat(which, high - low),
            knots.times[inner_knots],
            np.full(len(inner_knots), 1),
            np.full(len(inner_knots), -1),
        ),
        (which, intervals.stop, np.full_like(which, 3), none),
    ]
    interval, time, rank, event = (np.concatenate(column) for column in zip(*moments, strict=True))
    order = np.lexsort((rank, time, interval))
    interval, rank = interval[order], rank[order]
    passed = np.cumsum(rank == 1) - (rank == 1)
    piece = low[interval] - 1 + passed - passed[rank == 0][interval]
    return interval, time[order], rank, event[order], piece


def ranges(first: Int64[np.ndarray, "range"], size: Int64[np.ndarray, "range"]) -> Int64[np.ndarray, "_"]:
    """The numbers first, first + 1, ..., of each range in turn.

    >>> ranges(np.array([5, 2]), np.array([2, 3]))
    array([5, 6, 2, 3, 4])
    """
    ends = np.cumsum(size)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - size), size)


def pieces_of(streams: Streams) -> tuple[Float64[np.ndarray, "knot"], Float64[np.ndarray, "knot continuous"]]:
    """Time and change of the continuous channels from each knot to the next, 0 after the last knot of a series.

    >>> streams = Streams.from_arrays([[1.0]], [[[5.0]]], horizon=2.0)
    >>> pieces_of(streams.with_continuous(("dose",), [0.0, 2.0], [1.0, 4.0]))
    (array([2., 0.]), array([[3.],
           [0.]]))
    """
    if streams.knots is None:
        return np.zeros(0), np.zeros((0, 0))
    times, values = streams.knots.times, streams.knots.values
    spans, rises = np.diff(times, append=times[-1:]), np.diff(values, axis=0, append=values[-1:])
    spans[streams.knots.offsets[1:] - 1] = rises[streams.knots.offsets[1:] - 1] = 0.0
    return spans, rises


def _along(streams: Streams, piece: np.ndarray, gap: np.ndarray) -> Float64[np.ndarray, "moment continuous"]:
    """How far the continuous channels move in the gap before each moment, within one piece of their path.

    The share of a piece is exact however large values and times are; the difference of two points would be rounded.
    """
    spans, rises = pieces_of(streams)
    return rises[piece] * (gap / spans[piece])[:, None]


def _parts(series: np.ndarray, count: int) -> list[tuple[int, slice]]:
    """The slice of each series in a column that is in the order of the series."""
    edges = np.searchsorted(series, np.arange(count + 1))
    return [(s, slice(edges[s], edges[s + 1])) for s in range(count)]
