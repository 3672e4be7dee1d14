"""Where a forecaster is asked, and what is known there: query times among the cuts of the partition, and answers."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int64, Num

from logcde.embedding import Embedding, LogSignatures, Source
from logcde.errors import PartitionError, TrainingError
from logcde.estimators.reading import with_horizon
from logcde.estimators.training import Queries
from logcde.streams import Partition, Streams
from logcde.streams.places import Places
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps
from logcde.train.losses import AbstractMeasure, Share

UNKNOWN = 1e30
"""Stands for a target that is not known."""


class KnownSquaredError(AbstractMeasure):
    """The squared error of those outputs whose target is known.

    >>> value, weight = KnownSquaredError()(jnp.array([1.0, 2.0]), jnp.array([3.0, UNKNOWN]))
    >>> float(value), float(weight)
    (2.0, 0.5)
    """

    name: str = eqx.field(default="mse", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """As a share of all outputs."""
        known = target < UNKNOWN / 2
        error = jnp.where(known, prediction - jnp.where(known, target, 0), 0)
        return jnp.mean(jnp.square(error)), jnp.mean(known.astype(prediction.dtype))


@dataclasses.dataclass(frozen=True)
class Asked:
    """Query times of every series, end to end, increasing and after 0, with answers if there are any."""

    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "query"]
    answers: Float64[np.ndarray, "query output"] | None = None

    @property
    def counts(self) -> Int64[np.ndarray, "series"]:
        """How many there are of each series."""
        return np.diff(self.offsets)

    def by_series(self, values: Float64[np.ndarray, "query output"]) -> Float64[np.ndarray, "series time output"]:
        """Numbers at query times as an array, NaN beyond a series' own."""
        rows = np.full((*self.present.shape, values.shape[1]), np.nan)
        rows[self.present] = values
        return rows

    @property
    def present(self) -> Bool[np.ndarray, "series time"]:
        """Which places of an array (series, query) are those of query times."""
        return np.arange(self.counts.max(initial=0)) < self.counts[:, None]


def asked_at(at: Any, streams: Streams) -> Asked:
    """Query times that a user gives: the ends of a partition's intervals, times for all series, or a list for each.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], horizon=4.0)
    >>> asked_at([1.0, 2.0], streams).times
    array([1., 2., 1., 2.])
    """
    if isinstance(at, Partition):
        cuts = at.cuts(streams)
        ends = np.ones(len(cuts.points), bool)
        ends[cuts.offsets[:-1]] = False
        return Asked(offsets_of(np.diff(cuts.offsets) - 1), cuts.points[ends])
    clock, count = streams.schema.clock, len(streams)
    nested = isinstance(at, Sequence | np.ndarray) and len(at) > 0 and np.ndim(at[0]) > 0
    if nested and len(at) != count:
        raise PartitionError(f"There are times for {len(at)} series, but {count} series. Give a list for each, or one.")
    stamps = [read_stamps(one) for one in at] if nested else [read_stamps(np.atleast_1d(at))] * count
    origins = [None if streams.origins is None else streams.origins[k : k + 1] for k in range(count)]
    lists = [clock.times(one, origin) for one, origin in zip(stamps, origins, strict=True)]
    asked = Asked(offsets_of(np.array([len(one) for one in lists], np.int64)), np.concatenate([np.empty(0), *lists]))
    owner = owners(asked.offsets)
    before = np.concatenate([[0.0], asked.times[:-1]])
    before[asked.offsets[:-1][asked.counts > 0]] = 0.0
    wrong = np.flatnonzero(~(np.isfinite(asked.times) & (asked.times > before)))
    if wrong.size:
        places, series = Places(streams.ids, streams.schema, streams.origins), owner[wrong[0]]
        raise PartitionError(
            f"{places.series(series)} is asked for at {asked.times[wrong[0]]} after {before[wrong[0]]}. Times "
            "increase, and the first is after the start, 0: before it nothing was observed."
        )
    return asked


def asked_by(answers: Streams) -> Asked:
    """The stamps of other streams, and their values there, NaN where a channel has none. Those at 0 are left out."""
    owner = owners(answers.offsets)
    values = np.full((len(answers.times), len(answers.schema.channels)), np.nan)
    values[owners(answers.obs_offsets), answers.channel] = answers.value
    later = answers.times > 0
    counts = np.bincount(owner[later], minlength=len(answers))
    return Asked(offsets_of(counts), answers.times[later], values[later])


def beside(answers: Streams, streams: Streams) -> Streams:
    """The streams of targets in the order of the series, by their ids."""
    places = {one: number for number, one in enumerate(answers.ids.tolist())}
    lacking = [one for one in streams.ids.tolist() if one not in places]
    if lacking:
        raise TrainingError(f"y has no targets for the series {listed(lacking, 3)}. Give every series its own.")
    if type(answers.schema.clock) is not type(streams.schema.clock):
        raise TrainingError(
            f"X has a {type(streams.schema.clock).__name__} and y a {type(answers.schema.clock).__name__}. Give both "
            "the same kind of stamps."
        )
    return answers[[places[one] for one in streams.ids.tolist()]]


def embedded(
    embedding: Embedding, partition: Partition, streams: Streams, asked: Asked
) -> tuple[LogSignatures, Queries]:
    """Log-signatures between the cuts of the partition and the query times, and which of them end at these.

    The horizon is moved beyond the last query, so that what is observed there belongs to a later interval.
    """
    last = np.zeros(len(streams))
    some = asked.counts > 0
    last[some] = asked.times[asked.offsets[1:][some] - 1]
    reached = np.maximum(streams.horizon, last)
    cuts = partition.cuts(with_horizon(streams, reached))
    points, ends = [], np.zeros(asked.present.shape, np.int64)
    for series in range(len(streams)):
        own = asked.times[asked.offsets[series] : asked.offsets[series + 1]]
        inner = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
        union = np.union1d(inner[inner < last[series]], own) if len(own) else inner[:2]
        points.append(union if union[0] == 0.0 else np.concatenate([[0.0], union]))
        ends[series, : len(own)] = np.searchsorted(points[-1], own) - 1
    logsigs = embedding(with_horizon(streams, reached + 1.0), Partition.at(points, partial=True))
    assert logsigs.opening is not None
    source = Source(embedding.coordinates(streams.schema), partition)
    return logsigs.made_from(logsigs.opening, source), Queries(ends, asked.counts)
