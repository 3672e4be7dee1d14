"""Sparse linear maps with exact integer coefficients, as plain NumPy arrays.

They change between words and Lyndon brackets. This module knows nothing of either.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class SparseMap:
    """A matrix given by its non-zero entries, sorted by row and then by column, each position at most once.

    >>> m = SparseMap.collect([0, 1, 1], [1, 0, 0], [3, 2, 5], (2, 2))
    >>> m.as_matrix().tolist()
    [[0, 3], [7, 0]]
    """

    rows: Int64[np.ndarray, "entry"]
    cols: Int64[np.ndarray, "entry"]
    coefficients: Int64[np.ndarray, "entry"]
    shape: tuple[int, int]

    @staticmethod
    def collect(rows, cols, coefficients, shape: tuple[int, int]) -> "SparseMap":
        """Build a map from entries in any order: entries at the same position are added, zeros are dropped."""
        rows, cols, coefficients = (np.asarray(part, dtype=np.int64) for part in (rows, cols, coefficients))
        places = rows * shape[1] + cols
        order = np.argsort(places, kind="stable")
        places = places[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        sums = np.add.reduceat(coefficients[order], first) if first.size else first
        kept = sums != 0
        places, sums = places[first][kept], sums[kept]
        arrays = (places // shape[1], places % shape[1], sums) if places.size else (places, places, sums)
        for array in arrays:
            array.flags.writeable = False
        return SparseMap(*arrays, shape=shape)

    @staticmethod
    def identity(size: int) -> "SparseMap":
        """The identity on `size` coordinates."""
        places = np.arange(size)
        return SparseMap.collect(places, places, np.ones_like(places), (size, size))

    def __len__(self) -> int:
        """Number of non-zero entries."""
        return self.rows.size

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entries by column: the start of each column, then row and coefficient of every entry."""
        order = np.argsort(self.cols, kind="stable")
        starts = np.searchsorted(self.cols[order], np.arange(self.shape[1] + 1))
        return starts, self.rows[order], self.coefficients[order]

    def as_matrix(self) -> Int64[np.ndarray, "row col"]:
        """The same map as a dense matrix."""
        matrix = np.zeros(self.shape, dtype=np.int64)
        matrix[self.rows, self.cols] = self.coefficients
        return matrix


def ragged(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For groups of the given sizes, end to end: the group of every element, and its position in the group.

    >>> [part.tolist() for part in ragged(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    groups = np.repeat(np.arange(counts.size), counts)
    ends = np.cumsum(counts)
    return groups, np.arange(groups.size) - np.repeat(ends - counts, counts)


def inverse_unitriangular(strict: SparseMap) -> SparseMap:
    """Inverse of I - strict, where `strict` is square and nilpotent: no coordinate depends on itself by any chain.

    Row i of the inverse is row i of I plus the rows of the inverse that row i of `strict` combines, so rows are
    computed in the order of their longest chain, all rows of one length at once.

    >>> inverse_unitriangular(SparseMap.collect([1, 2], [0, 1], [2, 3], (3, 3))).as_matrix().tolist()
    [[1, 0, 0], [2, 1, 0], [6, 3, 1]]
    """
    size = strict.shape[0]
    heights = np.zeros(size, dtype=np.int64)
    for _ in range(size):
        before = heights.copy()
        np.maximum.at(heights, strict.rows, before[strict.cols] + 1)
        if np.array_equal(heights, before):
            break
    cols, starts = np.arange(size), np.arange(size)
    coefficients, counts = np.ones(size, dtype=np.int64), np.ones(size, dtype=np.int64)
    for height in range(1, heights.max(initial=0) + 1):
        finished = np.flatnonzero(heights == height)
        used = np.flatnonzero(heights[strict.rows] == height)
        group, within = ragged(counts[strict.cols[used]])
        source = starts[strict.cols[used]][group] + within
        block = SparseMap.collect(
            np.concatenate([finished, strict.rows[used][group]]),
            np.concatenate([finished, cols[source]]),
            np.concatenate([np.ones_like(finished), strict.coefficients[used][group] * coefficients[source]]),
            strict.shape,
        )
        places = np.searchsorted(block.rows, finished)
        starts[finished] = cols.size + places
        counts[finished] = np.diff(places, append=len(block))
        # The identity row that stood in for an unfinished row stays in the arrays; nothing refers to it any more.
        cols = np.concatenate([cols, block.cols])
        coefficients = np.concatenate([coefficients, block.coefficients])
    group, within = ragged(counts)
    chosen = starts[group] + within
    return SparseMap.collect(group, cols[chosen], coefficients[chosen], strict.shape)
