"""Learners of scikit-learn on tables, for the tasks that are not classification of whole series."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.defaults.data import FORECAST
from experiments.defaults.summaries import forward_filled, observed_summaries

LAGS = 48
COLUMNS = tuple(FORECAST.values())
ALPHAS = np.logspace(-1, 5, 13)


class OnTable:
    """A learner of scikit-learn on a table of the windows, without columns that no training window has."""

    def __init__(self, table: Callable[[np.ndarray], np.ndarray], learner: Any) -> None:
        self.table, self.learner = table, learner

    def fit(self, windows: np.ndarray, targets: np.ndarray) -> None:
        """Train on windows (series, hour, channel)."""
        rows = self.table(windows)
        self.known = np.isfinite(rows).any(axis=0)
        self.learner.fit(rows[:, self.known], targets)

    def predict(self, windows: np.ndarray) -> np.ndarray:
        """Predict numbers."""
        return self.learner.predict(self.table(windows)[:, self.known])

    def predict_proba(self, windows: np.ndarray) -> np.ndarray:
        """Predict probabilities."""
        return self.learner.predict_proba(self.table(windows)[:, self.known])


class LastValue:
    """Predicts the last observation of one channel; where there is none, the mean of those of the training windows."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, windows: np.ndarray, targets: np.ndarray) -> None:
        """Keep the mean of the last observations."""
        self.mean = float(np.nanmean(self._last(windows)))

    def predict(self, windows: np.ndarray) -> np.ndarray:
        """The last observations."""
        last = self._last(windows)
        return np.where(np.isfinite(last), last, self.mean)

    def _last(self, windows: np.ndarray) -> np.ndarray:
        return forward_filled(windows)[:, -1, self.column]


class ForEachHorizon:
    """One regressor for each hour ahead and each forecast channel, on the windows where its target is known.

    `build` gets the column of the channel.
    """

    def __init__(self, build: Callable[[int], Any]) -> None:
        self.build = build

    def fit(self, windows: np.ndarray, targets: np.ndarray) -> None:
        """Train on targets (series, hour ahead, channel)."""
        self.fitted = {}
        for place in np.ndindex(targets.shape[1:]):
            known = np.isfinite(targets[(slice(None), *place)])
            self.fitted[place] = self.build(COLUMNS[place[1]])
            self.fitted[place].fit(windows[known], targets[(known, *place)])
        self.shape = targets.shape[1:]

    def predict(self, windows: np.ndarray) -> np.ndarray:
        """Predict all targets."""
        found = np.empty((len(windows), *self.shape))
        for place, learner in self.fitted.items():
            found[(slice(None), *place)] = learner.predict(windows)
        return found


def lags(windows: np.ndarray) -> np.ndarray:
    """The last 48 hours of all channels, forward-filled, in one row."""
    return forward_filled(windows)[:, -LAGS:].reshape(len(windows), -1)


def _imputed(learner: Any) -> Any:
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), learner)


def _boosted(build: Any, seed: int) -> Any:
    """Boosted trees that stop at the least loss on a tenth of the training windows."""
    return build(
        learning_rate=0.05,
        max_iter=300,
        max_leaf_nodes=15,
        min_samples_leaf=40,
        l2_regularization=1.0,
        early_stopping=True,
        random_state=seed,
    )


def _logistic() -> Any:
    """Logistic regression whose penalty is selected by the log loss of five folds."""
    options: dict[str, Any] = {"Cs": np.logspace(-4, 0, 9), "l1_ratios": (0.0,), "use_legacy_attributes": False}
    return LogisticRegressionCV(cv=5, scoring="neg_log_loss", max_iter=2000, **options)


SEPSIS_TABLES: dict[str, Callable[[int], Any]] = {
    "boosting": lambda seed: OnTable(observed_summaries, _boosted(HistGradientBoostingClassifier, seed)),
    "logistic": lambda seed: OnTable(observed_summaries, _imputed(_logistic())),
}
"""Classifiers of stays for a seed."""

REGRESSION_TABLES: dict[str, Callable[[int], Any]] = {
    "last value": lambda seed: LastValue(),
    "ridge": lambda seed: OnTable(lags, _imputed(RidgeCV(ALPHAS))),
    "boosting": lambda seed: OnTable(lags, _boosted(HistGradientBoostingRegressor, seed)),
}
"""Regressors of windows for a seed."""

FORECAST_TABLES: dict[str, Callable[[int], Any]] = {
    "last value": lambda seed: ForEachHorizon(LastValue),
    "boosting": lambda seed: ForEachHorizon(
        lambda column: OnTable(lags, _boosted(HistGradientBoostingRegressor, seed))
    ),
}
"""Forecasters for a seed: one learner for each target."""
