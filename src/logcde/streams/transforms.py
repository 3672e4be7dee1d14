"""Several data sets with one schema become one.

Other channels of the same series, put beside those that are there.

Observations left out by chance, to see how much of what is learnt survives their absence.

The input dropping of `tab:uea_drop_summary` in the paper, and an asynchronous variant. Nothing else changes: a series
keeps its horizon and its continuous channels.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Int32, Int64

from logcde.errors import StreamError
from logcde.kernels.events import choose
from logcde.streams.columns import AbstractStreams
from logcde.streams.knots import Knots, merge
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import Schema

StreamsT = TypeVar("StreamsT", bound=AbstractStreams)


def join(parts: Sequence[StreamsT]) -> StreamsT:
    """The series of all parts, one after another."""
    if not parts:
        raise StreamError("There is nothing to concatenate. Give at least one data set.")
    first = parts[0]
    for number, part in enumerate(parts):
        for field in ("channels", "clock", "terms", "continuous"):
            ours, theirs = getattr(first.schema, field), getattr(part.schema, field)
            if ours != theirs:
                raise StreamError(
                    f"Part {number} has the {field} {theirs!r}, but part 0 has {ours!r}. "
                    "Read both with one schema, as in Streams.from_frame(..., schema=first.schema)."
                )
        if part.ids.dtype.kind != first.ids.dtype.kind:
            raise StreamError(f"The ids of part {number} are {part.ids.dtype}, but those of part 0 {first.ids.dtype}.")

    def chain(field: str) -> np.ndarray:
        return np.concatenate([getattr(part, field) for part in parts])

    knots = [part.knots for part in parts if part.knots is not None]
    return dataclasses.replace(
        first,
        ids=chain("ids"),
        offsets=_chain_offsets([part.offsets for part in parts]),
        times=chain("times"),
        obs_offsets=_chain_offsets([part.obs_offsets for part in parts]),
        channel=chain("channel"),
        value=chain("value"),
        horizon=chain("horizon"),
        terms=chain("terms"),
        knots=_chain_knots(knots) if knots else None,
        origins=None if first.origins is None else chain("origins"),
    )


def _chain_offsets(parts: Sequence[np.ndarray]) -> np.ndarray:
    return offsets_of(np.concatenate([np.diff(offsets) for offsets in parts]))


def _chain_knots(parts: Sequence[Knots]) -> Knots:
    return Knots(
        _chain_offsets([knots.offsets for knots in parts]),
        np.concatenate([knots.times for knots in parts]),
        np.concatenate([knots.values for knots in parts]),
    )


CLOCK = "clock"
"""The name of the channel that observes time; "time" itself is the continuous coordinate of an embedding."""


def merge_channels(first: StreamsT, second: AbstractStreams) -> StreamsT:
    """The channels of both, the first's before the second's. Events of one series and stamp become one event.

    >>> from logcde.streams import Streams
    >>> pulse = Streams.from_arrays([[0.0, 2.0]], [[[61.0], [64.0]]], ["pulse"])
    >>> glucose = Streams.from_arrays([[1.0, 2.0]], [[[5.5], [5.1]]], ["glucose"])
    >>> both = merge_channels(pulse, glucose)
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


def with_time_channel(streams: StreamsT, stamps_of: AbstractStreams | None = None) -> StreamsT:
    """These streams with a last channel "clock" that observes time itself, at every stamp of `stamps_of`.

    By default at the streams' own stamps. With the streams that these are left of, after dropping, time is seen also
    where nothing else is. An embedding of such streams needs no continuous time: `Embedding(time=False)`.

    >>> from logcde.streams import Streams
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
    )
    return merge_channels(streams, clock)


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


class AbstractDropping(abc.ABC):
    """What is dropped together, and whether the number of what stays is fixed or left to chance."""

    @abc.abstractmethod
    def kept(self, streams: AbstractStreams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """Which observations stay if this share of them should."""


@dataclasses.dataclass(frozen=True)
class PerEvent(AbstractDropping):
    """Whole events, with all that is observed at their stamps.

    Of the n events of a series round((1 - fraction) n) stay, one at least; with `fixed=False` each is dropped by itself
    with the given probability, and a series may lose all of them.
    """

    fixed: bool = True

    def kept(self, streams: AbstractStreams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """All or no observations of an event."""
        together = np.zeros(len(streams.times), np.int32)
        return np.repeat(_draw(streams.offsets, together, 1, share, rng, self.fixed), np.diff(streams.obs_offsets))


@dataclasses.dataclass(frozen=True)
class PerChannel(AbstractDropping):
    """Single observations, each channel by itself, which leaves an asynchronous stream.

    The number that stays is that of `PerEvent`, for every series and channel.
    """

    fixed: bool = True

    def kept(self, streams: AbstractStreams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """Any observations of an event."""
        if streams.schema.terms:
            raise StreamError(
                f"The events of these streams have terms, such as {streams.schema.terms[0].name!r}, that belong to "
                "several channels at once, so channels cannot be dropped one by one. Use PerEvent()."
            )
        offsets = streams.obs_offsets[streams.offsets]
        return _draw(offsets, streams.channel, len(streams.schema.channels), share, rng, self.fixed)


def drop_observations(
    streams: StreamsT, fraction: float, kind: AbstractDropping = PerEvent(), *, seed: int | Sequence[int]
) -> StreamsT:
    """Leave out a fraction of what was observed, independently for each series. The same seed drops the same anywhere.

    Drop first and split afterwards: what is drawn for a series depends on the series before it.

    >>> from logcde.streams import Streams
    >>> streams = Streams.from_dense(np.arange(20.0).reshape(2, 10, 1))
    >>> left = drop_observations(streams, 0.7, seed=0)
    >>> np.diff(left.offsets), left.horizon
    (array([3, 3]), array([9., 9.]))
    """
    if not 0 <= fraction < 1:
        raise StreamError(f"The fraction to drop is {fraction}. It must be at least 0 and less than 1.")
    kept = kind.kept(streams, 1.0 - fraction, np.random.default_rng(seed))
    counts = np.add.reduceat(kept, streams.obs_offsets[:-1], dtype=np.int64)
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
    )


def _draw(
    offsets: Int64[np.ndarray, "_"],
    group: Int32[np.ndarray, "item"],
    groups: int,
    share: float,
    rng: np.random.Generator,
    fixed: bool,
) -> Bool[np.ndarray, "item"]:
    """Which items stay, of each row and group."""
    chance = rng.random(len(group))
    if not fixed:
        return chance < share
    taken = np.empty(len(group), bool)
    choose(offsets, group, groups, share, chance, taken)
    return taken
