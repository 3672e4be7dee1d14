"""The branch-free exponential of small blocks, against scipy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from logcde.flows.exponential import expm, expm1


def _matrices(size: int, norm: float, count: int = 6) -> np.ndarray:
    """General, rotating and damping ones: all with this 1-norm, and none whose exponential overflows."""
    rng = np.random.default_rng(size)
    general = rng.normal(size=(count, size, size))
    kinds = (general, general - np.swapaxes(general, 1, 2), -general @ np.swapaxes(general, 1, 2))
    chosen = np.concatenate(kinds[1:] if norm > 50 else kinds)
    return chosen * norm / np.maximum(np.abs(chosen).sum(axis=1).max(axis=1), 1e-300)[:, None, None]


@pytest.mark.parametrize("size", [1, 3, 4, 8, 12])
@pytest.mark.parametrize("norm", [1e-8, 1e-3, 0.3, 3.0, 40.0, 1e3])
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 2e-16), (np.float32, 1e-7)])
def test_agrees_with_scipy_over_eleven_orders_of_magnitude(size, norm, dtype, rounding):
    matrices = _matrices(size, norm).astype(dtype)
    matrices = matrices if matrices.any() else np.zeros((1, size, size), dtype)
    expected = np.stack([scipy.linalg.expm(matrix.astype(np.float64)) for matrix in matrices])
    found = np.asarray(jax.jit(expm)(jnp.moveaxis(jnp.asarray(matrices), 0, -1)))
    error = np.abs(np.moveaxis(found, -1, 0) - expected).max(axis=(1, 2)) / np.abs(expected).max(axis=(1, 2))
    # The condition of the exponential grows with the norm, so does what any algorithm can reach.
    assert error.max() <= 20 * rounding * max(1.0, norm)


def test_small_exponentials_keep_their_digits():
    tiny = jnp.full((1, 1, 1), 1e-12)
    assert float(expm1(tiny)[0, 0, 0]) == pytest.approx(1e-12, rel=1e-14)


def test_gradients_in_both_modes():
    blocks = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 2)))
    check_grads(expm, (blocks,), order=2, modes=("fwd", "rev"), rtol=1e-6)
