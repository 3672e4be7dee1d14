"""Configuration, cells and outcomes. Committed results depend on every field and default."""

from typing import Literal, TypeAlias

import msgspec

from experiments.runner.abstract import AbstractCell
from experiments.sepsis.data import Protocol
from experiments.sepsis.learners import Learner

Part: TypeAlias = Literal["test", "validation"]


class SepsisConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Learners on each split of each protocol, which has its number of splits.

    `repeats` says for a learner on how many splits of which protocols it is trained, if not on all. `stays` limits each
    part of a split, 0 for all. With the part "validation", validation stays are scored, and a tenth of the training
    stays takes their place.
    """

    seeds: tuple[int, ...]
    protocols: dict[Protocol, int]
    learners: dict[str, Learner]
    repeats: dict[str, dict[Protocol, int]] = {}
    stays: int = 0
    replayed: int = 200
    part: Part = "test"


class SepsisCell(AbstractCell, frozen=True, kw_only=True):
    """One learner on one split; `replayed` scored stays are served event by event."""

    protocol: Protocol
    learner: Learner
    stays: int
    replayed: int = 0
    part: Part = "test"

    @property
    def label(self) -> str:
        """Learner, protocol, seed and part."""
        return f"{self.variant}, {self.protocol}, split {self.seed}{'' if self.part == 'test' else ', validation'}"


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores over all hours of the scored stays.

    `utility` is at the threshold that is best on validation stays. Log loss, Brier score and the calibration error are
    of probabilities that were calibrated on these; the last is the mean difference between probability and frequency
    over ten groups of hours of equal number. `setting` is what the validation stays chose.
    """

    auroc: float
    auprc: float
    utility: float
    log_loss: float
    brier: float
    calibration_error: float
    train_seconds: float
    setting: str = ""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Stays served event by event, a prediction after each hour; the greatest difference to batch log odds.

    Seconds are those of the processor.
    """

    stays: int
    events: int
    observations: int
    predictions: int
    event_seconds: float
    prediction_seconds: float
    difference: float


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Scores by model, and the size of the scored part."""

    models: dict[str, Scores]
    hours: int
    warned: int
    served: Served | None = None
