"""Sums of models and the additive model: laws, training as one model, ensembles."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.testing import check_model
from logcde.testing.examples import example_inputs

BASIS = lc.Basis(("a", "b", "#a", "#b", "time"), 1)
KEYS = jax.random.split(jax.random.key(0), 3)


def a_sum(**options):
    plain = lc.additive(BASIS, 2, static=1, key=KEYS[0], **options)
    plain = eqx.tree_at(lambda tree: tree.readout.layers[-1].weight, plain, replace_fn=lambda leaf: leaf + 0.3)
    return lc.Sum((plain, lc.log_slice(BASIS, 4, 2, block=2, static=1, key=KEYS[1], **options)))


def test_sum_obeys_the_laws():
    assert len(check_model(a_sum())) == 10


def test_additive_with_history_obeys_the_laws():
    model = lc.additive(BASIS, 2, history=True, readout=lc.Terminal((3,)), key=KEYS[0])
    model = eqx.tree_at(lambda tree: tree.readout.layers[-1].weight, model, replace_fn=lambda leaf: leaf + 0.3)
    assert len(check_model(model)) == 10


def test_sum_and_mean_of_predictions():
    model = a_sum()
    inputs = example_inputs(model)
    each = [lc.predict(one, inputs) for one in model.models]
    np.testing.assert_allclose(lc.predict(model, inputs), each[0] + each[1], rtol=1e-5, atol=1e-6)
    mean = lc.Sum.mean(list(model.models))
    np.testing.assert_allclose(lc.predict(mean, inputs), (each[0] + each[1]) / 2, rtol=1e-5, atol=1e-6)


def test_sum_is_trained_as_one_model_with_each_part_scaled():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(32, 6, 2))
    streams = lc.Streams.from_dense(values, channels=["a", "b"])
    logsigs = lc.Embedding(depth=1, dtype=np.float32)(streams, lc.Partition.uniform(2))
    targets = values[:, -1, :1]
    model = lc.Sum((
        lc.additive(logsigs.basis, 1, key=KEYS[0]),
        lc.log_slice(logsigs.basis, 4, 1, block=2, scaling=lc.IncrementRMSScaling(), key=KEYS[1]),
    ))  # fmt: skip
    result = lc.fit(
        model, logsigs, targets, optimiser=optax.adam(3e-2), duration=lc.Epochs(30), callbacks=(), key=KEYS[2]
    )
    assert lc.score(result.model, logsigs, targets, lc.losses.mse) < 0.2 * np.square(targets).mean()
    assert result.model.spec is not None
    assert all(part.scaling.factors is not None for part in result.model.models)


def test_sum_refuses_different_bases_and_no_models():
    other = lc.log_slice(lc.Basis(("a", "time"), 1), 4, 2, key=KEYS[0])
    with pytest.raises(ModelError, match="2 different bases"):
        lc.Sum((*a_sum().models, other))
    with pytest.raises(ModelError, match="no models"):
        lc.Sum(())


def test_total_std_scaling_gives_unit_spread():
    steps = jnp.asarray(np.random.default_rng(1).normal(size=(50, 3, 2)) * [5.0, 0.1])
    scaling = lc.TotalStdScaling().fit(steps, lc.Basis(("a", "b"), 1))
    totals = scaling(steps, lc.Basis(("a", "b"), 1)).sum(axis=1)
    np.testing.assert_allclose(totals.std(axis=0), 1.0)
    assert scaling.fit(2 * steps, lc.Basis(("a", "b"), 1)) == scaling
    assert dataclasses.replace(scaling, factors=None).fit(2 * steps, lc.Basis(("a", "b"), 1)) != scaling
