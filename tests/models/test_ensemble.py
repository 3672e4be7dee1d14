"""Ensembles: laws, averages, one artefact, one predictor with the numbers of its members."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.models import Ensemble, MeanOutput, MeanProbability
from logcde.online import serving
from logcde.testing import check_model
from logcde.testing.examples import example_inputs

BASIS = lc.Basis(("a", "b", "#a", "#b", "time"), 1)
KEYS = jax.random.split(jax.random.key(0), 3)


def members(build=lc.log_slice, **options):
    return [build(BASIS, 4, 3, key=key, **options) for key in KEYS]


@pytest.mark.parametrize(
    ("build", "readout"), [(lc.log_slice, lc.Mean()), (lc.log_slice, lc.PerInterval()), (lc.log_ncde, lc.Terminal())]
)
def test_ensemble_obeys_the_laws(build, readout):
    options = {"width": 4, "layers": 1} if build is lc.log_ncde else {"static": 1}
    model = Ensemble(members(build, readout=readout, **options), MeanProbability())
    assert len(check_model(model)) == 10


def test_probabilities_or_outputs_are_averaged():
    models = members()
    inputs = example_inputs(models[0])
    each = np.stack([lc.predict(model, inputs) for model in models])
    regression = lc.predict(Ensemble(models, MeanOutput()), inputs)
    np.testing.assert_allclose(regression, each.mean(axis=0), rtol=1e-5, atol=1e-6)
    logits = lc.predict(Ensemble(models, MeanProbability()), inputs)
    probabilities = np.asarray(jax.nn.softmax(each)).mean(axis=0)
    np.testing.assert_allclose(jax.nn.softmax(logits), probabilities, rtol=1e-5)
    np.testing.assert_allclose(np.exp(logits), probabilities, rtol=1e-5)


def test_mean_probability_of_certain_and_contrary_members_is_finite():
    logits = jnp.array([[500.0, 0.0], [0.0, 500.0]])
    np.testing.assert_allclose(jnp.exp(MeanProbability()(logits)), [0.5, 0.5])
    slope = jax.grad(lambda given: MeanProbability()(given)[0])(logits)
    assert np.isfinite(slope).all()


def test_members_come_back_and_drop_out_by_themselves():
    models = members(readout=lc.Terminal((), 0.5))
    ensemble = Ensemble(models, MeanOutput())
    assert all(eqx.tree_equal(got, given) for got, given in zip(ensemble.models, models, strict=True))
    one, key = example_inputs(ensemble)[0], jax.random.key(3)
    own = jax.random.split(key, 3)
    expected = np.mean([model(one, key=k) for model, k in zip(models, own, strict=True)], axis=0)
    np.testing.assert_allclose(ensemble(one, key=key), expected, rtol=1e-5, atol=1e-6)


def trained(average, **options):
    values = np.random.default_rng(0).normal(size=(24, 6, 2))
    streams = lc.Streams.from_dense(values, channels=["a", "b"])
    logsigs = lc.Embedding(depth=1, dtype=np.float32)(streams, lc.Partition.every(1.5))
    labels = (values[:, -1, 0] > 0).astype(int)
    results = [
        lc.fit(
            lc.log_slice(logsigs.basis, 4, 2, block=2, scaling=lc.IncrementRMSScaling(), key=key, **options),
            logsigs,
            labels,
            loss=lc.losses.cross_entropy,
            duration=lc.Epochs(2),
            selection=lc.train.Selection(validation=None),
            callbacks=(),
            key=key,
        )
        for key in KEYS
    ]
    return Ensemble([result.model for result in results], average), streams, logsigs


@pytest.mark.parametrize("readout", [lc.Mean(), lc.Terminal((3,))])
def test_trained_ensemble_is_one_artefact_and_one_predictor(tmp_path, readout):
    ensemble, streams, logsigs = trained(MeanProbability(), readout=readout)
    assert ensemble.spec == logsigs.spec
    ensemble.save(tmp_path / "model")
    loaded = lc.load(tmp_path / "model")
    offline = np.asarray(lc.predict(ensemble, logsigs))
    np.testing.assert_array_equal(lc.predict(loaded, logsigs), offline)
    predictors = lc.Predictors(loaded)
    for series in range(3):
        first, last = streams.offsets[series : series + 2]
        for event in range(first, last):
            a, b = streams.obs_offsets[event : event + 2]
            values = dict(zip(["a", "b"], streams.value[a:b].tolist(), strict=True))
            predictors.observe(series, float(streams.times[event]), values)
    horizon = float(streams.horizon[0])
    np.testing.assert_allclose(predictors.predict(at=horizon), offline[:3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(predictors[1].predict(at=horizon), offline[1], rtol=1e-4, atol=1e-5)
    again = lc.Predictor(loaded).restore(predictors[2].state())
    np.testing.assert_array_equal(again.predict(at=horizon), predictors[2].predict(at=horizon))


def test_kernels_serve_the_numbers_of_the_compiled_ensemble():
    ensemble, _, logsigs = trained(MeanProbability(), readout=lc.Mean())
    kernel = serving.serving_model(ensemble)
    assert isinstance(kernel, serving.EnsembleServingModel)
    compiled = serving.CompiledServingModel(ensemble)
    initial = jax.tree.map(lambda leaf: np.asarray(leaf)[0], logsigs.initial)
    rows = [np.asarray(logsigs.values[n, :3], np.float64) for n in range(3)]
    found = []
    for model in (kernel, compiled):
        states = model.advance_many([model.start(initial, np.zeros(0))] * 3, rows)
        found.append((model.predict_many(states, rows), model.predict(states[0], rows[0])))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-6)


def test_ensemble_refuses_no_members_and_members_of_other_structure():
    with pytest.raises(ModelError, match="no models"):
        Ensemble([], MeanOutput())
    models = members()
    with pytest.raises(ModelError, match="Member 1 differs from member 0 in more than its parameters"):
        Ensemble([models[0], lc.log_slice(BASIS, 8, 3, key=KEYS[0])], MeanOutput())
    scaled = dataclasses.replace(models[2], scaling=lc.IncrementRMSScaling((1.0,) * 5))
    with pytest.raises(ModelError, match="Member 2"):
        Ensemble([*models[:2], scaled], MeanOutput())


def test_ensemble_is_trained_further_as_one_model():
    ensemble, _, logsigs = trained(MeanOutput())
    targets = np.asarray(logsigs.values[:, 0, :2])
    result = lc.fit(ensemble, logsigs, targets, duration=lc.Steps(2), callbacks=(), key=KEYS[0])
    assert isinstance(result.model, Ensemble)
    assert not np.array_equal(result.last.models[1].initial.bias, ensemble.models[1].initial.bias)
