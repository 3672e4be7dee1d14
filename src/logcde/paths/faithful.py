"""Whether an embedding tells the series of a data set apart, and what would be lost without counts or time.

`prop:faithfulness` and `app:invariances` of the paper, checked on data. Paths are compared by the part of the data that
reaches them, log-signatures as the host engine computes them, to rounding.
"""

import dataclasses
import enum

import numpy as np
from jaxtyping import Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.embedding import Embedding
from logcde.embedding.factors import increments_of, intervals_of
from logcde.embedding.host import compose
from logcde.paths.canonical import data_labels, path_labels
from logcde.paths.rounding import EPSILON, Rows, alike, scales
from logcde.streams import Cuts, Partition, Streams
from logcde.streams.clock import unit_name
from logcde.streams.ragged import offsets_of, owners, take
from logcde.streams.schema import listed

ROUNDING = 8 * EPSILON
"""Log-signatures are the same if they differ by less than this share of their scale: see `rounding.scales`."""
BLOCK = 2**22
"""Numbers of log-signatures that are held at once."""
SHOWN = 5
"""Groups of series that a report lists."""
MOST_SERIES = 10_000
"""Series that `unseen` compares with each other, by default."""


class Reason(enum.StrEnum):
    """Where different data coincide: already on the path, or only in its truncated log-signatures."""

    PATH = "path"
    FEATURES = "features"


@dataclasses.dataclass(frozen=True)
class Collision:
    """Ids of series that are not all the same, but that the embedding does not tell apart."""

    series: tuple
    reason: Reason

    def __str__(self) -> str:
        who = f"Series {listed(self.series)}"
        if self.reason is Reason.PATH:
            return f"{who} do not all have the same data, but the same path."
        return f"{who} do not all have the same path, but on this partition the same log-signatures, to rounding."


@dataclasses.dataclass(frozen=True, repr=False)
class Faithfulness:
    """The report of `check_faithful`.

    Attributes:
        series: Number of series.
        collisions: Groups of series that the embedding does not tell apart.
        duplicates: Ids of series with identical data, which is no collision.
        compared: Whether log-signatures were compared as well as paths.
        invariances: What the embedding cannot tell apart in general, in sentences.
    """

    series: int
    collisions: tuple[Collision, ...]
    duplicates: tuple[tuple, ...]
    compared: bool
    invariances: tuple[str, ...]

    @property
    def faithful(self) -> bool:
        """Whether all series with different data are told apart."""
        return not self.collisions

    def __str__(self) -> str:
        how = "paths and by their log-signatures on this partition" if self.compared else "paths"
        if self.faithful:
            lines = [f"Faithful: all different series among these {self.series} are told apart by their {how}."]
        else:
            collide = "collides" if len(self.collisions) == 1 else "collide"
            lines = [f"Not faithful: among these {self.series} series, {_groups(len(self.collisions))} {collide}."]
            lines += [f"- {collision}" for collision in self.collisions[:SHOWN]]
            lines += _more(len(self.collisions))
            lines += self.invariances
        if not self.compared:
            lines.append("Log-signatures were not compared, because no partition was given.")
        if self.duplicates:
            lines.append(f"Identical data, which is no collision, in {_groups(len(self.duplicates))}:")
            lines += [f"- Series {listed(group)}." for group in self.duplicates[:SHOWN]]
            lines += _more(len(self.duplicates))
        return "\n".join(lines)

    __repr__ = __str__


def check_faithful(streams: Streams, embedding: Embedding, partition: Partition | None = None) -> Faithfulness:
    """Find the series that differ but that an embedding does not tell apart.

    Stamps count from each series' own origin, as in the embedding.

    Args:
        streams: The data set.
        embedding: Options of the embedding.
        partition: Query intervals on which log-signatures are compared. Without it, only paths are.

    Returns:
        A report; `print` it, or read `faithful` and `collisions`.

    >>> streams = Streams.from_arrays([[0.5, 1.0], [0.5]], [[[5.0], [5.0]], [[5.0]]], ids=["p1", "p2"])
    >>> check_faithful(streams, Embedding()).faithful
    True
    >>> report = check_faithful(streams, Embedding(counts=False))
    >>> print(report.collisions[0])
    Series 'p1', 'p2' do not all have the same data, but the same path.
    """
    coordinates = embedding.coordinates(streams.schema)
    cuts = None if partition is None else partition.cuts(streams)
    data = data_labels(streams)
    streams = coordinates.scaled(streams)
    paths = path_labels(streams, coordinates, cuts)
    clashes = [(group, Reason.PATH) for group in _clashes(paths, data)]
    if cuts is not None:
        features = _feature_labels(streams, coordinates, cuts, paths, float(np.finfo(embedding.dtype).eps))
        clashes += [(group, Reason.FEATURES) for group in _clashes(features, paths)]
    return Faithfulness(
        series=len(streams),
        collisions=tuple(Collision(tuple(streams.ids[group].tolist()), reason) for group, reason in clashes),
        duplicates=tuple(tuple(streams.ids[group].tolist()) for group in _clashes(data, np.arange(len(streams)))),
        compared=cuts is not None,
        invariances=embedding.invariances(),
    )


