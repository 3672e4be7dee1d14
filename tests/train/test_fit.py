"""Training against steps written out by hand, and the promises of `fit` about data, selection and repetition."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import LogcdeError, TrainingError
from logcde.train.data import examples_of, split
from logcde.train.records import Journal
from tests.train import tasks

KEY = jax.random.key(7)
SHORT = {"batch": 8, "optimiser": tasks.OPTIMISER, "duration": lc.Steps(12), "every": lc.Steps(4), "key": KEY}
SHORT |= {"validation": tasks.HELD_OUT}


def train(model=None, data=None, **options):
    logsigs, targets = data or (tasks.logsigs(), tasks.ends())
    return lc.fit(model or tasks.model(), logsigs, targets, **{**SHORT, **options})


def test_a_step_is_what_it_says():
    """All series in one batch, which is not full: mean, penalty, clipping and update, as one would write them down."""
    model, inputs = tasks.model(), lc.Inputs.of(tasks.logsigs(), dtype=np.float64)
    targets = jnp.asarray(tasks.ends())
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    def loss(parameters):
        model = eqx.combine(parameters, rest)
        return jnp.mean((jax.vmap(model)(inputs) - targets) ** 2) + 0.3 * model.penalty()

    value, gradient = jax.value_and_grad(loss)(parameters)
    size = np.sqrt(sum(np.square(leaf).sum() for leaf in tasks.arrays(gradient)))
    assert size > 0.5
    expected = jax.tree.map(lambda p, g: p - 0.1 * 0.5 / size * g, parameters, gradient)

    result = train(
        validation=None, batch=64, penalty=0.3, clip=0.5, optimiser=optax.sgd(0.1), duration=lc.Steps(1), buckets=1
    )
    assert result.history[0].loss == pytest.approx(float(value), rel=1e-12)
    for got, wanted in zip(tasks.arrays(result.model), tasks.arrays(expected), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11)


def test_a_linear_cde_learns():
    options = {
        "flow": lc.flows.Euler(),
        "scan": lc.scans.MatrixFree(),
        "dtype": jnp.float64,
        "readout": lc.PerInterval(),
    }
    model = lc.log_slice(tasks.BASIS, hidden=4, outputs=2, block=1, key=jax.random.key(0), **options)
    result = train(model, (tasks.logsigs(), tasks.running()), duration=lc.Epochs(20), every=lc.Epochs(10))
    assert result.history[1].loss < result.history[0].loss
    assert isinstance(result.model, lc.SequenceModel)


def test_it_learns_at_each_interval_and_keeps_the_model_that_was_given():
    model = tasks.model(each=True)
    before = tasks.arrays(jax.tree.map(np.array, model))
    result = train(
        model, (tasks.logsigs(), tasks.running()), duration=lc.Epochs(60), every=lc.Epochs(10), patience=None
    )
    assert result.history[-1].loss < 0.3 * result.history[0].loss
    assert [round(look.epoch) for look in result.history] == [10, 20, 30, 40, 50, 60]
    assert tasks.same(before, model)


def test_classes():
    labels = (tasks.ends()[:, 0] > 0).astype(int)
    options = {"loss": lc.losses.cross_entropy, "metrics": [lc.losses.accuracy], "duration": lc.Epochs(40)}
    result = train(data=(tasks.logsigs(), labels), **options)
    assert lc.score(result.last, tasks.logsigs(), labels, lc.losses.accuracy) > 0.9
    assert set(result.history[0].validation) == {"cross-entropy", "accuracy"}
    assert result.summary.metric == "accuracy"
    assert result.summary.best_score == max(look.validation["accuracy"] for look in result.history)


def test_the_same_key_gives_the_same_result_and_another_one_does_not():
    first, again, other = train(), train(), train(key=jax.random.key(8))
    assert tasks.same(first.model, again.model)
    assert [look.loss for look in first.history] == [look.loss for look in again.history]
    assert not tasks.same(first.model, other.model)


def test_bits_do_not_depend_on_how_steps_are_cut_into_calls(monkeypatch):
    free = train()
    monkeypatch.setattr(pace, "GROWTH", 1)  # one step in each call
    single = train()
    assert tasks.same(free.last, single.last)
    assert [look.loss for look in free.history] == [look.loss for look in single.history]


def test_a_second_run_traces_nothing():
    class Counted(lc.losses.AbstractMeasure):
        name: str = eqx.field(default="counted", static=True)
        maximise: bool = eqx.field(default=False, static=True)

        def __call__(self, prediction, target):
            traced.append(prediction.shape)
            return lc.losses.mse(prediction, target)

    traced = []
    train(loss=Counted())
    once = len(traced)
    train(tasks.model(seed=1), loss=Counted(), key=jax.random.key(9))
    assert once > 0
    assert len(traced) == once


def test_scaling_is_fitted_on_the_training_part_only():
    data = tasks.logsigs()
    held_out = tasks.HELD_OUT
    rest = np.setdiff1d(np.arange(tasks.COUNT), held_out)
    wild = np.array(data.values)
    wild[held_out] *= 1e3
    wild = lc.LogSignatures(wild, data.lengths, data.basis)
    model = tasks.model(scaling=lc.IncrementRMSScaling())
    result = train(model, (wild, tasks.ends()), duration=lc.Steps(1))
    expected = lc.IncrementRMSScaling().fit(jnp.asarray(data.values[rest]), data.basis)
    assert result.model.scaling.factors == expected.factors
    assert np.array_equal(result.held_out, held_out)


@pytest.mark.parametrize(
    ("validation", "series"), [(0.25, 10), (np.array([4, 3]), 2), ([0, 1, 2], 3), (np.arange(40) < 7, 7)]
)
def test_kinds_of_validation(validation, series):
    examples = examples_of(tasks.model(), tasks.logsigs(), tasks.ends())
    held_out = split(examples, validation, np.random.default_rng(0))
    assert len(np.unique(held_out)) == series
    assert np.array_equal(held_out, split(examples, validation, np.random.default_rng(0)))
    if not isinstance(validation, float):
        assert set(held_out) == set(np.arange(40)[np.asarray(validation)])


def test_validation_on_other_series():
    other = (tasks.logsigs(1), tasks.ends(1))
    result = train(validation=other)
    assert result.summary.training_series == result.summary.validation_series == tasks.COUNT
    assert result.history[-1].validation["mse"] == pytest.approx(lc.score(result.last, *other, batch=8), rel=1e-12)


def test_the_best_model_is_the_one_that_scored_best():
    other = (tasks.logsigs(1), tasks.ends(1))
    rising = optax.sgd(lambda count: jnp.where(count < 6, 0.05, -0.05))  # downhill, then uphill
    result = train(validation=other, optimiser=rising, duration=lc.Steps(100), every=lc.Steps(2), patience=3)
    scores = [look.validation["mse"] for look in result.history]
    best = int(np.argmin(scores))
    assert 0 < best < len(scores) - 1
    assert result.summary.best_step == result.history[best].step
    assert lc.score(result.model, *other, batch=8) == pytest.approx(scores[best], rel=1e-12)
    assert result.summary.stopped_early
    assert len(scores) == best + 1 + 3
    assert [look.best for look in result.history[best:]] == [True, False, False, False]


@pytest.mark.parametrize(("latest", "step"), [(False, 2), (True, 3)])
def test_ties(latest, step):
    journal = Journal()
    for number, score in enumerate([0.5, 0.7, 0.7, 0.6, None], start=1):
        journal = dataclasses.replace(journal, step=number)
        journal = journal.looked(1.0, {"accuracy": score}, score, maximise=True, latest=latest)
    assert journal.best_step == step
    assert journal.best_score == 0.7
    assert journal.waited == 3


def test_without_validation_the_last_model_is_the_result():
    result = train(validation=0, patience=1)
    assert tasks.same(result.model, result.last)
    assert result.summary.steps == result.summary.best_step == 12
    assert not result.history[0].validation


def test_schedules_that_look_at_the_loss_and_injected_rates():
    plateau = optax.chain(optax.adam(1e-2), optax.contrib.reduce_on_plateau())
    injected = optax.inject_hyperparams(optax.adam)(learning_rate=optax.cosine_decay_schedule(1e-2, 12))
    for optimiser in (plateau, injected):
        assert np.isfinite(train(optimiser=optimiser).history[-1].loss)


def test_static_features_in_single_precision():
    model = tasks.model(outputs=1, static=2, dtype=jnp.float32)
    static = np.random.default_rng(0).normal(size=(tasks.COUNT, 2))
    data = (tasks.logsigs(), static[:, 0] - static[:, 1])
    result = train(model, data, static=static, duration=lc.Epochs(40), every=lc.Epochs(20))
    assert result.history[-1].loss < 0.5 * result.history[0].loss
    assert {leaf.dtype for leaf in tasks.arrays(result.model)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (np.zeros(39), r"shape \(39,\)"),
        (np.zeros(40), "2 outputs"),
        (np.zeros((40, 3)), "2 outputs"),
        (np.zeros((40, 8, 2)), "series x 2 outputs"),
        (np.full(40, 2), "The target of series number 0 is 2. Class labels go from 0 to 1"),
        (np.where(np.arange(80).reshape(40, 2) == 7, np.nan, 0.0), "The target of series number 3 is nan"),
    ],
)
def test_targets_that_do_not_fit(targets, said):
    with pytest.raises(TrainingError, match=said):
        train(data=(tasks.logsigs(), targets))


def test_intervals_without_a_target():
    with pytest.raises(TrainingError, match="40 series of up to 8 intervals"):
        train(tasks.model(each=True), (tasks.logsigs(), tasks.running()[:, :7]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"validation": 1.5}, "leaves some for both"),
        ({"validation": np.array([40])}, "not positions among 40 series"),
        ({"validation": np.arange(40)}, "leaves none for training"),
        ({"batch": 0}, "batch=0"),
        ({"static": np.zeros((3, 1))}, "one row for each series"),
    ],
)
def test_options_that_do_not_fit(options, said):
    with pytest.raises(LogcdeError, match=said):
        train(**options)


def test_durations_are_positive():
    with pytest.raises(TrainingError, match="0 epochs are too few"):
        lc.Epochs(0)


def test_statistics_of_batches_are_remembered_and_not_learnt():
    """With one batch of all series, what is remembered is exactly what the data have, however parameters move."""
    data = tasks.logsigs()
    model = tasks.model(each=True, normalised=True)
    options = {"batch": 64, "buckets": 1, "duration": lc.Steps(3), "validation": None, "progress": False}
    result = lc.fit(model, data, tasks.running(), optimiser=optax.adamw(1e-2), key=jax.random.key(0), **options)
    valid = np.arange(8) < tasks.lengths()[:, None]
    rows = data.values.cumsum(axis=1)[valid]
    norm = result.model.norm
    np.testing.assert_allclose(norm.weight, 1 - 0.8**3, rtol=1e-12)
    np.testing.assert_allclose(norm.mean / norm.weight, rows.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(norm.variance / norm.weight, rows.var(axis=0), rtol=1e-9)
    assert not tasks.same(result.model.weight, model.weight)
