"""Factors of intervals drive linear CDEs as their log-signatures do: states, gradients, scaling, training."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logcde as lc
from logcde.embedding import FactorSteps, SparseSteps
from logcde.errors import EmbeddingError, ModelError, TrainingError
from logcde.flows import (
    CumulativeFeatures,
    Dense,
    LinearDynamics,
    LogODE,
    NeuralField,
    Tanh,
    factors,
    linear,
)
from logcde.models import Inputs, SoftLimit, TotalStdScaling, predict
from logcde.streams import Term
from logcde.train import Selection
from tests.embedding import strategies
from tests.embedding.test_sparse import wide
from tests.flows.test_sparse import FIELDS, assert_close, states_of, unrolled

KEY = jax.random.key(0)
ARRAYS = ("amounts", "moments", "spans", "letters", "sizes", "counts")


def both(depth, channels=6, **options):
    """Inputs of factors, and of dense log-signatures."""
    streams, partition = wide(series=5, channels=channels, observations=20), lc.Partition.every(1.0)
    sparse, dense = (lc.Embedding(depth, **options)(streams, partition, sparse=kind) for kind in (True, False))
    return Inputs.of(sparse, dtype=np.float64, factors=True), Inputs.of(dense, dtype=np.float64), dense.basis


@given(st.data())
@settings(deadline=None, max_examples=12)
def test_matrices_are_those_of_log_signatures(data):
    streams = data.draw(strategies.streams(continuous=True))
    partition = data.draw(strategies.partitions(streams))
    options = {"counts": data.draw(st.booleans()), "time": data.draw(st.booleans())}
    embedding = lc.Embedding(data.draw(st.integers(1, 2)), roughness=data.draw(st.booleans()), **options)
    sparse, dense = (embedding(streams, partition, sparse=kind) for kind in (True, False))
    steps = FactorSteps.of(sparse, np.float64)
    found, expected, level_one = _matrices(dense.basis, steps, dense.values)
    assert_close(found, expected, 1e-9)
    assert_close(level_one, dense.values[..., : dense.basis.width], 1e-9)


@eqx.filter_jit
def _matrices(basis, steps, values):
    field = Dense(basis, 3, dtype=np.float64, key=KEY)
    arrays = [jnp.asarray(getattr(steps, name)) for name in ARRAYS]
    found = jax.vmap(functools.partial(factors._twin, basis.depth > 1, field.letter_generators()))(*arrays)
    expected = jnp.tensordot(values, field.generators(), axes=1)
    return found, expected, jax.vmap(FactorSteps.level_one)(steps)


@eqx.filter_jit
@functools.partial(eqx.filter_grad, has_aux=True)
def slopes(dynamics, inputs):
    states = unrolled(dynamics, inputs)
    return jnp.sum(jnp.sin(states)), states


@pytest.mark.parametrize(("depth", "channels"), [(1, 6), (2, 6), (2, 80)])
@pytest.mark.parametrize("name", FIELDS)
def test_states_and_gradients_are_those_of_log_signatures(name, depth, channels):
    """With 80 channels each series has letters of its own."""
    given, dense, basis = both(depth, channels)
    assert (given.logsigs.own is not None) == (channels == 80)
    dynamics = LinearDynamics(FIELDS[name](basis))
    (found, states), (expected, of_dense) = slopes(dynamics, given), slopes(dynamics, dense)
    assert_close(states, of_dense)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert_close(one, other)


def test_long_series_go_one_interval_at_a_time(monkeypatch):
    given, _, basis = both(2)
    dynamics = LinearDynamics(FIELDS["blocks"](basis))
    expected = states_of(dynamics, given)
    monkeypatch.setattr(linear, "MATRICES", 1)
    assert_close(unrolled(dynamics, given), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "blocks", "second"), [(1, 3, True), (2, 8, True), (4, 11, False), (5, 1, True)])
def test_kernels_are_their_twin(dtype, size, blocks, second):
    logsigs = lc.Embedding(2)(wide(series=5, channels=6, observations=20), lc.Partition.every(1.0), sparse=True)
    steps = FactorSteps.of(logsigs, dtype)
    letters = jax.random.normal(KEY, (logsigs.basis.width, size, size, blocks), dtype)
    names = factors._targets_of(letters, second)
    assert names is not None
    data = [jnp.asarray(getattr(steps, name)) for name in ARRAYS]
    twin = jax.jit(jax.vmap(functools.partial(factors._twin, second, letters)))
    found = jax.jit(jax.vmap(functools.partial(factors._kernel, names[0], letters)))(*data)
    accuracy = 1e-12 if dtype == np.float64 else 1e-5
    assert_close(found, twin(*data), accuracy)

    cotangent = jax.random.normal(jax.random.key(1), found.shape, dtype)
    back = jax.jit(jax.vmap(functools.partial(factors._kernel_back, names[1], letters)))(*data, cotangent)

    def pulled(*given):
        *some, slope = given
        return jax.vjp(lambda letters: factors._twin(second, letters, *some), letters)[1](slope)[0]

    assert_close(back, jax.jit(jax.vmap(pulled))(*data, cotangent), accuracy)


@pytest.mark.parametrize("shared", ["series", "models", "nothing", "each"])
def test_shared_arguments_are_told_apart(shared):
    """Letters may be those of a model or of each series, series those of each model, and gradients those of each."""
    given, _, basis = both(2)
    letters = jax.random.normal(KEY, (3, basis.width, 2, 2, 9))
    steps = given.logsigs

    def total(letters, steps):
        return jnp.sum(jnp.sin(factors.composed_matrices(letters, steps)))

    slope = jax.jit(jax.value_and_grad(total))
    if shared == "series":  # several models on the same series
        mapped = jax.vmap(jax.vmap(slope, in_axes=(None, 0)), in_axes=(0, None))
        found = jax.jit(mapped)(letters, steps)
        expected = [[slope(one, steps_of(steps, k)) for k in range(5)] for one in letters]
    elif shared == "models":
        found = jax.jit(jax.value_and_grad(lambda one: jax.vmap(lambda some: total(one, some))(steps).sum()))(
            letters[0]
        )
        parts = [slope(letters[0], steps_of(steps, k)) for k in range(5)]
        expected = jax.tree.map(lambda *leaves: sum(leaves), *parts)
    elif shared == "nothing":
        some = jax.tree.map(lambda leaf: leaf[:3], steps)
        found = jax.jit(jax.vmap(slope))(letters, some)
        expected = [slope(one, steps_of(steps, k)) for k, one in enumerate(letters)]
    else:
        found = slope(letters[0], steps_of(steps, 1))
        twin = jax.value_and_grad(lambda one: jnp.sum(jnp.sin(_twin_of(one, steps_of(steps, 1)))))
        expected = jax.jit(twin)(letters[0])
    leaves = jax.tree.leaves(expected)
    for place, leaf in enumerate(jax.tree.leaves(found)):
        assert_close(leaf, np.stack(leaves[place::2]).reshape(leaf.shape))


def steps_of(steps, number):
    return jax.tree.map(lambda leaf: leaf[number], steps)


def _twin_of(letters, steps):
    return factors._twin(True, letters, *(jnp.asarray(getattr(steps, name)) for name in ARRAYS))


def test_amounts_and_times_have_derivatives():
    given, _, basis = both(2)
    letters, steps = jax.random.normal(KEY, (basis.width, 2, 2, 3)), steps_of(given.logsigs, 0)

    def total(amounts, moments, spans, matrices):
        moved = eqx.tree_at(lambda tree: (tree.amounts, tree.moments, tree.spans), steps, (amounts, moments, spans))
        return jnp.sum(jnp.sin(matrices(letters, moved)))

    real = steps.amounts, steps.moments, steps.spans
    found, expected = (
        jax.jit(jax.grad(functools.partial(total, matrices=matrices), (0, 1, 2)))(*real)
        for matrices in (factors.composed_matrices, _twin_of)
    )
    for one, other in zip(found, expected, strict=True):
        assert np.any(other)
        assert_close(one, other)


def test_without_kernels_the_twin_runs(monkeypatch):
    given, _, basis = both(2)
    dynamics = LinearDynamics(FIELDS["blocks"](basis))

    def compiled():
        return eqx.filter_jit(eqx.filter_value_and_grad(lambda dynamics: jnp.sum(unrolled(dynamics, given))))

    expected = compiled()(dynamics)
    monkeypatch.setattr(factors, "targets", lambda *given: None)
    for one, other in zip(*map(jax.tree.leaves, (compiled()(dynamics), expected)), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("channels", [6, 80])
@pytest.mark.parametrize("scaling", [TotalStdScaling(), lc.IncrementRMSScaling()])
def test_scaling_and_predictions_are_those_of_log_signatures(scaling, channels):
    streams, partition = wide(series=5, channels=channels, observations=20), lc.Partition.every(1.0)
    sparse, dense = (lc.Embedding(2)(streams, partition, sparse=kind) for kind in (True, False))
    model = lc.log_slice(sparse.basis, 8, 2, scaling=scaling, init_scale=0.02, dtype=np.float64, key=KEY)
    inputs = Inputs.of(sparse, dtype=np.float64, factors=True)
    fitted = model.fit_preprocessing(inputs, None)
    expected = model.fit_preprocessing(Inputs.of(dense, dtype=np.float64), None)
    np.testing.assert_allclose(fitted.scaling.factors, expected.scaling.factors, rtol=1e-9)
    twice = jax.jit(jax.vmap(lambda one: fitted.scaled(fitted.scaled(one)).level_one()))(inputs.logsigs)
    scale = np.square(fitted.scaling.factors)
    assert_close(twice, dense.values[..., : dense.basis.width] * scale)
    assert_close(predict(fitted, sparse), predict(fitted, dense))
    assert_close(predict(fitted, sparse, independent=True), predict(fitted, dense))
    assert_close(lc.predict_prefixes(fitted, sparse), lc.predict_prefixes(fitted, dense))
    alone = [predict(fitted, sparse[[number]], independent=True)[0] for number in range(len(sparse))]
    np.testing.assert_array_equal(predict(fitted, sparse, independent=True), alone)


def test_scaled_log_signatures_have_scaled_factors():
    streams, partition = wide(series=5, channels=6, observations=20), lc.Partition.every(1.0)
    sparse = lc.Embedding(2)(streams, partition, sparse=True)
    scaled = sparse.scaled(np.linspace(0.5, 2.0, sparse.basis.width))
    dynamics = LinearDynamics(FIELDS["blocks"](sparse.basis))
    found, expected = (Inputs.of(scaled, dtype=np.float64, factors=kind) for kind in (True, False))
    assert isinstance(expected.logsigs, SparseSteps)
    assert_close(states_of(dynamics, found), states_of(dynamics, expected))


def test_cumulative_features_read_level_one():
    given, dense, basis = both(2)
    features = CumulativeFeatures(basis, 2, history=True)
    assert_close(states_of(features, given), states_of(features, dense))
    fitted, expected = (features.fit_preprocessing(one.logsigs) for one in (given, dense))
    np.testing.assert_allclose(fitted.centre, expected.centre, atol=1e-12)


def test_training_on_factors_is_training_on_log_signatures(monkeypatch):
    """With buckets of several lengths, validation and dropped copies; with 80 channels letters are renumbered."""
    monkeypatch.setattr("logcde.embedding.interval_factors.FACTOR", 0)
    streams = wide(series=40, channels=80, observations=20)
    partition = lc.Partition.at([np.linspace(0, 8, 3 if s % 2 else 9) for s in range(40)])
    embedding, labels = lc.Embedding(2, scaler=lc.ChannelScaler.fit(streams)), np.arange(40) % 2
    dropped = lc.drop_observations(streams, 0.3, seed=0)
    results = []
    for kind in (True, False):
        logsigs, copy = (embedding(one, partition, sparse=kind) for one in (streams, dropped))
        model = lc.log_slice(
            logsigs.basis, 8, 2, scaling=lc.IncrementRMSScaling(), init_scale=0.01, dtype=np.float64, key=KEY
        )
        assert isinstance(lc.train.data.examples_of(model, logsigs, labels).inputs.logsigs, FactorSteps) == kind
        options = {"copies": [copy], "selection": Selection(validation=0.25), "callbacks": (), "key": KEY}
        batching = lc.train.Batching(size=4, buckets=2)
        result = lc.fit(
            model, logsigs, labels, loss=lc.losses.cross_entropy, duration=lc.Steps(6), batching=batching, **options
        )
        results.append(result)
        if kind:
            with pytest.raises(TrainingError, match="A copy is dense"):
                lc.fit(model, logsigs, labels, loss=lc.losses.cross_entropy, **{**options, "copies": [copy.dense()]})
    for one, other in zip(*(jax.tree.leaves(result.model) for result in results), strict=True):
        assert_close(one, other, 1e-8)
    for one, other in zip(*(result.history for result in results), strict=True):
        assert_close([one.loss, *one.validation.values()], [other.loss, *other.validation.values()], 1e-8)


def test_who_has_factors():
    streams, partition = wide(series=5, channels=6, observations=20), lc.Partition.every(1.0)
    logsigs = lc.Embedding(2)(streams, partition, sparse=True)
    assert logsigs.factors is not None
    assert (2.0 * logsigs).factors is None
    assert (logsigs + logsigs).factors is None
    assert lc.Embedding(3)(streams, partition, sparse=True).factors is None
    area = Term("area", ("a", "b"))
    term = lc.Streams.from_arrays([[1.0]], [[[1.0, 2.0]]], ["a", "b"], 2.0, terms={area: [[3.0]]})
    assert lc.Embedding(2)(term, lc.Partition.uniform(1), sparse=True).factors is None
    with pytest.raises(EmbeddingError, match="not known"):
        FactorSteps.of(2.0 * logsigs, np.float64)


def test_what_factors_cannot_do_is_said():
    given, _, basis = both(2)
    steps = steps_of(given.logsigs, 0)
    with pytest.raises(ModelError, match="no coordinates that could be limited"):
        SoftLimit()(steps, basis)
    neural = LogODE(NeuralField(basis.width, 4, 7, (Tanh(),), dtype=np.float64, key=KEY), basis)
    model = eqx.tree_at(lambda tree: tree.dynamics, lc.log_slice(basis, 4, 2, block=2, key=KEY), neural)
    with pytest.raises(ModelError, match="LogODE takes no factors"):
        jax.vmap(model)(given)
