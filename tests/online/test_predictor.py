"""Online predictions: equal to the model offline on the same prefix, for every rule, order and way of serving."""

import dataclasses
import functools
import json
import tracemalloc
from datetime import UTC, datetime, timedelta

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logcde as lc
from logcde.embedding import EmbeddingSpec
from logcde.errors import ModelError, StreamError
from logcde.flows import LinearDynamics
from logcde.online.predictors import predict_together
from logcde.online.serving import CompiledServingModel, LinearServingModel, serving_model
from logcde.online.states import decode, encode
from logcde.streams import DatetimeClock, NumericClock, Schema, Term

KEY = jax.random.key(0)
SCHEMA = Schema(("a", "b"))
EMBEDDING = lc.Embedding(depth=2)
STATIC = [0.5, -1.0]
RULES = {
    "every": lc.Partition.every(0.25),
    "every_events(1)": lc.Partition.every_events(1),
    "every_events(3)": lc.Partition.every_events(3),
    "manual": lc.Partition.uniform(4),
}


def a_model(readout=None, initial=None, embedding=EMBEDDING, schema=SCHEMA, partition=None, **options):
    options = {
        "hidden": 6,
        "block": 2,
        "outputs": 2,
        "dtype": jnp.float64,
        "scan": lc.scans.MatrixFree(),
        "key": KEY,
    } | options
    basis = embedding.basis(schema)
    kind = options.pop("scaling", lc.IncrementRMSScaling)
    scaling = kind(tuple(np.linspace(0.5, 1.0, basis.width).tolist()))
    model = lc.log_slice(
        basis, readout=readout or lc.Terminal(), initial=initial or lc.LearntInitial(), scaling=scaling, **options
    )
    return dataclasses.replace(model, spec=EmbeddingSpec(embedding.coordinates(schema), partition or RULES["every"]))


class Wrapped(LinearDynamics):
    """Linear dynamics in a subclass, which no kernel knows."""


MODELS = {
    "last": lambda: a_model(),
    "start": lambda: a_model(lc.Mean(widths=(3,), initial=True), lc.TimeZeroInitial(), static=2, block=3),
    "each": lambda: a_model(lc.PerInterval(widths=(4,)), flow=lc.flows.Euler(), hidden=3, block=3),
    "diagonal": lambda: a_model(lc.Mean(), flow=lc.flows.Euler(), block=1),
    "totals": lambda: a_model(scaling=lc.scaling.TotalStdScaling, rank=2, groups=[["a", "#a"], ["b"]]),
}


@functools.cache
def fast(name):
    """One of the models, made when it is first used: every process that runs tests imports this file."""
    return MODELS[name]()


def compiled(model):
    """The same model with dynamics that no kernel knows, so that JAX serves it."""
    dynamics = Wrapped(model.dynamics.field, model.dynamics.flow, model.dynamics.scan)
    return dataclasses.replace(model, dynamics=dynamics)


@functools.cache
def slow(name):
    return compiled(fast(name))


@st.composite
def histories(draw):
    """Events, ends of intervals and prediction times of one series, on a grid so that they coincide."""
    times = sorted(draw(st.sets(st.integers(0, 24), min_size=1, max_size=9)))
    numbers = st.sampled_from([-1.0, 0.5, 2.0])
    steps = []
    for time in times:
        seen = draw(st.sampled_from([("a",), ("b",), ("a", "b"), ()]))
        steps.append((time / 16, {name: draw(numbers) for name in seen}, draw(st.booleans())))
    delays = [draw(st.sampled_from([None, 0, 1, 3, 9])) for _ in times]
    return steps, delays


