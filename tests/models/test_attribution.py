"""Attributions against finite differences, and predictions of prefixes."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.models.attribution import log_odds
from logcde.testing.examples import example_inputs

STREAMS = lc.Streams.from_arrays(
    [[0.0, 1.0, 2.5, 3.0]],
    [[[70.0, np.nan], [90.0, 37.0], [np.nan, 39.0], [65.0, np.nan]]],
    channels=["pulse", "temp"],
    horizon=4.0,
)
SCALES = lc.ChannelScaler.fit(STREAMS, lc.scaling.StandardScaler())


def fitted(depth=1, outputs=1, initial=lc.LearntInitial(), levels=None, static=0):
    embedding = lc.Embedding(depth=depth, scaler=SCALES, soft_bins=levels)
    logsigs = embedding(STREAMS, lc.Partition.every(2.0))
    keys = jax.random.split(jax.random.key(0), 2)
    model = lc.log_slice(logsigs.basis, 4, outputs, initial=initial, static=static, dtype=np.float64, key=keys[0])
    inputs = lc.Inputs.of(logsigs, np.ones((1, static)), dtype=np.float64)
    return model.fit_preprocessing(inputs, logsigs.spec), embedding, inputs


def prediction_of(model, embedding, values, static=None):
    streams = dataclasses.replace(STREAMS, value=values)
    logsigs = embedding(streams, lc.Partition.every(2.0))
    return float(log_odds(lc.predict(model, lc.Inputs.of(logsigs, static, dtype=np.float64))[0]))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    "initial", [lc.LearntInitial(), lc.FirstValueInitial(lc.flows.Identity()), lc.TimeZeroInitial()]
)
@pytest.mark.parametrize("depth", [1, 2])
def test_attribution_adds_up_to_prediction_minus_ordinary(depth, initial, outputs):
    model, embedding, _ = fitted(depth, outputs, initial, static=1)
    found = lc.attribute(model, STREAMS, static=[1.0], pieces=200)
    ordinary = np.array([SCALES.each[channel].centre for channel in STREAMS.channel])
    static = np.ones((1, 1))
    assert found.prediction == pytest.approx(prediction_of(model, embedding, STREAMS.value, static), abs=1e-9)
    assert found.ordinary == pytest.approx(prediction_of(model, embedding, ordinary, static), abs=1e-9)
    assert found.amounts.shape == STREAMS.value.shape
    assert found.amounts.sum() == pytest.approx(found.prediction - found.ordinary, abs=1e-4)


def test_attribution_matches_finite_differences():
    """Against finite differences along the way, observation by observation."""
    model, embedding, _ = fitted(depth=2)
    ordinary = np.array([SCALES.each[channel].centre for channel in STREAMS.channel])
    expected = np.zeros(len(ordinary))
    for share in (np.arange(20) + 0.5) / 20:
        here = ordinary + share * (STREAMS.value - ordinary)
        for obs in range(len(here)):
            ends = []
            for side in (-1e-4, 1e-4):
                moved = here.copy()
                moved[obs] += side
                ends.append(prediction_of(model, embedding, moved))
            expected[obs] += (ends[1] - ends[0]) / 2e-4 / 20 * (STREAMS.value - ordinary)[obs]
    np.testing.assert_allclose(lc.attribute(model, STREAMS, pieces=20).amounts, expected, atol=1e-6)


def test_attribution_with_soft_bins():
    levels = lc.SoftBins(("pulse", "temp"), ((60.0, 75.0, 100.0), (36.0, 40.0)))
    model, _, _ = fitted(levels=levels)
    found = lc.attribute(model, STREAMS, pieces=400)
    assert found.amounts.sum() == pytest.approx(found.prediction - found.ordinary, abs=1e-2)


def test_attribute_refuses_what_it_cannot_explain():
    model, _, _ = fitted(outputs=3)
    with pytest.raises(ModelError, match="shape .3,.. Select the number"):
        lc.attribute(model, STREAMS)
    assert lc.attribute(model, STREAMS, of=lambda prediction: prediction[2]).amounts.any()
    with pytest.raises(ModelError, match="There are 2 series"):
        lc.attribute(model, STREAMS[[0, 0]])
    with pytest.raises(ModelError, match="at least 1"):
        lc.attribute(model, STREAMS, pieces=0)
    with pytest.raises(ModelError, match="no record of how its log-signatures are made"):
        lc.attribute(dataclasses.replace(model, spec=None), STREAMS)


@pytest.mark.parametrize("readout", [lc.Terminal(), lc.Mean()])
def test_predict_prefixes_equals_predict_of_prefixes(readout):
    model = lc.log_slice(lc.Basis(("a", "#a", "time"), 2), 4, 2, readout=readout, key=jax.random.key(1))
    inputs = example_inputs(model)
    along = lc.predict_prefixes(model, inputs)
    for length in range(1, inputs.logsigs.shape[1] + 1):
        cut = eqx.tree_at(lambda tree: tree.length, inputs, jax.numpy.minimum(inputs.length, length))
        there = np.asarray(inputs.length) >= length
        expected = lc.predict(model, cut)[there]
        np.testing.assert_allclose(along[there, length - 1], expected, rtol=1e-5, atol=1e-6)


def test_predict_prefixes_refuses_controls():
    controls = lc.baselines.HermiteControl()(STREAMS, lc.Partition.uniform(2))
    model = lc.baselines.ncde(controls.basis, 4, 1, key=jax.random.key(0))
    with pytest.raises(ModelError, match="Give log-signatures"):
        lc.predict_prefixes(model, lc.Inputs.of(controls))
