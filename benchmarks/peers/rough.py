"""Libraries that take one path at a time: roughpy and esig."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contenders import CannotDo, Engine, Role
from benchmarks.coordinates import HallBrackets
from benchmarks.peers.abstract import AbstractPeer, AbstractStream


class RoughPy(AbstractPeer):
    """roughpy: fused products by exponentials of free tensors."""

    name = "roughpy"
    module = "roughpy"
    distribution = "roughpy"
    role = Role.PEER
    coordinates = HallBrackets()
    parallel = False
    batched = False
    buckets = 1

    def windows(self, width: int, depth: int) -> Engine:
        """One stream of Lie increments for each window."""
        library = self.load()
        context = library.get_context(width, depth, library.SPReal)

        def logsig(path: np.ndarray) -> np.ndarray:
            steps = len(path) - 1
            stream = library.LieIncrementStream.from_increments(
                np.diff(path, axis=0), indices=np.arange(steps) / steps, ctx=context
            )
            return np.array(stream.log_signature(library.RealInterval(0.0, 1.0)))

        return Engine(list, lambda batches: [np.stack([logsig(path) for path in batch]) for batch in batches])

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """A tensor multiplied in place."""
        library = self.load()
        context = library.get_context(width, depth, library.SPReal)
        return lambda: _Multiplied(library, context, width)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Not offered."""
        self.load()
        raise CannotDo("takes one step at a time")


class _Multiplied(AbstractStream):
    def __init__(self, library: Any, context: Any, width: int) -> None:
        self.make, self.context = library.FreeTensor, context
        self.tensor = library.FreeTensor(np.ones(1, np.float32), ctx=context)
        self.exponent = np.zeros(width + 1, np.float32)

    def update(self, increment: np.ndarray) -> None:
        self.exponent[1:] = increment
        self.tensor.fmexp(self.make(self.exponent, ctx=self.context))

    def push(self, increment: np.ndarray) -> Any:
        self.exponent[1:] = increment
        self.tensor.fmexp(self.make(self.exponent, ctx=self.context))
        return self.context.tensor_to_lie(self.tensor.log())

    def read(self, logsig: Any) -> np.ndarray:
        return np.array(logsig)


class Esig(AbstractPeer):
    """esig: one call for each path."""

    name = "esig"
    module = "esig"
    distribution = "esig"
    role = Role.PEER
    coordinates = HallBrackets()
    parallel = False
    batched = False
    buckets = 1

    def windows(self, width: int, depth: int) -> Engine:
        """One call for each window, in double precision, which is what it takes."""
        library = self.load()

        def load(batches) -> list[np.ndarray]:
            return [batch.astype(np.float64) for batch in batches]

        def run(batches: list[np.ndarray]) -> list[np.ndarray]:
            return [np.stack([library.stream2logsig(path, depth) for path in batch]) for batch in batches]

        return Engine(load, run)

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Not offered."""
        self.load()
        raise CannotDo("takes whole paths only")

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Not offered."""
        self.load()
        raise CannotDo("takes whole paths only")
