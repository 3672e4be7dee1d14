"""Where a forecaster is asked, and what is known there: query times among the cuts of the partition, and answers.

`LogCDEForecaster`: values at query times, from what was observed before.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int64, Num
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from logcde.embedding import Embedding, EmbeddingSpec, LogSignatures
from logcde.errors import PartitionError, TrainingError
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.checking import check_array
from logcde.estimators.data import aligned, axes_of, beside_table, is_frame, read, with_horizon
from logcde.estimators.training import Queries, in_units
from logcde.models import PerInterval
from logcde.streams import Partition, Streams
from logcde.streams.faults import Places
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps
from logcde.train.losses import AbstractMeasure, WeightedValue

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

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
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


def check_same_series(answers: Streams, streams: Streams) -> Streams:
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
    assert logsigs.initial is not None
    spec = EmbeddingSpec(embedding.coordinates(streams.schema), partition)
    return logsigs.with_spec(logsigs.initial, spec), Queries(ends, asked.counts)


class LogCDEForecaster(AbstractLogCDE):
    """Predicts values at query times, each from what was observed strictly before it.

    `X` is as for `LogCDEClassifier`. `y` are `Streams` or a data frame of targets, each with its stamp, whose series
    have the ids of those of `X`; or an array with a row for each series, known at its end; or None for the next values
    of the channels of `X` themselves.

    What is predicted at one time may depend, by little, on which other times are asked for in the same call, because
    intervals end at each of them.

    >>> rng = np.random.default_rng(0)
    >>> X = np.sin(np.arange(12) + rng.uniform(0, 6, size=(40, 1)))[..., None]
    >>> forecaster = LogCDEForecaster(max_iter=200, random_state=0).fit(X)
    >>> forecaster.predict(X, at=[12.0, 13.0]).shape, forecaster.score(X) > 0.5
    ((40, 2, 1), True)
    """

    reading = PerInterval

    def fit(self, X: Any, y: Any = None) -> "LogCDEForecaster":
        """Learn the values of targets at their stamps."""
        streams = self._begin(X)
        asked = self._asked(y, streams)
        assert asked.answers is not None
        known = np.isfinite(asked.answers)
        if not known.any(axis=0).all():
            raise TrainingError(
                "A target is never known after the start of a series, so nothing can be learnt about it. Give targets "
                "with stamps after 0, or for y=None series with at least two observations of each channel."
            )
        self._choose(streams)
        centre, spread = np.nanmean(asked.answers, axis=0), np.nanstd(asked.answers, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        targets = np.where(known, (asked.answers - centre) / spread, UNKNOWN)
        rows = np.nan_to_num(asked.by_series(targets))
        logsigs, queries = embedded(self.embedding_, self.partition_, streams, asked)
        classes = np.zeros(len(streams), np.int64)
        self._train(logsigs, queries, rows, targets.shape[1], KnownSquaredError(), (), classes)
        self.model_ = in_units(self.model_, centre, spread)
        return self

    def predict(self, X: Any, at: Any = None) -> Float64[np.ndarray, "series time output"]:
        """Values at times: a Partition's ends of intervals, an array of times for all series, or a list for each.

        By default at the end of each series, its horizon. NaN where a series has fewer times than others.
        """
        streams = self._again(X)
        return self._values(streams, asked_at(streams.horizon[:, None] if at is None else at, streams))

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 over the targets that are known, mean over outputs."""
        streams = self._again(X)
        asked = self._asked(y, streams)
        assert asked.answers is not None
        found, answers = self._values(streams, asked)[asked.present], asked.answers
        known = np.isfinite(answers)
        return float(np.mean([r2_score(answers[k, n], found[k, n]) for n, k in enumerate(known.T)]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _values(self, streams: Streams, asked: Asked) -> Float64[np.ndarray, "series time output"]:
        found = self._outputs(*embedded(self.embedding_, self.partition_, streams, asked), streams.ids)
        return np.where(asked.present[..., None], found, np.nan)

    def _asked(self, y: Any, streams: Streams) -> Asked:
        """Where there are targets, and which."""
        if y is None:
            return asked_by(streams)
        if is_frame(y) and self.table is not None:
            return asked_by(check_same_series(beside_table(self.table, streams).read(y, None), streams))
        if isinstance(y, Streams) or axes_of(y) == 3 or (isinstance(y, list) and isinstance(y[0], Streams)):
            return asked_by(check_same_series(read(y, None, None, np.asarray).streams, streams))
        rows = check_array(aligned(y, streams, self.flat_), ensure_2d=False, dtype=np.float64, input_name="y")
        return Asked(np.arange(len(streams) + 1), streams.horizon, rows.reshape(len(streams), -1))
