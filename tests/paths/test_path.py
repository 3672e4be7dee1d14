"""The realised path: its log-signatures are the embedding's, it decodes to the data, and it moves as the proof says."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.algebra import log, multiply_exp, project, unit
from logcde.embedding import Embedding
from logcde.errors import EmbeddingError
from logcde.paths.decoding import decode
from logcde.paths.realisation import realise
from logcde.streams import DatetimeClock, FirstStamp, Keep, Partition, Schema, Streams, Term
from tests.embedding import strategies

NAN = np.nan
FULL = Embedding()


def everything(terms=()):
    """Two series with repeated values, events at 0 and T, continuous channels and the given terms."""
    times = [[0.0, 0.5, 1.0, 4.0], [0.3, 2.5]]
    table = [[[1.0, NAN], [2.0, 0.5], [2.0, NAN], [NAN, -0.5]], [[NAN, 0.0], [3.0, 1.0]]]
    rng = np.random.default_rng(0)
    columns = {term: [rng.normal(size=4), rng.normal(size=2)] for term in terms}
    streams = Streams.from_arrays(times, table, ("a", "b"), [4.0, 5.0], terms=columns, ids=["x", "y"])
    return streams.with_continuous(("p",), [[0.0, 0.7, 4.0], [0.0, 5.0]], [[1.0, 0.5, -1.0], [0.3, 0.4]])


AREA, THIRD = Term("area", ("a", "b")), Term("third", ("b", ("a", "b")))
DEEP = Term("deep", (("a", "b"), ("b", ("a", "b"))))


# The log-signature of a portion of the path is that of the interval.


@functools.cache
def prepared(width, depth):
    return pytest.importorskip("iisignature").prepare(width, depth, "S")


def by_iisignature(vertices, basis):
    if basis.width == 1 or basis.depth == 1:  # not offered there: all levels but the first are zero
        return np.append(vertices[-1] - vertices[0], np.zeros(basis.dimension - basis.width))
    return pytest.importorskip("iisignature").logsig(vertices, prepared(basis.width, basis.depth), "S")


def by_algebra(vertices, basis):
    steps = np.diff(vertices, axis=0)
    # Steps of zero do nothing; with them there are fewer shapes to compile.
    return composed(np.pad(steps, ((0, -len(steps) % 1024), (0, 0))), basis)


@functools.partial(jax.jit, static_argnums=1)
def composed(steps, basis):
    def append(tensor, step):
        return multiply_exp(tensor, step), None

    tensor, _ = jax.lax.scan(append, unit(basis), steps)
    return project(log(tensor)).coordinates


@given(st.data(), strategies.streams(continuous=True, terms=True), strategies.embeddings)
@settings(max_examples=80, deadline=None)
def test_realised_intervals_have_the_embedded_log_signatures(data, streams, embedding):
    partition = data.draw(strategies.partitions(streams))
    assert_identity(streams, partition, embedding, by_iisignature)


@pytest.mark.parametrize("options", [(1, True, True), (3, True, True), (4, False, True), (4, False, False)])
def test_realised_intervals_have_the_embedded_log_signatures_by_algebra(options):
    assert_identity(everything((AREA, THIRD, DEEP)), Partition.uniform(3), Embedding(*options), by_algebra)


def assert_identity(streams, partition, embedding, log_signature):
    logsigs, cuts = embedding(streams, partition), partition.cuts(streams)
    for series, path in enumerate(realise(streams, embedding)):
        points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
        for interval, (start, stop) in enumerate(itertools.pairwise(points)):
            found = log_signature(path.between(start, stop), path.basis)
            np.testing.assert_allclose(logsigs.values[series, interval], found, rtol=1e-9, atol=1e-9)
            # The vertices of the portion are on the path between a and b.
            ends = path(np.array([path.a(start), path.b(stop)]))
            np.testing.assert_allclose(path.between(start, stop)[[0, -1]], ends, atol=1e-11)


# The path itself.


@given(strategies.streams(most_series=1, continuous=True), st.data())
@settings(max_examples=60, deadline=None)
def test_realised_path_equals_the_formula(streams, data):
    (path,) = realise(streams, FULL)
    events, end = len(streams.times), streams.horizon[0]
    np.testing.assert_allclose(path.u[-1], end + events + 1)
    u = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=20))) * path.u[-1]

    def ramp(start):
        return np.clip(u - start, 0, 1)

    begun = np.stack([ramp(1 + t + i) for i, t in enumerate(streams.times)])
    q = u - ramp(0) - begun.sum(axis=0)
    expected = np.zeros((len(u), path.basis.width))
    expected[:, -1] = q
    if streams.knots is not None:
        for letter, column in enumerate(streams.knots.values.T, start=path.coordinates.discrete):
            expected[:, letter] = ramp(0) * column[0] + np.interp(q, streams.knots.times, column) - column[0]
    channels = len(streams.schema.channels)
    for event, share in enumerate(begun):
        for channel, change in changes(streams)[event].items():
            expected[:, channel] += change * share
            expected[:, channels + channel] += share
    np.testing.assert_allclose(path(u), expected, atol=1e-10)


def changes(streams):
    """For every event of one series the change of each channel it observes."""
    known, found = {}, []
    for event in range(len(streams.times)):
        part = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
        seen = dict(zip(streams.channel[part].tolist(), streams.value[part].tolist(), strict=True))
        found.append({channel: value - known.get(channel, 0.0) for channel, value in seen.items()})
        known |= seen
    return found


@given(strategies.streams(most_series=1, continuous=True, terms=True), strategies.embeddings, st.data())
@settings(max_examples=60, deadline=None)
def test_path_maps_physical_time_to_auxiliary_time(streams, embedding, data):
    (path,) = realise(streams, embedding)
    times = np.array(sorted(data.draw(st.lists(strategies.shares, min_size=1)))) * streams.horizon[0]
    a = path.a(times)
    assert (np.diff(a) >= 0).all()
    assert path.b(path.horizon) == path.u[-1]
    assert path.a(0.0) == 0.0
    assert np.array_equal(path(path.u), path.positions) or (np.diff(path.u) == 0).any()
    if embedding.time:
        np.testing.assert_allclose(path(a)[:, -1], times, atol=1e-12)
        # The first such u: just before, it is still earlier.
        late = a > 1e-6
        assert (path(a[late] - 1e-6)[:, -1] < times[late]).all()
    # Where an event is, the state before it is at a; after it has passed, a is further by its unit.
    moving = np.unique(path.times[1:][np.diff(path.times) == 0])
    for time in moving[(moving > 0) & (moving < path.horizon)]:
        assert path.a(np.nextafter(time, np.inf)) >= path.a(time) + 1 - 1e-9


def test_path_without_time_has_auxiliary_segments_only():
    streams = Streams.from_arrays([[0.5, 2.0, 3.0]], [[[3.0], [4.0], [5.0]]], horizon=10.0)
    (path,) = realise(streams, Embedding(time=False))
    assert path.u[-1] == 4.0
    assert path.a(np.array([0.0, 0.5, 0.6, 2.0, 2.5, 3.0, 9.0])).tolist() == [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]
    assert path(3.0).tolist() == [4.0, 2.0]
    assert path.horizon == 10.0


def test_path_refuses_times_outside():
    (path,) = realise(everything()[:1], FULL)
    with pytest.raises(EmbeddingError, match=r"u = 10.0 is not on this path, which goes from 0 to 9.0"):
        path(np.array([1.0, 10.0]))
    with pytest.raises(EmbeddingError, match=r"time 4.5 is not on this path"):
        path.a(4.5)
    with pytest.raises(EmbeddingError, match=r"time nan is not"):
        path.a(np.nan)
    with pytest.raises(EmbeddingError, match="does not go forward"):
        path.between(2.0, 2.0)
    with pytest.raises(EmbeddingError, match="cannot be compared"):
        path.deviation(realise(everything()[:1], Embedding(time=False))[0])


def test_path_is_read_only_and_has_a_repr():
    (path,) = realise(everything()[:1], FULL)
    assert not path.positions.flags.writeable
    assert repr(path).startswith("RealisedPath(series 'x': 10 vertices over 'a', 'b', '#a', '#b', 'p', 'time'")
    assert path.schema == everything().schema


# Decoding.


def without_terms(streams):
    return dataclasses.replace(streams, terms=np.zeros_like(streams.terms))


def without_knots(streams):
    schema = dataclasses.replace(streams.schema, continuous=())
    return dataclasses.replace(streams, schema=schema, knots=None)


@given(strategies.streams(continuous=True, terms=True))
@settings(max_examples=80, deadline=None)
def test_decode_recovers_the_data(streams):
    decoded = decode(realise(streams, Embedding(3)))
    assert without_terms(without_knots(decoded)) == without_terms(without_knots(streams))
    np.testing.assert_allclose(decoded.terms, streams.terms, atol=1e-10)
    if streams.knots is None:
        return
    assert decoded.knots is not None
    for series in range(len(streams)):
        (times, values), (found_times, found_values) = streams.knots.of(series), decoded.knots.of(series)
        for column, found in zip(values.T, found_values.T, strict=True):
            assert np.array_equal(np.interp(times, found_times, found), column)
        # What is missing was at an event and on a line; what is new is there because rounding puts it off the line.
        stamps = streams.times[streams.offsets[series] : streams.offsets[series + 1]]
        assert np.isin(np.setxor1d(times, found_times), stamps).all()
        columns = zip(found_values.T, values.T, strict=True)
        for found, column in columns:
            np.testing.assert_allclose(np.interp(found_times, times, column), found, rtol=0, atol=1e-14)


@given(strategies.streams())
@settings(max_examples=60, deadline=None)
def test_decode_is_exact_without_terms(streams):
    for embedding in (Embedding(1), Embedding(2)):
        paths = realise(streams, embedding)
        assert decode(paths) == streams
        assert decode(paths[0]) == streams[0]


def test_decode_recovers_knots():
    streams = everything()
    assert decode(realise(streams, FULL)) == streams
    # A corner at the stamp of an event is a knot, a point of a line there is not, at another time it stays one.
    times, heights = np.array([0.0, 0.25, 0.5, 1.0, 4.0]), np.array([0.0, 1.0, 2.0, 0.0, -12.0])
    bent = without_knots(streams)[:1].with_continuous(("p",), times, heights)
    (found,) = [decode(path).knots for path in realise(bent, FULL)]
    assert found is not None
    assert found.times.tolist() == [0.0, 0.25, 0.5, 4.0]


def test_decode_stamps_at_the_resolution_of_float64():
    times = [[0.0, 5e-324, 1.0, np.nextafter(1.0, 2), 1e17]]
    streams = Streams.from_arrays(times, np.arange(5.0).reshape(1, 5, 1) / 3)
    (path,) = realise(streams, FULL)
    assert (np.diff(path.u) >= 0).all()
    assert decode(path) == streams


def test_decode_a_series_without_events():
    streams = Streams.from_arrays([[], [1.0]], [np.zeros((0, 2)), [[1.0, 2.0]]], horizon=3.0, empty=Keep())
    (path, _) = paths = realise(streams, FULL)
    assert path.u.tolist() == [0.0, 1.0, 4.0]
    assert decode(paths) == streams


def test_decode_keeps_datetimes_ids_and_origins():
    stamps = np.array(["2024-01-01T00:00", "2024-01-01T07:30"], "datetime64[us]")
    streams = Streams.from_arrays(
        [stamps, stamps + np.timedelta64(3, "D")], np.ones((2, 2, 1)), ids=["x", "y"], origin=FirstStamp()
    )
    assert isinstance(streams.schema.clock, DatetimeClock)
    assert decode(realise(streams, FULL)) == streams
    assert decode(realise(streams[1:], FULL)) == streams[1:]


def test_decode_reads_vertices_only():
    streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0, NAN], [NAN, 4.0]]], horizon=3.0)
    (path,) = realise(streams, FULL)
    moved = path.positions.copy()
    moved[3:, 0] = 7.0  # channel x1 after the first event
    moved[4:6, -1] = 2.5  # the stamp of the second
    expected = Streams.from_arrays([[0.5, 2.5]], [[[7.0, NAN], [NAN, 4.0]]], horizon=3.0)
    assert decode(dataclasses.replace(path, positions=moved)) == expected


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        (Embedding(counts=False), "realised without counts .* repeats the last value"),
        (Embedding(time=False), "realised without time .* stamps leave no trace"),
    ],
)
def test_decode_refuses_a_path_without_counts_or_time(embedding, words):
    with pytest.raises(EmbeddingError, match=words):
        decode(realise(everything(), embedding))


def test_decode_refuses_terms_above_the_depth_and_dependent_terms():
    streams = everything((AREA, THIRD))
    with pytest.raises(EmbeddingError, match=r"depth 2 and does not contain the terms 'third'.* depth 3"):
        decode(realise(streams, Embedding(2)))
    dependent = everything((AREA, Term("minus", ("b", "a"))))
    with pytest.raises(EmbeddingError, match="linearly dependent"):
        decode(realise(dependent, Embedding(2)))


def test_decode_terms_over_channels_in_any_order():
    schema = Schema(("b", "a"), terms=(Term("area", ("a", "b")),))
    streams = Streams.from_arrays(
        [[1.0]], [[[1.0, 2.0]]], schema.channels, terms={schema.terms[0]: [[0.5]]}, horizon=2.0
    )
    assert_identity(streams, Partition.uniform(1), Embedding(3), by_algebra)
    np.testing.assert_allclose(decode(realise(streams, FULL)).terms, [[0.5]])
