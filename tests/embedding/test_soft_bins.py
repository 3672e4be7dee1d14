"""Soft bins: every engine splits an observation between its two nearest knots, and no data are lost."""

import dataclasses
import itertools

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

import logcde as lc
from logcde import ChannelScaler, Embedding, Partition, Schema, SoftBins, Streams
from logcde.embedding.hat_basis import HatBasis
from logcde.errors import EmbeddingError, StreamError
from logcde.paths.realisation import log_signature
from logcde.scaling import ChannelScale
from logcde.testing.examples import example_inputs
from logcde.testing.laws import predictor_equals_batch
from tests.embedding.reference import NAN, RAGGED, plain, reference, with_continuous, with_terms
from tests.embedding.strategies import partitions, streams
from tests.embedding.test_host import assert_close, flat
from tests.embedding.test_index import one_by_one, some_queries, some_streams
from tests.embedding.test_online import a_stream, replay

BINS = SoftBins(("a", "b"), ((-0.5, 0.7, 2.0, 2.5), (0.5,)))
SCALER = ChannelScaler(
    ("a", "b"), (ChannelScale(centre=0.3, spread=0.7, low=-0.8, high=2.0), ChannelScale(spread=3.0, bend=1.0))
)


def expected(streams, partition, embedding):
    """The slow reference on streams in which the running total of each bin is the value of a further channel."""
    coordinates = embedding.coordinates(streams.schema)
    names = [letter.replace("#", "bin ") for letter in coordinates.letters[: coordinates.discrete]]
    schema = dataclasses.replace(streams.schema, channels=tuple(names))
    wide = with_bin_channels(coordinates.scaled(streams), embedding, schema)
    letters = dataclasses.replace(coordinates, schema=schema, counts=False, scaler=None, soft_bins=None)
    return np.stack(list(reference(wide, partition, letters)))


def with_bin_channels(scaled, embedding, schema):
    """Observation by observation, in plain Python."""
    soft_bins, scaler = embedding.soft_bins, embedding.scaler
    knots = [
        [knot if scaler is None else scaler.one(name, knot) for knot in some]
        for name, some in zip(soft_bins.channels, soft_bins.knots, strict=True)
    ]
    first = np.cumsum([len(knots), *(len(some) + 1 if len(some) > 1 else 1 for some in knots)])
    offsets, channel, value = [0], [], []
    for series in scaled:
        counted = np.zeros(first[-1])
        for event in range(len(series.times)):
            row = {}
            for obs in range(series.obs_offsets[event], series.obs_offsets[event + 1]):
                c, x = int(series.channel[obs]), series.value[obs]
                row[c] = x
                for place, share in enumerate([1.0, *shares(x, knots[c])] if len(knots[c]) > 1 else [1.0]):
                    counted[first[c] + place] += share
                    row[int(first[c]) + place] = counted[first[c] + place]
            channel += sorted(row)
            value += [row[c] for c in sorted(row)]
            offsets.append(len(channel))
    return dataclasses.replace(
        scaled,
        schema=schema,
        obs_offsets=np.array(offsets),
        channel=np.array(channel, np.int32),
        value=np.array(value, np.float64),
    )


def shares(x, knots):
    """The share of each bin, written out."""
    got = [0.0] * len(knots)
    below = [n for n, knot in enumerate(knots) if knot <= x]
    if not below:
        got[max(n for n, knot in enumerate(knots) if knot == knots[0])] = 1.0
    elif below[-1] == len(knots) - 1:
        got[-1] = 1.0
    else:
        low = below[-1]
        high = max(n for n, knot in enumerate(knots) if knot == knots[low + 1])
        got[high] = (x - knots[low]) / (knots[high] - knots[low])
        got[low] = 1 - got[high]
    return got


