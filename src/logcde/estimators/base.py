"""Base classes of the estimators: reading of data and files; parameters, training and prediction."""

import abc
import dataclasses
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Num
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from logcde.errors import (
    ModelError,
    NonFinitePredictionError,
    OutOfRangeWarning,
    TrainingError,
)
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, validate_data
from logcde.estimators.choosing import (
    Choice,
    check_channel_count,
    check_observed,
    choose_origin,
    median_gap,
    warn_of_empty_series,
    warn_of_empty_windows,
    warn_of_unobserved,
)
from logcde.estimators.data import (
    Input,
    Layout,
    check_channels,
    check_samples,
    is_frame,
    last_times,
    read_input,
    with_horizon,
)
from logcde.estimators.learners import AbstractLearner, Auto, DirectForecast, Task
from logcde.estimators.learners.gradients import AbstractGradientLearner
from logcde.online import AbstractPredictor, predictor_of
from logcde.streams import NumericClock, Streams, TrainingRanges
from logcde.streams.faults import not_finite, plain_id
from logcde.train import Checkpoints


class AbstractSeriesEstimator(BaseEstimator):
    """Base class of estimators and transformers: they read series, from `X` in any form, and files.

    Attributes:
        schema_: Channels and clock of the training series.
        gap_: Median time between two events of a training series.
        ranges_: What the training series were like; series far outside of that are warned of.
        flat_: Whether `X` was an array (sample, feature), which are series of one channel.
        n_features_in_: Number of channels; of columns, if `X` was an array (sample, feature).
        feature_names_in_: Their names, if they have any.
    """

    table: Layout | None
    channels_first: bool | None

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a directory of JSON and safetensors, which `load` reads.

        An existing directory is replaced only with `overwrite=True`.
        """
        check_is_fitted(self)
        saving.save(self, path, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Any:
        """Read a fitted estimator of this class."""
        return saving.load_as(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self) or "features_" in vars(self)

    def _read_training(self, X: Any, *, fewest: int = 2, unobserved: bool = False) -> Streams:
        """Read the training series, and remember their form and schema for `_read_further`.

        Args:
            X: The series.
            fewest: How many there must be.
            unobserved: Whether there may be channels that are never observed.
        """
        if is_frame(X) and self.table is None:
            check_samples(X)
        found = read_input(
            X,
            self.table,
            None,
            lambda data: validate_data(self, data, ensure_all_finite="allow-nan"),
            self.channels_first,
        )
        streams = found.streams
        check_count(streams, fewest)
        check_channel_count(streams)
        self.flat_, self.schema_ = found.flat, streams.schema
        if not found.flat:
            validate_data(self, np.zeros((1, len(streams.schema.channels))))  # forgets feature names of an earlier fit
            if found.gap is None:
                self.feature_names_in_ = np.array(streams.schema.channels, object)
        self.gap_ = median_gap(streams) if found.gap is None else found.gap
        if not unobserved:
            check_observed(streams)
        ended = self._with_horizon(found)
        warn_of_empty_windows(ended)
        self.ranges_ = TrainingRanges.of(ended)
        return ended

    def _read_further(self, X: Any) -> Streams:
        """Read series to predict, with the channels of the training series; warn of those far outside of these."""
        streams = self._read_alike(X)
        self._warn_if_outside(streams, stacklevel=4)
        return streams

    def _read_alike(self, X: Any) -> Streams:
        """Read series with the channels of the training series."""
        check_is_fitted(self)
        schema = None if self.flat_ else self.schema_
        found = read_input(X, self.table, schema, self._check_samples, self.channels_first, further=True)
        check_channels(found.streams, self.schema_)
        clock = self.schema_.clock
        if isinstance(clock, NumericClock) and isinstance(found.streams.schema.clock, NumericClock):
            found = dataclasses.replace(found, streams=found.streams.on_clock(clock))
        warn_of_empty_series(found.streams)
        return self._with_horizon(found)

    def _warn_if_outside(
        self, streams: Streams, ends: Float64[np.ndarray, "series"] | None = None, stacklevel: int = 3
    ) -> None:
        """Warn of series far outside of those of training, each up to its end, by default its horizon."""
        ranges = self._ranges()
        outside = None if ranges is None else ranges.compare(streams, ends)
        if outside is not None:
            warnings.warn(OutOfRangeWarning(outside), stacklevel=stacklevel)

    def _ranges(self) -> TrainingRanges | None:
        """What the training series were like; None if the estimator was saved before it kept that."""
        return vars(self).get("ranges_")

    def _check_samples(self, data: Any) -> np.ndarray:
        if self.flat_:
            return validate_data(self, data, reset=False, ensure_all_finite="allow-nan")
        return check_array(data, ensure_all_finite="allow-nan", input_name="X")

    def _with_horizon(self, found: Input) -> Streams:
        """End the observation window one median gap after the last event, unless the input has horizons."""
        streams = found.streams
        return streams if found.ended else with_horizon(streams, last_times(streams) + self.gap_)


class AbstractLogCDE(AbstractSeriesEstimator):
    """Base class of the estimators that predict.

    Args:
        table: Layout of data frames, `Long(...)` or `Wide(...)`. Without it, rows of a data frame are samples.
        learner: What learns: `WindowRidge()`, `WindowTrees()`, `WindowBoosting()`, `DeepSLiCE()`, `LogSLiCE()`,
            `LogNCDE()`, a `Blend(...)` of several. By default `Auto()`, which compares a few and mixes those that help;
            forecasters take `DirectForecast()`, their default, or a network on log-signatures.
        checkpoints: Where networks save the state of training. An interrupted `fit` is resumed by calling it again
            with the same data and parameters, which include an integer `random_state`.
        channels_first: Whether arrays are (series, channel, step), as in aeon. By default they are not, and a warning
            says which axis is which if there are many more channels than steps; False is without it.
        verbose: Show progress bars.
        random_state: Integer seed, `RandomState`, or None, as in scikit-learn.

    Attributes:
        model_: The trained model, which maps streams to outputs.
        outputs_: Number of outputs: of classes, or of predicted values.
        choices_: Settings by name, each a `Choice` with `value` and `reason`: the comparison of learners, and what a
            learner chose from the data.
        history_: Evaluations during the training of a network; empty otherwise.
        n_iter_: Number of training steps of a network.
    """

    def __init__(
        self,
        *,
        table: Layout | None = None,
        learner: AbstractLearner | DirectForecast | None = None,
        checkpoints: Checkpoints | None = None,
        channels_first: bool | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.table = table
        self.learner = learner
        self.checkpoints = checkpoints
        self.channels_first = channels_first
        self.verbose = verbose
        self.random_state = random_state

    @abc.abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Train on series `X` and targets `y`."""

    @abc.abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of series."""

    def online(self, reorder: object = None) -> AbstractPredictor:
        """Return an online predictor of one series.

        It predicts numbers in the units of `y`; for a classifier the logits of `classes_`, whose softmax are the
        probabilities.

        Args:
            reorder: How late an event may arrive, as a time or duration; by default events arrive in order.
        """
        check_is_fitted(self)
        return predictor_of(self.model_, reorder=reorder, ranges=self._ranges())

    def _task(
        self,
        streams: Streams,
        targets: Num[np.ndarray, "series"],
        classes: int | None,
        weight: Float64[np.ndarray, "series"] | None = None,
    ) -> Task:
        """The task of the learner, with a seed drawn from `random_state`."""
        known = np.ones(len(streams)) if weight is None else weight * (len(weight) / weight.sum())
        return Task(streams, targets, classes, known, self.gap_, self._seed(), self.checkpoints, self.verbose)

    def _seed(self) -> int:
        """An integer seed drawn from `random_state`."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _learn(self, task: Task) -> None:
        """Train the given learner, or the default, and keep its model, choices and history."""
        learner = Auto() if self.learner is None else self.learner
        if not isinstance(learner, AbstractLearner):
            raise ModelError(
                f"learner={learner!r} is not a learner.",
                "Give an object of logcde.estimators such as Auto(), WindowRidge() or LogSLiCE(), or None.",
            )
        if not isinstance(learner, AbstractGradientLearner):  # which refuses such channels
            warn_of_unobserved(task.streams)
        learnt = learner.fit(task, held_out=False)
        self.model_, self.outputs_ = learnt.model, task.outputs
        self.choices_ = {"learner": Choice("learner", learner, "the default" if self.learner is None else "as given")}
        self.choices_ |= {**choose_origin(task.streams), **learnt.choices}
        self.history_, self.n_iter_ = learnt.history, learnt.steps

    def _outputs(
        self,
        streams: Streams,
        shown: Callable[[np.ndarray], Float64[np.ndarray, "series ..."]] = lambda outputs: outputs,
    ) -> Float64[np.ndarray, "series ..."]:
        """Compute what is shown of the outputs of the model, and refuse outputs that are not finite."""
        outputs = self.model_(streams)
        finite = np.asarray(np.isfinite(outputs).all(axis=1))
        found = shown(np.where(finite[:, None], outputs, 0.0))
        check_finite(found, finite, streams.ids)
        return found


def check_count(streams: Streams, fewest: int) -> None:
    """Refuse to train on fewer series."""
    if len(streams) < fewest:
        raise TrainingError(f"X has too few series (n_samples={len(streams)}).", f"Give at least {fewest}.")


def check_finite(
    predictions: Float64[np.ndarray, "series ..."], finite: Bool[np.ndarray, "series"], ids: np.ndarray
) -> None:
    """Refuse predictions that are not finite. The error has those of the other series."""
    if finite.all():
        return
    lost = [plain_id(one) for one in ids[~finite]]
    raise NonFinitePredictionError(
        not_finite(lost),
        "Leave out these series, or train on series like them; the error has the predictions for the others, in "
        "`predictions`.",
        series=lost,
        predictions=np.where(finite.reshape(-1, *[1] * (predictions.ndim - 1)), predictions, np.nan),
    )
