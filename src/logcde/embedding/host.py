"""The host engine: ragged factors to interval log-signatures on the CPU, nothing padded, sums in double precision.

Implements `eq:interval_log_signature_method`. This module chooses the kernel: at depth two areas are enough, at other
depths tensors are needed; streams that observe all their channels together and have few letters are composed several
intervals at a time. It also maps the coordinates of a basis to the words that the tensor kernels keep.
"""

import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import DTypeLike

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import events_of, factors_of, intervals_of
from logcde.embedding.interval_factors import IntervalFactors
from logcde.embedding.logsigs import padded_rows
from logcde.embedding.sparse import SparseLogSignatures, sizes_of, starts_of
from logcde.kernels import dense_n, depth2, depth3, depth_n
from logcde.kernels._simd import QUAD
from logcde.kernels.moved import count_letters, number_letters, put_rows
from logcde.kernels.records import Alphabet, Events, Factors, Intervals, LogMap, TermMap, read_only
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams

DENSE_STATE = 2_000
"""Numbers in the state of one lane above which the sparse kernels, which need less cache, are faster."""
DENSE_WORK = 1 / 400
"""The cost of one coordinate of an event that is composed in lanes, in units of one event with few letters."""


def embed(
    streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike, threads: int | None = None
) -> tuple[Float[np.ndarray, "series interval lie"], Int64[np.ndarray, "series"]]:
    """Compute one log-signature for each interval between the query points of each series.

    Returns:
        Coordinates, zero beyond a series' own number of intervals, and these numbers.
    """
    intervals = intervals_of(streams, cuts)
    lengths = np.diff(cuts.offsets) - 1
    flat = compose(streams, intervals, coordinates, dtype, threads)
    return padded_rows(flat, lengths), lengths


def embed_sparse(
    streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike, threads: int | None = None
) -> SparseLogSignatures:
    """As `embed`, to the bit, without ever forming a coordinate of letters that do not move.

    Intervals with equally many letters are composed together, each over its own letters, numbered from 0.
    """
    basis, depth = coordinates.basis, coordinates.depth
    events = intervals_of(streams, cuts)
    factors, intervals = factors_of(streams, events, coordinates, threads)
    alone = depth <= 2 and not len(coordinates.term_support)
    composed_of = IntervalFactors.of(factors, intervals, coordinates, dtype) if alone else None
    support = [basis.words[place] for place in coordinates.term_support]
    term_letters = np.unique([letter for word in support for letter in word]).astype(np.int64)
    if coordinates.counted:  # a value and its count move together, or not at all
        channels = term_letters[term_letters < 2 * coordinates.channels] % coordinates.channels
        term_letters = np.union1d(term_letters, np.concatenate([channels, channels + coordinates.channels]))
    given = (read_only(intervals), read_only(factors), coordinates.alphabet, term_letters)
    work, (counts, channels) = intervals.end - intervals.begin + 1, np.empty((2, intervals.size), np.int64)
    spread(count_letters, work, *given, counts, channels, threads=threads)
    offsets, letters = np.concatenate([[0], np.cumsum(counts)]), np.empty(counts.sum(), np.int32)
    numbered = np.empty_like(factors.letters)
    spread(number_letters, work, *given, offsets, letters, numbered, threads=threads)
    factors = factors._replace(letters=numbered)

    first = starts_of(sizes_of(counts, depth))
    values = np.empty(sizes_of(counts, depth).sum(), dtype)
    for members in _alike(counts, channels, offsets, letters, term_letters):
        own = letters[offsets[members[0]] : offsets[members[0] + 1]]
        whole = len(own) == basis.width and goes_in_lanes(streams, coordinates)
        local = basis if whole else Basis.of_width(len(own), depth)
        rows = np.empty((len(members), local.dimension), dtype)
        if whole:
            _compose_lanes(streams, events.take(members), coordinates, rows, threads)
        else:
            alphabet = coordinates.alphabet._replace(channels=int(channels[members[0]]), width=len(own))
            given = np.isin(term_letters, own).all()
            places = tuple(local.words.index(tuple(np.searchsorted(own, word))) for word in support if given)
            _compose_factors(factors, intervals.take(members), alphabet, local, places, rows, threads)
        spread(put_rows, np.full(len(rows), rows.shape[1]), rows, first[members], values, threads=threads)
    return SparseLogSignatures(values, letters, counts, np.diff(cuts.offsets) - 1, basis, factors=composed_of)


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
    if goes_in_lanes(streams, coordinates) and not in_order:
        _compose_lanes(streams, intervals, coordinates, out, threads)
    else:
        factors, intervals = factors_of(streams, intervals, coordinates, threads)
        compose_factors(factors, intervals, coordinates, out, threads)
    return out


