"""All engines at offsets of values and stamps, in both precisions, against the same streams without the offset."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.embedding import Embedding, logsignatures, pad
from logcde.errors import EmbeddingError, LogcdeWarning
from logcde.streams import Partition, SoftBins, Streams

OFFSETS = (1e6, 1e8, 1e12)
EVENTS, CUTS = 24, np.array([2.0, 5.5, 7.25, 12.0])
KNOTS = np.array([0.0, 1.5, 6.0, 8.0, 12.0])
NAN = np.nan


def walk(seed, values=0.0, stamps=0.0, unit=1 / 256):
    """Two channels, both observed at first, on a grid that double precision holds at every offset."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(np.arange(1, 12 * 16), EVENTS, replace=False)) / 16
    times[0] = 1 / 32
    rows = np.cumsum(rng.integers(-200, 200, (EVENTS, 2)), axis=0) * unit
    rows[1:][rng.random((EVENTS - 1, 2)) < 0.3] = NAN
    rows[np.isnan(rows).all(axis=1), 0] = 0.5
    return Streams.from_arrays([times + stamps], [rows + values], ("a", "b"), 12.0 + stamps, origin=0.0)


def bins(values=0.0):
    return SoftBins(("a", "b"), ((values - 1.0, values + 0.5, values + 2.0), (values,)))


def with_path(streams, values, stamps):
    heights = np.array([1.0, -2.0, 4.0, 3.0, 0.5]) + values
    knots = np.append(0.0, KNOTS + stamps) if stamps else KNOTS
    return streams.with_continuous(("dose",), knots, np.append(heights[:1], heights) if stamps else heights)


def later(embedding, engine, streams, stamps):
    """Log-signatures of the intervals after the first, in which no channel starts from the base point."""
    partition = Partition.at(np.append(0.0, CUTS + stamps))
    if engine == "host":
        return embedding(streams, partition).values[0, 1:]
    if engine == "device":
        return np.asarray(embedding.on_device(streams, partition).values)[0, 1:]
    if engine == "index":
        ends = CUTS + stamps
        return embedding.index(streams).query(np.zeros(3, np.int64), ends[:-1], ends[1:])
    return one_by_one(embedding, streams, CUTS + stamps)[1:]


def one_by_one(embedding, streams, cuts):
    """Log-signatures by the online engine, up to each cut; knots, cuts and events in the order of time."""
    knots = None if streams.knots is None else streams.knots.values[:, 0]

    def dose(time):
        # Relative to the knot before, as exact as the path itself.
        if knots is None:
            return None
        k = max(np.searchsorted(streams.knots.times, time) - 1, 0)
        start, stop = streams.knots.times[k : k + 2]
        return [knots[k] + (knots[k + 1] - knots[k]) * ((time - start) / (stop - start))]

    online = embedding.online(streams.schema, continuous=dose(0.0))
    moments = [(time, 2, event) for event, time in enumerate(streams.times.tolist())]
    moments += [(time, 1, -1) for time in cuts.tolist()]
    moments += [] if knots is None else [(time, 0, -1) for time in streams.knots.times.tolist()]
    found = []
    for time, rank, event in sorted(moments):
        if rank == 0:
            online.knot(time, dose(time))
        elif rank == 1:
            found.append(online.close(time, continuous=dose(time)))
        else:
            row, part = np.full(2, NAN), slice(*streams.obs_offsets[event : event + 2])
            row[streams.channel[part]] = streams.value[part]
            online.observe(time, row, continuous=dose(time))
    return np.stack(found)


@pytest.mark.parametrize("engine", ["host", "device", "online", "index"])
@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_engines_keep_increments_at_offsets(engine, double, offset):
    dtype, tolerance = (np.float64, 1e-11) if double else (np.float32, 2e-6)
    plain = Embedding(2, soft_bins=bins(), roughness=True)
    expected = plain(walk(1), Partition.at(np.append(0.0, CUTS))).values[0, 1:]
    for values, stamps in ((offset, 0.0), (0.0, offset), (-offset, offset)):
        moved = Embedding(2, soft_bins=bins(values), roughness=True, dtype=dtype)
        with jax.enable_x64(double):
            assert jnp.zeros(1).dtype == dtype
            found = later(moved, engine, walk(1, values, stamps), stamps)
        assert found.dtype == (dtype if engine in ("host", "device") else np.float64)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("engine", ["host", "device", "online"])
