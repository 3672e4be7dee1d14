"""Networks: controlled differential equations on log-signatures, trained by gradients."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Int64, Num

from logcde.embedding import Embedding, LogSignatures
from logcde.estimators.architectures import AbstractArchitecture, Neural, ReadoutType, Slice
from logcde.estimators.choosing import (
    Choice,
    choose_embedding,
    choose_held_out,
    choose_partition,
    choose_steps,
)
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.folds import folds_of
from logcde.estimators.training import Schedule, train, with_target_units, with_temperature
from logcde.models import Mean, SequenceModel
from logcde.models.series import EmbeddedModel, QueryIntervals
from logcde.streams import Partition, Streams
from logcde.streams.scaling import AbstractScaler
from logcde.train import Result, losses
from logcde.train.calibration import temperature_of
from logcde.train.losses import AbstractMeasure


@dataclasses.dataclass(frozen=True, eq=False)
class Chosen:
    """How series become log-signatures, and the reasons."""

    embedding: Embedding
    partition: Partition
    choices: dict[str, Choice]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractNetwork(AbstractLearner):
    """A network and its training. Options that are None are chosen from the training data.

    Args:
        scaler: Scaler of the channels' values, such as `logcde.scaling.RobustScaler()`.
        partition: Partition of the series into intervals.
        depth: Depth of the log-signatures.
        counts: Whether each channel has a coordinate that counts its observations.
        time: Whether time is a coordinate.
        steps: Number of training steps.
        rate: Peak learning rate of Adam; it falls to zero as a cosine.
        batch: Series in one training step.
        validation: Fraction of the training series that is held out to select the best of 20 evaluations, by loss; 0
            uses all series for training.
        patience: Number of evaluations without improvement on the held-out series after which training stops; by
            default it does not stop early.
        folds: Parts of the training series, if each series is to be predicted by a network that did not see it.
    """

    scaler: AbstractScaler | None = None
    partition: Partition | None = None
    depth: int | None = None
    counts: bool | None = None
    time: bool = True
    steps: int | None = None
    rate: float = 1e-2
    batch: int = 32
    validation: float | None = None
    patience: int | None = None
    folds: int = 3

    @property
    @abc.abstractmethod
    def architecture(self) -> AbstractArchitecture:
        """Sizes of the network, which build it once the basis of its inputs is known."""

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Train on all series, and for each fold without it."""
        learnt = self._fitted(task)
        if not held_out:
            return learnt
        unseen = np.tile(task.constant, (len(task.targets), 1))
        for training, rest in folds_of(task, self.folds):
            fold = dataclasses.replace(task[training], checkpoints=None)
            unseen[rest] = self._fitted(fold).model(task.streams[rest])
        return dataclasses.replace(learnt, held_out=unseen)

    def _fitted(self, task: Task) -> Learnt:
        chosen = self.choose(task.streams, task.gap)
        logsigs = chosen.embedding(task.streams, chosen.partition)
        if task.classes is not None:
            sequence, result, more = self.train(
                logsigs, None, task.targets, task.classes, losses.cross_entropy, task, Mean, classes=task.targets
            )
            model = EmbeddedModel(sequence, chosen.embedding, chosen.partition)
            if result.held_out is not None:
                logits = model.outputs(logsigs[result.held_out], None)
                temperature = temperature_of(logits, task.targets[result.held_out])
                model = dataclasses.replace(model, sequence=with_temperature(sequence, temperature))
                more["temperature"] = Choice("temperature", round(temperature, 4), "calibrated on the held-out series")
        else:
            centre, spread = task.targets.mean(), task.targets.std() or 1.0
            targets = (task.targets - centre) / spread
            nothing = np.zeros(len(targets), np.int64)
            sequence, result, more = self.train(logsigs, None, targets, 1, losses.mse, task, Mean, classes=nothing)
            sequence = with_target_units(sequence, np.array([centre]), np.array([spread]))
            model = EmbeddedModel(sequence, chosen.embedding, chosen.partition)
        return Learnt(model, None, {**chosen.choices, **more}, result.history, result.summary.steps)

    def choose(self, streams: Streams, gap: float) -> Chosen:
        """Choose partition and embedding."""
        partition = choose_partition(self.partition, streams, gap)
        embedding, choices = choose_embedding(self.scaler, self.counts, self.time, self.depth, streams, partition.value)
        named = Choice("network", self.architecture, "as given")
        return Chosen(embedding, partition.value, {"partition": partition, **choices, "network": named})

    def train(
        self,
        logsigs: LogSignatures,
        queries: QueryIntervals | None,
        targets: Num[np.ndarray, "series ..."],
        outputs: int,
        loss: AbstractMeasure,
        task: Task,
        readout: ReadoutType,
        classes: Int64[np.ndarray, "series"],
    ) -> tuple[SequenceModel, Result, dict[str, Choice]]:
        """Choose the length of training and the validation series, and train.

        Args:
            logsigs: Log-signatures of the training series.
            queries: Intervals that end at query times; None if there is one target per series.
            targets: Targets of each series.
            outputs: Number of outputs of the model.
            loss: Training loss, which also selects the model on held-out series.
            task: Weights, seed, checkpoints and progress.
            readout: Class of the readout.
            classes: Class of each series; the same fraction of each is held out.
        """
        held_out, fraction = choose_held_out(self.validation, classes, np.random.default_rng(task.seed))
        training = len(logsigs) - (0 if held_out is None else len(held_out))
        steps = choose_steps(self.steps, training, len(task.streams.value) / len(task.streams), self.batch)
        schedule = Schedule(
            steps=steps.value,
            rate=self.rate,
            batch=self.batch,
            held_out=held_out,
            patience=self.patience,
            weights=None if (task.weight == 1.0).all() else task.weight,
            checkpoints=task.checkpoints,
            progress=task.progress,
            seed=task.seed,
        )
        sequence, result = train(self.architecture, readout, logsigs, queries, targets, outputs, loss, schedule)
        return sequence, result, {"validation": fraction, "steps": steps}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogSLiCE(AbstractNetwork):
    """A block-diagonal Log-SLiCE with an MLP readout. Fast to train.

    Args:
        hidden: Size of the hidden state.
        block: Size of the blocks.
        widths: Widths of the hidden layers of the readout.
        init_scale: Factor of the initial vector field.

    >>> LogSLiCE(hidden=128).architecture
    Slice(hidden=128, block=4, widths=(64,), init_scale=0.05)
    """

    hidden: int = 64
    block: int = 4
    widths: tuple[int, ...] = (64,)
    init_scale: float = 0.05

    @property
    def architecture(self) -> Slice:
        """Builds the linear CDE."""
        return Slice(self.hidden, self.block, self.widths, self.init_scale)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogNCDE(AbstractNetwork):
    """A Log-NCDE with an MLP vector field. Slower to train than `LogSLiCE`.

    Args:
        hidden: Size of the hidden state.
        width: Width of the hidden layers of the vector field.
        layers: Number of hidden layers of the vector field.
        widths: Widths of the hidden layers of the readout.

    >>> LogNCDE(width=32).architecture
    Neural(hidden=32, width=32, layers=2, widths=())
    """

    hidden: int = 32
    width: int = 64
    layers: int = 2
    widths: tuple[int, ...] = ()

    @property
    def architecture(self) -> Neural:
        """Builds the neural CDE."""
        return Neural(self.hidden, self.width, self.layers, self.widths)
