"""Configuration, cells and outcomes of the comparison of defaults. Committed results depend on every field."""

from typing import Literal, TypeAlias

import msgspec

from experiments.runner.abstract import AbstractCell

Task: TypeAlias = Literal["classification", "sepsis", "regression", "forecasting"]
SETS = (
    "BasicMotions",
    "RacketSports",
    "Epilepsy",
    "NATOPS",
    "UWaveGestureLibrary",
    "Cricket",
    "JapaneseVowels",
    "SelfRegulationSCP1",
)
"""The classification sets that the tables average over."""
SEPSIS, BEIJING = "PhysioNet2019", "BeijingPM25"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the grid: every method on every data set at every share of dropped observations.

    `repeats` is the number of seeds, 0 for all. If nothing is dropped there is only the first seed.
    """

    task: Task = "classification"
    methods: tuple[str, ...]
    datasets: tuple[str, ...] = SETS
    shares: tuple[float, ...]
    repeats: int = 0


class DefaultsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parts of the grid, in the order in which they run. Seeds are of dropping and of the methods."""

    seeds: tuple[int, ...]
    grid: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.seeds or not self.grid:
            raise ValueError("there is at least one seed and one part of the grid")
        if not all(0 <= share < 1 for part in self.grid for share in part.shares):
            raise ValueError("shares of dropped observations are at least 0 and less than 1")


class DefaultsCell(AbstractCell, frozen=True, kw_only=True):
    """One method on one task; `variant` is the name of the method, `seed` that of dropping and of the method."""

    task: Task
    dataset: str
    share: float

    @property
    def label(self) -> str:
        """Method, task, data set, share and seed."""
        what = self.dataset if self.task == "classification" else f"{self.task} on {self.dataset}"
        return f"{self.variant}, {what}, {self.share:.0%} dropped, seed {self.seed}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Scores on the test part, by name, and process seconds.

    Classification has "accuracy", "log loss", "log loss of class frequencies" and, for two classes, "AUROC"; sepsis
    also "AUPRC". Regression has "RMSE", forecasting one for each channel and horizon, such as "pm2.5 after 6 h".

    `refit_seconds` is a second fit in the same process, which compiles nothing; None if the first one was preceded by
    a fit on other data, or if there was no second one. `versions` are those of the environment of the method.
    """

    scores: dict[str, float]
    train: int
    test: int
    fit_seconds: float
    predict_seconds: float
    refit_seconds: float | None = None
    versions: dict[str, str] = {}
