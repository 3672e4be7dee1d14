"""Configuration, cells and outcomes. Committed results depend on every field and default."""

import msgspec

from experiments.nextday.learners import Learner, Library
from experiments.runner.abstract import AbstractCell


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A forecaster. `repeats` is the number of splits, 0 for all; with `online`, also hour by hour on the first."""

    learner: Learner
    repeats: int = 0
    online: bool = False

    def __post_init__(self) -> None:
        if self.online and not isinstance(self.learner, Library):
            raise ValueError("only a forecaster of the library can be asked online")


class NextDayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Variants on splits. Seeds are of the splits; 42 is the published one. `stays` limits them, 0 for all."""

    seeds: tuple[int, ...]
    variants: dict[str, Variant]
    stays: int = 0
    part: str = "test"


class NextDayCell(AbstractCell, frozen=True, kw_only=True):
    """One forecaster on one split, tested on its test or its validation stays."""

    learner: Learner
    stays: int
    part: str
    online: bool = False

    @property
    def label(self) -> str:
        """Variant, split and part."""
        return f"{self.variant}, split {self.seed}{'' if self.part == 'test' else ', validation'}"


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """Mean squared and absolute errors for each variable, in units of its range in the seen part."""

    mse: list[float]
    mae: list[float]


class Online(msgspec.Struct, frozen=True, kw_only=True):
    """Errors averaged over variables, for hours known (rows) and the hours ahead up to each of `ahead` (columns)."""

    known: list[float]
    ahead: list[float]
    mse: list[list[float]]
    mae: list[list[float]]
    last_mse: list[list[float]]
    last_mae: list[list[float]]
    stays: int


class Forecasted(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the forecasts by name. `covered` is the share of answers inside 90 % intervals for each variable."""

    models: dict[str, Errors]
    variables: list[str]
    counts: list[int]
    train_seconds: float
    covered: list[float] | None = None
    online: Online | None = None
