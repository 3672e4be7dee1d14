"""Learners: what they predict for series left out is what models without these series predict, and no better."""

import dataclasses

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from logcde.errors import LogcdeError, TrainingError
from logcde.estimators.choosing import brief
from logcde.estimators.learners import Auto, Blend, DeepSLiCE, LogSLiCE, WindowBoosting, WindowRidge, WindowTrees
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.blend import weights_of
from logcde.estimators.learners.boosting import boosted
from logcde.estimators.learners.folds import folds_of
from logcde.estimators.learners.ridge import LIMIT, PENALTIES, fit_ridge
from logcde.estimators.training import Regularisation
from logcde.models import Ensemble
from logcde.models.heads import log_softmax
from logcde.models.series import EmbeddedModel, FeatureModel, Mixture, RowModel, networks_of
from logcde.streams import Streams

RIDGE, TREES, BOOSTING = WindowRidge(units=60), WindowTrees(trees=40), WindowBoosting(rounds=15, rate=0.2, share=1.0)


def task(targets, classes, seed=0, weight=None, streams=None) -> Task:
    count = len(targets)
    if streams is None:
        streams = noise(count, seed)
    return Task(streams, np.asarray(targets), classes, np.ones(count) if weight is None else weight, 1.0, seed)


def noise(count, seed=0) -> Streams:
    return Streams.from_dense(np.random.default_rng(seed).normal(size=(count, 16, 2)), horizon=16.0)


def levels(targets, seed=0) -> Streams:
    """Series whose first channel has a level and a wave that depend on their target."""
    values = np.random.default_rng(seed).normal(size=(len(targets), 16, 2))
    values[..., 0] += np.asarray(targets)[:, None] * (1.5 + 2.5 * np.sin(np.arange(16)))
    return Streams.from_dense(values, horizon=16.0)


def random_classes(count, classes=2, seed=1):
    return np.random.default_rng(seed).integers(classes, size=count)


def refitted(scaled, wanted, weight, penalty):
    """Weighted ridge regression with a bias that is not penalised."""
    design = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
    gram = (design * weight[:, None]).T @ design + penalty * np.diag([*np.ones(scaled.shape[1]), 0.0])
    return np.linalg.solve(gram, (design * weight[:, None]).T @ wanted)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", [7, 60])
@pytest.mark.parametrize("classes", [None, 3])
def test_ridge_without_each_series(features, weighted, classes):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(25, features)).astype(np.float32) * np.logspace(-2, 3, features, dtype=np.float32)
    rows[0, 0], rows[:, 1] = 1e5, 0.1  # an outlier, which is limited; a constant feature
    targets = rng.permutation(np.arange(25) % 3) if classes else rows[:, 2] + 5 + rng.normal(size=25)
    weight = rng.uniform(0.2, 2, size=25) if weighted else np.ones(25)
    one = task(targets, classes, weight=weight)
    head, held_out = fit_ridge(rows, one)
    factor = 1.0 if classes is None else head.factor
    linear = head if classes is None else head.head
    scaled = np.clip((rows - rows.mean(0, np.float64)) / linear.spread, -LIMIT, LIMIT)
    # The penalty is found again from the weights of all series.
    found = [
        penalty
        for penalty in PENALTIES * features
        if np.allclose(refitted(scaled, one.wanted, weight, penalty)[:-1], linear.weight, rtol=1e-4, atol=1e-9)
    ]
    assert len(found) == 1
    full = refitted(scaled, one.wanted, weight, found[0])
    np.testing.assert_allclose(head(rows), factor * (scaled @ full[:-1] + full[-1]), atol=1e-6)
    for series in range(25):
        rest = np.arange(25) != series
        without = refitted(scaled[rest], one.wanted[rest], weight[rest], found[0])
        expected = factor * (scaled[series] @ without[:-1] + without[-1])
        np.testing.assert_allclose(held_out[series], expected, atol=1e-6)


