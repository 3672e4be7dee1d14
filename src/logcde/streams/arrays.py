"""Arrays as input: lists over series, one dense array, event tuples, and events that carry Lie elements.

Lie elements are the local records of `app:proof_faithfulness` in the paper: Delta is given, or Delta = log H for a
signature H. The first level of Delta is the increment of each channel; the brackets above become terms. This module
turns arrays into rows; `ingest` checks them.
"""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from logcde.algebra import Basis, Tensor, expand, log, project
from logcde.errors import LogcdeWarning, StreamError, Where
from logcde.streams.clock import NumericClock, Stamps
from logcde.streams.faults import name, plain_id
from logcde.streams.ingest import RawRows, ReadOptions, long_rows, wide_rows
from logcde.streams.labels import (
    Place,
    as_array,
    as_numbers,
    as_values,
    channel_codes,
    encode,
    id_array,
    schema_for,
    series_ids,
)
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import Term, names_of
from logcde.streams.stamps import ClockOptions, read_stamps

Lists: TypeAlias = Sequence | np.ndarray
"""One entry for each series, or one array."""
WIDE, WIDER = 16, 4
"""An array with so many channels, and so many for each step, is likely to have them on another axis."""
CHANNELS_FIRST = (
    "If its axes are (series, channel, step), as in aeon, pass channels_first=True; if not, channels_first=False."
)
STEPS_FIRST = (
    "All have equally many rows. If those are the channels, transpose the arrays, or pass channels_first=True to an "
    "estimator; if not, give every series the same channels, NaN where one is not observed."
)
TOLERANCE = 1e-4
"""How far the logarithm of a signature may be from a Lie element, relative to the largest entry."""


def read_lists(
    times: Lists,
    values: Lists,
    channels: Sequence[str] | None,
    ids: Lists | None,
    terms: Mapping[Term, Lists],
    options: ReadOptions,
) -> RawRows:
    """Rows of lists over series: stamps (events,) and values (events, channels)."""
    if len(times) != len(values):
        raise StreamError(
            f"There are {len(times)} series of stamps, but {len(values)} of values.", "Give one for each series."
        )
    identifiers = series_ids(ids, len(times))
    blocks = [as_array(block) for block in values]
    width = _width(blocks, identifiers)
    schema = schema_for(channels, width, tuple(terms), options.schema)
    stamps = [read_stamps(series) for series in times]
    for code, (series, block) in enumerate(zip(stamps, blocks, strict=True)):
        if series.array.shape != block.shape[:1]:
            where = Where(series=plain_id(identifiers[code]))
            raise StreamError(
                f"{where} has {series.array.size} stamps, but {block.shape[0]} rows of values.",
                "Give one stamp for each row.",
                where=where,
            )
    offsets = offsets_of(np.array([len(block) for block in blocks], np.int64))
    flat = _join_stamps(stamps, identifiers)

    def place(series: int) -> Place:
        return lambda at: Where(plain_id(identifiers[series]), schema.channels[at[1]], times[series][at[0]])

    numbers = [as_values(block, place(series)) for series, block in enumerate(blocks)]
    stacked = np.concatenate(numbers) if numbers else np.empty((0, width))
    columns = [_term_column(term, terms[term], offsets, identifiers) for term in schema.terms]
    extra = np.stack(columns, axis=1) if columns else np.empty((len(stacked), 0))
    return wide_rows(flat, owners(offsets), stacked, extra, identifiers, schema, options)


def read_dense(
    values: object,
    times: Lists | None,
    channels: Sequence[str] | None,
    ids: Lists | None,
    options: ReadOptions,
    channels_first: bool | None = None,
) -> RawRows:
    """Rows of one array (series, step, channel), or with `channels_first` (series, channel, step).

    Stamps are (step,), (series, step) or none.
    """
    values = as_array(values)
    if values.ndim != 3:
        raise StreamError(
            f"A dense array has three axes (series, step, channel), but this one has shape {values.shape}.",
            "Add the missing ones, as in array[..., None] for a single channel.",
        )
    if channels_first:
        values = np.swapaxes(values, 1, 2)
    elif channels_first is None:
        named = channels if options.schema is None else options.schema.channels
        _check_axes(values.shape, None if named is None else len(names_of(named)), times)
    series, steps, width = values.shape
    identifiers = series_ids(ids, series)
    schema = schema_for(channels, width, (), options.schema)
    stamps = read_stamps(np.arange(steps) if times is None else times)
    if stamps.array.shape not in ((steps,), (series, steps)):
        raise StreamError(
            f"The stamps have shape {stamps.array.shape}, but the values have {series} series of {steps} steps.",
            f"Give {steps} stamps for all series, or an array of shape {(series, steps)}.",
        )
    if times is None and options.clock == ClockOptions():
        options = dataclasses.replace(options, clock=ClockOptions(clock=NumericClock()))  # they count from 0
    spread = np.broadcast_to(stamps.array, (series, steps))
    numbers = as_values(values, lambda at: Where(plain_id(identifiers[at[0]]), schema.channels[at[2]], spread[at[:2]]))
    stacked = np.array(numbers, copy=numbers is values).reshape(series * steps, width)
    codes = np.repeat(np.arange(series), steps)
    flat = Stamps(spread.flatten(), stamps.zone)
    return wide_rows(flat, codes, stacked, np.empty((len(stacked), 0)), identifiers, schema, options)


