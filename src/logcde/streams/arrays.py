"""From rows with stamps of any kind, through the clock and the gate, to the columns of a `Streams`.

Events that carry more than values: Lie elements, or signatures whose logarithm is one.

The local records of `app:proof_faithfulness` in the paper: Delta is given, or Delta = log H. Its first level says how
far each channel moved; the brackets above become terms.

Arrays as input: lists over series, one dense array, or event tuples, made ready for `ingest`.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Shaped

from logcde.algebra import Basis, Tensor, expand, log, project
from logcde.errors import StreamError
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.faults import Places, name
from logcde.streams.ingest import Columns, Rules, assemble
from logcde.streams.labels import (
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
from logcde.streams.rows import Average, Drop, Earliest, Forbid, Keep, KeepLast, Rows, Table
from logcde.streams.schema import Schema, Term, names_of
from logcde.streams.stamps import ClockOptions, Horizon, Origin, read_horizon, read_stamps, time_rows


@dataclasses.dataclass(frozen=True)
class Reading:
    """The options that every constructor has."""

    horizon: Horizon | None = None
    schema: Schema | None = None
    clock: ClockOptions = ClockOptions()
    rules: Rules = Rules()

    @classmethod
    def of(
        cls,
        horizon: Horizon | None,
        schema: Schema | None,
        unit: timedelta | None,
        origin: Origin,
        sort: bool,
        duplicates: Forbid | KeepLast | Average,
        empty: Forbid | Drop | Keep,
    ) -> "Reading":
        """Options as the user gives them, with those that contradict a schema refused."""
        clock = None if schema is None else schema.clock
        if clock is not None and unit is not None:
            raise StreamError(
                "Both a schema and a unit were given. The schema's clock has its unit: leave out the other."
            )
        if isinstance(clock, DatetimeClock) and clock.origin is not None and not isinstance(origin, Earliest):
            raise StreamError(
                "Both a schema and an origin were given. The schema's clock has its origin: leave out the other."
            )
        return cls(horizon, schema, ClockOptions(unit, origin, clock), Rules(sort, duplicates, empty))


def read_table(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    values: Float[np.ndarray, "row channel"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    reading: Reading,
) -> Columns:
    """Wide rows: one stamp and a value of each channel, NaN where it is not observed."""
    numeric = stamps.array.dtype.kind == "f"
    observed = np.ones(len(values), bool) if numeric else np.any(np.isfinite(values), axis=1)
    timing = time_rows(stamps, series, observed, ids, reading.clock)
    horizon = read_horizon(reading.horizon, ids, timing.clock, timing.origins)
    places = Places(ids, dataclasses.replace(schema, clock=timing.clock), timing.origins)
    return assemble(Table(series, timing.times, values, terms), places, horizon, reading.rules)


def read_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    channel: Shaped[np.ndarray, "row"],
    value: Float64[np.ndarray, "row"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    reading: Reading,
) -> Columns:
    """Long rows: one stamp, one channel, one value."""
    numeric = stamps.array.dtype.kind == "f"
    observed = np.ones(len(value), bool) if numeric else ~np.isnan(value)
    timing = time_rows(stamps, series, observed, ids, reading.clock)
    horizon = read_horizon(reading.horizon, ids, timing.clock, timing.origins)
    places = Places(ids, dataclasses.replace(schema, clock=timing.clock), timing.origins)
    return assemble(Rows(series, timing.times, channel, value, terms), places, horizon, reading.rules)


Lists = Sequence | np.ndarray
TOLERANCE = 1e-4


class LieEvents(NamedTuple):
    """Values and terms of every series, as `Streams.from_arrays` takes them."""

    values: list[np.ndarray]
    terms: dict[Term, list[np.ndarray]]


def from_lie(increments: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Coordinates (events, lie) of each series in `Basis(channels, depth)`, as values and terms."""
    basis = Basis(names_of(channels), depth)
    identifiers = series_ids(ids, len(increments))
    blocks = [
        _block(block, basis.dimension, f"a Lie element of depth {depth}", identifiers[series])
        for series, block in enumerate(increments)
    ]
    # The base point is 0, so what a channel has moved in all is its value.
    values = [np.cumsum(block[:, : basis.width], axis=0) for block in blocks]
    terms = {
        Term(basis.labels[place], nested(basis, place)): [block[:, place] for block in blocks]
        for place in range(basis.width, basis.dimension)
    }
    return LieEvents(values, terms)


