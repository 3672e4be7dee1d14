"""Continuous channels online: predictions equal those offline on what is known so far, wherever knots and ends lie."""

import dataclasses
import functools
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import logcde as lc
from logcde.errors import ModelError, StreamError
from logcde.models.series import EmbeddedModel, Mixture
from logcde.online import predictor_of
from logcde.online.known_path import KnownPath
from logcde.online.states import decode, encode
from logcde.streams import NumericClock, Schema, Term
from tests.online.test_predictor import RULES, a_model, compiled

NAMES = ("dose", "load")
SCHEMA = Schema(("a", "b"), continuous=NAMES)
EMBEDDINGS = {
    "plain": lc.Embedding(depth=2),
    "deep": lc.Embedding(depth=3, counts=False),
    "rough": lc.Embedding(depth=2, roughness=True),
    "timeless": lc.Embedding(depth=2, time=False),
    "flat": lc.Embedding(depth=1),
}


@functools.cache
def model_of(name, rule="every"):
    return a_model(lc.Mean(), embedding=EMBEDDINGS[name], schema=SCHEMA, partition=RULES[rule])


@st.composite
def histories(draw):
    """Knots, events, ends of intervals and prediction times on a grid, so that they coincide."""
    grid, numbers = st.integers(0, 24), st.sampled_from([-1.0, 0.0, 0.5, 2.0])
    knots = sorted(draw(st.sets(grid, min_size=1, max_size=6)) | {0, 40})
    path = [(time / 16, [draw(numbers), draw(numbers)]) for time in knots]
    events = []
    for time in sorted(draw(st.sets(grid, min_size=1, max_size=6))):
        seen = draw(st.sampled_from([("a",), ("b",), ("a", "b")]))
        events.append((time / 16, {name: draw(numbers) for name in seen}, draw(st.booleans())))
    delays = [draw(st.sampled_from([None, 0, 1, 5])) for _ in events]
    return path, events, delays


def offline(name, rule, path, events, ends, at):
    """The model on the events so far, with `at` as the horizon."""
    model, rule = model_of(name, rule), RULES[rule]
    known = [("s", time, values) for time, values, _ in events if time <= at]
    streams = lc.Streams.from_events(known, ["a", "b"], horizon=at)
    streams = streams.with_continuous(NAMES, [time for time, _ in path], [values for _, values in path])
    manual = lc.Partition.at(np.unique([0.0, *[end for end in ends if end < at], at]))
    logsigs = EMBEDDINGS[name](streams, manual if rule is RULES["manual"] else rule)
    rest = 40 - int(logsigs.lengths[0])
    padded = dataclasses.replace(logsigs, values=np.pad(logsigs.values, ((0, 0), (0, rest), (0, 0))))  # one shape
    return lc.predict(model, lc.Inputs.of(padded, dtype=np.float64))[0]


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


STRADDLING = (
    [(0.0, [1.0, 0.0]), (0.3, [2.0, -1.0]), (0.6, [0.0, 0.5]), (2.5, [4.0, 4.0])],
    [(0.125, {"a": 1.0}, False), (1.4375, {"b": 2.0}, True)],
    [0, 5],
)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(list(EMBEDDINGS)), history=histories(), ahead=st.booleans())
@example("plain", STRADDLING, True)
@example("deep", STRADDLING, False)
def test_online_equals_offline_on_the_same_prefix(rule, name, history, ahead):
    """Knots come all at once, or each just before what needs it; copies and restored states go on alike."""
    path, events, delays = history
    model, ends, left = model_of(name, rule), [], list(path)
    predictor = lc.Predictor(model)

    def know(time):
        while left and (ahead or predictor._prefix.path.until < time):
            predictor.knot(*left.pop(0))

    know(0.0)
    for number, ((time, values, closes), delay) in enumerate(zip(events, delays, strict=True)):
        know(time)
        if closes and rule == "manual" and time > 0:
            predictor.close(time)
            ends.append(time)
        predictor.observe(time, values)
        at = time + (delay or 0) / 16
        if delay is None or at == 0:
            continue
        know(at)
        expected = offline(name, rule, path, events[: number + 1], ends, at)
        before = json.dumps(predictor.state(), allow_nan=False)
        assert_close(predictor.predict(at), expected)
        np.testing.assert_array_equal(predictor.predict_each([predictor] * 2, [at, at])[1], predictor.predict(at))
        for state in (json.loads(before), decode(encode(predictor.state(arrays=True)))):
            np.testing.assert_array_equal(lc.Predictor(model).restore(state).predict(at), predictor.predict(at))
        assert json.dumps(predictor.state(), allow_nan=False) == before
        predictor = predictor.copy()


