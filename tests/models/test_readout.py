"""Dropout of readouts: in training only, and unbiased."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.models.readout import ReadoutHead
from logcde.testing import check_model
from logcde.testing.examples import example_inputs

BASIS = lc.Basis(("a", "#a", "time"), 1)
KEY = jax.random.key(0)


@pytest.mark.parametrize("readout", [lc.Terminal, lc.PerInterval, lc.Mean])
def test_dropout_needs_a_key(readout):
    model = lc.log_slice(BASIS, 4, 2, readout=readout((8,), 0.5), key=KEY)
    one = example_inputs(model)[0]
    without = lc.log_slice(BASIS, 4, 2, readout=readout((8,)), key=KEY)
    np.testing.assert_array_equal(model(one), without(one))
    np.testing.assert_array_equal(without(one, key=KEY), without(one))
    first, second = (model(one, key=key) for key in jax.random.split(KEY))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(model(one, key=KEY), model(one, key=KEY))
    assert len(check_model(model)) == 10


def test_dropout_is_unbiased():
    readout = ReadoutHead(lc.Terminal((), 0.3), 5, 1, dtype=jnp.float64, key=KEY)
    features = jnp.arange(5.0)
    found = jax.vmap(lambda key: readout.head(features, key))(jax.random.split(KEY, 20_000))
    np.testing.assert_allclose(found.mean(), readout.head(features)[0], atol=0.03)
    weight = np.asarray(readout.layers[0].weight)[0]
    spread = np.sqrt((np.square(weight * np.arange(5.0)) * 0.3 / 0.7).sum())
    np.testing.assert_allclose(found.std(), spread, rtol=0.05)


def test_dropout_is_the_same_for_all_intervals():
    readout = ReadoutHead(lc.PerInterval((), 0.5), 6, 1, dtype=jnp.float64, key=KEY)
    states = jnp.ones((3, 6))
    predictions = readout.offline(jnp.zeros(6), states, jnp.asarray(3), KEY)
    assert len(set(np.asarray(predictions)[:, 0].tolist())) == 1


def test_training_with_dropout_is_reproducible():
    values = np.random.default_rng(0).normal(size=(32, 4, 1))
    streams = lc.Streams.from_dense(values, channels=["a"])
    logsigs = lc.Embedding(depth=1, dtype=np.float32)(streams, lc.Partition.uniform(2))
    weights = []
    for share in (0.0, 0.5, 0.5):
        model = lc.additive(logsigs.basis, 1, readout=lc.Terminal((4,), share), key=KEY)
        model = lc.Sum([model, lc.log_slice(logsigs.basis, 4, 1, key=KEY)])
        result = lc.fit(model, logsigs, values[:, -1], duration=lc.Epochs(2), callbacks=(), key=KEY)
        weights.append(np.asarray(result.last.models[0].readout.layers[0].weight))
    assert not np.array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[1], weights[2])


def test_dropout_differs_between_parts_of_a_sum():
    part = lc.additive(BASIS, 1, readout=lc.Terminal((), 0.5), key=KEY)
    part = eqx.tree_at(lambda tree: tree.readout.layers[0].weight, part, replace_fn=jnp.ones_like)
    model = lc.Sum([part, part])
    one = example_inputs(model)[0]
    doubled = [bool(model(one, key=key)[0] == 2 * part(one, key=jax.random.split(key)[0])[0])
               for key in jax.random.split(KEY, 20)]  # fmt: skip
    assert not all(doubled)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_dropout_outside_zero_to_one_is_refused(share):
    with pytest.raises(ModelError, match="at least 0 and less than 1"):
        lc.log_slice(BASIS, 4, 2, readout=lc.Terminal((), share), key=KEY)


@pytest.mark.parametrize("readout", [lc.Terminal, lc.PerInterval, lc.Mean])
def test_dropout_costs_nothing_at_prediction(readout):
    """Without a key the program is that of a model without dropout; with one it draws random numbers."""
    models = [lc.log_slice(BASIS, 4, 2, readout=readout((8,), share), key=KEY) for share in (0.0, 0.5)]
    one = example_inputs(models[0])[0]
    without, with_dropout = (str(jax.make_jaxpr(lambda given, m=model: m(given))(one)) for model in models)
    assert without == with_dropout
    assert "random_bits" in str(jax.make_jaxpr(lambda given, key: models[1](given, key=key))(one, KEY))
