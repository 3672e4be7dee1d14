"""Runs one method on one task: data, fit, prediction on the test part, scores."""

import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax
import msgspec
import numpy as np

from experiments.defaults import data, grud, peers
from experiments.defaults.cells import DefaultsCell, Measured, Task
from experiments.defaults.ours import CLASSIFIERS, FORECASTERS, REGRESSORS
from experiments.defaults.scores import classification_scores, rare_scores, rmse
from experiments.defaults.summaries import interpolated
from experiments.defaults.tables import FORECAST_TABLES, REGRESSION_TABLES, SEPSIS_TABLES
from logcde.streams import Streams

Predict: TypeAlias = Literal["probabilities", "numbers"]


def classification(cell: DefaultsCell) -> Measured:
    """Classify whole series of the archive."""
    given = data.labelled(cell.dataset).dropped(cell.share, cell.seed)
    if cell.variant in CLASSIFIERS:
        found = _ours(
            CLASSIFIERS[cell.variant](cell.seed),
            given.train.swapaxes(1, 2),
            given.train_labels,
            given.test.swapaxes(1, 2),
            "probabilities",
            again=cell.seed == 0,
        )
    elif cell.variant == "grud":
        found = grud.classify(given, cell.seed)
    else:
        train, test = interpolated(given.train), interpolated(given.test)
        found = peers.classify(cell.variant, cell.seed, train, given.train_labels, test)
    scores = classification_scores(found.predictions, given.test_labels, given.train_labels)
    return _measured(found, scores, len(given.train), len(given.test))


def sepsis(cell: DefaultsCell) -> Measured:
    """Predict sepsis after the first day from the first day."""
    given = data.sepsis()
    labels, truth = given.train_targets.astype(np.int64), given.test_targets.astype(np.int64)
    if cell.variant in CLASSIFIERS:
        found = _ours(CLASSIFIERS[cell.variant](cell.seed), *_streams(given, labels), "probabilities")
    else:
        found = _timed(SEPSIS_TABLES[cell.variant](cell.seed), given.train, labels, given.test, "probabilities")
    return _measured(found, rare_scores(found.predictions, truth, labels), len(labels), len(truth))


def regression(cell: DefaultsCell) -> Measured:
    """Predict the mean of Beijing's pm2.5 over the next hours."""
    given = data.regression(cell.share, cell.seed)
    if cell.variant in REGRESSORS:
        found = _ours(REGRESSORS[cell.variant](cell.seed), *_streams(given, given.train_targets), "numbers")
    else:
        found = _timed(
            REGRESSION_TABLES[cell.variant](cell.seed), given.train, given.train_targets, given.test, "numbers"
        )
    scores = {"RMSE": rmse(found.predictions, given.test_targets)}
    return _measured(found, scores, len(given.train), len(given.test))


def forecasting(cell: DefaultsCell) -> Measured:
    """Predict Beijing's pm2.5 and temperature some hours ahead."""
    given = data.forecasting(cell.share, cell.seed)
    if cell.variant in FORECASTERS:
        asked = data.FORECAST_HOURS - 1.0 + np.array(data.AHEAD)
        train, _, test = _streams(given, given.train_targets)
        known = np.flatnonzero(np.isfinite(given.train_targets).any(axis=(1, 2)))
        targets = Streams.from_dense(given.train_targets[known], asked, list(data.FORECAST), ids=train.ids[known])
        forecaster = _At(FORECASTERS[cell.variant](cell.seed), asked)
        found = _ours(forecaster, train[known], targets, test, "numbers")
    else:
        found = _timed(
            FORECAST_TABLES[cell.variant](cell.seed), given.train, given.train_targets, given.test, "numbers"
        )
    scores = {
        f"{channel} after {hours} h": rmse(found.predictions[:, row, column], given.test_targets[:, row, column])
        for row, hours in enumerate(data.AHEAD)
        for column, channel in enumerate(data.FORECAST)
    }
    return _measured(found, scores, len(given.train), len(given.test))


TASKS: dict[Task, Callable[[DefaultsCell], Measured]] = {
    "classification": classification,
    "sepsis": sepsis,
    "regression": regression,
    "forecasting": forecasting,
}


class _At:
    """A forecaster that predicts at fixed times."""

    def __init__(self, forecaster: Any, asked: np.ndarray) -> None:
        self.forecaster, self.asked = forecaster, asked

    def fit(self, series: Streams, targets: Streams) -> None:
        self.forecaster.fit(series, targets)

    def predict(self, series: Streams) -> np.ndarray:
        return self.forecaster.predict(series, at=self.asked)


def _streams(given: data.Windows, targets: Any) -> tuple[Streams, Any, Streams]:
    """Training windows as streams, their targets, and test windows; one hour is one unit of time."""
    train, test = (
        Streams.from_dense(part, channels=list(given.channels), horizon=float(part.shape[1]))
        for part in (given.train, given.test)
    )
    return train, targets, test


def _ours(estimator: Any, train: Any, targets: Any, test: Any, predict: Predict, *, again: bool = True) -> peers.Answer:
    """Fit an estimator of ours with compiling; `again`: and a second time without."""
    jax.clear_caches()
    first = _timed(estimator, train, targets, test, predict)
    if not again:
        return first
    second = _timed(estimator, train, targets, test, predict)
    return msgspec.structs.replace(first, refit_seconds=second.fit_seconds)


def _timed(learner: Any, train: Any, targets: Any, test: Any, predict: Predict) -> peers.Answer:
    began = time.process_time()
    learner.fit(train, targets)
    fitted = time.process_time()
    predictions = learner.predict_proba(test) if predict == "probabilities" else learner.predict(test)
    ended = time.process_time()
    return peers.Answer(
        predictions=np.asarray(predictions, np.float64), fit_seconds=fitted - began, predict_seconds=ended - fitted
    )


def _measured(found: peers.Answer, scores: dict[str, float], train: int, test: int) -> Measured:
    return Measured(
        scores=scores,
        train=train,
        test=test,
        fit_seconds=round(found.fit_seconds, 3),
        predict_seconds=round(found.predict_seconds, 3),
        refit_seconds=None if found.refit_seconds is None else round(found.refit_seconds, 3),
        versions=found.versions,
    )
