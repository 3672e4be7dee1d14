"""The laws of `check_model`. Each takes a model and inputs and returns whether it applies to them."""

import dataclasses
import tempfile
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from logcde.artefact import load
from logcde.embedding import Embedding
from logcde.embedding.coordinates import time_of
from logcde.errors import ArtefactError, CheckFailed
from logcde.flows import AbstractStableField, Exponential, LinearDynamics
from logcde.models import AbstractModel, AbstractOnlineModel, Inputs, predict
from logcde.online import Predictor
from logcde.streams import NumericClock, Partition, Streams
from logcde.testing.examples import coordinates_of

Law = Callable[[AbstractModel, Inputs], bool]

WILD = 1e3
"""How many times larger than their examples the inputs are that stable flows must withstand."""


def precision_is_kept(model: AbstractModel, inputs: Inputs) -> bool:
    """Predictions have the dtype of the inputs, which is that of the model."""
    found = predict(model, inputs).dtype
    if found != inputs.rows.dtype:
        raise CheckFailed(f"Inputs are {inputs.rows.dtype}, predictions are {found}.", "Remove the cast.")
    return True


def batch_equals_loop(model: AbstractModel, inputs: Inputs) -> bool:
    """The predictions of a batch are those of a loop over its series."""
    batch = predict(model, inputs)
    for n in range(len(inputs)):
        _agree(batch[n], _single(model, inputs[n]), f"Series {n} has another prediction in a batch than alone")
    return True


def ragged_equals_single(model: AbstractModel, inputs: Inputs) -> bool:
    """The prediction of a series does not depend on longer series in its batch."""
    if inputs.ends is not None:
        return False
    batch = predict(model, inputs)
    lengths = inputs.length.tolist()
    for n in {int(np.argmin(lengths)), len(lengths) - 1}:  # few, because each length compiles a program
        length = lengths[n]
        alone = dataclasses.replace(inputs[n], logsigs=inputs.rows[n, :length])
        found = _single(model, alone)
        message = f"Series {n} has another prediction without the padding beyond its length {length}"
        _agree(_rows(batch[n], length), found, message)
    return True


def padding_changes_nothing(model: AbstractModel, inputs: Inputs) -> bool:
    """Rows beyond a series' length change nothing."""
    rows = inputs.rows.shape[1]
    if inputs.ends is not None:
        return False
    padded = dataclasses.replace(inputs, logsigs=jnp.pad(inputs.rows, ((0, 0), (0, 3), (0, 0))))
    before, after = predict(model, inputs), predict(model, padded)
    for n, length in enumerate(inputs.length.tolist()):
        message = f"Series {n} has another prediction after padding from {rows} rows to {rows + 3}"
        _agree(_rows(before[n], length), _rows(after[n], length), message)
    return True


def future_never_changes_past(model: AbstractModel, inputs: Inputs) -> bool:
    """Later intervals do not change earlier predictions; later first values do not change those of causal models."""
    n = int(jnp.argmax(inputs.outputs))
    one, expected = inputs[n], _single(model, inputs[n])
    applied = False
    if expected.ndim == 2:
        for query in range(1, int(one.outputs)):
            row = query if one.ends is None else int(one.ends[query - 1]) + 1
            later = dataclasses.replace(one, logsigs=one.rows.at[row : int(one.length)].multiply(-2))
            message = f"Changing intervals from number {query} on changes predictions before it"
            _agree(_single(model, later)[:query], expected[:query], message)
        applied = True
    if isinstance(model, AbstractOnlineModel) and model.causal:
        initial = one.initial
        late = jnp.where(initial.at_start, initial.first, initial.first + 1)
        seen = dataclasses.replace(one, initial=dataclasses.replace(initial, first=late))
        message = "The initial state claims to be causal, but first values after time 0 change predictions"
        _agree(_single(model, seen), expected, message)
        applied = True
    return applied


def online_equals_batch(model: AbstractModel, inputs: Inputs) -> bool:
    """A causal model gives the same predictions one interval at a time."""
    if not isinstance(model, AbstractOnlineModel) or inputs.ends is not None or not model.causal:
        return False
    n = int(jnp.argmax(inputs.length))
    one = inputs[n]
    kept = _start(model, one)
    for count in range(1, int(one.length) + 1):
        kept = _advance(model, kept, one.rows[count - 1])
        rest = (jnp.arange(len(one.rows)) < count)[:, None]
        prefix = dataclasses.replace(
            one, logsigs=jnp.where(rest, one.rows, 0), length=jnp.asarray(count, one.length.dtype)
        )
        message = f"After {count} intervals, `start`, `advance` and `predict` give another prediction than the model"
        _agree(model.predict(kept), _last(_single(model, prefix), count), message)
    return True


