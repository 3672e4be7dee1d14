"""Predictors of what estimators train agree with the model offline on every prefix."""

import functools
import json

import numpy as np
import pytest

from logcde.errors import ModelError, StreamError
from logcde.estimators.learners import Blend, DeepSLiCE, LogSLiCE, WindowBoosting, WindowRidge, WindowTrees
from logcde.estimators.learners.abstract import Task
from logcde.estimators.training import Regularisation
from logcde.models.series import EmbeddedModel, FeatureModel, Mixture
from logcde.online import predictor_of
from logcde.online.predictors import predict_together
from logcde.online.reordering import ReorderingPredictor
from logcde.online.series import FeaturePredictor, MixturePredictor
from logcde.online.states import decode, encode
from logcde.streams import Keep, Partition, Streams
from tests.features.series import CHANNELS, random_streams, rows_of

STREAMS = random_streams(0, 24, horizon=8.0)
TARGETS = np.arange(24) % 2
NETWORK = LogSLiCE(steps=3, hidden=4, validation=0.0, folds=2, partition=Partition.every(0.5))
DEEP = DeepSLiCE(steps=3, hidden=4, layers=1, windows=9, members=2, validation=0.0, regularisation=Regularisation(()))
KINDS = ["features", "rows", "network", "mixture", "all"]


@functools.cache
def model_of(kind, classes=2, seed=0):
    task = Task(STREAMS, TARGETS if classes else TARGETS + 50.0, classes, np.ones(24), 1.0, seed)
    learners = {
        "features": WindowRidge(units=30),
        "rows": DEEP,
        "network": NETWORK,
        "mixture": Blend((WindowRidge(units=30), WindowTrees(trees=10), WindowBoosting(rounds=3))),
    }
    if kind != "all":
        return learners[kind].fit(task, held_out=False).model
    models = [model_of(one, classes, seed) for one in ("network", "features", "mixture", "rows")]
    return Mixture(tuple(models), np.array([0.3, 0.2, 0.3, 0.2]), classes is not None)


def prefix(times, rows, end):
    known = times <= end
    return Streams.from_arrays([times[known]], [rows[known]], CHANNELS, horizon=float(end), empty=Keep())


def assert_equal(model, found, expected):
    """To the bit if no network takes part."""
    if isinstance(model, FeatureModel) or (isinstance(model, Mixture) and _features_only(model)):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _features_only(model):
    return all(isinstance(one, FeatureModel) for one in model.models)


def observe_all(predictor, times, rows):
    for time, row in zip(times, rows, strict=True):
        predictor.observe(float(time), row)
    return predictor


def plain(state):
    return json.loads(json.dumps(state, allow_nan=False))


def test_kinds_of_predictors():
    assert isinstance(model_of("mixture"), Mixture)
    assert _features_only(model_of("mixture"))
    assert isinstance(model_of("network"), EmbeddedModel)
    assert isinstance(predictor_of(model_of("features")), FeaturePredictor)
    assert isinstance(predictor_of(model_of("mixture")), MixturePredictor)
    assert isinstance(predictor_of(model_of("mixture"), reorder=1.0), ReorderingPredictor)


@pytest.mark.parametrize("classes", [2, None])
@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "all"])
def test_every_prefix(kind, classes):
    model = model_of(kind, classes)
    times, rows = rows_of(random_streams(5, 2)[1])
    if kind == "all":
        times, rows = times[:8], rows[:8]
    predictor = predictor_of(model)
    assert predictor.last == -np.inf
    for number, (time, row) in enumerate(zip(times, rows, strict=True)):
        predictor.observe(float(time), row)
        assert predictor.last == time
        if time > 0:
            assert_equal(model, predictor.predict(), model(prefix(times, rows, time))[0])
        later = float(times[number + 1]) - 1e-3 if number + 1 < len(times) else time + 2.0
        if later > time:
            assert_equal(model, predictor.predict(at=float(later)), model(prefix(times, rows, later))[0])


def test_members_with_equal_windows_share_their_sums():
    model = model_of("mixture")
    predictor = predictor_of(model)
    assert len(predictor._members) == len(model.models) > 1
    assert len(predictor._observing) == 1
    for other in (predictor.copy(), predictor.begin(), predictor_of(model).restore(plain(predictor.state()))):
        observe_all(other, *rows_of(random_streams(5, 2)[1]))
        assert len({id(one._online) for one in other._members}) == 1
        assert len(other.state()["members"]) == 1
    assert predictor.last == -np.inf


def test_members_with_other_windows_do_not_share():
    task = Task(STREAMS[:12], TARGETS[:12], 2, np.ones(12), 1.0, 0)
    other = WindowRidge(units=10).fit(task, held_out=False).model
    model = Mixture((model_of("features"), other), np.array([0.5, 0.5]), True)
    predictor = predictor_of(model)
    assert len(predictor._observing) == 2
    times, rows = rows_of(random_streams(5, 2)[1])
    observe_all(predictor, times, rows)
    np.testing.assert_array_equal(predictor.predict(at=20.0), model(prefix(times, rows, 20.0))[0])


