"""Columns of labels become codes, at the speed of whoever owns the column."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Int32, Int64, Shaped

from logcde.errors import StreamError

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
            f"The {what} column {column.name!r} is of type {column.dtype}. "
            "It must hold whole numbers or text: cast it first."
        )
    codes, first = factorise(_physical(column))
    return Encoded(codes, np.array([column[int(row)] for row in first], object))


def _physical(column: nw.Series) -> Shaped[np.ndarray, "row"]:
    """Any whole numbers that tell the labels apart: what narwhals has no word for yet."""
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
    """The same through a table over all numbers from low to high, block by block: no row-sized intermediate."""
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
