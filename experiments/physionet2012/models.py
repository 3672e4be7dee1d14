"""The models of the intensive care experiment: their inputs from stays, their construction and their training."""

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import equinox as eqx
import jax
import msgspec
import numpy as np
import optax
from jaxtyping import Float, PRNGKeyArray

from experiments.runner.abstract import Tell
from experiments.runner.recipes import Telling, keys_of
from logcde.algebra import Basis
from logcde.baselines import HeldControl, gru_d
from logcde.baselines.recurrent import FadingGRU
from logcde.datasets import Split
from logcde.datasets.physionet import PLAUSIBLE, STATIC, Stays
from logcde.embedding import Embedding, EmbeddingSpec
from logcde.models import (
    AbstractModel,
    AbstractOnlineModel,
    Inputs,
    PerInterval,
    SequenceModel,
    Sum,
    Terminal,
    TotalStdScaling,
    additive,
    log_ncde,
    log_slice,
    predict,
)
from logcde.streams import ChannelScaler, Partition, SoftBins
from logcde.train import Batching, Checkpoints, Epochs, Selection, fit, losses

CLASSES = 2
TOGETHER = 400
"""Stays in one call of `predict`."""
UNITS = 4
"""Number of types of intensive care units."""


@dataclasses.dataclass(frozen=True)
class Given:
    """All stays and their split."""

    stays: Stays
    split: Split

    @functools.cached_property
    def scales(self) -> ChannelScaler:
        """Scaling of the variables, fitted on the training stays; implausible values are clipped."""
        streams = self.stays.streams[self.split.train]
        limits = {name: PLAUSIBLE[name] for name in streams.schema.channels if name in PLAUSIBLE}
        return ChannelScaler.fit(streams, limits=limits)

    @functools.cached_property
    def levels(self) -> SoftBins:
        """Soft bins of the variables, fitted on the training stays."""
        return SoftBins.fit(self.stays.streams[self.split.train])

    @functools.cached_property
    def static(self) -> Float[np.ndarray, "series static"]:
        """Age and height in standard deviations from the median, a flag for unknown height, sex, type of unit.

        Further static features, such as weight, are in standard deviations too.
        """
        age, sex, height, unit = (self.stays.static[:, self.stays.names.index(name)] for name in STATIC)
        columns = [self._standard(age), self._standard(height), np.isnan(height), np.nan_to_num(sex, nan=0.5)]
        columns += [unit == kind for kind in range(1, UNITS + 1)]
        columns += [self._standard(self.stays.static[:, place]) for place in range(len(STATIC), len(self.stays.names))]
        found = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
        return found - found[self.split.train].mean(axis=0)

    def _standard(self, column: np.ndarray) -> np.ndarray:
        """Standardise a column; unknown values become the median."""
        train = column[self.split.train]
        spread = (column - np.nanmedian(train)) / (np.nanstd(train) or 1.0)
        return np.clip(np.nan_to_num(spread), -3, 3)


