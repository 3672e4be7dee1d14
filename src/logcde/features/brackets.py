"""Brackets: which coordinates of log-signatures are features, so that many channels need not have all of them.

A coordinate of a log-signature depends on the letters of its bracket only. So those of some channels are coordinates of
the log-signature of these channels alone, which is small, and the others are never computed.
"""

import abc
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from logcde.embedding import Coordinates
from logcde.errors import EmbeddingError
from logcde.streams import Streams
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import Schema, listed, nearest


class AbstractBrackets(abc.ABC):
    """Which coordinates are features: those of groups of channels."""

    @abc.abstractmethod
    def groups(self, channels: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """The channels of each group, in order; of each group, coordinates are kept that no earlier group has."""


@dataclasses.dataclass(frozen=True)
class AllBrackets(AbstractBrackets):
    """All coordinates. At depth 2 their number grows with the square of the number of channels.

    >>> AllBrackets().groups(("a", "b", "c"))
    ((0, 1, 2),)
    """

    def groups(self, channels: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """One group of all channels."""
        return (tuple(range(len(channels))),)


@dataclasses.dataclass(frozen=True)
class OwnBrackets(AbstractBrackets):
    """Coordinates of each channel with its own count, its roughness and time, and those of chosen pairs of channels.

    Their number grows with that of channels and pairs. At depth 2 they hold event-weighted and time-weighted means.

    Args:
        pairs: Pairs of channels whose common brackets, such as the area between them, are features too.

    >>> OwnBrackets(pairs=(("a", "c"),)).groups(("a", "b", "c"))
    ((0,), (1,), (2,), (0, 2))
    """

    pairs: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(tuple(pair) for pair in self.pairs))
        for pair in self.pairs:
            if len(pair) != 2 or pair[0] == pair[1]:
                raise EmbeddingError(f"{pair} is not a pair of channels.", "Give two different names in each pair.")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise EmbeddingError(f"The pairs {listed(self.pairs)} name one twice.", "Give each once.")

    def groups(self, channels: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Each channel by itself, then the pairs."""
        for name in (name for pair in self.pairs for name in pair):
            if name not in channels:
                remedy = f"{nearest(name, channels)}The channels are {listed(channels)}."
                raise EmbeddingError(f"A pair of brackets has the channel {name!r}, which the streams lack.", remedy)
        pairs = (tuple(sorted(map(channels.index, pair))) for pair in self.pairs)
        return (*((channel,) for channel in range(len(channels))), *pairs)


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Some channels, the log-signatures of their streams, and which of the coordinates are features.

    Attributes:
        channels: Their numbers.
        coordinates: Letters of these channels only.
        kept: Positions of the coordinates that are features.
    """

    channels: tuple[int, ...]
    coordinates: Coordinates
    kept: np.ndarray


def groups_of(coordinates: Coordinates, brackets: AbstractBrackets) -> tuple[Group, ...]:
    """The groups of channels whose log-signatures hold the chosen coordinates of larger ones."""
    schema = coordinates.schema
    chosen = brackets.groups(schema.channels)
    if chosen == AllBrackets().groups(schema.channels):
        return (Group(chosen[0], coordinates, np.arange(coordinates.basis.dimension)),)
    if schema.terms or coordinates.soft_bins is not None:
        terms = f"the higher-order terms {listed([term.name for term in schema.terms])}"
        what = "soft bins" if coordinates.soft_bins is not None else terms
        raise EmbeddingError(f"Brackets cannot be chosen for streams with {what}.", "Use all of them: AllBrackets().")
    found, known = [], set()
    for channels in chosen:
        names = tuple(schema.channels[channel] for channel in channels)
        scaler = None if coordinates.scaler is None else coordinates.scaler.select(names)
        own = dataclasses.replace(coordinates, schema=Schema(names, schema.clock), scaler=scaler)
        kept = [place for place, label in enumerate(own.basis.labels) if label not in known]
        known.update(own.basis.labels)
        found.append(Group(channels, own, np.array(kept, np.int64)))
    return tuple(found)


def restricted(streams: Streams, groups: Sequence[Group]) -> Iterator[Streams]:
    """The streams of each group: the observations of its channels, in time linear in their number."""
    if len(groups) == 1 and len(groups[0].channels) == len(streams.schema.channels):
        yield streams
        return
    by_channel = np.argsort(streams.channel, kind="stable")
    starts = offsets_of(np.bincount(streams.channel, minlength=len(streams.schema.channels)))
    event, series = owners(streams.obs_offsets), owners(streams.offsets)
    for group in groups:
        own = np.sort(np.concatenate([by_channel[starts[channel] : starts[channel + 1]] for channel in group.channels]))
        events, counts = np.unique(event[own], return_counts=True)
        number = np.zeros(len(streams.schema.channels), np.int32)
        number[list(group.channels)] = np.arange(len(group.channels))
        yield dataclasses.replace(
            streams,
            schema=group.coordinates.schema,
            offsets=offsets_of(np.bincount(series[events], minlength=len(streams))),
            times=streams.times[events],
            obs_offsets=offsets_of(counts),
            channel=number[streams.channel[own]],
            value=streams.value[own],
            terms=np.zeros((len(events), 0)),
            change=None if streams.change is None else streams.change[own],
        )
