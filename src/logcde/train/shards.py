"""Training on more series than memory holds: embedded shards on disk, one of which is in memory at a time.

Every epoch takes the shards in a new order, and the series of each in a new order. The steps, evaluations, recoveries
and checkpoints are those of `fit`: with one shard, so are the bits.
"""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import PRNGKeyArray

from logcde import artefact
from logcde._documents import read_document, write_document
from logcde._files import read_regular, scratch_folder, write_whole
from logcde.embedding import LogSignatures
from logcde.errors import TrainingError, check_whole
from logcde.models import AbstractModel
from logcde.train import losses
from logcde.train.callbacks import AbstractCallback, ProgressBar
from logcde.train.checkpoint import Checkpoints, fingerprint_of
from logcde.train.data import BatchOrder, Examples, Targets, examples_of
from logcde.train.loop import AbstractBucketReader, TrainingLoop
from logcde.train.losses import AbstractMeasure
from logcde.train.options import Batching, Duration, Epochs
from logcde.train.parallel import Devices, is_main_process, mesh_of, put_on_mesh, round_up_to_devices
from logcde.train.records import Result
from logcde.train.steps import AbstractEvaluator, Evaluator, Parameters, TrainStep

INDEX = "shards.json"
FORMAT = 1
LARGEST_INDEX = 1 << 26
COLUMNS = ("values", "lengths", "targets", "first", "seen", "at_start")