def from_group(signatures: Lists, channels: Sequence[str], depth: int, ids: Lists | None) -> LieEvents:
    """Signatures (events, words) of each series, levels 1..depth flat in C order, as values and terms."""
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
        row = int(bad[0] - sum(lengths[:series]))
        raise StreamError(
            f"Series {name(identifiers[series])}, event {row}: this is no signature, for its logarithm is not a Lie "
            f"element (it misses by {defect[bad[0]]:.2g}). Check the order of the words: levels 1 to {depth}, each in "
            "lexicographic order, without the constant term."
        )
    return from_lie(np.split(coordinates, np.cumsum(lengths)[:-1]), channels, depth, ids)


@partial(jax.jit, static_argnames="basis")
def _logarithm(levels: tuple, basis: Basis) -> tuple[Array, Array]:
    """Lyndon coordinates of log H for each event, and how far log H is from the Lie element that has them."""
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
    who = f"Series {name(identifier)}"
    numbers = as_numbers(block, lambda at: f"{who}, event {at[0]}, coordinate {at[1]}")
    if numbers.ndim != 2 or numbers.shape[1] != width:
        raise StreamError(
            f"{who} has increments of shape {numbers.shape}, but {what} has {width} coordinates. "
            f"Give an array of shape (events, {width})."
        )
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0].tolist()
        raise StreamError(
            f"{who}, event {row}, coordinate {column} is {float(numbers[row, column])!r}. Every coordinate of an event "
            "must be finite; zero means no movement."
        )
    return numbers


TermLists: TypeAlias = Mapping[Term, Lists]


def read_lists(
    times: Lists,
    values: Lists,
    channels: Sequence[str] | None,
    ids: Sequence | np.ndarray | None,
    terms: TermLists,
    reading: Reading,
) -> Columns:
    """Lists over series of stamps (events,) and values (events, channels)."""
    if len(times) != len(values):
        raise StreamError(
            f"There are {len(times)} series of stamps, but {len(values)} of values. Give one for each series."
        )
    identifiers = series_ids(ids, len(times))
    blocks = [as_array(block) for block in values]
    width = _width(blocks, identifiers)
    schema = schema_for(channels, width, tuple(terms), reading.schema)
    stamps = [read_stamps(series) for series in times]
    for code, (series, block) in enumerate(zip(stamps, blocks, strict=True)):
        if series.array.shape != block.shape[:1]:
            raise StreamError(
                f"Series {name(identifiers[code])} has {series.array.size} stamps, but "
                f"{block.shape[0]} rows of values. Give one stamp for each row."
            )
    offsets = offsets_of(np.array([len(block) for block in blocks], np.int64))
    flat = _join_stamps(stamps, identifiers)

    def place(series: int) -> Callable[[tuple[int, ...]], str]:
        return lambda at: (
            f"Series {name(identifiers[series])}, channel {schema.channels[at[1]]!r}, at {times[series][at[0]]}"
        )

    numbers = [as_values(block, place(series)) for series, block in enumerate(blocks)]
    table = np.concatenate(numbers) if numbers else np.empty((0, width))
    columns = [_term_column(term, terms[term], offsets, identifiers) for term in schema.terms]
    extra = np.stack(columns, axis=1) if columns else np.empty((len(table), 0))
    return read_table(flat, owners(offsets), table, extra, identifiers, schema, reading)


def read_dense(
    values: object,
    times: Lists | None,
    channels: Sequence[str] | None,
    ids: Sequence | np.ndarray | None,
    reading: Reading,
) -> Columns:
    """One array (series, step, channel) and stamps (step,), (series, step) or none."""
    values = as_array(values)
    if values.ndim != 3:
        raise StreamError(
            f"A dense array has three axes (series, step, channel), but this one has shape {values.shape}. "
            "Add the missing ones, as in array[..., None] for a single channel."
        )
    series, steps, width = values.shape
    identifiers = series_ids(ids, series)
    schema = schema_for(channels, width, (), reading.schema)
    stamps = read_stamps(np.arange(steps) if times is None else times)
    if stamps.array.shape not in ((steps,), (series, steps)):
        raise StreamError(
            f"The stamps have shape {stamps.array.shape}, but the values have {series} series of {steps} steps. "
            f"Give {steps} stamps for all series, or an array of shape {(series, steps)}."
        )
    spread = np.broadcast_to(stamps.array, (series, steps))
    numbers = as_values(
        values,
        lambda at: f"Series {name(identifiers[at[0]])}, channel {schema.channels[at[2]]!r}, at {spread[at[:2]]}",
    )
    table = np.array(numbers, copy=numbers is values).reshape(series * steps, width)
    codes = np.repeat(np.arange(series), steps)
    flat = Stamps(spread.flatten(), stamps.zone)
    return read_table(flat, codes, table, np.empty((len(table), 0)), identifiers, schema, reading)


