"""Sparse log-signatures drive the same flows as dense ones: states, predictions, gradients, online and trained."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.embedding import FactorSteps, SparseSteps
from logcde.flows import (
    BlockDiagonal,
    Contracting,
    CumulativeFeatures,
    Dense,
    Diagonal,
    LinearDynamics,
    LogODE,
    NeuralField,
    SiLU,
    Tanh,
    linear,
    sparse,
)
from logcde.models import Inputs, SoftLimit, TotalStdScaling, deep_stable, predict
from logcde.models.model import suited_to
from logcde.scans import Sequential
from logcde.train import Selection
from tests.embedding.test_sparse import wide

KEY = jax.random.key(0)
FIELDS = {
    "blocks": lambda basis: BlockDiagonal(basis, 36, 3, dtype=np.float64, key=KEY),
    "dense": lambda basis: Dense(basis, 5, dtype=np.float64, key=KEY),
    "large": lambda basis: Dense(basis, 17, dtype=np.float64, key=KEY),
    "diagonal": lambda basis: Diagonal(basis, 8, dtype=np.float64, key=KEY),
    "contracting": lambda basis: Contracting(basis, 20, 2, dtype=np.float64, key=KEY),
}


def both(depth, **options):
    streams, partition = wide(series=5, channels=6, observations=20), lc.Partition.every(1.0)
    return [lc.Embedding(depth, **options)(streams, partition, sparse=kind) for kind in (True, False)]


def unrolled(dynamics, inputs):
    start = jnp.linspace(-1.0, 1.0, dynamics.hidden)
    return jax.vmap(lambda one: dynamics.unroll(start, one.logsigs, one.length))(inputs)


states_of = eqx.filter_jit(unrolled)


def assert_close(found, expected, accuracy=1e-10):
    scale = 1 + np.abs(np.asarray(expected)).max(initial=0)
    np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(expected) / scale, atol=accuracy)


@eqx.filter_jit
@functools.partial(eqx.filter_grad, has_aux=True)
def slopes(both, given):
    dynamics, logsigs = both
    states = unrolled(dynamics, Inputs(logsigs, given.length, given.initial, given.static))
    return jnp.sum(jnp.sin(states)), states


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", FIELDS)
def test_states_and_gradients_are_those_of_dense_ones(name, depth):
    logsigs, dense = both(depth)
    given, given_dense = (Inputs.of(one * 0.1, dtype=np.float64) for one in (logsigs, dense))
    dynamics = LinearDynamics(FIELDS[name](logsigs.basis), scan=Sequential() if depth == 3 else linear.Auto())
    (found, of_values), states = slopes((dynamics, given.logsigs), given)
    (expected, of_dense), states_dense = slopes((dynamics, given_dense.logsigs), given)
    assert_close(states, states_dense)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert_close(one, other)
    sizes = given.logsigs.needs()[2]
    kept = np.concatenate([np.asarray(row)[:size] for row, size in zip(of_values.values, sizes, strict=True)])
    rows = np.repeat(np.arange(len(logsigs.counts)), lc.embedding.sparse.sizes_of(logsigs.counts, depth))
    assert_close(kept, np.asarray(of_dense).reshape(-1, logsigs.basis.dimension)[rows, logsigs.positions()])


def test_long_series_go_one_interval_at_a_time(monkeypatch):
    logsigs, _ = both(2)
    given = Inputs.of(logsigs, dtype=np.float64)
    dynamics = LinearDynamics(FIELDS["blocks"](logsigs.basis))
    expected = states_of(dynamics, given)
    monkeypatch.setattr(linear, "MATRICES", 1)
    assert_close(unrolled(dynamics, given), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "blocks"), [(1, 3), (2, 8), (4, 11), (5, 1)])
def test_kernels_are_their_twin(dtype, size, blocks):
    logsigs, _ = both(2)
    steps = SparseSteps.of(logsigs, dtype)
    letters = jax.random.normal(KEY, (logsigs.basis.width, size, size, blocks), dtype)
    matrices, names = letters[steps.letters], sparse.targets(np.dtype(dtype))
    assert names is not None
    twin = jax.jit(jax.vmap(lambda *given: sparse._twin(steps.most, *given)))
    given = (matrices, steps.values, steps.counts)
    found = jax.jit(jax.vmap(lambda *given: sparse._kernel(names[0], *given)))(*given)
    expected = twin(*given)
    accuracy = 1e-12 if dtype == np.float64 else 1e-5
    assert_close(found, expected, accuracy)
    cotangent = jax.random.normal(jax.random.key(1), found.shape, dtype)

    @jax.jit
    def pulled(matrices, values, cotangent):
        return jax.vjp(lambda *real: twin(*real, steps.counts), matrices, values)[1](cotangent)

    for place, other in enumerate(pulled(matrices, steps.values, cotangent)):
        back = functools.partial(sparse._kernel_back, names[1 + place], place)
        assert_close(jax.jit(jax.vmap(back))(*given, cotangent), other, accuracy)


def test_without_kernels_the_twin_runs(monkeypatch):
    logsigs, _ = both(2)
    given, dynamics = Inputs.of(logsigs, dtype=np.float64), LinearDynamics(FIELDS["blocks"](logsigs.basis))

    def compiled():
        return eqx.filter_jit(eqx.filter_value_and_grad(lambda dynamics: jnp.sum(unrolled(dynamics, given))))

    expected = compiled()(dynamics)
    monkeypatch.setattr(sparse, "targets", lambda dtype: None)
    for one, other in zip(*map(jax.tree.leaves, (compiled()(dynamics), expected)), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_neural_fields_of_letters_that_move(depth):
    logsigs, dense = both(depth)
    field = NeuralField(logsigs.basis.width, 4, 7, (SiLU(), Tanh()), init_scale=0.5, dtype=np.float64, key=KEY)
    dynamics = LogODE(field, logsigs.basis)
    expected = states_of(dynamics, Inputs.of(dense, dtype=np.float64))
    assert_close(states_of(dynamics, Inputs.of(logsigs, dtype=np.float64)), expected)


def test_cumulative_features_read_level_one():
    logsigs, dense = both(2)
    features = CumulativeFeatures(logsigs.basis, 2, history=True)
    given, given_dense = (Inputs.of(one, dtype=np.float64) for one in (logsigs, dense))
    assert_close(states_of(features, given), states_of(features, given_dense))
    fitted, fitted_dense = (features.fit_preprocessing(one.logsigs) for one in (given, given_dense))
    np.testing.assert_allclose(fitted.centre, fitted_dense.centre, atol=1e-12)


MODELS = {
    "slice": lambda basis: lc.log_slice(basis, 8, 2, scaling=SoftLimit(), dtype=np.float64, key=KEY),
    "deep": lambda basis: lc.deep_log_slice(basis, 8, 2, scaling=TotalStdScaling(), dtype=np.float64, key=KEY),
    "stable": lambda basis: deep_stable(basis, 8, 2, dtype=np.float64, key=KEY),
    "ncde": lambda basis: lc.log_ncde(basis, 4, 2, width=5, scaling=SoftLimit(), dtype=np.float64, key=KEY),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_dense_ones(name):
    logsigs, dense = both(2)
    model = MODELS[name](logsigs.basis)
    fitted, fitted_dense = (model.fit_preprocessing(Inputs.of(one, dtype=np.float64), None) for one in (logsigs, dense))
    expected = predict(fitted_dense, dense)
    assert_close(predict(fitted, logsigs), expected)
    assert_close(predict(fitted, logsigs, independent=True), expected)
    assert_close(lc.predict_prefixes(fitted, logsigs), lc.predict_prefixes(fitted_dense, dense))
    alone = [predict(fitted, logsigs[[number]], independent=True)[0] for number in range(len(logsigs))]
    np.testing.assert_array_equal(predict(fitted, logsigs, independent=True), alone)


def test_training_on_sparse_ones_is_training_on_dense_ones(monkeypatch):
    """With buckets of several lengths, validation and dropped copies."""
    streams = wide(series=40, channels=6, observations=20)
    partition = lc.Partition.at([np.linspace(0, 8, 3 if s % 2 else 9) for s in range(40)])
    embedding, labels = lc.Embedding(2, scaler=lc.ChannelScaler.fit(streams)), np.arange(40) % 2
    dropped = lc.drop_observations(streams, 0.3, seed=0)
    results = []
    for kind in (True, False):
        monkeypatch.setattr("logcde.embedding.sparse.DENSE_FROM", 2.0)
        logsigs, copy = (embedding(one, partition, sparse=kind) for one in (streams, dropped))
        model = lc.log_slice(logsigs.basis, 8, 2, scaling=SoftLimit(), dtype=np.float64, key=KEY)
        options = {"copies": [copy], "selection": Selection(validation=0.25), "callbacks": (), "key": KEY}
        batching = lc.train.Batching(size=4, buckets=2)
        result = lc.fit(
            model, logsigs, labels, loss=lc.losses.cross_entropy, duration=lc.Steps(6), batching=batching, **options
        )
        assert result.model.spec == logsigs.spec
        results.append(result)
    for one, other in zip(*(jax.tree.leaves(result.model) for result in results), strict=True):
        assert_close(one, other)
    for one, other in zip(*(result.history for result in results), strict=True):
        assert_close([one.loss, *one.validation.values()], [other.loss, *other.validation.values()])


def test_form_follows_density_and_model(monkeypatch):
    logsigs, dense = both(2)
    labels, model = np.arange(5) % 2, MODELS["slice"](logsigs.basis)
    examples = lc.train.data.examples_of(model, logsigs, labels)
    assert not isinstance(examples.inputs.logsigs, SparseSteps)
    monkeypatch.setattr("logcde.embedding.sparse.DENSE_FROM", logsigs.density + 0.01)
    assert isinstance(lc.train.data.examples_of(model, logsigs, labels).inputs.logsigs, SparseSteps)
    recurrent = eqx.tree_at(lambda tree: tree.dynamics, model, _TakesDense(model.dynamics))
    assert isinstance(suited_to(recurrent, logsigs), lc.LogSignatures)
    assert suited_to(model, logsigs).factors is None  # coordinates are limited
    unlimited = MODELS["deep"](logsigs.basis)
    assert suited_to(unlimited, logsigs) is logsigs
    assert logsigs.fastest == "factors"
    assert isinstance(lc.train.data.examples_of(unlimited, logsigs, labels).inputs.logsigs, FactorSteps)
    monkeypatch.setattr("logcde.embedding.interval_factors.FACTOR", 1000)
    assert logsigs.fastest == "sparse"
    assert suited_to(recurrent, dense) is dense


class _TakesDense(LinearDynamics):
    """Dynamics that know nothing of sparse log-signatures."""

    sparse = False

    def __init__(self, other):
        super().__init__(other.field, other.flow, other.scan)
