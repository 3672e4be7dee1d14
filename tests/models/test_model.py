"""Whole models: online against batch, finite gradients, ragged series, `predict`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.streams import Keep

KEY = jax.random.key(0)
PARTITION = lc.Partition.at([0.0, 0.7, 2.5, 6.0])


def streams():
    """Asynchronous and ragged: a full series, a sparse one, a single event, none; one channel is never observed."""
    nan = np.nan
    times = [[0.0, 1.0, 1.5, 4.0], [0.5, 2.0, 3.0], [2.0], []]
    values = [
        [[1.0, 2.0, nan], [3.0, -1.0, nan], [2.0, 0.5, nan], [5.0, 1.0, nan]],
        [[1.0, nan, nan], [nan, 4.0, nan], [2.0, nan, nan]],
        [[nan, 7.0, nan]],
        np.zeros((0, 3)),
    ]
    return lc.Streams.from_arrays(times, values, channels=["a", "b", "silent"], horizon=6.0, empty=Keep())


def log_models(basis, **options):
    return {
        "log-ncde": lc.log_ncde(basis, 4, 2, width=5, layers=2, init_scale=1.0, steps=2, key=KEY, **options),
        "nrde": lc.baselines.nrde(basis, 4, 2, width=5, layers=2, key=KEY, **options),
        "deep": lc.deep_log_slice(basis, 4, 2, block=2, layers=2, key=KEY, **options),
    }


def control_of(name):
    return {
        "hermite": lc.baselines.HermiteControl(),
        "linear": lc.baselines.LinearControl(),
        "rectilinear": lc.baselines.RectilinearControl(),
    }[name]


@pytest.mark.parametrize("name", ["log-ncde", "nrde", "deep"])
def test_sequence_model_online_equals_offline(name):
    logsigs = lc.Embedding(depth=2)(streams(), PARTITION)
    model = log_models(logsigs.basis, readout=lc.PerInterval(), dtype=jnp.float64)[name]
    inputs = lc.Inputs.of(logsigs, dtype=np.float64)
    offline = lc.predict(model, inputs)
    advance, predict = eqx.filter_jit(model.advance), eqx.filter_jit(model.predict)
    for series in range(2):
        one = inputs[series]
        kept = model.start(one.initial, one.static)
        for interval in range(3):
            kept = advance(kept, one.logsigs[interval])
            np.testing.assert_allclose(predict(kept), offline[series, interval], rtol=1e-9)


@pytest.mark.parametrize("name", ["log-ncde", "nrde", "deep"])
def test_log_model_gradients_are_finite(name):
    logsigs = lc.Embedding(depth=2)(streams(), PARTITION)
    _check_gradients(log_models(logsigs.basis)[name], lc.Inputs.of(logsigs), np.float32)


@pytest.mark.parametrize("name", ["hermite", "rectilinear"])
def test_ncde_gradients_are_finite(name):
    path = control_of(name)(streams(), PARTITION)
    model = lc.baselines.ncde(path.basis, 4, 2, width=5, layers=2, dtype=jnp.float64, key=KEY)
    _check_gradients(model, lc.Inputs.of(path, dtype=np.float64), np.float64)


def _check_gradients(model, inputs, dtype):
    def loss(model):
        return jnp.sum(jax.vmap(model)(inputs) ** 2) + model.penalty()

    for leaf in jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(loss))(model)):
        assert leaf.dtype == dtype
        assert np.all(np.isfinite(leaf))


@pytest.mark.parametrize("name", ["hermite", "linear", "rectilinear"])
def test_ncde_of_ragged_series_equals_single_series(name):
    path = control_of(name)(streams(), PARTITION)
    model = lc.baselines.ncde(path.basis, 4, 2, width=5, readout=lc.PerInterval(), dtype=jnp.float64, key=KEY)
    inputs = lc.Inputs.of(path, dtype=np.float64)
    assert inputs.outputs.tolist() == [3, 3, 3, 3]
    together = lc.predict(model, inputs)
    assert together.shape == (4, 3, 2)
    alone = control_of(name)(streams()[1], PARTITION)
    found = model(lc.Inputs.of(alone, dtype=np.float64)[0])
    np.testing.assert_allclose(together[1], found, rtol=1e-10)
    assert np.all(np.isfinite(together))


def test_only_rectilinear_ncde_is_causal():
    before = streams()[0]
    after = lc.Streams.from_arrays(
        [[0.0, 1.0, 1.5, 2.5]],
        [[[1.0, 2.0, np.nan], [3.0, -1.0, np.nan], [2.0, 0.5, np.nan], [-9.0, 3.0, 8.0]]],
        channels=["a", "b", "silent"],
        horizon=6.0,
    )
    for name, causal in (("rectilinear", True), ("hermite", False), ("linear", False)):
        control = control_of(name)
        model = lc.baselines.ncde(
            control.basis(before.schema), 4, 1, width=5, initial=lc.LearntInitial(), readout=lc.PerInterval(),
            dtype=jnp.float64, key=KEY,
        )  # fmt: skip
        first, second = (model(lc.Inputs.of(control(one, PARTITION), dtype=np.float64)[0]) for one in (before, after))
        assert np.allclose(first[1], second[1], rtol=1e-12) == causal
        assert not np.allclose(first[2], second[2], rtol=1e-12)


def test_first_value_initial_without_activation():
    path = lc.baselines.HermiteControl()(streams(), PARTITION)
    model = lc.baselines.ncde(path.basis, 4, 2, key=KEY)
    inputs = lc.Inputs.of(path)
    expected = model.initial.weight @ np.array([1.0, 4.0, 0.0], np.float32) + model.initial.bias
    np.testing.assert_allclose(model.initial(inputs[1].initial, inputs[1].static), expected, rtol=1e-6)


def test_predict_takes_log_signatures_and_controls_in_model_precision():
    streams = lc.Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    logsigs = lc.Embedding(depth=1)(streams, lc.Partition.uniform(2))
    controls = lc.baselines.LinearControl()(streams, lc.Partition.uniform(2))
    for dtype in (jnp.float32, jnp.float64):
        for data, family in ((logsigs, lc.log_slice), (controls, lc.baselines.ncde)):
            model = family(data.basis, hidden=4, outputs=2, dtype=dtype, key=jax.random.key(0))
            expected = lc.predict(model, lc.Inputs.of(data, dtype=dtype))
            found = lc.predict(model, data)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)


def test_independent_predictions_do_not_depend_on_the_batch():
    """To the last bit, with one prediction for a series and with one for each interval."""
    basis = lc.Basis.of_width(2, 1)
    values = np.random.default_rng(0).normal(size=(70, 11, 2))
    lengths = np.arange(70) % 11 + 1
    logsigs = lc.LogSignatures(values * (np.arange(11) < lengths[:, None])[..., None], lengths, basis)
    for readout in (lc.Terminal(), lc.PerInterval()):
        model = lc.log_slice(basis, 4, 2, readout=readout, key=KEY)
        together = lc.predict(model, logsigs, independent=True)
        few = np.array([69, 3, 20])
        found = lc.predict(model, logsigs[few], independent=True)
        batched = lc.predict(model, logsigs)
        for place, series in enumerate(few):
            valid = (series, slice(lengths[series])) if together.ndim == 3 else (series,)
            here = (place, slice(lengths[series])) if together.ndim == 3 else (place,)
            np.testing.assert_array_equal(found[here], together[valid])
            np.testing.assert_allclose(together[valid], batched[valid], rtol=1e-5, atol=1e-6)
