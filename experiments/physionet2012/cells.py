"""Configuration, cells and outcomes of the intensive care experiment.

Committed results depend on every field and default.
"""

from typing import Literal, TypeAlias

import msgspec

from experiments.physionet2012.boosting import Boosting
from experiments.physionet2012.models import Neural, PathModel
from experiments.physionet2012.online import Explained, Hours, Replay
from experiments.runner.abstract import AbstractCell

Learner: TypeAlias = Neural | Boosting


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model and its training. `kind` is its table; `repeats` is the number of splits, 0 for all."""

    learner: Learner
    kind: Literal["model", "part", "ablation"] = "model"
    note: str = ""
    repeats: int = 0


class PhysioNetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Variants, each on one split for each seed; those in `live` also run online, on the first split.

    The first of `live` is replayed event by event, and one of its predictions is explained.
    """

    seeds: tuple[int, ...]
    variants: dict[str, Variant]
    live: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.live:
            variant = self.variants.get(name)
            if variant is None:
                raise ValueError(f"{name!r} is in live, but there is no such variant")
            learner = variant.learner
            if not isinstance(learner, Neural) or not all(isinstance(model, PathModel) for model in learner.models):
                raise ValueError(f"{name!r} is in live, but is not made of models on the embedding")


class PhysioNetCell(AbstractCell, frozen=True, kw_only=True):
    """One variant on one split; with `live`, also online."""

    learner: Learner
    live: Literal["", "hours", "hours and events"] = ""

    @property
    def label(self) -> str:
        """Variant and split."""
        return f"{self.variant}{', in use' if self.live else ''}, split {self.seed}"


class Clipping(msgspec.Struct, frozen=True, array_like=True):
    """Number of observations of a channel in training stays, and of those beyond its limits."""

    channel: str
    observations: int
    below: int
    above: int


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """Online results of a variant."""

    hours: Hours
    probabilities: list[float]
    died: list[int]
    replay: Replay | None = None
    explained: Explained | None = None
    clipped: list[Clipping] = []


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """AUROC and AUPRC on test stays, of the ensemble and of each member, and scores of its probabilities.

    `log_loss` and `brier` are of probabilities calibrated on the validation stays.
    """

    auroc: float
    auprc: float
    validation_auroc: float
    validation_auprc: float
    members: list[tuple[float, float]]
    temperature: float
    log_loss: float
    brier: float
    train_seconds: float
    parameters: int
    live: Live | None = None
