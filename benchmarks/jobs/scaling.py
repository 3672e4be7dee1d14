"""How cost grows: with observations, with observed channels at a fixed width, and with the width at depth 2 and 3."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.cases import Case, Point
from benchmarks.data import Events
from benchmarks.jobs.abstract import AbstractJob
from benchmarks.jobs.asynchronous import case
from benchmarks.peers import AbstractPeer


@dataclass(frozen=True)
class Scaling(AbstractJob):
    """Sweeps over one size at a time, the others fixed."""

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
