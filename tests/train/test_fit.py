"""`fit` against a step written out by hand, and what it promises about data, selection and reproducibility."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import LogcdeError, TrainingError
from logcde.train import loop
from logcde.train.data import examples_of, held_out_series
from logcde.train.records import RunProgress
from tests.train import toys

KEY = jax.random.key(7)
SHORT = {"size": 8, "optimiser": toys.OPTIMISER, "duration": lc.Steps(12), "every": lc.Steps(4), "key": KEY}
SHORT |= {"validation": toys.HELD_OUT}


def train(model=None, data=None, **options):
    logsigs, targets = data or (toys.logsigs(), toys.ends())
    return lc.fit(model or toys.model(), logsigs, targets, **toys.options(**{**SHORT, **options}))


def test_one_step_equals_the_step_written_by_hand():
    """All series in one batch, which is not full: mean, penalty, clipping and update."""
    model, inputs = toys.model(), lc.Inputs.of(toys.logsigs(), dtype=np.float64)
    targets = jnp.asarray(toys.ends())
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    def loss(parameters):
        model = eqx.combine(parameters, rest)
        return jnp.mean((jax.vmap(model)(inputs) - targets) ** 2) + 0.3 * model.penalty()

    value, gradient = jax.value_and_grad(loss)(parameters)
    size = np.sqrt(sum(np.square(leaf).sum() for leaf in toys.arrays(gradient)))
    assert size > 0.5
    expected = jax.tree.map(lambda p, g: p - 0.1 * 0.5 / size * g, parameters, gradient)

    result = train(
        validation=None, size=64, penalty=0.3, clip=0.5, optimiser=optax.sgd(0.1), duration=lc.Steps(1), buckets=1
    )
    assert result.history[0].loss == pytest.approx(float(value), rel=1e-12)
    for got, wanted in zip(toys.arrays(result.model), toys.arrays(expected), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11)


def test_loss_of_a_linear_cde_decreases():
    options = {
        "flow": lc.flows.Euler(),
        "scan": lc.scans.MatrixFree(),
        "dtype": jnp.float64,
        "readout": lc.PerInterval(),
    }
    model = lc.log_slice(toys.BASIS, hidden=4, outputs=2, block=1, key=jax.random.key(0), **options)
    result = train(model, (toys.logsigs(), toys.running()), duration=lc.Epochs(20), every=lc.Epochs(10))
    assert result.history[1].loss < result.history[0].loss
    assert isinstance(result.model, lc.SequenceModel)


def test_per_interval_targets_are_learnt_and_the_given_model_is_unchanged():
    model = toys.model(each=True)
    before = toys.arrays(jax.tree.map(np.array, model))
    result = train(model, (toys.logsigs(), toys.running()), duration=lc.Epochs(60), every=lc.Epochs(10), patience=None)
    assert result.history[-1].loss < 0.3 * result.history[0].loss
    assert [round(one.epoch) for one in result.history] == [10, 20, 30, 40, 50, 60]
    assert toys.same(before, model)


def test_classifier_is_selected_by_accuracy():
    labels = (toys.ends()[:, 0] > 0).astype(int)
    options = {"loss": lc.losses.cross_entropy, "metrics": [lc.losses.accuracy], "duration": lc.Epochs(40)}
    result = train(data=(toys.logsigs(), labels), **options)
    assert lc.score(result.last, toys.logsigs(), labels, lc.losses.accuracy) > 0.9
    assert set(result.history[0].validation) == {"cross-entropy", "accuracy"}
    assert result.summary.metric == "accuracy"
    assert result.summary.best_score == max(one.validation["accuracy"] for one in result.history)


def test_result_depends_on_the_key_alone():
    first, again, other = train(), train(), train(key=jax.random.key(8))
    assert toys.same(first.model, again.model)
    assert [one.loss for one in first.history] == [one.loss for one in again.history]
    assert not toys.same(first.model, other.model)


def test_bits_do_not_depend_on_the_length_of_calls(monkeypatch):
    free = train()
    monkeypatch.setattr(loop, "GROWTH", 1)  # one step in each call
    single = train()
    assert toys.same(free.last, single.last)
    assert [one.loss for one in free.history] == [one.loss for one in single.history]


def test_second_run_traces_nothing():
    class Counted(lc.losses.AbstractMeasure):
        name: str = eqx.field(default="counted", static=True)
        maximise: bool = eqx.field(default=False, static=True)

        def __call__(self, prediction, target):
            traced.append(prediction.shape)
            return lc.losses.mse(prediction, target)

    traced = []
    train(loss=Counted())
    once = len(traced)
    train(toys.model(seed=1), loss=Counted(), key=jax.random.key(9))
    assert once > 0
    assert len(traced) == once


def test_scaling_is_fitted_on_the_training_part_only():
    data = toys.logsigs()
    held_out = toys.HELD_OUT
    rest = np.setdiff1d(np.arange(toys.COUNT), held_out)
    wild = np.array(data.values)
    wild[held_out] *= 1e3
    wild = lc.LogSignatures(wild, data.lengths, data.basis)
    model = toys.model(scaling=lc.IncrementRMSScaling())
    result = train(model, (wild, toys.ends()), duration=lc.Steps(1))
    expected = lc.IncrementRMSScaling().fit(jnp.asarray(data.values[rest]), data.basis)
    assert result.model.scaling.factors == expected.factors
    assert np.array_equal(result.held_out, held_out)


@pytest.mark.parametrize(
    ("validation", "series"), [(0.25, 10), (np.array([4, 3]), 2), ([0, 1, 2], 3), (np.arange(40) < 7, 7)]
)
def test_validation_by_fraction_positions_or_mask(validation, series):
    examples = examples_of(toys.model(), toys.logsigs(), toys.ends())
    held_out = held_out_series(examples, validation, np.random.default_rng(0))
    assert len(np.unique(held_out)) == series
    assert np.array_equal(held_out, held_out_series(examples, validation, np.random.default_rng(0)))
    if not isinstance(validation, float):
        assert set(held_out) == set(np.arange(40)[np.asarray(validation)])


def test_validation_on_other_series():
    other = (toys.logsigs(1), toys.ends(1))
    result = train(validation=other)
    assert result.summary.training_series == result.summary.validation_series == toys.COUNT
    assert result.history[-1].validation["mse"] == pytest.approx(
        lc.score(result.last, *other, batching=lc.train.Batching(8)), rel=1e-12
    )


def test_returned_model_has_the_best_score_and_patience_ends_training():
    other = (toys.logsigs(1), toys.ends(1))
    rising = optax.sgd(lambda count: jnp.where(count < 6, 0.05, -0.05))  # downhill, then uphill
    result = train(validation=other, optimiser=rising, duration=lc.Steps(100), every=lc.Steps(2), patience=3)
    scores = [one.validation["mse"] for one in result.history]
    best = int(np.argmin(scores))
    assert 0 < best < len(scores) - 1
    assert result.summary.best_step == result.history[best].step
    assert lc.score(result.model, *other, batching=lc.train.Batching(8)) == pytest.approx(scores[best], rel=1e-12)
    assert result.summary.stopped_early
    assert len(scores) == best + 1 + 3
    assert [one.best for one in result.history[best:]] == [True, False, False, False]


@pytest.mark.parametrize(("latest", "step"), [(False, 2), (True, 3)])
def test_equal_scores_select_the_earliest_or_the_latest(latest, step):
    progress = RunProgress()
    for number, score in enumerate([0.5, 0.7, 0.7, 0.6, None], start=1):
        progress = dataclasses.replace(progress, step=number)
        progress = progress.after_evaluation(1.0, {"accuracy": score}, score, maximise=True, latest=latest)
    assert progress.best_step == step
    assert progress.best_score == 0.7
    assert progress.evaluations_without_gain == 3


def test_without_validation_the_last_model_is_the_result():
    result = train(validation=0, patience=1)
    assert toys.same(result.model, result.last)
    assert result.summary.steps == result.summary.best_step == 12
    assert not result.history[0].validation


def test_optimisers_with_plateaus_and_injected_hyperparameters():
    plateau = optax.chain(optax.adam(1e-2), optax.contrib.reduce_on_plateau())
    injected = optax.inject_hyperparams(optax.adam)(learning_rate=optax.cosine_decay_schedule(1e-2, 12))
    for optimiser in (plateau, injected):
        assert np.isfinite(train(optimiser=optimiser).history[-1].loss)


def test_static_features_are_learnt_in_single_precision():
    model = toys.model(outputs=1, static=2, dtype=jnp.float32)
    static = np.random.default_rng(0).normal(size=(toys.COUNT, 2))
    data = (toys.logsigs(), static[:, 0] - static[:, 1])
    result = train(model, data, static=static, duration=lc.Epochs(40), every=lc.Epochs(20))
    assert result.history[-1].loss < 0.5 * result.history[0].loss
    assert {leaf.dtype for leaf in toys.arrays(result.model)} == {np.dtype(np.float32)}


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
def test_targets_of_the_wrong_form_are_refused(targets, said):
    with pytest.raises(TrainingError, match=said):
        train(data=(toys.logsigs(), targets))


def test_missing_targets_of_intervals_are_refused():
    with pytest.raises(TrainingError, match="40 series of up to 8 intervals"):
        train(toys.model(each=True), (toys.logsigs(), toys.running()[:, :7]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"validation": 1.5}, "leaves some for both"),
        ({"validation": np.array([40])}, "not positions among 40 series"),
        ({"validation": np.arange(40)}, "leaves none for training"),
        ({"size": 0}, r"Batching\(size=0\) is too small"),
        ({"buckets": 0}, r"Batching\(buckets=0\) is too small"),
        ({"static": np.zeros((3, 1))}, "one row for each series"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, said):
    with pytest.raises(LogcdeError, match=said):
        train(**options)


def test_durations_of_less_than_one_are_refused():
    with pytest.raises(TrainingError, match=r"Epochs\(count=0\) is too small"):
        lc.Epochs(0)


def test_batch_statistics_are_averaged_and_not_optimised():
    """With one batch of all series the averages equal the statistics of the data, however parameters move."""
    data = toys.logsigs()
    model = toys.model(each=True, normalised=True)
    options = toys.options(size=64, buckets=1, duration=lc.Steps(3), validation=None)
    result = lc.fit(model, data, toys.running(), optimiser=optax.adamw(1e-2), key=jax.random.key(0), **options)
    valid = np.arange(8) < toys.lengths()[:, None]
    rows = data.values.cumsum(axis=1)[valid]
    norm = result.model.norm
    np.testing.assert_allclose(norm.weight, 1 - 0.8**3, rtol=1e-12)
    np.testing.assert_allclose(norm.mean / norm.weight, rows.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(norm.variance / norm.weight, rows.var(axis=0), rtol=1e-9)
    assert not toys.same(result.model.weight, model.weight)


def test_weights_of_series_are_those_of_repeated_ones():
    """In one batch of all series; held-out series have theirs in the scores."""
    data, targets, held_out = toys.logsigs(), toys.ends(), toys.HELD_OUT
    times = np.random.default_rng(3).integers(1, 4, toys.COUNT)
    options = {"size": 256, "buckets": 1, "duration": lc.Steps(3), "every": lc.Steps(1)}
    weighted = train(weights=2.5 * times, **options)
    rows = np.repeat(np.arange(toys.COUNT), times)
    repeated = train(data=(data[rows], targets[rows]), **{**options, "validation": np.isin(rows, held_out)})
    for got, wanted in zip(toys.arrays(weighted.last), toys.arrays(repeated.last), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)
    for one, other in zip(weighted.history, repeated.history, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-12)
        assert one.validation["mse"] == pytest.approx(other.validation["mse"], rel=1e-12)


def test_series_of_weight_zero_is_not_learnt_from():
    wild = toys.ends()
    wild[3] = 1e6
    weights = np.arange(toys.COUNT) != 3
    assert toys.same(train(weights=weights).last, train(data=(toys.logsigs(), wild), weights=weights).last)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(39), r"weights have shape \(39,\), but there are 40 series"),
        (np.where(np.arange(40) == 5, np.nan, 1.0), "weight of series number 5 is nan"),
        (np.where(np.arange(40) == 6, -1.0, 1.0), "weight of series number 6 is -1.0"),
        (np.zeros(40), "all series are 0"),
        (np.isin(np.arange(40), toys.HELD_OUT), "all series are 0"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, said):
    with pytest.raises(TrainingError, match=said):
        train(weights=weights)
