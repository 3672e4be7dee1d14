"""`AbstractLogCDE`: parameters of all estimators, reading of data, training, and prediction."""

import abc
import os
from typing import Any

import numpy as np
from jaxtyping import Float64, Num
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from logcde.errors import ModelError, Remedy, StreamError, TrainingError, Where
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, validate_data
from logcde.estimators.choosing import Choice, check_channel_count, median_gap
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
from logcde.estimators.learners import AbstractLearner, Auto, Task
from logcde.online import AbstractPredictor, predictor_of
from logcde.streams import Streams
from logcde.streams.faults import name
from logcde.streams.schema import listed
from logcde.train import Checkpoints


class AbstractLogCDE(BaseEstimator):
    """Base class of the estimators.

    Args:
        table: Layout of data frames, `Long(...)` or `Wide(...)`. Without it, rows of a data frame are samples.
        learner: What learns: `WindowRidge()`, `WindowTrees()`, `WindowBoosting()`, `LogSLiCE()`, `LogNCDE()`, a
            `Blend(...)` of several. By default `Auto()`, which compares a few and mixes those that help.
        checkpoints: Where networks save the state of training. An interrupted `fit` is resumed by calling it again
            with the same data and parameters, which include an integer `random_state`.
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
        learner: AbstractLearner | None = None,
        checkpoints: Checkpoints | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.table = table
        self.learner = learner
        self.checkpoints = checkpoints
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
        return predictor_of(self.model_, reorder=reorder)

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
        return "model_" in vars(self)

    def _read_training(self, X: Any) -> Streams:
        """Read the training series, and remember their form and schema for `_read_further`."""
        if is_frame(X) and self.table is None:
            check_samples(X)
        found = read_input(X, self.table, None, lambda data: validate_data(self, data, ensure_all_finite="allow-nan"))
        streams = found.streams
        if len(streams) < 2:
            raise TrainingError(f"X has too few series (n_samples={len(streams)}).", "Give at least two.")
        check_channel_count(streams)
        self.flat_, self.schema_ = found.flat, streams.schema
        if not found.flat:
            validate_data(self, np.zeros((1, len(streams.schema.channels))))  # forgets feature names of an earlier fit
            if found.gap is None:
                self.feature_names_in_ = np.array(streams.schema.channels, object)
        self.gap_ = median_gap(streams) if found.gap is None else found.gap
        never = np.bincount(streams.channel, minlength=len(streams.schema.channels)) == 0
        if never.any():
            names = [name for name, none in zip(streams.schema.channels, never, strict=True) if none]
            raise StreamError(
                f"{listed(names)} is never observed in the {len(streams)} training series, so nothing can be learnt "
                "about it.",
                Remedy.LEAVE_CHANNELS,
            )
        return self._with_horizon(found)

    def _read_further(self, X: Any) -> Streams:
        """Read series to predict, with the channels of the training series."""
        check_is_fitted(self)
        schema = None if self.flat_ else self.schema_
        found = read_input(X, self.table, schema, self._check_samples)
        check_channels(found.streams, self.schema_)
        return self._with_horizon(found)

    def _check_samples(self, data: Any) -> np.ndarray:
        if self.flat_:
            return validate_data(self, data, reset=False, ensure_all_finite="allow-nan")
        return check_array(data, ensure_all_finite="allow-nan", input_name="X")

    def _with_horizon(self, found: Input) -> Streams:
        """End the observation window one median gap after the last event, unless the input has horizons."""
        streams = found.streams
        return streams if found.ended else with_horizon(streams, last_times(streams) + self.gap_)

    def _task(
        self,
        streams: Streams,
        targets: Num[np.ndarray, "series"],
        classes: int | None,
        weight: Float64[np.ndarray, "series"] | None = None,
    ) -> Task:
        """The task of the learner, with a seed drawn from `random_state`."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        known = np.ones(len(streams)) if weight is None else weight * (len(weight) / weight.sum())
        return Task(streams, targets, classes, known, self.gap_, seed, self.checkpoints, self.verbose)

    def _learn(self, task: Task) -> None:
        """Train the given learner, or the default, and keep its model, choices and history."""
        learner = Auto() if self.learner is None else self.learner
        if not isinstance(learner, AbstractLearner):
            raise ModelError(
                f"learner={learner!r} is not a learner.",
                "Give an object of logcde.estimators such as Auto(), WindowRidge() or LogSLiCE(), or None.",
            )
        learnt = learner.fit(task, held_out=False)
        self.model_, self.outputs_ = learnt.model, task.outputs
        self.choices_ = {"learner": Choice("learner", learner, "the default" if self.learner is None else "as given")}
        self.choices_ |= learnt.choices
        self.history_, self.n_iter_ = learnt.history, learnt.steps

    def _outputs(self, streams: Streams) -> Float64[np.ndarray, "series output"]:
        """Compute the outputs of the model, and refuse those that are not finite."""
        found = self.model_(streams)
        check_finite(found, streams.ids)
        return found


def check_finite(found: Float64[np.ndarray, "series ..."], ids: np.ndarray) -> None:
    """Refuse predictions that are not finite."""
    finite = np.isfinite(found.reshape(len(found), -1)).all(axis=1)
    if not finite.all():
        series = ids[~finite][0]
        raise ModelError(
            f"The prediction for series {name(series)} is not finite. It is probably much longer than the training "
            "series, or has much larger changes.",
            "Train on series like it, or shorten it.",
            where=Where(series=series),
        )
