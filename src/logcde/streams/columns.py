"""The ragged columnar container: series -> events -> (channel, value) pairs, and nothing filled in between.

The observation stream x = ((t_0, s_0, x_0), ...) of "From observations to log-signatures" (`sec:procedure`), many at
once. This module holds and slices arrays; it does not read, check or repair input (see `ingest`).
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped

from logcde.errors import StreamError
from logcde.streams.knots import Knots, frozen
from logcde.streams.ragged import take
from logcde.streams.schema import Schema

Kind = TypeVar("Kind", bound="AbstractStreams")
ARRAYS = ("ids", "offsets", "times", "obs_offsets", "channel", "value", "horizon", "terms")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AbstractStreams:
    """Arrays of a data set, read-only, and how to take some of its series. `Streams` is the class to use.

    Values that came as a table in single precision are kept so, to have less to read; all that is computed from them is
    in double precision.
    """

    schema: Schema
    ids: Shaped[np.ndarray, "series"]
    offsets: Int64[np.ndarray, "series+1"]
    times: Float64[np.ndarray, "event"]
    obs_offsets: Int64[np.ndarray, "event+1"]
    channel: Int32[np.ndarray, "obs"]
    value: Float[np.ndarray, "obs"]
    horizon: Float64[np.ndarray, "series"]
    terms: Float64[np.ndarray, "event terms"]
    knots: Knots | None = None
    origins: Shaped[np.ndarray, "series"] | None = None

    def __post_init__(self) -> None:
        for name in ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.origins is not None:
            object.__setattr__(self, "origins", frozen(self.origins))
        series, events, observations = len(self.ids), len(self.times), len(self.value)
        expected = {
            "offsets": (np.int64, (series + 1,)),
            "times": (np.float64, (events,)),
            "obs_offsets": (np.int64, (events + 1,)),
            "channel": (np.int32, (observations,)),
            "value": (np.float32 if self.value.dtype == np.float32 else np.float64, (observations,)),
            "horizon": (np.float64, (series,)),
            "terms": (np.float64, (events, len(self.schema.terms))),
        }
        for name, (dtype, shape) in expected.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != shape:
                raise StreamError(
                    f"Streams.{name} must be {np.dtype(dtype)} of shape {shape}, but it is {array.dtype} of shape "
                    f"{array.shape}. Use one of the constructors, such as Streams.from_arrays."
                )
        if self.offsets[-1] != events or self.obs_offsets[-1] != observations:
            raise StreamError("The offsets of these streams do not end where their events and observations end.")
        if (self.knots is None) != (not self.schema.continuous):
            raise StreamError("Knots and names of continuous channels come together. Use Streams.with_continuous.")

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self: Kind) -> Iterator[Kind]:
        return (self[series] for series in range(len(self)))

    def __getitem__(
        self: Kind,
        key: int | np.integer | slice | Sequence | Shaped[np.ndarray, "_"],
    ) -> Kind:
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"There is no series number {key}: there are {len(self)} series, counted from 0.")
            start = int(key) % len(self)
            return self._run(start, start + 1)
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            return self._run(start, max(start, stop))
        index = np.asarray(key) if not isinstance(key, slice) else np.arange(len(self))[key]
        if index.dtype == np.bool_ and len(index) != len(self):
            raise IndexError(f"The mask has {len(index)} entries, but there are {len(self)} series.")
        return self._take(np.arange(len(self))[index if index.size else index.astype(np.int64)])

    def _run(self: Kind, start: int, stop: int) -> Kind:
        """Neighbouring series, as views."""
        first, last = self.offsets[start], self.offsets[stop]
        begin, end = self.obs_offsets[first], self.obs_offsets[last]
        return dataclasses.replace(
            self,
            ids=self.ids[start:stop],
            offsets=self.offsets[start : stop + 1] - first,
            times=self.times[first:last],
            obs_offsets=self.obs_offsets[first : last + 1] - begin,
            channel=self.channel[begin:end],
            value=self.value[begin:end],
            horizon=self.horizon[start:stop],
            terms=self.terms[first:last],
            knots=None if self.knots is None else self.knots.rows(np.arange(start, stop)),
            origins=None if self.origins is None else self.origins[start:stop],
        )

    def _take(self: Kind, index: Int64[np.ndarray, "_"]) -> Kind:
        """Any series in any order, as copies."""
        offsets, events = take(self.offsets, index)
        obs_offsets, observations = take(self.obs_offsets, events)
        return dataclasses.replace(
            self,
            ids=self.ids[index],
            offsets=offsets,
            times=self.times[events],
            obs_offsets=obs_offsets,
            channel=self.channel[observations],
            value=self.value[observations],
            horizon=self.horizon[index],
            terms=self.terms[events],
            knots=None if self.knots is None else self.knots.rows(index),
            origins=None if self.origins is None else self.origins[index],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractStreams):
            return NotImplemented
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS)
        return (
            self.schema == other.schema
            and self.ids.dtype == other.ids.dtype
            and all(same)
            and self.knots == other.knots
            and _same_or_none(self.origins, other.origins)
        )

    __hash__ = None  # type: ignore[assignment]

    @functools.cached_property
    def synchronous(self) -> bool:
        """Whether every event observes every channel."""
        return len(self.value) == len(self.times) * len(self.schema.channels)


def _same_or_none(ours: np.ndarray | None, theirs: np.ndarray | None) -> bool:
    return ours is theirs if ours is None or theirs is None else np.array_equal(ours, theirs)
