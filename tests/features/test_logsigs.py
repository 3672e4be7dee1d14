"""`LogSignatureFeatures`: those of direct embeddings, and of a growing series the same to the bit."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import ChannelScaler, Embedding, Partition, Streams
from logcde.errors import EmbeddingError, StreamError
from logcde.features import OwnBrackets, logsigs
from logcde.features.logsigs import LogSignatureFeatures, Part, Recent, Sliding
from logcde.streams import StandardScaler, Term
from tests.embedding.reference import plain, with_continuous

NAN = np.nan


def random_streams(seed, sizes=(3, 40, 90), horizon=10.0, terms=False):
    rng = np.random.default_rng(seed)
    times = [np.unique(np.round(rng.uniform(0, 10, n), 2)) for n in sizes]
    values = [np.where(rng.uniform(size=(len(t), 2)) < 0.6, rng.normal(size=(len(t), 2)), NAN) for t in times]
    for rows in values:
        rows[np.isnan(rows).all(axis=1), 0] = 1.0
    areas = {Term("area", ("a", "b")): [rng.normal(size=len(t)) for t in times]} if terms else {}
    return Streams.from_arrays(times, values, ("a", "b"), horizon, terms=areas)


def prefix(streams, events, horizon):
    """The first events of the only series."""
    rows = np.full((events, len(streams.schema.channels)), NAN)
    observations = streams.obs_offsets[: events + 1]
    event = np.repeat(np.arange(events), np.diff(observations))
    rows[event, streams.channel[: observations[-1]]] = streams.value[: observations[-1]]
    terms = {term: [streams.terms[:events, k]] for k, term in enumerate(streams.schema.terms)}
    return Streams.from_arrays([streams.times[:events]], [rows], streams.schema.channels, horizon, terms=terms)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("long", [1024, 20])
def test_features_are_log_signatures_of_direct_embeddings(monkeypatch, depth, long):
    monkeypatch.setattr(logsigs, "LONG", long)
    streams = random_streams(0)
    embedding = Embedding(depth, scaler=ChannelScaler.fit(streams), roughness=depth == 2)
    features = LogSignatureFeatures(embedding, scales=(1, 3), sliding=Sliding(4.0, 3.0), recent=(0.5, 20.0))
    fitted = features.fit(streams)
    rows = fitted(streams).reshape(3, -1, fitted.coordinates.basis.dimension)
    assert rows.dtype == np.float32
    parts = np.concatenate([embedding(streams, Partition.uniform(scale)).values for scale in (1, 3)], axis=1)
    np.testing.assert_allclose(rows[:, :4], parts, rtol=1e-5, atol=1e-6)
    bounds = [(6.0, 10.0), (3.0, 7.0), (0.0, 4.0), (9.5, 10.0), (0.0, 10.0)]
    for number, pair in enumerate(bounds, start=4):
        direct = embedding(streams, Partition.at(np.array(pair), partial=True)).values[:, 0]
        np.testing.assert_allclose(rows[:, number], direct, rtol=1e-5, atol=1e-6)
    assert rows.shape[1] == 4 + len(bounds)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([1, 2, 3]), long=st.sampled_from([10, 1024]))
def test_online_equals_offline_for_every_prefix(seed, depth, long):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logsigs, "LONG", long)
        streams = random_streams(seed, sizes=(80 if long == 10 else 30,), terms=seed % 2 == 0)
        embedding = Embedding(depth, counts=seed % 3 > 0, roughness=seed % 5 > 0)
        scaler = None if streams.schema.terms else StandardScaler()
        options = {"sliding": Sliding(3.0), "recent": (0.5, 4.0), "scaler": scaler}
        fitted = LogSignatureFeatures(embedding, **options).fit(streams)
        online, names = fitted.online(), streams.schema.channels
        for event, time in enumerate(streams.times.tolist()):
            seen = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
            values = {names[k]: x for k, x in zip(streams.channel[seen], streams.value[seen].tolist(), strict=True)}
            terms = zip(streams.schema.terms, streams.terms[event].tolist(), strict=True)
            online.observe(time, values, {term.name: amount for term, amount in terms})
            if time > 0:
                at = None if event % 3 else time + 0.7
                now = prefix(streams, event + 1, time if at is None else at)
                np.testing.assert_array_equal(online.features(at), fitted(now)[0])


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("roughness", [False, True])
def test_own_brackets_are_those_of_the_whole_log_signature(depth, roughness):
    """Restricting the channels changes no coordinate of those that are left."""
    streams = three_channels(0)
    embedding, windows = Embedding(depth, roughness=roughness), {"scales": (1, 3), "recent": (4.0,)}
    whole = LogSignatureFeatures(embedding, **windows).fit(streams)
    own = LogSignatureFeatures(embedding, **windows, brackets=OwnBrackets(pairs=[("c", "a")])).fit(streams)
    assert len(set(own.names)) == len(own.names) == own(streams).shape[1]
    expected, places = whole(streams), [whole.names.index(name) for name in own.names]
    np.testing.assert_allclose(own(streams), expected[:, places], rtol=1e-5, atol=1e-6)
    mixed = {name for name in whole.names if "b" in name.split(" in ")[0] and set(name.split(" in ")[0]) & set("ac")}
    assert set(own.names) == set(whole.names) - mixed - triples(whole.names)


def triples(names):
    return {name for name in names if {"a", "b", "c"} <= set(name.split(" in ")[0])}


def three_channels(seed, sizes=(3, 40, 30)):
    rng = np.random.default_rng(seed)
    times = [np.unique(np.round(rng.uniform(0, 10, n), 2)) for n in sizes]
    values = [np.where(rng.uniform(size=(len(t), 3)) < 0.4, rng.normal(size=(len(t), 3)), NAN) for t in times]
    for rows in values:
        rows[np.isnan(rows).all(axis=1), 1] = 1.0
    return Streams.from_arrays(times, values, ("a", "b", "c"), 10.0)


def test_features_with_own_brackets_grow_with_the_number_of_channels():
    def size(channels, **options):
        streams = Streams.from_dense(np.zeros((1, 30, channels)))
        return len(LogSignatureFeatures(scales=(1,), **options).fit(streams).names)

    own = [size(channels, brackets=OwnBrackets()) for channels in (10, 20, 40)]
    assert own == [10 * 5 + 1, 20 * 5 + 1, 40 * 5 + 1]  # a, #a, [a, #a], [a, time], [#a, time]; time
    assert size(40) == 81 * 82 // 2


@pytest.mark.parametrize("long", [10, 1024])
def test_own_brackets_online_equal_offline(monkeypatch, long):
    monkeypatch.setattr(logsigs, "LONG", long)
    streams = three_channels(1, sizes=(60,))
    fitted = LogSignatureFeatures(brackets=OwnBrackets((("a", "b"),)), recent=(3.0,)).fit(streams)
    online, names = fitted.online(), streams.schema.channels
    for event, time in enumerate(streams.times.tolist()):
        seen = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
        online.observe(time, {names[k]: x for k, x in zip(streams.channel[seen], streams.value[seen], strict=True)})
        if time > 0:
            at = None if event % 3 else time + 0.7
            now = prefix(streams, event + 1, time if at is None else at)
            np.testing.assert_array_equal(online.features(at), fitted(now)[0])


@pytest.mark.parametrize(
    ("pairs", "found"),
    [((("a", "a"),), "not a pair"), ((("a", "b"), ("b", "a")), "twice"), ((("a", "B"),), "mean 'b'")],
)
def test_pairs_that_make_no_sense_are_refused(pairs, found):
    with pytest.raises(EmbeddingError, match=found):
        LogSignatureFeatures(brackets=OwnBrackets(pairs)).fit(three_channels(0))


def test_terms_need_all_brackets():
    streams = random_streams(0, terms=True)
    with pytest.raises(EmbeddingError, match="higher-order terms 'area'"):
        LogSignatureFeatures(scaler=None, brackets=OwnBrackets()).fit(streams)


def test_refused_events_reach_no_channel():
    """With several groups of channels, an event is taken by all or by none."""
    streams = three_channels(2)
    online = LogSignatureFeatures(brackets=OwnBrackets(), scaler=None).fit(streams).online()
    online.observe(1.0, {"a": 1.0})
    before = online.features(at=3.0)
    for time, values in ((0.5, {"b": 1.0}), (2.0, {"a": 1.0, "b": np.inf}), (2.0, {"a": 1.0, "z": 1.0}), (2.0, {})):
        with pytest.raises(StreamError):
            online.observe(time, values)
    np.testing.assert_array_equal(online.features(at=3.0), before)
    with pytest.raises(StreamError, match="last event is at 1.0"):
        online.features(at=0.5)


def test_synchronous_streams_online_equal_offline():
    rng = np.random.default_rng(0)
    streams = Streams.from_dense(rng.normal(size=(2, 50, 3)))
    fitted = LogSignatureFeatures().fit(streams)
    online = fitted.online()
    for time, row in enumerate(streams.value[: 50 * 3].reshape(50, 3).tolist()):
        online.observe(float(time), dict(zip(streams.schema.channels, row, strict=True)))
    np.testing.assert_array_equal(online.features(), fitted(streams)[0])


def test_names_and_windows():
    streams = plain()
    fitted = LogSignatureFeatures(Embedding(2, counts=False), (2,), Sliding(2.0, 1.5), (2, 0.25)).fit(streams)
    assert fitted.windows == (
        Part(1, 2), Part(2, 2), Recent(2.0), Recent(3.5, 1.5), Recent(5.0, 3.0), Recent(0.25),
    )  # fmt: skip
    assert fitted.names[:6] == ("a in 1/2", "b in 1/2", "time in 1/2", "[a, b] in 1/2", "[a, time] in 1/2",
                                "[b, time] in 1/2")  # fmt: skip
    assert fitted.names[12:15] == ("a in last 2.0", "b in last 2.0", "time in last 2.0")
    assert fitted.names[-1] == "[b, time] in last 0.25"
    assert "time in last 3.5 to 1.5" in fitted.names
    assert len(set(fitted.names)) == len(fitted.names) == fitted(streams).shape[1]


def test_default_sliding_windows_cover_the_typical_series():
    streams = Streams.from_dense(np.zeros((1, 9, 1)))
    fitted = LogSignatureFeatures(Embedding(1), (), Sliding()).fit(streams)
    assert [window.begin for window in fitted.windows] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_empty_windows_are_their_length_and_windows_before_the_start_zero():
    streams = Streams.from_arrays([[0.5, 0.75], [8.0]], [[[1.0], [2.0]], [[3.0]]], ("a",), horizon=[1.0, 8.0])
    rows = LogSignatureFeatures(Embedding(1), (2,), Sliding(4.0, 4.0), scaler=None).fit(streams)(streams)
    np.testing.assert_array_equal(
        rows,
        [
            [0.0, 0.0, 0.5, 2.0, 2.0, 0.5, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 4.0, 3.0, 1.0, 4.0, 3.0, 1.0, 4.0, 0.0, 0.0, 4.0],
        ],
    )


def test_values_are_scaled_as_in_training():
    streams = random_streams(1)
    scaler = ChannelScaler.fit(streams, StandardScaler())
    fitted, own = (LogSignatureFeatures(Embedding(1, scaler=given)).fit(streams) for given in (None, scaler))
    assert fitted == own
    np.testing.assert_array_equal(fitted(streams[1:2]), fitted(streams)[1:2])
    assert LogSignatureFeatures(scaler=None).fit(streams).coordinates.scaler is None


def test_durations_follow_the_clock():
    start = np.datetime64("2024-01-01T00:00:00")
    stamps = start + np.array([0, 30, 300]) * np.timedelta64(60, "s")
    streams = Streams.from_arrays([stamps], [[[1.0], [2.0], [3.0]]], ("a",))
    fitted = LogSignatureFeatures(Embedding(1), (), recent=(datetime.timedelta(hours=2), 3.0)).fit(streams)
    assert fitted.windows == (Recent(2.0), Recent(3.0))
    online = fitted.online()
    for time, value in ((0.0, 1.0), (0.5, 2.0), (5.0, 3.0)):
        online.observe(time, {"a": value})
    np.testing.assert_array_equal(online.features(), fitted(streams)[0])


@pytest.mark.parametrize("scales", [(0,), (-1, 2), (True,), (2, 2)])
def test_bad_scales_are_refused(scales):
    with pytest.raises(EmbeddingError, match="scales"):
        LogSignatureFeatures(scales=scales)


def test_bad_windows_and_streams_are_refused():
    streams = random_streams(2)
    with pytest.raises(EmbeddingError, match="no windows"):
        LogSignatureFeatures(scales=())
    for bad in ({"recent": (0.0,)}, {"recent": (NAN,)}, {"sliding": Sliding(-1.0)}, {"sliding": Sliding(1.0, 0.0)}):
        with pytest.raises(EmbeddingError, match="length of a window"):
            LogSignatureFeatures(**bad).fit(streams)
    with pytest.raises(StreamError, match="no series"):
        LogSignatureFeatures().fit(streams[:0])
    with pytest.raises(EmbeddingError, match="'dose'"):
        LogSignatureFeatures().fit(with_continuous())
    fitted = LogSignatureFeatures().fit(streams)
    with pytest.raises(StreamError, match="channels 'x1', but these features were fitted to 'a', 'b'"):
        fitted(Streams.from_dense(np.zeros((1, 2, 1))))
    assert fitted(streams[:0]).shape == (0, len(fitted.names))


def test_online_refuses_bad_events_and_times():
    online = LogSignatureFeatures().fit(plain()).online()
    with pytest.raises(StreamError, match="no length yet"):
        online.features()
    online.observe(0.0, {"a": 1.0})
    with pytest.raises(StreamError, match="no length yet"):
        online.features()
    assert online.features(at=0.5).shape == online.features(at=2.0).shape
    online.observe(1.0, {"b": 1.0})  # before what was asked for
    with pytest.raises(StreamError, match="last event is at 1.0"):
        online.features(at=0.5)
    with pytest.raises(StreamError, match="An event at 1.0 cannot be taken after one at 1.0"):
        online.observe(1.0, {"a": 1.0})
    with pytest.raises(StreamError, match="no channel 'c'"):
        online.observe(2.0, {"c": 1.0})
    before = online.features()
    with pytest.raises(StreamError, match="has no observations"):
        online.observe(2.0, {"a": NAN})
    np.testing.assert_array_equal(online.features(), before)
