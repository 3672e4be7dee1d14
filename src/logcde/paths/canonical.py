"""How much is added up in the coordinates of an interval's log-signature: what its rounding is measured by.

Which of many rows of numbers are the same to rounding, without comparing every row with every other.

Knows nothing of what the numbers mean: rows come in blocks, with how far each may be off.

Which points of a piecewise-linear path are corners, and which only lie on the line between two others.

Knots of the continuous channels are not unique: a point on a line may be one or not, and the path is the same. Here is
the form that two equal paths share.

What of the data reaches the path: two series have the same form exactly if they have the same realised path.

`app:invariances` of the paper as a computation. Without counts, observations that repeat a value are left out; without
time, stamps are, except for the query interval that an event falls into; of higher-order terms the Lie element counts.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import entries_of, increments_of, intervals_of
from logcde.kernels.records import Intervals
from logcde.streams import Cuts, Streams
from logcde.streams.ragged import offsets_of, owners


def interval_of_events(intervals: Intervals, events: int) -> Int64[np.ndarray, "event"]:
    """The interval that each event is in, -1 if it is in none.

    >>> from logcde.embedding.factors import intervals_of
    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> interval_of_events(intervals_of(streams, Partition.at([1.0, 1.5, 2.0], partial=True).cuts(streams)), 3)
    array([-1,  0,  1])
    """
    sizes = intervals.end - intervals.begin
    result = np.full(events, -1)
    result[np.arange(sizes.sum()) + np.repeat(intervals.begin - offsets_of(sizes)[:-1], sizes)] = owners(
        offsets_of(sizes)
    )
    return result


def scales(streams: Streams, intervals: Intervals, coordinates: Coordinates) -> Float64[np.ndarray, "interval lie"]:
    """For each coordinate the product of what its letters have moved in the interval, up and down added up.

    >>> from logcde.embedding.factors import intervals_of
    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [3.0], [0.0]]])
    >>> intervals = intervals_of(streams, Partition.uniform(1).cuts(streams))
    >>> scales(streams, intervals, Coordinates(streams.schema, depth=2, counts=False, time=True)).tolist()
    [[6.0, 2.0, 12.0]]
    """
    basis = coordinates.basis
    moved = _moved(streams, intervals, coordinates)
    result = np.empty((intervals.count, basis.dimension))
    for level in range(1, coordinates.depth + 1):
        part = basis.level(level)
        result[:, part] = moved[:, np.array(basis.words[part], np.int64).reshape(-1, level)].prod(axis=2)
    return result


def _moved(streams: Streams, intervals: Intervals, coordinates: Coordinates) -> Float64[np.ndarray, "interval letter"]:
    channels, count, width = coordinates.channels, intervals.count, coordinates.basis.width
    event_interval = interval_of_events(intervals, len(streams.times))
    interval = np.repeat(event_interval, np.diff(streams.obs_offsets))
    inside = interval >= 0
    letters, amounts = entries_of(streams, coordinates)
    cell = interval[inside, None] * width + letters[inside]
    change = np.abs(amounts[inside])
    moved = np.zeros((count, width))
    moved += np.bincount(cell.reshape(-1), change.reshape(-1), minlength=count * width).reshape(count, width)
    if coordinates.counted:
        cell = interval[inside] * channels + streams.channel[inside]
        observed = np.bincount(cell, minlength=count * channels).reshape(count, channels)
        moved[:, channels : 2 * channels] = observed
    # A term of degree n counts as much as n letters that move by its n-th root, each.
    within = event_interval >= 0
    for term, amounts in zip(streams.schema.terms, streams.terms.T, strict=True):
        if term.degree <= coordinates.depth:
            roots = np.bincount(event_interval[within], np.abs(amounts[within]) ** (1 / term.degree), minlength=count)
            for letter in set(term.letters):
                moved[:, streams.schema.channels.index(letter)] += roots
    if coordinates.time:
        moved[:, -1] = intervals.stop - intervals.start
    if streams.knots is not None:
        edges = np.searchsorted(intervals.series, np.arange(len(streams) + 1))
        for series in range(len(streams)):
            part = slice(edges[series], edges[series + 1])
            times, values = streams.knots.of(series)
            for letter, column in enumerate(values.T, start=coordinates.discrete):
                way = np.append(0.0, np.cumsum(np.abs(np.diff(column))))
                passed = np.interp(intervals.stop[part], times, way) - np.interp(intervals.start[part], times, way)
                # Where an interval begins and ends, a value is interpolated: its rounding is that of the value itself.
                moved[part, letter] = passed + np.abs(column).max()
    return moved


EPSILON = np.finfo(np.float64).eps
SKETCHES = 2


class Rows(NamedTuple):
    """Some rows, and for each number the rounding to expect of it."""

    values: Float64[np.ndarray, "row column"]
    rounding: Float64[np.ndarray, "row column"]


Fetch = Callable[[Int64[np.ndarray, "row"]], Rows]


def alike(labels: Int64[np.ndarray, "row"], fetch: Fetch, block: int) -> Int64[np.ndarray, "row"]:
    """Labels that two rows share if they had the same label before and all their numbers agree to rounding.

    Rows are fetched by their positions, at most `block` at once. Each is first reduced to two random sums; only rows
    whose sums agree are compared.

    >>> values = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-15], [1.0, 2.1]])
    >>> alike(np.zeros(3, np.int64), lambda at: Rows(values[at], np.full((len(at), 2), 1e-14)), block=2)
    array([0, 0, 2])
    """
    sums, slack = _sketch(len(labels), fetch, block)
    for sketch in range(SKETCHES):
        labels = _chains(labels, sums[:, sketch], slack[:, sketch])
    result = np.arange(len(labels))
    order = np.argsort(labels, kind="stable")
    for chain in np.split(order, 1 + np.flatnonzero(np.diff(labels[order]))):
        _compare(chain, fetch, block, result)
    return result


def _blocks(index: np.ndarray, block: int) -> Iterator[np.ndarray]:
    return (index[first : first + block] for first in range(0, len(index), block))


def _sketch(count: int, fetch: Fetch, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Random sums of every row, and how far rounding can put the sums of two equal rows apart, half each."""
    rng = np.random.default_rng(0)
    sums, slack = np.zeros((count, SKETCHES)), np.zeros((count, SKETCHES))
    weights = np.zeros((0, SKETCHES))
    for index in _blocks(np.arange(count), block):
        values, rounding = fetch(index)
        if len(weights) != values.shape[1]:
            weights = rng.uniform(0.5, 1.5, (values.shape[1], SKETCHES))
        sums[index] = values @ weights
        slack[index] = (rounding + len(weights) * EPSILON * np.abs(values)) @ weights
    return sums, slack


