"""Polygons with a given log-signature (`realisation`), and the corners of a path (`canonical`)."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.algebra import Basis, Lie, exp
from logcde.paths.canonical import corners
from logcde.paths.realisation import log_signature, polygon


@pytest.mark.parametrize(("width", "depth"), [(1, 3), (2, 1), (2, 2), (2, 5), (3, 4), (4, 3)])
def test_polygon_has_the_given_log_signature(width, depth):
    basis = Basis.of_width(width, depth)
    for seed, scale in enumerate((1.0, 1e-3, 30.0)):
        # Level n is of the size of scale**n, as it is for a path of that size.
        sizes = scale ** np.array([len(word) for word in basis.words])
        element = np.random.default_rng(seed).normal(size=basis.dimension) * sizes
        steps = polygon(element, basis)
        assert np.array_equal(steps[0], element[:width])
        np.testing.assert_allclose(log_signature(steps, basis) / sizes, element / sizes, atol=1e-11)
        np.testing.assert_allclose(steps[1:].sum(axis=0), 0, atol=1e-13 * scale)


def test_polygon_keeps_a_small_area_next_to_a_long_step():
    basis = Basis.of_width(2, 3)
    element = np.zeros(basis.dimension)
    element[:3] = 1e6, 1e6, 1e-3
    steps = polygon(element, basis)
    area = np.abs(steps[1:5]).max() ** 2
    np.testing.assert_allclose(area, 1e-3)
    # Level three is then [area, step]/2 with the opposite sign, for the loops come after the step.
    after = log_signature(steps[1:], basis)
    np.testing.assert_allclose(after[3:], [-500.0, 500.0], rtol=1e-6)


def test_polygon_without_terms_has_no_loops():
    basis = Basis.of_width(3, 4)
    assert len(polygon(np.append([1.0, 2.0, 3.0], np.zeros(basis.dimension - 3)), basis)) == 1


def test_log_signature_agrees_with_the_algebra():
    basis = Basis.of_width(3, 4)
    element = np.random.default_rng(0).normal(size=basis.dimension)
    tensor = exp(Lie(jnp.asarray(element), basis))
    np.testing.assert_allclose(log_signature(polygon(element, basis), basis), element, atol=1e-11)
    # The second level of the signature itself, by the signed areas of the polygon.
    vertices = np.append(np.zeros((1, 3)), np.cumsum(polygon(element, basis), axis=0), axis=0)
    middle = (vertices[1:] + vertices[:-1]) / 2
    np.testing.assert_allclose(middle.T @ np.diff(vertices, axis=0), tensor.levels[2].reshape(3, 3), atol=1e-11)


heights = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12)


@given(heights, st.lists(st.integers(0, 11), max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_corners_draw_the_same_path(heights, forced, random):
    at = np.cumsum([random.choice([0.25, 0.5, 1.0]) for _ in heights])
    values = np.array(heights, float)
    fixed = np.zeros(len(at), bool)
    fixed[[place for place in forced if place < len(at)]] = True
    kept = corners(at, values, fixed)
    assert kept[0]
    assert kept[-1]
    assert kept[fixed].all()
    for column in values.T:
        assert np.array_equal(np.interp(at, at[kept], column[kept]), column)
    # Of what is kept nothing more can go: these numbers are exact, so corners are where slopes differ.
    slopes = np.diff(values, axis=0) / np.diff(at)[:, None]
    bent = (slopes[1:] != slopes[:-1]).any(axis=1)
    assert np.array_equal(kept[1:-1], bent | fixed[1:-1])


def test_corners_with_a_tolerance():
    at = np.arange(4.0)
    values = np.array([[0.0], [1.0 + 1e-14], [2.0], [3.0]])
    assert corners(at, values, np.zeros(4, bool)).all()
    assert corners(at, values, np.zeros(4, bool), 1e-12).tolist() == [True, False, False, True]
