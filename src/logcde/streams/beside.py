"""Other channels of the same series, put beside those that are there."""

import dataclasses
from typing import TypeVar

import numpy as np

from logcde.errors import StreamError
from logcde.streams.columns import AbstractStreams
from logcde.streams.knots import merge
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import Schema

Kind = TypeVar("Kind", bound=AbstractStreams)

CLOCK = "clock"
"""The name of the channel that observes time; "time" itself is the continuous coordinate of an embedding."""


def beside(first: Kind, second: AbstractStreams) -> Kind:
    """The channels of both, the first's before the second's. Events of one series and stamp become one event.

    >>> from logcde.streams import Streams
    >>> pulse = Streams.from_arrays([[0.0, 2.0]], [[[61.0], [64.0]]], ["pulse"])
    >>> glucose = Streams.from_arrays([[1.0, 2.0]], [[[5.5], [5.1]]], ["glucose"])
    >>> both = beside(pulse, glucose)
    >>> both.times, both.channel, both.value
    (array([0., 1., 2.]), array([0, 1, 0, 1], dtype=int32), array([61. ,  5.5, 64. ,  5.1]))
    """
    _check(first, second)
    series = np.concatenate([owners(first.offsets), owners(second.offsets)])
    times = np.concatenate([first.times, second.times])
    order = np.lexsort((times, series))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(times[order]) != 0) | (np.diff(series[order]) != 0)
    event = np.empty(len(order), np.int64)
    event[order] = np.cumsum(new) - 1
    heads = order[new]
    ours, theirs = event[: len(first.times)], event[len(first.times) :]
    counts = np.zeros((2, len(heads)), np.int64)
    counts[0, ours], counts[1, theirs] = np.diff(first.obs_offsets), np.diff(second.obs_offsets)
    obs_offsets = offsets_of(counts.sum(axis=0))
    channel = np.empty(obs_offsets[-1], np.int32)
    value = np.empty(obs_offsets[-1], np.result_type(first.value, second.value))
    width, columns = len(first.schema.channels), len(first.schema.terms)
    terms = np.zeros((len(heads), columns + len(second.schema.terms)))
    terms[ours, :columns], terms[theirs, columns:] = first.terms, second.terms
    # Within an event the observations of the second follow those of the first, as their channels do.
    starts = (obs_offsets[ours], obs_offsets[theirs] + counts[0, theirs])
    for part, start, shift in zip((first, second), starts, (0, width), strict=True):
        place = np.arange(len(part.value)) + np.repeat(start - part.obs_offsets[:-1], np.diff(part.obs_offsets))
        channel[place], value[place] = part.channel + np.int32(shift), part.value
    knots = [part.knots for part in (first, second) if part.knots is not None]
    return dataclasses.replace(
        first,
        schema=Schema(
            (*first.schema.channels, *second.schema.channels),
            first.schema.clock,
            (*first.schema.terms, *second.schema.terms),
            (*first.schema.continuous, *second.schema.continuous),
        ),
        offsets=offsets_of(np.bincount(series[heads], minlength=len(first))),
        times=times[heads],
        obs_offsets=obs_offsets,
        channel=channel,
        value=value,
        terms=terms,
        knots=merge(*knots) if len(knots) == 2 else next(iter(knots), None),
    )


def with_clock(streams: Kind, stamps_of: AbstractStreams | None = None) -> Kind:
    """These streams with a last channel "clock" that observes time itself, at every stamp of `stamps_of`.

    By default at the streams' own stamps. With the streams that these are left of, after dropping, time is seen also
    where nothing else is. An embedding of such streams needs no continuous time: `Embedding(time=False)`.

    >>> from logcde.streams import Streams
    >>> whole = Streams.from_dense(np.array([[[5.0], [6.0], [7.0]]]))
    >>> left = Streams.from_arrays([[1.0]], [[[6.0]]], horizon=2.0)
    >>> seen = with_clock(left, whole)
    >>> seen.schema.channels, seen.channel, seen.value
    (('x1', 'clock'), array([1, 0, 1, 1], dtype=int32), array([0., 6., 1., 2.]))
    """
    stamped = streams if stamps_of is None else stamps_of
    events = len(stamped.times)
    clock = dataclasses.replace(
        stamped,
        schema=Schema((CLOCK,), stamped.schema.clock),
        obs_offsets=np.arange(events + 1),
        channel=np.zeros(events, np.int32),
        value=stamped.times,
        terms=np.zeros((events, 0)),
        knots=None,
    )
    return beside(streams, clock)


def _check(first: AbstractStreams, second: AbstractStreams) -> None:
    """Refuse streams that are not the same series, or that have a channel in common."""
    for field, what in (("ids", "ids"), ("horizon", "horizons"), ("origins", "origins")):
        if not np.array_equal(getattr(first, field), getattr(second, field)):
            raise StreamError(
                f"The two streams have different {what} of series, so they are not the same series in the same order. "
                "Read or take them alike, and give both one horizon."
            )
    if first.schema.clock != second.schema.clock:
        raise StreamError(f"One of the streams has the clock {first.schema.clock}, the other {second.schema.clock}.")
    for name in (*second.schema.channels, *second.schema.continuous):
        if name in (*first.schema.channels, *first.schema.continuous):
            raise StreamError(f"Both streams have a channel {name!r}. Rename one of them.")
