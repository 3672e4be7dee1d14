"""No library at all: the closed form of depth 2, written in a few lines of NumPy or JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.cases import CannotDo, Engine, Role
from benchmarks.coordinates import LyndonBrackets
from benchmarks.peers.abstract import AbstractPeer, AbstractStream
from benchmarks.peers.xla import engine


def _only_depth_two(depth: int) -> None:
    if depth != 2:
        raise CannotDo("is a closed form of depth 2")


class ClosedNumPy(AbstractPeer):
    """Increments and areas in NumPy, whose matrix products may use all cores."""

    name = "closed form, NumPy"
    module = "numpy"
    distribution = "numpy"
    role = Role.BASELINE
    coordinates = LyndonBrackets()
    parallel = True
    batched = True
    buckets = 64

    def windows(self, width: int, depth: int) -> Engine:
        """One matrix product for each window."""
        _only_depth_two(depth)
        upper = np.triu_indices(width, 1)

        def logsig(batch: np.ndarray) -> np.ndarray:
            steps = np.diff(batch, axis=1)
            before = batch[:, :-1] - batch[:, :1]
            tensor = np.matmul(before.transpose(0, 2, 1), steps)
            areas = (tensor[:, *upper] - tensor[:, *upper[::-1]]) / 2
            return np.concatenate([batch[:, -1] - batch[:, 0], areas], axis=1)

        return Engine(list, lambda batches: [logsig(batch) for batch in batches])

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """One outer product for each step."""
        _only_depth_two(depth)
        return lambda: _Outer(width)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Running sums of outer products."""
        _only_depth_two(depth)
        upper = np.triu_indices(width, 1)

        def running(increments: np.ndarray) -> np.ndarray:
            after = np.cumsum(increments, axis=0)
            before = after - increments
            twice = before[:, upper[0]] * increments[:, upper[1]] - before[:, upper[1]] * increments[:, upper[0]]
            return np.concatenate([after, np.cumsum(twice, axis=0) / 2], axis=1)

        return running


class _Outer(AbstractStream):
    def __init__(self, width: int) -> None:
        self.upper = np.triu_indices(width, 1)
        self.increment, self.tensor = np.zeros(width, np.float32), np.zeros((width, width), np.float32)

    def update(self, increment: np.ndarray) -> None:
        self.tensor += np.multiply.outer(self.increment, increment)
        self.increment = self.increment + increment

    def push(self, increment: np.ndarray) -> np.ndarray:
        self.tensor += np.multiply.outer(self.increment, increment)
        self.increment = self.increment + increment
        return np.concatenate([self.increment, (self.tensor - self.tensor.T)[self.upper] / 2])

    def read(self, logsig: np.ndarray) -> np.ndarray:
        return logsig


class ClosedJax(AbstractPeer):
    """The same in JAX."""

    name = "closed form, JAX"
    module = "jax"
    distribution = "jax"
    role = Role.BASELINE
    coordinates = LyndonBrackets()
    parallel = True
    batched = True
    buckets = 16

    def windows(self, width: int, depth: int) -> Engine:
        """A scan over the steps of all windows at once."""
        _only_depth_two(depth)

        def logsig(batch):
            increments = jnp.moveaxis(jnp.diff(batch, axis=1), 1, 0)
            step, start = _scanned(width, increments)
            (after, twice), _ = jax.lax.scan(lambda state, dx: (step(state, dx), None), start, increments)
            return jnp.concatenate([after, twice / 2], axis=-1)

        return engine(logsig)

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Left to the libraries, whose jitted steps do the same."""
        raise CannotDo("a jitted step is measured by signax and roughpy-jax")

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """A scan over the steps that keeps every state."""
        _only_depth_two(depth)

        @jax.jit
        def running(increments):
            step, start = _scanned(width, increments)

            def keep(state, increment):
                after, twice = step(state, increment)
                return (after, twice), jnp.concatenate([after, twice / 2])

            return jax.lax.scan(keep, start, increments)[1]

        return lambda increments: running(increments).block_until_ready()


def _scanned(width: int, increments: jax.Array) -> tuple[Callable, tuple[jax.Array, jax.Array]]:
    """One step of increments and twice the areas, and where they start."""
    left, right = np.triu_indices(width, 1)

    def step(state, increment):
        before, twice = state
        area = before[..., left] * increment[..., right] - before[..., right] * increment[..., left]
        return before + increment, twice + area

    batch = increments.shape[1:-1]
    return step, (jnp.zeros((*batch, width), increments.dtype), jnp.zeros((*batch, left.size), increments.dtype))
