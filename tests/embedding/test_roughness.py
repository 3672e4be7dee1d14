"""Roughness: every engine sums the squared changes of each channel, and the sum is twice the area of lead and lag."""

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
from logcde.errors import StreamError
from logcde.paths.realisation import log_signature
from logcde.testing.examples import coordinates_of, example_inputs
from logcde.testing.laws import predictor_equals_batch
from tests.embedding.reference import NAN, RAGGED, plain, reference, with_continuous, with_terms
from tests.embedding.strategies import partitions, streams
from tests.embedding.test_host import assert_close, flat
from tests.embedding.test_index import one_by_one, some_queries, some_streams
from tests.embedding.test_online import a_stream, replay
from tests.embedding.test_soft_bins import BINS, SCALER, shares, synchronous


def expected(streams, partition, embedding):
    """The slow reference on streams in which counts, bins and sums of squares are values of further channels."""
    coordinates = embedding.coordinates(streams.schema)
    names = [letter.translate({35: "count ", 126: "rough "}) for letter in coordinates.letters[: coordinates.discrete]]
    schema = dataclasses.replace(streams.schema, channels=tuple(names))
    wide = with_further_channels(coordinates.scaled(streams), coordinates, schema)
    letters = dataclasses.replace(
        coordinates, schema=schema, counts=False, scaler=None, soft_bins=None, roughness=False
    )
    return np.stack(list(reference(wide, partition, letters)))


def with_further_channels(scaled, coordinates, schema):
    """Observation by observation, in plain Python."""
    letters = {letter: place for place, letter in enumerate(coordinates.letters)}
    offsets, channel, value = [0], [], []
    for series in scaled:
        total, last = dict.fromkeys(letters, 0.0), {}
        for event in range(len(series.times)):
            row = {}
            for obs in range(series.obs_offsets[event], series.obs_offsets[event + 1]):
                c, x = int(series.channel[obs]), series.value[obs]
                name = scaled.schema.channels[c]
                row[c] = x
                moved = {f"#{name}": 1.0} if coordinates.counts else {}
                if coordinates.soft_bins is not None:
                    knots = coordinates.soft_bins.knots[c]
                    if len(knots) > 1:
                        moved |= {f"#{name}~{k:g}": part for k, part in zip(knots, shares(x, knots), strict=True)}
                if c in last:
                    moved[f"~{name}"] = (x - last[c]) ** 2
                for letter, amount in moved.items():
                    total[letter] += amount
                    row[letters[letter]] = total[letter]
                last[c] = x
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


CASES = {
    "depth 1": (plain, 1, {}),
    "depth 2": (plain, 2, {}),
    "depth 3": (plain, 3, {}),
    "depth 4, no counts": (plain, 4, {"counts": False}),
    "scaler, depth 2": (plain, 2, {"scaler": SCALER}),
    "no counts": (plain, 2, {"counts": False}),
    "no time": (plain, 3, {"time": False, "counts": False}),
    "soft bins": (plain, 2, {"soft_bins": BINS}),
    "continuous, depth 2": (with_continuous, 2, {"scaler": SCALER}),
    "terms": (with_terms, 3, {}),
    "synchronous, depth 1": (synchronous, 1, {}),
    "synchronous, depth 2": (synchronous, 2, {}),
    "synchronous, depth 3": (synchronous, 3, {"counts": False}),
}


@pytest.mark.parametrize("case", CASES)
def test_roughness_all_engines_match_dense_reference(case):
    make, depth, options = CASES[case]
    streams, embedding = make(), Embedding(depth, roughness=True, **options)
    partition = Partition.every_events(4) if streams.synchronous else RAGGED
    found = embedding(streams, partition)
    assert_close(flat(found), expected(streams, partition, embedding))
    np.testing.assert_allclose(embedding.on_device(streams, partition).values, found.values, atol=1e-10)


def lead_lag_area(values):
    """The area between lead and lag of a sequence, from the corners of their path: the lead moves, the lag follows."""
    lead, lag = values[0], values[0]
    corners = [(lead, lag)]
    for value in values[1:]:
        corners += [(value, lag), (value, value)]
        lag = value
    path = np.array(corners) - corners[0]
    return 0.5 * sum(a * (d - b) - b * (c - a) for (a, b), (c, d) in itertools.pairwise(path))