def predictor_equals_batch(model: AbstractModel, inputs: Inputs) -> bool:
    """A `Predictor` that observes events one by one gives the same prediction as embedding and model offline."""
    if not isinstance(model, AbstractOnlineModel) or model.basis is None or not model.causal:
        return False
    coordinates = coordinates_of(model.basis) if model.spec is None else model.spec.coordinates
    if coordinates is None or coordinates.schema.continuous or coordinates.schema.terms:
        return False
    rng = np.random.default_rng(0)
    schema = dataclasses.replace(coordinates.schema, clock=NumericClock())
    embedding = Embedding(
        coordinates.depth,
        counts=coordinates.counts,
        time=coordinates.time,
        soft_bins=coordinates.soft_bins,
        roughness=coordinates.roughness,
    )
    times, points = np.arange(7) / 4, np.array([0.0, 0.5, 1.25, 1.75, 2.0])
    values = rng.normal(size=(len(times), len(schema.channels)))
    static = np.asarray(inputs.static[0], np.float64)
    predictor = Predictor(model, schema=schema, embedding=embedding, partition=Partition.uniform(1), static=static)
    for time in sorted({*times.tolist(), *points[1:-1].tolist()}):
        if time in points[1:-1]:
            predictor.close(time)
        if time in times:
            predictor.observe(time, values[times == time][0])
    streams = Streams.from_arrays([times], [values], horizon=2.0, schema=schema)
    logsigs = embedding(streams, Partition.at(points))
    offline = Inputs.of(logsigs, static[None], dtype=inputs.rows.dtype)
    expected = _last(predict(model, offline)[0], len(points) - 1)
    _agree(
        jnp.asarray(predictor.predict(at=2.0)), expected, "A Predictor gives another prediction than the model offline"
    )
    return True


