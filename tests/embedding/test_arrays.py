"""`logsignature` of arrays against streams, an independent library, and the product of dense factors."""

import numpy as np
import pytest

import logcde as lc
from logcde import Embedding, Partition, Streams
from logcde.algebra import Basis
from logcde.embedding import arrays, logsignature
from logcde.errors import EmbeddingError

SHAPES = [(1, 1), (1, 2), (3, 1), (7, 9), (8, 17), (9, 40), (20, 3)]


def from_streams(paths, depth, partition=None):
    """The same by the ordinary route, where a path starts from 0."""
    embedding = Embedding(depth, counts=False, time=False, dtype=paths.dtype)
    return embedding(
        Streams.from_dense(paths, channels_first=False), Partition.uniform(1) if partition is None else partition
    ).values


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_equals_streams_to_the_bit(depth, dtype, channels):
    rng = np.random.default_rng(depth)
    for series, steps in SHAPES[3:]:
        paths = rng.normal(size=(series, steps, channels)).astype(dtype)
        based = logsignature(paths, depth, basepoint=True)
        assert based.dtype == dtype
        np.testing.assert_array_equal(based, from_streams(paths, depth)[:, 0])
        moved = logsignature(paths - paths[:, :1], depth, basepoint=True)
        np.testing.assert_allclose(logsignature(paths, depth), moved, atol=1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("depth", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_matches_iisignature(depth, shape):
    iisignature = pytest.importorskip("iisignature")
    paths = np.random.default_rng(depth).normal(size=(*shape, 3))
    expected = iisignature.logsig(paths, iisignature.prepare(3, depth))
    got = logsignature(paths, depth)
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(got / scale, expected / scale, atol=1e-12)


@pytest.mark.parametrize(("channels", "depth"), [(64, 2), (12, 4)])
def test_wide_paths_take_the_kernels_of_single_intervals(channels, depth):
    """Too many coordinates for lanes: the same numbers in another way."""
    assert not arrays.fits_lanes(arrays._coordinates(channels, depth))
    paths = np.random.default_rng(0).normal(size=(3, 6, channels))
    got = logsignature(paths, depth)
    few = logsignature(paths[..., :3], depth)
    labels, wide = Basis.of_width(3, depth).labels, Basis.of_width(channels, depth).labels
    np.testing.assert_allclose(got[:, [wide.index(label) for label in labels]], few, atol=1e-11)
    based = from_streams(paths, depth)[:, 0]
    np.testing.assert_allclose(logsignature(paths, depth, basepoint=True), based, atol=1e-11)


@pytest.mark.parametrize("basepoint", [True, False])
@pytest.mark.parametrize(("steps", "every"), [(1, 3), (4, 1), (10, 4), (40, 17), (12, 50)])
def test_windows_are_paths_of_their_own(basepoint, steps, every):
    paths = np.random.default_rng(steps).normal(size=(5, steps, 2))
    based = np.concatenate([np.zeros((5, 1, 2)), paths], axis=1) if basepoint else paths
    got = logsignature(paths, 3, basepoint=basepoint, every=every)
    starts = range(0, max(1, based.shape[1] - 1), every)
    assert got.shape == (5, len(starts), 5)
    for window, start in enumerate(starts):
        expected = logsignature(based[:, start : start + every + 1], 3)
        np.testing.assert_allclose(got[:, window], expected, atol=1e-12)


def test_windows_from_zero_are_those_of_streams():
    paths = np.random.default_rng(0).normal(size=(9, 25, 3))
    cuts = Partition.at([0.0, 8.0, 16.0, 24.0])  # stamps count from 0, so the cut at 8 is before the ninth event
    got = logsignature(paths, 2, basepoint=True, every=8)
    np.testing.assert_array_equal(got[:, :2], from_streams(paths, 2, cuts)[:, :2])


def test_any_number_of_axes_before_steps_and_channels():
    paths = np.random.default_rng(0).normal(size=(2, 3, 7, 2))
    got = logsignature(paths, 2)
    assert got.shape == (2, 3, 3)
    np.testing.assert_array_equal(got[1, 2], logsignature(paths[1, 2], 2))
    assert logsignature(paths, 2, every=3).shape == (2, 3, 2, 3)
    assert logsignature(paths[:0], 2).shape == (0, 3, 3)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_single_point_does_not_move(depth):
    point = np.full((2, 1, 2), 3.0)
    assert not logsignature(point, depth).any()
    moved = logsignature(point, depth, basepoint=True)
    assert moved[:, :2].tolist() == [[3.0, 3.0]] * 2
    np.testing.assert_allclose(moved[:, 2:], 0.0, atol=1e-14)


def test_arrays_of_other_kinds_and_orders():
    paths = np.random.default_rng(0).integers(-5, 5, size=(4, 3, 10))
    turned = paths.transpose(0, 2, 1)  # not contiguous
    expected = logsignature(np.ascontiguousarray(turned, np.float64), 3)
    for given in (turned, turned.astype(float), turned.tolist(), np.asfortranarray(turned), turned.astype(">f8")):
        got = logsignature(given, 3)
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, expected)
    single = logsignature(turned.astype(np.float32)[:, ::-1], 3)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, logsignature(turned[:, ::-1].copy(), 3).astype(np.float32))


