"""From the realised path back to the data: the inverse in the proof of injectivity in `app:proof_faithfulness`.

Only the vertices of the path are read. Where its time stands still there is an event: counts say which channels were
observed, positions say their values, and the log-signature of the segment gives the higher-order terms.
"""

import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.embedding import WITHOUT_COUNTS, WITHOUT_TIME
from logcde.errors import EmbeddingError
from logcde.paths.canonical import corners
from logcde.paths.path import RealisedPath
from logcde.paths.realisation import log_signature
from logcde.streams import Knots, Schema, Streams
from logcde.streams.ragged import offsets_of
from logcde.streams.schema import listed


def decode(paths: RealisedPath | Sequence[RealisedPath]) -> Streams:
    """Recover the streams that were realised, from one path or from all paths of a data set.

    Times, observed sets, values and continuous channels come back exactly, higher-order terms to rounding. A knot of
    the continuous channels that is at the stamp of an event and exactly on the line between its neighbours is redundant
    and does not come back as a knot. Schema, ids and origins are not part of a path and are stored with it. If the
    embedding scales values, they come back scaled.

    >>> from logcde.embedding import Embedding
    >>> from logcde.paths.realisation import realise
    >>> streams = Streams.from_arrays([[0.0, 0.5, 2.0]], [[[3.0, np.nan], [np.nan, 1.0], [3.0, 1.0]]])
    >>> decode(realise(streams, Embedding())) == streams
    True
    """
    if isinstance(paths, RealisedPath):
        return _decode(paths)
    return Streams.concatenate([_decode(path) for path in paths])


def _decode(path: RealisedPath) -> Streams:
    coordinates, schema = path.coordinates, path.schema
    _check(coordinates)
    # The first segment leads from 0 to the first values of the continuous channels, before any event.
    positions, times = path.positions[1:], path.times[1:]
    first = np.append(0, 1 + np.flatnonzero(np.diff(times) > 0))
    last = np.append(first[1:], len(times)) - 1
    moved = last > first
    begin, end = first[moved], last[moved]

    counts = slice(coordinates.channels, coordinates.first_roughness)
    counted = positions[end, counts] != positions[begin, counts]
    if coordinates.hat_basis is not None:
        counted = np.logical_or.reduceat(counted, coordinates.hat_basis.starts[:-1], axis=1)
    event, channel = np.nonzero(counted)
    terms = np.zeros((len(begin), len(schema.terms)))
    for row, (start, stop) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if stop > start + 1:
            terms[row] = _terms(positions[start : stop + 1], schema)
    return Streams(
        schema=schema,
        ids=path.ids,
        offsets=np.array([0, len(begin)]),
        times=times[begin],
        obs_offsets=offsets_of(np.bincount(event, minlength=len(begin))),
        channel=channel.astype(np.int32),
        value=positions[end[event], channel],
        horizon=times[-1:],
        terms=terms,
        knots=_knots(positions[first, coordinates.discrete :], times[first], moved) if schema.continuous else None,
        origins=path.origins,
    )


def _check(coordinates: Coordinates) -> None:
    """Raise an error if the path does not determine the data."""
    lost = (("counts", coordinates.counts, WITHOUT_COUNTS), ("time", coordinates.time, WITHOUT_TIME))
    for name, present, invariance in lost:
        if not present:
            raise EmbeddingError(
                f"This path was realised without {name} and cannot be decoded: other data have the same path. "
                f"{invariance}",
                f"To decode, realise with an embedding that has {name}.",
            )
    terms = coordinates.schema.terms
    above = [term.name for term in terms if term.degree > coordinates.depth]
    if above:
        degree = max(term.degree for term in terms)
        raise EmbeddingError(
            f"The path has depth {coordinates.depth} and does not contain the terms {listed(above)}, whose degree is "
            "higher.",
            f"Realise with an embedding of depth {degree}.",
        )
    if terms and np.linalg.matrix_rank(_brackets(coordinates.schema)[1]) < len(terms):
        raise EmbeddingError(
            f"The terms {listed([term.name for term in terms])} are linearly dependent as brackets, so the path "
            "determines only some combinations of them.",
            "Keep independent ones, such as brackets of a Lyndon basis.",
        )


@functools.cache
def _brackets(schema: Schema) -> tuple[Basis, Float64[np.ndarray, "term lie"]]:
    """A basis over the channels that occur in terms, and the coordinates of the terms in it."""
    named = {letter for term in schema.terms for letter in term.letters}
    letters = tuple(channel for channel in schema.channels if channel in named)
    basis = Basis(letters, max(term.degree for term in schema.terms))
    return basis, np.array([basis.coordinates(term.bracket) for term in schema.terms], np.float64)


def _terms(segment: Float64[np.ndarray, "vertex letter"], schema: Schema) -> Float64[np.ndarray, "term"]:
    """The terms of one event. Other letters do not matter: the signature of a projection is the projected signature."""
    basis, brackets = _brackets(schema)
    columns = [schema.channels.index(letter) for letter in basis.letters]
    element = log_signature(np.diff(segment[:, columns], axis=0), basis)
    return np.linalg.lstsq(brackets[:, basis.width :].T, element[basis.width :])[0]


def _knots(values: np.ndarray, times: np.ndarray, at_event: np.ndarray) -> Knots:
    """Knots of the continuous channels: every moment without an event is one, a moment with an event may be."""
    kept = corners(times, values[:, :-1], ~at_event)
    return Knots(np.array([0, int(kept.sum())]), times[kept], values[kept, :-1])
