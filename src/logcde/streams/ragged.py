"""Ragged arrays: rows of different lengths laid end to end, with the offsets where each begins."""

import numpy as np
from jaxtyping import Int64


def offsets_of(lengths: np.ndarray) -> Int64[np.ndarray, "_"]:
    """Where each row begins, and at last where the last one ends.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def owners(offsets: Int64[np.ndarray, "_"]) -> Int64[np.ndarray, "_"]:
    """For each element the row it belongs to.

    >>> owners(np.array([0, 2, 2, 5]))
    array([0, 0, 2, 2, 2])
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def take(offsets: Int64[np.ndarray, "_"], rows: Int64[np.ndarray, "_"]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the chosen rows, and the positions of their elements.

    >>> take(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    lengths = offsets[rows + 1] - offsets[rows]
    taken = offsets_of(lengths)
    positions = np.arange(taken[-1]) + np.repeat(offsets[rows] - taken[:-1], lengths)
    return taken, positions
