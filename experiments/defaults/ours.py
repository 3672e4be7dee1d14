"""Our estimators by name: as a person calls them who has read no more than the first page."""

from collections.abc import Callable
from typing import Any

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor
from logcde.estimators.learners import AbstractLearner, DeepSLiCE, LogSLiCE, WindowRidge, WindowTrees
from logcde.features import GaussianProcess

LEARNERS: dict[str, AbstractLearner] = {
    "window ridge": WindowRidge(),
    "smoothed window ridge": WindowRidge(smoother=GaussianProcess()),
    "window trees": WindowTrees(),
    "DeepSLiCE": DeepSLiCE(),
    "LogSLiCE": LogSLiCE(),
}
"""Learners that are measured one by one."""

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "logcde": lambda seed: LogCDEClassifier(random_state=seed),
    **{name: lambda seed, one=one: LogCDEClassifier(learner=one, random_state=seed) for name, one in LEARNERS.items()},
}
"""Classifiers for a seed; `predict_proba` gives probabilities."""

REGRESSORS: dict[str, Callable[[int], Any]] = {"logcde": lambda seed: LogCDERegressor(random_state=seed)}

FORECASTERS: dict[str, Callable[[int], Any]] = {"logcde": lambda seed: LogCDEForecaster(random_state=seed)}
