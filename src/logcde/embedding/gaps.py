"""Gaps of continuous channels beside time: `Gamma` and `B_C` of the paper, exact for piecewise-linear paths.

Between two neighbouring moments, among events, knots and ends of intervals, such a path is straight, and its signature
is the exponential of its increment: one more factor, with the continuous letters as entries.
"""

import numpy as np

from logcde.streams import Streams

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
    opening = kind == 0
    step[opening] = np.where(time[opening, None] == 0.0, position[opening], 0.0)  # B_C, or nothing

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
