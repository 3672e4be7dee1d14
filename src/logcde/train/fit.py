"""`fit`: from a model, log-signatures and targets to a trained model, and `score`: how well one does."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from logcde.embedding import LogSignatures
from logcde.errors import TrainingError
from logcde.models import AbstractModel, Inputs
from logcde.train import losses
from logcde.train.callbacks import AbstractCallback, ProgressBar
from logcde.train.checkpoint import Checkpoints, fingerprint_of
from logcde.train.data import Data, Examples, Plan, Targets, Validation, buckets_of, examples_of, filled, split
from logcde.train.loop import Run
from logcde.train.losses import AbstractMeasure
from logcde.train.parallel import Devices, leads, mesh_of, place, whole
from logcde.train.records import Duration, Epochs, Result
from logcde.train.steps import Evaluator, Task


def fit(
    model: AbstractModel,
    logsigs: Data,
    targets: Targets,
    *,
    loss: AbstractMeasure = losses.mse,
    metrics: Sequence[AbstractMeasure] = (),
    static: Any = None,
    validation: Validation | None = 0.15,
    optimiser: optax.GradientTransformation = optax.adam(1e-3),
    clip: float | None = 1.0,
    penalty: float = 0.0,
    batch: int = 32,
    buckets: int = 4,
    duration: Duration = Epochs(100),
    every: Duration = Epochs(1),
    patience: int | None = 20,
    latest: bool = False,
    checkpoints: Checkpoints | None = None,
    callbacks: Sequence[AbstractCallback] = (),
    progress: bool = True,
    devices: Devices | None = None,
    key: PRNGKeyArray,
) -> Result:
    """Train a model, and keep the one that does best on series that it was not trained on.

    The same arguments give the same result, bit for bit, on the same machine.

    **Data.** `logsigs` are log-signatures, with `static` features (series, static) if the model takes some, or
    `Inputs`. `targets` are (series, outputs), or (series, interval, outputs) for models that predict at each interval,
    where those beyond a series' last interval are not looked at; the last axis is left out for class labels, and may be
    if there is one output. `validation` is a fraction of the series, which are then drawn at random, or their
    positions, or a pair (logsigs, targets) of other series, or None. Scaling that belongs to the model is fitted on the
    training part only.

    **Steps.** The `loss` of a batch, plus `penalty` times the model's own, is made smaller by any Optax `optimiser`, on
    gradients whose norm over all parameters is at most `clip`. Series are sorted by length into at most `buckets`
    shapes and shuffled in each epoch; a last batch that is short is kept, and its mean is over what it has.

    **Selection.** After `every` so many steps or epochs, and at the end of the `duration`, the validation series are
    predicted. The first of the `metrics`, or the loss without any, decides which model is best; of equal ones it is the
    earliest, or the `latest`. After `patience` evaluations in a row without one better than all before, training ends.

    **Safety.** With `checkpoints`, a run that is interrupted or killed goes on when `fit` is called again with the same
    arguments; only `duration` and `patience` may change. A loss that is not finite raises `NonFiniteError`.

    **Parallel.** Each batch is spread over `devices`, all of JAX's if None; each process of several calls `fit` alike.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis.of_width(2, 2)
    >>> values = np.random.default_rng(0).normal(size=(64, 5, 3))
    >>> logsigs = LogSignatures(values, np.full(64, 5), basis)
    >>> model = log_slice(basis, hidden=8, block=1, outputs=1, key=jax.random.key(0))
    >>> result = fit(model, logsigs, values.sum(axis=(1, 2)), duration=Epochs(3), key=jax.random.key(1))
    >>> [round(look.epoch) for look in result.history], result.summary.validation_series
    ([1, 2, 3], 10)
    """
    for name, number in (("batch", batch), ("buckets", buckets)):
        if number < 1:
            raise TrainingError(f"{name}={number} is too small. Give at least 1.")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    seed = tuple(np.asarray(jax.random.key_data(key)).ravel().tolist())
    spec = logsigs.spec if isinstance(logsigs, LogSignatures) else None
    training, validating, held_out = _divided(model, examples_of(model, logsigs, targets, static), validation, seed)
    model = model.fit_preprocessing(jax.tree.map(jnp.asarray, training.inputs), spec)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    mesh = mesh_of(devices)
    task = Task(rest, loss, optimiser, clip, penalty, mesh)
    state = task.begin(parameters)
    parts = buckets_of(training, batch, buckets)
    plan = Plan(tuple(map(len, parts)), batch, whole(batch, mesh), (*seed, 1))
    measures = (loss, *metrics)
    evaluator = None if validating is None else Evaluator.of(rest, measures, validating, batch, buckets, mesh)
    decisive = {
        "loss": loss,
        "metrics": tuple(metrics),
        "clip": clip,
        "penalty": penalty,
        "batch": batch,
        "buckets": plan.sizes,
        "every": every,
        "latest": latest,
        "key": seed,
    }
    run = Run(
        task=task,
        plan=plan,
        buckets=place(mesh, tuple(map(filled, parts))),
        key=place(mesh, key),
        evaluator=evaluator,
        selector=(*metrics, loss)[0],
        latest=latest,
        steps=duration.steps(plan.per_epoch),
        every=every.steps(plan.per_epoch),
        patience=patience,
        checkpoints=checkpoints,
        fingerprint={} if checkpoints is None else fingerprint_of(task, state, (training, validating), decisive),
        callbacks=(*callbacks, *((ProgressBar(),) if progress else ())) if leads() else (),
    )
    moment, summary = run(state)
    last = run.model(moment.state.parameters)
    best = run.model(moment.best) if moment.journal.best_score is not None else last
    return Result(best, last, moment.journal.history, summary, held_out)


def score(
    model: AbstractModel,
    logsigs: Data,
    targets: Targets,
    measure: AbstractMeasure = losses.mse,
    *,
    static: Any = None,
    batch: int = 32,
    devices: Devices | None = None,
) -> float:
    """A loss or metric over all of these series, for example those of a test set.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=3, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((5, 2, 2)), np.full(5, 2), basis)
    >>> 0 <= score(model, logsigs, [0, 1, 2, 0, 1], losses.accuracy) <= 1
    True
    """
    examples = examples_of(model, logsigs, targets, static)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)
    mesh = mesh_of(devices)
    evaluator = Evaluator.of(rest, (measure,), examples, batch, 4, mesh)
    return evaluator(place(mesh, parameters))[measure.name]


def _divided(
    model: AbstractModel, examples: Examples, validation: Validation | None, seed: tuple[int, ...]
) -> tuple[Examples, Examples | None, np.ndarray | None]:
    """What to train on, what to validate on, and which series these were."""
    if validation is None or (isinstance(validation, float | int) and validation == 0):
        return examples, None, None
    if isinstance(validation, tuple) and len(validation) == 2 and isinstance(validation[0], LogSignatures | Inputs):
        return examples, examples_of(model, *validation), None
    held_out = split(examples, validation, np.random.default_rng((*seed, 0)))
    return examples[np.setdiff1d(np.arange(len(examples)), held_out)], examples[held_out], held_out
