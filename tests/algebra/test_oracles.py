"""The same numbers as independent libraries."""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde.algebra import Basis, Lie, Tensor, bch, expand, log, multiply_exp, project, unit


def random_path(width, seed=0, points=7):
    return np.random.default_rng(seed).normal(size=(points, width))


def signature(path, basis):
    return reduce(jax.jit(multiply_exp), jnp.diff(jnp.asarray(path), axis=0), unit(basis))


def logarithm(tensor):
    return project(log(tensor))


def split(flat, basis, start):
    """Cut flat tensors into levels `start`..depth."""
    sizes = [basis.width**level for level in range(start, basis.depth + 1)]
    return tuple(jnp.split(flat, np.cumsum(sizes)[:-1], axis=-1))


@pytest.mark.parametrize(("width", "depth"), [(1, 3), (2, 1), (2, 7), (3, 5), (5, 4), (9, 3)])
def test_log_signature_matches_iisignature(width, depth):
    iisignature = pytest.importorskip("iisignature")
    basis, path = Basis.of_width(width, depth), random_path(width)
    ours = signature(path, basis)
    np.testing.assert_allclose(jnp.concatenate(ours.levels[1:]), iisignature.sig(path, depth), rtol=1e-10, atol=1e-10)
    if width == 1 or depth == 1:
        return  # not offered by iisignature
    prepared = iisignature.prepare(width, depth)
    assert basis.labels == tuple(label.replace(",", ", ") for label in iisignature.basis(prepared))
    theirs = iisignature.logsig(path, prepared)
    np.testing.assert_allclose(jax.jit(logarithm)(ours).coordinates, theirs, rtol=1e-9, atol=1e-9)


def test_bch_matches_roughpy_jax():
    width, depth = 3, 4
    roughpy = pytest.importorskip("roughpy_jax")
    basis, theirs = Basis.of_width(width, depth), roughpy.LieBasis(width, depth)
    # Their basis is a Hall basis: its elements, as tensors, give the change of coordinates.
    hall = jax.jit(roughpy.lie_to_tensor)(roughpy.Lie(jnp.eye(basis.dimension), theirs)).data
    tensors = Tensor(split(jnp.asarray(hall), basis, 0), basis)
    change = project(tensors).coordinates
    np.testing.assert_allclose(expand(Lie(change, basis)).levels[depth], tensors.levels[depth], atol=1e-12)
    x, y = jnp.asarray(np.random.default_rng(0).normal(size=(2, basis.dimension)))
    expected = jax.jit(roughpy.cbh)(roughpy.Lie(x, theirs), roughpy.Lie(y, theirs)).data
    ours = jax.jit(bch)(Lie(x @ change, basis), Lie(y @ change, basis))
    np.testing.assert_allclose(ours.coordinates, jnp.asarray(expected) @ change, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 2])
def test_log_signature_matches_signax(depth):
    signax = pytest.importorskip("signax")
    basis, path = Basis.of_width(4, depth), random_path(4)
    # Its coordinates are those of Lyndon words, the same as those of brackets to depth 2.
    expected = signax.logsignature(jnp.asarray(path), depth)
    np.testing.assert_allclose(logarithm(signature(path, basis)).coordinates, expected, rtol=1e-10, atol=1e-10)