def test_values_come_with_events():
    """As `OnlineEmbedding` takes them: a knot at each event."""
    model, rng = model_of("plain"), np.random.default_rng(0)
    many, path, events = lc.Predictors(model), [(0.0, [0.0, 1.0])], []
    many.knot("s", 0.0, {"load": 1.0, "dose": 0.0})
    for time in np.cumsum(rng.uniform(0.01, 0.7, 20)).tolist():
        path.append((time, rng.normal(size=2).tolist()))
        events.append((time, {"a": rng.normal()}, False))
    half = len(events) // 2
    for (time, values, _), (_, heights) in zip(events[:half], path[1:], strict=False):
        many.observe("s", time, values, continuous=dict(zip(NAMES, heights, strict=True)))
    rows = [[values["a"], np.nan] for _, values, _ in events[half:]]
    times = [time for time, _, _ in events[half:]]
    many.observe_many(["s"] * half, times, rows, continuous=[heights for _, heights in path[1 + half :]])
    assert_close(many.predict()[0], offline("plain", "every", path, events, [], times[-1]))
    with pytest.raises(StreamError, match="10 rows of values, 1 rows of continuous values"):
        many.observe_many(["s"] * half, times, rows, continuous=[[0.0, 0.0]])
    assert len(many["s"].state()["prefix"]["path"][0]) == 1  # passed pieces are forgotten


def test_ends_of_intervals_between_knots():
    model = model_of("plain")
    path = [(0.0, [1.0, 0.0]), (0.3, [2.0, -1.0]), (7.0, [3.0, 0.0]), (9.0, [3.0, 1.0])]
    predictor = lc.Predictor(model)
    for knot in path:
        predictor.knot(*knot)
    predictor.observe(0.25, {"a": 1.0})
    found = list(predictor.ends(8.6))
    assert [end for end, _ in found] == (np.arange(1, 35) / 4).tolist()
    for end, outputs in found:
        assert_close(outputs, offline("plain", "every", path, [(0.25, {"a": 1.0}, False)], [], end))
    with pytest.raises(StreamError, match=r"known up to 9.0 only, but must be known up to 9.5"):
        list(predictor.ends(9.5))


