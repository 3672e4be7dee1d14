"""How much is added up in the coordinates of an interval's log-signature: what its rounding is measured by."""

import numpy as np
from jaxtyping import Float64, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import Intervals, entries_of
from logcde.streams import Streams
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
    result = np.empty((len(intervals), basis.dimension))
    for level in range(1, coordinates.depth + 1):
        part = basis.level(level)
        result[:, part] = moved[:, np.array(basis.words[part], np.int64).reshape(-1, level)].prod(axis=2)
    return result


def _moved(streams: Streams, intervals: Intervals, coordinates: Coordinates) -> Float64[np.ndarray, "interval letter"]:
    channels, count, width = coordinates.channels, len(intervals), coordinates.basis.width
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
