"""Protocol 3: sepsis hour by hour, from one hospital to another and in random splits of both."""

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from experiments.sepsis import data, report
from experiments.sepsis.cells import Scores, SepsisCell, SepsisConfig, Served, Watched
from experiments.sepsis.learners import WITHIN
from experiments.sepsis.utility import best_threshold, normalised, utilities
from logcde.errors import DatasetError
from logcde.models.forecast import ForecastModel
from logcde.online import predictor_of
from logcde.streams.ragged import offsets_of

GROUPS = 10


class Sepsis(AbstractExperiment[SepsisConfig, SepsisCell, Watched]):
    """Early warning of sepsis, PhysioNet 2019."""

    name: ClassVar[str] = "sepsis"
    title: ClassVar[str] = "Sepsis hour by hour (PhysioNet 2019)"
    config: ClassVar = SepsisConfig
    cell: ClassVar = SepsisCell
    outcome: ClassVar = Watched
    timings: ClassVar[frozenset[str]] = frozenset({"train_seconds", "event_seconds", "prediction_seconds"})

    def cells(self, config: SepsisConfig, done: Mapping[SepsisCell, Watched]) -> Sequence[SepsisCell]:
        """Learner by learner; of the first learner on the first split, a model is served."""
        cells = []
        for name, learner in config.learners.items():
            for protocol, count in config.repeats.get(name, config.protocols).items():
                for seed in config.seeds[:count]:
                    cell = SepsisCell(
                        variant=name,
                        seed=seed,
                        protocol=protocol,
                        learner=learner,
                        stays=config.stays,
                        replayed=0 if cells else config.replayed,
                        part=config.part,
                    )
                    cells.append(cell)
        return cells

    def can_run(self, cell: SepsisCell) -> bool:
        """Whether the stays are available."""
        try:
            data.where()
        except DatasetError:
            return False
        return True

    def run(self, cell: SepsisCell, tell: Tell, scratch: Path) -> Watched:
        """Train, and score every model of the learner."""
        given = data.hospitals()
        split = data.split(given.hospital, cell.protocol, cell.seed, cell.stays)
        if cell.part == "validation":
            split = data.inner(split, cell.seed)
        told = cell.learner.fit(given, split, cell.seed, lambda part: tell(0.9 * part), scratch)
        served = None
        for one in told.values():
            if one.model is not None and cell.replayed:
                served = serve(one.model, given, split.test[: cell.replayed], one.found)
        label = given.hours_of(split.test)[2]
        models = {name: score(given, split, one) for name, one in told.items()}
        return Watched(models=models, hours=len(label), warned=int(label.sum()), served=served)

    def conclude(self, config: SepsisConfig, records: Mapping[SepsisCell, Record], folder: Path) -> Conclusion:
        """Write tables and judge the claims."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        if not cells:
            data.where()  # raises an error that says where to get the data, if they are missing
        return report.conclude(config, {cell: records[cell].outcome for cell in cells}, folder)


def score(given: data.Hospitals, split: data.Split, told: data.Told) -> Scores:
    """Choose threshold and calibration on validation stays, and score the test stays."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

    (label, _rows, utility), (truth, hours, worth) = (
        hours_and_worth(given, part) for part in (split.validation, split.test)
    )
    known, found = told.known, told.found
    calibrated = LogisticRegression(C=np.inf).fit(known[:, None], label)
    likely = calibrated.predict_proba(found[:, None])[:, 1]
    order = np.array_split(np.argsort(likely), GROUPS)
    return Scores(
        auroc=float(roc_auc_score(truth, found)),
        auprc=float(average_precision_score(truth, found)),
        utility=normalised(worth, truth, hours, found > best_threshold(known, utility)),
        log_loss=float(log_loss(truth, likely)),
        brier=float(brier_score_loss(truth, likely)),
        calibration_error=float(np.mean([abs(likely[group].mean() - truth[group].mean()) for group in order])),
        train_seconds=round(told.seconds, 1),
        setting=told.setting,
    )


def hours_and_worth(given: data.Hospitals, stays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, where the hours of each stay begin, and utilities of silence and warnings."""
    label, rows = given.hours_of(stays)[2], offsets_of(np.diff(given.rows)[stays])
    return label, rows, np.concatenate([utilities(label[a:b]) for a, b in itertools.pairwise(rows)])


def serve(model: ForecastModel, given: data.Hospitals, stays: np.ndarray, odds: np.ndarray) -> Served:
    """Feed stays event by event to online predictors, and predict after every hour."""
    fresh, streams = predictor_of(model), given.streams[stays]
    rows = offsets_of(np.diff(given.rows)[stays])
    observing = predicting = difference = 0.0
    for stay in range(len(stays)):
        predictor, event = fresh.begin(), int(streams.offsets[stay])
        for hour in range(int(rows[stay + 1] - rows[stay])):
            began = time.thread_time()
            while event < streams.offsets[stay + 1] and streams.times[event] <= hour:
                seen = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
                values = np.full(len(streams.schema.channels), np.nan)
                values[streams.channel[seen]] = streams.value[seen]
                predictor.observe(float(streams.times[event]), values)
                event += 1
            observed = time.thread_time()
            found = float(predictor.predict(at=hour + WITHIN)[0])
            predicting += time.thread_time() - observed
            observing += observed - began
            difference = max(difference, abs(found - float(odds[rows[stay] + hour])))
    return Served(
        stays=len(stays),
        events=len(streams.times),
        observations=len(streams.value),
        predictions=int(rows[-1]),
        event_seconds=round(observing, 3),
        prediction_seconds=round(predicting, 3),
        difference=difference,
    )


EXPERIMENT = Sepsis()
