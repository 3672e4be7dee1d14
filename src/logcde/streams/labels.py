"""Columns of input become arrays: values become float64, ids and channel names become integer codes.

This module knows arrays and columns of data frames; what rows and events are, it does not know.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped

from logcde.errors import Remedy, StreamError, Where
from logcde.streams.faults import more, name, plain_id
from logcde.streams.schema import Schema, Term, check_names, listed, names_of

LARGEST_WHOLE = 2**53


Place: TypeAlias = Callable[[tuple[int, ...]], Where]
"""From the position of an entry in an array to its place in the user's terms, for an error about it."""


def as_numbers(array: object, place: Place) -> Float64[np.ndarray, "..."]:
    """Values as float64, None as NaN; anything that is not a number is refused, with its `place`.

    >>> as_numbers([1, None], place=lambda at: Where(detail=f"row {at[0]}"))
    array([ 1., nan])
    """
    array = as_array(array)
    kind = array.dtype.kind
    if kind in "fb":
        return array.astype(np.float64, copy=False)
    if kind in "iu":
        if array.size and max(-int(array.min()), int(array.max())) > LARGEST_WHOLE:
            index = _position((array > LARGEST_WHOLE) | (array < -LARGEST_WHOLE))
            raise _too_large(array[index], place(index))
        return array.astype(np.float64)
    if kind == "O":
        items = array.reshape(-1).tolist()
        offending = np.array([not _is_number(item) for item in items], bool)
        if not offending.any():
            large = np.array([too_large(item) for item in items], bool).reshape(array.shape)
            if large.any():
                raise _too_large(array[_position(large)], place(_position(large)))
            return np.array([np.nan if item is None else item for item in items], np.float64).reshape(array.shape)
        index = _position(offending.reshape(array.shape))
    elif array.size:
        index = (0,) * array.ndim
    else:
        return np.empty(array.shape)
    item = array[index]
    found = item.item() if isinstance(item, np.generic) else item
    raise StreamError(
        f"{place(index)} has the value {found!r}, which is not a number.",
        "Convert it to one, or use NaN for not observed.",
        where=place(index),
    )


def as_values(array: object, place: Place) -> Float[np.ndarray, "..."]:
    """As `as_numbers`, except that values in single precision stay so, to halve the memory traffic.

    >>> as_values(np.float32([0.1]), place=lambda at: Where())
    array([0.1], dtype=float32)
    """
    array = as_array(array)
    return array if array.dtype == np.float32 else as_numbers(array, place)


def as_array(items: object) -> np.ndarray:
    """`np.asarray`, except that lists become arrays of objects where NumPy would change what is in them.

    It would turn the numbers of lists with text into text, and round large integers beside other numbers.

    >>> as_array([1.5, "high"])
    array([1.5, 'high'], dtype=object)
    """
    if isinstance(items, np.ma.MaskedArray):
        return unmasked(items)
    if isinstance(items, np.ndarray) and items.dtype.kind not in "US":
        return items
    try:
        array = np.asarray(items)
    except ValueError as error:
        raise StreamError(
            "The rows of an array have different lengths.", "Give rows of one length, NaN where not observed."
        ) from error
    rounded = array.dtype.kind == "f" and bool((np.abs(array) >= LARGEST_WHOLE).any())
    return np.asarray(items, object) if rounded or array.dtype.kind in "US" else array


def unmasked(array: Any) -> Any:
    """A masked array with NaN, NaT or None where it is masked; anything else as it is.

    >>> unmasked(np.ma.array([1.0, 2.0], mask=[False, True]))
    array([ 1., nan])
    """
    if not isinstance(array, np.ma.MaskedArray):
        return array
    missing = {"f": np.nan, "c": np.nan, "m": np.timedelta64("NaT"), "M": np.datetime64("NaT")}
    kind = array.dtype.kind
    if kind in missing or not np.ma.is_masked(array):
        return array.filled(missing[kind]) if kind in missing else array.data
    objects = array.data.astype(object)
    objects[np.ma.getmaskarray(array)] = None
    return objects


def too_large(item: object) -> bool:
    """Whether this is a whole number that float64 may not hold exactly."""
    return isinstance(item, int | np.integer) and not -LARGEST_WHOLE <= item <= LARGEST_WHOLE


def written(number: object) -> str:
    """A whole number for a sentence, however long.

    >>> written(2**60), written(10**400)
    ('1152921504606846976', 'a number of more than 100 digits')
    """
    whole = int(number)  # type: ignore[call-overload]
    return str(whole) if abs(whole) < 10**100 else "a number of more than 100 digits"


