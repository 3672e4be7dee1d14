"""`LogCDEClassifier`: one class for each series."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from logcde.errors import TrainingError
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, column_or_1d
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.data import Layout, align_targets, check_targets_given, weights_of
from logcde.estimators.explaining import occlude
from logcde.estimators.learners import AbstractLearner
from logcde.models.heads import log_softmax
from logcde.streams import Streams
from logcde.streams.schema import listed
from logcde.train import Checkpoints


@saving.loadable
class LogCDEClassifier(ClassifierMixin, AbstractLogCDE):
    """Classifies series: `fit(X, y)`, then `predict`, `predict_proba` and `score`.

    `X` is one of

    - `Streams`,
    - an array (series, step, channel) with NaN where nothing is observed; with `channels_first=True` one (series,
      channel, step),
    - a list of arrays (step, channel) of any lengths, or with `channels_first=True` of arrays (channel, step),
    - a data frame, whose layout is the parameter `table`,
    - an array (sample, feature), which are series of one channel.

    `y` has one class for each series: in the order of the series, or as a mapping or pandas Series from their ids.
    Further parameters and attributes are those of `AbstractLogCDE`.

    Args:
        class_weight: "balanced" to give all classes the same weight in sum, or a mapping from classes to weights.

    Attributes:
        classes_: Class labels, in the order of probabilities.

    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 5, 2)), axis=1)
    >>> y = np.where(X[:, -1, 0] > 0, "up", "down")
    >>> classifier = LogCDEClassifier(random_state=0).fit(X, y)
    >>> classifier.predict(X).shape, classifier.classes_.tolist(), classifier.score(X, y) > 0.8
    ((40,), ['down', 'up'], True)
    """

    def __init__(
        self,
        *,
        table: Layout | None = None,
        learner: AbstractLearner | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        checkpoints: Checkpoints | None = None,
        channels_first: bool | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            table=table,
            learner=learner,
            checkpoints=checkpoints,
            channels_first=channels_first,
            verbose=verbose,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogCDEClassifier":
        """Train on series `X` and their classes `y`, weighted by `sample_weight`."""
        check_targets_given(self, y)
        streams = self._read_training(X, unobserved=True)
        y = column_or_1d(align_targets(y, streams, self.flat_), warn=True)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(y)
        weight = weights_of(sample_weight, streams)
        streams, y, weight = streams[weight > 0], y[weight > 0], weight[weight > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise TrainingError(
                f"All {len(y)} series are of one class, {self.classes_.tolist()[0]!r}: there is nothing to learn.",
                "Give series of at least two classes.",
            )
        weight = weight * compute_sample_weight(self.class_weight, y)
        self._learn(self._task(streams, codes, len(self.classes_), weight))
        return self

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "series class"]:
        """Return the probability of each of `classes_`.

        Raises:
            NonFinitePredictionError: Some outputs are not finite; the error has the probabilities of the others.
        """
        return self._probabilities(self._read_further(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each series."""
        most = np.argmax(self._probabilities(self._read_further(X)), axis=1)
        return self.classes_[most]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy. A class without training series counts as an error, and is warned of."""
        streams = self._read_further(X)
        y = column_or_1d(align_targets(y, streams, self.flat_))
        unknown = [one for one in np.unique(y).tolist() if one not in set(self.classes_.tolist())]
        if unknown:
            warnings.warn(
                f"y has the classes {listed(unknown)}, which had no training series. The classifier predicts only "
                f"{listed(self.classes_.tolist())}.",
                UserWarning,
                stacklevel=2,
            )
        predicted = self.classes_[np.argmax(self._probabilities(streams), axis=1)]
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def explain(self, X: Any, parts: int = 4) -> Float64[np.ndarray, "series channel part"]:
        """Return what each channel contributes in each part of a series.

        That is the log-probability of the predicted class, minus that without these observations. It costs one
        prediction for each channel and part.

        Args:
            X: The series.
            parts: Number of equal parts of each series.
        """
        streams = self._read_further(X)
        chosen = np.argmax(self._outputs(streams), axis=1)[:, None]
        return occlude(
            lambda some: np.take_along_axis(log_softmax(self._outputs(some)), chosen, axis=1)[:, 0], streams, parts
        )

    def _probabilities(self, streams: Streams) -> Float64[np.ndarray, "series class"]:
        return self._outputs(streams, lambda logits: np.exp(log_softmax(logits)))