def offline(model, rule, history, ends, time):
    """The model on the events so far, with `time` as the horizon."""
    events = [("s", stamp, values) for stamp, values, _ in history if values and stamp <= time]
    if not events:
        return None
    streams = lc.Streams.from_events(events, horizon=time, schema=SCHEMA)
    manual = lc.Partition.at(np.unique([0.0, *[end for end in ends if end < time], time]))
    logsigs = EMBEDDING(streams, manual if rule is RULES["manual"] else rule)
    static = np.array([STATIC]) if model.initial.weight.shape[1] in (6,) else None
    length = int(logsigs.lengths[0])
    padded = np.pad(logsigs.values, ((0, 0), (0, 24 - length), (0, 0)))  # one shape for all
    logsigs = dataclasses.replace(logsigs, values=padded)
    prediction = lc.predict(model, lc.Inputs.of(logsigs, static, dtype=np.float64))[0]
    return prediction[length - 1] if prediction.ndim == 2 else prediction


def replay(model, rule, steps, delays, compare):
    """Feed a history to a predictor and call `compare` at every prediction time."""
    static = STATIC if model.initial.weight.shape[1] == 6 else None
    predictor = lc.Predictor(model, partition=rule, static=static)
    ends = []
    for n, ((time, values, closes), delay) in enumerate(zip(steps, delays, strict=True)):
        if closes and rule is RULES["manual"] and time > 0:
            predictor.close(time)
            ends.append(time)
        predictor.observe(time, values)
        if delay is not None:
            known = max([0.0, *(stamp for stamp, seen, _ in steps[: n + 1] if seen), *ends])
            compare(predictor, steps[: n + 1], ends, known + delay / 16)
    return predictor


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(list(MODELS)), history=histories())
def test_online_equals_offline_on_the_same_prefix(rule, name, history):
    def compare(predictor, so_far, ends, at):
        expected = None if at == 0 else offline(fast(name), rule, so_far, ends, at)
        if expected is not None:
            np.testing.assert_allclose(predictor.predict(at), expected, rtol=1e-10, atol=1e-12)

    replay(fast(name), rule, *history, compare)


@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(["last", "start"]), rule=st.sampled_from(list(RULES.values())), history=histories())
def test_kernel_equals_the_compiled_model(name, rule, history):
    seen = [[], []]
    for model, found in zip((fast(name), slow(name)), seen, strict=True):
        replay(model, rule, *history, lambda one, _, __, at, found=found: found.append(one.predict(at)))
    np.testing.assert_allclose(np.array(seen[0]), np.array(seen[1]), rtol=1e-10, atol=1e-12)


def test_serving_model_prefers_the_kernel():
    for name in ("start", "totals"):
        assert isinstance(serving_model(fast(name)), LinearServingModel)
    assert isinstance(serving_model(slow("start")), CompiledServingModel)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@settings(max_examples=20, deadline=None)
@given(history=histories())
def test_predict_copy_and_restore_change_nothing(rule, history):
    steps, delays = history
    model = fast("last")

    def move(predictor, _, __, at):
        predictor.predict(at)
        state = json.loads(json.dumps(predictor.state(), allow_nan=False))
        fresh = lc.Predictor(model, partition=rule).restore(state)
        np.testing.assert_array_equal(fresh.predict(at), predictor.predict(at))
        packed = lc.Predictor(model, partition=rule).restore(decode(encode(predictor.state(arrays=True))))
        np.testing.assert_array_equal(packed.predict(at), predictor.predict(at))
        assert packed.state() == predictor.state()
        np.testing.assert_array_equal(predictor.copy().predict(at), predictor.predict(at))

    predicted = replay(model, rule, steps, delays, move)
    quiet = replay(model, rule, steps, [None] * len(delays), move)
    assert predicted.state() == quiet.state()


