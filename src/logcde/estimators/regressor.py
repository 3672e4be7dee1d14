"""`LogCDERegressor`: one number for each series."""

from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from logcde.estimators import saving
from logcde.estimators._sklearn import check_array, column_or_1d
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.data import align_targets, check_targets_given, weights_of
from logcde.estimators.explaining import occlude
from logcde.streams import Streams


@saving.loadable
class LogCDERegressor(RegressorMixin, AbstractLogCDE):
    """Predicts a number for each series: `fit(X, y)`, then `predict` and `score`.

    `X` is as for `LogCDEClassifier`. `y` has one number for each series: in the order of the series, or as a mapping or
    pandas Series from their ids. Parameters and attributes are those of `AbstractLogCDE`.

    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 5, 2)), axis=1)
    >>> regressor = LogCDERegressor(random_state=0).fit(X, X[:, -1, 0])
    >>> regressor.predict(X[:3]).shape, regressor.score(X, X[:, -1, 0]) > 0.5
    ((3,), True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogCDERegressor":
        """Train on series `X` and their targets `y`, weighted by `sample_weight`."""
        check_targets_given(self, y)
        streams = self._read_training(X, unobserved=True)
        y = column_or_1d(align_targets(y, streams, self.flat_), warn=True)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        weight = weights_of(sample_weight, streams)
        some = weight > 0
        self._learn(self._task(streams[some], y[some], None, weight[some]))
        return self

    def predict(self, X: Any) -> Float64[np.ndarray, "series"]:
        """Return the predicted number of each series.

        Raises:
            NonFinitePredictionError: Some are not finite; the error has the others.
        """
        return self._predictions(self._read_further(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, R^2."""
        streams = self._read_further(X)
        targets = align_targets(y, streams, self.flat_)
        return float(r2_score(targets, self._predictions(streams), sample_weight=sample_weight))

    def explain(self, X: Any, parts: int = 4) -> Float64[np.ndarray, "series channel part"]:
        """Return what each channel contributes in each part of a series.

        That is the prediction, minus that without these observations. It costs a prediction for each channel and part.

        Args:
            X: The series.
            parts: Number of equal parts of each series.
        """
        return occlude(self._predictions, self._read_further(X), parts)

    def _predictions(self, streams: Streams) -> Float64[np.ndarray, "series"]:
        return self._outputs(streams, lambda outputs: outputs[:, 0])
