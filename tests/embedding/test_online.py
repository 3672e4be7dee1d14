"""`OnlineEmbedding`, one event at a time, agrees with the host engine."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding, Partition, Schema, Streams
from logcde.errors import EmbeddingError, StreamError
from logcde.kernels import online as kernels
from logcde.streams import SoftBins, Term

OPTIONS = [(counts, time) for counts in (True, False) for time in (True, False)]


def a_stream(seed, channels=3, events=12, terms=False, continuous=False):
    rng = np.random.default_rng(seed)
    times = np.unique(rng.integers(0, 21, events) / 20)
    values = np.where(rng.uniform(size=(len(times), channels)) < 0.5, rng.normal(size=(len(times), channels)), np.nan)
    values[:, 0] = np.where(np.isnan(values).all(axis=1), 1.0, values[:, 0])
    given_terms = {}
    if terms:
        given_terms = {Term("area", ("x2", "x1")): [rng.normal(size=len(times))]}
    streams = Streams.from_arrays([times], [values], horizon=1.0, terms=given_terms)
    if continuous:
        knots = np.array([0.0, 0.33, 0.75, 1.0])
        streams = streams.with_continuous(["c"], knots, rng.normal(size=(4, 1)))
    return streams, times, values


def replay(embedding, streams, values, cuts):
    """Feed a stream event by event, closing at every cut."""
    position = (lambda t: [np.interp(t, streams.knots.times, streams.knots.values[:, 0])]) if streams.knots else None
    here = (lambda t: {"continuous": position(t)}) if position else (lambda t: {})
    online = embedding.online(streams.schema, **here(0.0))
    # At one stamp: knots, then the end of an interval, then the event; at the horizon the event comes first.
    moments = [(t, 2 if t < 1 else 0, k) for k, t in enumerate(streams.times)]
    moments += [(t, 1, None) for t in cuts[1:]]
    moments += [(t, 0, "knot") for t in (streams.knots.times[1:-1] if streams.knots else ())]
    closed = []
    for t, _, what in sorted(moments, key=lambda moment: moment[:2]):
        if what is None:
            closed.append(online.close(t, final=bool(t == 1), **here(t)))
        elif what == "knot":
            online.knot(t, position(t))
        else:
            terms = {"terms": streams.terms[what]} if streams.schema.terms else {}
            online.observe(t, values[what], **terms, **here(t))
    return np.array(closed)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("counts", "time"), OPTIONS)
@pytest.mark.parametrize(("terms", "continuous"), [(False, False), (True, False), (False, True), (True, True)])
def test_online_close_matches_host_engine(depth, counts, time, terms, continuous):
    embedding = Embedding(depth, counts=counts, time=time)
    cuts = np.array([0.0, 0.25, 0.3, 0.8, 1.0])
    for seed in range(4):
        streams, _, values = a_stream(seed, terms=terms, continuous=continuous)
        offline = embedding(streams, Partition.at(cuts)).values[0]
        np.testing.assert_allclose(replay(embedding, streams, values, cuts), offline, rtol=1e-11, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([2, 3]))
def test_online_logsig_does_not_change_state(seed, depth):
    streams, times, values = a_stream(seed)
    reading, quiet = (Embedding(depth).online(streams.schema) for _ in range(2))
    for time, row in zip(times, values, strict=True):
        for online in (reading, quiet):
            online.observe(time, row)
        reading.logsig()
        reading.logsig(at=time + 0.5)
    np.testing.assert_array_equal(reading.state(), quiet.state())


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_online_observe_many_matches_observe(depth):
    streams, times, values = a_stream(5, terms=True)
    block, single = (Embedding(depth).online(streams.schema) for _ in range(2))
    running = block.observe_many(times, values, terms=streams.terms)
    for n, time in enumerate(times):
        single.observe(time, values[n], terms=streams.terms[n])
        np.testing.assert_allclose(running[n], single.logsig(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("time", [True, False])
def test_online_block_reads_the_gap_where_nothing_was_observed(depth, time):
    embedding, schema = Embedding(depth, time=time), Schema(("a", "b"))
    block, single = embedding.online(schema), embedding.online(schema)
    values = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, np.nan]])
    running = block.observe_many([1.0, 2.5, 4.0], values)
    single.observe(1.0, values[0])
    np.testing.assert_array_equal(running[1], single.logsig(at=2.5))
    single.observe(4.0, values[2])
    np.testing.assert_array_equal(running[2], single.logsig())
    np.testing.assert_array_equal(block.state(), single.state())


def test_online_state_and_restore():
    streams, times, values = a_stream(6)
    embedding = Embedding(depth=3)
    first, second = embedding.online(streams.schema), embedding.online(streams.schema)
    for time, row in zip(times[:4], values[:4], strict=True):
        first.observe(time, row)
    second.restore(np.frombuffer(first.state().tobytes()))
    for online in (first, second, first.copy()):
        online.observe(times[4], values[4])
    np.testing.assert_array_equal(first.close(1.0), second.close(1.0))
    with pytest.raises(EmbeddingError, match="another embedding or schema"):
        Embedding(depth=2).online(streams.schema).restore(first.state())


def test_online_values_by_name_or_position():
    schema = Schema(("pulse", "temp"))
    by_name, by_number = (Embedding().online(schema) for _ in range(2))
    by_name.observe(1.0, {"temp": 37.0})
    by_number.observe(1.0, [float("nan"), 37.0])
    np.testing.assert_array_equal(by_name.logsig(), by_number.logsig())


def test_online_ignores_an_event_without_observations():
    online = Embedding().online(Schema(("pulse",)))
    before = online.state()
    online.observe(1.0, [float("nan")])
    np.testing.assert_array_equal(online.state(), before)


def test_online_refused_events_do_not_change_state():
    online = Embedding().online(Schema(("pulse", "temp")))
    online.observe(1.0, [60.0, 37.0])
    before = online.state()
    with pytest.raises(StreamError, match=r"event at 1.0 is not after the previous one \(the last event is at 1.0\)"):
        online.observe(1.0, [61.0, 37.0])
    with pytest.raises(StreamError, match="Channel 'temp' is infinite at 2.0"):
        online.observe(2.0, [61.0, np.inf])
    with pytest.raises(StreamError, match="3 values for 2 channels"):
        online.observe(2.0, np.zeros(3))
    with pytest.raises(StreamError, match="no channel 'puls'. The channels are pulse, temp"):
        online.observe(2.0, {"puls": 60.0})
    with pytest.raises(StreamError, match="Channel 'pulse' is infinite at 3.0"):
        online.observe_many([2.0, 3.0], [[1.0, 1.0], [np.inf, 1.0]])
    with pytest.raises(StreamError, match="event at 2.5 is not after"):
        online.observe_many([2.0, 3.0, 2.5], np.ones((3, 2)))
    with pytest.raises(StreamError, match="not after the previous one"):
        online.observe(float("nan"), [61.0, 37.0])
    np.testing.assert_array_equal(online.state(), before)


def test_online_close_leaves_an_event_at_the_end_to_the_next_interval():
    online = Embedding().online(Schema(("pulse",)))
    online.observe(1.0, [60.0])
    with pytest.raises(StreamError, match=r"already an event at 1.0.*Close first"):
        online.close(1.0)
    assert online.close(1.0, final=True)[0] == 60.0
    with pytest.raises(StreamError, match="cannot end at 1.0"):
        online.close(1.0)
    with pytest.raises(StreamError, match="has already reached 1.0"):
        online.logsig(at=0.5)


@pytest.mark.parametrize("time", [True, False])
@pytest.mark.parametrize("depth", [2, 3])
def test_online_logsig_ahead_with_continuous_channels(depth, time):
    """`logsig(at, continuous)` is what a copy that moves there by a knot gives, and changes nothing."""
    streams, *_ = a_stream(0, continuous=True)
    online = Embedding(depth, time=time).online(streams.schema, continuous=[0.5])
    online.observe(0.1, [1.0, 2.0, 3.0], continuous=[0.75])
    before, copy = online.state(), online.copy()
    copy.knot(0.4, [0.25])
    np.testing.assert_array_equal(online.logsig(at=0.4, continuous=[0.25]), copy.logsig())
    np.testing.assert_array_equal(online.state(), before)


def test_online_errors_carry_place_and_remedy():
    online = Embedding().online(Schema(("pulse", "temp")))
    with pytest.raises(StreamError) as caught:
        online.observe(2.0, [61.0, np.inf])
    assert (caught.value.where.channel, caught.value.where.stamp) == ("temp", 2.0)
    assert caught.value.remedy == "Leave it out: NaN = not observed."


@pytest.fixture
def unchecked():
    """As for users, without the types that are checked in tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