def compose_each(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, dtype: DTypeLike
) -> Float[np.ndarray, "interval lie"]:
    """As `compose`, to the bit as if every series were alone: the numbers do not depend on which series are together.

    `compose` itself takes several intervals at a time only if all series observe all their channels together, and the
    two ways round differently.
    """
    dense = np.diff(streams.obs_offsets[streams.offsets]) == np.diff(streams.offsets) * len(streams.schema.channels)
    if dense.all() or not dense.any():
        return compose(streams, intervals, coordinates, dtype)
    out = np.empty((intervals.size, coordinates.basis.dimension), dtype)
    for chosen in (dense, ~dense):
        some = streams[np.flatnonzero(chosen)]
        rows = np.flatnonzero(chosen[intervals.series])
        own = intervals.take(rows)
        number = (np.cumsum(chosen) - 1)[own.series]
        moved = some.offsets[number] - streams.offsets[own.series]
        own = own._replace(series=number, begin=own.begin + moved, end=own.end + moved)
        out[rows] = compose(some, own, coordinates, dtype)
    return out


def goes_in_lanes(streams: Streams, coordinates: Coordinates) -> bool:
    """Whether intervals of these streams are composed several at a time."""
    given = streams.knots is None and streams.change is None  # all that moves the path is in the values
    plain = coordinates.plain and given and not len(coordinates.term_support)
    return streams.synchronous and plain and fits_lanes(coordinates)


def _compose_lanes(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None
) -> None:
    events = intervals.end - intervals.begin
    # Small integers are sorted by radix, which is much faster.
    order = np.argsort(events.astype(np.uint16) if events.max() < 2**16 else events, kind="stable")
    compose_dense(events_of(streams), intervals, order, coordinates, out, threads)