CASES = {
    "depth 1": (plain, 1, {}),
    "depth 2": (plain, 2, {}),
    "depth 3": (plain, 3, {}),
    "scaler, depth 1": (plain, 1, {"scaler": SCALER}),
    "scaler, depth 3": (plain, 3, {"scaler": SCALER}),
    "no time": (plain, 2, {"time": False}),
    "continuous, depth 2": (with_continuous, 2, {"scaler": SCALER}),
    "continuous, depth 3": (with_continuous, 3, {"time": False}),
    "terms": (with_terms, 3, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_soft_bins_all_engines_match_dense_reference(case):
    make, depth, options = CASES[case]
    streams, embedding = make(), Embedding(depth, soft_bins=BINS, **options)
    found = embedding(streams, RAGGED)
    assert_close(flat(found), expected(streams, RAGGED, embedding))
    np.testing.assert_allclose(embedding.on_device(streams, RAGGED).values, found.values, atol=1e-11)
    assert found.basis.letters[2:8] == ("#a", "#a~-0.5", "#a~0.7", "#a~2", "#a~2.5", "#b")


def synchronous():
    values = np.random.default_rng(3).normal(size=(4, 9, 2))
    return Streams.from_dense(values, channels=("a", "b"))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_soft_bins_of_synchronous_streams(depth):
    streams, embedding, partition = synchronous(), Embedding(depth, soft_bins=BINS), Partition.every_events(4)
    assert streams.synchronous
    found = embedding(streams, partition)
    assert_close(flat(found), expected(streams, partition, embedding))
    np.testing.assert_allclose(embedding.on_device(streams, partition).values, found.values, atol=1e-11)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("make", [plain, with_continuous, with_terms, synchronous])
def test_soft_bins_with_one_knot_are_the_plain_count(make, depth):
    streams, one = make(), SoftBins(("a", "b"), ((0.5,), (7.0,)))
    levelled, counted = (
        Embedding(depth, soft_bins=soft_bins)(streams, Partition.uniform(3)) for soft_bins in (one, None)
    )
    assert levelled.basis == counted.basis
    assert_close(levelled.values, counted.values)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("terms", "continuous"), [(False, False), (True, True)])
def test_soft_bins_online_matches_host_engine(depth, terms, continuous):
    cuts = np.array([0.0, 0.25, 0.3, 0.8, 1.0])
    for seed in range(3):
        streams, _, values = a_stream(seed, terms=terms, continuous=continuous)
        scaler = None if terms else ChannelScaler.fit(streams)
        embedding = Embedding(depth, soft_bins=SoftBins.fit(streams, (0.2, 0.5, 0.8)), scaler=scaler)
        offline = embedding(streams, Partition.at(cuts)).values[0]
        np.testing.assert_allclose(replay(embedding, streams, values, cuts), offline, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2])
def test_soft_bins_online_blocks_and_steps(depth):
    streams, times, values = a_stream(5)
    values[3] = NAN  # no event
    embedding = Embedding(depth, soft_bins=SoftBins.fit(streams, (0.2, 0.5, 0.8)), scaler=ChannelScaler.fit(streams))
    block, single = (embedding.online(streams.schema) for _ in range(2))
    for some in (slice(0, 4), slice(4, None)):
        running = block.observe_many(times[some], values[some])
        for row, time, after in zip(values[some], times[some], running, strict=True):
            if not np.isnan(row).all():
                np.testing.assert_allclose(single.step(time, row), after, atol=1e-12)
    np.testing.assert_allclose(block.state(), single.state(), atol=1e-12)
    again = embedding.online(streams.schema).restore(single.state())
    assert again.close(2.0)[-1 if depth == 1 else again.coordinates.basis.width - 1] == 2.0
    np.testing.assert_array_equal(again.copy().state(), again.state())


def test_soft_bins_online_refused_events_do_not_change_state():
    online = Embedding(soft_bins=BINS).online(Schema(("a", "b")))
    online.observe(1.0, {"a": 1.0})
    before = online.state()
    with pytest.raises(StreamError, match="8 values for 2 channels"):
        online.observe(2.0, np.zeros(8))  # as many as there are letters that move
    with pytest.raises(StreamError, match="Channel 'b' is infinite at 2.0"):
        online.observe(2.0, np.array([1.0, np.inf]))
    with pytest.raises(StreamError, match="Channel 'b' is infinite at 2.0"):
        online.observe_many([2.0], [[1.0, np.inf]])
    with pytest.raises(StreamError, match="not after the previous one"):
        online.observe(1.0, [1.0, 2.0])
    online.observe(2.0, [NAN, NAN])
    np.testing.assert_array_equal(online.state(), before)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_soft_bins_index_matches_host_engine_after_changes(depth):
    rng = np.random.default_rng(depth)
    times, values, streams = some_streams(rng, sizes=(5, 150))
    embedding = Embedding(depth, soft_bins=SoftBins(("a", "b"), ((-1.0, 0.0, 1.0), (0.0,))), scaler=SCALER)
    index = embedding.index(streams)
    for s in (0, 1, 1, 1, 1):
        n = int(rng.integers(1, len(times[s]) - 1))
        index.retract(s, times[s][n])
        times[s], values[s] = np.delete(times[s], n), np.delete(values[s], n, axis=0)
        n = int(rng.integers(len(times[s])))
        channel = int(np.flatnonzero(~np.isnan(values[s][n]))[0])
        values[s][n, channel] = rng.normal()
        index.correct(s, times[s][n], {"ab"[channel]: values[s][n, channel]})
        index.append(s, times[s][-1] + 0.001, {"b": 0.3, "a": -0.2})
        times[s], values[s] = np.append(times[s], times[s][-1] + 0.001), np.vstack([values[s], [-0.2, 0.3]])
    index.retract(1, times[1][-1])
    times[1], values[1] = times[1][:-1], values[1][:-1]
    now = Streams.from_arrays(times, values, ("a", "b"), 10.0)
    series, bounds = some_queries(rng, 2, count=12)
    alone = one_by_one(embedding, now, series, bounds)
    assert_close(index.query(series, bounds[:, 0], bounds[:, 1]), alone, 1e-10)
    ends, windows = index.sliding(1, 2.0, 1.5)
    bounds = np.stack([np.maximum(ends - 2.0, 0), ends], axis=1)
    assert_close(windows, one_by_one(embedding, now, np.full(len(ends), 1), bounds), 1e-10)