def _check_axes(shape: tuple[int, ...], named: int | None, times: Lists | None) -> None:
    """Refuse an array whose axes are plainly (series, channel, step), by names or stamps; warn of one that may be."""
    series, steps, width = shape
    long = f"{steps:,} step{'s' * (steps != 1)}"
    read = f"An array of shape {shape} is read as {series:,} series of {long} with {width:,} channels"
    stamped = 0 if times is None else np.shape(times)[-1:] == (width,)
    if named is not None and named != width and named == steps:
        raise StreamError(f"{read}, but there are {named} names of channels.", CHANNELS_FIRST)
    if stamped and width != steps and named is None:
        raise StreamError(f"{read}, but there are {width:,} stamps.", CHANNELS_FIRST)
    if named is None and width >= max(WIDE, WIDER * steps):
        warnings.warn(LogcdeWarning(f"{read}.", CHANNELS_FIRST), stacklevel=2)


def read_events(events: Iterable[tuple], channels: Sequence[str] | None, options: ReadOptions) -> RawRows:
    """Rows of tuples (series, stamp, {channel: value})."""
    given = list(events)
    for event in given:
        if not (isinstance(event, tuple | list) and len(event) == 3 and isinstance(event[2], Mapping)):
            raise StreamError(f"{event!r} is not an event.", "An event is (series, stamp, {channel: value}).")
    counts = np.array([len(seen) for _, _, seen in given], np.int64)
    series, distinct = encode([series for series, _, _ in given])
    identifiers = id_array(distinct)
    labels = [channel for _, _, seen in given for channel in seen]
    seen_codes, names = encode(labels)
    owner = np.repeat(np.arange(len(given)), counts)

    def place(at: tuple[int, ...]) -> Where:
        event = owner[at[0]]
        return Where(plain_id(identifiers[series[event]]), labels[at[0]], given[event][1])

    schema, channel = channel_codes(seen_codes, names, channels, (), options.schema, place)
    values = as_numbers([value for _, _, seen in given for value in seen.values()], place)
    stamps = read_stamps([stamp for _, stamp, _ in given])
    stamps = Stamps(stamps.array[owner], stamps.zone)
    return long_rows(stamps, series[owner], channel, values, np.empty((len(values), 0)), identifiers, schema, options)


def _width(blocks: list[np.ndarray], ids: np.ndarray) -> int:
    """The number of channels, the same in every series."""
    if not blocks:
        raise StreamError("There is no series.", "Streams need at least one.")
    for code, block in enumerate(blocks):
        where = Where(series=plain_id(ids[code]))
        if block.ndim != 2:
            raise StreamError(
                f"The values of series {name(ids[code])} have shape {block.shape}, but they need two axes (events, "
                "channels).",
                "Add the missing one: values[:, None] for a single channel, [values] for a single series.",
                where=where,
            )
        if block.shape[1] != blocks[0].shape[1]:
            alike = len({len(other) for other in blocks if other.ndim == 2}) == 1
            raise StreamError(
                f"{where} has {block.shape[1]} columns of values, but series {name(ids[0])} has {blocks[0].shape[1]}.",
                STEPS_FIRST if alike else "Give every series the same channels, NaN where one is not observed.",
                where=where,
            )
    return blocks[0].shape[1]


def _join_stamps(stamps: list[Stamps], ids: np.ndarray) -> Stamps:
    """Stamps of all series end to end, in the finest of their resolutions."""
    first = stamps[0]
    for code, series in enumerate(stamps):
        if series.array.dtype.kind != first.array.dtype.kind or (series.zone is None) != (first.zone is None):
            where = Where(series=plain_id(ids[code]))
            raise StreamError(
                f"{where} has stamps of type {_type(series)}, but series {name(ids[0])} has {_type(first)}.",
                "Use one type of stamp throughout.",
                where=where,
            )
    return Stamps(np.concatenate([series.array for series in stamps]), first.zone)


def _type(stamps: Stamps) -> str:
    return f"{stamps.array.dtype} in {stamps.zone}" if stamps.zone else str(stamps.array.dtype)