def fits_lanes(coordinates: Coordinates) -> bool:
    """Whether intervals are composed several at a time where all channels are observed together."""
    width, depth = coordinates.basis.width, coordinates.depth
    return (width * (width + 1) // 2 if depth == 2 else tensor_size(width, depth)) <= DENSE_STATE


def compose_dense(
    events: Events,
    intervals: Intervals,
    order: Int64[np.ndarray, "interval"],
    coordinates: Coordinates,
    out: Float[np.ndarray, "interval lie"],
    threads: int | None = None,
) -> None:
    """Write the log-signature of each interval of events that observe all channels.

    Intervals are taken in `order`, several at a time, so neighbours should have similar numbers of events.
    """
    width, depth = coordinates.basis.width, coordinates.depth
    given = (order, intervals, events, coordinates.alphabet)
    # Depths two and three have kernels of their own.
    cost = (1 if depth in (2, 3) else 5) * DENSE_WORK * (coordinates.basis.dimension + 12)
    work = ((intervals.end - intervals.begin + 1) * cost)[order]
    if depth == 2:
        spread(depth2.compose_dense, work, *given, out, threads=threads)
    elif depth == 3:
        spread(depth3.compose_dense, work, *given, shell_map(width), out, threads=threads)
    else:
        spread(dense_n.compose_dense, work, *given, lane_map(width, depth), out, threads=threads)


def compose_factors(
    factors: Factors,
    intervals: Intervals,
    coordinates: Coordinates,
    out: Float[np.ndarray, "interval lie"],
    threads: int | None = None,
) -> None:
    """Write the log-signature of each interval of factors."""
    support = tuple(coordinates.term_support.tolist())
    _compose_factors(factors, intervals, coordinates.alphabet, coordinates.basis, support, out, threads)


def _compose_factors(
    factors: Factors,
    intervals: Intervals,
    alphabet: Alphabet,
    basis: Basis,
    support: tuple[int, ...],
    out: np.ndarray,
    threads: int | None,
) -> None:
    """Compose factors one by one; the columns of their terms are the coordinates `support`."""
    given = (read_only(intervals), read_only(factors), alphabet)
    if alphabet.depth == 2:
        areas = np.array(support, np.int64) - basis.width
        spread(depth2.compose, _work(intervals, basis), *given, areas, out, threads=threads)
        return
    maps = (term_map(basis, support), log_map(basis.width, basis.depth))
    spread(depth_n.compose_logarithms, _work(intervals, basis), *given, *maps, out, threads=threads)


def _alike(
    counts: np.ndarray, channels: np.ndarray, offsets: np.ndarray, letters: np.ndarray, term_letters: np.ndarray
) -> list[np.ndarray]:
    """Group intervals that have equally many letters and channels, and letters of terms at the same places."""
    interval, width = np.arange(len(counts)), letters.max(initial=0) + 1
    keys = np.repeat(interval, counts) * width + letters
    columns = [counts, channels]
    for letter in term_letters:
        place = np.searchsorted(keys, interval * width + letter)
        columns.append(np.where(np.isin(interval * width + letter, keys), place - offsets[:-1], -1))
    order = np.lexsort(columns)
    changes = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    return [members for members in np.split(order, np.flatnonzero(changes) + 1) if counts[members[:1]].sum()]


def elements(
    factors: Factors, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None = None
) -> None:
    """Write the group element of each interval as kernels represent it: at depth two, the log-signature itself."""
    if coordinates.depth == 2:
        compose_factors(factors, intervals, coordinates, out, threads)
        return
    basis, support = coordinates.basis, tuple(coordinates.term_support.tolist())
    given = (read_only(intervals), read_only(factors), coordinates.alphabet, term_map(basis, support))
    spread(depth_n.compose, _work(intervals, basis), *given, out, threads=threads)


def logarithms(group: np.ndarray, coordinates: Coordinates, out: np.ndarray, threads: int | None = None) -> None:
    """Write the log-signature of each group element."""
    width, depth = coordinates.basis.width, coordinates.depth
    if depth == 2:
        out[:] = group
        return
    work = np.full(len(group), 1 + group.shape[1] // 64)
    spread(depth_n.logarithms, work, group, width, depth, log_map(width, depth), out, threads=threads)


def _work(intervals: Intervals, basis: Basis) -> np.ndarray:
    """The cost of each interval, in units of one event with few letters at depth two."""
    # One more for the log-signature, which is written even if there is no event.
    return (intervals.end - intervals.begin + 1) * (1 + basis.dimension // 64)


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
def lane_map(width: int, depth: int) -> LogMap:
    """Where `logcde.kernels.dense_n` has these words."""
    return _log_map(width, depth, lambda mirrored, level: _position(mirrored, level, width, depth, width))


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
def term_map(basis: Basis, support: tuple[int, ...]) -> TermMap:
    """The tensor entries of each of the coordinates `support`."""
    width, depth = basis.width, basis.depth
    counts, positions, coefficients = [0], [], []
    for coordinate in support:
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


def _level_start(width: int, depth: int, level: int, row: int | None = None) -> int:
    lines = sum(width ** (n - 1) for n in range(1, level))
    if level == depth + 1 and depth > 1:  # of the last level, only a prefix for each last letter
        lines += width ** (depth - 3) * (width * (width + 1) // 2) - width ** (depth - 1) if depth > 2 else 0
    return lines * (_padded(width) if row is None else row)


def _position(mirrored: np.ndarray, level: int, width: int, depth: int, row: int | None = None) -> np.ndarray:
    """The place of words in a tensor whose first letter has a row of this length, by default padded to whole quads."""
    if level == depth and depth > 1:
        last, rest = np.divmod(mirrored, width ** (level - 1))
        mirrored = rest + width ** (level - 2) * (last * (last + 1) // 2)
    line, first = np.divmod(mirrored, width)
    return _level_start(width, depth, level, row) + line * (_padded(width) if row is None else row) + first


def _shell_position(mirrored: np.ndarray, level: int, width: int) -> np.ndarray:
    if level == 1:
        return mirrored
    last, pair = np.divmod(mirrored, width**2)  # the third letter, if there is one
    second, first = np.divmod(pair, width)
    shell = np.maximum(first + 1, second)
    position = width + (shell - 1) * shell + np.where(first + 1 == shell, second, shell + 1 + first)
    # The words of level two, then those that end with a letter below the last.
    return position if level == 2 else position + width * (width - 1) + (last - 1) * last * (last + 1) // 3