ROWS = {
    "two axes": (np.zeros((1, 2)), r"values of an event have shape \(1, 2\), but there are 2 channels"),
    "nested": ([[1.0, 2.0]], r"shape \(1, 2\)"),
    "a number": (5.0, r"shape \(\), but"),
    "no axis": (np.array(1.0), r"shape \(\), but"),
    "nothing": (None, r"shape \(\), but"),
    "text": ("ab", "'ab', which is not a number"),
    "texts": (["1.0", 2.0], "Channel 'pulse' has the value '1.0', which is not a number"),
    "text by name": ({"temp": "x"}, "Channel 'temp' has the value 'x', which is not a number"),
    "row by name": ({"temp": np.zeros(2)}, r"Channel 'temp' has a value of shape \(2,\)"),
    "complex": ([1j, 2.0], "1j, which is not a number"),
    "ragged": ([[1.0, 2.0], [1.0]], "different lengths"),
    "beyond floats": ({"pulse": 10**400}, "Channel 'pulse' .* more than 100 digits, too large for float64"),
    "beyond exact": ([0.5, 2**60 + 1], "Channel 'temp' has the value 1152921504606846977, too large"),
    "too many": ([1.0, 2.0, 3.0], "3 values for 2 channels"),
}
STAMPS = {
    "text": ("noon", "stamp 'noon' is no kind of time"),
    "nothing": (None, "event at nan is not after"),
    "array": (np.array([0.5]), r"stamp of an event has shape \(1,\)"),
    "beyond floats": (10**400, "more than 100 digits is too large"),
    "beyond exact": (2**60 + 1, "too large for float64 to hold exactly"),
}


