"""Rows of input on their way to events: long, one observation in each row, or wide, one stamp in each row.

Also the policies of ingest: what to do with repeated values and empty series, and where time counts from.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped


@dataclasses.dataclass(frozen=True)
class Forbid:
    """Raise an error that names the place."""


@dataclasses.dataclass(frozen=True)
class KeepLast:
    """Of several values for one series, stamp and channel, keep the last one in the order of the input."""


@dataclasses.dataclass(frozen=True)
class Average:
    """Of several values for one series, stamp and channel, keep the mean."""


@dataclasses.dataclass(frozen=True)
class Drop:
    """Leave out series without any observation."""


@dataclasses.dataclass(frozen=True)
class Keep:
    """Keep series without any observation: their intervals still carry the passing of time."""


@dataclasses.dataclass(frozen=True)
class Earliest:
    """Time counts from the earliest observed stamp of the whole data set; plain numbers that are no moments, from 0."""


@dataclasses.dataclass(frozen=True, repr=False)
class FirstStamp:
    """Time counts from each series' own first observed stamp.

    With `near_zero=True`, plain numbers count from 0 if most series begin near it.
    """

    near_zero: bool = False

    def __repr__(self) -> str:
        return "FirstStamp(near_zero=True)" if self.near_zero else "FirstStamp()"


class LongRows(NamedTuple):
    """One observation in each row. A NaN value is no observation, a NaN term is no term.

    `series` and `channel` are codes into the ids and the channels of the schema.
    """

    series: Shaped[np.ndarray, "row"]
    time: Float64[np.ndarray, "row"]
    channel: Shaped[np.ndarray, "row"]
    value: Float64[np.ndarray, "row"]
    terms: Float64[np.ndarray, "row terms"]

    def take(self, rows: np.ndarray) -> "LongRows":
        """The chosen rows, by position or by mask."""
        return LongRows(*(column[rows] for column in self))

    def observed(self) -> "LongRows":
        """The rows that have a value or a term."""
        keep = ~np.isnan(self.value)
        if self.terms.shape[1]:
            keep |= ~np.isnan(self.terms).all(axis=1)
        return self if keep.all() else self.take(keep)


class WideRows(NamedTuple):
    """One stamp in each row, one channel in each column. A NaN value is no observation, a row of NaN no event."""

    series: Shaped[np.ndarray, "row"]
    time: Float64[np.ndarray, "row"]
    values: Float[np.ndarray, "row channel"]
    terms: Float64[np.ndarray, "row terms"]

    def take(self, rows: np.ndarray) -> "WideRows":
        """The chosen rows, by position or by mask."""
        return WideRows(*(column[rows] for column in self))

    def long(self) -> LongRows:
        """The same input as long rows, in double precision, since values may be averaged."""
        rows, width = self.values.shape
        repeat = np.repeat(np.arange(rows), width)
        channel = np.tile(np.arange(width, dtype=np.int32), rows)
        values = self.values.reshape(-1).astype(np.float64, copy=False)
        return LongRows(self.series[repeat], self.time[repeat], channel, values, self.terms[repeat])


class Events(NamedTuple):
    """Events of all series in order: how many each series has, and the offsets of each event's observations."""

    counts: Int64[np.ndarray, "series"]
    time: Float64[np.ndarray, "event"]
    obs_offsets: Int64[np.ndarray, "_"]
    channel: Int32[np.ndarray, "obs"]
    value: Float[np.ndarray, "obs"]
    terms: Float64[np.ndarray, "event terms"]
