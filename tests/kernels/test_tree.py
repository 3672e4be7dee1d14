"""Products from the tree and from sliding stacks equal products computed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.embedding.host import tensor_size
from logcde.kernels import depth_n, tree
from logcde.kernels._simd import QUAD
from logcde.kernels.records import Alphabet, Factors, Intervals, TermMap, TreeQueries

WIDTH = 3


def some_elements(rng, count, depth):
    """Exponentials of letters."""
    if depth == 2:
        return rng.normal(size=(count, WIDTH * (WIDTH + 1) // 2))
    size = tensor_size(WIDTH, depth)
    out = np.empty((count, size))
    letters, amounts = np.tile(np.arange(WIDTH, dtype=np.int32), count), rng.normal(size=count * WIDTH)
    events, zeros = np.arange(count), np.zeros(count)
    intervals = Intervals(np.zeros_like(events), events, events + 1, zeros, zeros)
    factors = Factors(zeros, np.arange(count + 1) * WIDTH, letters, amounts, np.zeros((count, 0)))
    alphabet = Alphabet(channels=WIDTH, counted=False, timed=False, width=WIDTH, depth=depth)
    no_terms = TermMap(np.zeros(1, np.int64), np.zeros(0, np.uint64), np.zeros(0))
    depth_n.compose(0, count, intervals, factors, alphabet, no_terms, out)
    return out


def one_by_one(elements, depth):
    total = np.zeros(elements.shape[1])
    for element in elements:
        out = np.empty_like(total)
        tree.combine(total, element, WIDTH, depth, out)
        total = out
    return total


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_combine_is_associative(depth):
    a, b, c = some_elements(np.random.default_rng(depth), 3, depth)
    left, right, first, second = (np.empty_like(a) for _ in range(4))
    tree.combine(a, b, WIDTH, depth, left)
    tree.combine(left, c, WIDTH, depth, first)
    tree.combine(b, c, WIDTH, depth, right)
    tree.combine(a, right, WIDTH, depth, second)
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_combine_keeps_padding_zero():
    element = one_by_one(some_elements(np.random.default_rng(0), 5, 3), 3)
    assert (element.reshape(-1, QUAD)[:, WIDTH:] == 0).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([2, 3]), leaves=st.sampled_from([1, 2, 4, 16]))
def test_join_matches_products_one_by_one(seed, depth, leaves):
    rng = np.random.default_rng(seed)
    elements = some_elements(rng, leaves + 2, depth)
    nodes = np.zeros((2 * leaves, elements.shape[1]))
    nodes[leaves:] = elements[:leaves]
    tree.grow(nodes, 0, leaves, WIDTH, depth)
    low, high = np.sort(rng.integers(0, leaves + 1, 2))
    out = np.empty((1, elements.shape[1]))
    left, right = elements[leaves:][:, None]
    queries = TreeQueries(left, np.array([low]), np.array([high]), right)
    tree.join(0, 1, queries, nodes, WIDTH, depth, out)
    expected = one_by_one(np.concatenate([left, elements[low:high], right]), depth)
    np.testing.assert_allclose(out[0], expected, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([1, 2, 3]), count=st.integers(1, 20))
def test_slide_matches_products_one_by_one(seed, depth, count):
    rng = np.random.default_rng(seed)
    pieces = some_elements(rng, count, depth)
    low, high = (np.sort(rng.integers(0, count + 1, 12)) for _ in range(2))
    low = np.minimum(low, high)
    out = np.empty((12, pieces.shape[1]))
    tree.slide(pieces, low, high, WIDTH, depth, out)
    for window in range(12):
        expected = one_by_one(pieces[low[window] : high[window]], depth)
        np.testing.assert_allclose(out[window], expected, atol=1e-10)