@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_engines_keep_increments_of_continuous_channels_at_offsets(engine, double, offset):
    dtype, tolerance = (np.float64, 1e-11) if double else (np.float32, 2e-6)
    expected = later(Embedding(2), "host", with_path(walk(2), 0.0, 0.0), 0.0)
    for values, stamps in ((offset, 0.0), (0.0, offset), (-offset, offset)):
        streams = with_path(walk(2, 0.0, stamps), values, stamps)
        with jax.enable_x64(double):
            found = later(Embedding(2, dtype=dtype), engine, streams, stamps)
        exact = engine != "online" or not values  # online, the path is given as points, which are rounded
        near = tolerance if exact else max(tolerance, 100 * np.spacing(offset))
        np.testing.assert_allclose(found, expected, rtol=near, atol=near * np.abs(expected).max())


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize("offset", [1e2, *OFFSETS])
def test_first_interval_is_that_of_the_host_at_offsets(double, offset):
    """There each channel moves from the base point 0 to a value of the size of the offset."""
    streams, partition = walk(8, offset), Partition.at(np.append(0.0, CUTS))
    expected = Embedding(2)(streams, partition).values[0, 0]
    cancelled = 8 * np.finfo(np.float64).eps * offset**2  # products of two first values, in the difference of an area
    with jax.enable_x64(double):
        for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 6e-8)):
            found = Embedding(2, dtype=dtype).on_device(streams, partition).values
            assert found.dtype == dtype
            np.testing.assert_allclose(np.asarray(found)[0, 0], expected, rtol=tolerance, atol=cancelled)


def test_result_beyond_single_precision_is_refused():
    streams = Streams.from_arrays([[0.5], [0.5]], [[[1.0]], [[1e39]]], ["a"], ids=["p6", "p7"])
    embedding, partition = Embedding(1, dtype=np.float32), Partition.uniform(1)
    with pytest.raises(EmbeddingError, match="Series 'p7': a coordinate is beyond the range of float32"):
        embedding.on_device(streams, partition)


@pytest.mark.parametrize("offset", OFFSETS)
def test_pad_warns_of_first_values_that_single_precision_cannot_carry(offset):
    with pytest.warns(LogcdeWarning, match=r"The first values of 'a', up to 1e\+.* that single precision loses these"):
        Embedding(2, dtype=np.float32).pad(walk(1, offset), Partition.uniform(2))


@pytest.mark.filterwarnings("ignore:The first values of")
@pytest.mark.parametrize("offset", OFFSETS)
def test_derivatives_in_single_precision_are_those_without_the_offset(offset):
    def slopes(values, stamps, dtype):
        streams = with_path(walk(3, values, stamps), values, stamps)
        embedding = Embedding(2, soft_bins=bins(values), roughness=True, dtype=dtype)
        padded = embedding.pad(streams, Partition.at(np.append(0.0, CUTS + stamps)))[0]

        @jax.jit
        @jax.grad
        def slope(moving):
            moved = eqx.tree_at(lambda one: (one.values, one.times, one.knot_values), padded, moving)
            logsigs = logsignatures(moved)[1:]
            return jnp.sum(logsigs * jnp.cos(jnp.arange(logsigs.size, dtype=dtype).reshape(logsigs.shape)))

        found = slope((padded.values, padded.times, padded.knot_values))
        return [np.asarray(found[0]), np.asarray(found[1]), np.asarray(found[2])[-5:]]

    expected = slopes(0.0, 0.0, np.float64)
    with jax.enable_x64(False):
        found = slopes(offset, offset, np.float32)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


@pytest.mark.filterwarnings("ignore:The first values of")
def test_replaced_values_are_taken_as_they_are():
    far, near = (Embedding(2).pad(walk(4, offset), Partition.at([0.0, 6.0, 12.0]))[0] for offset in (1e8, 0.0))
    with jax.enable_x64(False):
        single = Embedding(2, dtype=np.float32).pad(walk(4, 1e8), Partition.at([0.0, 6.0, 12.0]))[0]
        values = near.values.astype(jnp.float32)
        found = logsignatures(eqx.tree_at(lambda one: one.values, single, values))
    expected = logsignatures(near)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    replaced = logsignatures(eqx.tree_at(lambda one: one.values, far, near.values))
    np.testing.assert_allclose(replaced, expected, rtol=1e-12, atol=1e-12)
    # One value alone, in the last interval: the changes to it and from it.
    values = far.values.at[-4, 0].add(64.0)
    one = logsignatures(eqx.tree_at(lambda one: one.values, far, values))[1]
    rows = np.where(far.observed, values, NAN)
    moved = Streams.from_arrays([walk(4).times], [rows], ("a", "b"), 12.0)
    assert far.observed[-4, 0]
    expected = Embedding(2)(moved, Partition.at([0.0, 6.0, 12.0])).values[0, 1]
    np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-10)
    assert np.abs(one - logsignatures(far)[1]).max() > 10


