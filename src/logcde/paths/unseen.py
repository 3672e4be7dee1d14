"""What of a data set would be lost without counts or without time (`app:invariances`), in numbers of these data."""

import dataclasses

import numpy as np

from logcde.embedding.embedding import Embedding
from logcde.embedding.factors import increments_of
from logcde.paths.faithful import check_faithful
from logcde.streams import Streams
from logcde.streams.clock import unit_name
from logcde.streams.ragged import owners
from logcde.streams.schema import listed

MOST_SERIES = 10_000
"""Series that are compared with each other, by default."""


@dataclasses.dataclass(frozen=True, repr=False)
class Unseen:
    """What an embedding without counts, or without time, would not see. Made by `unseen`.

    `repeats` are observations that repeat the last value of their channel, `silent` the events that consist of nothing
    else. `same_without_counts` and `same_without_time` are groups of series, by their ids, that are not all the same
    and would have the same path; `compared` says how many series were looked at for that.
    """

    series: int
    compared: int
    observations: int
    repeats: int
    events: int
    silent: int
    gaps: int
    shortest_gap: float
    longest_gap: float
    same_without_counts: tuple[tuple, ...]
    same_without_time: tuple[tuple, ...]
    unit: str

    def __str__(self) -> str:
        share = self.repeats / max(self.observations, 1)
        counts = (
            f"Without counts, {self.repeats:,} of {self.observations:,} observations ({share:.1%}) would leave no "
            f"trace, since they repeat the last value of their channel; {self.silent:,} of {self.events:,} events "
            f"would vanish as a whole. {_groups(self.same_without_counts)}"
        )
        unit = f" {self.unit}" if self.unit else ""
        longest = f"{self.longest_gap:.4g}{unit}"
        length = f", from {self.shortest_gap:.4g} to {longest}," if self.gaps else ""
        gaps = f"the lengths of {self.gaps:,} gaps between events{length}"
        if self.gaps == 1:
            gaps = f"the length of 1 gap between events, {longest},"
        time = (
            f"Without time, {gaps} would leave no trace beyond the query interval that an "
            f"event is in. {_groups(self.same_without_time)}"
        )
        lines = [counts, time]
        if self.compared < self.series:
            lines.append(f"Only the first {self.compared:,} of {self.series:,} series were compared with each other.")
        return "\n".join(lines)

    __repr__ = __str__


def unseen(streams: Streams, most: int = MOST_SERIES) -> Unseen:
    """Count what would be lost. At most so many series are compared with each other; the rest is told of all.

    >>> streams = Streams.from_arrays([[0.5, 1.0], [0.5]], [[[5.0], [5.0]], [[5.0]]], ids=["p1", "p2"])
    >>> unseen(streams).repeats, unseen(streams).same_without_counts
    (1, (('p1', 'p2'),))
    """
    some = streams[:most]
    event_series = owners(streams.offsets)
    gaps = np.diff(streams.times)[event_series[1:] == event_series[:-1]]
    moved = np.bincount(owners(streams.obs_offsets)[increments_of(streams) != 0], minlength=len(streams.times))
    return Unseen(
        series=len(streams),
        compared=len(some),
        observations=len(streams.value),
        repeats=len(streams.value) - int(moved.sum()),
        events=len(streams.times),
        silent=int((moved == 0).sum()),
        gaps=len(gaps),
        shortest_gap=float(gaps.min(initial=np.inf)),
        longest_gap=float(gaps.max(initial=0.0)),
        same_without_counts=_same(some, Embedding(depth=1, counts=False)),
        same_without_time=_same(some, Embedding(depth=1, time=False)),
        unit=unit_name(streams.schema.clock),
    )


def _same(streams: Streams, embedding: Embedding) -> tuple[tuple, ...]:
    """Groups of series that would have the same path: the depth does not matter for that."""
    return tuple(collision.series for collision in check_faithful(streams, embedding).collisions)


def _groups(groups: tuple[tuple, ...]) -> str:
    if not groups:
        return "No two series that differ would become the same."
    members = sum(map(len, groups))
    which = "1 group of series" if len(groups) == 1 else f"{len(groups):,} groups of series"
    return (
        f"In {which} ({members:,} series), such as {listed(groups[0], 5)}, those that differ would become the same "
        "path."
    )
