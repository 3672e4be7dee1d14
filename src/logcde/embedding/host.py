"""The host engine: ragged factors to interval log-signatures on the CPU, nothing padded, sums in double precision.

Implements `eq:interval_log_signature_method`. This module chooses the kernel: at depth two areas are enough, at other
depths tensors are needed; streams that observe all their channels together and have few letters are composed several
intervals at a time. It also maps the coordinates of a basis to the words that the tensor kernels keep.
"""

import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import events_of, factors_of, intervals_of
from logcde.embedding.logsigs import LogSignatures
from logcde.kernels import depth2, depth3, depth_n
from logcde.kernels._simd import QUAD
from logcde.kernels.records import Factors, Intervals, LogMap, TermMap, read_only
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams

DENSE_STATE = 2_000
"""Numbers in the state of one lane above which the sparse kernels, which need less cache, are faster."""


def embed(
    streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike, threads: int | None = None
) -> LogSignatures:
    """Compute one log-signature for each interval between the query points of each series."""
    intervals = intervals_of(streams, cuts)
    lengths = np.diff(cuts.offsets) - 1
    flat = compose(streams, intervals, coordinates, dtype, threads)
    if len(lengths) and (lengths == lengths[0]).all():
        values = flat.reshape(len(lengths), lengths[0], flat.shape[1])
    else:
        values = np.zeros((len(lengths), lengths.max(initial=0), flat.shape[1]), dtype)
        first = cuts.offsets[:-1] - np.arange(len(lengths))
        values[intervals.series, np.arange(intervals.size) - first[intervals.series]] = flat
    return LogSignatures(values, lengths, coordinates.basis)


def compose(
    streams: Streams,
    intervals: Intervals,
    coordinates: Coordinates,
    dtype: DTypeLike,
    threads: int | None = None,
    in_order: bool = False,
) -> Float[np.ndarray, "interval lie"]:
    """Compute the log-signature of each interval; intervals must be in the order of their series.

    If `in_order`, factors are composed one by one, never several intervals at a time: slower for streams that observe
    all their channels together, and to the bit the numbers of `LogSignatureIndex.query(..., in_order=True)`.
    """
    out = np.empty((intervals.size, coordinates.basis.dimension), dtype)
    if not intervals.size:
        return out
    width, depth = coordinates.basis.width, coordinates.depth
    state = width * (width + 1) // 2 if depth == 2 else tensor_size(width, depth)
    given = streams.knots is None and streams.change is None  # all that moves the path is in the values
    plain = coordinates.plain and given and not len(coordinates.term_support)
    if streams.synchronous and plain and not in_order and state <= DENSE_STATE:
        _compose_dense(streams, intervals, coordinates, out, threads)
    else:
        _compose_sparse(streams, intervals, coordinates, out, threads)
    return out


def _compose_dense(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None
) -> None:
    width, depth = coordinates.basis.width, coordinates.depth
    events = intervals.end - intervals.begin
    # Small integers are sorted by radix, which is much faster.
    order = np.argsort(events.astype(np.uint16) if events.max() < 2**16 else events, kind="stable")
    given = (order, intervals, events_of(streams), coordinates.alphabet)
    work = _work(intervals, coordinates)[order]
    if depth == 2:
        spread(depth2.compose_dense, work, *given, out, threads=threads)
    elif depth == 3:
        spread(depth3.compose_dense, work, *given, shell_map(width), out, threads=threads)
    else:
        spread(depth_n.compose_dense, work, *given, log_map(width, depth), out, threads=threads)


def _compose_sparse(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None
) -> None:
    factors, intervals = factors_of(streams, intervals, coordinates, threads)
    if coordinates.depth == 2:
        elements(factors, intervals, coordinates, out, threads)
        return
    maps = (term_map(coordinates), log_map(coordinates.basis.width, coordinates.depth))
    given = (read_only(intervals), read_only(factors), coordinates.alphabet, *maps)
    spread(depth_n.compose_logarithms, _work(intervals, coordinates), *given, out, threads=threads)


def elements(
    factors: Factors, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None = None
) -> None:
    """Write the group element of each interval as kernels represent it: at depth two, the log-signature itself."""
    work, given = _work(intervals, coordinates), (read_only(intervals), read_only(factors), coordinates.alphabet)
    if coordinates.depth == 2:
        term_area = coordinates.term_support - coordinates.basis.width
        spread(depth2.compose, work, *given, term_area, out, threads=threads)
    else:
        spread(depth_n.compose, work, *given, term_map(coordinates), out, threads=threads)


