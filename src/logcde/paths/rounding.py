"""Which rows of numbers are the same to rounding, and how much rounding to expect of a log-signature.

Rows come in blocks, each number with the error to expect of it, and are grouped without comparing every row with every
other. The error of a coordinate of a log-signature is relative to the total variation of its letters.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import entries_of
from logcde.kernels.records import Intervals
from logcde.streams import Streams
from logcde.streams.ragged import offsets_of, owners

EPSILON = np.finfo(np.float64).eps
SKETCHES = 2
"""Random sums that each row is reduced to."""


class Rows(NamedTuple):
    """Rows of numbers, and the rounding error to expect of each number."""

    values: Float64[np.ndarray, "row column"]
    rounding: Float64[np.ndarray, "row column"]


Fetch = Callable[[Int64[np.ndarray, "row"]], Rows]


def alike(labels: Int64[np.ndarray, "row"], fetch: Fetch, block: int) -> Int64[np.ndarray, "row"]:
    """Label rows such that two have the same label if they had before and all their numbers agree to rounding.

    Each row is first reduced to two random sums; only rows whose sums agree are compared.

    Args:
        labels: Labels so far.
        fetch: Returns the rows at given positions.
        block: Rows that are fetched at once, at most.

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
    """Random sums of every row, and half of the distance that rounding can put between the sums of two equal rows."""
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
    """Finer labels: a new one starts where the ranges of all sums before end below those of all sums after."""
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
    """Label the rows that agree with the first one by its position; repeat with the others."""
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


def scales(streams: Streams, intervals: Intervals, coordinates: Coordinates) -> Float64[np.ndarray, "interval lie"]:
    """For each coordinate, the product of the total variations of its letters in the interval.

    >>> from logcde.embedding.factors import intervals_of
    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [3.0], [0.0]]])
    >>> intervals = intervals_of(streams, Partition.uniform(1).cuts(streams))
    >>> scales(streams, intervals, Coordinates(streams.schema, depth=2, counts=False, time=True)).tolist()
    [[6.0, 2.0, 12.0]]
    """
    basis = coordinates.basis
    variation = _variation(streams, intervals, coordinates)
    result = np.empty((intervals.size, basis.dimension))
    for level in range(1, coordinates.depth + 1):
        part = basis.level(level)
        result[:, part] = variation[:, np.array(basis.words[part], np.int64).reshape(-1, level)].prod(axis=2)
    return result


def _variation(
    streams: Streams, intervals: Intervals, coordinates: Coordinates
) -> Float64[np.ndarray, "interval letter"]:
    """The total variation of each letter in each interval."""
    channels, count, width = coordinates.channels, intervals.size, coordinates.basis.width
    event_interval = interval_of_events(intervals, len(streams.times))
    interval = np.repeat(event_interval, np.diff(streams.obs_offsets))
    inside = interval >= 0
    letters, amounts = entries_of(streams, coordinates)
    cell = interval[inside, None] * width + letters[inside]
    change = np.abs(amounts[inside])
    variation = np.zeros((count, width))
    variation += np.bincount(cell.reshape(-1), change.reshape(-1), minlength=count * width).reshape(count, width)
    if coordinates.counted:
        cell = interval[inside] * channels + streams.channel[inside]
        observed = np.bincount(cell, minlength=count * channels).reshape(count, channels)
        variation[:, channels : 2 * channels] = observed
    # A term of degree n counts as n letters that each move by its n-th root.
    within = event_interval >= 0
    for term, amounts in zip(streams.schema.terms, streams.terms.T, strict=True):
        if term.degree <= coordinates.depth:
            roots = np.bincount(event_interval[within], np.abs(amounts[within]) ** (1 / term.degree), minlength=count)
            for letter in set(term.letters):
                variation[:, streams.schema.channels.index(letter)] += roots
    if coordinates.time:
        variation[:, -1] = intervals.stop - intervals.start
    if streams.knots is not None:
        edges = np.searchsorted(intervals.series, np.arange(len(streams) + 1))
        for series in range(len(streams)):
            part = slice(edges[series], edges[series + 1])
            times, values = streams.knots.of(series)
            for letter, column in enumerate(values.T, start=coordinates.discrete):
                travelled = np.append(0.0, np.cumsum(np.abs(np.diff(column))))
                passed = np.interp(intervals.stop[part], times, travelled) - np.interp(
                    intervals.start[part], times, travelled
                )
                # Values at the ends of an interval are interpolated: their rounding is relative to the value itself.
                variation[part, letter] = passed + np.abs(column).max()
    return variation


def interval_of_events(intervals: Intervals, events: int) -> Int64[np.ndarray, "event"]:
    """The interval of each event, -1 if it is in none.

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
