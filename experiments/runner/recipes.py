"""Models and training as configurations describe them, for the synthetic experiments."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

import diffrax
import jax
import msgspec
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from experiments.runner.abstract import Tell
from logcde.algebra import Basis
from logcde.baselines import HeldControl, HermiteControl, LinearControl, RectilinearControl, gru_d, ncde
from logcde.datasets import Dataset
from logcde.embedding import Embedding
from logcde.flows import Identity
from logcde.models import (
    AbstractModel,
    FirstValueInitial,
    IncrementRMSScaling,
    Inputs,
    LearntInitial,
    NoScaling,
    PerInterval,
    SequenceModel,
    deep_log_slice,
    log_slice,
)
from logcde.train import AbstractCallback, Batching, Epochs, Evaluation, Result, Selection, Summary, fit

INITIALS = {
    "learnt": LearntInitial(),
    "first values": FirstValueInitial(),
    "raw first values": FirstValueInitial(Identity()),
}
SCALINGS = {"none": NoScaling(), "unit increments": IncrementRMSScaling()}
CONTROLS = {"hermite": HermiteControl, "linear": LinearControl, "rectilinear": RectilinearControl}
Initial: TypeAlias = Literal["learnt", "first values", "raw first values"]


class SliceModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="log-slice"):
    """A block-diagonal Log-SLiCE on the faithful embedding, with a prediction at each query point."""

    hidden: int = 64
    block: int = 8
    layers: int = 1
    depth: int = 2
    counts: bool = False
    time: bool = True
    initial: Initial = "learnt"
    scaling: Literal["none", "unit increments"] = "none"
    scale: float = 0.25
    readout: tuple[int, ...] = ()

    def inputs(self, data: Dataset) -> tuple[Inputs, Basis]:
        """Interval log-signatures."""
        embedding = Embedding(depth=self.depth, counts=self.counts, time=self.time, dtype=np.float32)
        logsigs = embedding(data.streams, data.partition)
        return Inputs.of(logsigs), logsigs.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """A Log-SLiCE with one layer, or a deep one."""
        options = {
            "block": self.block,
            "initial": INITIALS[self.initial],
            "readout": PerInterval(self.readout),
            "scaling": SCALINGS[self.scaling],
            "init_scale": self.scale,
            "key": key,
        }
        if self.layers > 1:
            return deep_log_slice(basis, self.hidden, outputs, layers=self.layers, **options)
        return log_slice(basis, self.hidden, outputs, **options)


class ControlModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ncde"):
    """An NCDE on a path through the observations, solved with a step of Heun's method for each of its pieces."""

    control: Literal["hermite", "linear", "rectilinear"]
    hidden: int = 64
    width: int = 64
    layers: int = 1
    initial: Initial = "raw first values"
    scale: float = 1.0

    def inputs(self, data: Dataset) -> tuple[Inputs, Basis]:
        """The pieces of the path."""
        controls = CONTROLS[self.control](dtype=np.float32)(data.streams, data.partition)
        return Inputs.of(controls), controls.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """The NCDE."""
        return ncde(
            basis,
            self.hidden,
            outputs,
            width=self.width,
            layers=self.layers,
            initial=INITIALS[self.initial],
            readout=PerInterval(),
            solver=diffrax.Heun(),
            init_scale=1 / self.scale,
            key=key,
        )


class HeldModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="gru-d"):
    """A GRU-D on forward-filled values, masks and time gaps."""

    hidden: int = 64

    def inputs(self, data: Dataset) -> tuple[Inputs, Basis]:
        """A row for each event and each query point."""
        held = HeldControl(dtype=np.float32)(data.streams, data.partition)
        return Inputs.of(held), held.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """The unit."""
        return gru_d(basis, self.hidden, outputs, readout=PerInterval(), key=key)


Model: TypeAlias = SliceModel | ControlModel | HeldModel


@functools.cache
def constant_adam(rate: float) -> optax.GradientTransformation:
    """Adam with a constant learning rate; cached, so that models of one shape share a compiled program."""
    return optax.adam(rate)


@functools.cache
def _cosine(rate: float, warmup: int, steps: int) -> optax.GradientTransformation:
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, rate, warmup, steps))


class Training(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of training. With one bucket, batches are drawn from all series, as in the paper."""

    epochs: int = 100
    batch: int = 32
    rate: float = 1e-3
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: float = 0.0
    clip: float = 1.0
    buckets: int = 1

    def optimiser(self, series: int) -> optax.GradientTransformation:
        """Adam with a constant rate, or with a cosine schedule after a `warmup` fraction of all steps."""
        if self.schedule == "constant":
            return constant_adam(self.rate)
        steps = self.epochs * -(-series // self.batch)
        return _cosine(self.rate, round(self.warmup * steps), steps)

    def __call__(
        self,
        model: AbstractModel,
        inputs: Inputs,
        targets: np.ndarray,
        look_at: tuple[Inputs, np.ndarray],
        key: PRNGKeyArray,
        tell: Tell,
    ) -> Result:
        """Train for all epochs; after each, evaluate on series that do not influence training."""
        return fit(
            model,
            inputs,
            targets,
            optimiser=self.optimiser(len(inputs)),
            clip=self.clip,
            batching=Batching(size=self.batch, buckets=self.buckets),
            duration=Epochs(self.epochs),
            selection=Selection(validation=look_at, patience=None),
            recoveries=0,
            callbacks=(Telling(tell),),
            key=key,
        )


class Telling(AbstractCallback):
    """Reports the progress of training."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._steps = 1

    def on_start(self, step: int, steps: int) -> None:
        """Store the number of steps."""
        self._steps = steps

    def on_steps(self, step: int, loss: float) -> None:
        """Report the fraction of steps that is done."""
        self._tell(step / self._steps)

    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Do nothing."""

    def on_end(self, summary: Summary | None) -> None:
        """Do nothing."""


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model and its training; `repeats` is the number of seeds, 0 for all."""

    model: Model
    training: Training = Training()
    repeats: int = 0
    note: str = ""


class Curve(msgspec.Struct, frozen=True):
    """Losses on training and held-out series after every epoch."""

    training: list[float]
    held_out: list[float]

    @classmethod
    def of(cls, result: Result) -> "Curve":
        """Losses of a training run, rounded to five digits."""
        return cls(
            [_short(look.loss) for look in result.history],
            [_short(look.validation["mse"] or float("nan")) for look in result.history],
        )


def validation_error(errors: Iterable[float]) -> float:
    """Geometric mean of the errors on several validation sets, so that each counts by its ratio, not its size.

    >>> round(validation_error([1e-2, 1e-4]), 6)
    0.001
    """
    return float(np.exp(np.mean(np.log(list(errors)))))


def best_of(errors: Mapping[str, float | None]) -> str | None:
    """The candidate with the least validation error; None if some errors are unknown, or if there are no candidates.

    >>> best_of({"wide": 0.2, "deep": 0.1}), best_of({"wide": 0.2, "deep": None})
    ('deep', None)
    """
    known = {name: error for name, error in errors.items() if error is not None}
    return min(known, key=known.__getitem__) if known and len(known) == len(errors) else None


def keys_of(seed: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Keys of a seed: for initial parameters, and for training."""
    first, second = jax.random.split(jax.random.key(seed))
    return first, second


def _short(number: float) -> float:
    return float(f"{number:.5g}")
