"""`LogCDEClassifier`: one class for each series."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from logcde.errors import TrainingError
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.checking import check_array, column_or_1d
from logcde.estimators.data import aligned, required
from logcde.estimators.training import cooled
from logcde.models import Mean
from logcde.streams import Streams
from logcde.streams.schema import listed
from logcde.train import losses
from logcde.train.calibration import temperature_of


class LogCDEClassifier(ClassifierMixin, AbstractLogCDE):
    """Classifies series: `fit(X, y)`, then `predict`, `predict_proba` and `score`.

    `X` are `Streams`, an array (series, step, channel) with NaN where nothing is observed, a list of arrays
    (step, channel), a data frame that `table` says how to read, or samples x features, which are series of one channel.
    `y` has a class for each series, in their order, or as a mapping or pandas Series from their ids.

    Trained classifiers are often too sure of themselves. If series were held out for validation, the logits are divided
    by `temperature_`, fitted to these, which makes probabilities honest and changes no predicted class; else it is 1.

    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 5, 2)), axis=1)
    >>> y = np.where(X[:, -1, 0] > 0, "up", "down")
    >>> classifier = LogCDEClassifier(max_iter=100, random_state=0).fit(X, y)
    >>> classifier.predict(X).shape, classifier.classes_.tolist(), classifier.score(X, y) > 0.8
    ((40,), ['down', 'up'], True)
    """

    reading = Mean

    def fit(self, X: Any, y: Any) -> "LogCDEClassifier":
        """Learn classes from series."""
        required(self, y)
        streams = self._begin(X)
        y = column_or_1d(aligned(y, streams, self.flat_), warn=True)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise TrainingError(
                f"All {len(y)} series are of one class, {self.classes_.tolist()[0]!r}. There is nothing to learn; give "
                "series of at least two classes."
            )
        self._choose(streams)
        logsigs = self.embedding_(streams, self.partition_)
        measures = losses.cross_entropy, (losses.accuracy,)
        held_out = self._train(logsigs, None, codes, len(self.classes_), *measures, codes)
        self.temperature_ = 1.0
        if held_out is not None:
            logits = self._outputs(logsigs[held_out], None, streams.ids[held_out])
            self.temperature_ = temperature_of(logits, codes[held_out])
            self.model_ = cooled(self.model_, self.temperature_)
        return self

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "series class"]:
        """The probability of every one of `classes_`."""
        return self._probabilities(self._again(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every series."""
        most = np.argmax(self._probabilities(self._again(X)), axis=1)
        return self.classes_[most]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of series whose class is predicted. A class that was not there in training is never right."""
        streams = self._again(X)
        y = column_or_1d(aligned(y, streams, self.flat_))
        unknown = [one for one in np.unique(y).tolist() if one not in set(self.classes_.tolist())]
        if unknown:
            warnings.warn(
                f"y has the classes {listed(unknown)}, of which the classifier has seen no series in training: it only "
                f"knows {listed(self.classes_.tolist())}.",
                UserWarning,
                stacklevel=2,
            )
        predicted = self.classes_[np.argmax(self._probabilities(streams), axis=1)]
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _probabilities(self, streams: Streams) -> Float64[np.ndarray, "series class"]:
        logits = self._outputs(self.embedding_(streams, self.partition_), None, streams.ids)
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)