@dataclasses.dataclass(frozen=True)
class Shards:
    """A folder of embedded series with their targets, some thousands in each shard. Make one with `write` or `open`.

    Attributes:
        folder: The folder.
        sizes: The number of series of each shard.
        intervals: The largest number of intervals of a series.
        like: Log-signatures of no series, with the basis and the options of all.
        checksum: Of all numbers, by which a checkpoint knows its shards.

    >>> import tempfile
    >>> from logcde import Basis
    >>> basis = Basis.of_width(2, 1)
    >>> parts = ((LogSignatures(np.ones((4, n, 2)), np.full(4, n), basis), np.arange(4.0)) for n in (2, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = Shards.write(f"{folder}/shards", parts)
    ...     shards.sizes, shards.intervals, Shards.open(f"{folder}/shards").read(1)[0].values.shape
    ((4, 4), 3, (4, 3, 2))
    """

    folder: Path
    sizes: tuple[int, ...]
    intervals: int
    like: LogSignatures
    checksum: str

    @classmethod
    def write(cls, folder: str | os.PathLike, parts: Iterable[tuple[LogSignatures, Targets]]) -> "Shards":
        """Write a shard for each pair of log-signatures and targets; the folder appears when all are written.

        Args:
            folder: The folder, which must not exist.
            parts: Log-signatures of one basis, each with the targets of its series, as for `fit`. Each pair is in
                memory only while it is written.
        """
        folder = Path(folder)
        if folder.exists():
            raise TrainingError(f"{folder} exists.", "Choose another folder, or open it with Shards.open.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        sizes, intervals, like, digest = [], 0, None, hashlib.sha256()
        with scratch_folder(folder) as scratch:
            for number, (logsigs, targets) in enumerate(parts):
                if like is None:
                    like = logsigs[:0]
                if (logsigs.basis, logsigs.initial is None) != (like.basis, like.initial is None):
                    raise TrainingError(
                        f"Shard {number} has {logsigs!r}, and the first one {like!r}.",
                        "Embed all parts with the same options and the same schema.",
                    )
                for name, column in _columns(logsigs, np.asarray(targets)).items():
                    np.save(scratch / f"{number:05}-{name}.npy", column, allow_pickle=False)
                    digest.update(np.ascontiguousarray(column).tobytes())
                sizes.append(len(logsigs))
                intervals = max(intervals, logsigs.values.shape[1])
            if like is None or 0 in sizes:
                raise TrainingError("There is a shard without series, or no shard at all.", "Give series for each.")
            artefact.save(like, scratch / "like")
            index = {"sizes": sizes, "intervals": intervals, "checksum": digest.hexdigest()}
            write_whole(scratch / INDEX, write_document(index, FORMAT))
            scratch.rename(folder)
        return cls(folder, tuple(sizes), intervals, like, digest.hexdigest())

    @classmethod
    def open(cls, folder: str | os.PathLike) -> "Shards":
        """Open a folder that `write` wrote."""
        folder = Path(folder)
        try:
            index = read_document(read_regular(folder / INDEX, LARGEST_INDEX), FORMAT)
        except (OSError, ValueError) as error:
            raise TrainingError(f"{folder} has no index of shards: {error}.", "Write it with Shards.write.") from error
        like = artefact.load(folder / "like")
        return cls(folder, tuple(index["sizes"]), index["intervals"], like, index["checksum"])

    def __len__(self) -> int:
        return len(self.sizes)

    def read(self, number: int) -> tuple[LogSignatures, np.ndarray]:
        """The log-signatures and the targets of a shard, mapped into memory."""
        names = COLUMNS if self.like.initial is not None else COLUMNS[:3]
        columns = {}
        for name in names:
            file = self.folder / f"{number:05}-{name}.npy"
            try:
                columns[name] = np.load(file, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError) as error:
                raise TrainingError(f"{file} cannot be read: {error}.", "Write the shards again.") from error
            if len(columns[name]) != self.sizes[number]:
                raise TrainingError(f"{file} has {len(columns[name])} series.", "Write the shards again.")
        initial = self.like.initial
        if initial is not None:
            initial = type(initial)(columns["first"], columns["seen"], columns["at_start"])
        logsigs = LogSignatures(columns["values"], columns["lengths"], self.like.basis, initial, self.like.spec)
        return logsigs, columns["targets"]

    def examples(self, model: AbstractModel, number: int, rows: int = 0) -> Examples:
        """A shard as examples of one shape for all shards, with at least so many rows.

        Args:
            model: The model, which decides type and shape of the targets.
            number: The number of the shard.
            rows: Empty series, which no batch contains, are appended up to this number.
        """
        logsigs, targets = self.read(number)
        missing = self.intervals - logsigs.values.shape[1]
        values = np.pad(logsigs.values, ((0, 0), (0, missing), (0, 0)))
        padded = eqx.tree_at(lambda tree: tree.values, logsigs, values)
        examples = examples_of(model, padded, targets)
        more = max(0, rows - len(examples))
        return jax.tree.map(lambda leaf: np.pad(leaf, [(0, more)] + [(0, 0)] * (leaf.ndim - 1)), examples)


@dataclasses.dataclass
class ShardReader(AbstractBucketReader):
    """The training data of a loop: the shard of the current steps, on the devices.

    Args:
        shards: The shards.
        model: The model that is trained.
        mesh: The devices.
    """

    shards: Shards
    model: AbstractModel
    mesh: Mesh
    _current: tuple[int, tuple[Examples, ...]] | None = None

    def at(self, number: int) -> tuple[Examples, ...]:
        """The only bucket of the steps that are in this shard."""
        if self._current is None or self._current[0] != number:
            self._current = None  # frees the one before
            examples = self.shards.examples(self.model, number, max(self.shards.sizes))
            self._current = (number, put_on_mesh(self.mesh, (examples,)))
        return self._current[1]


@dataclasses.dataclass(frozen=True)
class ShardEvaluator(AbstractEvaluator):
    """Computes measures over the series of all shards, one shard after another.

    Attributes:
        rest: The model without its parameters.
        measures: What to compute.
        reader: Reads the shards.
        batching: How many series to predict at a time.
    """

    rest: Parameters
    measures: tuple[AbstractMeasure, ...]
    reader: ShardReader
    batching: Batching

    @property
    def series(self) -> int:
        """Number of series."""
        return sum(self.reader.shards.sizes)

    def __call__(self, parameters: Parameters) -> dict[str, float]:
        """The measures of a model with these parameters, by name."""
        sums = {measure.name: np.zeros(2) for measure in self.measures}
        shards, mesh = self.reader.shards, self.reader.mesh
        for number, size in enumerate(shards.sizes):
            one = Evaluator.of_buckets(self.rest, self.measures, self.reader.at(number), (size,), self.batching, mesh)
            for name, pair in one.sums(parameters).items():
                sums[name] += pair
        return {name: float(value / (weight or 1.0)) for name, (value, weight) in sums.items()}


def fit_shards(
    model: AbstractModel,
    shards: Shards,
    *,
    loss: AbstractMeasure = losses.mse,
    optimiser: optax.GradientTransformation = optax.adam(1e-3),
    clip: float | None = 1.0,
    penalty: float = 0.0,
    batch: int = 32,
    duration: Duration = Epochs(100),
    validation: Shards | None = None,
    metrics: Sequence[AbstractMeasure] = (),
    every: Duration = Epochs(1),
    patience: int | None = 20,
    latest: bool = False,
    recoveries: int = 3,
    checkpoints: Checkpoints | None = None,
    callbacks: Sequence[AbstractCallback] = (ProgressBar(),),
    devices: Devices | None = None,
    key: PRNGKeyArray,
) -> Result:
    """Train a model on shards, of which one is in memory at a time, and return the one with the best validation score.

    Each epoch takes the shards in a new order, and their series in a new order; a batch is of one shard. Series of
    different shards should therefore be alike: write each shard from a random part of the series.

    Args:
        model: The model to start from. Scaling that belongs to it is fitted to the first shard.
        shards: Training series.
        loss: As for `fit`, as all arguments that are not described here.
        optimiser: Any Optax gradient transformation.
        clip: Largest norm of the gradient over all parameters; None does not clip.
        penalty: Factor of the model's own penalty.
        batch: Series in a mini-batch.
        duration: Length of the training in `Epochs` or `Steps`.
        validation: Other series to validate on; without any, the last model is returned.
        metrics: Measures to compute on them besides the loss; the first one selects the model.
        every: Steps or epochs between two evaluations.
        patience: Stop after this many evaluations in a row without a new best score.
        latest: Among equal scores, select the latest model instead of the earliest.
        recoveries: How often training may meet a number that is not finite.
        checkpoints: Where to save the state of the run, and to resume from.
        callbacks: Follow the run.
        devices: Devices that share each batch. Of several processes, each reads the same shard.
        key: Seed of shuffling, and of models that are random in training.

    Returns:
        The selected and the last model, the history of evaluations and a summary.

    >>> import tempfile
    >>> from logcde import Basis, log_slice
    >>> basis, rng = Basis.of_width(2, 2), np.random.default_rng(0)
    >>> values = rng.normal(size=(3, 32, 5, 3))
    >>> parts = ((LogSignatures(one, np.full(32, 5), basis), one.sum(axis=(1, 2))) for one in values)
    >>> model = log_slice(basis, hidden=8, block=1, outputs=1, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = Shards.write(f"{folder}/shards", parts)
    ...     result = fit_shards(model, shards, duration=Epochs(2), callbacks=(), key=jax.random.key(1))
    >>> result.summary.steps, result.summary.training_series
    (6, 96)
    """
    check_whole("fit_shards", "batch", batch)
    seed = tuple(np.asarray(jax.random.key_data(key)).ravel().tolist())
    model = model.fit_preprocessing(jax.tree.map(jnp.asarray, shards.examples(model, 0).inputs), shards.like.spec)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)
    mesh = mesh_of(devices)
    train_step = TrainStep(rest, loss, optimiser, clip, penalty, mesh)
    initial = train_step.initial_state(parameters)
    order = BatchOrder(shards.sizes, batch, round_up_to_devices(batch, mesh), (*seed, 1), one_by_one=True)
    measures = (loss, *metrics)
    evaluator = None
    if validation is not None:
        evaluator = ShardEvaluator(rest, measures, ShardReader(validation, model, mesh), Batching(batch, 1))
    decisive: dict[str, Any] = {
        "loss": loss,
        "clip": clip,
        "penalty": penalty,
        "batch": batch,
        "shards": [one.checksum for one in (shards, validation) if one is not None],
        "metrics": tuple(metrics),
        "every": every,
        "latest": latest,
        "key": seed,
    }
    loop = TrainingLoop(
        train_step=train_step,
        order=order,
        buckets=ShardReader(shards, model, mesh),
        key=put_on_mesh(mesh, key),
        evaluator=evaluator,
        selector=(*metrics, loss)[0],
        latest=latest,
        steps=duration.steps(order.per_epoch),
        every=every.steps(order.per_epoch),
        patience=patience,
        recoveries=recoveries,
        checkpoints=checkpoints,
        fingerprint={} if checkpoints is None else fingerprint_of(train_step, initial, (), decisive),
        callbacks=tuple(callbacks) if is_main_process() else (),
    )
    state, summary = loop(initial)
    last = loop.model(state.current.parameters)
    best = loop.model(state.best) if state.progress.best_score is not None else last
    return Result(best, last, state.progress.history, summary, None)


def _columns(logsigs: LogSignatures, targets: np.ndarray) -> dict[str, np.ndarray]:
    initial = logsigs.initial
    firsts = () if initial is None else (initial.first, initial.seen, initial.at_start)
    columns = (logsigs.values, logsigs.lengths, targets, *firsts)
    return {name: np.asarray(column) for name, column in zip(COLUMNS, columns, strict=False)}
