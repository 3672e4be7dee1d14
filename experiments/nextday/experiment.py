"""Protocol 2: what is observed in hours 24 to 48 in intensive care, forecast from the first 24 hours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from experiments.nextday import data, report
from experiments.nextday.cells import Errors, Forecasted, NextDayCell, NextDayConfig, Online
from experiments.nextday.learners import last_values
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from logcde.datasets.physionet import where
from logcde.errors import DatasetError
from logcde.estimators import Questions
from logcde.features.recent import Grouped

HOURS_KNOWN = (3.0, 6.0, 12.0, 18.0, 24.0, 30.0, 36.0, 42.0)
HOURS_AHEAD = (1.0, 2.0, 4.0, 8.0, 16.0, 24.0)
FOLLOWED = 600
"""Test stays that are asked hour by hour."""


class NextDay(AbstractExperiment[NextDayConfig, NextDayCell, Forecasted]):
    """The protocol of t-PatchGNN, on the split of its code and on further ones."""

    name: ClassVar[str] = "nextday"
    title: ClassVar[str] = "The next 24 hours in intensive care (PhysioNet 2012)"
    config: ClassVar = NextDayConfig
    cell: ClassVar = NextDayCell
    outcome: ClassVar = Forecasted

    def cells(self, config: NextDayConfig, done: Mapping[NextDayCell, Forecasted]) -> Sequence[NextDayCell]:
        """Split by split."""
        return [
            NextDayCell(
                variant=name,
                seed=seed,
                learner=variant.learner,
                stays=config.stays,
                part=config.part,
                online=variant.online and number == 0,
            )
            for number, seed in enumerate(config.seeds)
            for name, variant in config.variants.items()
            if number < (variant.repeats or len(config.seeds))
        ]

    def can_run(self, cell: NextDayCell) -> bool:
        """Whether the stays are available."""
        try:
            where()
        except DatasetError:
            return False
        return True

    def run(self, cell: NextDayCell, tell: Tell, scratch: Path) -> Forecasted:
        """Train on the seen part, or for validation on the training part, and forecast."""
        observed = data.observed()
        ids = observed.streams.ids[: cell.stays or None]
        split = data.split(ids, cell.seed)
        known, tested = (split.seen, split.test) if cell.part == "test" else (split.train, split.validation)
        scale = data.Scale.of(observed, split.seen)
        asked = observed.questions(tested, data.KNOWN)
        found = cell.learner.run(observed, known, asked, tested, scale, cell.seed, lambda part: tell(0.9 * part))
        covered = None
        if found.interval is not None:
            inside = (found.interval[:, 0] <= asked.value) & (asked.value <= found.interval[:, 1])
            covered = means(inside, asked.target, observed.variables).tolist()
        return Forecasted(
            models={
                name: Errors(
                    **{
                        size: np.round(means(error, asked.target, observed.variables), 9).tolist()
                        for size, error in sizes(values - asked.value, asked, scale).items()
                    }
                )
                for name, values in found.forecasts.items()
            },
            variables=list(observed.streams.schema.channels[: observed.variables]),
            counts=np.bincount(asked.target, minlength=observed.variables).tolist(),
            train_seconds=round(found.seconds, 2),
            covered=covered,
            online=hour_by_hour(observed, tested[:FOLLOWED], found.fitted, scale) if cell.online else None,
        )

    def conclude(self, config: NextDayConfig, records: Mapping[NextDayCell, Record], folder: Path) -> Conclusion:
        """Write tables and figures and judge the claims."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        if not cells:
            where()  # raises an error that says where to get the data, if they are missing
        return report.conclude(config, {cell: records[cell].outcome for cell in cells}, folder)


def sizes(error: np.ndarray, asked: Questions, scale: data.Scale) -> dict[str, np.ndarray]:
    """Squared and absolute errors in units of each variable's range."""
    scaled = error / scale.range[asked.target]
    return {"mse": np.square(scaled), "mae": np.abs(scaled)}


def means(values: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """The mean of each group, 0 for one without values.

    >>> means(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 2]), 3)
    array([2., 0., 5.])
    """
    return np.bincount(group, values, count) / np.maximum(np.bincount(group, minlength=count), 1)


def hour_by_hour(observed: data.Observed, stays: np.ndarray, fitted: Any, scale: data.Scale) -> Online:
    """Errors after each number of hours known, averaged over the variables that are asked for."""
    grouped, streams = Grouped.of(observed.streams), observed.streams[stays]
    tables: dict[str, list[list[float]]] = {name: [] for name in ("mse", "mae", "last_mse", "last_mae")}
    for known in HOURS_KNOWN:
        asked = observed.questions(stays, known)
        some = (asked.time < known + data.AHEAD) & np.isfinite(last := last_values(grouped, stays, asked, observed))
        asked, last = asked[some], last[some]
        part = np.searchsorted(HOURS_AHEAD, asked.time - known)
        cell = np.minimum(part, len(HOURS_AHEAD) - 1) * observed.variables + asked.target
        total = len(HOURS_AHEAD) * observed.variables
        counts = np.bincount(cell, minlength=total).reshape(len(HOURS_AHEAD), -1)
        for prefix, found in (("", fitted.answer(streams, asked)), ("last_", last)):
            for name, error in sizes(found - asked.value, asked, scale).items():
                table = means(error, cell, total).reshape(len(HOURS_AHEAD), -1).sum(axis=1)
                tables[prefix + name].append((table / np.maximum((counts > 0).sum(axis=1), 1)).tolist())
    return Online(known=list(HOURS_KNOWN), ahead=list(HOURS_AHEAD), stays=len(stays), **tables)


EXPERIMENT = NextDay()
