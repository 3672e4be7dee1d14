"""Transforms of streams: merge channels, observe time as a channel, drop observations at random.

Dropping is the input dropping of `tab:uea_drop_summary` in the paper, and an asynchronous variant of it. A series keeps
its horizon and its continuous channels.
"""

import abc
import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from logcde.errors import StreamError, Where
from logcde.kernels.events import choose
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import Schema
from logcde.streams.streams import Streams, changes_of, on_one_clock

CLOCK = "clock"
"""The channel that observes time; "time" itself is the continuous coordinate of an embedding."""


def merge_channels(first: Streams, second: Streams) -> Streams:
    """Merge the channels of the same series from two sources. Events with one stamp in one series become one event.

    Args:
        first: Streams, whose channels come first.
        second: Streams of the same series in the same order, with the same horizons and the same clock.

    Returns:
        Streams with the channels, terms and continuous channels of both.

    >>> pulse = Streams.from_arrays([[0.0, 2.0]], [[[61.0], [64.0]]], ["pulse"])
    >>> glucose = Streams.from_arrays([[1.0, 2.0]], [[[5.5], [5.1]]], ["glucose"])
    >>> both = merge_channels(pulse, glucose)
    >>> both.times, both.channel, both.value
    (array([0., 1., 2.]), array([0, 1, 0, 1], dtype=int32), array([61. ,  5.5, 64. ,  5.1]))
    """
    first, second = on_one_clock([first, second])
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
    given = first.change is not None or second.change is not None
    change = np.empty(obs_offsets[-1]) if given else None
    width, columns = len(first.schema.channels), len(first.schema.terms)
    terms = np.zeros((len(heads), columns + len(second.schema.terms)))
    terms[ours, :columns], terms[theirs, columns:] = first.terms, second.terms
    # Within an event the observations of the second follow those of the first, as their channels do.
    starts = (obs_offsets[ours], obs_offsets[theirs] + counts[0, theirs])
    for part, start, shift in zip((first, second), starts, (0, width), strict=True):
        place = np.arange(len(part.value)) + np.repeat(start - part.obs_offsets[:-1], np.diff(part.obs_offsets))
        channel[place], value[place] = part.channel + np.int32(shift), part.value
        if change is not None:
            change[place] = changes_of(part)
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
        knots=knots[0].merge(knots[1]) if len(knots) == 2 else next(iter(knots), None),
        change=change,
    )


