"""Configuration and cells of the UEA experiment. Committed results depend on every field and default."""

from typing import Literal, TypeAlias

import msgspec

from experiments.runner.abstract import AbstractCell
from experiments.uea.models import UeaModel
from experiments.uea.settings import MODELS, Reading, Settings, packaged
from experiments.uea.training import Schedule

Dropping: TypeAlias = Literal["points", "channels"]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the grid: every model on every data set at every share of dropped observations.

    `repeats` is the number of seeds, 0 for all. The model is evaluated on validation series after `every` steps;
    training ends after `patience` evaluations without improvement, or after `most` steps.
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
    """Parts of the grid, in the order in which they run, and the settings for each data set.

    Settings that are not given are those of `settings.toml`.
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
