"""Three families of models with and without the Log-ODE method (`sec:log_ode_exp`, `tab:log_method_comparison_ew`).

Time and memory of a training step do not depend on values, so without EigenWorms they are measured on random walks of
its shape, and the table says so. Accuracies need the data set itself.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import jax
import msgspec
import numpy as np

from benchmarks.steps import TrainingStep
from experiments.archive import FACTS
from experiments.logode import report
from experiments.logode.cells import DATASET, LogOdeCell, LogOdeConfig, LogOdeOutcome, Speed
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from experiments.uea.experiment import loaded
from experiments.uea.models import Given, UeaModel
from experiments.uea.settings import path_model_of, spline_of
from experiments.uea.training import Schedule, classify
from logcde.datasets import Classification, available, split
from logcde.errors import DatasetError
from logcde.streams import Streams

FEWEST = 5


class LogOde(AbstractExperiment[LogOdeConfig, LogOdeCell, LogOdeOutcome]):
    """The first experiment of the paper."""

    name: ClassVar[str] = "logode"
    title: ClassVar[str] = "The effect of the Log-ODE method: time, memory and accuracy"
    config: ClassVar = LogOdeConfig
    cell: ClassVar = LogOdeCell
    outcome: ClassVar = LogOdeOutcome
    alone: ClassVar[bool] = True
    timings: ClassVar[frozenset[str]] = frozenset({"seconds", "compile_seconds", "train_seconds"})

    def cells(self, config: LogOdeConfig, done: Mapping[LogOdeCell, LogOdeOutcome]) -> Sequence[LogOdeCell]:
        """Speed of all rows, then their accuracies if EigenWorms is available."""
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
        """Always: data are generated, and there are cells of accuracy only if EigenWorms is available."""
        return True

    def run(self, cell: LogOdeCell, tell: Tell, scratch: Path) -> LogOdeOutcome:
        """Time training steps, or train and test."""
        if cell.what == "speed":
            return LogOdeOutcome(speed=_timed(cell, tell))
        data = loaded(DATASET)
        given = Given(data, data.streams, split(len(data), (cell.seed, 0)))
        return LogOdeOutcome(classified=classify(given, cell.model, cell.training, cell.seed, tell, scratch))

    def conclude(self, config: LogOdeConfig, records: Mapping[LogOdeCell, Record], folder: Path) -> Conclusion:
        """Write the table with the numbers of the paper."""
        cells = [cell for cell in self.cells(config, {}) if cell in records]
        return report.conclude({cell: records[cell].outcome for cell in cells})


def models_of(config: LogOdeConfig) -> dict[str, tuple[UeaModel, float, float]]:
    """Model, learning rate and penalty of each row; without the Log-ODE method, depth 1 and one interval a sample."""
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
    """Whether EigenWorms is available."""
    try:
        return DATASET in available()
    except DatasetError:
        return False


def walks(series: int, length: int, seed: int) -> Classification:
    """Random walks with the channels and classes of EigenWorms.

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
    """Repeat the same training step on the first series."""
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


EXPERIMENT = LogOde()