def with_time_channel(streams: Streams, stamps_of: Streams | None = None) -> Streams:
    """Add a last channel "clock" that observes time itself.

    An embedding of such streams needs no continuous time: `Embedding(time=False)`.

    Args:
        streams: Any streams.
        stamps_of: Streams of the same series, at whose stamps time is observed; by default `streams` itself. After
            dropping observations, pass the complete streams, to observe time also where everything else was dropped.

    >>> whole = Streams.from_dense(np.array([[[5.0], [6.0], [7.0]]]))
    >>> left = Streams.from_arrays([[1.0]], [[[6.0]]], horizon=2.0)
    >>> seen = with_time_channel(left, whole)
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
        change=None,
    )
    return merge_channels(streams, clock)


def _check(first: Streams, second: Streams) -> None:
    """Refuse streams that are not of the same series, or that have a channel in common."""
    for field, what in (("ids", "ids"), ("horizon", "horizons"), ("origins", "origins")):
        if not np.array_equal(getattr(first, field), getattr(second, field)):
            raise StreamError(
                f"The two streams have different {what} of series, so they are not the same series in the same order.",
                "Read or select both in the same way, with one horizon.",
            )
    if first.schema.clock != second.schema.clock:
        raise StreamError(
            f"One of the streams has the clock {first.schema.clock}, the other {second.schema.clock}.",
            "Read both with stamps of one type, unit and origin.",
        )
    for name in (*second.schema.channels, *second.schema.continuous):
        if name in (*first.schema.channels, *first.schema.continuous):
            raise StreamError(
                f"Both streams have a channel {name!r}.", "Rename one of them.", where=Where(channel=name)
            )


class AbstractDropping(abc.ABC):
    """A rule of `drop_observations`: which observations are dropped together."""

    @abc.abstractmethod
    def kept(self, streams: Streams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """The mask of observations that stay, about this share of them."""


@dataclasses.dataclass(frozen=True)
class PerEvent(AbstractDropping):
    """Drop whole events, with all observations at their stamps.

    Of the n events of a series round((1 - fraction) n) stay, at least one. With `fixed=False` each is dropped
    independently with probability `fraction`, and a series may lose all of them.
    """

    fixed: bool = True

    def kept(self, streams: Streams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """A mask that is constant on each event."""
        together = np.zeros(len(streams.times), np.int32)
        return np.repeat(_draw(streams.offsets, together, 1, share, rng, self.fixed), np.diff(streams.obs_offsets))


@dataclasses.dataclass(frozen=True)
class PerChannel(AbstractDropping):
    """Drop single observations, independently for each channel, which leaves an asynchronous stream.

    Of the n observations of a channel in a series, as many stay as with `PerEvent` of n events.
    """

    fixed: bool = True

    def kept(self, streams: Streams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """A mask drawn for each series and channel. Streams with higher-order terms are refused."""
        if streams.schema.terms:
            raise StreamError(
                f"The events of these streams have terms, such as {streams.schema.terms[0].name!r}, that belong to "
                "several channels at once, so channels cannot be dropped one by one.",
                "Use PerEvent().",
            )
        offsets = streams.obs_offsets[streams.offsets]
        return _draw(offsets, streams.channel, len(streams.schema.channels), share, rng, self.fixed)


def drop_observations(
    streams: Streams, fraction: float, by: AbstractDropping = PerEvent(), *, seed: int | Sequence[int]
) -> Streams:
    """Drop a fraction of the observations at random, independently for each series.

    The draws for a series depend on the series before it: drop first, and split into training and test afterwards.

    Args:
        streams: Any streams.
        fraction: The fraction to drop, in [0, 1).
        by: What is dropped as a unit: `PerEvent()`, or `PerChannel()`, single observations.
        seed: The seed of NumPy's generator; the same seed drops the same observations on every machine.

    >>> streams = Streams.from_dense(np.arange(20.0).reshape(2, 10, 1))
    >>> left = drop_observations(streams, 0.7, seed=0)
    >>> np.diff(left.offsets), left.horizon
    (array([3, 3]), array([9., 9.]))
    """
    if not 0 <= fraction < 1:
        raise StreamError(f"The fraction to drop is {fraction}.", "It must be at least 0 and less than 1.")
    return keep_observations(streams, by.kept(streams, 1.0 - fraction, np.random.default_rng(seed)))


def keep_observations(streams: Streams, kept: Bool[np.ndarray, "obs"]) -> Streams:
    """Keep some of the observations, and the events that have any left. Series may be left without events.

    >>> streams = Streams.from_dense(np.arange(6.0).reshape(2, 3, 1))
    >>> keep_observations(streams, streams.value > 1).value
    array([2., 3., 4., 5.])
    """
    counts = np.add.reduceat(kept, streams.obs_offsets[:-1], dtype=np.int64) if len(kept) else np.zeros(0, np.int64)
    some = counts > 0
    before = offsets_of(some)
    return dataclasses.replace(
        streams,
        offsets=before[streams.offsets],
        times=streams.times[some],
        obs_offsets=offsets_of(counts[some]),
        channel=streams.channel[kept],
        value=streams.value[kept],
        terms=streams.terms[some],
        change=None if streams.change is None else _change_since(streams, kept),
    )


def _change_since(streams: Streams, kept: Bool[np.ndarray, "obs"]) -> Float64[np.ndarray, "_"]:
    """The changes of the kept observations: each with those of its channel that were dropped since the one before."""
    series = np.repeat(owners(streams.offsets), np.diff(streams.obs_offsets))
    order = np.lexsort((streams.channel, series))
    group = series[order] * len(streams.schema.channels) + streams.channel[order]
    # A run ends with an observation that is kept, or with its channel.
    ends = kept[order] | (np.diff(group, append=-1) != 0)
    starts = np.append(0, np.flatnonzero(ends)[:-1] + 1)[: ends.sum()]
    found = np.zeros(len(kept))
    found[order[ends]] = np.add.reduceat(changes_of(streams)[order], starts) if len(starts) else 0.0
    return found[kept]


def _draw(
    offsets: Int64[np.ndarray, "_"],
    group: Int32[np.ndarray, "item"],
    groups: int,
    share: float,
    rng: np.random.Generator,
    fixed: bool,
) -> Bool[np.ndarray, "item"]:
    """The mask of items that stay, drawn for each row and group."""
    chance = rng.random(len(group))
    if not fixed:
        return chance < share
    taken = np.empty(len(group), bool)
    choose(offsets, group, groups, share, chance, taken)
    return taken
