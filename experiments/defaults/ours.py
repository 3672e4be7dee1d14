"""Our estimators by name: as a person calls them who has read no more than the first page."""

from collections.abc import Callable
from typing import Any

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "logcde": lambda seed: LogCDEClassifier(random_state=seed),
    # Further learners go here, such as
    # "window ridge": lambda seed: LogCDEClassifier(learner=WindowRidge(), random_state=seed),
}
"""Classifiers for a seed; `predict_proba` gives probabilities."""

REGRESSORS: dict[str, Callable[[int], Any]] = {
    "logcde": lambda seed: LogCDERegressor(random_state=seed),
    # Further learners go here.
}

FORECASTERS: dict[str, Callable[[int], Any]] = {
    "logcde": lambda seed: LogCDEForecaster(random_state=seed),
    # Further learners go here.
}
