"""Networks on log-signatures: controlled differential equations, trained by gradients."""

import abc
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int64, Num, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding import Embedding, LogSignatures, SparseLogSignatures, SparseSteps
from logcde.embedding.coordinates import time_of
from logcde.estimators.choosing import Choice, choose_embedding, choose_held_out, choose_partition
from logcde.estimators.learners.abstract import Task
from logcde.estimators.learners.gradients import AbstractGradientLearner, Prepared, Versions, drop_copies
from logcde.flows import Contracting, LinearDynamics, Orthogonal
from logcde.models import (
    AbstractOnlineModel,
    AbstractReadout,
    AbstractScaling,
    IncrementRMSScaling,
    Mean,
    SequenceModel,
    SoftLimit,
    TimeZeroInitial,
    log_ncde,
    log_slice,
)
from logcde.models.series import EmbeddedModel, QueryIntervals, map_networks, scaled_inputs
from logcde.scans import Auto, MatrixFree
from logcde.streams import Partition, Streams
from logcde.streams.scaling import AbstractScaler
from logcde.train import Result
from logcde.train.losses import AbstractMeasure

LIMIT = 3.0
"""Coordinates of log-signatures are limited softly to this size; increments of training have unit size."""


@dataclasses.dataclass(frozen=True, eq=False)
class Chosen:
    """How series become log-signatures, and the reasons."""

    embedding: Embedding
    partition: Partition
    choices: dict[str, Choice]

    def embed(self, streams: Streams) -> LogSignatures | SparseLogSignatures:
        """The log-signatures of series, sparse if that was chosen."""
        return self.embedding(streams, self.partition, sparse=self.choices["sparse"].value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractNetwork(AbstractGradientLearner):
    """A network on log-signatures. Further options are those of `AbstractGradientLearner`.

    Args:
        scaler: Scaler of the channels' values, such as `logcde.scaling.RobustScaler()`.
        partition: Partition of the series into intervals.
        depth: Depth of the log-signatures.
        counts: Whether each channel has a coordinate that counts its observations, by default not. How often something
            is observed can tell much, but a network that counts does not stand a feed much denser than in training.
        time: Whether time is a coordinate.
    """

    scaler: AbstractScaler | None = None
    partition: Partition | None = None
    depth: int | None = None
    counts: bool | None = None
    time: bool = True

    @property
    @abc.abstractmethod
    def limited(self) -> bool:
        """Whether log-signatures are limited softly to about the size of those of training."""

    def choose(self, streams: Streams, gap: float) -> Chosen:
        """Choose partition and embedding."""
        partition = choose_partition(self.partition, streams, gap)
        embedding, choices = choose_embedding(self.scaler, self.counts, self.time, self.depth, streams, partition.value)
        return Chosen(embedding, partition.value, {"partition": partition, **choices})

    def prepare(self, task: Task, training: Int64[np.ndarray, "_"]) -> Prepared:
        """Embed the series, and versions of them with fewer observations."""
        chosen = self.choose(task.streams, task.gap)
        logsigs = chosen.embed(task.streams)
        dropped = drop_copies(task.streams, self.regularisation.copies, logsigs.values.size, task.seed)
        copies = [chosen.embed(one) for one in dropped]
        copies = [one for one in copies if np.array_equal(one.lengths, logsigs.lengths)]
        scaling = _fit_scaling(logsigs[training], self.limited)
        inputs, *others = (scaled_inputs(one, scaling, None) for one in (logsigs, *copies))

        def finish(network: AbstractOnlineModel) -> EmbeddedModel:
            finished = _finished(network, scaling, logsigs)
            return EmbeddedModel(finished, chosen.embedding, chosen.partition, chosen.choices["sparse"].value)

        return Prepared(Versions(logsigs.basis, inputs, tuple(others)), finish, chosen.choices)

    def train(
        self,
        logsigs: LogSignatures | SparseLogSignatures,
        queries: QueryIntervals | None,
        targets: Num[np.ndarray, "series ..."],
        outputs: int,
        loss: AbstractMeasure,
        task: Task,
        readout: type[AbstractReadout],
        classes: Int64[np.ndarray, "series"],
    ) -> tuple[AbstractOnlineModel, Result, dict[str, Choice]]:
        """Choose the length of training and the validation series, and train on given log-signatures.

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
        training = np.arange(len(logsigs)) if held_out is None else np.delete(np.arange(len(logsigs)), held_out)
        scaling = _fit_scaling(logsigs[training], self.limited)
        versions = Versions(logsigs.basis, scaled_inputs(logsigs, scaling, queries))
        network, result, steps = self.run(versions, targets, outputs, loss, task, readout, held_out, self.members)
        return _finished(network, scaling, logsigs), result, {"validation": fraction, "steps": steps}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogSLiCE(AbstractNetwork):
    """A block-diagonal Log-SLiCE with an MLP readout. Fast to train.

    Args:
        hidden: Size of the hidden state.
        block: Size of the blocks.
        widths: Widths of the hidden layers of the readout.
        init_scale: Factor of the initial vector field.
        stable: Whether flows rotate and forget, and log-signatures are limited softly, so that no series moves the
            state out of bounds. Otherwise flows may grow it, and log-signatures of any size are told apart, which
            is more precise on series like those of training.

    >>> LogSLiCE(hidden=128).members
    1
    """

    hidden: int = 64
    block: int = 4
    widths: tuple[int, ...] = (64,)
    init_scale: float = 0.05
    stable: bool = True

    @property
    def limited(self) -> bool:
        """Whether states are to be bounded."""
        return self.stable

    def build(
        self, rows: Basis | int, outputs: int, readout: type[AbstractReadout] | None, key: PRNGKeyArray
    ) -> SequenceModel:
        """A linear CDE whose blocks rotate and forget, unless flows may grow."""
        assert isinstance(rows, Basis)
        # What `Auto` selects on a CPU; tracing its other branches as well would take longer than small fits.
        scan = MatrixFree() if jax.default_backend() == "cpu" else Auto()
        model = log_slice(
            rows,
            self.hidden,
            outputs,
            block=self.block,
            initial=TimeZeroInitial(),
            readout=(readout or Mean)(self.widths, self.regularisation.dropout),
            scan=scan,
            init_scale=self.init_scale,
            key=key,
        )
        if not self.stable:
            return model
        field = Contracting if time_of(rows.letters) is not None else Orthogonal
        own = jax.random.fold_in(key, 1)
        dynamics = LinearDynamics(field(rows, self.hidden, self.block, init_scale=self.init_scale, key=own), scan=scan)
        return dataclasses.replace(model, dynamics=dynamics)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogNCDE(AbstractNetwork):
    """A Log-NCDE with an MLP vector field. Slower to train than `LogSLiCE`.

    Args:
        hidden: Size of the hidden state.
        width: Width of the hidden layers of the vector field.
        layers: Number of hidden layers of the vector field.
        widths: Widths of the hidden layers of the readout.

    >>> LogNCDE(width=32).hidden
    32
    """

    hidden: int = 32
    width: int = 64
    layers: int = 2
    widths: tuple[int, ...] = ()

    @property
    def limited(self) -> bool:
        """Always: a neural vector field is not bounded."""
        return True

    def build(
        self, rows: Basis | int, outputs: int, readout: type[AbstractReadout] | None, key: PRNGKeyArray
    ) -> SequenceModel:
        """The neural CDE, which the Log-ODE method solves."""
        assert isinstance(rows, Basis)
        return log_ncde(
            rows,
            self.hidden,
            outputs,
            width=self.width,
            layers=self.layers,
            initial=TimeZeroInitial(),
            readout=(readout or Mean)(self.widths, self.regularisation.dropout),
            key=key,
        )


def _finished(
    network: AbstractOnlineModel, scaling: AbstractScaling, logsigs: LogSignatures | SparseLogSignatures
) -> AbstractOnlineModel:
    return map_networks(lambda one: dataclasses.replace(one, scaling=scaling, spec=logsigs.spec), network)


def _fit_scaling(logsigs: LogSignatures | SparseLogSignatures, limited: bool) -> AbstractScaling:
    """Scale to unit RMS of the whole increment instead of each letter, so that any number of letters trains alike."""
    sparse = isinstance(logsigs, SparseLogSignatures)
    steps = SparseSteps.of(logsigs, np.float32) if sparse else jnp.asarray(logsigs.values, jnp.float32)
    each = IncrementRMSScaling().fit(steps, logsigs.basis)
    assert isinstance(each, IncrementRMSScaling)
    assert each.factors is not None
    scaling = IncrementRMSScaling(tuple(factor / len(each.factors) ** 0.5 for factor in each.factors))
    return SoftLimit(scaling, LIMIT) if limited else scaling
