"""Observations left out by chance, to see how much of what is learnt survives their absence.

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
from logcde.kernels.sampling import choose
from logcde.streams.columns import AbstractStreams
from logcde.streams.ragged import offsets_of

Kind = TypeVar("Kind", bound=AbstractStreams)


class AbstractDropping(abc.ABC):
    """What is dropped together, and whether the number of what stays is fixed or left to chance."""

    @abc.abstractmethod
    def kept(self, streams: AbstractStreams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """Which observations stay if this share of them should."""


@dataclasses.dataclass(frozen=True)
class WholePoints(AbstractDropping):
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
class EachChannel(AbstractDropping):
    """Single observations, each channel by itself, which leaves an asynchronous stream.

    The number that stays is that of `WholePoints`, for every series and channel.
    """

    fixed: bool = True

    def kept(self, streams: AbstractStreams, share: float, rng: np.random.Generator) -> Bool[np.ndarray, "obs"]:
        """Any observations of an event."""
        if streams.schema.terms:
            raise StreamError(
                f"The events of these streams have terms, such as {streams.schema.terms[0].name!r}, that belong to "
                "several channels at once, so channels cannot be dropped one by one. Use WholePoints()."
            )
        offsets = streams.obs_offsets[streams.offsets]
        return _draw(offsets, streams.channel, len(streams.schema.channels), share, rng, self.fixed)


def drop(streams: Kind, fraction: float, kind: AbstractDropping = WholePoints(), *, seed: int | Sequence[int]) -> Kind:
    """Leave out a fraction of what was observed, independently for each series. The same seed drops the same anywhere.

    Drop first and split afterwards: what is drawn for a series depends on the series before it.

    >>> from logcde.streams import Streams
    >>> streams = Streams.from_dense(np.arange(20.0).reshape(2, 10, 1))
    >>> left = drop(streams, 0.7, seed=0)
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
