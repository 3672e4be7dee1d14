"""Configuration, cells and outcomes of the Log-ODE experiment. Committed results depend on every field and default."""

import statistics
from typing import Literal

import msgspec

from experiments.archive import FACTS
from experiments.runner.abstract import AbstractCell
from experiments.uea.models import UeaModel
from experiments.uea.settings import PathSettings, SplineSettings, packaged
from experiments.uea.training import Classified, Schedule

DATASET = "EigenWorms"


class LogOdeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Batch sizes and time limits of the speed cells, and training options of the accuracy cells.

    `path` are the hyper-parameters of the Log-NCDE, which linear CDEs share, `ncde` those of the NCDE.
    """

    seeds: tuple[int, ...]
    path: PathSettings = msgspec.field(default_factory=lambda: packaged()[DATASET].path)
    ncde: SplineSettings = msgspec.field(default_factory=lambda: packaged()[DATASET].ncde)
    batches: tuple[int, ...] = (1,)
    length: int = FACTS[DATASET].length
    steps: int = 1000
    seconds: float = 60.0
    every: int = 1000
    patience: int = 11
    most: int = 100_000


class LogOdeCell(AbstractCell, frozen=True, kw_only=True):
    """A row of the table: `speed` of a training step, or `accuracy`."""

    what: Literal["speed", "accuracy"]
    model: UeaModel
    training: Schedule
    length: int = 0
    steps: int = 0
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """Row and measurement."""
        if self.what == "accuracy":
            return f"accuracy of {self.variant}, seed {self.seed}"
        return f"speed of {self.variant}, batch {self.training.batch}"


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of each step without compilation, and bytes of the compiled program; `real`: measured on EigenWorms."""

    seconds: list[float]
    compile_seconds: float
    temporary_bytes: int
    argument_bytes: int
    real: bool

    @property
    def median(self) -> float:
        """Median seconds of a step."""
        return statistics.median(self.seconds)


class LogOdeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The measurement of a cell; the other field is None."""

    speed: Speed | None = None
    classified: Classified | None = None