@pytest.mark.parametrize("serve", [fast, slow])
@pytest.mark.parametrize("count", [1, 5])
def test_predictors_equal_single_predictors(serve, count):
    model = serve("start")
    rng = np.random.default_rng(count)
    many = lc.Predictors(model)
    singles = {}
    for series in range(count):
        many.add(series, STATIC)
        singles[series] = lc.Predictor(model, static=STATIC)
    chosen = rng.integers(0, count, 40)
    times, rows = np.arange(40) / 16, rng.normal(size=(40, 2))
    many.observe_many(chosen.tolist(), times.tolist(), rows)
    for series, time, row in zip(chosen.tolist(), times.tolist(), rows, strict=True):
        singles[series].observe(time, row)
    for at in (None, 2.5, 4.0):
        expected = np.array([one.predict(at) for one in singles.values()])
        np.testing.assert_allclose(many.predict(at), expected, rtol=1e-12)
    np.testing.assert_allclose(many.predict(4.0, series=[0]), singles[0].predict(4.0)[None], rtol=1e-12)
    many.remove(0)
    assert many.ids == tuple(range(1, count))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_series_in_any_state_are_predicted_together_to_the_bit(depth):
    """New, at the start, within an interval, at its end, after its end, and far behind."""
    embedding = lc.Embedding(depth=depth)
    fresh = lc.Predictor(a_model(lc.Mean(), embedding=embedding), partition=RULES["every"])
    times = [[], [0.0], [0.1], [0.1, 0.25], [0.1, 0.3], [0.05, 0.1, 0.25, 2.0]]
    many = []
    for own in times:
        one = fresh.copy()
        for number, time in enumerate(own):
            one.observe(time, [1.0 + number, 2.0 if number % 2 else np.nan])
        many.append(one)
    for at in ([None] * 6, [0.0, 0.0, 0.25, 0.25, 7.0, 2.0], [0.3, 0.25, 0.5, 0.6, 0.3, 2.25]):
        alone = [one.copy().predict(time) for one, time in zip(many, at, strict=True)]
        np.testing.assert_array_equal(predict_together(many, at), alone)
    with pytest.raises(StreamError, match="known up to 2.0 already"):
        predict_together(many, [2.0, 2.0, 2.0, 2.0, 2.0, 1.0])


def test_long_gap_ends_many_empty_intervals():
    model = a_model(lc.Mean())
    predictor = lc.Predictor(model, partition=lc.Partition.every(0.001))
    predictor.observe(0.0005, {"a": 1.0})
    ahead = predictor.predict(at=9.0)
    predictor.observe(9.0, {"b": 1.0})
    streams = lc.Streams.from_events([("s", 0.0005, {"a": 1.0})], ["a", "b"], horizon=9.0)
    inputs = lc.Inputs.of(EMBEDDING(streams, lc.Partition.every(0.001)), dtype=np.float64)
    assert inputs.logsigs.shape[1] == 9000
    np.testing.assert_allclose(ahead, lc.predict(model, inputs)[0], rtol=1e-9)
    assert len(predictor.state()["prefix"]["waiting"]) == 1


def test_reorder_accepts_late_events_and_merges_equal_stamps():
    model = fast("last")
    late, good = lc.Predictor(model, reorder=1.0), lc.Predictor(model)
    for time, values in [(0.5, {"a": 1.0}), (2.0, {"b": 3.0}), (1.25, {"a": 2.0}), (2.0, {"a": 0.0}), (0.99, {})]:
        late.observe(time, values)
    for time, values in [(0.5, {"a": 1.0}), (1.25, {"a": 2.0})]:
        good.observe(time, values)
    np.testing.assert_array_equal(late.predict(1.5), good.predict(1.5))
    good.observe(2.0, {"a": 0.0, "b": 3.0})
    np.testing.assert_array_equal(late.predict(), good.predict(2.0))
    again = lc.Predictor(model, reorder=1.0).restore(json.loads(json.dumps(late.state())))
    late.observe(6.0, {"a": 1.0})
    good.observe(6.0, {"a": 1.0})
    again.observe(6.0, {"a": 1.0})
    np.testing.assert_array_equal(late.predict(), good.predict())
    np.testing.assert_array_equal(again.predict(), good.predict())
    assert late.last == 2.0  # the event at 6 is still held back
    with pytest.raises(StreamError, match="comes too late"):
        late.observe(4.5, {"a": 1.0})
    with pytest.raises(StreamError, match="different values of one channel"):
        late.observe(6.0, {"a": 2.0})