def saved_model_loads_unchanged(model: AbstractModel, inputs: Inputs) -> bool:
    """A model that was saved and loaded has the same structure and the same predictions, to the bit."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            model.save(f"{folder}/model")
            loaded = load(f"{folder}/model")
        except ArtefactError as error:
            raise CheckFailed(f"The model cannot be saved and loaded. {error.found}", error.remedy) from error
    same = jax.tree.structure(loaded) == jax.tree.structure(model)
    if not same or not np.array_equal(predict(loaded, inputs), predict(model, inputs), equal_nan=True):
        raise CheckFailed("The loaded model is not the one that was saved.", "Store all of its state in fields.")
    return True


def gradients_are_finite(model: AbstractModel, inputs: Inputs) -> bool:
    """Gradients are finite, also for series without events and without intervals."""
    still = dataclasses.replace(inputs, logsigs=jnp.zeros_like(inputs.rows))
    empty = dataclasses.replace(still, length=jnp.zeros_like(inputs.length))
    if inputs.queries is not None:
        empty = dataclasses.replace(empty, queries=jnp.zeros_like(inputs.queries))
    cases = {"": inputs, " of series without events": still, " of series without intervals": empty}
    for where, case in cases.items():
        found = _gradients((model, case.rows), case)
        if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(found)):
            raise CheckFailed(f"Gradients{where} are not finite.", "Look for roots, norms and divisions at zero.")
    return True


def stable_flows_stay_bounded(model: AbstractModel, inputs: Inputs) -> bool:
    """States of stable fields obey the bounds of their norms, and predictions from them are finite, for wild inputs."""
    linear = [part for part in _parts(model, LinearDynamics) if isinstance(part.flow, Exponential)]
    stable = [part for part in linear if isinstance(part.field, AbstractStableField)]
    fields = _parts(model, AbstractStableField)
    for part in stable:
        for size in (1.0, WILD):
            states, bounds = _norms(part, size, inputs.rows.dtype)
            if not bool(jnp.all(states <= bounds * 1.001 + 1e-3)):  # not so if NaN
                raise CheckFailed(
                    f"A state of {type(part.field).__name__} leaves its bound for log-signatures of size {size:g}.",
                    "Keep generators skew-symmetric but for forgetting along time.",
                )
    if fields and len(stable) == len(linear):
        wild = dataclasses.replace(inputs, logsigs=inputs.rows * WILD)
        if not bool(jnp.isfinite(predict(model, wild)).all()):
            raise CheckFailed(
                f"Predictions are not finite for inputs {WILD:g} times larger.", "Limit what drives the flows."
            )
    return bool(fields)


def one_trace_for_each_shape(model: AbstractModel, inputs: Inputs) -> bool:
    """Other numbers and other lengths of the same shape do not compile another program."""
    traces = 0

    @eqx.filter_jit
    def run(model: AbstractModel, one: Inputs) -> Array:
        nonlocal traces
        traces += 1
        return model(one)

    other = jax.tree.map(lambda leaf: leaf * 2 if eqx.is_inexact_array(leaf) else leaf, model)
    try:
        run(model, inputs[0])
        run(other, inputs[len(inputs) - 1])
    except jax.errors.ConcretizationTypeError as error:
        raise CheckFailed(f"The model cannot be compiled: it depends on values while it is traced. {error}") from error
    if traces > 1:
        raise CheckFailed(
            f"The model was traced {traces} times for one shape.", "Make its static fields hashable and comparable."
        )
    return True


def _parts(model: AbstractModel, cls: type) -> list[Any]:
    """The modules of this class that the model contains."""
    found = jax.tree.leaves(model, is_leaf=lambda node: isinstance(node, cls))
    return [part for part in found if isinstance(part, cls)]


def _norms(dynamics: LinearDynamics, size: float, dtype: np.dtype) -> tuple[Array, Array]:
    """Norms of the blocks of states that log-signatures of this size move, and their bounds."""
    field = dynamics.field
    assert isinstance(field, AbstractStableField)
    rng = np.random.default_rng(0)
    logsigs = size * rng.normal(size=(6, field.basis.dimension))
    time = time_of(field.basis.letters)
    if time is not None:
        logsigs[:, time] = np.abs(logsigs[:, time])
    blocks = field.generators().shape[-1]
    hidden = jnp.asarray(rng.normal(size=field.hidden), dtype)
    states = dynamics.unroll(hidden, jnp.asarray(logsigs, dtype), jnp.asarray(6, jnp.int32))
    bounds = [jnp.linalg.norm(hidden.reshape(-1, blocks), axis=0)]
    for logsig in jnp.asarray(logsigs, dtype):
        bounds.append(field.bound(bounds[-1], logsig))
    return jnp.linalg.norm(states.reshape(6, -1, blocks), axis=1), jnp.stack(bounds[1:])


@eqx.filter_jit
def _single(model: AbstractModel, one: Inputs) -> Array:
    return model(one)


@eqx.filter_jit
def _start(model: AbstractOnlineModel, one: Inputs) -> PyTree:
    return model.start(one.initial, one.static)


@eqx.filter_jit
def _advance(model: AbstractOnlineModel, kept: PyTree, logsig: Array) -> PyTree:
    return model.advance(kept, logsig)


@eqx.filter_jit
@eqx.filter_grad
def _gradients(of: tuple[AbstractModel, Array], inputs: Inputs) -> Array:
    model, logsigs = of
    predictions = predict(model, dataclasses.replace(inputs, logsigs=logsigs))
    if predictions.ndim == 3:  # predictions beyond a series' length have no meaning
        valid = jnp.arange(predictions.shape[1], dtype=inputs.outputs.dtype) < inputs.outputs[:, None]
        predictions = jnp.where(valid[..., None], predictions, 0)
    return jnp.sum(jnp.square(predictions))


def _rows(prediction: Array, length: int) -> Array:
    return prediction[:length] if prediction.ndim == 2 else prediction


def _last(prediction: Array, length: int) -> Array:
    return prediction[length - 1] if prediction.ndim == 2 else prediction


def _agree(found: Array, expected: Array, message: str) -> None:
    tolerance = float(jnp.finfo(expected.dtype).eps) ** 0.6
    a, b = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    gap = np.abs(a - b).max(initial=0.0) if a.shape == b.shape else np.inf
    if not gap <= tolerance * max(1.0, np.abs(b).max(initial=0.0)):
        raise CheckFailed(f"{message}: they differ by {gap:.3g}.")
