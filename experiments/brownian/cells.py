"""Configuration, cells and outcomes of the Brownian experiment. Committed results depend on every field and default."""

from typing import Literal, TypeAlias

import msgspec

from experiments.runner.abstract import AbstractCell
from experiments.runner.recipes import Curve, SliceModel, Training, Variant

LEVELS = (1, 2)
Reading: TypeAlias = Literal["brackets", "free"]
"""Matrices of areas are brackets of those of the letters, or matrices of their own without a Lie structure."""


class Recipe(Variant, frozen=True, forbid_unknown_fields=True):
    """A variant, with the `reading` of areas and the `levels` that it is run with."""

    reading: Reading = "brackets"
    levels: tuple[int, ...] = LEVELS


class BrownianConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Recipes to run with all numbers of intervals, and candidates: the best of each level becomes `ours`.

    For each level the candidates compete on validation paths, with the numbers of intervals in `search`.
    """

    seeds: tuple[int, ...]
    train: int = 2048
    test: int = 512
    steps: int = 2048
    intervals: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    variants: dict[str, Recipe]
    candidates: dict[str, Recipe] = {}
    search: tuple[int, ...] = (2, 16, 64)
    validation: float = 0.15

    def __post_init__(self) -> None:
        if "printed" not in self.variants or "ours" in self.variants:
            raise ValueError("variants need one called 'printed' and none called 'ours', which the candidates decide")
        models = [recipe.model for recipe in (*self.variants.values(), *self.candidates.values())]
        if not all(isinstance(model, SliceModel) for model in models):
            raise ValueError("every model is a log-slice")
        if not self.seeds or not 0 < self.validation < 1:
            raise ValueError("there is at least one seed, and validation is a fraction")
        if max(*self.intervals, *self.search) > self.steps:
            raise ValueError(f"no partition has more intervals than the {self.steps} steps")


class BrownianCell(AbstractCell, frozen=True, kw_only=True):
    """One model. With `validation`, it is tested on that held-out fraction of its training paths only."""

    level: int
    intervals: int
    model: SliceModel
    training: Training
    reading: Reading
    train: int
    test: int
    steps: int
    validation: float = 0.0

    @property
    def label(self) -> str:
        """Variant, level, intervals and seed."""
        return f"{self.variant}, level {self.level}, {self.intervals} intervals, seed {self.seed}"


class BrownianOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the model, of the true system on the same log-signatures, and of the model without redundant channels.

    `norms` are those of the learnt matrices of the letters.
    """

    mse: float
    oracle: float
    mse_without_redundant: float
    norms: dict[str, float]
    curve: Curve
    parameters: int
    train_seconds: float
    predictions: list[list[list[float]]] = []
