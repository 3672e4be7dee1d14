"""Configuration, cells and outcomes. Committed results depend on every field and default."""

import msgspec

from experiments.runner.abstract import AbstractCell
from experiments.sepsis.data import Protocol
from experiments.sepsis.learners import Boosting


class SepsisConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Protocols with the number of splits of each. `stays` limits each part of a split, 0 for all."""

    seeds: tuple[int, ...]
    protocols: dict[Protocol, int]
    boosting: Boosting = Boosting()
    stays: int = 0
    replayed: int = 200


class SepsisCell(AbstractCell, frozen=True, kw_only=True):
    """All models on one split; `variant` is the protocol. `replayed` test stays are served event by event."""

    protocol: Protocol
    boosting: Boosting
    stays: int
    replayed: int = 0

    @property
    def label(self) -> str:
        """Protocol and seed."""
        return f"{self.variant}, split {self.seed}"


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores over all hours of the test stays.

    `utility` is at the threshold that is best on validation stays. Log loss, Brier score and the calibration error are
    of probabilities that were calibrated on these; the last is the mean difference between probability and frequency
    over ten groups of hours of equal number.
    """

    auroc: float
    auprc: float
    utility: float
    log_loss: float
    brier: float
    calibration_error: float
    train_seconds: float


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Stays served event by event, a prediction after each hour; the greatest difference to batch log odds."""

    stays: int
    events: int
    observations: int
    predictions: int
    event_seconds: float
    prediction_seconds: float
    difference: float


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Scores by model, and the size of the test part."""

    models: dict[str, Scores]
    hours: int
    warned: int
    served: Served | None = None
