"""Default estimators beside what a person would take instead, on complete series and with observations dropped."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from experiments.defaults import peers, report
from experiments.defaults.cells import DefaultsCell, DefaultsConfig, Measured
from experiments.defaults.data import is_available
from experiments.defaults.tasks import TASKS
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell

ONE_CORE = MappingProxyType(
    {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "NPROC": "1",  # threads of XLA's CPU client
    }
)


class Defaults(AbstractExperiment[DefaultsConfig, DefaultsCell, Measured]):
    """An experiment beyond the paper: defaults against peers."""

    name: ClassVar[str] = "defaults"
    title: ClassVar[str] = "Default estimators beside peers"
    config: ClassVar = DefaultsConfig
    cell: ClassVar = DefaultsCell
    outcome: ClassVar = Measured
    alone: ClassVar[bool] = True
    timings: ClassVar[frozenset[str]] = frozenset({"fit_seconds", "predict_seconds", "refit_seconds"})
    environment: ClassVar[Mapping[str, str]] = ONE_CORE

    def cells(self, config: DefaultsConfig, done: Mapping[DefaultsCell, Measured]) -> Sequence[DefaultsCell]:
        """All parts in order; without dropping there is only the first seed."""
        found = {}
        for part in config.grid:
            for method in part.methods:
                for dataset in part.datasets:
                    for share in part.shares:
                        for seed in config.seeds[: (part.repeats or None) if share else 1]:
                            cell = DefaultsCell(variant=method, seed=seed, task=part.task, dataset=dataset, share=share)
                            found[cell] = None
        return list(found)

    def can_run(self, cell: DefaultsCell) -> bool:
        """Whether the data set is available, and aeon if the method is aeon's."""
        return is_available(cell.dataset) and (
            cell.variant not in peers.OF_AEON or peers.interpreter(cell.variant) is not None
        )

    def run(self, cell: DefaultsCell, tell: Tell, scratch: Path) -> Measured:
        """Fit and test."""
        return TASKS[cell.task](cell)

    def conclude(self, config: DefaultsConfig, records: Mapping[DefaultsCell, Record], folder: Path) -> Conclusion:
        """Write tables and the figure and judge the targets."""
        cells = self.cells(config, {})
        return report.conclude(cells, {cell: records[cell].outcome for cell in cells if cell in records}, folder)


EXPERIMENT = Defaults()