@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "all"])
def test_late_events_give_the_predictions_of_events_in_order(kind):
    model = model_of(kind)
    times, rows = rows_of(random_streams(5, 4)[1])
    times, rows = times[:12], rows[:12]
    window, rng = 1.0, np.random.default_rng(0)
    late = predictor_of(model, reorder=window)
    arrived = []
    for number in np.argsort(times + rng.uniform(0, window, size=len(times))):
        seen = rows[number].copy()
        # Observations of one stamp may come in two parts.
        for half in ([0], [1, 2]):
            part = np.full(3, np.nan)
            part[half] = seen[half]
            late.observe(float(times[number]), part)
        arrived.append(number)
        known = np.sort(arrived)
        end = float(times[known].max())
        if end > 0:
            in_order = observe_all(predictor_of(model), times[known], rows[known])
            np.testing.assert_array_equal(late.predict(), in_order.predict(end))
    np.testing.assert_array_equal(late.predict(at=20.0), in_order.predict(at=20.0))
    assert_equal(model, late.predict(at=20.0), model(prefix(times, rows, 20.0))[0])


@pytest.mark.parametrize("reorder", [None, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_state_through_json_and_bytes(kind, reorder):
    model = model_of(kind)
    times, rows = rows_of(random_streams(5, 4)[1])
    times, rows = times[:10], rows[:10]
    one = observe_all(predictor_of(model, reorder=reorder), times[:6], rows[:6])
    packed = encode(one.state(arrays=True))
    others = [predictor_of(model, reorder=reorder).restore(state) for state in (plain(one.state()), decode(packed))]
    for predictor in (one, *others):
        observe_all(predictor, times[6:], rows[6:])
    for other in others:
        np.testing.assert_array_equal(one.predict(at=20.0), other.predict(at=20.0))
        assert plain(one.state()) == plain(other.state())


@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "all"])
@pytest.mark.parametrize("reorder", [None, 1.5])
def test_copy_and_begin_are_independent(kind, reorder):
    predictor = predictor_of(model_of(kind), reorder=reorder)
    predictor.observe(0.5, {"a": 1.0})
    before, copy, fresh = plain(predictor.state()), predictor.copy(), predictor.begin()
    for other in (copy, fresh):
        other.observe(0.7, {"b": 3.0})
        other.observe(6.0, {"b": -3.0})
    assert plain(predictor.state()) == before
    assert not np.array_equal(copy.predict(at=9.0), predictor.predict(at=9.0))
    expected = predictor_of(model_of(kind), reorder=reorder)
    for time, value in ((0.7, 3.0), (6.0, -3.0)):
        expected.observe(time, {"b": value})
    np.testing.assert_array_equal(fresh.predict(at=9.0), expected.predict(at=9.0))


def test_restore_refuses_states_of_other_models():
    narrow = Task(random_streams(1, 24, horizon=2.0), TARGETS, 2, np.ones(24), 1.0, 0)
    other = WindowRidge(units=30).fit(narrow, held_out=False).model
    strangers = [
        predictor_of(other).state(),
        predictor_of(model_of("mixture")).state(),
        predictor_of(model_of("network")).state(),
        predictor_of(model_of("features"), reorder=1.0).state(),
        {},
        {"format": 1, "kind": "features"},
    ]
    predictor = predictor_of(model_of("features"))
    predictor.observe(0.5, {"a": 1.0})
    before = plain(predictor.state())
    for state in strangers:
        with pytest.raises(ModelError, match="cannot be restored: it belongs to another model or schema"):
            predictor.restore(state)
        assert plain(predictor.state()) == before
    for kind, reorder in (("mixture", None), ("all", None), ("mixture", 1.0)):
        with pytest.raises(ModelError, match="cannot be restored"):
            predictor_of(model_of(kind), reorder=reorder).restore(before)


def test_damaged_states_are_refused():
    predictor = predictor_of(model_of("features"))
    for damage in (
        {"latest": [1.0, 2.0]},
        {"stamp": []},
        {"windows": [[9, 0, 1, 1, 1, 1, 1]]},
        {"windows": [[0, 1]]},
        {"windows": [[0, 1]] * 7},
    ):
        state = plain(predictor.state())
        state["windows"]["sums"] |= damage
        with pytest.raises(ModelError, match="cannot be restored"):
            predictor.restore(state)


@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "all"])
def test_ends_of_windows(kind):
    model = model_of(kind)
    predictor = predictor_of(model)
    width = predictor.rule.length(model.schema.clock)
    times, rows = np.array([0.3, 2.0]) * width, np.array([[1.0, 2.0, np.nan], [0.5, np.nan, 2.0]])
    predictor.observe(float(times[0]), rows[0])
    found = list(predictor.ends(float(3.5 * width)))
    np.testing.assert_allclose([end for end, _ in found], width * np.array([1.0, 2.0, 3.0]))
    for end, outputs in found:
        assert_equal(model, outputs, model(prefix(times[:1], rows[:1], end))[0])
    assert list(predictor.ends(float(0.5 * width))) == []
    # A window is over when time has passed its end: an event at the end counts as well.
    np.testing.assert_allclose([end for end, _ in predictor.ends(float(2.0 * width))], [width])
    predictor.observe(float(times[1]), rows[1])
    found = list(predictor.ends(float(3.0 * width)))
    np.testing.assert_allclose([end for end, _ in found], [2.0 * width])
    assert_equal(model, found[0][1], model(prefix(times, rows, times[1]))[0])


