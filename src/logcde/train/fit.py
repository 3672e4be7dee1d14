"""`fit` trains a model on log-signatures and targets; `score` measures one on other series."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from logcde.models import AbstractModel, Inputs
from logcde.train import losses
from logcde.train.callbacks import AbstractCallback, ProgressBar
from logcde.train.checkpoint import Checkpoints, fingerprint_of
from logcde.train.data import (
    BatchOrder,
    Data,
    Examples,
    Targets,
    buckets_of,
    checked_weights,
    concatenated,
    copies_of,
    examples_of,
    held_out_series,
    pad_series,
)
from logcde.train.loop import TrainingLoop
from logcde.train.losses import AbstractMeasure
from logcde.train.options import Batching, Duration, Epochs, Selection, Validation
from logcde.train.parallel import Devices, is_main_process, mesh_of, put_on_mesh, round_up_to_devices
from logcde.train.records import Result
from logcde.train.steps import Evaluator, TrainStep


def fit(
    model: AbstractModel,
    logsigs: Data,
    targets: Targets,
    *,
    loss: AbstractMeasure = losses.mse,
    static: Any = None,
    weights: Any = None,
    copies: Sequence[Data] = (),
    optimiser: optax.GradientTransformation = optax.adam(1e-3),
    clip: float | None = 1.0,
    penalty: float = 0.0,
    batching: Batching = Batching(size=32, buckets=4),
    duration: Duration = Epochs(100),
    selection: Selection = Selection(validation=0.15, metrics=(), every=Epochs(1), patience=20, latest=False),
    recoveries: int = 3,
    checkpoints: Checkpoints | None = None,
    callbacks: Sequence[AbstractCallback] = (ProgressBar(),),
    devices: Devices | None = None,
    key: PRNGKeyArray,
) -> Result:
    """Train a model and return the one with the best validation score.

    The same arguments give the same result, bit for bit, on the same machine. Scaling that belongs to the model is
    fitted first, on the training series only.

    Args:
        model: The model to start from; it is not changed.
        logsigs: Log-signatures, or `Inputs`.
        targets: (series, outputs), or (series, interval, outputs) for models that predict at each interval; targets
            beyond a series' last interval are ignored. Class labels are integers without the last axis, which may also
            be left out for a single output.
        loss: What to minimise: one of `logcde.losses`, or your own `AbstractMeasure`.
        static: Static features (series, static) of models that take some; `Inputs` contain theirs.
        weights: A weight for each series, in the loss and in all scores on held-out series; equal by default.
        copies: Other versions of `logsigs` to train on, such as `dropped_copies`: the same series with the same
            intervals. Whenever a series is in a mini-batch, one of its versions is drawn, `logsigs` among them. Scores
            are those of `logsigs`, and scaling is fitted to it. All versions are in the memory of the device.
        optimiser: Any Optax gradient transformation, schedules included, such as `one_cycle_adamw`.
        clip: Largest norm of the gradient over all parameters; None does not clip.
        penalty: Factor of the model's own penalty (the size of its vector field), which is added to the loss.
        batching: How series form mini-batches.
        duration: Length of the training in `Epochs` or `Steps`.
        selection: Validation series, metrics, early stopping, and which model is returned.
        recoveries: How often training may meet a number that is not finite: it goes back to the last evaluation whose
            numbers were finite, and on from there at half the learning rate. `Result.summary` counts, and each time one
            line in the log says so. 0 raises `NonFiniteError` at once.
        checkpoints: Where to save the state of the run. When `fit` is called again with the same arguments, it resumes
            there; only `duration`, `patience` and `recoveries` may differ.
        callbacks: Follow the run. Pass `()` for no progress bar, or the bar among others of your own.
        devices: Devices that share each batch; all of JAX's by default. Of several processes, each calls `fit` alike.
        key: Seed of the validation split, of shuffling, and of models that are random in training.

    Returns:
        The selected and the last model, the history of evaluations and a summary.

    Raises:
        TrainingError: Data or options do not fit each other or the model.
        NonFiniteError: The loss or a parameter became infinite or NaN, after all recoveries; it carries the last
            finite model.
        CheckpointError: The checkpoint cannot be read or belongs to another run.
        InUseError: Another process is training into the folder of checkpoints.
        TrainingInterrupted: Ctrl-C was pressed; it carries the model so far.

    >>> from logcde import Basis, LogSignatures, log_slice
    >>> basis = Basis.of_width(2, 2)
    >>> values = np.random.default_rng(0).normal(size=(64, 5, 3))
    >>> logsigs = LogSignatures(values, np.full(64, 5), basis)
    >>> model = log_slice(basis, hidden=8, block=1, outputs=1, key=jax.random.key(0))
    >>> result = fit(model, logsigs, values.sum(axis=(1, 2)), duration=Epochs(3), key=jax.random.key(1))
    >>> [round(evaluation.epoch) for evaluation in result.history], result.summary.validation_series
    ([1, 2, 3], 10)
    """
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    seed = tuple(np.asarray(jax.random.key_data(key)).ravel().tolist())
    spec = None if isinstance(logsigs, Inputs) else logsigs.spec
    examples = examples_of(model, logsigs, targets, static, weights)
    training, validating, held_out = _split(model, examples, selection.validation, seed)
    versions = (training, *(_training_part(copy, held_out) for copy in copies_of(model, examples, copies, static)))
    model = model.fit_preprocessing(jax.tree.map(jnp.asarray, training.inputs), spec)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    mesh = mesh_of(devices)
    train_step = TrainStep(rest, loss, optimiser, clip, penalty, mesh)
    initial = train_step.initial_state(parameters)
    parts = [buckets_of(version, batching) for version in versions]
    order = BatchOrder(
        tuple(map(len, parts[0])),
        batching.size,
        round_up_to_devices(batching.size, mesh),
        (*seed, 1),
        len(versions),
    )
    buckets = tuple(pad_series(concatenated(versions_of_one)) for versions_of_one in zip(*parts, strict=True))
    measures = (loss, *selection.metrics)
    decisive = {
        "loss": loss,
        "clip": clip,
        "penalty": penalty,
        "batching.size": batching.size,
        "batching.buckets": order.sizes,
        "selection.metrics": tuple(selection.metrics),
        "selection.every": selection.every,
        "selection.latest": selection.latest,
        "key": seed,
    }
    loop = TrainingLoop(
        train_step=train_step,
        order=order,
        buckets=put_on_mesh(mesh, buckets),
        key=put_on_mesh(mesh, key),
        evaluator=None if validating is None else Evaluator.of(rest, measures, validating, batching, mesh),
        selector=(*selection.metrics, loss)[0],
        latest=selection.latest,
        steps=duration.steps(order.per_epoch),
        every=selection.every.steps(order.per_epoch),
        patience=selection.patience,
        recoveries=recoveries,
        checkpoints=checkpoints,
        fingerprint=(
            {} if checkpoints is None else fingerprint_of(train_step, initial, (versions, validating), decisive)
        ),
        callbacks=tuple(callbacks) if is_main_process() else (),
    )
    state, summary = loop(initial)
    last = loop.model(state.current.parameters)
    best = loop.model(state.best) if state.progress.best_score is not None else last
    return Result(best, last, state.progress.history, summary, held_out)


def score(
    model: AbstractModel,
    logsigs: Data,
    targets: Targets,
    measure: AbstractMeasure = losses.mse,
    *,
    static: Any = None,
    weights: Any = None,
    batching: Batching = Batching(),
    devices: Devices | None = None,
) -> float:
    """Compute a loss or metric over all of these series, for example those of a test set.

    Args:
        model: The model to measure.
        logsigs: Log-signatures, or `Inputs`.
        targets: As for `fit`.
        measure: The loss or metric.
        static: Static features (series, static) of models that take some.
        weights: A weight for each series; equal by default.
        batching: How many series to predict at a time; the result depends on it to rounding only.
        devices: Devices that share each batch; all of JAX's by default.

    Returns:
        The weighted mean of the measure over series, and over their intervals if the model predicts at each.

    >>> from logcde import Basis, LogSignatures, log_slice
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=3, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((5, 2, 2)), np.full(5, 2), basis)
    >>> 0 <= score(model, logsigs, [0, 1, 2, 0, 1], losses.accuracy) <= 1
    True
    """
    examples = examples_of(model, logsigs, targets, static, weights)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)
    mesh = mesh_of(devices)
    evaluator = Evaluator.of(rest, (measure,), examples, batching, mesh)
    return evaluator(put_on_mesh(mesh, parameters))[measure.name]


def _split(
    model: AbstractModel, examples: Examples, validation: Validation | None, seed: tuple[int, ...]
) -> tuple[Examples, Examples | None, np.ndarray | None]:
    """Training examples, validation examples, and the positions of the latter if they were held out."""
    if validation is None or (isinstance(validation, float | int) and validation == 0):
        return examples, None, None
    if isinstance(validation, tuple) and len(validation) == 2 and isinstance(validation[0], Data):
        return examples, examples_of(model, *validation), None
    held_out = held_out_series(examples, validation, np.random.default_rng((*seed, 0)))
    training = _training_part(examples, held_out)
    if training.weights is not None:
        checked_weights(training.weights, len(training))
    return training, examples[held_out], held_out


def _training_part(examples: Examples, held_out: np.ndarray | None) -> Examples:
    return examples if held_out is None else examples[np.setdiff1d(np.arange(len(examples)), held_out)]
