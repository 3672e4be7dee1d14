"""What the Log-ODE method does to three families of models (`sec:log_ode_exp`, `tab:log_method_comparison_ew`).

Time and memory of a training step do not depend on values, so without EigenWorms they are measured on random walks of
its shape, and the table says so. Accuracies need the data set itself.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import jax
import msgspec
import numpy as np

from benchmarks.steps import TrainingStep
from experiments import logode_report
from experiments.abstract import AbstractCell, AbstractExperiment, Record, Tell
from experiments.claims import Conclusion
from experiments.classifying import Classified, Schedule, classify
from experiments.facts import FACTS
from experiments.uea import loaded
from experiments.uea_models import Given, UeaModel
from experiments.uea_settings import PathSettings, SplineSettings, packaged, path_model_of, spline_of
from logcde.datasets import Classification, available, split
from logcde.errors import DatasetError
from logcde.streams import Streams

DATASET = "EigenWorms"
FEWEST = 5


class LogOdeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which batches are timed, for how long at most, and how models are trained where the data set is there.

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
    """A row of the table: `speed` of a training step of so many series, or `accuracy`."""

    what: Literal["speed", "accuracy"]
    model: UeaModel
    training: Schedule
    length: int = 0
    steps: int = 0
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """Row and what is measured."""
        if self.what == "accuracy":
            return f"accuracy of {self.variant}, seed {self.seed}"
        return f"speed of {self.variant}, batch {self.training.batch}"


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of single steps, compilation apart, and bytes of the compiled program; `real`: on the data set itself."""

    seconds: list[float]
    compile_seconds: float
    temporary_bytes: int
    argument_bytes: int
    real: bool

    @property
    def median(self) -> float:
        """Of all steps."""
        return statistics.median(self.seconds)


class LogOdeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    speed: Speed | None = None
    classified: Classified | None = None


class LogOde(AbstractExperiment[LogOdeConfig, LogOdeCell, LogOdeOutcome]):
    """First experiment of the paper."""

    name: ClassVar[str] = "logode"
    title: ClassVar[str] = "The effect of the Log-ODE method: time, memory and accuracy"
    config: ClassVar = LogOdeConfig
    cell: ClassVar = LogOdeCell
    outcome: ClassVar = LogOdeOutcome
    alone: ClassVar[bool] = True

    def cells(self, config: LogOdeConfig, done: Mapping[LogOdeCell, LogOdeOutcome]) -> Sequence[LogOdeCell]:
        """Speed of all rows, then their accuracies if the data set is there."""
        rows = models_of(config)
        cells = [
            LogOdeCell(
                variant=name, seed=config.seeds[0], what="speed", model=model, length=config.length,
                training=Schedule(rate=rate, batch=batch), steps=config.steps, seconds=config.seconds,
            )
            for batch in config.batches
            for name, (model, rate, _) in rows.items()
        ]  # fmt: skip
        if is_there():
            options = {"every": config.every, "patience": config.patience, "most": config.most}
            cells += [
                LogOdeCell(
                    variant=name, seed=seed, what="accuracy", model=model,
                    training=Schedule(rate=rate, penalty=penalty, **options),
                )
                for seed in config.seeds
                for name, (model, rate, penalty) in rows.items()
            ]  # fmt: skip
        return cells

    def can_run(self, cell: LogOdeCell) -> bool:
        """Always: data are generated, and accuracies asked for only where the data set is."""
        return True

    def run(self, cell: LogOdeCell, tell: Tell, scratch: Path) -> LogOdeOutcome:
        """Time some steps, or train to the end."""
        if cell.what == "speed":
            return LogOdeOutcome(speed=_timed(cell, tell))
        data = loaded(DATASET)
        given = Given(data, data.streams, split(len(data), (cell.seed, 0)))
        return LogOdeOutcome(classified=classify(given, cell.model, cell.training, cell.seed, tell, scratch))

    def conclude(self, config: LogOdeConfig, records: Mapping[LogOdeCell, Record], folder: Path) -> Conclusion:
        """The table, with the paper's numbers."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        return logode_report.conclude({cell: records[cell].outcome for cell in cells})


def models_of(config: LogOdeConfig) -> dict[str, tuple[UeaModel, float, float]]:
    """Model, rate and penalty of each row. Without the Log-ODE method: depth one, an interval for each sample."""
    path, ncde = config.path, config.ncde
    flat = msgspec.structs.replace(path, depth=1, step=1)
    return {
        "ncde": (spline_of(ncde), ncde.rate, 0.0),
        "log_ncde": (path_model_of(path, "log_ncde"), path.rate, path.penalty),
        "lncde": (path_model_of(flat, "lncde"), path.rate, path.penalty),
        "log_lncde": (path_model_of(path, "lncde"), path.rate, path.penalty),
        "bd_slice": (path_model_of(flat, "bd_slice"), path.rate, path.penalty),
        "log_bd_slice": (path_model_of(path, "bd_slice"), path.rate, path.penalty),
    }


def is_there() -> bool:
    """Whether the data set can be read."""
    try:
        return DATASET in available()
    except DatasetError:
        return False


def walks(series: int, length: int, seed: int) -> Classification:
    """Random walks with as many channels and classes as the data set.

    >>> walks(6, 100, seed=0)
    Classification(random walks: 6 train + 0 test series, 6 channels, 100 steps, 5 classes)
    """
    facts = FACTS[DATASET]
    values = np.random.default_rng(seed).normal(0.0, 0.02, size=(series, length, facts.channels)).cumsum(axis=1)
    streams = Streams.from_dense(values.astype(np.float32), np.arange(length) / length, horizon=1.0)
    labels = np.arange(series) % facts.classes
    classes = tuple(map(str, range(facts.classes)))
    return Classification("random walks", streams, labels, classes, np.zeros(series, bool), length)


def _timed(cell: LogOdeCell, tell: Tell) -> Speed:
    """One step again and again from the same place, on the first series."""
    batch = cell.training.batch
    real = is_there() and cell.length == FACTS[DATASET].length
    data = loaded(DATASET) if real else walks(max(batch, FEWEST), cell.length, cell.seed)
    inputs, basis = cell.model.inputs(Given(data, data.streams, split(len(data), (cell.seed, 0))))
    model = cell.model.model(basis, len(data.classes), jax.random.key(cell.seed))
    began = time.perf_counter()
    step = TrainingStep(lambda model, one: model(one), model, inputs[:batch], len(data.classes))
    step()
    compiled = time.perf_counter() - began
    seconds: list[float] = []
    while len(seconds) < cell.steps and (sum(seconds) < cell.seconds or len(seconds) < FEWEST):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
        tell(max(len(seconds) / cell.steps, min(sum(seconds) / cell.seconds, 1.0)))
    return Speed(
        seconds=[float(f"{one:.4g}") for one in seconds],
        compile_seconds=round(compiled, 2),
        temporary_bytes=step.memory(),
        argument_bytes=sum(leaf.nbytes for leaf in jax.tree.leaves(step.arguments)),
        real=real,
    )
