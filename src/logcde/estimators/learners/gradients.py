"""What all networks have in common: options of training, members, folds and calibration."""

import abc
import dataclasses
from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Int64, Num, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError, check_positive, check_whole
from logcde.estimators.choosing import Choice, check_observed, choose_held_out, choose_steps
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.folds import folds_of
from logcde.estimators.training import Regularisation, Schedule, train, with_target_units, with_temperature
from logcde.models import AbstractOnlineModel, AbstractReadout, Inputs, SequenceModel
from logcde.models.series import AbstractSeriesModel, EmbeddedModel, RowModel
from logcde.streams import AbstractDropping, PerChannel, PerEvent, Streams, drop_observations
from logcde.train import Result, losses
from logcde.train.calibration import temperature_of
from logcde.train.losses import AbstractMeasure

SHRINKAGE = 20.0
"""Series that pull a temperature to 1."""

MOST_NUMBERS = 2**27
"""Numbers of all versions of the training series in memory; large data sets, which need none, have fewer copies."""


@dataclasses.dataclass(frozen=True, eq=False)
class Versions:
    """What a network is trained on.

    Args:
        rows: What drives it: a basis of log-signatures, or the size of plain rows.
        inputs: The training series.
        copies: Further versions of them.
    """

    rows: Basis | int
    inputs: Inputs
    copies: tuple[Inputs, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """Series as a network takes them.

    Args:
        versions: The training series and further versions of them.
        finish: From a trained network to a model of series.
        choices: Settings that were chosen from the data.
    """

    versions: Versions
    finish: Callable[[AbstractOnlineModel], AbstractSeriesModel]
    choices: dict[str, Choice]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractGradientLearner(AbstractLearner):
    """A network that is trained by gradients. Options that are None are chosen from the training data.

    Subclass it as a frozen dataclass: `prepare` turns series into inputs, `build` makes an untrained network. To save
    estimators with your own network, pass its class to `logcde.register`.

    Args:
        steps: Number of training steps.
        rate: Peak learning rate of AdamW; it falls to zero as a cosine.
        batch: Series in one training step.
        regularisation: Dropped copies, dropout, weight decay and label smoothing.
        members: Networks from different seeds, which predict as one: by the mean of their probabilities or numbers.
        validation: Fraction of the training series that is held out to select the best of 20 evaluations, by loss, and
            to calibrate; 0 uses all series for training.
        patience: Number of evaluations without improvement on the held-out series after which training stops; by
            default it does not stop early.
        folds: Parts of the training series, if each series is to be predicted by a network that did not see it. These
            predictions then calibrate the classifier.
    """

    steps: int | None = None
    rate: float = 1e-2
    batch: int = 32
    regularisation: Regularisation = Regularisation()
    members: int = 1
    validation: float | None = None
    patience: int | None = None
    folds: int = 3

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "members", "patience", "folds"):
            number = getattr(self, name)
            if number is not None:
                check_whole(type(self).__name__, name, number, least=2 if name == "folds" else 1)
        check_positive(type(self).__name__, "rate", self.rate)
        if self.validation is not None and not 0 <= self.validation < 1:
            raise ModelError(
                f"{type(self).__name__}(validation={self.validation!r}) is not possible.",
                "Give a fraction of at least 0 and less than 1.",
            )

    @abc.abstractmethod
    def prepare(self, task: Task, training: Int64[np.ndarray, "_"]) -> Prepared:
        """Turn series into inputs; what is fitted is fitted to the `training` ones."""

    @abc.abstractmethod
    def build(
        self, rows: Basis | int, outputs: int, readout: type[AbstractReadout] | None, key: PRNGKeyArray
    ) -> SequenceModel:
        """An untrained causal network without scaling.

        Args:
            rows: What drives it: a basis of log-signatures, or the size of plain rows.
            outputs: Number of classes, or of predicted values.
            readout: Class of the readout if the estimator asks for one.
            key: Key of the initial parameters.
        """

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Train on all series, and for each fold one network without it."""
        check_observed(task.streams)
        learnt = self._fitted(task, self.members)
        if not held_out:
            return learnt
        unseen = np.tile(task.constant, (len(task.targets), 1))
        for training, rest in folds_of(task, self.folds):
            fold = dataclasses.replace(task[training], checkpoints=None)
            unseen[rest] = self._fitted(fold, 1).model(task.streams[rest])
        learnt = dataclasses.replace(learnt, held_out=unseen)
        return learnt if task.classes is None or "temperature" in learnt.choices else _calibrated(learnt, task)

    def run(
        self,
        versions: Versions,
        targets: Num[np.ndarray, "series ..."],
        outputs: int,
        measure: AbstractMeasure,
        task: Task,
        readout: type[AbstractReadout] | None,
        held_out: Int64[np.ndarray, "_"] | None,
        members: int,
    ) -> tuple[AbstractOnlineModel, Result, Choice]:
        """Choose the length of training, and train."""
        training = len(targets) - (0 if held_out is None else len(held_out))
        steps = choose_steps(self.steps, training, len(task.streams.value) / len(task.streams), self.batch)
        schedule = Schedule(
            steps=steps.value,
            rate=self.rate,
            decay=self.regularisation.decay,
            batch=self.batch,
            held_out=held_out,
            patience=self.patience,
            weights=None if (task.weight == 1.0).all() else task.weight,
            checkpoints=task.checkpoints,
            progress=task.progress,
            seed=task.seed,
            members=members,
        )
        smoothing = self.regularisation.smoothing
        loss = losses.CrossEntropy(smoothing=smoothing) if measure == losses.cross_entropy and smoothing else measure
        bare = self._bare()
        network, result = train(
            lambda key: _built(bare, versions.rows, outputs, readout, key),
            versions.inputs,
            versions.copies,
            targets,
            loss,
            measure,
            schedule,
        )
        return network, result, steps

    def _fitted(self, task: Task, members: int) -> Learnt:
        nothing = np.zeros(len(task.targets), np.int64)
        held_out, fraction = choose_held_out(
            self.validation, nothing if task.classes is None else task.targets, np.random.default_rng(task.seed)
        )
        every = np.arange(len(task.targets))
        prepared = self.prepare(task, every if held_out is None else np.delete(every, held_out))
        targets, measure = task.targets, losses.cross_entropy if task.classes else losses.mse
        centre, spread = 0.0, 1.0
        if task.classes is None:
            centre, spread = float(targets.mean()), float(targets.std()) or 1.0
            targets = (targets - centre) / spread
        network, result, steps = self.run(
            prepared.versions, targets, task.outputs, measure, task, None, held_out, members
        )
        if task.classes is None:
            network = with_target_units(network, np.array([centre]), np.array([spread]))
        choices = {**prepared.choices, "validation": fraction, "steps": steps}
        learnt = Learnt(prepared.finish(network), None, choices, result.history, result.summary.steps)
        if task.classes is None or result.held_out is None:
            return learnt
        logits = learnt.model(task.streams[result.held_out])
        temperature = temperature_of(logits, task.targets[result.held_out])
        return _with_temperature(learnt, temperature, "calibrated on the held-out series")

    def _bare(self) -> "AbstractGradientLearner":
        """The same network with default options of training, so that equal networks share a compiled program."""
        kept = {field.name for field in dataclasses.fields(self)} - _OPTIONS
        return dataclasses.replace(type(self)(), **{name: getattr(self, name) for name in kept})


_OPTIONS = {field.name for field in dataclasses.fields(AbstractGradientLearner)} - {"regularisation"}


def drop_copies(streams: Streams, fractions: tuple[float, ...], size: int, seed: int) -> tuple[Streams, ...]:
    """Further versions of series, from which observations were dropped.

    Args:
        streams: The series.
        fractions: What each version drops.
        size: Numbers of one version as inputs, of which all in memory stay below `MOST_NUMBERS`.
        seed: Seed of the dropping.
    """
    by: AbstractDropping = PerEvent() if streams.schema.terms else PerChannel()
    affordable = max(MOST_NUMBERS // max(size, 1) - 1, 0)
    return tuple(
        drop_observations(streams, fraction, by, seed=(seed, number))
        for number, fraction in enumerate(fractions[:affordable])
    )


def _calibrated(learnt: Learnt, task: Task) -> Learnt:
    """Calibrate by the outputs of each series left out."""
    assert learnt.held_out is not None
    temperature = temperature_of(learnt.held_out, task.targets, task.weight, shrinkage=SHRINKAGE)
    return _with_temperature(learnt, temperature, "calibrated on the series of each fold")


def _with_temperature(learnt: Learnt, temperature: float, reason: str) -> Learnt:
    model = learnt.model
    assert isinstance(model, EmbeddedModel | RowModel)
    changed = dataclasses.replace(model, sequence=with_temperature(model.sequence, temperature))
    unseen = None if learnt.held_out is None else learnt.held_out / temperature
    choices = {**learnt.choices, "temperature": Choice("temperature", round(temperature, 4), reason)}
    return dataclasses.replace(learnt, model=changed, held_out=unseen, choices=choices)


@eqx.filter_jit
def _built(
    bare: AbstractGradientLearner,
    rows: Basis | int,
    outputs: int,
    readout: type[AbstractReadout] | None,
    key: PRNGKeyArray,
) -> SequenceModel:
    return bare.build(rows, outputs, readout, key)
