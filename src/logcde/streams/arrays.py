"""Arrays as input: lists over series, one dense array, or event tuples, made ready for `ingest`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from logcde.errors import StreamError
from logcde.streams.clock import Stamps
from logcde.streams.ingest import Columns
from logcde.streams.labels import channel_codes, encode, id_array, schema_for, series_ids
from logcde.streams.numeric import as_array, as_numbers, as_values
from logcde.streams.places import name
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.reading import Reading, read_rows, read_table
from logcde.streams.schema import Term
from logcde.streams.stamps import read_stamps

Lists: TypeAlias = Sequence | np.ndarray
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
