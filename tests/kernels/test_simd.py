import numba as nb
import numpy as np
import pytest

from logcde.kernels._lane_simd import (
    LANES,
    STEPS,
    add_changes,
    add_lanes,
    add_pair,
    add_products,
    add_steps,
    load_changes,
    set_outer,
    store_rows,
)
from logcde.kernels._simd import QUAD, add_row


@nb.njit
def call_row(target, i, a, source, j, size):
    add_row(target, nb.uint64(i), a, source, nb.uint64(j), nb.uint64(size))


@nb.njit
def call_lanes(target, i, factor, k, source, j, rows):
    add_lanes(target, nb.uint64(i), factor, nb.uint64(k), source, nb.uint64(j), nb.uint64(rows))


@nb.njit
def call_changes(target, i, source, places, m, lag):
    load_changes(target, nb.uint64(i), source, places, nb.uint64(m), nb.uint64(lag))


@nb.njit
def call_outer(target, i, base, b, share, factor, k, letters, source, j, rows):
    u = nb.uint64
    set_outer(target, u(i), base, u(b), share, factor, u(k), u(letters), source, u(j), u(rows))


@pytest.mark.parametrize("size", [0, 1, QUAD, QUAD + 1, 5 * QUAD])
def test_add_row_adds_whole_quads_only(size):
    rng = np.random.default_rng(size)
    target, source = rng.normal(size=(2, 40))
    expected = target.copy()
    whole = -(-size // QUAD) * QUAD
    expected[3 : 3 + whole] += 0.7 * source[5 : 5 + whole]
    call_row(target, 3, 0.7, source, 5, size)
    np.testing.assert_allclose(target, expected, atol=1e-14)


def test_add_row_within_one_array():
    target = np.arange(12.0)
    call_row(target, 4, 2.0, target, 0, 4)
    np.testing.assert_array_equal(target, [0, 1, 2, 3, 4, 7, 10, 13, 8, 9, 10, 11])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_add_lanes(rows):
    rng = np.random.default_rng(0)
    target, factor, source = rng.normal(size=(3, 4 * LANES))
    expected = target.copy()
    size = rows * LANES
    expected[1 : 1 + size] += np.tile(factor[2 : 2 + LANES], rows) * source[LANES : LANES + size]
    call_lanes(target, 1, factor, 2, source, LANES, rows)
    np.testing.assert_allclose(target, expected, atol=1e-14)


@pytest.mark.parametrize(("letters", "rows"), [(0, 1), (1, 2), (3, 1), (2, 2)])
def test_set_outer(letters, rows):
    target, base, factor, source = np.random.default_rng(0).normal(size=(4, 6 * LANES))
    expected = target.copy()
    size = rows * LANES
    for letter in range(letters):
        scale = np.tile(factor[(3 - letter) * LANES : (4 - letter) * LANES], rows)
        change = 0.25 * scale * source[LANES : LANES + size]
        expected[1 + letter * size : 1 + (letter + 1) * size] = base[letter * size : (letter + 1) * size] + change
    call_outer(target, 1, base, 0, 0.25, factor, 3 * LANES, letters, source, LANES, rows)
    np.testing.assert_allclose(target, expected, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_load_changes_transposes_all_lanes(dtype):
    source = np.random.default_rng(0).normal(size=30 * LANES).astype(dtype)
    target = np.zeros((2 + LANES) * LANES)
    places = np.array([7, 20, 33, 49, 3, 200, 60, 61], np.uint64)
    call_changes(target, LANES, source, places, 2, 3)
    expected = np.zeros((2 + LANES, LANES))
    for lane, place in enumerate(places.astype(int) + 2):
        expected[1:-1, lane] = source[place : place + LANES].astype(float) - source[place - 3 : place - 3 + LANES]
    np.testing.assert_array_equal(target.reshape(2 + LANES, LANES), expected)


u = nb.uint64


@nb.njit
def call_steps(target, factor, source, rows):
    add_steps(target, u(LANES), factor, u(0), u(2 * LANES), source, u(1), u(3 * LANES), u(LANES), u(rows))


@nb.njit
def call_position(target, position, share, source):
    add_changes(target, u(0), position, u(1), share, source, u(0), u(2 * LANES))


@nb.njit
def call_products(target, total, factor, source):
    add_products(target, u(0), total, u(1), factor, u(0), source, u(2))


@nb.njit
def call_pair(target, level, middle, first, second):
    add_pair(target, u(0), level, u(2), middle, u(0), first, u(0), u(LANES), second, u(3), u(2 * LANES))


@nb.njit
def call_store(target, a, b, c, d, source):
    store_rows(target, u(a), u(b), u(c), u(d), source, u(2), u(LANES))


def lanes(array, start, stride):
    """Rows of LANES numbers, one for each of several steps."""
    return np.stack([array[start + step * stride : start + step * stride + LANES] for step in range(STEPS)])


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_add_steps(rows):
    target, factor, source = np.random.default_rng(0).normal(size=(3, 5 * STEPS * LANES))
    expected = target.copy()
    for row in range(rows):
        change = (lanes(factor, 0, 2 * LANES) * lanes(source, 1 + row * LANES, 3 * LANES)).sum(axis=0)
        expected[(1 + row) * LANES : (2 + row) * LANES] += change
    call_steps(target, factor, source, rows)
    np.testing.assert_allclose(target, expected, atol=1e-14)


def test_add_changes():
    position, source = np.random.default_rng(0).normal(size=(2, 2 * STEPS * LANES))
    changes, target = lanes(source, 0, 2 * LANES), np.zeros(STEPS * LANES)
    after = position[1 : 1 + LANES] + np.cumsum(changes, axis=0)
    call_position(target, position, 0.25, source)
    np.testing.assert_allclose(target.reshape(STEPS, LANES), after - 0.75 * changes, atol=1e-14)
    np.testing.assert_allclose(position[1 : 1 + LANES], after[-1], atol=1e-14)


def test_add_products():
    total, factor, source = np.random.default_rng(0).normal(size=(3, 2 * STEPS * LANES))
    sums = total[1 : 1 + LANES] + np.cumsum(lanes(factor, 0, LANES) * lanes(source, 2, LANES), axis=0)
    target = np.zeros(STEPS * LANES)
    call_products(target, total, factor, source)
    np.testing.assert_allclose(target.reshape(STEPS, LANES), sums, atol=1e-14)
    np.testing.assert_allclose(total[1 : 1 + LANES], sums[-1], atol=1e-14)


def test_add_pair():
    level, middle, first, second = np.random.default_rng(0).normal(size=(4, 3 * STEPS * LANES))
    halves, v, w = lanes(middle, 0, LANES), lanes(first, 0, LANES), lanes(second, 3, 2 * LANES)
    after = level[2 : 2 + LANES] + np.cumsum(halves * w, axis=0)
    target = np.zeros(STEPS * LANES)
    call_pair(target, level, middle, first, second)
    np.testing.assert_allclose(target.reshape(STEPS, LANES), after - halves * w + (halves / 2 - v / 12) * w, atol=1e-14)
    np.testing.assert_allclose(level[2 : 2 + LANES], after[-1], atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_store_rows_writes_the_first_lane_last(dtype):
    source = np.random.default_rng(0).normal(size=5 * LANES)
    target = np.zeros(30, dtype)
    call_store(target, 3, 10, 3, 20, source)
    expected = np.zeros(30, dtype)
    for lane, place in ((0, 3), (1, 10), (3, 20)):
        expected[place : place + 4] = source[2 + lane : 2 + lane + 4 * LANES : LANES]
    np.testing.assert_array_equal(target, expected)
