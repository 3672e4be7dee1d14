"""`LogCDERegressor`: one number for each series."""

from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.checking import check_array, column_or_1d
from logcde.estimators.data import aligned, required
from logcde.estimators.training import in_units
from logcde.models import Mean
from logcde.streams import Streams
from logcde.train import losses


class LogCDERegressor(RegressorMixin, AbstractLogCDE):
    """Predicts a number for each series: `fit(X, y)`, then `predict` and `score`. `X` as for `LogCDEClassifier`.

    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 5, 2)), axis=1)
    >>> regressor = LogCDERegressor(max_iter=100, random_state=0).fit(X, X[:, -1, 0])
    >>> regressor.predict(X[:3]).shape, regressor.score(X, X[:, -1, 0]) > 0.5
    ((3,), True)
    """

    reading = Mean

    def fit(self, X: Any, y: Any) -> "LogCDERegressor":
        """Learn numbers from series."""
        required(self, y)
        streams = self._begin(X)
        y = column_or_1d(aligned(y, streams, self.flat_), warn=True)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        self._choose(streams)
        centre, spread = y.mean(), y.std() or 1.0
        logsigs = self.embedding_(streams, self.partition_)
        targets = (y - centre) / spread
        self._train(logsigs, None, targets, 1, losses.mse, (), np.zeros(len(y), np.int64))
        self.model_ = in_units(self.model_, np.array([centre]), np.array([spread]))
        return self

    def predict(self, X: Any) -> Float64[np.ndarray, "series"]:
        """A number for every series."""
        return self._numbers(self._again(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, R^2."""
        streams = self._again(X)
        return float(r2_score(aligned(y, streams, self.flat_), self._numbers(streams), sample_weight=sample_weight))

    def _numbers(self, streams: Streams) -> Float64[np.ndarray, "series"]:
        return self._outputs(self.embedding_(streams, self.partition_), None, streams.ids)[:, 0]
