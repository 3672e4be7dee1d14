"""Classification of series of which a part was dropped (`tab:uea_drop_summary`, `app:uea-experiments`)."""

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
    """Fourth experiment of the paper."""

    name: ClassVar[str] = "uea"
    title: ClassVar[str] = "Classification under dropped observations: the UEA sets"
    config: ClassVar = UeaConfig
    cell: ClassVar = UeaCell
    outcome: ClassVar = Classified

    def cells(self, config: UeaConfig, done: Mapping[UeaCell, Classified]) -> Sequence[UeaCell]:
        """Part by part; what is in two parts is run as the first one says."""
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
        """Whether the data set is there."""
        return cell.dataset in _there(folder())

    def run(self, cell: UeaCell, tell: Tell, scratch: Path) -> Classified:
        """Drop, split, train and test."""
        data = loaded(cell.dataset)
        # Series are dropped from before they are split, so that a series loses the same whatever it is used for.
        left = drop_observations(data.streams, cell.drop, DROPPINGS[cell.dropping], seed=(cell.seed, 1))
        given = Given(data, left, split(len(data), (cell.seed, 0)))
        return classify(given, cell.model, cell.training, cell.seed, tell, scratch)

    def conclude(self, config: UeaConfig, records: Mapping[UeaCell, Record], folder: Path) -> Conclusion:
        """Tables, the figure, and the splits as files for others."""
        cells = self.cells(config, {})
        series = {(cell.dataset, cell.seed): records[cell].outcome.series for cell in cells if cell in records}
        if not series:
            raise ExperimentError("Nothing of this grid was run, so there is nothing to conclude.")
        for (dataset, seed), count in series.items():
            split(count, (seed, 0)).write(folder / "splits" / f"{dataset}-{seed}.json")
        return report.conclude(cells, records, folder)


@lru_cache(maxsize=1)
def loaded(name: str) -> Classification:
    """A data set without copies. Cells of one data set follow each other, mostly."""
    return deduplicated(load(name))


@lru_cache(maxsize=1)
def _there(top: Path) -> frozenset[str]:
    """The data sets of a folder."""
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
