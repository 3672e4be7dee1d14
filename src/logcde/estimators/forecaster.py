"""`LogCDEForecaster`: values at query times, each from earlier observations only.

Query times are added to the cuts of the partition, so that an interval ends at each of them.
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
from logcde.errors import ModelError, PartitionError, TrainingError, Where
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array
from logcde.estimators.base import AbstractLogCDE, check_finite
from logcde.estimators.data import align_targets, axes_of, is_frame, layout_of_targets, read_input, with_horizon
from logcde.estimators.learners import AbstractNetwork, LogSLiCE
from logcde.estimators.training import with_target_units
from logcde.models import PerInterval
from logcde.models.series import EmbeddedModel, QueryIntervals
from logcde.streams import Partition, Streams
from logcde.streams.faults import Places
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps
from logcde.train.losses import AbstractMeasure, WeightedValue

UNKNOWN = 1e30
"""Stands for an unknown target in the arrays of training, which hold no NaN."""


@dataclasses.dataclass(frozen=True)
class Queries:
    """Query times of all series, end to end, and the targets there if they are known.

    Args:
        offsets: Where the times of each series begin in `times`, and the total.
        times: Query times, positive and increasing within a series.
        targets: Targets at these times, NaN where an output is unknown.
    """

    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "query"]
    targets: Float64[np.ndarray, "query output"] | None = None

    @property
    def counts(self) -> Int64[np.ndarray, "series"]:
        """The number of query times of each series."""
        return np.diff(self.offsets)

    @property
    def present(self) -> Bool[np.ndarray, "series time"]:
        """Which entries of a padded array (series, time) belong to query times."""
        return np.arange(self.counts.max(initial=0)) < self.counts[:, None]

    def by_series(self, values: Float64[np.ndarray, "query output"]) -> Float64[np.ndarray, "series time output"]:
        """Return values at the query times as a padded array, with NaN as padding."""
        rows = np.full((*self.present.shape, values.shape[1]), np.nan)
        rows[self.present] = values
        return rows


@saving.loadable
class LogCDEForecaster(AbstractLogCDE):
    """Predicts values at query times from strictly earlier observations: `fit(X, y)`, then `predict` and `score`.

    `X` is as for `LogCDEClassifier`. `y` is one of

    - `Streams` or a data frame of targets with stamps, whose series have the ids of those of `X`,
    - an array with one row for each series: targets at its horizon,
    - None: the targets are the next values of the channels of `X`.

    Parameters and attributes are those of `AbstractLogCDE`. Intervals end at each query time, so a prediction depends
    slightly on the other query times of the same call.

    >>> rng = np.random.default_rng(0)
    >>> X = np.sin(np.arange(12) + rng.uniform(0, 6, size=(40, 1)))[..., None]
    >>> forecaster = LogCDEForecaster(learner=LogSLiCE(steps=200), random_state=0).fit(X)
    >>> forecaster.predict(X, at=[12.0, 13.0]).shape, forecaster.score(X) > 0.5
    ((40, 2, 1), True)
    """

    def fit(self, X: Any, y: Any = None) -> "LogCDEForecaster":
        """Train on series `X` and targets `y` at their stamps."""
        streams = self._read_training(X)
        queries = self._read_targets(y, streams)
        assert queries.targets is not None
        known = np.isfinite(queries.targets)
        if not known.any(axis=0).all():
            raise TrainingError(
                "A target is never known after the start of a series, so nothing can be learnt about it.",
                "Give targets with stamps after 0; y=None needs a series with two observations of each channel.",
            )
        network = LogSLiCE() if self.learner is None else self.learner
        if not isinstance(network, AbstractNetwork):
            raise ModelError(
                f"learner={network!r} predicts once for each series, and cannot forecast.",
                "Give LogSLiCE() or LogNCDE().",
            )
        chosen = network.choose(streams, self.gap_)
        centre, spread = np.nanmean(queries.targets, axis=0), np.nanstd(queries.targets, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        targets = np.where(known, (queries.targets - centre) / spread, UNKNOWN)
        rows = np.nan_to_num(queries.by_series(targets))
        logsigs, intervals = embed_queries(chosen.embedding, chosen.partition, streams, queries)
        classes, outputs = np.zeros(len(streams), np.int64), targets.shape[1]
        task = self._task(streams, classes, None)
        sequence, result, more = network.train(
            logsigs, intervals, rows, outputs, KnownSquaredError(), task, PerInterval, classes
        )
        sequence = with_target_units(sequence, centre, spread)
        self.outputs_ = outputs
        self.model_ = EmbeddedModel(sequence, chosen.embedding, chosen.partition)
        self.choices_ = {**chosen.choices, **more}
        self.history_, self.n_iter_ = result.history, result.summary.steps
        return self

    def predict(self, X: Any, at: Any = None) -> Float64[np.ndarray, "series time output"]:
        """Predict at query times.

        Args:
            X: The series.
            at: Query times of all series, a list of times for each series, or a `Partition`, whose interval ends are
                the query times; by default the horizon of each series.

        Returns:
            Predictions, NaN where a series has fewer query times than others.
        """
        streams = self._read_further(X)
        return self._predictions(streams, queries_at(streams.horizon[:, None] if at is None else at, streams))

    def score(self, X: Any, y: Any = None) -> float:
        """Return R^2 over the known targets, averaged over outputs."""
        streams = self._read_further(X)
        queries = self._read_targets(y, streams)
        assert queries.targets is not None
        predicted, targets = self._predictions(streams, queries)[queries.present], queries.targets
        known = np.isfinite(targets)
        return float(np.mean([r2_score(targets[k, n], predicted[k, n]) for n, k in enumerate(known.T)]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _predictions(self, streams: Streams, queries: Queries) -> Float64[np.ndarray, "series time output"]:
        model = self.model_
        found = model.outputs(*embed_queries(model.embedding, model.partition, streams, queries))
        check_finite(found, streams.ids)
        return np.where(queries.present[..., None], found, np.nan)

    def _read_targets(self, y: Any, streams: Streams) -> Queries:
        """Read targets in any of the forms; their stamps are the query times."""
        if y is None:
            return queries_of_targets(streams)
        if is_frame(y) and self.table is not None:
            targets = layout_of_targets(self.table, streams).read(y, None)
            return queries_of_targets(_align_streams(targets, streams))
        if isinstance(y, Streams) or axes_of(y) == 3 or (isinstance(y, list) and isinstance(y[0], Streams)):
            return queries_of_targets(_align_streams(read_input(y, None, None, np.asarray).streams, streams))
        rows = check_array(align_targets(y, streams, self.flat_), ensure_2d=False, dtype=np.float64, input_name="y")
        return Queries(np.arange(len(streams) + 1), streams.horizon, rows.reshape(len(streams), -1))


def queries_at(at: Any, streams: Streams) -> Queries:
    """Read query times: the interval ends of a partition, times for all series, or a list for each.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], horizon=4.0)
    >>> queries_at([1.0, 2.0], streams).times
    array([1., 2., 1., 2.])
    """
    if isinstance(at, Partition):
        cuts = at.cuts(streams)
        ends = np.ones(len(cuts.points), bool)
        ends[cuts.offsets[:-1]] = False
        return Queries(offsets_of(np.diff(cuts.offsets) - 1), cuts.points[ends])
    clock, count = streams.schema.clock, len(streams)
    nested = isinstance(at, Sequence | np.ndarray) and len(at) > 0 and np.ndim(at[0]) > 0
    if nested and len(at) != count:
        raise PartitionError(
            f"There are query times for {len(at)} series, but {count} series.",
            "Give a list of times for each series, or one list for all.",
        )
    stamps = [read_stamps(one) for one in at] if nested else [read_stamps(np.atleast_1d(at))] * count
    origins = [None if streams.origins is None else streams.origins[k : k + 1] for k in range(count)]
    lists = [clock.times(one, origin) for one, origin in zip(stamps, origins, strict=True)]
    offsets = offsets_of(np.array([len(one) for one in lists], np.int64))
    queries = Queries(offsets, np.concatenate([np.empty(0), *lists]))
    _check_increasing(queries, streams)
    return queries


def _check_increasing(queries: Queries, streams: Streams) -> None:
    before = np.concatenate([[0.0], queries.times[:-1]])
    before[queries.offsets[:-1][queries.counts > 0]] = 0.0
    wrong = np.flatnonzero(~(np.isfinite(queries.times) & (queries.times > before)))
    if wrong.size:
        place = wrong[0]
        series, time = owners(queries.offsets)[place], float(queries.times[place])
        raise PartitionError(
            f"{Places(streams.ids, streams.schema, streams.origins).series(series)} has the query time {time} after "
            f"{before[place]}.",
            "Query times increase, and the first is after the start, 0: earlier observations are needed.",
            where=Where(series=streams.ids[series], stamp=time),
        )


def queries_of_targets(targets: Streams) -> Queries:
    """Take the stamps of target streams as query times, without those at 0, which no observation precedes."""
    owner = owners(targets.offsets)
    values = np.full((len(targets.times), len(targets.schema.channels)), np.nan)
    values[owners(targets.obs_offsets), targets.channel] = targets.value
    later = targets.times > 0
    counts = np.bincount(owner[later], minlength=len(targets))
    return Queries(offsets_of(counts), targets.times[later], values[later])


def _align_streams(targets: Streams, streams: Streams) -> Streams:
    """Put target streams into the order of `streams`, by series id."""
    places = {one: number for number, one in enumerate(targets.ids.tolist())}
    missing = [one for one in streams.ids.tolist() if one not in places]
    if missing:
        raise TrainingError(
            f"y has no targets for the series {listed(missing, 3)}.",
            "Give targets for each series.",
            where=Where(series=missing[0]),
        )
    if type(targets.schema.clock) is not type(streams.schema.clock):
        raise TrainingError(
            f"X has a {type(streams.schema.clock).__name__} and y a {type(targets.schema.clock).__name__}.",
            "Give both the same type of stamps.",
        )
    return targets[[places[one] for one in streams.ids.tolist()]]


def embed_queries(
    embedding: Embedding, partition: Partition, streams: Streams, queries: Queries
) -> tuple[LogSignatures, QueryIntervals]:
    """Compute the log-signatures between the cuts of the partition and the query times.

    The horizon is moved beyond the last query time, so that an observation at that time belongs to a later interval.
    """
    last = np.zeros(len(streams))
    some = queries.counts > 0
    last[some] = queries.times[queries.offsets[1:][some] - 1]
    reached = np.maximum(streams.horizon, last)
    cuts = partition.cuts(with_horizon(streams, reached))
    points, ends = [], np.zeros(queries.present.shape, np.int64)
    for series in range(len(streams)):
        own = queries.times[queries.offsets[series] : queries.offsets[series + 1]]
        inner = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
        union = np.union1d(inner[inner < last[series]], own) if len(own) else inner[:2]
        points.append(union if union[0] == 0.0 else np.concatenate([[0.0], union]))
        ends[series, : len(own)] = np.searchsorted(points[-1], own) - 1
    logsigs = embedding(with_horizon(streams, reached + 1.0), Partition.at(points, partial=True))
    assert logsigs.initial is not None
    spec = EmbeddingSpec(embedding.coordinates(streams.schema), partition)
    return logsigs.with_spec(logsigs.initial, spec), QueryIntervals(ends, queries.counts)


class KnownSquaredError(AbstractMeasure):
    """Squared error of the outputs whose target is known.

    >>> value, weight = KnownSquaredError()(jnp.array([1.0, 2.0]), jnp.array([3.0, UNKNOWN]))
    >>> float(value), float(weight)
    (2.0, 0.5)
    """

    name: str = eqx.field(default="mse", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """Average over all outputs; the weight is the fraction that is known."""
        known = target < UNKNOWN / 2
        error = jnp.where(known, prediction - jnp.where(known, target, 0), 0)
        return jnp.mean(jnp.square(error)), jnp.mean(known.astype(prediction.dtype))