def test_other_ways_of_serving_agree():
    model = model_of("plain")
    kernel, mapped = lc.Predictors(model), lc.Predictors(compiled(model))
    for predictors in (kernel, mapped):
        for number, series in enumerate("xyz"):
            predictors.knot(series, 0.0, [float(number), 1.0])
            predictors.knot(series, 2.0, [1.0, float(number)])
            predictors.observe(series, 0.3 * number, {"b": 2.0})
    np.testing.assert_allclose(kernel.predict(1.9), mapped.predict(1.9), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_late_events_and_knots(seed):
    """In any order within the window, as long as no knot cuts a piece that an event has entered."""
    model, rng = model_of("plain"), np.random.default_rng(seed)
    times = (np.arange(1, 9) + rng.uniform(0, 0.9, 8)).tolist()
    steps = [(time, {"a": rng.normal()}, rng.normal(size=2)) for time in times]
    late, good = lc.Predictor(model, reorder=4.0), lc.Predictor(model)
    for predictor in (late, good):
        predictor.knot(0.0, [0.5, 1.0])
    for time, values, heights in steps:
        good.observe(time, values, continuous=heights)
    for number in np.argsort(np.arange(8) + rng.uniform(0, 3, 8)).tolist():
        time, values, heights = steps[number]
        late.observe(time, values, continuous=heights)
        late = lc.Predictor(model, reorder=4.0).restore(json.loads(json.dumps(late.state())))
    np.testing.assert_array_equal(late.predict(), good.predict())
    with pytest.raises(StreamError, match="knot at 2.5 comes too late"):
        late.observe(2.5, {"a": 1.0}, continuous=[0.0, 0.0])


def test_what_is_not_known_or_known_otherwise_is_refused():
    predictor = lc.Predictor(model_of("plain"))
    assert predictor.predict().shape == (2,)  # at the start
    with pytest.raises(StreamError, match="'dose', 'load' are not known yet, but must be known up to 0.5"):
        predictor.observe(0.5, {"a": 1.0})
    with pytest.raises(StreamError, match="first knot .* is at 0.5. Begin with their values at the start"):
        predictor.observe(0.5, {"a": 1.0}, continuous=[0.0, 0.0])
    predictor.knot(0.0, [1.0, 2.0])
    predictor.knot(2.0, {"dose": 1.0, "load": 2.0})
    predictor.observe(1.5, {"a": 1.0})
    before = predictor.state()
    for call, words in [
        (lambda: predictor.predict(3.0), "known up to 2.0 only, but must be known up to 3.0"),
        (lambda: predictor.observe(2.5, {"a": 1.0}), "known up to 2.0 only"),
        (lambda: predictor.observe(1.5, {"a": 1.0}, continuous=[1.0, 2.0]), "knot at 1.5 comes too late"),
        (lambda: predictor.observe(2.5, {"a": np.inf}, continuous=[0.0, 0.0]), "finite"),
        (lambda: predictor.observe(1.0, {"a": 1.0}), "not after"),
        (lambda: predictor.knot(1.75, [1.0, 1.0]), "knot at 1.75 comes too late: the series is at 1.5"),
        (lambda: predictor.knot(2.0, [1.0, 1.0]), r"have the values \[1.0, 2.0\] at 2.0 already"),
        (lambda: predictor.knot(-1.0, [1.0, 1.0]), "knot at -1.0 comes too late"),
        (lambda: predictor.knot(np.nan, [1.0, 1.0]), "finite"),
        (lambda: predictor.knot(1e9, [1.0, 1.0]), "More than 1,000,000 intervals"),
        (lambda: predictor.knot(3.0, [1.0]), "one finite number for each"),
        (lambda: predictor.knot(3.0, [1.0, np.nan]), "one finite number for each"),
        (lambda: predictor.knot(3.0, {"dose": 1.0}), "one finite number for each"),
        (lambda: predictor.knot(3.0, {"speed": 1.0}), "There is no channel 'speed'"),
    ]:
        with pytest.raises(StreamError, match=words):
            call()
    assert predictor.state() == before
    predictor.knot(2.0, [1.0, 2.0])  # the same once more
    with pytest.raises(StreamError, match="no continuous channels besides time"):
        lc.Predictor(a_model()).knot(0.0, [1.0])
    manual = lc.Predictor(model_of("plain", "manual"))
    manual.knot(0.0, [1.0, 2.0])
    with pytest.raises(StreamError, match="known up to 0.0 only"):
        manual.close(1.0)
    with pytest.raises(ModelError, match="cannot be restored"):
        lc.Predictor(a_model()).restore(before)
    network = EmbeddedModel(model_of("plain"), EMBEDDINGS["plain"], RULES["every"])
    with pytest.raises(ModelError, match="A Mixture cannot follow the continuous channels 'dose', 'load'"):
        predictor_of(Mixture((network, network), np.array([0.5, 0.5]), False))


def test_the_first_knot_may_be_the_origin():
    schema = Schema(("a", "b"), NumericClock(None), continuous=NAMES)
    plain = lc.Predictor(model_of("plain"))
    far = lc.Predictor(a_model(lc.Mean(), embedding=EMBEDDINGS["plain"], schema=schema))
    for predictor, start in ((plain, 0.0), (far, 1.7e9)):
        predictor.knot(start, [1.0, 2.0])
        predictor.observe(start + 0.5, {"a": 1.0}, continuous=[0.0, 1.0])
        predictor.knot(start + 2.0, [3.0, 1.0])
    np.testing.assert_array_equal(far.predict(1.7e9 + 1.75), plain.predict(1.75))


def test_terms_of_many_series():
    schema = Schema(("a", "b"), terms=(Term("area", ("a", "b")),))
    model = a_model(schema=schema)
    many, rng = lc.Predictors(model), np.random.default_rng(0)
    times, rows, terms = np.arange(1, 7) / 8, rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    ids = ["x", "y"] * 3
    many.observe_many(ids[:4], times[:4], rows[:4], terms[:4])
    for number in (4, 5):
        many.observe(ids[number], float(times[number]), rows[number], terms=terms[number])
    streams = lc.Streams.from_arrays(
        [times[::2], times[1::2]], [rows[::2], rows[1::2]], ["a", "b"], horizon=1.0,
        terms={schema.terms[0]: [terms[::2, 0], terms[1::2, 0]]},
    )  # fmt: skip
    logsigs = lc.Embedding(depth=2)(streams, RULES["every"])
    expected = lc.predict(model, lc.Inputs.of(logsigs, dtype=np.float64))
    np.testing.assert_allclose(many.predict(1.0), expected, rtol=1e-12)
    with pytest.raises(StreamError, match="There are 2 ids, 2 times, 2 rows of values, 1 rows of terms."):
        many.observe_many(["x", "y"], [2.0, 2.0], rows[:2], terms[:1])


def test_pieces_that_are_passed_are_forgotten():
    path = KnownPath(("load",))
    for time in range(6):
        path.add(float(time), np.array([float(time) ** 2]))
    path.forget(2.5)
    assert path.state(arrays=False) == [[2.0, 3.0, 4.0, 5.0], [[4.0], [9.0], [16.0], [25.0]]]
    np.testing.assert_array_equal(path.along(np.array([2.5, 4.0])), [[6.5], [16.0]])
    with pytest.raises(StreamError, match="knot at 1.5 comes too late"):
        path.add(1.5, np.zeros(1), passed=2.5)