def _too_large(number: object, where: Where) -> StreamError:
    text = written(number)
    found = text if text.startswith("a ") else f"the value {text}"
    return StreamError(
        f"{where} has {found}, too large for float64 to hold exactly.",
        "Scale it first.",
        where=where,
    )


def read_row(places: Mapping[str, int], values: object) -> Float64[np.ndarray, "_"]:
    """The values of one event, NaN = not observed, from numbers by channel or from one number for each channel.

    Whether these are as many as there are channels is left to those who take the event, and know its stamp.

    Args:
        places: The place of each channel.
        values: What the user gave.

    >>> read_row({"pulse": 0, "temp": 1}, {"temp": 37.0})
    array([nan, 37.])
    """
    if isinstance(values, Mapping):
        found = [math.nan] * len(places)
        for channel, value in values.items():
            if channel not in places:
                raise StreamError(
                    f"There is no channel {channel!r}. The channels are {', '.join(places)}.",
                    where=Where(channel=channel),
                )
            found[places[channel]] = value if isinstance(value, float) else _number_of(channel, value)
        return np.array(found, np.float64)
    if type(values) is list and {*map(type, values)} == {float}:
        return np.array(values, np.float64)  # the common case, as fast as possible
    names = tuple(places)

    def where(at: tuple[int, ...]) -> Where:
        known = len(at) == 1 and at[0] < len(names)
        return Where(channel=names[at[0]]) if known else Where(detail="an event")

    row = as_numbers(values, where)
    if row.ndim != 1:
        raise StreamError(
            f"The values of an event have shape {row.shape}, but there are {len(names)} channels.",
            f"Give {len(names)} numbers, one for each channel, NaN = not observed, or numbers by name.",
        )
    return row


def _number_of(channel: str, value: object) -> float:
    """The value of one channel as a number."""
    if type(value) is int and not too_large(value):
        return float(value)
    where = Where(channel=channel)
    found = as_numbers([value], lambda at: where)
    if found.shape != (1,):
        raise StreamError(f"{where} has a value of shape {found.shape[1:]}.", "Give one number.", where=where)
    return float(found[0])


def _is_number(item: object) -> bool:
    return item is None or isinstance(item, int | float | np.integer | np.floating | np.bool_)


