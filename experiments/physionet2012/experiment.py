"""In-hospital mortality from 48 hours of intensive care records, where every variable is measured at its own times.

Not in the paper, which drops points from regular series: these data are irregular and asynchronous, and which variables
are measured, and how often, is informative.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from experiments.physionet2012 import report
from experiments.physionet2012.cells import Clipping, Live, PhysioNetCell, PhysioNetConfig, Tested
from experiments.physionet2012.models import Fitted, Given, Neural, PathModel
from experiments.physionet2012.online import explain, hour_by_hour, replay
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from logcde.datasets import split
from logcde.datasets.physionet import Stays, physionet2012, where
from logcde.errors import DatasetError
from logcde.train.calibration import temperature_of

TRAIN, VALIDATION = 0.8, 0.1
REPLAYED = 1000


class PhysioNet2012(AbstractExperiment[PhysioNetConfig, PhysioNetCell, Tested]):
    """An experiment beyond the paper, on irregular data."""

    name: ClassVar[str] = "physionet2012"
    title: ClassVar[str] = "Death in hospital from 48 hours of intensive care records (PhysioNet 2012)"
    config: ClassVar = PhysioNetConfig
    cell: ClassVar = PhysioNetCell
    outcome: ClassVar = Tested
    timings: ClassVar[frozenset[str]] = frozenset({"train_seconds", "event_seconds", "prediction_seconds"})

    def cells(self, config: PhysioNetConfig, done: Mapping[PhysioNetCell, Tested]) -> Sequence[PhysioNetCell]:
        """Variants in order, then their use online."""
        cells = [
            PhysioNetCell(variant=name, seed=seed, learner=variant.learner)
            for name, variant in config.variants.items()
            for seed in config.seeds[: variant.repeats or None]
        ]
        cells += [
            PhysioNetCell(
                variant=name,
                seed=config.seeds[0],
                learner=config.variants[name].learner,
                live="hours" if number else "hours and events",
            )
            for number, name in enumerate(config.live)
        ]
        return cells

    def can_run(self, cell: PhysioNetCell) -> bool:
        """Whether the stays are available."""
        try:
            where()
        except DatasetError:
            return False
        return True

    def run(self, cell: PhysioNetCell, tell: Tell, scratch: Path) -> Tested:
        """Split, train and test."""
        stays = loaded()
        given = Given(stays, split(len(stays), cell.seed, TRAIN, VALIDATION))
        part = 0.6 if cell.live else 1.0
        fitted = cell.learner.fit(given, cell.seed, lambda done: tell(part * done), scratch)
        live = _live(cell, given, fitted, lambda done: tell(part + (1 - part) * done)) if cell.live else None
        return scored(given, fitted, live)

    def conclude(self, config: PhysioNetConfig, records: Mapping[PhysioNetCell, Record], folder: Path) -> Conclusion:
        """Write tables and figures and judge the claims."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        if not cells:
            where()  # raises an error that says where to get the data, if they are missing
        return report.conclude(config, {cell: records[cell].outcome for cell in cells}, folder)


@lru_cache(maxsize=1)
def loaded() -> Stays:
    """The stays, read once in a process."""
    return physionet2012()


def scored(given: Given, fitted: Fitted, live: Live | None = None) -> Tested:
    """Score an ensemble on the test stays."""
    from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

    died = given.stays.died
    validation, test = died[given.split.validation], died[given.split.test]
    known, found = fitted.validation.mean(axis=0), fitted.test.mean(axis=0)
    temperature = _temperature(given, fitted)
    probable = 1 / (1 + np.exp(-found / temperature))
    return Tested(
        auroc=float(roc_auc_score(test, found)),
        auprc=float(average_precision_score(test, found)),
        validation_auroc=float(roc_auc_score(validation, known)),
        validation_auprc=float(average_precision_score(validation, known)),
        members=[(float(roc_auc_score(test, one)), float(average_precision_score(test, one))) for one in fitted.test],
        temperature=temperature,
        log_loss=float(log_loss(test, probable)),
        brier=float(brier_score_loss(test, probable)),
        train_seconds=round(fitted.seconds, 2),
        parameters=fitted.parameters,
        live=live,
    )


def _temperature(given: Given, fitted: Fitted) -> float:
    """Calibration temperature, fitted on the validation stays."""
    known = fitted.validation.mean(axis=0)
    logits = np.stack([np.zeros_like(known), known], axis=1)
    return temperature_of(logits, given.stays.died[given.split.validation].astype(np.int64))


def _live(cell: PhysioNetCell, given: Given, fitted: Fitted, tell: Tell) -> Live:
    assert isinstance(cell.learner, Neural)
    described = cell.learner.models[0]
    assert isinstance(described, PathModel)
    model, test = fitted.ensemble(), given.split.test
    hours, odds = hour_by_hour(model, described.embedding(given), given, lambda done: tell(0.5 * done))
    died = given.stays.died[test]
    temperature = _temperature(given, fitted)
    live = Live(
        hours=hours,
        probabilities=[round(float(one), 4) for one in 1 / (1 + np.exp(-odds[-1] / temperature))],
        died=died.astype(int).tolist(),
    )
    if cell.live == "hours":
        return live
    which = test[:REPLAYED]
    worst = test[np.argmax(np.where(died, odds[-1], -np.inf))]
    return msgspec.structs.replace(
        live,
        replay=replay(model, given, which, odds[:, : len(which)], lambda done: tell(0.5 + 0.5 * done)),
        explained=explain(model, given, int(worst), odds[-1]),
        clipped=[
            Clipping(one.channel, one.observations, one.below, one.above)
            for one in given.scales.clipped(given.stays.streams[given.split.train])
        ],
    )


EXPERIMENT = PhysioNet2012()
