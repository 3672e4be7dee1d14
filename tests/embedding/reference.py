"""A slow, obvious reference for every engine, and the streams that they are tried on."""

import dataclasses
import itertools

import jax
import numpy as np

from logcde.algebra import Lie, exp, log, product, project, unit
from logcde.streams import Partition, Streams, Term

NAN = np.nan
append = jax.jit(lambda total, element: product(total, exp(element)))
logarithm = jax.jit(lambda total: project(log(total)))


def reference(streams, partition, coordinates):
    """Slow and obvious: for every interval, multiply the dense exponential of every factor."""
    cuts = partition.cuts(streams)
    for number, series in enumerate(streams):
        points = cuts.points[cuts.offsets[number] : cuts.offsets[number + 1]]
        for start, stop in itertools.pairwise(points):
            total = unit(coordinates.basis)
            for factor in factors(series, coordinates, start, stop):
                total = append(total, Lie(factor, coordinates.basis))
            yield logarithm(total).coordinates


def factors(series, coordinates, start, stop):
    """Lie elements of one interval of one series, one by one."""

    def continuous(time):
        element = np.zeros(coordinates.basis.dimension)
        if series.knots is not None:
            path = [np.interp(time, series.knots.times, column) for column in series.knots.values.T]
            element[coordinates.discrete : coordinates.discrete + len(path)] = path
        if coordinates.time:
            element[coordinates.basis.width - 1] = time
        return element

    if start == 0:
        yield continuous(0.0)
    events = events_of(series, coordinates)
    last = stop == series.horizon[0]
    inside = [time for time in events if start <= time < stop or (last and time == stop)]
    knots = [] if series.knots is None else [time for time in series.knots.times if start < time < stop]
    now = start
    for time in sorted({*inside, *knots, stop}):
        yield continuous(time) - continuous(now)
        if time in inside:
            yield events[time]
        now = time


def events_of(series, coordinates):
    """For every stamp the event's Lie element."""
    known = np.zeros(coordinates.channels)
    elements = {}
    for event, time in enumerate(series.times.tolist()):
        element = np.zeros(coordinates.basis.dimension)
        for obs in range(series.obs_offsets[event], series.obs_offsets[event + 1]):
            channel = series.channel[obs]
            element[channel] = series.value[obs] - known[channel]
            known[channel] = series.value[obs]
            if coordinates.counts:
                element[coordinates.channels + channel] = 1.0
        for term, amount in zip(coordinates.schema.terms, series.terms[event], strict=True):
            element += amount * coordinates.basis.coordinates(term.bracket)
        elements[time] = element
    return elements


def plain():
    """Events at 0, at query points and at T; repeated values; a channel never seen; one event only; gaps."""
    times = [[0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 4.0], [2.5], [0.3, 0.4, 0.45, 4.0]]
    values = [
        [[1.0, NAN], [2.0, 0.5], [2.0, NAN], [NAN, 0.5], [-1.0, 1.5], [NAN, 2.0], [0.5, 0.5]],
        [[3.0, NAN]],
        [[NAN, 1.0], [NAN, 2.0], [NAN, -2.0], [NAN, 0.0]],
    ]
    return Streams.from_arrays(times, values, channels=("a", "b"), horizon=[4.0, 5.0, 4.0])


def with_terms():
    streams = plain()
    terms = (
        Term("area", ("a", "b")),
        Term("reversed", ("b", ("a", "b"))),
        Term("deep", (("a", "b"), ("b", ("a", "b")))),
    )
    schema = dataclasses.replace(streams.schema, terms=terms)
    amounts = np.random.default_rng(1).normal(size=(len(streams.times), 3))
    return dataclasses.replace(streams, schema=schema, terms=amounts)


def with_continuous():
    times = [[0.0, 0.7, 2.0, 4.0], [0.0, 5.0], [0.0, 0.4, 4.0]]
    values = [[[1.0], [0.5], [2.0], [-1.0]], [[0.3], [0.4]], [[-2.0], [0.0], [1.0]]]
    return plain().with_continuous(("dose",), times, values)


RAGGED = Partition.at([np.array([0.0, 1.0, 1.1, 2.0, 4.0]), np.array([0.0, 5.0]), np.array([0.0, 0.4, 4.0])])
PARTIAL = Partition.at([np.array([0.5, 1.0, 2.0]), np.array([1.0, 2.5]), np.array([0.0, 0.4])], partial=True)
CASES = {
    "depth 1": (plain, RAGGED, 1, True, True),
    "depth 2": (plain, RAGGED, 2, True, True),
    "depth 3": (plain, RAGGED, 3, True, True),
    "depth 4": (plain, RAGGED, 4, False, True),
    "no time": (plain, RAGGED, 3, True, False),
    "values only": (plain, RAGGED, 2, False, False),
    "a part only": (plain, PARTIAL, 2, True, True),
    "terms": (with_terms, RAGGED, 4, False, True),
    "terms above the depth": (with_terms, RAGGED, 2, True, True),
    "continuous": (with_continuous, RAGGED, 3, False, True),
    "continuous, a part only": (with_continuous, PARTIAL, 2, True, True),
    "continuous, no time": (with_continuous, RAGGED, 2, True, False),
    "by events": (with_continuous, Partition.every_events(2), 2, False, True),
}
