"""Recurrent models: the laws of all models, a task that each learns, batch statistics."""

import jax
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.baselines import LRU, S5, S6, Mamba, RecurrentModel, ssm
from logcde.errors import ModelError
from logcde.testing import check_model
from logcde.testing.examples import example_inputs

UNITS = [S5(state=4, blocks=2), LRU(state=3), S6(state=2), Mamba(state=2, width=2, expansion=1)]
READOUTS = [lc.Mean(), lc.PerInterval(), lc.Terminal(), lc.Mean()]


@pytest.mark.parametrize(("unit", "readout"), list(zip(UNITS, READOUTS, strict=True)), ids=["S5", "LRU", "S6", "Mamba"])
def test_ssm_obeys_the_laws(unit, readout):
    basis = lc.Basis.of_width(2, 1)
    model = ssm(basis, hidden=3, outputs=2, unit=unit, layers=1, readout=readout, key=jax.random.key(0))
    assert len(check_model(model)) == 10


def test_ssm_rows_are_observed_values_carried_forward():
    values = np.array([[1.0, np.nan], [np.nan, 5.0], [3.0, 6.0]])
    streams = lc.Streams.from_arrays([[0.2, 1.0, 4.0]], [values], channels=["a", "b"], horizon=9.0)
    rows = lc.Embedding(depth=1, counts=False, time=False)(streams, lc.Partition.every_events(1))
    np.testing.assert_allclose(np.cumsum(rows.values[0], axis=0), [[1, 0], [1, 5], [3, 6]])


@pytest.mark.parametrize("unit", UNITS, ids=["S5", "LRU", "S6", "Mamba"])
def test_ssm_learns_two_rhythms(unit):
    """Ragged series of faster or slower oscillations, told apart by no single row."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=96)
    lengths = rng.integers(12, 20, size=96)
    times = [np.arange(n, dtype=float) for n in lengths]
    rhythm = np.where(labels, 1.4, 0.5)
    waves = [np.sin(w * t + rng.uniform(0, 6))[:, None] for w, t in zip(rhythm, times, strict=True)]
    streams = lc.Streams.from_arrays(times, waves, channels=["wave"])
    rows = lc.Embedding(depth=1, counts=False, time=False)(streams, lc.Partition.every_events(1))
    model = ssm(rows.basis, hidden=8, outputs=2, unit=unit, layers=1, key=jax.random.key(0))
    result = lc.fit(
        model,
        rows[:72],
        labels[:72],
        loss=lc.losses.cross_entropy,
        optimiser=optax.adam(1e-2),
        batching=lc.train.Batching(size=24, buckets=1),
        duration=lc.Epochs(60),
        selection=lc.train.Selection(
            validation=(lc.Inputs.of(rows[72:]), labels[72:]), metrics=(lc.losses.accuracy,), every=lc.Epochs(60)
        ),
        callbacks=(),
        key=jax.random.key(1),
    )
    assert result.history[-1].validation["accuracy"] >= 0.9


def test_ssm_without_layers_is_refused():
    with pytest.raises(ModelError, match="at least one"):
        ssm(lc.Basis.of_width(2, 1), hidden=4, outputs=1, layers=0, key=jax.random.key(0))


def test_sum_of_trained_ssms_predicts_their_mean_but_is_not_trained():
    basis = lc.Basis.of_width(2, 1)
    models = [ssm(basis, hidden=3, outputs=1, layers=1, key=jax.random.key(seed)) for seed in range(2)]
    inputs = example_inputs(models[0])
    both = lc.Sum.mean(models)
    expected = np.mean([lc.predict(model, inputs) for model in models], axis=0)
    np.testing.assert_allclose(lc.predict(both, inputs), expected, rtol=1e-6)
    with pytest.raises(ModelError, match="Train it by itself"):
        both(inputs[0], key=jax.random.key(0))


def test_recurrent_model_refuses_other_dynamics():
    with pytest.raises(ModelError, match="LinearDynamics, not Recurrent"):
        RecurrentModel(lc.log_slice(lc.Basis.of_width(2, 1), hidden=4, outputs=1, key=jax.random.key(0)))