def _position(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


BLOCK = 1 << 16


class Encoded(NamedTuple):
    """Codes in order of first appearance, and the distinct labels in that order."""

    codes: Shaped[np.ndarray, "row"]
    labels: Shaped[np.ndarray, "label"]


def encode_column(column: nw.Series, what: str) -> Encoded:
    """Codes of a column of whole numbers or text without missing entries.

    >>> import polars
    >>> encode_column(nw.from_native(polars.Series(["b", "a", "b"]), series_only=True), "channel")
    Encoded(codes=array([0, 1, 0], dtype=int32), labels=array(['b', 'a'], dtype=object))
    """
    if column.dtype.is_integer():
        numbers = column.to_numpy()
        codes, first = factorise(numbers)
        return Encoded(codes, numbers[first])
    if column.dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        raise StreamError(
            f"The {what} column {column.name!r} is of type {column.dtype}.",
            "It must hold whole numbers or text: cast it first.",
        )
    codes, first = factorise(_physical(column))
    return Encoded(codes, np.array([column[int(row)] for row in first], object))


def _physical(column: nw.Series) -> Shaped[np.ndarray, "row"]:
    """Whole numbers that identify the labels, from the library's own encoding, for which narwhals has no method."""
    native: Any = nw.to_native(column)
    if column.implementation.is_pandas_like():
        return nw.get_native_namespace(column).factorize(native)[0]
    if column.implementation.is_polars():
        polars = nw.get_native_namespace(column)
        return native.cast(polars.Categorical).to_physical().to_numpy()
    encoded = column.to_arrow().dictionary_encode()
    # Chunks share one dictionary, so their indices agree.
    pieces = [chunk.indices.to_numpy() for chunk in getattr(encoded, "chunks", [encoded])]
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def factorise(numbers: Shaped[np.ndarray, "row"]) -> tuple[Int32[np.ndarray, "row"], Int64[np.ndarray, "label"]]:
    """Codes in order of first appearance, and the row where each first appears.

    >>> factorise(np.array([7, 5, 7, 9]))
    (array([0, 1, 0, 2], dtype=int32), array([0, 1, 3]))
    """
    rows = len(numbers)
    if not rows:
        return np.empty(0, np.int32), np.empty(0, np.int64)
    if not (numbers[1:] < numbers[:-1]).any():
        heads = np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
        return np.repeat(np.arange(len(heads), dtype=np.int32), np.diff(heads, append=rows)), heads
    low, high = int(numbers.min()), int(numbers.max())
    if high - low <= 4 * rows + BLOCK:
        return _tabulate(numbers, low, high)
    _, index, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return rank[inverse], index[order]


def _tabulate(numbers: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """`factorise` by a lookup table from low to high, in blocks of rows: no intermediate has the size of the input."""
    rows = len(numbers)
    table = np.full(high - low + 1, -1, np.int32)
    firsts: list[np.ndarray] = []
    codes = np.empty(rows, np.int32)
    known = 0
    for start in range(0, rows, BLOCK):
        slots = numbers[start : start + BLOCK].astype(np.int64) - low
        fresh = np.flatnonzero(table[slots] < 0)
        if fresh.size:
            _, index = np.unique(slots[fresh], return_index=True)
            first = fresh[np.sort(index)]
            table[slots[first]] = np.arange(known, known + len(first))
            known += len(first)
            firsts.append(first + start)
        codes[start : start + BLOCK] = table[slots]
    return codes, np.concatenate(firsts)


def series_ids(ids: Sequence | np.ndarray | None, count: int) -> Shaped[np.ndarray, "series"]:
    """Ids of series as given, or their numbers from 0.

    >>> series_ids(None, 2), series_ids(["p1", "p2"], 2)
    (array([0, 1]), array(['p1', 'p2'], dtype=object))
    """
    if ids is None:
        return np.arange(count)
    if len(ids) != count:
        raise StreamError(f"There are {count} series, but {len(ids)} ids.", "Give one id for each series.")
    labels = id_array(ids)
    seen, counts = np.unique(labels, return_counts=True)
    if (counts > 1).any():
        repeated = seen[counts > 1]
        raise StreamError(
            f"Two series have the id {name(repeated[0])}{more(len(repeated) - 1)}.",
            "Ids must be unique.",
            where=Where(series=plain_id(repeated[0])),
        )
    return labels


def id_array(ids: Sequence | np.ndarray) -> Shaped[np.ndarray, "series"]:
    """Ids as an array of integers or of string objects; others are refused."""
    labels = np.asarray(ids, object) if isinstance(ids, list | tuple) else np.asarray(ids)
    if labels.dtype.kind in "UT":
        return labels.astype(object)
    if labels.dtype.kind in "iu" or not labels.size:
        return labels if labels.size else labels.astype(np.int64)
    if labels.dtype.kind == "O":
        types = (str,) if isinstance(labels[0], str) else (int, np.integer)
        wrong = next((label for label in labels if not isinstance(label, types) or isinstance(label, bool)), None)
        if wrong is None and None not in labels:
            large = [] if types == (str,) else [one for one in labels if not -(2**63) <= one < 2**63]
            if large:
                raise StreamError(f"A series id is {written(large[0])}, too large for 64 bits.", "Give it as text.")
            return labels if types == (str,) else labels.astype(np.int64)
        expected = "text" if types == (str,) else "a whole number"
        raise StreamError(f"The series id {wrong!r} is not {expected}.", ALIKE, where=Where(series=wrong))
    raise StreamError(f"The series ids are of type {labels.dtype.name}, such as {labels[0].item()!r}.", ALIKE)


ALIKE = "Ids are whole numbers throughout or text throughout: convert them."


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
                f"{listed([term.name for term in terms])}.",
                "Give the same terms in the same order.",
            )
    names = schema.channels if schema else names_of(channels or [f"x{i + 1}" for i in range(width)])
    if len(names) != width:
        raise StreamError(
            f"There are {len(names)} channel names, but the values have {width} columns.", "Name each column."
        )
    return Schema(names, terms=terms)


def channel_codes(
    codes: Shaped[np.ndarray, "row"],
    seen: Sequence,
    channels: Sequence[str] | None,
    terms: tuple[Term, ...],
    schema: Schema | None,
    place: Place,
) -> tuple[Schema, Int32[np.ndarray, "row"]]:
    """The schema of a long table, and codes into its channels. Without names given, they are those seen, sorted."""
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
        at = place((int(unknown[0]),))
        raise StreamError(
            f"{at}: this channel is not one of {listed(names)}{more(len(unknown) - 1)}.",
            Remedy.UNKNOWN_CHANNEL,
            where=at,
        )
    return made, known


def refuse_both(channels: Sequence[str] | None, schema: Schema) -> None:
    """Refuse names of channels that differ from those of the schema."""
    if channels is not None and names_of(channels) != schema.channels:
        raise StreamError(
            f"Both channels and a schema were given, and they differ: {listed(tuple(channels))} against "
            f"{listed(schema.channels)}.",
            "Leave out the channels.",
        )
