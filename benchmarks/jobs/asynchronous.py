"""Jobs D, D3 and scaling: asynchronous observations with counts and time, where peers need the realised path first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import AbstractTarget, Case, Point, Times
from benchmarks.data import Events, realise
from benchmarks.jobs.abstract import AbstractJob, flat, ours, part, windowed
from benchmarks.peers import AbstractPeer
from logcde.algebra import Basis
from logcde.embedding import Embedding
from logcde.streams import Partition, Streams


@dataclass(frozen=True)
class AbstractAsynchronous(AbstractJob):
    """Random channels at random times, one at a time, over equal intervals."""

    target: ClassVar[AbstractTarget]
    channels: int
    depth: int
    series: int = 1000
    events: int = 1000
    intervals: int = 32

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case."""
        events = Events.random(rng, self.series, self.events, self.channels, observed=1)
        yield case(peers, events, self.intervals, self.depth, target=self.target)


@dataclass(frozen=True)
class Asynchronous(AbstractAsynchronous):
    """Many channels, depth 2."""

    name: ClassVar[str] = "D"
    title: ClassVar[str] = "asynchronous streams, counts and time"
    target: ClassVar[AbstractTarget] = Times(20)
    channels: int = 20
    depth: int = 2


@dataclass(frozen=True)
class AsynchronousDeep(AbstractAsynchronous):
    """Few channels, depth 3."""

    name: ClassVar[str] = "D3"
    title: ClassVar[str] = "asynchronous streams, counts and time, depth 3"
    target: ClassVar[AbstractTarget] = Times(5)
    channels: int = 5
    depth: int = 3


def case(
    peers: Sequence[AbstractPeer],
    events: Events,
    intervals: int,
    depth: int,
    **options: Any,
) -> Case:
    """Interval log-signatures of the events; the unit is an event."""
    series, stamps, observed = events.channel.shape
    basis = Basis.of_width(2 * events.channels + 1, depth)
    embedding = Embedding(depth=depth, dtype=np.float32)
    partition = Partition.uniform(intervals)
    values = list(events.as_matrix())

    def ingest() -> Streams:
        return Streams.from_arrays(list(events.times), values, horizon=1.0)

    streams = cache(ingest)
    points = np.linspace(0.0, 1.0, intervals + 1)
    return Case(
        label=(
            f"{series:,} x {stamps:,} events, {observed} of {events.channels} channels, d_X = {basis.width}, "
            f"{intervals} intervals, depth {depth}"
        ),
        unit="event",
        sizes=basis.sizes,
        entries=(
            *windowed(peers, basis, events.times.size, windows=series * intervals, singly=False),
            ours(lambda: embedding(streams(), partition), events.times.size, flat),
            part("ingest", ingest, events.times.size),
        ),
        cut=lambda buckets: realise(events, points, buckets),
        **options,
    )


@dataclass(frozen=True)
class Scaling(AbstractJob):
    """Sweeps over one size at a time: observations, observed channels, width at depth 2 and 3."""

    name: ClassVar[str] = "scaling"
    title: ClassVar[str] = "how cost grows"
    series: int = 100
    events: int = 1000
    intervals: int = 8
    observations: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 8000)
    channels: int = 20
    observed: tuple[int, ...] = (1, 2, 5, 10, 20)
    widths: tuple[tuple[int, tuple[int, ...]], ...] = ((2, (1, 2, 5, 10, 20, 40)), (3, (1, 2, 5, 10)))

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case for each point of each sweep."""
        for events in self.observations:
            point = Point("observations (5 channels, depth 2)", "observations", self.series * events)
            yield self._case(peers, Events.random(rng, self.series, events, 5, 1), 2, point)
        for observed in self.observed:
            panel = f"observed channels of {self.channels} (depth 2)"
            point = Point(panel, "observed channels for each event", observed)
            yield self._case(peers, Events.random(rng, self.series, self.events, self.channels, observed), 2, point)
        for depth, widths in self.widths:
            for channels in widths:
                point = Point(f"width, one channel observed (depth {depth})", "d_X", 2 * channels + 1)
                yield self._case(peers, Events.random(rng, self.series, self.events, channels, 1), depth, point)

    def _case(self, peers: Sequence[AbstractPeer], events: Events, depth: int, point: Point) -> Case:
        return case(peers, events, self.intervals, depth, point=point, patience=2.0)
