"""`LogCDEForecaster`: values at query times, each from earlier observations only.

For networks, query times are added to the cuts of the partition, so that an interval ends at each of them.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Num
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from logcde.embedding import Embedding, EmbeddingSpec, LogSignatures, SparseLogSignatures
from logcde.errors import ModelError, TrainingError
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array
from logcde.estimators.base import AbstractLogCDE, check_count, check_finite
from logcde.estimators.choosing import GIVEN, Choice, check_observed, choose_origin, warn_of_unobserved
from logcde.estimators.data import (
    align_targets,
    axes_of,
    is_frame,
    last_times,
    layout_of_targets,
    read_input,
    with_horizon,
)
from logcde.estimators.explaining import occlude
from logcde.estimators.learners import AbstractNetwork, Auto, DirectForecast, LogSLiCE
from logcde.estimators.learners.questions import Questions
from logcde.estimators.queries import Queries, align_streams, queries_at, queries_of_targets
from logcde.estimators.training import with_target_units
from logcde.features.recent import Grouped
from logcde.models import PerInterval
from logcde.models.forecast import ForecastModel
from logcde.models.series import EmbeddedModel, QueryIntervals
from logcde.streams import Partition, Streams
from logcde.streams.partition import at_times
from logcde.streams.ragged import owners
from logcde.train.losses import AbstractMeasure, WeightedValue

MOST_COVERED = 0.99
"""Coverage for which quantiles of errors are kept."""
UNKNOWN = 1e30
"""Stands for an unknown target in the arrays of training, which hold no NaN."""


@saving.loadable
class LogCDEForecaster(AbstractLogCDE):
    """Predicts values at query times from strictly earlier observations: `fit(X, y)`, then `predict` and `score`.

    `X` is as for `LogCDEClassifier`. `y` is one of

    - `Streams` or a data frame of targets with stamps, whose series have the ids of those of `X`; stamps may lie far
      beyond the last observation,
    - an array with one row for each series: targets at its horizon,
    - None: the targets are later values of the channels of `X`,
    - `Questions` with their answers: values of channels at any times, each after a prefix of a series. Channels that no
      question asks for, such as those that describe a patient, are read and not forecast.

    One long series without `y` is enough: parts of it are forecast from what was before them.

    Parameters and attributes are those of `AbstractLogCDE`. The default learner, also `Auto()`, is `DirectForecast()`,
    which learns the change against the last value of the channel that has the name of the target; it answers times as
    far ahead as those of training, and beyond these like the furthest. With `LogSLiCE()` or `LogNCDE()` and y=None the
    targets are the next values only; intervals end at each query time, so that their predictions depend slightly on the
    other query times of the same call.

    Attributes:
        asked_: The number of each target in questions: of the channel, or of the target of `y`.

    >>> rng = np.random.default_rng(0)
    >>> X = np.sin(np.arange(12) + rng.uniform(0, 6, size=(40, 1)))[..., None]
    >>> forecaster = LogCDEForecaster(random_state=0).fit(X)
    >>> forecaster.predict(X, at=[12.0, 15.0]).shape, forecaster.score(X) > 0.9
    ((40, 2, 1), True)
    """

    def fit(self, X: Any, y: Any = None) -> "LogCDEForecaster":
        """Train on series `X` and targets `y` at their stamps."""
        direct = not isinstance(self.learner, AbstractNetwork)
        streams = self._read_training(X, fewest=1 if direct and y is None else 2, unobserved=direct and y is not None)
        learner, reason = self.learner, GIVEN
        if learner is None or learner == Auto():
            network_needed = streams.schema.continuous or streams.schema.terms
            learner, reason = LogSLiCE() if network_needed else DirectForecast(), "the default"
        if isinstance(learner, DirectForecast):
            warn_of_unobserved(streams)
            self._fit_directly(learner, streams, y)
        elif isinstance(learner, AbstractNetwork):
            check_observed(streams)
            check_count(streams, 2)
            self._fit_network(learner, streams, self._read_targets(y, streams))
        else:
            raise ModelError(
                f"learner={learner!r} predicts once for each series, and cannot forecast.",
                "Give DirectForecast(), LogSLiCE(), LogNCDE(), or None for the default.",
            )
        self.choices_ = {"learner": Choice("learner", learner, reason), **choose_origin(streams), **self.choices_}
        return self

    def predict(self, X: Any, at: Any = None) -> Float64[np.ndarray, "series time output"]:
        """Predict at query times.

        Args:
            X: The series.
            at: Query times of all series as stamps, a list of them for each series, or a `Partition`, whose interval
                ends are the query times; by default the horizon of each series.

        Returns:
            Predictions, NaN where a series has fewer query times than others.

        Raises:
            NonFinitePredictionError: Some are not finite; the error has the others.
        """
        streams = self._read_alike(X)
        queries = queries_at(at, streams)
        self._warn_if_outside(streams, _ends(streams, queries))
        return self._predictions(streams, queries)

    def answer(self, X: Any, questions: Questions) -> Float64[np.ndarray, "question"]:
        """Answer any number of questions at once, each from what was observed before its `until`.

        Args:
            X: The series.
            questions: What is asked, about targets by number: of the channel, unless `y` named other targets.

        >>> X = np.sin(np.arange(12) + np.random.default_rng(0).uniform(0, 6, size=(40, 1)))[..., None]
        >>> forecaster = LogCDEForecaster(random_state=0).fit(X)
        >>> asked = Questions.about(series=[0, 0, 7], until=[6.0, 9.0, 9.0], time=[8.0, 9.5, 14.0], target=0)
        >>> low, high = forecaster.interval(X, asked, coverage=0.8).T
        >>> forecaster.answer(X, asked).shape, bool((low <= high).all())
        ((3,), True)
        """
        model, streams, asked = self._asked(X, questions)
        return model.answer(Grouped.of(streams), *asked)

    def interval(self, X: Any, questions: Questions, coverage: float = 0.9) -> Float64[np.ndarray, "question 2"]:
        """Return where the answers lie with a probability of `coverage`: the least and the greatest of each.

        The ends are quantiles of the errors on series left out in `fit`, for each target and time ahead, so that no
        distribution is assumed. They hold on average over series like those of training.

        Args:
            X: The series.
            questions: What is asked.
            coverage: The share of the values that are to be inside, from 0 to 0.99.
        """
        if not 0 < coverage <= MOST_COVERED:
            raise ModelError(
                f"An interval cannot be expected to hold {coverage!r} of the values.", "Give 0.9, for example."
            )
        model, streams, asked = self._asked(X, questions)
        return model.intervals(Grouped.of(streams), *asked, coverage)

    def _asked(
        self, X: Any, questions: Questions
    ) -> tuple[ForecastModel, Streams, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """The model, the series, and questions about targets as the model numbers them."""
        streams = self._read_further(X)
        if not isinstance(self.model_, ForecastModel):
            raise ModelError("A network answers at query times of whole series only.", "Train DirectForecast().")
        _check_series(questions, len(streams))
        place = np.searchsorted(self.asked_, questions.target).clip(max=len(self.asked_) - 1)
        if not np.array_equal(self.asked_[place], questions.target):
            raise ModelError("A question is about a target that no training question was about.", "Leave it out.")
        return self.model_, streams, (questions.series, questions.until, questions.time, place)

    def score(self, X: Any, y: Any = None) -> float:
        """Return R^2 over the known targets, averaged over outputs. For y=None these are next values."""
        streams = self._read_alike(X)
        queries = self._read_targets(y, streams)
        self._warn_if_outside(streams, _ends(streams, queries))
        assert queries.targets is not None
        targets, known = queries.targets, np.isfinite(queries.targets)
        predicted = self._predictions(streams, queries, known)[queries.present]
        return float(np.mean([r2_score(targets[k, n], predicted[k, n]) for n, k in enumerate(known.T)]))

    def explain(
        self, X: Any, at: Any = None, *, output: int = 0, parts: int = 4
    ) -> Float64[np.ndarray, "series channel part"]:
        """Return what each channel contributes in each part of a series to one forecast.

        That is the forecast, minus that without these observations. It costs a forecast for each channel and part.

        Args:
            X: The series.
            at: A time for all series, or a list of one time for each; by default the horizon of each series.
            output: Number of the forecast target.
            parts: Number of equal parts of each series.
        """
        streams = self._read_alike(X)
        queries = queries_at(None if at is None else np.broadcast_to(np.asarray(at), len(streams))[:, None], streams)
        self._warn_if_outside(streams, _ends(streams, queries))
        if not 0 <= output < self.outputs_:
            raise ModelError(f"There is no target number {output}.", f"Give a number from 0 to {self.outputs_ - 1}.")
        return occlude(lambda some: self._predictions(some, queries)[:, 0, output], streams, parts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _fit_directly(self, learner: DirectForecast, streams: Streams, y: Any) -> None:
        seed = self._seed()
        if isinstance(y, Questions):
            _check_series(y, len(streams))
            inside = (y.target >= 0) & (y.target < len(streams.schema.channels))
            if not len(y) or not (inside & np.isfinite(y.value)).all():
                raise TrainingError(
                    "Training questions are about channels of X by number, and their answers are known.",
                    "Give `value=` and at least one question.",
                )
            self.asked_, target = np.unique(y.target, return_inverse=True)
            names = named = tuple(streams.schema.channels[number] for number in self.asked_)
            asked = dataclasses.replace(y, target=target)
        elif y is None:
            names = named = streams.schema.channels
            asked = learner.cuts.questions(streams, seed)
        else:
            queries = self._read_targets(y, streams)
            assert queries.targets is not None
            named = queries.names
            names = named or tuple(f"y{number + 1}" for number in range(queries.targets.shape[1]))
            place, target = np.nonzero(np.isfinite(queries.targets))
            times, series = queries.times[place], owners(queries.offsets)[place]
            asked = Questions(series, times, times, target, queries.targets[place, target])
        if not isinstance(y, Questions):
            self.asked_ = np.arange(len(names))
        _check_learnable(np.bincount(asked.target, minlength=len(names)).astype(bool))
        self._note_ahead(streams, asked.series, asked.until, asked.time)
        own = {name: number for number, name in enumerate(streams.schema.channels)}
        channels = [own.get(name) if named else None for name in names]
        self.model_, self.choices_ = learner.fit_questions(streams, asked, channels, names, seed)
        self.outputs_, self.history_, self.n_iter_ = len(names), (), 0

    def _fit_network(self, network: AbstractNetwork, streams: Streams, queries: Queries) -> None:
        assert queries.targets is not None
        known = np.isfinite(queries.targets)
        _check_learnable(np.asarray(known.any(axis=0)))
        place = np.flatnonzero(known.any(axis=1))
        times = queries.times[place]
        self._note_ahead(streams, owners(queries.offsets)[place], times, times)
        chosen = network.choose(streams, self.gap_)
        centre, spread = np.nanmean(queries.targets, axis=0), np.nanstd(queries.targets, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        targets = np.where(known, (queries.targets - centre) / spread, UNKNOWN)
        rows = np.nan_to_num(queries.by_series(targets))
        sparse = chosen.choices["sparse"].value
        logsigs, intervals = embed_queries(chosen.embedding, chosen.partition, streams, queries, sparse)
        classes, outputs = np.zeros(len(streams), np.int64), targets.shape[1]
        task = self._task(streams, classes, None)
        sequence, result, more = network.train(
            logsigs, intervals, rows, outputs, KnownSquaredError(), task, PerInterval, classes
        )
        sequence = with_target_units(sequence, centre, spread)
        self.outputs_ = outputs
        self.model_ = EmbeddedModel(sequence, chosen.embedding, chosen.partition, sparse)
        self.choices_ = {**chosen.choices, **more}
        self.history_, self.n_iter_ = result.history, result.summary.steps

    def _note_ahead(self, streams: Streams, series: np.ndarray, until: np.ndarray, time: np.ndarray) -> None:
        """Note how far ahead of the latest event before `until` the times of training are."""
        after, order = self.ranges_.after, np.argsort(series, kind="stable")
        bounds = np.searchsorted(series[order], np.arange(len(streams) + 1))
        for one in range(len(streams)):
            own, asked = (
                streams.times[streams.offsets[one] : streams.offsets[one + 1]],
                order[bounds[one] : bounds[one + 1]],
            )
            place = np.searchsorted(own, until[asked]) - 1
            if len(own):
                after = max(after, float((time[asked] - own[place])[place >= 0].max(initial=0.0)))
        self.ranges_ = dataclasses.replace(self.ranges_, after=after)

    def _predictions(
        self, streams: Streams, queries: Queries, asked: Bool[np.ndarray, "query output"] | None = None
    ) -> Float64[np.ndarray, "series time output"]:
        """Predictions at query times; NaN for outputs that are not asked for, if the model can leave them out."""
        model = self.model_
        if isinstance(model, ForecastModel):
            found = model.answers(Grouped.of(streams), owners(queries.offsets), queries.times, asked)
            lost = ~np.isfinite(found if asked is None else np.where(asked, found, 0.0)).all(axis=1)
            found = queries.by_series(found)
            counts = np.bincount(owners(queries.offsets)[lost], minlength=len(streams))
            check_finite(found, counts == 0, streams.ids)
            return found
        found = model.outputs(*embed_queries(model.embedding, model.partition, streams, queries, model.sparse))
        finite = np.all(np.isfinite(found).all(axis=2) | ~queries.present, axis=1)
        check_finite(np.where(queries.present[..., None], found, np.nan), np.asarray(finite), streams.ids)
        return np.where(queries.present[..., None], found, np.nan)

    def _read_targets(self, y: Any, streams: Streams) -> Queries:
        """Read targets in any of the forms; their stamps are the query times."""
        if y is None:
            return queries_of_targets(streams)
        if is_frame(y) and self.table is not None:
            targets = layout_of_targets(self.table, streams).read(y, None)
            return queries_of_targets(align_streams(targets, streams))
        if isinstance(y, Streams) or axes_of(y) == 3 or (isinstance(y, list) and isinstance(y[0], Streams)):
            targets = read_input(y, None, None, np.asarray, self.channels_first or False).streams
            return queries_of_targets(align_streams(targets, streams))
        rows = check_array(align_targets(y, streams, self.flat_), ensure_2d=False, dtype=np.float64, input_name="y")
        return Queries(np.arange(len(streams) + 1), streams.horizon, rows.reshape(len(streams), -1))


def _ends(streams: Streams, queries: Queries) -> Float64[np.ndarray, "series"]:
    """The last query time of each series, or its last event if that is later."""
    ends, some = last_times(streams), queries.counts > 0
    ends[some] = np.maximum(ends[some], queries.times[queries.offsets[1:][some] - 1])
    return ends


def _check_series(questions: Questions, count: int) -> None:
    outside = questions.series[(questions.series < 0) | (questions.series >= count)]
    if len(outside):
        raise ModelError(
            f"A question is about series {outside[0]}, but there are {count} series.",
            "Series are numbered from 0 in the order of X.",
        )


def _check_learnable(known: Bool[np.ndarray, "output"]) -> None:
    if not known.all():
        raise TrainingError(
            "A target is never known after the start of a series, so nothing can be learnt about it.",
            "Give targets with stamps after 0; y=None needs a series with two observations of each channel.",
        )


def embed_queries(
    embedding: Embedding, partition: Partition, streams: Streams, queries: Queries, sparse: bool = False
) -> tuple[LogSignatures | SparseLogSignatures, QueryIntervals]:
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
    logsigs = embedding(with_horizon(streams, reached + 1.0), at_times(points), sparse=sparse)
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