@settings(max_examples=20, deadline=None)
@given(history=histories(), seed=st.integers(0, 100))
def test_reorder_gives_the_same_for_any_order_within_the_window(history, seed):
    steps = [step for step in history[0] if step[1]]
    shuffled = np.random.default_rng(seed).permutation(len(steps))
    for rule in (RULES["every"], RULES["every_events(3)"]):
        late, good = (
            lc.Predictor(fast("last"), partition=rule, reorder=2.0),
            lc.Predictor(fast("last"), partition=rule),
        )
        for n in shuffled:
            late.observe(*steps[n][:2])
        for time, values, _ in steps:
            good.observe(time, values)
        np.testing.assert_array_equal(late.predict(3.0), good.predict(3.0))


def test_reorder_holds_back_ends_of_intervals():
    model = fast("last")
    late, good = (lc.Predictor(model, partition=RULES["manual"], reorder=window) for window in (1.0, None))
    late.observe(0.5, {"a": 1.0})
    late.close(1.0)
    late.observe(0.75, {"b": 1.0})
    good.observe(0.5, {"a": 1.0})
    good.observe(0.75, {"b": 1.0})
    good.close(1.0)
    for predictor in (late, good):
        predictor.observe(3.0, {"a": 4.0})
    np.testing.assert_array_equal(late.predict(), good.predict())


def test_an_event_before_one_at_the_end_of_the_open_interval_is_refused():
    predictor = lc.Predictor(fast("last"))  # with intervals of 0.25
    predictor.observe(0.25, {"a": 1.0})
    for again in (predictor, lc.Predictor(fast("last")).restore(predictor.state())):
        with pytest.raises(StreamError, match="not after"):
            again.observe(0.125, {"a": 2.0})
        again.observe(0.375, {"a": 2.0})


def test_refused_events_change_nothing():
    predictor = lc.Predictor(fast("last"))
    predictor.observe(0.3, {"a": 1.0})
    before = predictor.state()
    for time, values, words in [
        (0.3, {"a": 2.0}, "not after the previous one|not after what is known"),
        (0.2, {"a": 2.0}, "not after"),
        (-1.0, {"a": 2.0}, "event at -1.0 is not after what is known"),
        (float("nan"), {"a": 2.0}, "finite"),
        (2**60 + 1, {"a": 2.0}, "too large for float64 to hold exactly"),
        (np.zeros(2), {"a": 2.0}, r"stamp of an event has shape \(2,\)"),
        (1.3, np.zeros((1, 2)), r"values of an event have shape \(1, 2\), but there are 2 channels"),
        (1.3, np.array(1.0), r"shape \(\), but"),
        (1.3, np.array(["x", 1.0], object), "Channel 'a' has the value 'x', which is not a number"),
        (
            1.3,
            np.array([10**400, 1.0], object),
            "Channel 'a' has a number of more than 100 digits, too large for float64",
        ),
        (1.3, {"c": 2.0}, "There is no channel 'c'"),
        (1.3, [1.0, float("inf")], "finite number"),
        (1.3, [1.0], "one finite number for each"),
    ]:
        with pytest.raises(StreamError, match=words):
            predictor.observe(time, values)
    with pytest.raises(StreamError, match="prediction at 0.1 is not possible: the series is known up to 0.3 already"):
        predictor.predict(at=0.1)
    with pytest.raises(ModelError, match="rule Partition.every"):
        predictor.close(1.0)
    assert predictor.state() == before
    manual = lc.Predictor(fast("last"), partition=RULES["manual"])
    manual.observe(1.0, {"a": 1.0})
    for time in (0.0, 0.5, 1.0):
        with pytest.raises(StreamError, match="cannot end at"):
            manual.close(time)


def test_events_before_the_start_are_refused_at_once_not_when_they_are_released():
    predictor = lc.Predictor(fast("last"), reorder=5.0)
    with pytest.raises(StreamError, match="stamp -1.0 is before the start of the series"):
        predictor.observe(-1.0, {"a": 1.0})
    predictor.observe(9.0, {"a": 1.0})