def _term_column(term: Term, lists: Lists, offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """One term over the rows of all series."""
    if len(lists) != len(ids):
        raise StreamError(
            f"The term {term.name!r} is given for {len(lists)} series, but there are {len(ids)}.",
            "Give a list for each series.",
        )
    columns = []
    for code, column in enumerate(lists):
        identifier, rows = plain_id(ids[code]), offsets[code + 1] - offsets[code]
        where = Where(identifier, detail=f"term {term.name!r}")
        numbers = as_numbers(
            column, lambda at, identifier=identifier: Where(identifier, detail=f"term {term.name!r}, row {at[0]}")
        )
        if numbers.shape != (rows,):
            raise StreamError(
                f"{where} has shape {numbers.shape}, but the series has {rows} rows.",
                "Give one number for each row, NaN where there is none.",
                where=where,
            )
        columns.append(numbers)
    return np.concatenate(columns)


class LieEvents(NamedTuple):
    """Values and terms of every series, as `Streams.from_arrays` takes them, and the changes of the values."""

    values: list[np.ndarray]
    changes: list[np.ndarray]
    terms: dict[Term, list[np.ndarray]]


def read_increments(increments: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Values and terms of Lie elements, for each series coordinates (events, lie) in `Basis(channels, depth)`."""
    basis = Basis(names_of(channels), depth)
    identifiers = series_ids(ids, len(increments))
    blocks = [
        _block(block, basis.dimension, f"a Lie element of depth {depth}", identifiers[series])
        for series, block in enumerate(increments)
    ]
    # The base point is 0, so the value of a channel is the sum of its increments.
    changes = [block[:, : basis.width] for block in blocks]
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values will be refused
        values = [np.cumsum(block, axis=0) for block in changes]
    terms = {
        Term(basis.labels[place], nested(basis, place)): [block[:, place] for block in blocks]
        for place in range(basis.width, basis.dimension)
    }
    return LieEvents(values, changes, terms)


def read_signatures(signatures: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Values and terms of log H for signatures H (events, words) of each series, levels 1..depth flat in C order."""
    basis = Basis(names_of(channels), depth)
    identifiers = series_ids(ids, len(signatures))
    sizes = [basis.width**level for level in range(1, depth + 1)]
    blocks = [
        _block(block, sum(sizes), f"a signature of depth {depth} without its constant term", identifiers[series])
        for series, block in enumerate(signatures)
    ]
    joined = np.concatenate(blocks) if blocks else np.empty((0, sum(sizes)))
    levels = np.split(joined, np.cumsum(sizes)[:-1], axis=1)
    # Streams are float64 whatever the precision that JAX was set to.
    with jax.enable_x64(True):
        coordinates, defect = map(np.asarray, _logarithm(tuple(levels), basis))
    lengths = [len(block) for block in blocks]
    bad = np.flatnonzero(defect > TOLERANCE * (1 + np.abs(joined).max(axis=1, initial=0.0)))
    if bad.size:
        series = int(np.searchsorted(np.cumsum(lengths), bad[0], side="right"))
        where = Where(plain_id(identifiers[series]), detail=f"event {int(bad[0] - sum(lengths[:series]))}")
        raise StreamError(
            f"{where}: this is no signature, for its logarithm is not a Lie element (it misses by "
            f"{defect[bad[0]]:.2g}).",
            f"Check the order of the words: levels 1 to {depth}, each in lexicographic order, without the constant "
            "term.",
            where=where,
        )
    return read_increments(np.split(coordinates, np.cumsum(lengths)[:-1]), channels, depth, ids)


@partial(jax.jit, static_argnames="basis")
def _logarithm(levels: tuple, basis: Basis) -> tuple[Array, Array]:
    """Lyndon coordinates of log H for each event, and the distance of log H from the Lie element that has them."""
    logarithm = log(Tensor((jnp.ones_like(levels[0][:, :1]), *levels), basis))
    element = project(logarithm)
    misses = [jnp.abs(a - b) for a, b in zip(expand(element).levels, logarithm.levels, strict=True)]
    return element.coordinates, jnp.concatenate(misses, axis=1).max(axis=1)


def nested(basis: Basis, place: int) -> str | tuple:
    """A coordinate's bracket as nested pairs of letters.

    >>> nested(Basis(("a", "b"), 3), 3)
    ('a', ('a', 'b'))
    """
    left, right = basis.brackets[place].tolist()
    return basis.letters[place] if left < 0 else (nested(basis, left), nested(basis, right))


def _block(block: object, width: int, what: str, identifier: object) -> np.ndarray:
    """The coordinates of one series' events, checked."""

    def place(at: tuple[int, ...]) -> Where:
        return Where(plain_id(identifier), detail=f"event {at[0]}, coordinate {at[1]}")

    numbers = as_numbers(block, place)
    if numbers.ndim != 2 or numbers.shape[1] != width:
        where = Where(plain_id(identifier))
        raise StreamError(
            f"{where} has increments of shape {numbers.shape}, but {what} has {width} coordinates.",
            f"Give an array of shape (events, {width}).",
            where=where,
        )
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0].tolist()
        raise StreamError(
            f"{place((row, column))} is {float(numbers[row, column])!r}.",
            "Every coordinate of an event must be finite; zero means no movement.",
            where=place((row, column)),
        )
    return numbers
