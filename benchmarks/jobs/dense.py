"""Jobs about dense, synchronous series: whole paths (A), equal windows (B1), own windows for each series (B2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from benchmarks.cases import AbstractTarget, Case, NoTarget, Times
from benchmarks.data import Windows, cut, cut_every, dense, random_cuts
from benchmarks.jobs.abstract import AbstractJob, flat, ours, part, windowed
from benchmarks.peers import AbstractPeer
from logcde.algebra import Basis
from logcde.embedding import Embedding, logsignature
from logcde.streams import Partition, Streams


@dataclass(frozen=True)
class WholePaths(AbstractJob):
    """Short paths, each as one interval."""

    name: ClassVar[str] = "A"
    title: ClassVar[str] = "log-signature of whole paths"
    target: ClassVar[AbstractTarget] = Times(1)
    paths: int = 128
    steps: int = 128
    grid: tuple[tuple[int, int], ...] = ((3, 2), (3, 3), (6, 2), (6, 3), (11, 2), (11, 3), (3, 4), (6, 4))

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case for each width and depth."""
        for width, depth in self.grid:
            paths = dense(rng, self.paths, self.steps, width)
            whole = Windows([paths], np.arange(self.paths))
            yield _case(
                f"{self.paths} x {self.steps} x {width}, depth {depth}",
                peers,
                paths,
                Basis.of_width(width, depth),
                Partition.uniform(1),
                self.paths,
                lambda buckets, whole=whole: whole,
                singly=True,
                target=self.target if depth < 4 else NoTarget(),
                direct={},
            )


@dataclass(frozen=True)
class EqualWindows(AbstractJob):
    """Long series in windows of equally many steps, the same for all."""

    name: ClassVar[str] = "B1"
    title: ClassVar[str] = "dense series, windows of equal length"
    target: ClassVar[AbstractTarget] = Times(3)
    series: int = 32
    steps: int = 17_984
    width: int = 7
    every: int = 12
    depth: int = 2

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case."""
        paths = dense(rng, self.series, self.steps, self.width)
        yield _case(
            f"{self.series} x {self.steps:,} x {self.width}, every {self.every} steps, depth {self.depth}",
            peers,
            paths,
            Basis.of_width(self.width, self.depth),
            Partition.every_events(self.every),
            self.series * -(-self.steps // self.every),
            lambda buckets: cut_every(paths, self.every),
            singly=True,
            target=self.target,
            direct={"every": self.every},
        )


@dataclass(frozen=True)
class OwnWindows(AbstractJob):
    """Every series is cut at its own random places."""

    name: ClassVar[str] = "B2"
    title: ClassVar[str] = "dense series, own windows for each"
    targets: ClassVar[dict[int, AbstractTarget]] = {2: Times(4), 3: Times(3)}
    series: int = 2048
    steps: int = 2048
    width: int = 5
    intervals: int = 16

    def cases(self, peers: Sequence[AbstractPeer], rng: np.random.Generator) -> Iterator[Case]:
        """One case for each depth, on the same data."""
        paths = dense(rng, self.series, self.steps, self.width)
        cuts = random_cuts(rng, self.series, self.steps, self.intervals)
        # The stamp of a sample is its number, counted from 0; the last interval ends at the last stamp.
        points = list(np.minimum(cuts, self.steps - 1).astype(float))
        for depth, target in self.targets.items():
            yield _case(
                f"{self.series:,} x {self.steps:,} x {self.width}, {self.intervals} own windows, depth {depth}",
                peers,
                paths,
                Basis.of_width(self.width, depth),
                Partition.at(points),
                self.series * self.intervals,
                lambda buckets: cut(paths, cuts, buckets),
                singly=False,
                target=target,
            )


def _case(label, peers, paths, basis, partition, windows, cut, *, singly, direct=None, **options) -> Case:
    """A case on dense paths: by `logsignature` if that has the windows, with these options, and by streams."""
    embedding = Embedding(depth=basis.depth, counts=False, time=False, dtype=np.float32)

    def ingest() -> Streams:
        return Streams.from_dense(paths[:, 1:])

    streams = cache(ingest)
    by_streams = lambda: embedding(streams(), partition)  # noqa: E731
    if direct is None:
        mine = (ours(by_streams, windows, flat),)
    else:
        whole = lambda: logsignature(paths, basis.depth, **direct)  # noqa: E731
        rows = lambda logsigs: logsigs.reshape(-1, logsigs.shape[-1]).astype(np.float64)  # noqa: E731
        mine = (ours(whole, windows, rows), part("by streams", by_streams, windows, flat))
    return Case(
        label=label,
        unit="window",
        sizes=basis.sizes,
        entries=(
            *windowed(peers, basis, windows, windows=windows, singly=singly),
            *mine,
            part("ingest", ingest, windows),
        ),
        cut=cut,
        **options,
    )
