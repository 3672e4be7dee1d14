"""Learners and their settings, validated by folds of the training parts. Test parts are not read."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.choices import report
from experiments.choices.cells import ChoicesCell, ChoicesConfig, Validated
from experiments.choices.variants import VARIANTS
from experiments.defaults import data
from experiments.defaults.cells import Task
from experiments.defaults.experiment import ONE_CORE
from experiments.defaults.scores import classification_scores, rmse
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from logcde.estimators import LogCDEClassifier, LogCDERegressor
from logcde.streams import Streams

FOLDS = 3
BLOCKS = 4


class Choices(AbstractExperiment[ChoicesConfig, ChoicesCell, Validated]):
    """The study behind the defaults."""

    name: ClassVar[str] = "choices"
    title: ClassVar[str] = "Where the defaults come from"
    config: ClassVar = ChoicesConfig
    cell: ClassVar = ChoicesCell
    outcome: ClassVar = Validated
    timings: ClassVar[frozenset[str]] = frozenset({"fit_seconds"})
    environment: ClassVar[Mapping[str, str]] = ONE_CORE

    def cells(self, config: ChoicesConfig, done: Mapping[ChoicesCell, Validated]) -> Sequence[ChoicesCell]:
        """All parts in order, seed by seed."""
        found = {
            ChoicesCell(variant=variant, seed=seed, task=part.task, dataset=dataset, share=share): None
            for part in config.grid
            for seed in config.seeds
            for variant in part.variants
            for dataset in part.datasets
            for share in part.shares
        }
        return list(found)

    def can_run(self, cell: ChoicesCell) -> bool:
        """Whether the data set is available."""
        return data.is_available(cell.dataset)

    def run(self, cell: ChoicesCell, tell: Tell, scratch: Path) -> Validated:
        """Predict every training series by learners that did not see it."""
        return TASKS[cell.task](cell, tell)

    def conclude(self, config: ChoicesConfig, records: Mapping[ChoicesCell, Record], folder: Path) -> Conclusion:
        """Write the tables."""
        cells = self.cells(config, {})
        return report.conclude(cells, {cell: records[cell].outcome for cell in cells if cell in records})


def classification(cell: ChoicesCell, tell: Tell) -> Validated:
    """Stratified folds of the series of an archive set."""
    given = data.labelled(cell.dataset).dropped(cell.share, cell.seed)
    streams = Streams.from_dense(given.train.swapaxes(1, 2))
    return _classified(cell, streams, given.train_labels, tell)


def sepsis(cell: ChoicesCell, tell: Tell) -> Validated:
    """Stratified folds of the stays."""
    given = data.sepsis()
    streams = Streams.from_dense(given.train, channels=list(given.channels), horizon=float(data.DAY))
    return _classified(cell, streams, given.train_targets.astype(np.int64), tell)


def regression(cell: ChoicesCell, tell: Tell) -> Validated:
    """Consecutive blocks of windows, because neighbouring windows overlap."""
    given = data.regression(cell.share, cell.seed)
    streams = Streams.from_dense(given.train, channels=list(given.channels), horizon=float(data.REGRESSION_HOURS))
    found, began = np.empty(len(streams)), time.process_time()
    for number, rest in enumerate(np.array_split(np.arange(len(streams)), BLOCKS)):
        training = np.setdiff1d(np.arange(len(streams)), rest)
        regressor = LogCDERegressor(learner=VARIANTS[cell.variant], random_state=cell.seed)
        regressor.fit(streams[training], given.train_targets[training])
        found[rest] = regressor.predict(streams[rest])
        tell((number + 1) / BLOCKS)
    seconds = time.process_time() - began
    return Validated(
        scores={"RMSE": rmse(found, given.train_targets)}, series=len(streams), fit_seconds=round(seconds, 3)
    )


TASKS: Mapping[Task, Callable[[ChoicesCell, Tell], Validated]] = MappingProxyType(
    {"classification": classification, "sepsis": sepsis, "regression": regression}
)


def _classified(cell: ChoicesCell, streams: Streams, labels: np.ndarray, tell: Tell) -> Validated:
    found, began = np.empty((len(labels), labels.max() + 1)), time.process_time()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=cell.seed)
    for number, (training, rest) in enumerate(folds.split(labels, labels)):
        classifier = LogCDEClassifier(learner=VARIANTS[cell.variant], random_state=cell.seed)
        classifier.fit(streams[training], labels[training])
        found[rest] = classifier.predict_proba(streams[rest])
        tell((number + 1) / FOLDS)
    seconds = time.process_time() - began
    scores = classification_scores(found, labels, labels)
    return Validated(scores=scores, series=len(labels), fit_seconds=round(seconds, 3))


EXPERIMENT = Choices()