@pytest.mark.parametrize("options", [{}, {"depth": 3}, {"roughness": True}], ids=str)
@pytest.mark.parametrize("case", ROWS)
def test_rows_that_are_no_rows_are_refused(case, options, unchecked):
    given, said = ROWS[case]
    online = Embedding(**options).online(Schema(("pulse", "temp")))
    online.observe(1, {"pulse": 60})
    before = online.state()
    for take in (online.observe, online.step):
        with pytest.raises(StreamError, match=said):
            take(2.0, given)
    np.testing.assert_array_equal(online.state(), before)


@pytest.mark.parametrize("case", STAMPS)
def test_stamps_that_are_no_times_are_refused(case, unchecked):
    given, said = STAMPS[case]
    online = Embedding().online(Schema(("pulse", "temp")))
    for take in (online.observe, online.step):
        with pytest.raises(StreamError, match=said):
            take(given, [1.0, 2.0])
    assert online.last == -np.inf


@pytest.mark.parametrize(
    ("times", "values", "said"),
    [
        ([1.0, 2.0], [1.0, 2.0], r"Values of shape \(2,\) do not fit 2 times and 2 channels"),
        (1.0, [[1.0, 2.0]], r"times have shape \(\)"),
        ([[1.0], [2.0]], np.zeros((2, 2)), r"times have shape \(2, 1\)"),
        (["noon"], [[1.0, 2.0]], "'noon' is no kind of time"),
        ([1.0], [["x", 1.0]], "Event 0 has the value 'x', which is not a number"),
        ([1.0, 2.0], [[1.0, 2.0], [1.0]], "different lengths"),
        ([1.0], [[2**60 + 1, 1.0]], "1152921504606846977, too large for float64"),
    ],
)
def test_blocks_that_are_no_blocks_are_refused(times, values, said, unchecked):
    online = Embedding().online(Schema(("pulse", "temp")))
    with pytest.raises(StreamError, match=said):
        online.observe_many(times, values)
    assert online.last == -np.inf


def test_terms_of_another_shape_are_refused():
    online = Embedding().online(Schema(("a", "b"), terms=(Term("area", ("a", "b")),)))
    with pytest.raises(StreamError, match=r"amounts of terms have shape \(2,\). Pass an array of shape \(1,\)"):
        online.observe(1.0, [1.0, 2.0], terms=[0.5, 0.5])
    with pytest.raises(StreamError, match=r"shape \(1,\). Pass an array of shape \(2, 1\)"):
        online.observe_many([1.0, 2.0], np.ones((2, 2)), terms=[0.5])
    online.observe(1.0, [1.0, 2.0], terms=[0.5])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_letters_of_bins_and_counts_do_not_drift(depth):
    """What an event adds does not depend on how much came before: to the bit, after any number of events."""
    bins, events = SoftBins(("a",), ((-1.0, 0.3, 1.0),)), 30_000
    values = np.random.default_rng(0).normal(size=(events, 1))
    times, last = np.arange(events) / 4, events - 40
    embedding = Embedding(depth, soft_bins=bins, roughness=True)
    online = embedding.online(Schema(("a",)))
    online.observe_many(times[:last], values[:last])
    online.close(times[last])
    for event in range(last, events):
        online.observe(times[event], values[event])
    streams = Streams.from_arrays([times], [values], ("a",), times[-1] + 0.25)
    partition = Partition.at([0.0, times[last], times[-1] + 0.25])
    expected = embedding(streams, partition).values[0, 1]
    counted = embedding.basis(streams.schema).width - 2  # letters of bins and counts are exact, others to rounding
    np.testing.assert_array_equal(online.logsig(times[-1] + 0.25)[: counted + 1], expected[: counted + 1])
    np.testing.assert_allclose(online.logsig(times[-1] + 0.25), expected, rtol=1e-13, atol=1e-13)


def test_states_with_totals_of_bins_are_restored():
    """Earlier versions kept the totals of bins and counts beside the last values."""
    embedding = Embedding(1, soft_bins=SoftBins(("a",), ((-1.0, 1.0),)))
    online = embedding.online(Schema(("a",)))
    online.observe(1.0, [0.5])
    state = online.state()
    state[kernels.HEAD + 1 : kernels.HEAD + 4] = (1.0, 0.25, 0.75)
    again = embedding.online(Schema(("a",))).restore(state)
    for one in (online, again):
        one.observe(2.0, [0.0])
    np.testing.assert_array_equal(again.logsig(), online.logsig())
    np.testing.assert_array_equal(again.logsig()[1:4], [2.0, 0.75, 1.25])
