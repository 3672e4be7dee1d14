"""Which points of a piecewise-linear path are corners, and which only lie on the line between two others.

Knots of the continuous channels are not unique: a point on a line may be one or not, and the path is the same. Here is
the form that two equal paths share.
"""

import numpy as np
from jaxtyping import Bool, Float64


def corners(
    at: Float64[np.ndarray, "knot"],
    values: Float64[np.ndarray, "knot continuous"],
    fixed: Bool[np.ndarray, "knot"],
    tolerance: float = 0.0,
) -> Bool[np.ndarray, "knot"]:
    """Which points are needed to draw the path, beside those that are `fixed` and the two ends.

    A point is left out if it is where `np.interp` puts it between its neighbours, to the last bit or to a `tolerance`.
    Points are added where the line between two others misses most, until it misses nowhere.

    >>> at, values = np.arange(5.0), np.array([[0.0], [1.0], [2.0], [1.0], [0.0]])
    >>> corners(at, values, np.zeros(5, bool)).tolist()
    [True, False, True, False, True]
    """
    kept = fixed.copy()
    kept[[0, -1]] = True
    scale = np.abs(values).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    edges = np.flatnonzero(kept)
    wide = np.flatnonzero(np.diff(edges) > 1)
    todo = list(zip(edges[wide].tolist(), edges[wide + 1].tolist(), strict=True))
    while todo:
        left, right = todo.pop()
        misses = _misses(at, values, left, right)
        if (misses > tolerance).any():
            split = left + 1 + int((misses / scale).max(axis=1).argmax())
            kept[split] = True
            todo += [(left, split), (split, right)]
    # Where the path runs parallel to such a line, the point that was added need not be a corner.
    places = np.flatnonzero(kept)
    left = 0
    for place, right in zip(places[1:-1].tolist(), places[2:].tolist(), strict=True):
        if fixed[place] or (_misses(at, values, left, right) > tolerance).any():
            left = place
        else:
            kept[place] = False
    return kept


def _misses(at: np.ndarray, values: np.ndarray, left: int, right: int) -> np.ndarray:
    """How far the points between two others are from the line that joins these."""
    inner, ends = slice(left + 1, right), [left, right]
    lines = [np.interp(at[inner], at[ends], column[ends]) for column in values.T]
    return np.abs(values[inner] - np.stack(lines, axis=1))