def test_refused_events_begin_no_series():
    predictors = lc.Predictors(fast("last"))
    with pytest.raises(StreamError, match=r"shape \(1, 2\)"):
        predictors.observe("bed 3", 0.5, np.zeros((1, 2)))
    for series, times, rows, said in [
        (["bed 3"], [0.5, 1.0], [[1.0, 2.0]], "There are 1 ids, 2 times, 1 rows of values."),
        (["bed 3"], np.array(0.5), [[1.0, 2.0]], "There are 1 ids, 0 times, 1 rows of values."),
        (["bed 3"], [0.5], [np.array(1.0)], r"values of an event have shape \(\)"),
    ]:
        with pytest.raises(StreamError, match=said):
            predictors.observe_many(series, times, rows)
    assert predictors.ids == ()
    predictors.observe_many(["bed 3", "bed 7"], [0.5, 1.0], [[1.0, 2.0], {"b": 1.0}])
    assert predictors.ids == ("bed 3", "bed 7")


def test_models_and_states_that_cannot_be_served_are_refused():
    with pytest.raises(ModelError, match="FirstValueInitial reads the first value.*TimeZeroInitial"):
        lc.Predictor(a_model(initial=lc.FirstValueInitial()))
    bare = dataclasses.replace(fast("last"), spec=None)
    with pytest.raises(ModelError, match="does not record how"):
        lc.Predictor(bare)
    with pytest.raises(ModelError, match="Only one of schema and embedding"):
        lc.Predictor(bare, schema=SCHEMA)
    with pytest.raises(ModelError, match="events are embedded in"):
        lc.Predictor(bare, schema=SCHEMA, embedding=lc.Embedding(depth=1))
    with pytest.raises(ModelError, match="window for reordering"):
        lc.Predictor(fast("last"), reorder=-1.0)
    with pytest.raises(ModelError, match="cannot be restored"):
        lc.Predictor(fast("last")).restore(lc.Predictor(fast("diagonal")).state())
    with pytest.raises(ModelError, match="cannot be restored"):
        lc.Predictor(fast("last")).restore(lc.Predictor(fast("last"), partition=RULES["manual"]).state())
    with pytest.raises(ModelError, match="cannot be restored: it has format None"):
        lc.Predictor(fast("last")).restore({})


def test_observe_and_predict_take_datetimes():
    clock = DatetimeClock(timedelta(hours=1), "us", "UTC", np.datetime64("2024-01-01", "us"))
    schema = Schema(("a", "b"), clock)
    model = a_model(schema=schema, partition=lc.Partition.every(timedelta(minutes=15)))
    dated, plain = lc.Predictor(model), lc.Predictor(fast("last"))
    dated.observe(datetime(2024, 1, 1, 0, 30, tzinfo=UTC), {"a": 1.0})
    plain.observe(0.5, {"a": 1.0})
    at = datetime(2024, 1, 1, 1, 3, tzinfo=UTC)
    np.testing.assert_array_equal(dated.predict(at), plain.predict(1.05))


def test_observe_takes_higher_order_terms():
    schema = Schema(("a", "b"), terms=(Term("area", ("a", "b")),))
    model = a_model(schema=schema)
    predictor = lc.Predictor(model)
    predictor.observe(0.5, {"a": 1.0}, terms=[0.3])
    predictor.observe(0.6, {"b": 1.0}, terms=[-0.1])
    streams = lc.Streams.from_arrays(
        [[0.5, 0.6]], [[[1.0, np.nan], [np.nan, 1.0]]], horizon=0.75, channels=("a", "b"),
        terms={schema.terms[0]: [[0.3, -0.1]]},
    )  # fmt: skip
    inputs = lc.Inputs.of(EMBEDDING(streams, RULES["every"]), dtype=np.float64)
    np.testing.assert_allclose(predictor.predict(0.75), lc.predict(model, inputs)[0], rtol=1e-12)


def test_predictions_have_the_dtype_of_the_model():
    model = a_model(dtype=jnp.float32, block=3)
    predictor = lc.Predictor(model)
    predictor.observe(0.3, {"a": 1.0})
    assert predictor.predict().dtype == np.float32
    assert lc.Predictor(compiled(model)).predict(0.5).dtype == np.float32


