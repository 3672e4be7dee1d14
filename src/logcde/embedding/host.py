"""The host engine: ragged factors to interval log-signatures on the CPU, nothing padded, sums in double precision.

Implements `eq:interval_log_signature_method`. Which kernel runs is decided here: at depth two areas are enough, above
it tensors are needed; streams that observe all their channels at once, with few letters, go several intervals at
a time.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import Factors, Intervals, factors_of, intervals_of
from logcde.embedding.layout import log_map, shell_map, tensor_size, term_map
from logcde.embedding.logsigs import LogSignatures
from logcde.kernels import area, tensor, third
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams

DENSE_STATE = 2_000
"""Numbers that one lane of the dense kernels may need before the sparse ones, which need less cache, are faster."""


def embed(
    streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike, threads: int | None = None
) -> LogSignatures:
    """One log-signature for each interval that `cuts` makes of each series."""
    intervals = intervals_of(streams, cuts)
    lengths = np.diff(cuts.offsets) - 1
    flat = compose(streams, intervals, coordinates, dtype, threads)
    if len(lengths) and (lengths == lengths[0]).all():
        values = flat.reshape(len(lengths), lengths[0], flat.shape[1])
    else:
        values = np.zeros((len(lengths), lengths.max(initial=0), flat.shape[1]), dtype)
        values[
            intervals.series,
            np.arange(len(intervals)) - (cuts.offsets[:-1] - np.arange(len(lengths)))[intervals.series],
        ] = flat
    return LogSignatures(values, lengths, coordinates.basis)


def compose(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, dtype: DTypeLike, threads: int | None = None
) -> Float[np.ndarray, "interval lie"]:
    """The log-signature of each interval, all intervals of a series next to each other."""
    out = np.empty((len(intervals), coordinates.basis.dimension), dtype)
    if not len(intervals):
        return out
    width, depth = coordinates.basis.width, coordinates.depth
    state = width * (width + 1) // 2 if depth == 2 else tensor_size(width, depth)
    plain = streams.knots is None and not len(coordinates.term_support) and coordinates.levels is None
    if streams.synchronous and plain and state <= DENSE_STATE:
        _compose_dense(streams, intervals, coordinates, out, threads)
    else:
        _compose_sparse(streams, intervals, coordinates, out, threads)
    return out


def _compose_sparse(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None
) -> None:
    factors, intervals = factors_of(streams, intervals, coordinates, threads)
    if coordinates.depth == 2:
        elements(factors, intervals, coordinates, out, threads)
        return
    maps = log_map(coordinates.basis.width, coordinates.depth).arrays
    given = (*_given(factors, intervals, coordinates), *maps, out)
    spread(tensor.compose_logarithms, _work(intervals, coordinates), *given, threads=threads)


def elements(
    factors: Factors, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None = None
) -> None:
    """Write the group element of each interval as kernels hold it: at depth two, the log-signature itself."""
    kernel = area.compose if coordinates.depth == 2 else tensor.compose
    given = _given(factors, intervals, coordinates)
    spread(kernel, _work(intervals, coordinates), *given, out, threads=threads)


def _given(factors: Factors, intervals: Intervals, coordinates: Coordinates) -> tuple:
    """What kernels for sparse factors take before their own arguments."""
    width, depth = coordinates.basis.width, coordinates.depth
    where = (intervals.begin, intervals.end, intervals.start, intervals.stop)
    entries = (factors.times, factors.entry_offsets, factors.letters, factors.amounts)
    options = (coordinates.channels, coordinates.counted, factors.timed)
    if depth == 2:
        terms = (width - factors.timed, factors.terms, coordinates.term_support - width)
    else:
        terms = (width, depth, factors.terms, *term_map(coordinates).arrays)
    return (*where, *entries, *options, *terms)


def logarithms(group: np.ndarray, coordinates: Coordinates, out: np.ndarray, threads: int | None = None) -> None:
    """Write the log-signature of each group element."""
    width, depth = coordinates.basis.width, coordinates.depth
    if depth == 2:
        out[:] = group
        return
    maps = log_map(width, depth).arrays
    work = np.full(len(group), 1 + group.shape[1] // 64)
    spread(tensor.logarithms, work, group, width, depth, *maps, out, threads=threads)


def _work(intervals: Intervals, coordinates: Coordinates) -> np.ndarray:
    """What each interval takes, where one event of few letters at depth two is one."""
    # One more for the log-signature, which is written even if there is no event.
    return (intervals.end - intervals.begin + 1) * (1 + coordinates.basis.dimension // 64)


def _compose_dense(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, out: np.ndarray, threads: int | None
) -> None:
    width, depth = coordinates.basis.width, coordinates.depth
    events = intervals.end - intervals.begin
    # Small numbers are sorted by their digits, which is much faster.
    order = np.argsort(events.astype(np.uint16) if events.max() < 2**16 else events, kind="stable")
    origin = streams.offsets[intervals.series]
    where = (order, intervals.begin, intervals.end, origin, intervals.start, intervals.stop)
    given = (streams.times, streams.value, coordinates.channels, coordinates.counts, coordinates.time)
    work = _work(intervals, coordinates)[order]
    if depth == 2:
        spread(area.compose_dense, work, *where, *given, out, threads=threads)
    elif depth == 3:
        spread(third.compose_dense, work, *where, *given, *shell_map(width).arrays, out, threads=threads)
    else:
        spread(
            tensor.compose_dense, work, *where, *given, depth, *log_map(width, depth).arrays, out, threads=threads
        )  # fmt: skip
