import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from logcde.embedding import host
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.device import embed, logsignatures
from logcde.embedding.padding import pad
from logcde.errors import ScanError
from logcde.scans import Associative, Chunked, Sequential
from logcde.streams import Partition, Schema, Streams, Term
from tests.embedding.reference import CASES, NAN, RAGGED, plain, reference, with_continuous

SCANS = [Sequential(), Associative(), Chunked(4)]


def on_device(streams, partition, coordinates, dtype=np.float64, scan=SCANS[0]):
    return embed(streams, partition.cuts(streams), coordinates, dtype, scan)


def padded_to(streams, partition, coordinates):
    return pad(streams, partition.cuts(streams), coordinates)


def prepared(streams, depth=2, counts=True, time=True):
    return Coordinates(streams.schema, depth, counts, time)


def check(case, scan):
    make, partition, *options = case
    streams = make()
    coordinates = prepared(streams, *options)
    logsigs = on_device(streams, partition, coordinates, scan=scan)
    lengths = np.diff(partition.cuts(streams).offsets) - 1
    mask = np.arange(logsigs.values.shape[1]) < lengths[:, None]
    expected = np.stack(list(reference(streams, partition, coordinates)))
    np.testing.assert_array_equal(logsigs.lengths, lengths)
    np.testing.assert_allclose(np.asarray(logsigs.values)[mask], expected, rtol=1e-11, atol=1e-11)
    assert not np.asarray(logsigs.values)[~mask].any()
    assert logsigs.basis == coordinates.basis


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_device_matches_dense_reference(case):
    check(case, Sequential())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_device_matches_host_engine(case):
    make, partition, *options = case
    streams = make()
    coordinates = prepared(streams, *options)
    values, lengths = host.embed(streams, partition.cuts(streams), coordinates, np.float64)
    ours = on_device(streams, partition, coordinates)
    np.testing.assert_array_equal(ours.lengths, lengths)
    np.testing.assert_allclose(ours.values, values, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scan", [Associative(), Chunked(4), Chunked(128)], ids=repr)
def test_device_is_independent_of_the_scan(scan):
    check(CASES["continuous, no time"], scan)


@pytest.mark.parametrize("scan", [Sequential(), Chunked(4)], ids=repr)
def test_pad_more_changes_nothing(scan):
    streams, partition = with_continuous(), Partition.uniform(3)
    coordinates = prepared(streams, 2, False, True)
    together = on_device(streams, partition, coordinates, scan=scan)
    for series in (0, 1):
        alone = on_device(streams[series], partition, coordinates, scan=scan)
        np.testing.assert_allclose(together.values[series], alone.values[0], rtol=1e-13, atol=1e-13)


def test_device_streams_without_events_have_their_gaps():
    whole = plain()
    empty = dataclasses.replace(
        whole,
        offsets=np.zeros(4, np.int64),
        times=np.zeros(0),
        obs_offsets=np.zeros(1, np.int64),
        channel=np.zeros(0, np.int32),
        value=np.zeros(0),
        terms=np.zeros((0, 0)),
    )
    values = np.asarray(on_device(empty, Partition.uniform(2), prepared(empty)).values)
    np.testing.assert_allclose(values[:, :, 4], np.array([[2.0, 2.0], [2.5, 2.5], [2.0, 2.0]]))
    assert not np.delete(values, 4, axis=2).any()


def generic():
    """No stamp meets another, so that everything is differentiable in times."""
    streams = Streams.from_arrays(
        [[0.3, 0.8, 1.7], [1.2]], [[[1.0, NAN], [2.0, 0.5], [NAN, 1.5]], [[0.2, 0.1]]], channels=("a", "b"), horizon=2.0
    )
    schema = Schema(("a", "b"), terms=(Term("area", ("a", "b")),))
    streams = dataclasses.replace(streams, schema=schema, terms=np.array([[0.1], [-0.4], [0.2], [0.7]]))
    return streams.with_continuous(("dose",), [[0.0, 0.9, 2.0]] * 2, [[[1.0], [2.0], [-1.0]]] * 2)


@pytest.mark.parametrize(
    ("scan", "modes"), [(Sequential(), ("fwd", "rev")), (Associative(), ("rev",)), (Chunked(4), ("rev",))], ids=repr
)
def test_device_gradients_in_values_terms_times_and_knots(scan, modes):
    padded = padded_to(generic(), Partition.at([0.0, 0.5, 1.1, 2.0]), prepared(generic(), 2, False, True))

    def moving(one):
        return one.values, one.terms, one.times, one.cuts, one.knot_times, one.knot_values

    @jax.jit
    def numbers(*leaves):
        moved = eqx.tree_at(moving, padded, leaves)
        return jax.vmap(functools.partial(logsignatures, scan=scan))(moved)

    check_grads(numbers, moving(padded), order=1, modes=modes, rtol=1e-5, atol=1e-5)


def test_device_gradients_at_padding_and_ties_are_finite():
    streams = with_continuous()
    padded = padded_to(streams, RAGGED, prepared(streams))

    @jax.jit
    @jax.grad
    def gradient(floats):
        moved = eqx.combine(floats, padded)
        return jnp.sum(jax.vmap(logsignatures)(moved) ** 2)

    slopes = gradient(eqx.filter(padded, eqx.is_inexact_array))
    for leaf in jax.tree.leaves(slopes):
        assert np.isfinite(leaf).all()
    assert not np.asarray(slopes.values)[~np.asarray(padded.observed)].any()
    assert np.asarray(slopes.values)[np.asarray(padded.observed)].all()


def test_device_single_precision():
    streams = with_continuous()
    coordinates = prepared(streams)
    single = on_device(streams, RAGGED, coordinates, dtype=np.float32)
    double = on_device(streams, RAGGED, coordinates)
    assert single.values.dtype == np.float32
    assert double.values.dtype == np.float64
    np.testing.assert_allclose(single.values, double.values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scan", SCANS, ids=repr)
def test_device_traces_once_for_each_shape(scan):
    traces = []

    @jax.jit
    def embedded(padded):
        traces.append(None)
        return jax.vmap(functools.partial(logsignatures, scan=scan))(padded)

    rng = np.random.default_rng(0)
    for _ in range(3):
        streams = Streams.from_arrays([np.sort(rng.random(6))], [rng.normal(size=(6, 2))], horizon=1.0)
        embedded(padded_to(streams, Partition.uniform(4), prepared(streams)))
    assert len(traces) == 1


def test_padded_streams_getitem():
    streams = plain()
    padded = padded_to(streams, RAGGED, prepared(streams))
    whole = on_device(streams, RAGGED, prepared(streams)).values
    embedded = jax.jit(jax.vmap(logsignatures))
    np.testing.assert_allclose(embedded(padded[np.array([2, 0, 2])]), whole[np.array([2, 0, 2])], rtol=1e-12)


def test_device_has_no_host_callback():
    streams = generic()
    padded = padded_to(streams, Partition.uniform(2), prepared(streams))
    assert "callback" not in str(jax.make_jaxpr(jax.vmap(logsignatures))(padded))


def test_chunked_refuses_an_empty_chunk():
    with pytest.raises(ScanError, match="at least one step"):
        Chunked(0)
