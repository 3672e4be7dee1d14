"""Whether an embedding tells the series of a data set apart: `prop:faithfulness`, asked of data rather than in general.

Paths are compared by what of the data reaches them, log-signatures as the host engine computes them, to rounding.
"""

import dataclasses
import enum

import numpy as np
from jaxtyping import Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.embedding import Embedding
from logcde.embedding.factors import intervals_of
from logcde.embedding.host import compose
from logcde.paths.alike import EPSILON, Rows, alike
from logcde.paths.canonical import data_labels, path_labels
from logcde.paths.scales import scales
from logcde.streams import Cuts, Partition, Streams
from logcde.streams.ragged import offsets_of, take
from logcde.streams.schema import listed

ROUNDING = 8 * EPSILON
"""Log-signatures that differ by less than this share of what was added up in them count as the same."""
BLOCK = 2**22
"""How many numbers of log-signatures are held at once."""
SHOWN = 5


class Reason(enum.StrEnum):
    """Where different data become the same: already on the path, or only in its truncated log-signatures."""

    PATH = "path"
    FEATURES = "features"


@dataclasses.dataclass(frozen=True)
class Collision:
    """Series, by their ids, that are not all the same and that the embedding does not tell apart."""

    series: tuple
    reason: Reason

    def __str__(self) -> str:
        who = f"Series {listed(self.series)}"
        if self.reason is Reason.PATH:
            return f"{who} do not all have the same data, but the same path."
        return f"{who} do not all have the same path, but on this partition the same log-signatures, to rounding."


@dataclasses.dataclass(frozen=True, repr=False)
class Faithfulness:
    """What `check_faithful` found. Series with identical data are `duplicates`, which is no collision."""

    series: int
    collisions: tuple[Collision, ...]
    duplicates: tuple[tuple, ...]
    compared: bool
    """Whether log-signatures were compared as well as paths."""
    invariances: tuple[str, ...]

    @property
    def faithful(self) -> bool:
        """Whether all series with different data are told apart."""
        return not self.collisions

    def __str__(self) -> str:
        how = "paths and by their log-signatures on this partition" if self.compared else "paths"
        if self.faithful:
            lines = [f"Faithful: those of these {self.series} series that differ are told apart by their {how}."]
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
    """Whether any two series that differ collide under these options, on their paths or on this partition, and which.

    Stamps count from each series' own origin, as the embedding takes them.

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
    """Groups of series with one coarse label that have more than one fine label."""
    order = np.lexsort((fine, coarse))
    groups = np.split(order, 1 + np.flatnonzero(np.diff(coarse[order])))
    return [np.sort(group) for group in groups if len(group) > 1 and fine[group[0]] != fine[group[-1]]]


def _feature_labels(
    streams: Streams, coordinates: Coordinates, cuts: Cuts, paths: Int64[np.ndarray, "series"], precision: float
) -> Int64[np.ndarray, "series"]:
    """Labels that two series share if they have as many intervals and the same log-signatures, to rounding."""
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
        place = np.arange(len(intervals)) - offsets_of(lengths[index])[intervals.series]
        padded = np.zeros((2, len(index), longest, dimension))
        padded[:, intervals.series, place] = values, rounding
        return Rows(*padded.reshape(2, len(index), -1))

    return alike(lengths, fetch, max(1, BLOCK // max(1, longest * dimension)))[which]


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"


def _more(count: int) -> list[str]:
    return [f"- and {_groups(count - SHOWN)} more"] if count > SHOWN else []
