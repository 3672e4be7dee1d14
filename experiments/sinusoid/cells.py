"""Configuration, cells and outcomes of the sinusoid experiment. Committed results depend on every field and default."""

import msgspec

from experiments.runner.abstract import AbstractCell
from experiments.runner.recipes import Curve, Model, Training, Variant
from logcde.datasets import REGIMES


class SinusoidConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Variants to run in all regimes, and candidates: the one with the least validation error becomes `ours`."""

    seeds: tuple[int, ...]
    train: int = 2048
    test: int = 512
    regimes: tuple[str, ...] = tuple(REGIMES)
    variants: dict[str, Variant]
    candidates: dict[str, Variant] = {}
    validation: float = 0.15

    def __post_init__(self) -> None:
        unknown = set(self.regimes) - set(REGIMES)
        if unknown or not self.regimes:
            raise ValueError(f"regimes are some of {', '.join(REGIMES)}, not {', '.join(unknown) or 'none'}")
        if "printed" not in self.variants or "ours" in self.variants:
            raise ValueError("variants need one called 'printed' and none called 'ours', which the candidates decide")
        if not self.seeds or not 0 < self.validation < 1:
            raise ValueError("there is at least one seed, and validation is a fraction")


class SinusoidCell(AbstractCell, frozen=True, kw_only=True):
    """One model, trained in one regime and tested in all.

    With `validation`, that fraction of the training series is held out and tested on instead of test series, and as
    many series of the other regimes are drawn.
    """

    regime: str
    model: Model
    training: Training
    train: int
    test: int
    validation: float = 0.0

    @property
    def label(self) -> str:
        """Variant, regime and seed."""
        return f"{self.variant}, {self.regime}, seed {self.seed}"


class SinusoidOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Mean squared errors by test regime, and the first predictions in the training regime.

    Errors of a candidate whose training diverged are None (JSON has no infinity).
    """

    mse: dict[str, float | None]
    curve: Curve
    parameters: int
    train_seconds: float
    predictions: list[list[list[float]]] = []