class Ridge(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Weight decay of the additive part, of the perceptron, and of a CDE's readout and initial state and its field."""

    additive: float = 0.001
    perceptron: float = 0.001
    ends: float = 0.001
    field: float = 0.1


class PathModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="path"):
    """On the faithful embedding: the sum of up to three parts, trained as one.

    An `additive` model of the path's position (last values, counts, levels), a `perceptron` with that many units on the
    same features, both with the `history` of values, and a CDE. `dropout` is that of the readouts. `each`: trained on
    predictions after every interval, not only at the end of a stay.
    """

    cde: Literal["none", "slice", "log-ncde"] = "slice"
    additive: bool = True
    perceptron: int = 128
    history: bool = True
    dropout: float = 0.5
    hours: float = 4.0
    depth: int = 1
    counts: bool = True
    levels: bool = True
    time: bool = True
    static: bool = True
    each: bool = False
    hidden: int = 64
    block: int = 8
    width: int = 32
    scale: float = 0.05
    ridge: Ridge = Ridge()

    buckets: ClassVar[int] = 1

    def embedding(self, given: Given) -> Embedding:
        """The embedding, with scaling and soft bins of the training stays."""
        levels = given.levels if self.levels and self.counts else None
        return Embedding(
            depth=self.depth,
            counts=self.counts,
            time=self.time,
            dtype=np.float32,
            scaler=given.scales,
            soft_bins=levels,
        )

    def inputs(self, given: Given) -> tuple[Inputs, Basis, EmbeddingSpec | None]:
        """Log-signatures of intervals of `hours`, and static features."""
        logsigs = self.embedding(given)(given.stays.streams, Partition.every(self.hours))
        return Inputs.of(logsigs, given.static if self.static else None), logsigs.basis, logsigs.spec

    def model(self, basis: Basis, static: int, key: PRNGKeyArray) -> Sum:
        """The sum of the parts."""
        keys = jax.random.split(key, 3)
        reading = PerInterval if self.each else Terminal
        parts: list[SequenceModel] = []
        if self.additive:
            parts.append(self._places(basis, static, reading((), self.dropout), keys[0]))
        if self.perceptron:
            parts.append(self._places(basis, static, reading((self.perceptron,), self.dropout), keys[1]))
        options: dict[str, Any] = {
            "readout": reading((), self.dropout),
            "scaling": TotalStdScaling(),
            "static": static,
            "key": keys[2],
        }
        if self.cde == "slice":
            parts.append(log_slice(basis, self.hidden, CLASSES, block=self.block, init_scale=self.scale, **options))
        if self.cde == "log-ncde":
            size = 1 / self.scale
            parts.append(log_ncde(basis, self.hidden, CLASSES, width=self.width, layers=1, init_scale=size, **options))
        return Sum(parts)

    def _places(self, basis: Basis, static: int, readout: Terminal | PerInterval, key: PRNGKeyArray) -> SequenceModel:
        return additive(basis, CLASSES, readout=readout, history=self.history, static=static, key=key)

    def penalties(self) -> Iterator[tuple[float, Callable[[Sum], Any]]]:
        """Weight decays, each with a function that picks its parameters."""
        place = itertools.count()
        if self.additive:
            yield self.ridge.additive, functools.partial(_layers, place=next(place))
        if self.perceptron:
            yield self.ridge.perceptron, functools.partial(_layers, place=next(place))
        if self.cde != "none":
            number = next(place)
            yield self.ridge.ends, functools.partial(_ends, place=number)
            yield self.ridge.field, functools.partial(_field, place=number)


class HeldModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="gru-d"):
    """A GRU-D on forward-filled values, masks and the time since each was observed, a row for each event."""

    hidden: int = 64
    ridge: float = 1e-3
    each: ClassVar[bool] = False
    buckets: ClassVar[int] = 4

    def inputs(self, given: Given) -> tuple[Inputs, Basis, EmbeddingSpec | None]:
        """A row of scaled values for each event."""
        held = HeldControl(dtype=np.float32)(given.scales(given.stays.streams), Partition.uniform(1))
        return Inputs.of(held, given.static), held.basis, None

    def model(self, basis: Basis, static: int, key: PRNGKeyArray) -> SequenceModel:
        """The GRU-D."""
        return gru_d(basis, self.hidden, CLASSES, static=static, key=key)

    def penalties(self) -> Iterator[tuple[float, Callable[[SequenceModel], Any]]]:
        """All weights of the unit."""
        yield self.ridge, _recurrent