def _chains(labels: np.ndarray, sums: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Finer labels: a new one begins where the ranges of all sums before end below those of all sums after."""
    low, high = sums - slack, sums + slack
    order = np.lexsort((low, labels))
    same = labels[order][1:] == labels[order][:-1]
    chain, reach = np.zeros(len(labels), np.int64), -np.inf
    current = -1
    for place, row in enumerate(order.tolist()):
        if place == 0 or not same[place - 1] or low[row] > reach:
            current, reach = current + 1, -np.inf
        chain[row] = current
        reach = max(reach, high[row])
    return chain


def _compare(rows: np.ndarray, fetch: Fetch, block: int, result: np.ndarray) -> None:
    """Give rows that agree with the first one its position as their label; go on with the others."""
    while len(rows) > 1:
        values, rounding = fetch(rows[:1])
        agree = []
        for index in _blocks(rows, block):
            others = fetch(index)
            agree.append((np.abs(others.values - values) <= others.rounding + rounding).all(axis=1))
        equal = np.concatenate(agree)
        equal[0] = True
        result[rows[equal]] = rows[0]
        rows = rows[~equal]


def corners(
    at: Float64[np.ndarray, "knot"],
    values: Float64[np.ndarray, "knot continuous"],
    fixed: Bool[np.ndarray, "knot"],
    tolerance: float = 0.0,
) -> Bool[np.ndarray, "knot"]:
    """Which points are needed to draw the path, beside those that are `fixed` and the two ends.

    A point is left out if it is where `np.interp` puts it between its neighbours, to the last bit or to a `tolerance`.
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
    # Where the path runs parallel to such a line, the point that was added need not be a corner.
    places = np.flatnonzero(kept)
    left = 0
    for place, right in zip(places[1:-1].tolist(), places[2:].tolist(), strict=True):
        if fixed[place] or (_misses(at, values, left, right) > tolerance).any():
            left = place
        else:
            kept[place] = False
    return kept


def _misses(at: np.ndarray, values: np.ndarray, left: int, right: int) -> np.ndarray:
    """How far the points between two others are from the line that joins these."""
    inner, ends = slice(left + 1, right), [left, right]
    lines = [np.interp(at[inner], at[ends], column[ends]) for column in values.T]
    return np.abs(values[inner] - np.stack(lines, axis=1))


Column = tuple[np.ndarray, np.ndarray]
"""Offsets of every series, and an array with one row for each of its elements."""


def data_labels(streams: Streams) -> Int64[np.ndarray, "series"]:
    """Labels that two series share if their data are the same: stamps, observed sets, values, terms, C and horizon.

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
    """Labels that two series share if their paths are the same, and without time their events' query intervals too.

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
    if coordinates.time:
        columns += [(every, streams.horizon), (events, streams.times[kept]), *_continuous(streams)]
        return _labels(columns, len(streams))
    if cuts is not None:
        columns += [(every, np.diff(cuts.offsets)), (events, _interval(streams, cuts)[kept])]
    labels = _labels(columns, len(streams))
    return labels if streams.knots is None else _same_curve(labels, streams, events, streams.times[kept], cuts)


def _labels(columns: list[Column], count: int) -> np.ndarray:
    """For every series the first one with the same elements in all columns."""
    # Adding zero turns a negative zero, which is the same number, into a positive one.
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


def _interval(streams: Streams, cuts: Cuts) -> np.ndarray:
    """The query interval of each event, counted in its series; -1 before the first, one more than the last after it."""
    intervals = intervals_of(streams, cuts)
    number = np.arange(intervals.count) - (cuts.offsets[:-1] - np.arange(len(streams)))[intervals.series]
    interval, series = interval_of_events(intervals, len(streams.times)), owners(streams.offsets)
    outside = np.where(streams.times < cuts.points[cuts.offsets[:-1]][series], -1, np.diff(cuts.offsets)[series] - 1)
    return np.where(interval >= 0, number[interval], outside)


def _continuous(streams: Streams) -> list[Column]:
    """The continuous channels, without knots that only lie on a line."""
    if streams.knots is None:
        return []

    @functools.cache
    def reduced(times: bytes, values: bytes) -> np.ndarray:
        at = np.frombuffer(times)
        table = np.frombuffer(values).reshape(len(at), -1)
        kept = corners(at, table, np.zeros(len(at), bool))
        return np.column_stack([at, table])[kept]

    # Many series often have one path, which need not be reduced again.
    paths = [streams.knots.of(series) for series in range(len(streams))]
    parts = [reduced(times.tobytes(), values.tobytes()) for times, values in paths]
    offsets = offsets_of(np.array([len(part) for part in parts], np.int64))
    return [(offsets, np.concatenate(parts) if parts else np.zeros((0, 1)))]


def _same_curve(
    labels: np.ndarray, streams: Streams, events: np.ndarray, times: Float64[np.ndarray, "event"], cuts: Cuts | None
) -> np.ndarray:
    """Finer labels: without time, the continuous channels trace out a curve, on which events and query points lie."""
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
    """How far along the curve the marks are, and its corners."""
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