def test_the_array_stays_as_it_is():
    paths = np.random.default_rng(0).normal(size=(4, 10, 2))
    before = paths.copy()
    logsignature(paths, 2)
    paths[0, 0, 0] = 7.0  # still writeable
    paths[0, 0, 0] = before[0, 0, 0]
    np.testing.assert_array_equal(paths, before)


def test_offsets_cost_no_digits():
    paths = np.random.default_rng(0).integers(-8, 8, size=(3, 20, 2)) / 8.0
    np.testing.assert_array_equal(logsignature(paths + 2.0**40, 2), logsignature(paths, 2))


def test_many_paths_use_threads_to_the_same_bits(monkeypatch):
    paths = np.random.default_rng(0).normal(size=(40, 30, 3)).astype(np.float32)
    alone = logsignature(paths, 3)
    monkeypatch.setattr("logcde.kernels.threads.SMALL", 0)
    np.testing.assert_array_equal(logsignature(paths, 3), alone)


def test_large_batches_do_not_remember_their_windows():
    paths = np.random.default_rng(0).normal(size=(arrays.REMEMBERED // 2 + 1, 2, 1))
    before = arrays._windows.cache_info()
    np.testing.assert_allclose(logsignature(paths, 1)[:, 0], paths[:, 1, 0] - paths[:, 0, 0], atol=1e-14)
    assert arrays._windows.cache_info() == before


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("steps", [1, 2, 30])
@pytest.mark.parametrize("every", [None, 4])
def test_values_that_are_not_finite_are_refused_with_their_place(value, steps, every):
    for step in {0, steps // 2, steps - 1}:
        paths = np.zeros((11, steps, 3), np.float32)
        paths[9, step, 2] = value
        with pytest.raises(EmbeddingError, match=f"^Path 9, step {step}, channel 2 is {value}. Paths are complete"):
            logsignature(paths, 2, every=every)


def test_overflow_is_refused():
    paths = np.zeros((5, 3, 2), np.float32)
    paths[3, 1] = 1e30
    paths[3, 2, 0] = -1e30
    with pytest.raises(EmbeddingError, match=r"path 3 has numbers beyond the range of float32. .* double precision"):
        logsignature(paths, 2)
    assert np.isfinite(logsignature(paths.astype(np.float64), 2)).all()


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        (np.zeros(3), {}, r"shape \(3,\) is no path"),
        (np.zeros((3, 0, 2)), {}, "no points or no channels"),
        (np.zeros((3, 2, 0)), {}, "no points or no channels"),
        (np.zeros((3, 2), complex), {}, "complex128 are no numbers"),
        (np.array([["a", "b"]]), {}, "are no numbers"),
        (np.zeros((3, 2)), {"depth": 0}, "depth is 0"),
        (np.zeros((3, 2)), {"depth": True}, "depth is True"),
        (np.zeros((3, 2)), {"every": 0}, "at least one step"),
    ],
)
def test_what_is_no_path_is_refused(paths, options, message):
    with pytest.raises(EmbeddingError, match=message):
        logsignature(paths, **options)


def test_it_is_a_name_of_the_top_level():
    assert lc.logsignature is logsignature
