"""Ragged arrays: rows of different lengths end to end, with the offsets at which each row begins.

Plain NumPy; nothing here knows about series or channels.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64


def offsets_of(lengths: np.ndarray) -> Int64[np.ndarray, "_"]:
    """Offsets of rows with these lengths: the start of each row, then the end of the last.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def owners(offsets: Int64[np.ndarray, "_"]) -> Int64[np.ndarray, "_"]:
    """The row of each element.

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


def join_offsets(parts: Sequence[Int64[np.ndarray, "_"]]) -> Int64[np.ndarray, "_"]:
    """Offsets of several ragged arrays laid end to end.

    >>> join_offsets([np.array([0, 2]), np.array([0, 1, 4])])
    array([0, 2, 3, 6])
    """
    return offsets_of(np.concatenate([np.diff(offsets) for offsets in parts]))


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view in C order; the caller's own array stays as writeable as it was."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def by_channel(
    channel: Int32[np.ndarray, "obs"], value: Float[np.ndarray, "obs"], channels: int
) -> Iterator[Float64[np.ndarray, "_"]]:
    """Iterate over channels, with the values of each, in double precision.

    >>> list(by_channel(np.array([1, 0, 1], np.int32), np.array([5.0, 6.0, 7.0]), 2))
    [array([6.]), array([5., 7.])]
    """
    order = stable_order(channel, channels)
    edges = np.searchsorted(channel[order], np.arange(channels + 1))
    for start, stop in pairwise(edges):
        yield value[order[start:stop]].astype(np.float64)


def stable_order(codes: np.ndarray, bound: int) -> np.ndarray:
    """A stable argsort of codes below `bound`, in passes of 16 bits, for which NumPy has a radix sort.

    >>> stable_order(np.array([2, 0, 1, 0]), 3)
    array([1, 3, 2, 0])
    """
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound > 1 << shift:
        digit = ((codes >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order
