"""Libraries in JAX: signax and roughpy-jax. XLA uses the cores it finds."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.cases import Engine, Role
from benchmarks.coordinates import HallBrackets, LyndonWords
from benchmarks.peers.abstract import AbstractPeer, AbstractStream


def engine(logsig: Callable[[jax.Array], jax.Array]) -> Engine:
    """An engine from a function of one batch."""
    compiled = jax.jit(logsig)

    def load(batches: Sequence[np.ndarray]) -> list[jax.Array]:
        return jax.block_until_ready([jnp.asarray(batch) for batch in batches])

    return Engine(load, lambda batches: jax.block_until_ready([compiled(batch) for batch in batches]))


class Stepped(AbstractStream):
    """A stream from two jitted steps: state and increment to the next state, and to log-signature as well."""

    def __init__(self, state: Any, update: Callable, push: Callable) -> None:
        self.state, self._update, self._push = state, update, push

    def update(self, increment: np.ndarray) -> None:
        """One compiled step."""
        self.state = jax.block_until_ready(self._update(self.state, increment))

    def push(self, increment: np.ndarray) -> jax.Array:
        """One compiled step that takes the logarithm as well."""
        self.state, logsig = jax.block_until_ready(self._push(self.state, increment))
        return logsig

    def read(self, logsig: jax.Array) -> np.ndarray:
        """Copy to the host."""
        return np.asarray(logsig)


class Signax(AbstractPeer):
    """signax: a scan over the steps, coordinates of words."""

    name = "signax"
    module = "signax"
    distribution = "signax"
    role = Role.PEER
    coordinates = LyndonWords()
    parallel = True
    batched = True
    buckets = 16

    def windows(self, width: int, depth: int) -> Engine:
        """One call for each batch."""
        library = self.load()
        return engine(lambda batch: library.logsignature(batch, depth))

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Its fused product by an exponential, jitted."""
        library = self.load()

        def push(state, increment):
            state = library.tensor_ops.mult_fused_restricted_exp(increment, state)
            return state, jnp.concatenate(library.signature_to_logsignature(state))

        unit = [jnp.zeros((width,) * level, jnp.float32) for level in range(1, depth + 1)]
        update, push = jax.jit(lambda state, increment: push(state, increment)[0]), jax.jit(push)
        return lambda: Stepped(unit, update, push)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Its own log-signature of a stream."""
        library = self.load()

        @jax.jit
        def running(increments):
            path = jnp.concatenate([jnp.zeros_like(increments[:1]), jnp.cumsum(increments, axis=0)])
            return library.logsignature(path, depth, stream=True)

        return lambda increments: running(increments).block_until_ready()


class RoughPyJax(AbstractPeer):
    """roughpy-jax: its fused product by an exponential, scanned over the steps of a batch."""

    name = "roughpy-jax"
    module = "roughpy_jax"
    distribution = "roughpy-jax"
    role = Role.PEER
    coordinates = HallBrackets()
    parallel = True
    batched = True
    buckets = 16

    def windows(self, width: int, depth: int) -> Engine:
        """One call for each batch."""
        unit, multiply, log = self._steps(width, depth)

        def logsigs(batch):
            increments = jnp.moveaxis(jnp.diff(batch, axis=1), 1, 0)
            state = jnp.broadcast_to(unit, (batch.shape[0], unit.size))
            return log(jax.lax.scan(lambda s, dx: (multiply(s, dx), None), state, increments)[0])

        return engine(logsigs)

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """The same step, jitted."""
        unit, multiply, log = self._steps(width, depth)

        def push(state, increment):
            state = multiply(state, increment)
            return state, log(state)

        update, push = jax.jit(multiply), jax.jit(push)
        return lambda: Stepped(unit, update, push)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """The same step, scanned; all logarithms in one call."""
        unit, multiply, log = self._steps(width, depth)

        @jax.jit
        def running(increments):
            def step(state, increment):
                state = multiply(state, increment)
                return state, state

            return log(jax.lax.scan(step, unit, increments)[1])

        return lambda increments: running(increments).block_until_ready()

    def _steps(self, width: int, depth: int) -> tuple[jax.Array, Callable, Callable]:
        library = self.load()
        tensors, letters = library.TensorBasis(width, depth), library.TensorBasis(width, 1)

        def multiply(state, increment):
            zero = jnp.zeros((*increment.shape[:-1], 1), increment.dtype)
            exponent = library.FreeTensor(jnp.concatenate([zero, increment], axis=-1), letters)
            return library.ft_fmexp(library.FreeTensor(state, tensors), exponent, out_basis=tensors).data

        def log(state):
            return library.to_log_signature(library.FreeTensor(state, tensors)).data

        return jnp.zeros(tensors.size(), jnp.float32).at[0].set(1), multiply, log