def logarithms(group: np.ndarray, coordinates: Coordinates, out: np.ndarray, threads: int | None = None) -> None:
    """Write the log-signature of each group element."""
    width, depth = coordinates.basis.width, coordinates.depth
    if depth == 2:
        out[:] = group
        return
    work = np.full(len(group), 1 + group.shape[1] // 64)
    spread(depth_n.logarithms, work, group, width, depth, log_map(width, depth), out, threads=threads)


def _work(intervals: Intervals, coordinates: Coordinates) -> np.ndarray:
    """The cost of each interval, in units of one event with few letters at depth two."""
    # One more for the log-signature, which is written even if there is no event.
    return (intervals.end - intervals.begin + 1) * (1 + coordinates.basis.dimension // 64)


def tensor_size(width: int, depth: int) -> int:
    """Length of the array of a group element at a depth other than two.

    >>> tensor_size(3, 1), tensor_size(3, 3)
    (4, 40)
    """
    return _level_start(width, depth, depth + 1)


@functools.cache
def log_map(width: int, depth: int) -> LogMap:
    """Where `logcde.kernels.depth_n` has the words that make up the coordinates of a `Basis`."""
    return _log_map(width, depth, lambda mirrored, level: _position(mirrored, level, width, depth))


@functools.cache
def shell_map(width: int) -> LogMap:
    """Where `logcde.kernels.depth3` has these words."""
    return _log_map(width, 3, lambda mirrored, level: _shell_position(mirrored, level, width))


def _log_map(width: int, depth: int, place: Callable[[np.ndarray, int], np.ndarray]) -> LogMap:
    basis = Basis.of_width(width, depth)
    parts = []
    for level in range(1, depth + 1):
        projection = basis.projection(level)
        first = basis.level(level).start
        # Read backwards and numbered from the last letter, the digits of a word are those of this number.
        position = place(width**level - 1 - projection.cols, level)
        coefficient = (-1.0) ** (level + 1) * projection.coefficients
        words = np.array(basis.words[basis.level(level)], np.int64).reshape(-1, level) @ width ** np.arange(level)[::-1]
        lead = projection.cols == words[projection.rows]
        parts.append((projection.rows + first, position, coefficient, lead))
    rows, positions, coefficients, lead = (np.concatenate(part) for part in zip(*parts, strict=True))
    order, rest = np.argsort(rows[lead]), np.argsort(rows[~lead], kind="stable")
    return LogMap(
        positions[lead][order].astype(np.uint64),
        coefficients[lead][order].astype(np.float64),
        rows[~lead][rest].astype(np.uint64),
        positions[~lead][rest].astype(np.uint64),
        coefficients[~lead][rest].astype(np.float64),
    )


@functools.cache
def term_map(coordinates: Coordinates) -> TermMap:
    """The tensor entries of each coordinate in `coordinates.term_support`."""
    basis, width, depth = coordinates.basis, coordinates.basis.width, coordinates.depth
    counts, positions, coefficients = [0], [], []
    for coordinate in coordinates.term_support:
        level = len(basis.words[coordinate])
        expansion = basis.expansion(level)
        mine = expansion.cols == coordinate - basis.level(level).start
        words, factors = expansion.rows[mine], expansion.coefficients[mine]
        digits = width - 1 - words[:, None] // width ** np.arange(level)[::-1] % width
        kept = digits[:, -1] >= digits[:, -2] if level == depth else np.ones(len(words), bool)
        mirrored = digits[kept] @ width ** np.arange(level)
        positions.append(_position(mirrored, level, width, depth))
        coefficients.append(factors[kept])
        counts.append(len(mirrored))
    return TermMap(
        np.cumsum(counts),
        np.concatenate([np.zeros(0, np.int64), *positions]).astype(np.uint64),
        np.concatenate([np.zeros(0), *coefficients]).astype(np.float64),
    )


def _padded(width: int) -> int:
    return -(-width // QUAD) * QUAD


def _level_start(width: int, depth: int, level: int) -> int:
    lines = sum(width ** (n - 1) for n in range(1, level))
    if level == depth + 1 and depth > 1:  # of the last level, only a prefix for each last letter
        lines += width ** (depth - 3) * (width * (width + 1) // 2) - width ** (depth - 1) if depth > 2 else 0
    return lines * _padded(width)


def _position(mirrored: np.ndarray, level: int, width: int, depth: int) -> np.ndarray:
    if level == depth and depth > 1:
        last, rest = np.divmod(mirrored, width ** (level - 1))
        mirrored = rest + width ** (level - 2) * (last * (last + 1) // 2)
    line, first = np.divmod(mirrored, width)
    return _level_start(width, depth, level) + line * _padded(width) + first


def _shell_position(mirrored: np.ndarray, level: int, width: int) -> np.ndarray:
    if level == 1:
        return mirrored
    last, pair = np.divmod(mirrored, width**2)  # the third letter, if there is one
    second, first = np.divmod(pair, width)
    shell = np.maximum(first + 1, second)
    position = width + (shell - 1) * shell + np.where(first + 1 == shell, second, shell + 1 + first)
    # The words of level two, then those that end with a letter below the last.
    return position if level == 2 else position + width * (width - 1) + (last - 1) * last * (last + 1) // 3
