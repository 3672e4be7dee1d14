"""`logsignature`: whole paths in one array, without `Streams`, as libraries for signatures take them.

The kernels are those of `logcde.embedding.host`. Where paths are few and short a call should cost little more than the
kernel, so nothing is copied, and values are checked by the result: what is not finite anywhere makes an increment that
is not finite.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from logcde._typing import Numbers
from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates, checked_depth
from logcde.embedding.host import compose_dense, compose_factors, fits_lanes
from logcde.errors import EmbeddingError, Where
from logcde.kernels.records import Events, Factors, Intervals
from logcde.streams import Schema
from logcde.streams.ragged import frozen

NO_TIMES, NO_CHANNELS = frozen(np.empty(0)), frozen(np.empty(0, np.int32))
"""In place of columns that kernels do not read. They are as in streams, so that kernels are not compiled again."""
COMPLETE = (
    "Paths are complete. For channels that are observed at different times, or not always, make Streams, where NaN "
    "means not observed, and call an Embedding."
)
REMEMBERED = 100_000
"""Points of all paths up to which it is remembered where their windows are: it takes as long as a small call."""


def logsignature(
    paths: Numbers, depth: int = 2, *, basepoint: bool = False, every: int | None = None
) -> Float[np.ndarray, "*series lie"]:
    """Compute the log-signatures of piecewise-linear paths that are complete: all channels at all steps.

    Coordinates are those of `Basis.of_width(channels, depth)`, whose `labels` name them: increments, then the
    coefficients of Lyndon brackets by length. There is no time and there are no counts; a path that should know of time
    has it as a channel. The result has the precision of the paths, sums are in double precision in any case.

    Args:
        paths: Points (..., step, channel). Anything but single precision is taken as double precision.
        depth: Depth of the log-signatures.
        basepoint: Whether every path starts with a step from 0 to its first point, as streams do. By default, a path
            starts at its first point, and moving it as a whole changes nothing.
        every: Cut every path into windows of this many steps; the last one may be shorter.

    Returns:
        Coordinates (..., lie), or (..., window, lie) if `every` is given.

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> logsignature(square, 2)
    array([0., 0., 1.])
    >>> Basis.of_width(2, 2).labels
    ('1', '2', '[1, 2]')
    >>> logsignature(np.stack([square, 2 * square]), 2)[:, 2].tolist()
    [1.0, 4.0]
    >>> logsignature(square, 2, every=2).tolist()
    [[1.0, 1.0, 0.5], [-1.0, -1.0, 0.5]]
    """
    array = _points(paths)
    *batch, steps, channels = array.shape
    if every is not None and every < 1:
        raise EmbeddingError(f"every={every} steps.", "A window has at least one step.")
    coordinates = _coordinates(channels, depth)
    array = array.reshape(-1, channels)
    cut = _windows if len(array) <= REMEMBERED else _windows.__wrapped__
    windows = cut(len(array) // steps, steps, basepoint, every)
    out = np.empty((windows.intervals.size, coordinates.basis.dimension), array.dtype)
    if len(out):
        _compose(array, windows, coordinates, out)
    if not np.isfinite(out).all() or (steps == 1 and not np.isfinite(array).all()):
        _refuse(array.reshape(-1, steps, channels), out)
    return out.reshape(*batch, *(() if every is None else (windows.each,)), out.shape[1])


def _points(paths: Numbers) -> np.ndarray:
    """Points as one contiguous array of single or double precision."""
    array = np.asarray(paths)
    if array.dtype.kind not in "fiub":
        raise EmbeddingError(f"Paths of type {array.dtype} are no numbers.", "Pass an array of real numbers.")
    if array.ndim < 2:
        raise EmbeddingError(
            f"An array of shape {array.shape} is no path.",
            "Pass points (step, channel), or paths (batch, step, channel).",
        )
    if not array.shape[-2] or not array.shape[-1]:
        raise EmbeddingError(
            f"Paths of shape {array.shape} have no points or no channels.",
            "The last two axes are steps and channels, at least one of each.",
        )
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)


@functools.lru_cache(maxsize=64, typed=True)
def _coordinates(channels: int, depth: int) -> Coordinates:
    basis = Basis.of_width(channels, checked_depth(depth))
    return Coordinates(Schema(basis.letters), basis.depth, counts=False, time=False)


class _Windows(NamedTuple):
    """Where the windows of paths are: the same for all arrays of one shape.

    Attributes:
        each: Number of windows of each path.
        intervals: All windows, path by path.
        order: The order in which they are composed: windows of one length side by side.
        edges: The first point of each path, and the number of all points.
    """

    each: int
    intervals: Intervals
    order: np.ndarray
    edges: np.ndarray


@functools.lru_cache(maxsize=16)
def _windows(paths: int, steps: int, basepoint: bool, every: int | None) -> _Windows:
    moves = steps if basepoint else steps - 1
    size = max(1, moves) if every is None else every
    each = max(1, -(-moves // size))
    edges = np.arange(paths + 1) * steps
    begin = ((edges[:-1] + (steps - moves))[:, None] + np.arange(each) * size).reshape(-1)
    series = np.repeat(np.arange(paths), each)
    end = np.minimum(begin + size, edges[1:][series])
    grid = np.arange(len(series)).reshape(-1, each)
    order = np.concatenate([grid[:, :-1].reshape(-1), grid[:, -1]])  # the last windows may be shorter
    return _Windows(each, Intervals(series, begin, end, *np.zeros((2, len(series)))), order, frozen(edges))


def _compose(points: np.ndarray, windows: _Windows, coordinates: Coordinates, out: np.ndarray) -> None:
    _, intervals, order, edges = windows
    if fits_lanes(coordinates):
        values = frozen(points.reshape(-1))
        events = Events(edges, NO_TIMES, NO_TIMES, edges, NO_CHANNELS, values)
        compose_dense(events, intervals, order, coordinates, out)
        return
    channels = points.shape[1]
    changes = np.diff(points.astype(np.float64), axis=0, prepend=0.0)
    first = edges[:-1]
    changes[first] = points[first]
    letters = frozen(np.tile(np.arange(channels, dtype=np.int32), len(points)))
    offsets, none = np.arange(0, points.size + 1, channels), np.zeros((len(points), 0))
    factors = Factors(frozen(np.zeros(len(points))), offsets, letters, changes.reshape(-1), none)
    compose_factors(factors, intervals, coordinates, out)


def _refuse(paths: np.ndarray, out: np.ndarray) -> None:
    """Raise the error for numbers that are not finite."""
    bad = np.argwhere(~np.isfinite(paths))
    if len(bad):
        path, step, channel = bad[0].tolist()
        where = Where(detail=f"path {path}, step {step}, channel {channel}")
        raise EmbeddingError(f"{where} is {float(paths[path, step, channel])}.", COMPLETE, where=where)
    path = int(np.argwhere(~np.isfinite(out))[0, 0]) * len(paths) // len(out)
    where = Where(detail=f"path {path}")
    raise EmbeddingError(
        f"The log-signature of {where.detail} has numbers beyond the range of {out.dtype}.",
        "Scale the values, or pass paths of double precision.",
        where=where,
    )
