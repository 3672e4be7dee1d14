"""Configuration, cells and outcomes. Committed results depend on every field and default."""

import msgspec

from experiments.mortality.data import Attributes, Part
from experiments.mortality.learners import Learner
from experiments.runner.abstract import AbstractCell


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A learner and what it reads. `repeats` is the number of splits, 0 for all."""

    learner: Learner
    attributes: Attributes = "published"
    note: str = ""
    repeats: int = 0


class MortalityConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Variants on each of the published splits, which are the seeds, and ensembles: means of log odds of variants."""

    seeds: tuple[int, ...]
    variants: dict[str, Variant]
    ensembles: dict[str, tuple[str, ...]] = {}
    part: Part = "test"

    def __post_init__(self) -> None:
        for name, members in self.ensembles.items():
            missing = [member for member in members if member not in self.variants]
            if missing or not members or name in self.variants:
                raise ValueError(f"the ensemble {name!r} is not made of variants: {', '.join(missing) or name}")


class MortalityCell(AbstractCell, frozen=True, kw_only=True):
    """One variant on one published split, scored on its test or its validation stays."""

    learner: Learner
    attributes: Attributes
    part: Part

    @property
    def label(self) -> str:
        """Variant, split and part."""
        return f"{self.variant}, split {self.seed}{'' if self.part == 'test' else ', validation'}"


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """Log odds of death, in thousandths, of each scored stay, for each share of left-out variables; and who died.

    `members` is how many runs are averaged.
    """

    odds: list[list[int]]
    died: str
    members: int
    train_seconds: float