def read_events(events: Iterable[tuple], channels: Sequence[str] | None, reading: Reading) -> Columns:
    """Tuples (series, stamp, {channel: value})."""
    listed = list(events)
    for event in listed:
        if not (isinstance(event, tuple | list) and len(event) == 3 and isinstance(event[2], Mapping)):
            raise StreamError(f"{event!r} is not an event. An event is (series, stamp, {{channel: value}}).")
    counts = np.array([len(seen) for _, _, seen in listed], np.int64)
    series, distinct = encode([series for series, _, _ in listed])
    identifiers = id_array(distinct)
    labels = [channel for _, _, seen in listed for channel in seen]
    seen_codes, names = encode(labels)
    owner = np.repeat(np.arange(len(listed)), counts)

    def place(at: tuple[int, ...]) -> str:
        event = owner[at[0]]
        return f"Series {name(identifiers[series[event]])}, channel {labels[at[0]]!r}, at {listed[event][1]}"

    schema, channel = channel_codes(seen_codes, names, channels, (), reading.schema, place)
    values = as_numbers([value for _, _, seen in listed for value in seen.values()], place)
    stamps = read_stamps(np.array([stamp for _, stamp, _ in listed]))
    stamps = Stamps(stamps.array[owner], stamps.zone)
    return read_rows(stamps, series[owner], channel, values, np.empty((len(values), 0)), identifiers, schema, reading)


def _width(blocks: list[np.ndarray], ids: np.ndarray) -> int:
    """The number of channels, the same in every series."""
    for code, block in enumerate(blocks):
        if block.ndim != 2:
            raise StreamError(
                f"The values of series {name(ids[code])} have shape {block.shape}, but they need two axes (events, "
                "channels). Add the missing one: values[:, None] for a single channel, [values] for a single series."
            )
        if block.shape[1] != blocks[0].shape[1]:
            raise StreamError(
                f"Series {name(ids[code])} has {block.shape[1]} columns of values, but series {name(ids[0])} has "
                f"{blocks[0].shape[1]}. Give every series the same channels, NaN where one is not observed."
            )
    if not blocks:
        raise StreamError("There is no series. Streams need at least one.")
    return blocks[0].shape[1]


def _join_stamps(stamps: list[Stamps], ids: np.ndarray) -> Stamps:
    """Stamps of all series end to end, in the finest of their resolutions."""
    first = stamps[0]
    for code, series in enumerate(stamps):
        if series.array.dtype.kind != first.array.dtype.kind or (series.zone is None) != (first.zone is None):
            raise StreamError(
                f"Series {name(ids[code])} has stamps of type {series.array.dtype}{_zoned(series)}, but series "
                f"{name(ids[0])} has {first.array.dtype}{_zoned(first)}. Use one kind of stamp throughout."
            )
    return Stamps(np.concatenate([series.array for series in stamps]), first.zone)


def _zoned(stamps: Stamps) -> str:
    return f" in {stamps.zone}" if stamps.zone else ""


def _term_column(term: Term, lists: Lists, offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """One term over the rows of all series."""
    if len(lists) != len(ids):
        raise StreamError(f"The term {term.name!r} is given for {len(lists)} series, but there are {len(ids)}.")
    columns = []
    for code, column in enumerate(lists):
        where = f"Series {name(ids[code])}, term {term.name!r}"
        numbers = as_numbers(column, lambda at, where=where: f"{where}, row {at[0]}")
        if numbers.shape != (offsets[code + 1] - offsets[code],):
            raise StreamError(
                f"{where} has shape {numbers.shape}, but the series has {offsets[code + 1] - offsets[code]} rows. "
                "Give one number for each row, NaN where there is none."
            )
        columns.append(numbers)
    return np.concatenate(columns)