def test_scaled_streams_have_scaled_values():
    embedding, partition = Embedding(2, soft_bins=bins(), roughness=True), Partition.at([0.0, 6.0, 12.0])
    streams = walk(5)
    times, rows = streams.times, np.full((EVENTS, 2), NAN)
    rows[np.repeat(np.arange(EVENTS), np.diff(streams.obs_offsets)), streams.channel] = streams.value
    half = Streams.from_arrays([times], [0.5 * rows], ("a", "b"), 12.0)
    found = logsignatures(embedding.pad(streams, partition)[0].scaled(jnp.asarray(0.5)))
    np.testing.assert_allclose(found, embedding(half, partition).values[0], rtol=1e-12, atol=1e-12)


def test_double_precision_is_kept_where_jax_is_single():
    streams, partition = walk(6), Partition.uniform(3)
    with jax.enable_x64(False):
        assert jnp.zeros(1).dtype == np.float32
        found = Embedding(2).on_device(streams, partition)
        assert jnp.zeros(1).dtype == np.float32
    assert found.values.dtype == np.float64
    np.testing.assert_allclose(found.values, Embedding(2)(streams, partition).values, rtol=1e-13, atol=1e-13)


def test_pad_says_that_it_rounds():
    streams, partition = walk(7), Partition.uniform(3)
    with jax.enable_x64(False):
        with pytest.warns(UserWarning, match=r"JAX is set to single precision.*float32 instead of float64"):
            padded = Embedding(2).pad(streams, partition)
        assert padded.values.dtype == np.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Embedding(2, dtype=np.float32).pad(streams, partition).values.dtype == np.float32


def test_pad_refuses_what_its_precision_cannot_hold():
    streams = Streams.from_arrays([[0.5, 1.0]], [[[1.0, 2.0], [1e39, 3.0]]], ["a", "b"], ids=["p7"])
    cuts = Partition.uniform(1).cuts(streams)
    coordinates = Embedding(1).coordinates(streams.schema)
    with pytest.raises(
        EmbeddingError, match=r"Series 'p7', channel 'a', at 1.0: a value of 1e\+39 is beyond .*float32"
    ):
        pad(streams, cuts, coordinates, np.float32)
    assert np.isfinite(np.asarray(pad(streams, cuts, coordinates, np.float64).values)).all()
    apart = Streams.from_arrays([[0.5, 1.0]], [[[1.7e308], [-1.7e308]]], ["a"], ids=["p7"])
    with pytest.raises(EmbeddingError, match=r"Series 'p7', channel 'a', at 1.0: a change of -inf is beyond"):
        pad(apart, cuts, Embedding(1).coordinates(apart.schema))


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 99),
    offset=st.sampled_from([0.0, 1e3, 1e6, -1e8, 1e12]),
    later_by=st.sampled_from([0.0, 1e4, 1e9, 1e12]),
    unit=st.sampled_from([2.0**-8, 0.25, 8.0]),
    double=st.booleans(),
)
def test_engines_agree_at_any_offset_and_size(seed, offset, later_by, unit, double):
    expected = later(Embedding(2), "host", walk(seed, 0.0, 0.0, unit), 0.0)
    tolerance = 1e-11 if double else 3e-6
    with jax.enable_x64(double):
        for engine in ("host", "device", "online", "index"):
            embedding = Embedding(2, dtype=np.float64 if double else np.float32)
            found = later(embedding, engine, walk(seed, offset, later_by, unit), later_by)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 99), finer=st.sampled_from([1, 4, 32]), offset=st.sampled_from([0.0, 1e8, -1e12]))
def test_engines_agree_at_any_density(seed, finer, offset):
    """Steps in many parts along a straight line are the same path: without counts, the log-signatures are the same."""
    corners = np.cumsum(np.random.default_rng(seed).integers(-99, 99, (8, 2)), axis=0).astype(np.float64) + offset
    shares = np.arange(7 * finer + 1) / finer
    rows = np.stack([np.interp(shares, np.arange(8), column) for column in corners.T], axis=1)
    sparse, dense = (
        Streams.from_arrays([times], [values], ("a", "b"), 8.0)
        for times, values in ((np.arange(8.0), corners), (shares, rows))
    )
    embedding, inside = Embedding(3, counts=False, time=False), Partition.at([0.0, 1 / 64, 8.0])
    expected = embedding(sparse, inside).values[0, 1]
    near = {"rtol": 1e-10, "atol": 1e-10 * np.abs(expected).max()}
    for engine in (embedding, embedding.on_device):
        np.testing.assert_allclose(engine(dense, inside).values[0, 1], expected, **near)
    np.testing.assert_allclose(embedding.index(dense).query([0], [1 / 64], [8.0])[0], expected, **near)
    np.testing.assert_allclose(one_by_one(embedding, dense, np.array([1 / 64, 8.0]))[1], expected, **near)