@pytest.mark.parametrize("rule", ["every", "every_events(3)"])
def test_memory_of_a_predictor_is_constant(rule):
    predictor = lc.Predictor(fast("last"), partition=RULES[rule])
    row, time = np.array([1.0, np.nan]), 0.0

    def feed(count):
        nonlocal time
        for _ in range(count):
            time += 0.05
            predictor.observe(time, row)
        predictor.predict()
        return len(json.dumps(predictor.state()))

    first = feed(200)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    last = feed(1500)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 15_000  # bytes: less than ten for an event
    assert last < 1.2 * first


@pytest.mark.parametrize("reorder", [None, 2.0])
def test_stamps_in_other_units_are_refused_at_once(reorder):
    """Seconds since 1970 with intervals of a second: there would be 1,700,000,000 to end first."""
    model = a_model(partition=lc.Partition.every(1.0))
    predictor = lc.Predictor(model, reorder=reorder)
    predictor.observe(0.5, [1.0, np.nan])
    before = json.dumps(predictor.state())
    asked = [lambda: predictor.predict(at=1.7e9), lambda: predictor.observe(1.7e9, [1.0, 2.0])]
    if reorder is None:
        asked.append(lambda: list(predictor.ends(1.7e9)))
    many = lc.Predictors(model, reorder=reorder)
    many.observe("p", 0.5, [1.0, 2.0])
    for ask in (*asked, lambda: many.predict(at=1.7e9)):
        with pytest.raises(StreamError, match=r"More than 1,000,000 intervals .* before the stamp 1700000000.0"):
            ask()
    assert json.dumps(predictor.state()) == before
    assert np.isfinite(predictor.predict(at=2000.0)).all()
    by_events = lc.Predictor(model, schema=SCHEMA, embedding=EMBEDDING, partition=RULES["every_events(3)"])
    by_events.observe(0.5, [1.0, np.nan])
    assert by_events.predict(at=1.7e9).shape == (2,)


START = np.datetime64("2024-03-01T12:00:00", "us")


@pytest.mark.parametrize(
    ("clock", "stamp"),
    [
        (NumericClock(1.7e9), lambda time: 1.7e9 + time),
        (NumericClock(None), lambda time: 1.7e9 + time),
        (DatetimeClock(origin=START), lambda time: (START + np.timedelta64(round(3600 * time), "s")).item()),
        (DatetimeClock(), lambda time: (START + np.timedelta64(round(3600 * time), "s")).item()),
    ],
    ids=["origin", "first stamp", "datetimes", "first datetime"],
)
@pytest.mark.parametrize("reorder", [None, 1.0])
def test_stamps_count_from_the_origin(clock, stamp, reorder):
    plain = lc.Predictor(a_model(), reorder=reorder)
    far = lc.Predictor(a_model(schema=dataclasses.replace(SCHEMA, clock=clock)), reorder=reorder)
    if clock.per_series:
        with pytest.raises(StreamError, match="this one has none yet. Observe an event first."):
            far.predict(at=stamp(1.0))
        with pytest.raises(StreamError):
            far.observe(stamp(0.0), [np.inf, 1.0])  # a refused event is not the first
    for number, time in enumerate((0.0, 0.125, 0.5, 0.875, 2.0)):
        row = [np.sin(number), np.cos(number)]
        plain.observe(time, row)
        far.observe(stamp(time), row)
        if number == 2:
            far = far.begin().restore(json.loads(json.dumps(far.state())))
    np.testing.assert_array_equal(far.predict(at=stamp(2.5)), plain.predict(at=2.5))
    np.testing.assert_array_equal(far.copy().predict(at=stamp(2.5)), plain.predict(at=2.5))
    np.testing.assert_array_equal(far.predict(), plain.predict())
    with pytest.raises(StreamError):
        far.begin().observe(np.nan, row)
    early = far.begin()
    early.observe(stamp(0.0), row)
    with pytest.raises(StreamError):
        early.observe(stamp(-0.25), row)
    if reorder is None:
        with pytest.raises(StreamError):
            far.predict(at=stamp(1.0))
        ends = [end - (1.7e9 if isinstance(clock, NumericClock) else 0.0) for end, _ in far.ends(stamp(2.75))]
        assert ends == [end for end, _ in plain.ends(2.75)] != []
    assert far.begin().last == -np.inf