def test_roughness_is_twice_the_area_of_lead_and_lag():
    values = np.random.default_rng(0).normal(size=(3, 20, 2))
    streams = Streams.from_dense(values, channels=("a", "b"))
    logsigs = Embedding(2, roughness=True)(streams, Partition.uniform(1))
    for channel, letter in enumerate(("~a", "~b")):
        found = logsigs.values[:, 0, logsigs.basis.labels.index(letter)]
        np.testing.assert_allclose(found / 2, [lead_lag_area(series[:, channel]) for series in values])


def test_roughness_changes_no_other_coordinate():
    streams = plain()
    rough, smooth = (Embedding(3, roughness=roughness)(streams, RAGGED) for roughness in (True, False))
    kept = [rough.basis.labels.index(label) for label in smooth.basis.labels]
    np.testing.assert_allclose(rough.values[..., kept], smooth.values, atol=1e-13)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("terms", "continuous"), [(False, False), (True, True)])
def test_roughness_online_matches_host_engine(depth, counts, terms, continuous):
    cuts = np.array([0.0, 0.25, 0.3, 0.8, 1.0])
    for seed in range(3):
        streams, _, values = a_stream(seed, terms=terms, continuous=continuous)
        scaler = None if terms else ChannelScaler.fit(streams)
        embedding = Embedding(depth, counts=counts, scaler=scaler, roughness=True)
        offline = embedding(streams, Partition.at(cuts)).values[0]
        np.testing.assert_allclose(replay(embedding, streams, values, cuts), offline, rtol=1e-11, atol=1e-12)


def test_roughness_online_with_soft_bins():
    streams, _, values = a_stream(4)
    embedding = Embedding(2, soft_bins=SoftBins.fit(streams, (0.2, 0.8)), roughness=True)
    cuts = np.array([0.0, 0.4, 1.0])
    offline = embedding(streams, Partition.at(cuts)).values[0]
    np.testing.assert_allclose(replay(embedding, streams, values, cuts), offline, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2])
def test_roughness_online_blocks_steps_and_states(depth):
    streams, times, values = a_stream(5)
    values[3] = NAN  # no event
    embedding = Embedding(depth, scaler=ChannelScaler.fit(streams), roughness=True)
    block, single = (embedding.online(streams.schema) for _ in range(2))
    for some in (slice(0, 4), slice(4, None)):
        running = block.observe_many(times[some], values[some])
        for row, time, after in zip(values[some], times[some], running, strict=True):
            if not np.isnan(row).all():
                np.testing.assert_allclose(single.step(time, row), after, atol=1e-12)
    np.testing.assert_array_equal(block.state(), single.state())
    again = embedding.online(streams.schema).restore(single.state())
    np.testing.assert_array_equal(again.copy().state(), again.state())
    np.testing.assert_array_equal(again.step(1.5, values[0]), single.step(1.5, values[0]))


def test_roughness_online_is_exact_after_a_spike():
    online = Embedding(1, roughness=True).online(Schema(("a",)))
    online.observe_many([0.1, 0.2, 0.3], [[0.0], [1e9], [0.0]])
    online.observe(0.4, {"a": 1e-4})
    online.close(1.0)
    online.observe(1.1, {"a": 0.0})
    np.testing.assert_allclose(online.logsig()[2], 1e-8, rtol=1e-15)


def test_roughness_online_refused_events_do_not_change_state():
    online = Embedding(roughness=True).online(Schema(("a", "b")))
    online.observe(1.0, {"a": 1.0})
    online.observe(1.5, {"a": 3.0})
    before = online.state()
    with pytest.raises(StreamError, match="6 values for 2 channels"):
        online.observe(2.0, np.zeros(6))  # as many as there are letters that move
    with pytest.raises(StreamError, match="Channel 'b' is infinite at 2.0"):
        online.observe(2.0, np.array([1.0, np.inf]))
    with pytest.raises(StreamError, match="Channel 'b' is infinite at 2.0"):
        online.observe_many([2.0], [[1.0, np.inf]])
    with pytest.raises(StreamError, match="'~a' is infinite at 2.0"):
        online.observe(2.0, {"a": 1e200})
    with pytest.raises(StreamError, match="'~a' is infinite at 2.0"):
        online.observe_many([2.0], [[1e200, NAN]])
    with pytest.raises(StreamError, match="not after the previous one"):
        online.observe(1.5, [1.0, 2.0])
    online.observe(2.0, [NAN, NAN])
    np.testing.assert_array_equal(online.state(), before)


@pytest.mark.parametrize("options", [{"counts": True}, {"counts": False}, {"soft_bins": BINS}])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_roughness_index_matches_host_engine_after_changes(depth, options):
    rng = np.random.default_rng(depth)
    times, values, streams = some_streams(rng, sizes=(5, 150))
    embedding = Embedding(depth, scaler=SCALER, roughness=True, **options)
    index = embedding.index(streams)
    for s, n in ((0, 0), (1, 0), (1, 40), (1, 77), (1, 100)):  # the first event, whose successor has none before it
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


