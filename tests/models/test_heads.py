"""Heads give the predictions of scikit-learn's models, row by row."""

import numpy as np
import pytest
from scipy.special import log_softmax as scipy_log_softmax
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from logcde.errors import ModelError
from logcde.estimators.learners.boosting import booster_head
from logcde.estimators.learners.trees import forest_head
from logcde.models.heads import (
    CalibratedHead,
    LinearHead,
    PairHead,
    ProbabilityHead,
    TreesHead,
    log_softmax,
    mix_logits,
    sharpen,
)
from tests.models.saved import saved_and_loaded

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 6)).astype(np.float32)
NUMBERS = ROWS[:, 0] ** 2 + ROWS[:, 1]
OTHERS = RNG.normal(size=(50, 6)).astype(np.float32)
MISSING = np.where(RNG.uniform(size=ROWS.shape) < 0.3, np.float32(np.nan), ROWS)


def classes(count):
    return np.digitize(NUMBERS, np.quantile(NUMBERS, np.arange(1, count) / count))


@pytest.mark.parametrize("count", [2, 3])
def test_forest_of_classes(count):
    forest = ExtraTreesClassifier(20, random_state=0).fit(ROWS, classes(count))
    np.testing.assert_allclose(forest_head(forest)(OTHERS), forest.predict_proba(OTHERS), atol=1e-12)


def test_forest_of_numbers():
    forest = ExtraTreesRegressor(20, bootstrap=True, random_state=0).fit(ROWS, NUMBERS)
    np.testing.assert_allclose(forest_head(forest)(OTHERS)[:, 0], forest.predict(OTHERS), atol=1e-12)


