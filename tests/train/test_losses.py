"""Losses and metrics against their formulas in NumPy, with padding and with weights."""

import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.errors import TrainingError
from logcde.train.losses import total_over_series
from tests.train import toys

RNG = np.random.default_rng(0)
LENGTHS = np.array([4, 1, 3, 0, 2])
VALID = np.arange(4) < LENGTHS[:, None]
COUNTED = np.array([True, True, False, True, True])
MASK = VALID & COUNTED[:, None]


def mean(measure, predictions, targets, counted=COUNTED):
    value, weight = total_over_series(
        measure, jnp.asarray(predictions), jnp.asarray(targets), jnp.asarray(LENGTHS), jnp.asarray(counted)
    )
    return float(value / weight)


def test_mse_is_the_objective_of_the_paper():
    predictions, targets = RNG.normal(size=(2, 5, 4, 3))
    expected = np.sum(MASK[..., None] * (predictions - targets) ** 2) / (3 * MASK.sum())
    assert mean(lc.losses.mse, predictions, targets) == pytest.approx(expected, rel=1e-14)


def test_mse_of_whole_series():
    predictions, targets = RNG.normal(size=(2, 5, 3))
    expected = np.mean((predictions - targets)[COUNTED] ** 2)
    assert mean(lc.losses.mse, predictions, targets) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("weights", [None, (1.0, 5.0, 0.5)])
def test_cross_entropy_matches_numpy(weights):
    logits, labels = RNG.normal(size=(5, 4, 3)), RNG.integers(0, 3, (5, 4))
    chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    lost = -np.log(np.take_along_axis(chances, labels[..., None], axis=-1)[..., 0])
    weight = MASK * np.array(weights or (1.0, 1.0, 1.0))[labels]
    loss = lc.losses.CrossEntropy(weights)
    assert mean(loss, logits, labels) == pytest.approx((weight * lost).sum() / weight.sum(), rel=1e-14)
    last = COUNTED * np.array(weights or (1.0, 1.0, 1.0))[labels[:, 0]]
    assert mean(loss, logits[:, 0], labels[:, 0]) == pytest.approx((last * lost[:, 0]).sum() / last.sum(), rel=1e-14)


@pytest.mark.parametrize(("positive", "negative"), [(1.0, 1.0), (7.0, 0.5)])
def test_binary_matches_numpy(positive, negative):
    logits, targets = RNG.normal(size=(5, 4, 2)), RNG.integers(0, 2, (5, 4, 2)).astype(float)
    chance = 1 / (1 + np.exp(-logits))
    lost = -np.where(targets == 1, positive * np.log(chance), negative * np.log(1 - chance))
    weight = np.where(targets == 1, positive, negative)
    expected = lost[MASK].sum() / weight[MASK].sum()
    assert mean(lc.losses.Binary(positive, negative), logits, targets) == pytest.approx(expected, rel=1e-13)


def test_accuracies_match_numpy():
    logits, labels = RNG.normal(size=(5, 4, 3)), RNG.integers(0, 3, (5, 4))
    assert mean(lc.losses.accuracy, logits, labels) == pytest.approx((logits.argmax(-1) == labels)[MASK].mean())
    yes = RNG.integers(0, 2, (5, 4, 3)).astype(float)
    assert mean(lc.losses.binary_accuracy, logits, yes) == pytest.approx(((logits > 0) == yes)[MASK].mean())


def test_measures_refuse_targets_of_the_wrong_form():
    logits = jnp.zeros(3)
    with pytest.raises(TrainingError, match="mse compares a number with each of the 3 outputs"):
        lc.losses.mse(logits, jnp.asarray(1))
    with pytest.raises(TrainingError, match="needs one class label"):
        lc.losses.cross_entropy(logits, logits)
    with pytest.raises(TrainingError, match="weights for 2 classes, but the model predicts 3"):
        lc.losses.CrossEntropy((1.0, 2.0))(logits, jnp.asarray(1))


def test_score_is_the_mean_over_all_series_and_their_intervals():
    model, targets = toys.model(each=True), toys.running()
    predictions = np.asarray(lc.predict(model, lc.Inputs.of(toys.logsigs(), dtype=np.float64)))
    valid = np.arange(8) < toys.lengths()[:, None]
    expected = np.mean((predictions - targets)[valid] ** 2)
    padded = np.where(valid[..., None], targets, np.nan)
    assert lc.score(model, toys.logsigs(), padded, batching=lc.train.Batching(8)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weights", [None, (1.0, 5.0, 0.5)])
def test_smoothed_cross_entropy_matches_numpy(weights):
    logits, labels = RNG.normal(size=(5, 4, 3)), RNG.integers(0, 3, (5, 4))
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    target = 0.8 * np.eye(3)[labels] + 0.2 / 3
    weight = MASK * np.array(weights or (1.0, 1.0, 1.0))[labels]
    expected = -(weight * (target * logs).sum(axis=-1)).sum() / weight.sum()
    loss = lc.losses.CrossEntropy(weights, smoothing=0.2)
    assert mean(loss, logits, labels) == pytest.approx(expected, rel=1e-13)
    assert loss.name == "smoothed cross-entropy"
    assert lc.losses.CrossEntropy(smoothing=0.0) == lc.losses.cross_entropy


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"smoothing": 1.0}, "smoothing=1.0"),
        ({"smoothing": -0.1}, "smoothing=-0.1"),
        ({"weights": (1.0, -1.0)}, "weight -1.0"),
        ({"weights": (1.0, np.nan)}, "weight nan"),
        ({"weights": (0.0, 0.0)}, "No class has a weight"),
    ],
)
def test_cross_entropy_refuses_options_that_make_no_sense(options, said):
    with pytest.raises(TrainingError, match=said):
        lc.losses.CrossEntropy(**options)


@pytest.mark.parametrize("each", [False, True])
def test_score_with_weights_is_that_of_repeated_series(each):
    model, targets, data = toys.model(each=each), toys.running() if each else toys.ends(), toys.logsigs()
    times = RNG.integers(0, 4, toys.COUNT)
    rows = np.repeat(np.arange(toys.COUNT), times)
    expected = lc.score(model, data[rows], targets[rows])
    assert lc.score(model, data, targets, weights=times / 7) == pytest.approx(expected, rel=1e-12)
