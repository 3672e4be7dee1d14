"""Job index: build and query the index of a long series, against computing every interval separately."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from benchmarks.cases import AbstractTarget, Case, Direct, Entry, Role, Times
from benchmarks.data import Events
from benchmarks.jobs.abstract import AbstractJob, ours, part
from benchmarks.peers import AbstractPeer
from logcde._machine import cores
from logcde.algebra import Basis
from logcde.embedding import Embedding
from logcde.streams import Partition, Streams


@dataclass(frozen=True)
class Index(AbstractJob):
    """Arbitrary intervals of one long asynchronous series; no peer offers such queries without a grid."""

    name: ClassVar[str] = "index"
    title: ClassVar[str] = "arbitrary intervals of one long series"
    target: ClassVar[AbstractTarget] = Times(20)
    observations: int = 1_000_000
    queries: int = 10_000
    recomputed: int = 20
    channels: int = 5
    depth: int = 2

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case; the separate computation is measured on a sample of the intervals."""
        events = Events.random(rng, 1, self.observations, self.channels, 1)
        streams = Streams.from_arrays(list(events.times), list(events.as_matrix()), horizon=1.0)
        starts, stops = np.sort(rng.random((2, self.queries)), axis=0)
        series = np.zeros(self.queries, np.int64)
        embedding = Embedding(depth=self.depth, counts=False, time=False)
        basis = Basis.of_width(self.channels, self.depth)
        sample = min(self.recomputed, self.queries)
        index = cache(lambda: embedding.index(streams))

        def recompute() -> list[np.ndarray]:
            intervals = np.stack([starts, stops], axis=1)[:sample]
            return [
                np.asarray(embedding(streams, Partition.at(interval, partial=True)).values)[0, 0]
                for interval in intervals
            ]

        yield Case(
            label=f"{self.observations:,} observations, {self.queries:,} intervals, d = {self.channels}, depth 2",
            unit="query",
            sizes=basis.sizes,
            entries=(
                Entry("recompute each", Role.BASELINE, cores(), sample, lambda: Direct(recompute, np.stack)),
                ours(
                    lambda: index().query(series, starts, stops), self.queries, lambda rows: np.asarray(rows)[:sample]
                ),
                part("build", lambda: embedding.index(streams), self.queries),
            ),
            target=self.target,
            rival=Role.BASELINE,
        )
