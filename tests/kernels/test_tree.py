"""Products from the tree and from sliding stacks equal products taken one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.embedding.host import tensor_size
from logcde.kernels import depth_n, tree
from logcde.kernels._simd import QUAD

WIDTH = 3


def some_elements(rng, count, depth):
    """Group elements that really are some: exponentials of letters."""
    if depth == 2:
        return rng.normal(size=(count, WIDTH * (WIDTH + 1) // 2))
    size = tensor_size(WIDTH, depth)
    out = np.empty((count, size))
    letters, amounts = np.tile(np.arange(WIDTH, dtype=np.int32), count), rng.normal(size=count * WIDTH)
    events = np.arange(count)
    depth_n.compose(
        0, count, events, events + 1, np.zeros(count), np.zeros(count), np.zeros(count),
        np.arange(count + 1) * WIDTH, letters, amounts, WIDTH, False, False, WIDTH, depth,
        np.zeros((count, 0)), np.zeros(1, np.int64), np.zeros(0, np.uint64), np.zeros(0), out,
    )  # fmt: skip
    return out


def one_by_one(elements, depth):
    total = np.zeros(elements.shape[1])
    for element in elements:
        out = np.empty_like(total)
        tree.combine(total, element, WIDTH, depth, out)
        total = out
    return total


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_products_are_associative(depth):
    a, b, c = some_elements(np.random.default_rng(depth), 3, depth)
    left, right, first, second = (np.empty_like(a) for _ in range(4))
    tree.combine(a, b, WIDTH, depth, left)
    tree.combine(left, c, WIDTH, depth, first)
    tree.combine(b, c, WIDTH, depth, right)
    tree.combine(a, right, WIDTH, depth, second)
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_padding_stays_zero():
    element = one_by_one(some_elements(np.random.default_rng(0), 5, 3), 3)
    assert (element.reshape(-1, QUAD)[:, WIDTH:] == 0).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([2, 3]), leaves=st.sampled_from([1, 2, 4, 16]))
def test_ranges_of_the_tree(seed, depth, leaves):
    rng = np.random.default_rng(seed)
    elements = some_elements(rng, leaves + 2, depth)
    nodes = np.zeros((2 * leaves, elements.shape[1]))
    nodes[leaves:] = elements[:leaves]
    tree.grow(nodes, 0, leaves, WIDTH, depth)
    low, high = np.sort(rng.integers(0, leaves + 1, 2))
    out = np.empty((1, elements.shape[1]))
    left, right = elements[leaves:][:, None]
    tree.join(0, 1, left, nodes, np.array([low]), np.array([high]), right, WIDTH, depth, out)
    expected = one_by_one(np.concatenate([left, elements[low:high], right]), depth)
    np.testing.assert_allclose(out[0], expected, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([1, 2, 3]), count=st.integers(1, 20))
def test_windows_that_slide(seed, depth, count):
    rng = np.random.default_rng(seed)
    pieces = some_elements(rng, count, depth)
    low, high = (np.sort(rng.integers(0, count + 1, 12)) for _ in range(2))
    low = np.minimum(low, high)
    out = np.empty((12, pieces.shape[1]))
    tree.slide(pieces, low, high, WIDTH, depth, out)
    for window in range(12):
        expected = one_by_one(pieces[low[window] : high[window]], depth)
        np.testing.assert_allclose(out[window], expected, atol=1e-10)