def test_roughness_gradients_in_values():
    streams = Streams.from_arrays([[0.3, 0.8, 1.7]], [[[1.0, NAN], [-0.2, 0.4], [3.0, 1.5]]], channels=("a", "b"))
    padded = Embedding(2, roughness=True).pad(streams, Partition.uniform(1))[0]

    @jax.jit
    def numbers(values):
        return lc.embedding.logsignatures(eqx.tree_at(lambda one: one.values, padded, values))

    check_grads(numbers, (padded.values,), order=1, modes=("fwd", "rev"), rtol=1e-6, atol=1e-6)
    slopes = np.asarray(jax.jacobian(numbers)(padded.values))[0, 4]  # of '~a'
    np.testing.assert_allclose(slopes, [[2.4, 0.0], [-8.8, 0.0], [6.4, 0.0]], rtol=1e-12)


def test_roughness_single_precision_and_threads():
    streams = plain()
    double, single = (Embedding(2, roughness=True, dtype=dtype) for dtype in (np.float64, np.float32))
    expected = double(streams, RAGGED).values
    np.testing.assert_array_equal(single(streams, RAGGED).values, expected.astype(np.float32))
    np.testing.assert_allclose(single.on_device(streams, RAGGED).values, expected, atol=1e-4)
    np.testing.assert_array_equal(double(streams, RAGGED, threads=1).values, double(streams, RAGGED, threads=3).values)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_roughness_paths_decode_and_have_the_log_signatures(data):
    some = data.draw(streams())
    embedding, partition = Embedding(2, roughness=True), data.draw(partitions(some))
    paths = lc.realise(some, embedding)
    assert lc.decode(paths) == some
    assert lc.check_faithful(some, embedding).faithful
    found, cuts = embedding(some, partition), partition.cuts(some)
    for number, path in enumerate(paths):
        points = cuts.points[cuts.offsets[number] : cuts.offsets[number + 1]]
        for values, pair in zip(found.values[number], itertools.pairwise(points), strict=False):
            assert_close(log_signature(np.diff(path.between(*pair), axis=0), path.basis), values, 1e-9)


def test_roughness_invariances_without_counts():
    embedding = Embedding(1, counts=False, roughness=True)
    repeats = Streams.from_arrays([[0.5, 1.0, 2.0], [0.5, 2.0]], [[[5.0], [5.0], [4.0]], [[5.0], [4.0]]])
    assert not lc.check_faithful(repeats, embedding).faithful
    zeros = Streams.from_arrays([[0.5, 2.0], [0.7, 2.0], [2.0]], [[[0.0], [4.0]], [[0.0], [4.0]], [[4.0]]])
    (collision,) = lc.check_faithful(zeros, embedding).collisions
    assert list(collision.series) == [0, 1]  # when the first value was 0 leaves no trace, that it was does
    assert "first value of 0, the base point, leaves a trace only in the roughness" in embedding.invariances()[0]
    assert Embedding(counts=False).invariances()[0] != embedding.invariances()[0]
    assert Embedding(roughness=True).invariances() == Embedding().invariances()


def test_roughness_letters():
    schema = Schema(("a", "b"), continuous=("c",))
    letters = Embedding(1, roughness=True).basis(schema).letters
    assert letters == ("a", "b", "#a", "#b", "~a", "~b", "c", "time")
    assert coordinates_of(Embedding(2, roughness=True, counts=False).basis(Schema(("a",)))).roughness
    with pytest.raises(StreamError, match="'~a' is taken"):
        Schema(("a", "~a"))


def test_roughness_model_is_saved_and_served(tmp_path):
    embedding = Embedding(1, scaler=SCALER, roughness=True)
    logsigs = embedding(plain()[:1], Partition.every(1.0))
    assert lc.models.linear.channels_of(logsigs.basis) == 2
    model = lc.log_slice(
        logsigs.basis, hidden=4, block=1, outputs=1, initial=lc.TimeZeroInitial(), key=jax.random.key(0)
    )
    model = model.fit_preprocessing(lc.Inputs.of(logsigs), logsigs.spec)
    model.save(tmp_path / "model")
    loaded = lc.load(tmp_path / "model")
    assert loaded.spec == logsigs.spec
    assert loaded.spec.coordinates.roughness
    assert predictor_equals_batch(loaded, example_inputs(loaded))
