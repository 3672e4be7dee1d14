"""What a job is, and the entries that several jobs share."""

import abc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import Case
from benchmarks.contenders import AbstractContender, CannotDo, Direct, Entry, Role, Windowed
from benchmarks.peers import AbstractPeer
from logcde._machine import cores
from logcde.algebra import Basis


class AbstractJob(abc.ABC):
    """A family of cases over generated data. Sizes are fields, so that tests can make them small."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abc.abstractmethod
    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """The cases, one by one, so that the data of one can go before the next is made."""


def ours(call: Callable[[], Any], items: int, read: Callable[[Any], np.ndarray | None]) -> Entry:
    """This library's entry."""
    return Entry("logcde", Role.OURS, cores(), items, lambda: Direct(call, read))


def part(name: str, call: Callable[[], Any], items: int) -> Entry:
    """A step of this library that is shown by itself and takes no part in the comparison."""
    return Entry(f"logcde: {name}", Role.PART, cores(), items, lambda: Direct(call, lambda answer: None))


SMALLEST_BATCH = 256
"""Windows in a batch below which a call costs more than sorting by length saves."""


def windowed(
    peers: Sequence[AbstractPeer], basis: Basis, items: int, *, windows: int, singly: bool
) -> tuple[Entry, ...]:
    """The peers' entries to a case about `windows`; `singly` lets in those that take one path at a time."""
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
    """Log-signatures (series, interval, lie) with one row for each interval."""
    values = np.asarray(logsigs.values, dtype=np.float64)
    return values.reshape(-1, values.shape[-1])
