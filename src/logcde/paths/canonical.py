"""The part of the data that reaches the path: two series have the same labels exactly if they have the same path.

`app:invariances` of the paper as a computation. Without counts, observations that repeat a value are left out; without
time, stamps are, except for the query interval that an event falls into; higher-order terms count by their Lie element.
Knots of the continuous channels are not unique, because a point on a line may be one or not: only corners count.
"""

import functools
import hashlib

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import increments_of, intervals_of, squared_increments_of
from logcde.paths.rounding import EPSILON, Rows, alike, interval_of_events
from logcde.streams import Cuts, Streams
from logcde.streams.ragged import offsets_of, owners

Column = tuple[np.ndarray, np.ndarray]
"""Offsets of every series, and an array with one row for each of its elements."""


def data_labels(streams: Streams) -> Int64[np.ndarray, "series"]:
    """Label series such that two have the same label if all their data are the same.

    >>> data_labels(Streams.from_arrays([[0.0], [0.0], [1.0]], [[[5.0]], [[5.0]], [[5.0]]]))
    array([0, 0, 2])
    """
    events, every = streams.offsets, np.arange(len(streams) + 1)
    return _labels(
        [
            (every, streams.horizon),
            (events, streams.times),
            (events, np.diff(streams.obs_offsets)),
            (streams.obs_offsets[events], streams.channel),
            (streams.obs_offsets[events], streams.value),
            (events, streams.terms),
            *_continuous(streams),
        ],
        len(streams),
    )


def path_labels(streams: Streams, coordinates: Coordinates, cuts: Cuts | None) -> Int64[np.ndarray, "series"]:
    """Label series such that two have the same label if their paths are the same.

    Without time, the query intervals of their events must be the same as well.

    >>> streams = Streams.from_arrays([[0.5, 1.0], [0.5]], [[[5.0], [5.0]], [[5.0]]])
    >>> path_labels(streams, Coordinates(streams.schema, depth=2, counts=False, time=True), None)
    array([0, 0])
    """
    obs_event, every = owners(streams.obs_offsets), np.arange(len(streams) + 1)
    seen = np.ones(len(obs_event), bool) if coordinates.counts else increments_of(streams) != 0
    observed = np.bincount(obs_event[seen], minlength=len(streams.times))
    terms = streams.terms @ coordinates.term_coordinates[:, coordinates.term_support]
    kept = (observed > 0) | (terms != 0).any(axis=1)
    events = np.append(0, np.cumsum(kept))[streams.offsets]
    observations = np.append(0, np.cumsum(seen))[streams.obs_offsets[streams.offsets]]
    columns = [
        (events, observed[kept]),
        (observations, streams.channel[seen]),
        (observations, streams.value[seen]),
        (events, terms[kept]),
    ]
    if coordinates.roughness:  # says whether an observation that was left out came before
        columns.append((observations, squared_increments_of(streams)[seen]))
    if coordinates.time:
        columns += [(every, streams.horizon), (events, streams.times[kept]), *_continuous(streams)]
        return _labels(columns, len(streams))
    if cuts is not None:
        columns += [(every, np.diff(cuts.offsets)), (events, _interval_numbers(streams, cuts)[kept])]
    labels = _labels(columns, len(streams))
    return labels if streams.knots is None else _same_curve(labels, streams, events, streams.times[kept], cuts)


def _labels(columns: list[Column], count: int) -> np.ndarray:
    """For every series, the first one with the same elements in all columns."""
    # Adding zero turns negative zeros, which are the same number, into positive ones.
    plain = [(offsets.tolist(), np.ascontiguousarray(array + 0)) for offsets, array in columns]
    first: dict[bytes, int] = {}
    labels = np.empty(count, np.int64)
    for series in range(count):
        digest = hashlib.blake2b(digest_size=32)
        for offsets, array in plain:
            part = array[offsets[series] : offsets[series + 1]]
            digest.update(len(part).to_bytes(8))
            digest.update(part.tobytes())
        labels[series] = first.setdefault(digest.digest(), series)
    return labels


def _interval_numbers(streams: Streams, cuts: Cuts) -> np.ndarray:
    """The query interval of each event within its series; -1 before the first, one past the last after it."""
    intervals = intervals_of(streams, cuts)
    number = np.arange(intervals.size) - (cuts.offsets[:-1] - np.arange(len(streams)))[intervals.series]
    interval, series = interval_of_events(intervals, len(streams.times)), owners(streams.offsets)
    outside = np.where(streams.times < cuts.points[cuts.offsets[:-1]][series], -1, np.diff(cuts.offsets)[series] - 1)
    return np.where(interval >= 0, number[interval], outside)