def test_soft_bins_gradients_in_values():
    streams = Streams.from_arrays([[0.3, 0.8, 1.7]], [[[1.0, NAN], [-0.2, 0.4], [3.0, 1.5]]], channels=("a", "b"))
    padded = Embedding(2, soft_bins=BINS).pad(streams, Partition.uniform(2))[0]

    @jax.jit
    def numbers(values):
        return lc.embedding.logsignatures(eqx.tree_at(lambda one: one.values, padded, values))

    check_grads(numbers, (padded.values,), order=1, modes=("fwd", "rev"), rtol=1e-6, atol=1e-6)
    slopes = np.asarray(jax.jacobian(numbers)(padded.values))
    assert np.isfinite(slopes).all()
    assert np.abs(slopes[:, 4, 1, 0]).max() > 0.1  # of '#a~0.7' in the value of a that is between two knots


def test_soft_bins_single_precision():
    streams = plain()
    double, single = (Embedding(2, soft_bins=BINS, scaler=SCALER, dtype=dtype) for dtype in (np.float64, np.float32))
    expected = double(streams, RAGGED).values
    np.testing.assert_array_equal(single(streams, RAGGED).values, expected.astype(np.float32))
    on_device = single.on_device(streams, RAGGED).values
    assert on_device.dtype == np.float32
    np.testing.assert_allclose(on_device, expected, atol=1e-4)
    near = SoftBins(("a", "b"), ((1.0, 1.0 + 1e-12, 2.0), (0.5,)))  # the same in single precision
    assert np.isfinite(Embedding(1, soft_bins=near, dtype=np.float32).on_device(streams, RAGGED).values).all()


def test_soft_bins_are_independent_of_threads():
    rng = np.random.default_rng(0)
    streams = Streams.from_dense(rng.normal(size=(30, 400, 2)), channels=("a", "b"))
    embedding, partition = Embedding(1, soft_bins=BINS), Partition.uniform(2)
    np.testing.assert_array_equal(
        embedding(streams, partition, threads=1).values, embedding(streams, partition, threads=3).values
    )


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_soft_bins_paths_decode_and_have_the_log_signatures(data):
    some = data.draw(streams(continuous=True))
    soft_bins = SoftBins.fit(some, np.linspace(0, 1, data.draw(st.integers(1, 4))).tolist())
    embedding, partition = Embedding(2, soft_bins=soft_bins), data.draw(partitions(some))
    paths = lc.realise(some, embedding)
    # A knot on a line between others is no part of the path, so it is not compared.
    decoded, known = (
        dataclasses.replace(one, knots=None, schema=Schema(one.schema.channels)) for one in (lc.decode(paths), some)
    )
    assert decoded == known
    assert lc.check_faithful(some, embedding).faithful
    found, cuts = embedding(some, partition), partition.cuts(some)
    for number, path in enumerate(paths):
        points = cuts.points[cuts.offsets[number] : cuts.offsets[number + 1]]
        for values, pair in zip(found.values[number], itertools.pairwise(points), strict=False):
            assert_close(log_signature(np.diff(path.between(*pair), axis=0), path.basis), values, 1e-9)


def test_soft_bins_tell_apart_series_that_differ_in_one_value():
    streams = Streams.from_arrays([[0.1, 0.2, 0.3]] * 2, [[[1.0], [2.0], [1.0]], [[1.0], [3.0], [1.0]]], ids=["x", "y"])
    soft_bins, partition = SoftBins.fit(streams, (0.0, 0.5, 1.0)), Partition.uniform(1)
    assert not lc.check_faithful(streams, Embedding(1), partition).faithful
    assert lc.check_faithful(streams, Embedding(1, soft_bins=soft_bins), partition).faithful


