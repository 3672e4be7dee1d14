"""Classification of series of which a part was dropped (`tab:uea_drop_summary`, `app:uea-experiments`)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import msgspec

from experiments import uea_report
from experiments.abstract import AbstractCell, AbstractExperiment, Record, Tell
from experiments.claims import Conclusion
from experiments.classifying import Classified, Schedule, classify
from experiments.uea_models import Given, UeaModel
from experiments.uea_rows import MODELS
from experiments.uea_settings import Reading, Settings, model_of, packaged
from logcde.datasets import Classification, available, deduplicated, load, split
from logcde.datasets.loading import folder
from logcde.errors import ExperimentError
from logcde.streams import PerChannel, PerEvent, drop_observations

Dropping: TypeAlias = Literal["points", "channels"]
DROPPINGS = {"points": PerEvent(), "channels": PerChannel()}


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the grid: all of these models on all of these data sets at all shares of dropped observations.

    `repeats` is with how many of the seeds, all of them if 0. Validation series are looked at after `every` steps, and
    training ends when `patience` looks brought nothing better, or after `most` steps.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    drops: tuple[float, ...]
    dropping: Dropping = "points"
    repeats: int = 0
    every: int = 1000
    patience: int = 11
    most: int = 100_000


class UeaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parts of the grid, the first of which are run first, and the settings for each of their data sets.

    Those that are not given are the ones that come with the package.
    """

    seeds: tuple[int, ...]
    grid: tuple[Part, ...]
    settings: dict[str, Settings] = {}
    reading: Reading = Reading()

    def __post_init__(self) -> None:
        known = packaged() | self.settings
        used = {dataset: known[dataset] for part in self.grid for dataset in part.datasets if dataset in known}
        msgspec.structs.force_setattr(self, "settings", used)
        for part in self.grid:
            unknown = set(part.models) - set(MODELS)
            if unknown:
                raise ValueError(f"models are some of {', '.join(MODELS)}, not {', '.join(sorted(unknown))}")
            without = set(part.datasets) - set(self.settings)
            if without:
                raise ValueError(f"there are no settings for {', '.join(sorted(without))}")
            if not all(0 <= share < 1 for share in part.drops):
                raise ValueError("shares of dropped observations are at least 0 and less than 1")
        if not self.seeds or not self.grid:
            raise ValueError("there is at least one seed and one part of the grid")


class UeaCell(AbstractCell, frozen=True, kw_only=True):
    """One model on one data set at one share of dropped observations; `variant` is the name of the model."""

    dataset: str
    drop: float
    dropping: Dropping
    model: UeaModel
    training: Schedule

    @property
    def label(self) -> str:
        """Model, data set, share and seed."""
        of_each = " of each channel" if self.dropping == "channels" else ""
        return f"{self.variant}, {self.dataset}, {self.drop:.0%} dropped{of_each}, seed {self.seed}"


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
        return uea_report.conclude(cells, records, folder)


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
