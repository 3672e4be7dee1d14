"""The interface of a job, and the entries that several jobs share."""

import abc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import AbstractContender, CannotDo, Case, Direct, Entry, Role, Windowed
from benchmarks.peers import AbstractPeer
from logcde._machine import cores
from logcde.algebra import Basis


class AbstractJob(abc.ABC):
    """A family of cases on generated data. Sizes are fields, so that tests can make them small."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abc.abstractmethod
    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """Yield the cases one by one, so that the data of one are freed before the next is made."""


def ours(call: Callable[[], Any], items: int, read: Callable[[Any], np.ndarray | None]) -> Entry:
    """The entry of this library."""
    return Entry("logcde", Role.OURS, cores(), items, lambda: Direct(call, read))


def part(
    name: str, call: Callable[[], Any], items: int, read: Callable[[Any], np.ndarray | None] = lambda answer: None
) -> Entry:
    """A step of this library, or another way to do the same, that is shown beside it; `read` gives what is compared."""
    return Entry(f"logcde: {name}", Role.PART, cores(), items, lambda: Direct(call, read))


SMALLEST_BATCH = 256
"""Smallest batch for which sorting by length saves more than a call costs."""


def windowed(
    peers: Sequence[AbstractPeer], basis: Basis, items: int, *, windows: int, singly: bool
) -> tuple[Entry, ...]:
    """Entries of the peers in a case with so many `windows`; `singly` admits peers that take one path at a time."""
    return tuple(
        Entry(
            name=peer.name,
            role=peer.role,
            threads=peer.threads,
            items=items,
            make=partial(_windowed, peer, basis, singly),
            buckets=max(1, min(peer.buckets, windows // SMALLEST_BATCH)),
        )
        for peer in peers
    )


def _windowed(peer: AbstractPeer, basis: Basis, singly: bool) -> AbstractContender:
    if not peer.batched and not singly:
        raise CannotDo("takes one path at a time; this case has too many for that")
    return Windowed(peer.windows(basis.width, basis.depth), partial(peer.coordinates.to_brackets, basis=basis))


def flat(logsigs: Any) -> np.ndarray:
    """Flatten log-signatures (series, interval, lie) to one row for each interval."""
    values = np.asarray(logsigs.values, dtype=np.float64)
    return values.reshape(-1, values.shape[-1])
