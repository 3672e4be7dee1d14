"""`OnlineEmbedding`, one event at a time, agrees with the host engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding, Partition, Schema, Streams
from logcde.errors import EmbeddingError, StreamError
from logcde.streams import Term

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
