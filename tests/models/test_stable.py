"""Models of stable flows: laws, plain rows, soft limits, and the readout by mean and maximum."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.embedding import InitialObservations
from logcde.errors import ModelError
from logcde.models import MeanMax, SoftLimit, deep_stable
from logcde.scaling import IncrementRMSScaling, NoScaling
from logcde.scans import Sequential
from logcde.testing import check_model
from logcde.testing.check import LAWS
from logcde.testing.examples import LENGTHS, example_inputs

KEY = jax.random.key(0)
BASIS = lc.Basis(("a", "#a", "time"), 2)


def _rows(size=5, dtype=np.float32):
    rng = np.random.default_rng(0)
    nothing = np.zeros((len(LENGTHS), 0), bool)
    rows = rng.normal(size=(len(LENGTHS), max(LENGTHS), size))
    rows *= (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None])[..., None]
    return lc.Inputs(
        jnp.asarray(rows, dtype),
        jnp.asarray(LENGTHS, jnp.int32),
        InitialObservations(jnp.asarray(nothing, dtype), jnp.asarray(nothing), jnp.asarray(nothing)),
        jnp.zeros((len(LENGTHS), 0), dtype),
    )


def test_deep_stable_on_plain_rows_obeys_the_laws():
    model = deep_stable(5, hidden=8, outputs=2, layers=2, scan=Sequential(), key=KEY)
    skipped = set(LAWS) - set(check_model(model, _rows()))
    assert skipped == {"a predictor equals batch"}


def test_deep_stable_on_log_signatures_obeys_the_laws():
    model = deep_stable(BASIS, hidden=4, outputs=2, layers=1, scan=Sequential(), key=KEY)
    assert check_model(model) == list(LAWS)


def test_deep_stable_drops_out_in_training_only():
    model = deep_stable(5, hidden=8, outputs=2, layers=1, scan=Sequential(), readout=MeanMax(), key=KEY)
    one = _rows()[0]
    np.testing.assert_array_equal(model(one), model(one))
    assert not np.allclose(model(one, key=KEY), model(one, key=jax.random.key(1)))


def test_static_features_reach_a_model_of_plain_rows():
    model = deep_stable(5, hidden=8, outputs=2, layers=1, static=2, scan=Sequential(), key=KEY)
    inputs = _rows()[0]
    one, other = (model(dataclasses.replace(inputs, static=jnp.full(2, value, jnp.float32))) for value in (0.0, 1.0))
    assert np.abs(one - other).max() > 1e-3


def test_mean_max_reads_both_and_nothing_of_the_padding():
    rule, states = MeanMax(), jnp.array([[1.0, -3.0], [2.0, -1.0], [9.0, 9.0]])
    np.testing.assert_allclose(rule.offline(jnp.full(2, 7.0), states, jnp.asarray(2)), [1.5, -2.0, 2.0, -1.0])
    np.testing.assert_array_equal(rule.offline(jnp.full(2, 7.0), states, jnp.asarray(0)), 0)
    tally = rule.start(jnp.full(2, 7.0))
    np.testing.assert_array_equal(rule.read(tally), 0)
    for state in states[:2]:
        tally = rule.add(tally, state)
    np.testing.assert_allclose(rule.read(tally), [1.5, -2.0, 2.0, -1.0])


def test_mean_max_of_linear_models_obeys_the_laws():
    assert len(check_model(lc.log_slice(BASIS, 4, 2, block=2, readout=MeanMax((3,)), key=KEY))) == len(LAWS) - 1


def test_soft_limit_follows_its_scaling():
    logsigs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, BASIS.dimension)) * 20)
    scaling = SoftLimit(limit=6.0).fit(logsigs, BASIS)
    assert scaling.scaling == IncrementRMSScaling().fit(logsigs, BASIS)
    np.testing.assert_allclose(scaling(logsigs * 1e-4, BASIS), scaling.scaling(logsigs * 1e-4, BASIS), rtol=1e-6)
    wild = scaling(logsigs * 1e6, BASIS)
    np.testing.assert_allclose(np.abs(wild[logsigs != 0]), 6.0)
    assert SoftLimit(NoScaling()).fit(logsigs, BASIS) == SoftLimit(NoScaling())
    with pytest.raises(ModelError, match="limit is 0"):
        SoftLimit(limit=0.0)


def test_predictions_for_wild_feeds_stay_near_those_of_their_limit():
    """Ten times wilder and a million times wilder are almost the same to a model of limited inputs."""
    model = deep_stable(BASIS, hidden=4, outputs=2, layers=1, scan=Sequential(), key=KEY)
    inputs = example_inputs(model)
    model = model.fit_preprocessing(inputs, None)
    wilder, wildest = (
        lc.predict(model, dataclasses.replace(inputs, logsigs=inputs.logsigs * size)) for size in (1e3, 1e6)
    )
    assert np.all(np.isfinite(wildest))
    np.testing.assert_allclose(wilder, wildest, atol=0.2)
