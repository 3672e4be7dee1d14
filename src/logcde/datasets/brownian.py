"""Brownian rough paths with Lévy area, and a linear system that they drive (`sec:bm_results`, `app:brownian-rde`).

A path is given by the log-signatures of its fine steps, up to level two. The area of a step is that of a Brownian
motion on a finer grid, plus a Gaussian with the variance of the remainder, so that the area of a step of length h has
mean 0 and variance h^2 / 4. The system dX = V1 X o dW1 + V2 X o dW2 is solved on the same increments and areas: each
fine step by the exponential of its matrix.
"""

import dataclasses
import functools
from collections.abc import Sequence
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64

from logcde.algebra import Basis
from logcde.datasets.sinusoid import Dataset
from logcde.embedding import LogSignatures
from logcde.errors import DatasetError
from logcde.flows import Dense, LinearDynamics
from logcde.streams import Partition, Streams

STEPS = 2048
LETTERS = ("W1", "W2", "W3", "W4")
V1 = 0.15 * np.array([[-0.5, -1.0], [1.0, -0.5]])
V2 = 0.15 * np.array([[-0.2, 0.8], [0.3, -0.7]])
START = np.array([1.0, 0.0])
SUBSTEPS = 8
"""Points of the finer grid in one step."""
BATCH = 64


@dataclasses.dataclass(frozen=True, eq=False)
class BrownianPaths:
    """Lie elements of the steps of many paths over `LETTERS`, and states of the driven system at the grid points."""

    increments: Float64[np.ndarray, "series step lie"]
    states: Float64[np.ndarray, "series point output"]

    def __len__(self) -> int:
        return len(self.increments)

    @functools.cached_property
    def streams(self) -> Streams:
        """One event in the middle of each fine step, with the areas as higher-order terms.

        A query point on the grid then lies between two events, and each step belongs to one interval.
        """
        steps = self.increments.shape[1]
        times = (np.arange(steps) + 0.5) / steps
        return Streams.from_increments([times] * len(self), self.increments, LETTERS, depth=2, horizon=1.0)

    def dataset(self, cuts: Sequence[int] | np.ndarray) -> Dataset:
        """Return the data set whose targets are the states at these grid points.

        Args:
            cuts: Increasing indices of grid points, from 0 to the number of steps.

        >>> paths = brownian(series=3, seed=0, steps=16)
        >>> paths.dataset([0, 5, 16]).targets.shape
        (3, 2, 2)
        """
        cuts = np.asarray(cuts)
        partition = Partition.at(cuts / self.increments.shape[1])
        return Dataset(self.streams, partition, self.states[:, cuts[1:]])


def brownian(series: int, seed: int | Sequence[int], steps: int = STEPS) -> BrownianPaths:
    """Generate Brownian paths, and solve the paper's system on them.

    Args:
        series: Number of paths.
        seed: Seed of the paths.
        steps: Number of fine steps on [0, 1].

    >>> brownian(series=2, seed=0, steps=16).increments.shape
    (2, 16, 10)
    """
    if series < 1 or steps < 1:
        raise DatasetError(f"series={series} and steps={steps} are too few.", "Generate at least one of each.")
    rng = np.random.default_rng(seed)
    sizes = [min(BATCH, series - first) for first in range(0, series, BATCH)]
    increments = np.concatenate([_draw(size, steps, rng) for size in sizes])
    return BrownianPaths(increments, solve(increments, Basis(LETTERS, 2)))


def aligned_cuts(intervals: int, seed: int | Sequence[int], steps: int = STEPS) -> np.ndarray:
    """Draw the cuts of `intervals` intervals on the grid: 0, points without replacement, and the last point.

    >>> aligned_cuts(4, seed=0, steps=16)
    array([ 0,  8,  9, 12, 16])
    """
    if not 1 <= intervals <= steps:
        raise DatasetError(f"{steps} steps cannot be cut into {intervals} intervals.", f"Choose 1 to {steps}.")
    inner = np.random.default_rng(seed).choice(steps - 1, intervals - 1, replace=False) + 1
    return np.concatenate([[0], np.sort(inner), [steps]])


def solve(
    logsigs: Float64[np.ndarray, "series interval lie"], basis: Basis
) -> Float64[np.ndarray, "series point output"]:
    """Solve the true system by the Log-ODE method, driven by log-signatures whose letters include W1 and W2.

    On fine steps the states are exact. On query intervals they are a reference for models with the same inputs.

    >>> still = solve(np.zeros((1, 3, 10)), Basis(LETTERS, 2))
    >>> still[0, :, 0]
    array([1., 1., 1., 1.])
    """
    matrices = np.zeros((basis.width, 2, 2))
    matrices[basis.letters.index("W1")], matrices[basis.letters.index("W2")] = V1, V2
    with jax.enable_x64(True):
        field = eqx.tree_at(
            lambda field: field.matrices, Dense(basis, 2, dtype=jnp.float64, key=jax.random.key(0)), matrices
        )
        parts = [logsigs[first : first + BATCH] for first in range(0, len(logsigs), BATCH)]
        ends = np.concatenate([np.asarray(_unrolled(LinearDynamics(field), jnp.asarray(part))) for part in parts])
    return np.concatenate([np.broadcast_to(START, (len(ends), 1, 2)), ends], axis=1)


def oracle(logsigs: LogSignatures) -> Float64[np.ndarray, "series interval output"]:
    """Solve the true system on the log-signatures of query intervals: the state at the end of each."""
    return solve(np.asarray(logsigs.values, np.float64), logsigs.basis)[:, 1:]


@eqx.filter_jit
def _unrolled(dynamics: LinearDynamics, logsigs: Array) -> Array:
    length = jnp.asarray(logsigs.shape[1])
    return jax.vmap(lambda one: dynamics.unroll(jnp.asarray(START), one, length))(logsigs)


def _draw(series: int, steps: int, rng: np.random.Generator) -> Float64[np.ndarray, "series step lie"]:
    """Draw the increments of the letters, then the areas of their pairs, in the order of the Lyndon basis."""
    letters = len(LETTERS)
    fine = rng.standard_normal((letters, series, steps, SUBSTEPS)) * (steps * SUBSTEPS) ** -0.5
    before = np.cumsum(fine, axis=-1) - fine
    pairs = list(combinations(range(letters), 2))
    rest = rng.standard_normal((len(pairs), series, steps)) * (0.5 / (steps * SUBSTEPS**0.5))
    areas = [
        0.5 * np.einsum("...f,...f->...", before[i], fine[j])
        - 0.5 * np.einsum("...f,...f->...", before[j], fine[i])
        + rest[pair]
        for pair, (i, j) in enumerate(pairs)
    ]
    return np.stack([*fine.sum(axis=-1), *areas], axis=-1)