@settings(max_examples=50, deadline=None)
@given(
    knots=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=6, unique=True).map(sorted),
    values=st.lists(st.floats(-2e6, 2e6), min_size=1, max_size=20),
)
def test_hat_basis_weights_add_up_to_one_and_interpolate(knots, values):
    hat_basis = HatBasis.of(SoftBins(("a",), (tuple(knots),)), None)
    values = np.array(values)
    weights = hat_basis.weights(values[:, None])
    several = len(knots) > 1
    assert (weights[:, 0] == 1).all()
    assert (weights >= 0).all()
    shares = weights[:, int(several) :]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(shares @ knots, np.clip(values, knots[0], knots[-1]), rtol=1e-9, atol=1e-9)
    letters, amounts = hat_basis.entries(np.zeros(len(values), np.int32), values, values)
    dense = np.zeros((len(values), 1 + len(knots) + several))
    for column in range(4):
        dense[np.arange(len(values)), letters[:, column]] += amounts[:, column]
    np.testing.assert_allclose(dense, np.column_stack([values, weights]), atol=1e-12)


def test_hat_basis_merges_knots_that_are_clipped_to_one():
    soft_bins = SoftBins(("a",), ((1.0, 2.0, 5.0, 6.0),))
    hat_basis = HatBasis.of(
        soft_bins, ChannelScaler(("a",), (ChannelScale(centre=1.0, spread=2.0, low=2.0, high=5.0),))
    )
    scaled = np.array([[0.5], [1.0], [2.0]])  # 2, 3 and 5 as measured
    np.testing.assert_allclose(hat_basis.weights(scaled), [[1, 0, 1, 0, 0], [1, 0, 2 / 3, 0, 1 / 3], [1, 0, 0, 0, 1]])


def test_soft_bins_fit_takes_quantiles():
    streams = Streams.from_arrays(
        [np.arange(1.0, 9.0)], [np.column_stack([np.arange(8.0), np.full(8, 7.0), [0] * 7 + [1], np.full(8, NAN)])]
    )
    shares = (0.125, 0.375, 0.625, 0.875)
    assert SoftBins.fit(streams, shares).knots == (
        tuple(np.quantile(np.arange(8.0), shares)),
        (7.0,),
        (0.0, 0.125),
        (0.0,),
    )
    assert len(SoftBins.fit(streams).knots[0]) == 8
    assert hash(SoftBins.fit(streams)) == hash(SoftBins.fit(streams))


def test_soft_bins_letters_are_short_and_different():
    soft_bins = SoftBins(("a", "b", "c"), ((60.0, 75.25), (0.1234567, 0.1234568), (3.0,)))
    letters = Embedding(1, soft_bins=soft_bins).basis(Schema(("a", "b", "c"))).letters
    assert letters == ("a", "b", "c", "#a", "#a~60", "#a~75.25", "#b", "#b~0.1234567", "#b~0.1234568", "#c", "time")


def test_soft_bins_refuse_bad_knots_and_other_channels():
    with pytest.raises(EmbeddingError, match="counts=False"):
        Embedding(counts=False, soft_bins=BINS)
    with pytest.raises(StreamError, match="channels 'a', 'b'"):
        Embedding(soft_bins=BINS)(Streams.from_arrays([[1.0]], [[[1.0]]]), Partition.uniform(1))
    for knots in ((), (1.0, 1.0), (2.0, 1.0), (np.inf,), (NAN,)):
        with pytest.raises(StreamError, match="of 'a'"):
            SoftBins(("a",), (knots,))
    with pytest.raises(StreamError, match="2 channels"):
        SoftBins(("a", "b"), ((1.0,),))
    for shares in ((), (0.5, 1.5), (NAN,)):
        with pytest.raises(StreamError, match="shares"):
            SoftBins.fit(plain(), shares)


def test_soft_bins_model_is_saved_and_served(tmp_path):
    streams = plain()[:1]
    embedding = Embedding(1, scaler=SCALER, soft_bins=BINS)
    logsigs = embedding(streams, Partition.every(1.0))
    assert lc.models.linear.channels_of(logsigs.basis) == 2
    model = lc.log_slice(
        logsigs.basis, hidden=4, block=1, outputs=1, initial=lc.TimeZeroInitial(), key=jax.random.key(0)
    )
    inputs = lc.Inputs.of(logsigs)
    model = model.fit_preprocessing(inputs, logsigs.spec)
    model.save(tmp_path / "model")
    loaded = lc.load(tmp_path / "model")
    assert loaded.spec == logsigs.spec
    assert predictor_equals_batch(loaded, example_inputs(loaded))
    predictors = lc.Predictors(loaded), lc.Predictors(loaded, reorder=0.5)
    rows = np.full((len(streams.times), 2), NAN)
    rows[np.repeat(np.arange(len(rows)), np.diff(streams.obs_offsets)), streams.channel] = streams.value
    for some in predictors:
        some.observe_many(["x"] * len(rows), streams.times.tolist(), rows)
        restored = lc.Predictor(loaded, reorder=None if some is predictors[0] else 0.5).restore(some["x"].state())
        for answer in (some.predict(at=4.0)[0], restored.predict(at=4.0)):
            np.testing.assert_allclose(answer, lc.predict(model, inputs)[0], rtol=1e-5)
