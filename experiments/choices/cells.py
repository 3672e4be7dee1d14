"""Configuration, cells and outcomes of the study. Committed results depend on every field."""

import msgspec

from experiments.defaults.cells import SETS, DefaultsCell, Task


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the grid: every variant on every data set at every share of dropped observations."""

    task: Task = "classification"
    variants: tuple[str, ...]
    datasets: tuple[str, ...] = SETS
    shares: tuple[float, ...]


class ChoicesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parts of the grid, in the order in which they run. Seeds are of dropping, of folds and of the learners."""

    seeds: tuple[int, ...]
    grid: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.seeds or not self.grid:
            raise ValueError("there is at least one seed and one part of the grid")


class ChoicesCell(DefaultsCell, frozen=True, kw_only=True):
    """One learner on the training part of one task; `variant` is its name."""


class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of the training series, each predicted by a learner that did not see it, and process seconds of all folds.

    Classification has "accuracy" and "log loss", two classes also "AUROC", regression has "RMSE".
    """

    scores: dict[str, float]
    series: int
    fit_seconds: float