def test_ends_in_the_far_future_are_refused():
    with pytest.raises(StreamError, match="units of time"):
        list(predictor_of(model_of("features")).ends(1e12))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reorder", [None, 1.0])
@pytest.mark.parametrize(
    ("time", "values"),
    [
        (np.inf, {"a": 1.0}),
        (np.nan, {"a": 1.0}),
        (-1.0, {"a": 1.0}),
        (0.1, {"a": 1.0}),
        (7.0, {"a": np.inf}),
        (7.0, {"pulse": 1.0}),
        (7.0, [1.0, 2.0]),
    ],
)
def test_bad_events_change_nothing(kind, reorder, time, values):
    predictor = predictor_of(model_of(kind), reorder=reorder)
    predictor.observe(0.0, {"a": 1.0})
    predictor.observe(6.0, {"a": 1.0, "b": 2.0})
    before = plain(predictor.state())
    with pytest.raises(StreamError):
        predictor.observe(time, values)
    assert plain(predictor.state()) == before


@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "all"])
@pytest.mark.parametrize("reorder", [None, 1.0])
def test_event_in_the_far_future_is_taken_by_no_member(kind, reorder):
    """A network would take it, but windows cannot."""
    predictor = predictor_of(model_of(kind), reorder=reorder)
    predictor.observe(6.0, {"a": 1.0, "b": 2.0})
    before = plain(predictor.state())
    with pytest.raises(StreamError, match="units of time of the training data"):
        predictor.observe(1e12, {"a": 1.0})
    assert plain(predictor.state()) == before
    predictor.observe(6.5, {"a": 1.0})


def test_intervals_cannot_be_closed():
    for kind in ("features", "mixture"):
        for reorder in (None, 1.0):
            with pytest.raises(ModelError, match="end by the rule"):
                predictor_of(model_of(kind), reorder=reorder).close(1.0)


def test_no_interval_is_final_while_events_may_be_late():
    with pytest.raises(ModelError, match="no interval is final"):
        predictor_of(model_of("features"), reorder=1.0).ends(3.0)


def test_event_that_is_too_late_is_refused():
    predictor = predictor_of(model_of("features"), reorder=1.0)
    for time in (0.0, 3.0, 6.0):
        predictor.observe(time, {"a": time})
    with pytest.raises(StreamError, match="comes too late"):
        predictor.observe(4.0, {"a": 1.0})


def test_stamps_of_a_clock():
    stamps = np.datetime64("2026-01-01T00:00") + np.arange(12) * np.timedelta64(30, "m")
    values = np.random.default_rng(0).normal(size=(20, 12, 1))
    streams = Streams.from_arrays([stamps] * 20, values, ["pulse"], horizon=np.datetime64("2026-01-01T06:00"))
    task = Task(streams, np.arange(20.0), None, np.ones(20), 0.5, 0)
    model = WindowRidge(units=20).fit(task, held_out=False).model
    for reorder in (None, np.timedelta64(1, "h")):
        predictor = predictor_of(model, reorder=reorder)
        for stamp, value in zip(stamps, values[3, :, 0], strict=True):
            predictor.observe(stamp, {"pulse": value})
        expected = model(streams[3])[0]
        np.testing.assert_array_equal(predictor.predict(at=np.datetime64("2026-01-01T06:00")), expected)


@pytest.mark.parametrize("reorder", [None, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_many_series_together_equal_each_alone(kind, reorder):
    model, rng = model_of(kind), np.random.default_rng(0)
    fresh, many = predictor_of(model, reorder=reorder), []
    for number, series in enumerate(random_streams(5, 9)):
        times, rows = rows_of(series)
        events = int(rng.integers(0, 12)) if number else 0  # one has observed nothing
        many.append(observe_all(fresh.begin(), times[:events], rows[:events]))
    for at in ([None] * len(many), [max(one.last, 6.0) + number for number, one in enumerate(many)]):
        copies = [one.copy() for one in many]
        before = [plain(one.state()) for one in many]
        found = predict_together(many, at)
        assert len(found) == len(many)
        for one, stamp, outputs in zip(copies, at, found, strict=True):
            alone = one.predict(stamp)
            assert outputs.shape == alone.shape
            if kind in ("features", "mixture"):
                np.testing.assert_array_equal(outputs, alone)
            else:
                np.testing.assert_allclose(outputs, alone, rtol=1e-5, atol=1e-6)
        assert [plain(one.state()) for one in many] == before
    assert predict_together([], []) == []