Model: TypeAlias = PathModel | HeldModel


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Log odds of death for each member and stay, the trained members, and the cost of their training."""

    validation: Float[np.ndarray, "member series"]
    test: Float[np.ndarray, "member series"]
    seconds: float
    parameters: int
    models: tuple[AbstractModel, ...] = ()

    def ensemble(self) -> Sum:
        """The mean of all members, as one model."""
        return Sum.mean([model for model in self.models if isinstance(model, AbstractOnlineModel)])


class Neural(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="neural"):
    """An ensemble: each of the `models` from `members` seeds, trained separately, their log odds averaged.

    Adam with a cosine schedule to zero; the last state is kept. With `patience`, the state with the smallest loss on
    validation stays is kept, and training ends after that many epochs without a smaller one.
    """

    models: tuple[Model, ...]
    members: int = 5
    epochs: int = 12
    rate: float = 2e-3
    batch: int = 128
    patience: int = 0

    def fit(self, given: Given, seed: int, tell: Tell, scratch: Path) -> Fitted:
        """Train all members; checkpoints in `scratch` resume an interrupted run."""
        seconds = 0.0
        labels, split = given.stays.died.astype(np.int32), given.split
        found: list[AbstractModel] = []
        odds: list[tuple[np.ndarray, np.ndarray]] = []
        count = self.members * len(self.models)
        for kind, model in enumerate(self.models):
            began = time.monotonic()
            inputs, basis, spec = model.inputs(given)
            seconds += time.monotonic() - began
            shape = (inputs.intervals,) if model.each else ()
            targets = np.broadcast_to(labels.reshape(-1, *[1] * len(shape)), (len(labels), *shape))
            optimiser = optimiser_of(model, self.rate, self.epochs * -(-len(split.train) // self.batch))
            for member in range(self.members):
                for_model, for_training = keys_of(1000 * seed + len(found))
                result = fit(
                    model.model(basis, inputs.static.shape[1], for_model),
                    inputs[split.train],
                    targets[split.train],
                    loss=losses.cross_entropy,
                    optimiser=optimiser,
                    batching=Batching(size=self.batch, buckets=model.buckets),
                    duration=Epochs(self.epochs),
                    selection=Selection(
                        validation=(inputs[split.validation], targets[split.validation]) if self.patience else None,
                        patience=self.patience or None,
                    ),
                    recoveries=0,
                    checkpoints=Checkpoints(scratch / f"{kind}-{member}"),
                    callbacks=(Telling(_part(tell, len(found), count)),),
                    key=for_training,
                )
                trained = result.model
                seconds += result.summary.seconds  # also of what was done before an interruption
                odds.append((log_odds(trained, inputs, split.validation), log_odds(trained, inputs, split.test)))
                found.append(dataclasses.replace(trained, spec=spec))
            del inputs  # may be large
        validation, test = (np.stack(part) for part in zip(*odds, strict=True))
        parameters = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(found, eqx.is_inexact_array)))
        return Fitted(validation, test, seconds, parameters, tuple(found))


@functools.cache
def optimiser_of(model: Model, rate: float, steps: int) -> optax.GradientTransformation:
    """Adam with weight decay; cached, so that the members of an ensemble share a compiled program."""
    penalties = [
        optax.add_decayed_weights(amount, functools.partial(_marked, pick=pick)) for amount, pick in model.penalties()
    ]
    return optax.chain(*penalties, optax.adam(optax.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps)))


def log_odds(model: AbstractModel, inputs: Inputs, which: np.ndarray) -> Float[np.ndarray, "series"]:
    """Log odds of death at the end of stays."""
    found = []
    for begin in range(0, len(which), TOGETHER):
        found.append(odds_of(np.asarray(predict(model, inputs[which[begin : begin + TOGETHER]]))))
    return np.concatenate(found)


def odds_of(logits: Float[np.ndarray, "series *interval output"]) -> Float[np.ndarray, "series"]:
    """Log odds of the second class, after the last interval if there are several."""
    last = logits[:, -1] if logits.ndim == 3 else logits
    return np.asarray(last[:, 1] - last[:, 0], np.float64)


def _part(tell: Tell, number: int, count: int) -> Tell:
    return lambda part: tell((number + part) / count)


def _layers(model: Sum, place: int) -> Any:
    return [layer.weight for layer in model.models[place].readout.layers]  # type: ignore[attr-defined]


def _ends(model: Sum, place: int) -> Any:
    return [*_layers(model, place), model.models[place].initial.weight]  # type: ignore[attr-defined]


def _field(model: Sum, place: int) -> Any:
    return model.models[place].dynamics.field  # type: ignore[attr-defined]


def _recurrent(model: SequenceModel) -> Any:
    assert isinstance(model.dynamics, FadingGRU)
    return [model.dynamics.cell.weight_ih, model.dynamics.cell.weight_hh]


def _marked(parameters: Any, pick: Callable[[Any], Any]) -> Any:
    """A mask that is True for the picked parameters."""
    nothing = jax.tree.map(lambda _: False, parameters)
    return eqx.tree_at(pick, nothing, replace_fn=lambda part: jax.tree.map(lambda _: True, part))
