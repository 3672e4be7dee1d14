"""Attributions: they add up, they are what a loop finds, and predictions along a series are those of its prefixes."""

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
    embedding = lc.Embedding(depth=depth, scales=SCALES, levels=levels)
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
@pytest.mark.parametrize("initial", [lc.LearntInitial(), lc.models.RawFirstValues(), lc.TimeZeroInitial()])
@pytest.mark.parametrize("depth", [1, 2])
def test_amounts_add_up_to_what_values_change(depth, initial, outputs):
    model, embedding, _ = fitted(depth, outputs, initial, static=1)
    found = lc.attribute(model, STREAMS, static=[1.0], pieces=200)
    ordinary = np.array([SCALES.each[channel].centre for channel in STREAMS.channel])
    static = np.ones((1, 1))
    assert found.prediction == pytest.approx(prediction_of(model, embedding, STREAMS.value, static), abs=1e-9)
    assert found.ordinary == pytest.approx(prediction_of(model, embedding, ordinary, static), abs=1e-9)
    assert found.amounts.shape == STREAMS.value.shape
    assert found.amounts.sum() == pytest.approx(found.prediction - found.ordinary, abs=1e-4)


def test_amounts_are_integrals_of_slopes():
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


def test_levels_are_seen():
    levels = lc.SoftBins(("pulse", "temp"), ((60.0, 75.0, 100.0), (36.0, 40.0)))
    model, _, _ = fitted(levels=levels)
    found = lc.attribute(model, STREAMS, pieces=400)
    assert found.amounts.sum() == pytest.approx(found.prediction - found.ordinary, abs=1e-2)


def test_what_cannot_be_explained_is_said():
    model, _, _ = fitted(outputs=3)
    with pytest.raises(ModelError, match="shape .3,.. Say by of="):
        lc.attribute(model, STREAMS)
    assert lc.attribute(model, STREAMS, of=lambda prediction: prediction[2]).amounts.any()
    with pytest.raises(ModelError, match="There are 2 series"):
        lc.attribute(model, STREAMS[[0, 0]])
    with pytest.raises(ModelError, match="at least 1"):
        lc.attribute(model, STREAMS, pieces=0)
    with pytest.raises(ModelError, match="not known how this model's log-signatures are made"):
        lc.attribute(dataclasses.replace(model, spec=None), STREAMS)


@pytest.mark.parametrize("readout", [lc.Terminal(), lc.Mean()])
def test_predictions_along_a_series_are_those_of_its_prefixes(readout):
    model = lc.log_slice(lc.Basis(("a", "#a", "time"), 2), 4, 2, readout=readout, key=jax.random.key(1))
    inputs = example_inputs(model)
    along = lc.predict_prefixes(model, inputs)
    for length in range(1, inputs.steps.shape[1] + 1):
        cut = eqx.tree_at(lambda tree: tree.length, inputs, jax.numpy.minimum(inputs.length, length))
        there = np.asarray(inputs.length) >= length
        expected = lc.predict(model, cut)[there]
        np.testing.assert_allclose(along[there, length - 1], expected, rtol=1e-5, atol=1e-6)


def test_pieces_are_no_intervals():
    controls = lc.baselines.HermiteControl()(STREAMS, lc.Partition.uniform(2))
    model = lc.baselines.ncde(controls.basis, 4, 1, key=jax.random.key(0))
    with pytest.raises(ModelError, match="Give log-signatures"):
        lc.predict_prefixes(model, lc.Inputs.of(controls))