def _clashes(coarse: np.ndarray, fine: np.ndarray) -> list[np.ndarray]:
    """Groups of series with one coarse label and more than one fine label."""
    order = np.lexsort((fine, coarse))
    groups = np.split(order, 1 + np.flatnonzero(np.diff(coarse[order])))
    return [np.sort(group) for group in groups if len(group) > 1 and fine[group[0]] != fine[group[-1]]]


def _feature_labels(
    streams: Streams, coordinates: Coordinates, cuts: Cuts, paths: Int64[np.ndarray, "series"], precision: float
) -> Int64[np.ndarray, "series"]:
    """Label series such that two have the same label if their log-signatures agree to rounding."""
    chosen, which = np.unique(paths, return_inverse=True)
    lengths = np.diff(cuts.offsets)[chosen] - 1
    longest, dimension = int(lengths.max(initial=0)), coordinates.basis.dimension

    def fetch(index: np.ndarray) -> Rows:
        some, (offsets, points) = streams[chosen[index]], take(cuts.offsets, chosen[index])
        intervals = intervals_of(some, Cuts(offsets, cuts.points[points]))
        values = compose(some, intervals, coordinates, np.float64)
        rounding = ROUNDING * scales(some, intervals, coordinates)
        if precision > EPSILON:
            rounding += precision * np.abs(values)
        place = np.arange(intervals.size) - offsets_of(lengths[index])[intervals.series]
        padded = np.zeros((2, len(index), longest, dimension))
        padded[:, intervals.series, place] = values, rounding
        return Rows(*padded.reshape(2, len(index), -1))

    return alike(lengths, fetch, max(1, BLOCK // max(1, longest * dimension)))[which]


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"


def _more(count: int) -> list[str]:
    return [f"- and {_groups(count - SHOWN)} more"] if count > SHOWN else []


@dataclasses.dataclass(frozen=True, repr=False)
class Unseen:
    """What an embedding without counts, or without time, would not see: the report of `unseen`.

    Attributes:
        series: Number of series.
        compared: Number of series that were compared with each other.
        observations: Number of observations.
        repeats: Observations that repeat the last value of their channel.
        events: Number of events.
        silent: Events that consist of such repeats only.
        gaps: Number of gaps between neighbouring events of one series.
        shortest_gap: The shortest of them.
        longest_gap: The longest of them.
        same_without_counts: Groups of ids of series that differ, but would have the same path without counts.
        same_without_time: Groups of ids of series that differ, but would have the same path without time.
        unit: Unit of time.
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
            f"would vanish as a whole. {_unseen_groups(self.same_without_counts)}"
        )
        unit = f" {self.unit}" if self.unit else ""
        longest = f"{self.longest_gap:.4g}{unit}"
        length = f", from {self.shortest_gap:.4g} to {longest}," if self.gaps else ""
        gaps = f"the lengths of {self.gaps:,} gaps between events{length}"
        if self.gaps == 1:
            gaps = f"the length of 1 gap between events, {longest},"
        time = (
            f"Without time, {gaps} would leave no trace beyond the query interval that an "
            f"event is in. {_unseen_groups(self.same_without_time)}"
        )
        lines = [counts, time]
        if self.compared < self.series:
            lines.append(f"Only the first {self.compared:,} of {self.series:,} series were compared with each other.")
        return "\n".join(lines)

    __repr__ = __str__


def unseen(streams: Streams, most: int = MOST_SERIES) -> Unseen:
    """Count what would be lost without counts, or without time.

    Args:
        streams: The data set.
        most: Series that are compared with each other, at most. Everything else is counted over all series.

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
    """Groups of series that would have the same path; the depth does not matter for that."""
    return tuple(collision.series for collision in check_faithful(streams, embedding).collisions)


def _unseen_groups(groups: tuple[tuple, ...]) -> str:
    if not groups:
        return "No two different series would become the same."
    members = sum(map(len, groups))
    which = "1 group of series" if len(groups) == 1 else f"{len(groups):,} groups of series"
    return (
        f"In {which} ({members:,} series), such as {listed(groups[0], 5)}, different series would have the same path."
    )