def test_ridge_chooses_the_penalty_by_series_left_out():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 30)).astype(np.float32)
    sharp, vague = (
        fit_ridge(rows, task(rows @ rng.normal(size=30) + size * rng.normal(size=60), None)) for size in (0.01, 30.0)
    )
    assert np.abs(sharp[0].weight).mean() > 0.3
    assert np.abs(vague[0].weight).mean() < 0.2 * 30 / np.sqrt(60)
    assert np.std(vague[1]) < 10.0  # much shrunk


def test_ridge_of_constant_features_predicts_the_mean():
    targets = np.arange(10.0)
    head, held_out = fit_ridge(np.full((10, 4), 0.3, np.float32), task(targets, None))
    np.testing.assert_allclose(head(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)), 4.5)
    np.testing.assert_allclose(held_out[:, 0], (45 - targets) / 9)


@pytest.mark.parametrize("learner", [RIDGE, TREES, BOOSTING], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("classes", [2, 3, None])
def test_noise_is_not_predicted(learner, classes):
    """Held-out outputs know nothing of their own targets."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed + 5)
        targets = rng.normal(size=80) if classes is None else rng.integers(classes, size=80)
        one = task(targets, classes, seed)
        learnt = learner.fit(one, held_out=True)
        constant = one.loss(np.tile(one.constant, (80, 1)))
        gains.append((constant - one.loss(learnt.held_out)) / constant)
        assert one.loss(learnt.model(one.streams)) < one.loss(learnt.held_out)
    assert np.mean(gains) < 0.02


@pytest.mark.parametrize("learner", [RIDGE, TREES, BOOSTING], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("classes", [2, 3, None])
def test_levels_are_learnt(learner, classes):
    train, test = (random_classes(90, classes or 3, seed) for seed in (1, 2))
    learnt = learner.fit(task(train * 1.0 if classes is None else train, classes, streams=levels(train)), held_out=True)
    outputs = learnt.model(levels(test, seed=7))
    assert outputs.shape == (90, classes or 1)
    if classes is None:
        assert np.mean((outputs[:, 0] - test) ** 2) < 0.3 * test.var()
        assert np.mean((learnt.held_out[:, 0] - train) ** 2) < 0.3 * train.var()
    else:
        assert (outputs.argmax(axis=1) == test).mean() > 0.85
        assert (learnt.held_out.argmax(axis=1) == train).mean() > 0.85


@pytest.mark.parametrize("learner", [RIDGE, TREES, BOOSTING], ids=lambda one: type(one).__name__)
def test_sample_weights_change_the_model(learner):
    targets = random_classes(60)
    weight = np.where(targets == 1, 1.9, 0.1)
    plain = learner.fit(task(targets, 2), held_out=True)
    weighted = learner.fit(task(targets, 2, weight=weight), held_out=True)
    shares = [np.exp(log_softmax(one.model(noise(50, 3))))[:, 1].mean() for one in (plain, weighted)]
    assert shares[1] > shares[0] + 0.2


@pytest.mark.parametrize(
    "learner", [RIDGE, TREES, BOOSTING, Blend((RIDGE, TREES, BOOSTING))], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("rare", [[1], [1, 2], [1, 1, 2, 3]])
def test_class_with_one_series(learner, rare):
    targets = np.array([0] * 20 + rare)
    one = task(targets, int(targets.max()) + 1)
    learnt = learner.fit(one, held_out=True)
    assert np.isfinite(learnt.held_out).all()
    assert learnt.model(noise(5, 2)).shape == (5, int(targets.max()) + 1)


def test_two_series_of_two_classes():
    for learner in (RIDGE, TREES, BOOSTING, Auto((RIDGE, TREES, BOOSTING))):
        learnt = learner.fit(task([0, 1], 2), held_out=True)
        assert np.isfinite(learnt.held_out).all()
        assert np.isfinite(learnt.model(noise(5, 2))).all()


@pytest.mark.parametrize(
    "targets", [[0] * 9 + [1] * 3 + [2], [0] * 5 + [1] * 2 + [2] * 2 + [3] * 1, [0, 1, 2], [0, 0, 1]]
)
def test_folds_leave_out_all_series_but_single_ones(targets):
    one = task(targets, max(targets) + 1)
    folds = folds_of(one, 4)
    single = np.bincount(targets)[targets] == 1
    left = np.concatenate([rest for _, rest in folds]) if folds else np.array([], int)
    np.testing.assert_array_equal(np.sort(left), np.flatnonzero(~single))
    for training, rest in folds:
        assert not set(training) & set(rest)
        assert set(np.asarray(targets)[training]) == set(targets)


def test_trees_that_saw_every_series_predict_the_mean():
    """With one tree, series of its sample have no tree that was grown without them."""
    targets = np.arange(20.0) + 100
    held_out = WindowTrees(trees=1).fit(task(targets, None), held_out=True).held_out[:, 0]
    assert (held_out == targets.mean()).any()
    assert (held_out > 90).all()


@pytest.mark.parametrize("classes", [2, 3, None])
def test_boosting_chooses_its_rounds_by_series_left_out(classes):
    learner, one = WindowBoosting(rounds=100, rate=0.1, share=1.0), random_classes(90, classes or 3)
    of_noise = learner.fit(task(one, classes), held_out=True).choices["rounds"].value
    learnt = learner.fit(task(one, classes, streams=levels(one)), held_out=True)
    assert of_noise < learnt.choices["rounds"].value <= 100
    head = learnt.model.head.head if classes is not None else learnt.model.head
    trees = head.head if classes == 2 else head
    assert len(trees.roots) == learnt.choices["rounds"].value * len(trees.bias)


def test_boosting_of_constant_features_predicts_the_mean():
    rows, targets = np.full((30, 4), 0.3, np.float32), np.arange(30.0)
    trees = boosted(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=1), rows, targets)
    np.testing.assert_allclose(trees(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)), 14.5)


def test_trees_read_their_features_in_whole_rows():
    """Constant features before those that vary are left out of boosting, and skipped in prediction."""
    rows = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    rows[:, [0, 2]] = 1.0
    targets = rows[:, 1] - rows[:, 4]
    trees = boosted(HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=2), rows, targets)
    assert set(trees.feature) == {-1, 1, 3, 4}
    assert np.mean((trees(rows)[:, 0] - targets) ** 2) < 0.1 * targets.var()


def test_weights_find_the_better_of_two():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=200)
    for offset in (0.0, 1e4):
        one = task(targets + offset, None, streams=noise(2))
        good, bad = (one.wanted + size * rng.normal(size=(200, 1)) for size in (0.1, 3.0))
        weight = weights_of([bad, good], one)
        np.testing.assert_allclose(weight.sum(), 1.0)
        assert weight[1] > 0.9
    classes = random_classes(200, 3)
    one = task(classes, 3, streams=noise(2))
    good, bad = 2.0 * one.wanted, rng.normal(size=(200, 3))
    weight = weights_of([bad, good], one)
    np.testing.assert_allclose(weight.sum(), 1.0)
    assert weight[1] > 0.9


def test_weights_of_numbers_have_the_least_error():
    rng = np.random.default_rng(1)
    one = task(rng.normal(size=300) + 7, None, weight=rng.uniform(0.1, 1.9, size=300), streams=noise(2))
    outputs = [one.wanted + size * rng.normal(size=(300, 1)) + shift for size, shift in ((1, 0), (1, 0.3), (2, -0.5))]
    found = one.loss(sum(w * out for w, out in zip(weights_of(outputs, one), outputs, strict=True)))
    shares = rng.dirichlet(np.ones(3), size=2000)
    losses = [one.loss(sum(w * out for w, out in zip(share, outputs, strict=True))) for share in shares]
    assert found < min(losses) + 0.003


def test_equal_and_perfect_learners_share():
    one = task(random_classes(40), 2, streams=noise(2))
    outputs = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_allclose(weights_of([outputs, outputs], one), 0.5)
    one = task(np.arange(40.0), None, streams=noise(2))
    np.testing.assert_allclose(weights_of([one.wanted, one.wanted], one), 0.5)
    np.testing.assert_allclose(weights_of([one.wanted], one), 1.0)


@dataclasses.dataclass(frozen=True)
class Fixed(AbstractLearner):
    """A learner that was right about a share of the series left out."""

    right: float

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        sign = np.where(np.random.default_rng(0).uniform(size=(len(task.targets), 1)) < self.right, 1.0, -1.0)
        learnt = WindowRidge(units=2).fit(task, held_out=True)
        return dataclasses.replace(learnt, held_out=3 * sign * (task.wanted - 0.5))


def test_blend_keeps_what_helps():
    one = task(random_classes(100), 2)
    learnt = Blend((Fixed(0.5), Fixed(0.97))).fit(one, held_out=True)
    assert isinstance(learnt.model, FeatureModel)
    assert [choice.value for choice in learnt.choices.values()] == [0.0, 1.0]
    assert list(learnt.choices) == ["Fixed(right=0.5)", "Fixed(right=0.97)"]
    assert "log loss" in learnt.choices["Fixed(right=0.5)"].reason


def test_blend_of_probabilities():
    one = task(random_classes(60), 2)
    learnt = Blend((RIDGE, TREES)).fit(one, held_out=True)
    assert isinstance(learnt.model, Mixture)
    np.testing.assert_allclose(learnt.model.weight.sum(), 1.0)
    parts = [learner.fit(one, held_out=True) for learner in (RIDGE, TREES)]
    for outputs, of in (
        (learnt.model(noise(9)), lambda part: part.model(noise(9))),
        (learnt.held_out, lambda part: part.held_out),
    ):
        expected = sum(w * np.exp(log_softmax(of(part))) for w, part in zip(learnt.model.weight, parts, strict=True))
        np.testing.assert_allclose(np.exp(outputs), expected, atol=1e-9)


@pytest.mark.parametrize("classes", [2, None])
def test_blend_with_a_network(classes):
    targets = random_classes(24)
    streams = levels(targets)
    one = task(targets if classes else 100.0 + targets, classes, streams=streams)
    learner = LogSLiCE(steps=5, hidden=8, validation=0.0, folds=2)
    learnt = Blend((learner, RIDGE)).fit(one, held_out=True)
    assert set(learnt.choices) >= {brief(learner), brief(RIDGE)}
    assert np.isfinite(learnt.held_out).all()
    assert learnt.held_out.shape == (24, classes or 1)
    alone = learner.fit(one, held_out=True)
    assert isinstance(alone.model, EmbeddedModel)
    assert alone.steps == 5
    assert not np.allclose(alone.held_out, alone.model(streams))
    assert learner.fit(one, held_out=False).held_out is None


DEEP = DeepSLiCE(hidden=16, layers=1, steps=80, rate=2e-2, windows=8, folds=2)


@pytest.mark.parametrize("classes", [2, None])
def test_deep_predicts_series_left_out(classes):
    targets = random_classes(60)
    one = task(targets if classes else 100.0 + targets, classes, streams=levels(targets))
    learnt = Blend((DEEP, RIDGE)).fit(one, held_out=True)
    assert set(learnt.choices) >= {brief(DEEP), brief(RIDGE)}
    alone = DEEP.fit(one, held_out=True)
    assert isinstance(alone.model, RowModel)
    assert ("temperature" in alone.choices) == (classes is not None)
    constant = one.loss(np.tile(one.constant, (60, 1)))
    assert one.loss(alone.held_out) < 0.5 * constant
    later = task(one.targets, classes, streams=levels(targets, seed=7))
    assert later.loss(alone.model(later.streams)) < 0.5 * constant


def test_deep_knows_nothing_of_series_left_out():
    """The target of a series changes what is predicted for others, and not for itself."""
    targets = np.random.default_rng(0).normal(size=24)
    learner = dataclasses.replace(DEEP, steps=5)
    one, other = (
        learner.fit(task(part, None, streams=noise(24)), held_out=True).held_out[:, 0]
        for part in (targets, np.append(targets[:-1], 1e3))
    )
    assert one[-1] == other[-1]
    assert (one != other).sum() >= 12


def test_sample_weights_change_deep():
    targets = random_classes(60)
    weighted = DEEP.fit(task(targets, 2, weight=np.where(targets == 1, 1.9, 0.1)), held_out=False)
    plain = DEEP.fit(task(targets, 2), held_out=False)
    shares = [np.exp(log_softmax(one.model(noise(50, 3))))[:, 1].mean() for one in (plain, weighted)]
    assert shares[1] > shares[0] + 0.15


@pytest.mark.parametrize("classes", [2, None])
@pytest.mark.parametrize(
    "learner",
    [
        DeepSLiCE(hidden=4, layers=1, steps=5, windows=8, members=2),
        LogSLiCE(hidden=4, widths=(), steps=5, members=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_members_predict_as_one(learner, classes):
    targets = random_classes(24)
    one = task(targets if classes else 100.0 + targets, classes, streams=levels(targets))
    model = learner.fit(one, held_out=False).model
    assert isinstance(model.sequence, Ensemble)
    each = [dataclasses.replace(model, sequence=member)(one.streams) for member in networks_of(model.sequence)]
    assert not np.allclose(*each)
    if classes:
        expected = np.mean([np.exp(log_softmax(part)) for part in each], axis=0)
        np.testing.assert_allclose(np.exp(log_softmax(model(one.streams))), expected, rtol=1e-4)
    else:
        np.testing.assert_allclose(model(one.streams), np.mean(each, axis=0), rtol=1e-5)


def test_regularisation_changes_training():
    one = task(random_classes(24), 2)
    found = [
        LogSLiCE(hidden=4, widths=(), steps=8, regularisation=part).fit(one, held_out=False).model(one.streams)
        for part in (
            Regularisation((), 0.0, 0.0, 0.0),
            Regularisation((0.5,), 0.0, 0.0, 0.0),
            Regularisation((), 0.5, 0.0, 0.0),
            Regularisation((), 0.0, 20.0, 0.0),
            Regularisation((), 0.0, 0.0, 0.3),
        )
    ]
    for number, part in enumerate(found):
        assert not any(np.allclose(part, other) for other in found[:number])


def test_budget_stops_further_learners():
    one = task(random_classes(30), 2)
    assert list(Auto((RIDGE, TREES), budget=0.0).fit(one, held_out=False).choices) == [brief(RIDGE)]
    assert list(Auto((RIDGE, TREES)).fit(one, held_out=False).choices) == [brief(RIDGE), brief(TREES)]


def test_blend_of_nothing_is_refused():
    with pytest.raises(TrainingError, match="Give at least one"):
        Blend(())


def test_same_seed_same_model():
    one = task(random_classes(40), 2)
    for learner in (RIDGE, TREES, BOOSTING):
        first, second = (learner.fit(one, held_out=True) for _ in range(2))
        np.testing.assert_array_equal(first.model(noise(5)), second.model(noise(5)))
        np.testing.assert_array_equal(first.held_out, second.held_out)
        other = learner.fit(dataclasses.replace(one, seed=1), held_out=True)
        assert not np.array_equal(other.held_out, first.held_out)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: WindowRidge(units=-1), r"WindowRidge\(units=-1\) is not possible. Give a whole number of at least 0"),
        (lambda: WindowRidge(biases=-1), r"WindowRidge\(biases=-1\)"),
        (lambda: WindowTrees(trees=0), r"WindowTrees\(trees=0\)"),
        (lambda: WindowBoosting(rounds=0), r"WindowBoosting\(rounds=0\)"),
        (lambda: WindowBoosting(rate=0.0), r"WindowBoosting\(rate=0.0\) is not possible. Give a positive"),
        (lambda: WindowBoosting(leaves=1), r"WindowBoosting\(leaves=1\).* at least 2"),
        (lambda: WindowBoosting(folds=1), r"WindowBoosting\(folds=1\).* at least 2"),
        (lambda: Auto(budget=-1.0), r"Auto\(budget=-1.0\)"),
        (lambda: Auto(learners=()), "nothing to compare"),
        (lambda: LogSLiCE(steps=0), r"LogSLiCE\(steps=0\)"),
        (lambda: LogSLiCE(validation=1.0), r"validation=1.0"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(make, found):
    with pytest.raises(LogcdeError, match=found):
        make()
