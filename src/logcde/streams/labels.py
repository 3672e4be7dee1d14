"""Labels become codes: ids of series and names of channels."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int32, Int64, Shaped

from logcde.errors import StreamError
from logcde.streams.places import more
from logcde.streams.schema import Schema, Term, check_names, listed, names_of


def series_ids(ids: Sequence | np.ndarray | None, count: int) -> Shaped[np.ndarray, "series"]:
    """Ids of series as given, or their numbers from 0.

    >>> series_ids(None, 2), series_ids(["p1", "p2"], 2)
    (array([0, 1]), array(['p1', 'p2'], dtype=object))
    """
    if ids is None:
        return np.arange(count)
    if len(ids) != count:
        raise StreamError(f"There are {count} series, but {len(ids)} ids. Give one id for each series.")
    labels = id_array(ids)
    seen, counts = np.unique(labels, return_counts=True)
    if (counts > 1).any():
        repeated = seen[counts > 1]
        raise StreamError(f"Two series have the id {repeated[0]!r}{more(len(repeated) - 1)}. Ids must be unique.")
    return labels


def id_array(ids: Sequence | np.ndarray) -> Shaped[np.ndarray, "series"]:
    """Ids as an array of integers or of string objects, and of nothing else."""
    labels = np.asarray(ids, object) if isinstance(ids, list | tuple) else np.asarray(ids)
    if labels.dtype.kind in "UT":
        return labels.astype(object)
    if labels.dtype.kind in "iu" or not labels.size:
        return labels if labels.size else labels.astype(np.int64)
    if labels.dtype.kind == "O":
        kinds = (str,) if isinstance(labels[0], str) else (int, np.integer)
        wrong = next((label for label in labels if not isinstance(label, kinds) or isinstance(label, bool)), None)
        if wrong is None and None not in labels:
            return labels if kinds == (str,) else labels.astype(np.int64)
        raise StreamError(
            f"The series id {wrong!r} is not {'text' if kinds == (str,) else 'a whole number'}. {_ADVICE}"
        )
    raise StreamError(f"The series ids are of type {labels.dtype.name}, such as {labels[0].item()!r}. {_ADVICE}")


_ADVICE = "Ids are whole numbers throughout or text throughout: convert them."


def encode(labels: Sequence) -> tuple[Int64[np.ndarray, "row"], list]:
    """Codes of Python objects in order of first appearance, and the distinct ones.

    >>> encode(["b", "a", "b"])
    (array([0, 1, 0]), ['b', 'a'])
    """
    known: dict = {}
    codes = [known.setdefault(label, len(known)) for label in labels]
    return np.array(codes, np.int64), list(known)


def schema_for(channels: Sequence[str] | None, width: int, terms: tuple[Term, ...], schema: Schema | None) -> Schema:
    """The schema of a table with `width` columns of values. Channels without names are called x1, x2, ..."""
    if schema is not None:
        refuse_both(channels, schema)
        if terms != schema.terms:
            raise StreamError(
                f"The schema has the terms {listed([term.name for term in schema.terms])}, but the input has "
                f"{listed([term.name for term in terms])}. Give the same terms in the same order."
            )
    names = schema.channels if schema else names_of(channels or [f"x{i + 1}" for i in range(width)])
    if len(names) != width:
        raise StreamError(
            f"There are {len(names)} channel names, but the values have {width} columns. Name each column."
        )
    return Schema(names, terms=terms)


def channel_codes(
    codes: Shaped[np.ndarray, "row"],
    seen: Sequence,
    channels: Sequence[str] | None,
    terms: tuple[Term, ...],
    schema: Schema | None,
    place: Callable[[tuple[int, ...]], str],
) -> tuple[Schema, Int32[np.ndarray, "row"]]:
    """The schema of a long table, and codes into its channels. Without names given, they are those seen, sorted.

    `place` puts a row into words, for an error about it.
    """
    if schema is not None:
        refuse_both(channels, schema)
    check_names(tuple(seen))
    names = schema.channels if schema else names_of(sorted(seen) if channels is None else channels)
    made = Schema(names, terms=schema.terms if schema else terms)
    where = {label: code for code, label in enumerate(names)}
    table = np.array([where.get(label, -1) for label in seen], np.int32)
    known = table[codes] if len(seen) else codes.astype(np.int32)
    if (table < 0).any():
        unknown = np.flatnonzero(known < 0)
        raise StreamError(
            f"{place((int(unknown[0]),))}: this channel is not one of {listed(names)}{more(len(unknown) - 1)}. "
            "Add it to the channels, or leave out its rows."
        )
    return made, known


def refuse_both(channels: Sequence[str] | None, schema: Schema) -> None:
    """A schema names the channels already."""
    if channels is not None and names_of(channels) != schema.channels:
        raise StreamError(
            f"Both channels and a schema were given, and they differ: {listed(tuple(channels))} against "
            f"{listed(schema.channels)}. Leave out the channels."
        )
