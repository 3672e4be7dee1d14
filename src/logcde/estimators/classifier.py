"""`LogCDEClassifier`: one class for each series."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from logcde.errors import TrainingError
from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, column_or_1d
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.data import align_targets, check_targets_given
from logcde.estimators.training import with_temperature
from logcde.models import Mean
from logcde.streams import Streams
from logcde.streams.schema import listed
from logcde.train import losses
from logcde.train.calibration import temperature_of


@saving.loadable
class LogCDEClassifier(ClassifierMixin, AbstractLogCDE):
    """Classifies series: `fit(X, y)`, then `predict`, `predict_proba` and `score`.

    `X` is one of

    - `Streams`,
    - an array (series, step, channel) with NaN where nothing is observed,
    - a list of arrays (step, channel) of any lengths,
    - a data frame, whose layout is the parameter `table`,
    - an array (sample, feature), which are series of one channel.

    `y` has one class for each series: in the order of the series, or as a mapping or pandas Series from their ids.
    Parameters and further attributes are those of `AbstractLogCDE`.

    Attributes:
        classes_: Class labels, in the order of probabilities.
        temperature_: Calibration temperature: `fit` divides the logits by it, so that probabilities match frequencies
            on the held-out series. It changes no predicted class, and is 1 if no series were held out.

    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 5, 2)), axis=1)
    >>> y = np.where(X[:, -1, 0] > 0, "up", "down")
    >>> classifier = LogCDEClassifier(max_iter=100, random_state=0).fit(X, y)
    >>> classifier.predict(X).shape, classifier.classes_.tolist(), classifier.score(X, y) > 0.8
    ((40,), ['down', 'up'], True)
    """

    readout = Mean

    def fit(self, X: Any, y: Any) -> "LogCDEClassifier":
        """Train on series `X` and their classes `y`."""
        check_targets_given(self, y)
        streams = self._read_training(X)
        y = column_or_1d(align_targets(y, streams, self.flat_), warn=True)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise TrainingError(
                f"All {len(y)} series are of one class, {self.classes_.tolist()[0]!r}: there is nothing to learn.",
                "Give series of at least two classes.",
            )
        self._choose(streams)
        logsigs = self.embedding_(streams, self.partition_)
        measures = losses.cross_entropy, (losses.accuracy,)
        held_out = self._train(logsigs, None, codes, len(self.classes_), *measures, codes)
        self.temperature_ = 1.0
        if held_out is not None:
            logits = self._outputs(logsigs[held_out], None, streams.ids[held_out])
            self.temperature_ = temperature_of(logits, codes[held_out])
            self.model_ = with_temperature(self.model_, self.temperature_)
        return self

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "series class"]:
        """Return the probability of each of `classes_`."""
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

    def _probabilities(self, streams: Streams) -> Float64[np.ndarray, "series class"]:
        logits = self._outputs(self.embedding_(streams, self.partition_), None, streams.ids)
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)
