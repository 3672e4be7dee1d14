"""Classification with dropped observations (`tab:uea_drop_summary`, `app:uea-experiments`)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from experiments.archive import load
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from experiments.uea import report
from experiments.uea.cells import Dropping, Part, UeaCell, UeaConfig
from experiments.uea.models import Given
from experiments.uea.settings import model_of
from experiments.uea.training import Classified, Schedule, classify
from logcde.datasets import Classification, available, deduplicated, split
from logcde.datasets.loading import folder
from logcde.errors import ExperimentError
from logcde.streams import PerChannel, PerEvent, drop_observations

DROPPINGS = {"points": PerEvent(), "channels": PerChannel()}


class Uea(AbstractExperiment[UeaConfig, UeaCell, Classified]):
    """The fourth experiment of the paper."""

    name: ClassVar[str] = "uea"
    title: ClassVar[str] = "Classification under dropped observations: the UEA sets"
    config: ClassVar = UeaConfig
    cell: ClassVar = UeaCell
    outcome: ClassVar = Classified

    def cells(self, config: UeaConfig, done: Mapping[UeaCell, Classified]) -> Sequence[UeaCell]:
        """All parts in order; a cell in two parts takes the settings of the first."""
        found: dict[tuple, UeaCell] = {}
        for part in config.grid:
            for seed in config.seeds[: part.repeats or None]:
                for dataset in part.datasets:
                    for share in part.drops:
                        for name in part.models:
                            place = (name, dataset, share, part.dropping, seed)
                            if place not in found:
                                found[place] = _cell(config, part, *place)
        return list(found.values())

    def can_run(self, cell: UeaCell) -> bool:
        """Whether the data set is available."""
        return cell.dataset in _there(folder())

    def run(self, cell: UeaCell, tell: Tell, scratch: Path) -> Classified:
        """Drop observations, split, train and test."""
        data = loaded(cell.dataset)
        # Before the split, so that a series loses the same observations whichever part it is in.
        left = drop_observations(data.streams, cell.drop, DROPPINGS[cell.dropping], seed=(cell.seed, 1))
        given = Given(data, left, split(len(data), (cell.seed, 0)))
        return classify(given, cell.model, cell.training, cell.seed, tell, scratch)

    def conclude(self, config: UeaConfig, records: Mapping[UeaCell, Record], folder: Path) -> Conclusion:
        """Write tables, figure and the files of the splits."""
        cells = self.cells(config, {})
        series = {(cell.dataset, cell.seed): records[cell].outcome.series for cell in cells if cell in records}
        if not series:
            raise ExperimentError("No cell of this grid is finished, so there is no conclusion.")
        for (dataset, seed), count in series.items():
            split(count, (seed, 0)).write(folder / "splits" / f"{dataset}-{seed}.json")
        return report.conclude(cells, records, folder)


@lru_cache(maxsize=1)
def loaded(name: str) -> Classification:
    """A data set without duplicates; cached, because most cells follow one of the same data set."""
    return deduplicated(load(name))


@lru_cache(maxsize=1)
def _there(top: Path) -> frozenset[str]:
    """Names of the data sets in a folder."""
    return frozenset(available(top))


def _cell(
    config: UeaConfig, part: Part, name: str, dataset: str, share: float, dropping: Dropping, seed: int
) -> UeaCell:
    model, rate, penalty = model_of(config.settings[dataset], name, config.reading)
    schedule = Schedule(rate=rate, penalty=penalty, every=part.every, patience=part.patience, most=part.most)
    return UeaCell(
        variant=name, seed=seed, dataset=dataset, drop=share, dropping=dropping, model=model, training=schedule
    )


EXPERIMENT = Uea()
