import numba as nb
import numpy as np
import pytest

from logcde.kernels._simd import LANES, QUAD, add_lanes, add_row, load_changes


@nb.njit
def call_row(target, i, a, source, j, size):
    add_row(target, nb.uint64(i), a, source, nb.uint64(j), nb.uint64(size))


@nb.njit
def call_lanes(target, i, factor, k, source, j, rows):
    add_lanes(target, nb.uint64(i), factor, nb.uint64(k), source, nb.uint64(j), nb.uint64(rows))


@nb.njit
def call_changes(target, i, source, a, b, c, d, lag):
    load_changes(
        target, nb.uint64(i), source, nb.uint64(a), nb.uint64(b), nb.uint64(c), nb.uint64(d), nb.uint64(lag)
    )  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, QUAD, QUAD + 1, 5 * QUAD])
def test_a_row_is_added_in_whole_quads_and_nothing_else_is_touched(size):
    rng = np.random.default_rng(size)
    target, source = rng.normal(size=(2, 40))
    expected = target.copy()
    whole = -(-size // QUAD) * QUAD
    expected[3 : 3 + whole] += 0.7 * source[5 : 5 + whole]
    call_row(target, 3, 0.7, source, 5, size)
    np.testing.assert_allclose(target, expected, atol=1e-14)


def test_a_row_may_be_added_to_another_row_of_the_same_array():
    target = np.arange(12.0)
    call_row(target, 4, 2.0, target, 0, 4)
    np.testing.assert_array_equal(target, [0, 1, 2, 3, 4, 7, 10, 13, 8, 9, 10, 11])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_lanes(rows):
    rng = np.random.default_rng(0)
    target, factor, source = rng.normal(size=(3, 4 * LANES))
    expected = target.copy()
    size = rows * LANES
    expected[1 : 1 + size] += np.tile(factor[2 : 2 + LANES], rows) * source[LANES : LANES + size]
    call_lanes(target, 1, factor, 2, source, LANES, rows)
    np.testing.assert_allclose(target, expected, atol=1e-14)


def test_changes_of_four_lanes_are_transposed():
    source = np.random.default_rng(0).normal(size=60)
    target = np.zeros(5 * LANES)
    places = (7, 20, 33, 49)
    call_changes(target, LANES + 4, source, *places, 3)
    expected = np.zeros((5, LANES))
    for lane, place in enumerate(places):
        expected[1:5, 4 + lane] = source[place : place + 4] - source[place - 3 : place + 1]
    np.testing.assert_array_equal(target.reshape(5, LANES), expected)
