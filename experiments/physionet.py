"""Death in hospital from 48 hours of intensive care records, where every variable has a clock of its own.

Not in the paper, which tests irregularity by dropping points from regular series: here the data are irregular and
asynchronous by themselves, and what is measured, and how often, is informative.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import msgspec
import numpy as np

from experiments import physionet_report
from experiments.abstract import AbstractCell, AbstractExperiment, Record, Tell
from experiments.claims import Conclusion
from experiments.physionet_boosting import Boosting
from experiments.physionet_live import Explained, Hours, Replay, explain, hour_by_hour, replay
from experiments.physionet_models import Fitted, Given, Neural, PathModel
from logcde.datasets import split
from logcde.datasets.physionet import Stays, physionet2012, where
from logcde.errors import DatasetError
from logcde.train.calibration import temperature_of

Learner: TypeAlias = Neural | Boosting
TRAIN, VALIDATION = 0.8, 0.1
REPLAYED = 1000


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model and how it is trained. `kind` says which table it belongs to; `repeats`: on so many splits, 0 for all."""

    learner: Learner
    kind: Literal["model", "part", "ablation"] = "model"
    note: str = ""
    repeats: int = 0


class PhysioNetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Variants, each on one split for each seed; those in `live` are also used online, on the first split.

    The first of `live` is replayed event by event, and one of its predictions is explained.
    """

    seeds: tuple[int, ...]
    variants: dict[str, Variant]
    live: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.live:
            variant = self.variants.get(name)
            if variant is None:
                raise ValueError(f"{name!r} is to be used online, but there is no such variant")
            learner = variant.learner
            if not isinstance(learner, Neural) or not all(isinstance(model, PathModel) for model in learner.models):
                raise ValueError(f"{name!r} is to be used online, but is not made of models on the embedding")


class PhysioNetCell(AbstractCell, frozen=True, kw_only=True):
    """One variant on one split, or in use on it (`live`)."""

    learner: Learner
    live: Literal["", "hours", "hours and events"] = ""

    @property
    def label(self) -> str:
        """Variant and split."""
        return f"{self.variant}{', in use' if self.live else ''}, split {self.seed}"


class Clipping(msgspec.Struct, frozen=True, array_like=True):
    """Observations of a channel in training stays, and those beyond its limits."""

    channel: str
    observations: int
    below: int
    above: int


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A variant in use."""

    hours: Hours
    probabilities: list[float]
    died: list[int]
    replay: Replay | None = None
    explained: Explained | None = None
    clipped: list[Clipping] = []


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """Areas under the curves on test stays, of the ensemble and of each member, and what probabilities are worth.

    `log_loss` and `brier` are of probabilities whose temperature was fitted to validation stays.
    """

    auroc: float
    auprc: float
    validation_auroc: float
    validation_auprc: float
    members: list[tuple[float, float]]
    temperature: float
    log_loss: float
    brier: float
    train_seconds: float
    parameters: int
    live: Live | None = None


class PhysioNet2012(AbstractExperiment[PhysioNetConfig, PhysioNetCell, Tested]):
    """Not of the paper: the case that it was written for."""

    name: ClassVar[str] = "physionet2012"
    title: ClassVar[str] = "Death in hospital from 48 hours of intensive care records (PhysioNet 2012)"
    config: ClassVar = PhysioNetConfig
    cell: ClassVar = PhysioNetCell
    outcome: ClassVar = Tested

    def cells(self, config: PhysioNetConfig, done: Mapping[PhysioNetCell, Tested]) -> Sequence[PhysioNetCell]:
        """Variant by variant, the models before their ablations."""
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
        """Whether the stays are there."""
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
        """Tables, figures and claims."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        if not cells:
            where()  # says where to get the data, if that is why nothing was run
        return physionet_report.conclude(config, {cell: records[cell].outcome for cell in cells}, folder)


@lru_cache(maxsize=1)
def loaded() -> Stays:
    """The stays, read once for all cells of a process."""
    return physionet2012()


def scored(given: Given, fitted: Fitted, live: Live | None = None) -> Tested:
    """Scores of what was fitted."""
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
    """That which validation stays ask for."""
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
