"""`expm`, the branch-free exponential of small blocks, against scipy and extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from logcde.flows.blocks import expm


def _matrices(size: int, norm: float, count: int = 18) -> np.ndarray:
    """General, rotating and damping ones: all with this 1-norm, and none whose exponential overflows."""
    rng = np.random.default_rng(size)
    kinds = 2 if norm > 50 else 3  # always as many matrices, so that little has to be compiled
    general = rng.normal(size=(count // kinds, size, size))
    rotating, damping = general - np.swapaxes(general, 1, 2), -general @ np.swapaxes(general, 1, 2)
    chosen = np.concatenate((rotating, damping, general)[:kinds])
    return chosen * norm / np.maximum(np.abs(chosen).sum(axis=1).max(axis=1), 1e-300)[:, None, None]


def _extended(matrix: np.ndarray) -> np.ndarray:
    """The exponential in extended precision, as far as the machine has it: slow and obvious."""
    matrix = matrix.astype(np.longdouble)
    squarings = max(0, int(np.ceil(np.log2(8 * max(1e-9, float(np.abs(matrix).sum(axis=0).max()))))))
    term = total = np.eye(len(matrix), dtype=np.longdouble)
    for k in range(1, 25):
        term = term @ (matrix / 2**squarings) / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


@pytest.mark.parametrize("size", [1, 3, 4, 8, 12])
@pytest.mark.parametrize("norm", [1e-8, 1e-3, 0.3, 3.0, 40.0, 1e3])
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 2e-16), (np.float32, 1e-7)])
def test_expm_is_exact_over_eleven_orders_of_magnitude(size, norm, dtype, rounding):
    matrices = _matrices(size, norm).astype(dtype)
    found = np.moveaxis(np.asarray(jax.jit(expm)(jnp.moveaxis(jnp.asarray(matrices), 0, -1))), -1, 0)
    # The condition of the exponential grows with the norm, so does what any algorithm can reach; scipy's reaches less.
    for expm_of, allowed in ((_extended, 10 * rounding), (scipy.linalg.expm, max(1e-13, 10 * rounding))):
        expected = np.stack([expm_of(matrix.astype(np.float64)) for matrix in matrices])
        error, scale = (np.abs(part).max(axis=(1, 2)) for part in (found - expected, expected))
        assert (error <= allowed * max(1.0, norm) * scale + np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_expm_gradients_are_finite_for_mixed_norms(dtype):
    blocks = jnp.asarray(np.stack([np.eye(2) * 80, np.eye(2) * 1e-3, -np.eye(2) * 500], axis=-1), dtype)
    slopes = jax.jit(jax.grad(lambda blocks: jnp.sum(jnp.tanh(expm(blocks)))))(blocks)
    assert np.isfinite(slopes).all()


def test_expm_gradients_in_both_modes():
    blocks = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 2)))
    check_grads(lambda blocks: expm(jnp.asarray(blocks)), (blocks,), order=1, modes=("fwd", "rev"), rtol=1e-6)
