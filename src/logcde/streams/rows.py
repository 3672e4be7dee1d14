"""Rows of input on their way to events: long, one observation each, or wide, one stamp each."""

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped


@dataclasses.dataclass(frozen=True)
class Forbid:
    """Raise an error that names the place."""


@dataclasses.dataclass(frozen=True)
class KeepLast:
    """Of several values for one series, stamp and channel, keep the one that comes last in the input."""


@dataclasses.dataclass(frozen=True)
class Average:
    """Of several values for one series, stamp and channel, keep the mean."""


@dataclasses.dataclass(frozen=True)
class Drop:
    """Leave out series without a single observation."""


@dataclasses.dataclass(frozen=True)
class Keep:
    """Keep series without a single observation: their intervals still carry the passing of time."""


@dataclasses.dataclass(frozen=True)
class Earliest:
    """Datetimes count from the earliest observed stamp of the whole data set."""


@dataclasses.dataclass(frozen=True)
class FirstStamp:
    """Datetimes count from each series' own first observed stamp."""


class Rows(NamedTuple):
    """Long rows. A NaN value is no observation, a NaN term is no term."""

    series: Shaped[np.ndarray, "row"]
    time: Float64[np.ndarray, "row"]
    channel: Shaped[np.ndarray, "row"]
    value: Float64[np.ndarray, "row"]
    terms: Float64[np.ndarray, "row terms"]

    def pick(self, rows: np.ndarray) -> "Rows":
        """Some of the rows."""
        return Rows(*(column[rows] for column in self))

    def informative(self) -> "Rows":
        """The rows that say anything: those with a value, or with a term."""
        keep = ~np.isnan(self.value)
        if self.terms.shape[1]:
            keep |= ~np.isnan(self.terms).all(axis=1)
        return self if keep.all() else self.pick(keep)


class Table(NamedTuple):
    """Wide rows. A NaN value is no observation, a row of NaN no event."""

    series: Shaped[np.ndarray, "row"]
    time: Float64[np.ndarray, "row"]
    values: Float[np.ndarray, "row channel"]
    terms: Float64[np.ndarray, "row terms"]

    def pick(self, rows: np.ndarray) -> "Table":
        """Some of the rows."""
        return Table(*(column[rows] for column in self))

    def long(self) -> Rows:
        """The same input, one observation each, in double precision, since values may be averaged."""
        rows, width = self.values.shape
        repeat = np.repeat(np.arange(rows), width)
        channel = np.tile(np.arange(width, dtype=np.int32), rows)
        values = self.values.reshape(-1).astype(np.float64, copy=False)
        return Rows(self.series[repeat], self.time[repeat], channel, values, self.terms[repeat])


class Events(NamedTuple):
    """Events of all series in order, each series' number of them, and where each one's observations begin."""

    counts: Int64[np.ndarray, "series"]
    time: Float64[np.ndarray, "event"]
    obs_offsets: Int64[np.ndarray, "_"]
    channel: Int32[np.ndarray, "obs"]
    value: Float[np.ndarray, "obs"]
    terms: Float64[np.ndarray, "event terms"]


def by_channel(
    channel: Int32[np.ndarray, "obs"], value: Float[np.ndarray, "obs"], channels: int
) -> Iterator[Float64[np.ndarray, "_"]]:
    """The values of one channel after another, in double precision.

    >>> list(by_channel(np.array([1, 0, 1], np.int32), np.array([5.0, 6.0, 7.0]), 2))
    [array([6.]), array([5., 7.])]
    """
    order = stable_order(channel, channels)
    edges = np.searchsorted(channel[order], np.arange(channels + 1))
    for start, stop in pairwise(edges):
        yield value[order[start:stop]].astype(np.float64)


def stable_order(codes: np.ndarray, bound: int) -> np.ndarray:
    """A stable argsort of codes below `bound`, in passes of 16 bits, for which NumPy has a radix sort.

    >>> stable_order(np.array([2, 0, 1, 0]), 3)
    array([1, 3, 2, 0])
    """
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound > 1 << shift:
        digit = ((codes >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order