def _continuous(streams: Streams) -> list[Column]:
    """The continuous channels at their corners."""
    if streams.knots is None:
        return []

    @functools.cache
    def reduced(times: bytes, values: bytes) -> np.ndarray:
        at = np.frombuffer(times)
        table = np.frombuffer(values).reshape(len(at), -1)
        kept = corners(at, table, np.zeros(len(at), bool))
        return np.column_stack([at, table])[kept]

    # Many series often share one path, which is reduced once.
    paths = [streams.knots.of(series) for series in range(len(streams))]
    parts = [reduced(times.tobytes(), values.tobytes()) for times, values in paths]
    offsets = offsets_of(np.array([len(part) for part in parts], np.int64))
    return [(offsets, np.concatenate(parts) if parts else np.zeros((0, 1)))]


def _same_curve(
    labels: np.ndarray, streams: Streams, events: np.ndarray, times: Float64[np.ndarray, "event"], cuts: Cuts | None
) -> np.ndarray:
    """Finer labels: without time, the continuous channels trace a curve, on which events and query points lie."""
    curves = []
    for series in range(len(streams)):
        marks = times[events[series] : events[series + 1]]
        if cuts is not None:
            marks = np.concatenate([marks, cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]])
        curves.append(_curve(streams, series, marks))
    sizes = np.array([len(curve) for curve in curves], np.int64)
    width = sizes.max(initial=0)
    table, rounding = np.zeros((len(curves), width)), np.zeros((len(curves), width))
    for row, curve in enumerate(curves):
        table[row, : len(curve)] = curve
        rounding[row, : len(curve)] = 64 * EPSILON * np.abs(curve).max(initial=0.0)
    _, labels = np.unique(np.stack([labels, sizes], axis=1), axis=0, return_inverse=True)
    return alike(labels, lambda at: Rows(table[at], rounding[at]), max(1, len(curves)))


def _curve(streams: Streams, series: int, marks: np.ndarray) -> Float64[np.ndarray, "_"]:
    """Positions of the marks along the curve, and the corners of the curve."""
    assert streams.knots is not None
    knot_times, values = streams.knots.of(series)
    moments = np.union1d(knot_times, marks)
    points = np.stack([np.interp(moments, knot_times, column) for column in values.T], axis=1)
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    distance = np.append(0.0, np.cumsum(steps))
    moving = np.append(True, steps > 0)
    tolerance = float(16 * EPSILON * (np.abs(points).max() + distance[-1]))
    kept = corners(distance[moving], points[moving], np.zeros(moving.sum(), bool), tolerance)
    corner = np.column_stack([distance, points])[moving][kept]
    return np.concatenate([distance[np.searchsorted(moments, marks)], corner.reshape(-1)])


def corners(
    at: Float64[np.ndarray, "knot"],
    values: Float64[np.ndarray, "knot continuous"],
    fixed: Bool[np.ndarray, "knot"],
    tolerance: float = 0.0,
) -> Bool[np.ndarray, "knot"]:
    """Mark the points of a piecewise-linear path that are corners; `fixed` points and the two ends always are.

    A point is no corner if it is where `np.interp` puts it between its neighbours, exactly or within `tolerance`.
    Points are added where the line between two others misses most, until it misses nowhere.

    >>> at, values = np.arange(5.0), np.array([[0.0], [1.0], [2.0], [1.0], [0.0]])
    >>> corners(at, values, np.zeros(5, bool)).tolist()
    [True, False, True, False, True]
    """
    kept = fixed.copy()
    kept[[0, -1]] = True
    scale = np.abs(values).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    edges = np.flatnonzero(kept)
    wide = np.flatnonzero(np.diff(edges) > 1)
    todo = list(zip(edges[wide].tolist(), edges[wide + 1].tolist(), strict=True))
    while todo:
        left, right = todo.pop()
        misses = _misses(at, values, left, right)
        if (misses > tolerance).any():
            split = left + 1 + int((misses / scale).max(axis=1).argmax())
            kept[split] = True
            todo += [(left, split), (split, right)]
    # If the path runs parallel to such a line, the point that was added need not be a corner.
    places = np.flatnonzero(kept)
    left = 0
    for place, right in zip(places[1:-1].tolist(), places[2:].tolist(), strict=True):
        if fixed[place] or (_misses(at, values, left, right) > tolerance).any():
            left = place
        else:
            kept[place] = False
    return kept


def _misses(at: np.ndarray, values: np.ndarray, left: int, right: int) -> np.ndarray:
    """Distance of the points between two others from the line that joins these."""
    inner, ends = slice(left + 1, right), [left, right]
    lines = [np.interp(at[inner], at[ends], column[ends]) for column in values.T]
    return np.abs(values[inner] - np.stack(lines, axis=1))
