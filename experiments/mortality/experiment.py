"""Protocol 1: death in hospital from 48 hours in intensive care, on the five splits that papers share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.mortality import report
from experiments.mortality.cells import MortalityCell, MortalityConfig, Scored
from experiments.mortality.data import SHARES, problem, splits_file
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from logcde.datasets.physionet import where
from logcde.errors import DatasetError


class Mortality(AbstractExperiment[MortalityConfig, MortalityCell, Scored]):
    """Published splits, published attributes."""

    name: ClassVar[str] = "mortality"
    title: ClassVar[str] = "Death in hospital on the published splits (PhysioNet 2012)"
    config: ClassVar = MortalityConfig
    cell: ClassVar = MortalityCell
    outcome: ClassVar = Scored

    def cells(self, config: MortalityConfig, done: Mapping[MortalityCell, Scored]) -> Sequence[MortalityCell]:
        """Split by split, so that ensembles are complete early."""
        return [
            MortalityCell(
                variant=name, seed=seed, learner=variant.learner, attributes=variant.attributes, part=config.part
            )
            for number, seed in enumerate(config.seeds)
            for name, variant in config.variants.items()
            if number < (variant.repeats or len(config.seeds))
        ]

    def can_run(self, cell: MortalityCell) -> bool:
        """Whether stays and splits are available."""
        try:
            where()
            splits_file()
        except DatasetError:
            return False
        return True

    def run(self, cell: MortalityCell, tell: Tell, scratch: Path) -> Scored:
        """Train, and score complete and reduced stays."""
        given = problem(cell.seed, cell.part, cell.attributes)
        fitted = cell.learner.fit(given, cell.seed, tell, scratch)
        odds = np.concatenate([fitted.validation, fitted.test], axis=1).mean(axis=0)
        return Scored(
            odds=np.rint(1000 * odds.reshape(len(SHARES), -1)).astype(int).tolist(),
            died="".join(str(int(one)) for one in given.stays.died[given.split.validation]),
            members=len(fitted.test),
            train_seconds=round(fitted.seconds, 2),
        )

    def conclude(self, config: MortalityConfig, records: Mapping[MortalityCell, Record], folder: Path) -> Conclusion:
        """Write tables and judge the claims."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        if not cells:
            where()  # raises an error that says where to get the data, if they are missing
        return report.conclude(config, {cell: records[cell].outcome for cell in cells}, folder)


EXPERIMENT = Mortality()