@pytest.mark.parametrize("rows", [ROWS, MISSING], ids=["complete", "missing"])
@pytest.mark.parametrize("count", [2, 3])
def test_boosted_classes(count, rows):
    booster = HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(rows, classes(count))
    head = booster_head(booster)
    head = PairHead(head) if count == 2 else head
    for new in (OTHERS, MISSING):
        np.testing.assert_allclose(np.exp(log_softmax(head(new))), booster.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize("rows", [ROWS, MISSING], ids=["complete", "missing"])
def test_boosted_numbers(rows):
    booster = HistGradientBoostingRegressor(max_iter=15, random_state=0).fit(rows, NUMBERS)
    for new in (OTHERS, MISSING):
        np.testing.assert_allclose(booster_head(booster)(new)[:, 0], booster.predict(new), atol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_sums_of_the_first_trees(count):
    """Each stage is what a booster of fewer rounds predicts."""
    shorter = [
        HistGradientBoostingClassifier(max_iter=most, random_state=0).fit(ROWS, classes(count)) for most in (1, 4, 9)
    ]
    head = booster_head(shorter[-1])
    found = head.staged(OTHERS, np.array([1, 4, 9]) * len(head.bias))
    assert found.shape == (3, len(OTHERS), len(head.bias))
    for stage, booster in zip(found, shorter, strict=True):
        np.testing.assert_allclose(stage, booster_head(booster)(OTHERS), atol=1e-12)
    np.testing.assert_array_equal(found[-1], head(OTHERS))


def test_values_at_thresholds_go_left_as_in_training():
    """Rows of whole numbers, where features meet thresholds."""
    rows = np.random.default_rng(1).integers(0, 3, size=(200, 4)).astype(np.float32)
    booster = HistGradientBoostingRegressor(max_iter=15, random_state=0).fit(rows, rows[:, 0] * rows[:, 1])
    np.testing.assert_allclose(booster_head(booster)(rows)[:, 0], booster.predict(rows), atol=1e-12)
    halves = rows + np.float32(0.5)
    np.testing.assert_allclose(booster_head(booster)(halves)[:, 0], booster.predict(halves), atol=1e-12)


def small_trees():
    """One tree: feature 1 at most 0.5 gives 1, else 2; NaN goes left."""
    return TreesHead(
        roots=np.array([0], np.int32),
        output=np.array([0], np.int32),
        feature=np.array([1, -1, -1], np.int32),
        threshold=np.array([0.5, 0.0, 0.0]),
        left=np.array([1, 0, 0], np.int32),
        right=np.array([2, 0, 0], np.int32),
        missing_left=np.array([True, False, False]),
        value=np.array([[0.0], [1.0], [2.0]]),
        bias=np.array([10.0]),
    )


def test_one_tree():
    rows = np.array([[9, 0.5], [9, 0.6], [9, np.nan]], np.float32)
    np.testing.assert_array_equal(small_trees()(rows), [[11.0], [12.0], [11.0]])
    assert small_trees().size == 3
    with pytest.raises(ModelError, match="1 features, but a tree reads feature 1"):
        small_trees()(rows[:, :1])


@pytest.mark.parametrize(
    "damage",
    [
        {"left": [0, 0, 0]},  # a node that is its own child: a path without end
        {"right": [3, 0, 0]},
        {"left": [-1, 0, 0]},
        {"roots": [3]},
        {"roots": [-1]},
        {"output": [1]},
        {"output": [-1]},
        {"roots": [0, 0]},
        {"threshold": [0.5]},
        {"feature": [1, -1, -1, -1]},
        {"missing_left": [True]},
        {"value": [[0.0], [1.0]]},
        {"value": [[0.0, 0.0]] * 3},
        {"left": [1]},
    ],
    ids=str,
)
def test_damaged_trees_are_refused(damage):
    trees = small_trees()
    trees.__post_init__()
    for name, value in damage.items():  # as a file is read: fields are set, then checked
        object.__setattr__(trees, name, np.array(value, getattr(trees, name).dtype))
    with pytest.raises(ModelError, match="do not fit each other"):
        trees.__post_init__()


def linear(features=300, outputs=2):
    rng = np.random.default_rng(1)
    spread = rng.uniform(0.5, 2, features)
    return LinearHead(rng.normal(size=features), spread, rng.normal(size=(features, outputs)), rng.normal(size=outputs))


def test_linear_head_by_definition():
    head, rows = linear(), np.random.default_rng(2).normal(size=(40, 300)).astype(np.float32)
    rows[0] = 1e6  # far from training
    scaled = np.clip((rows - head.centre) / head.spread, -8, 8)
    np.testing.assert_allclose(head(rows), scaled @ head.weight + head.bias, atol=1e-10)
    assert head.size == 602


@pytest.mark.parametrize("outputs", [1, 2, 5, 9])
@pytest.mark.parametrize("features", [3, 300])
def test_rows_do_not_depend_on_the_batch(outputs, features):
    rows = np.random.default_rng(2).normal(size=(40, features)).astype(np.float32)
    linear_head = linear(features, outputs)
    booster = HistGradientBoostingRegressor(max_iter=3).fit(rows, rows[:, 0])
    head_of_probabilities = ProbabilityHead(linear_head, np.full(outputs, 1 / outputs), 0.1, 2.0)
    for head in (linear_head, CalibratedHead(linear_head, 3.7), booster_head(booster), head_of_probabilities):
        whole = head(rows)
        for number in range(len(rows)):
            np.testing.assert_array_equal(head(rows[number : number + 1])[0], whole[number])
        np.testing.assert_array_equal(head(rows[7:20]), whole[7:20])
        np.testing.assert_array_equal(head(np.asfortranarray(rows)), whole)


def test_heads_are_saved_and_loaded(tmp_path):
    forest = ExtraTreesClassifier(5, random_state=0).fit(ROWS, classes(3))
    booster = HistGradientBoostingClassifier(max_iter=5).fit(ROWS, classes(2))
    heads = [
        linear(6),
        CalibratedHead(linear(6), 2.5),
        ProbabilityHead(forest_head(forest), np.array([0.2, 0.3, 0.5]), 0.1, 1.5),
        PairHead(booster_head(booster)),
    ]
    for number, head in enumerate(heads):
        loaded = saved_and_loaded(head, tmp_path / str(number))
        assert type(loaded) is type(head)
        assert loaded.size == head.size > 0
        np.testing.assert_array_equal(loaded(OTHERS), head(OTHERS))


def test_sharpened_probabilities():
    probabilities = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    prior = np.array([0.5, 0.25, 0.25])
    logits = sharpen(probabilities, prior, share=0.1, power=2.0)
    expected = (0.9 * probabilities + 0.1 * prior) ** 2
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(log_softmax(logits)), expected)
    assert np.isfinite(sharpen(probabilities, np.array([1.0, 0.0, 0.0]), 0.1, 3.0)).all()


def test_log_softmax_of_large_logits():
    logits = np.array([[1000.0, -1000.0, 999.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(log_softmax(logits), scipy_log_softmax(logits, axis=1))


def test_mixture_of_probabilities():
    rng = np.random.default_rng(0)
    logits, weight = [5 * rng.normal(size=(7, 3)) for _ in range(3)], np.array([0.2, 0.5, 0.3])
    probabilities = sum(w * np.exp(scipy_log_softmax(one, axis=1)) for w, one in zip(weight, logits, strict=True))
    found = np.exp(mix_logits(logits, weight))
    np.testing.assert_allclose(found, probabilities)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    certain = [np.array([[0.0, -1e5]])] * 2
    assert np.isfinite(mix_logits(certain, np.array([0.5, 0.5]))).all()
