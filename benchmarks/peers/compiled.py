"""Libraries of compiled code: pysiglib and iisignature take batches, roughpy and esig one path at a time."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import CannotDo, Engine, Role
from benchmarks.coordinates import HallBrackets, LyndonBrackets
from benchmarks.peers.abstract import AbstractPeer, AbstractStream


class AbstractPySigLib(AbstractPeer):
    """pysiglib with one of its methods for log-signatures. It imports torch, but takes NumPy arrays without a copy."""

    module = "pysiglib"
    distribution = "pysiglib"
    role = Role.PEER
    coordinates = LyndonBrackets()
    parallel = True
    batched = True
    buckets = 64
    method: ClassVar[int]

    def windows(self, width: int, depth: int) -> Engine:
        """One call for each batch."""
        library = self.load()
        library.prepare_log_sig(width, depth, self.method)

        def run(batches: list[np.ndarray]) -> list[np.ndarray]:
            return [library.log_sig(batch, depth, method=self.method, n_jobs=self.threads) for batch in batches]

        return Engine(list, run)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Not offered."""
        self.load()
        raise CannotDo("has no call for the log-signature after each of many steps")


class PySigLib(AbstractPySigLib):
    """The signature first, then its logarithm in the Lyndon basis."""

    name = "pysiglib"
    method = 2

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Joins displacements to a signature."""
        library = self.load()
        library.prepare_log_sig(width, depth, self.method)
        return lambda: _Joined(library, width, depth)


class PySigLibBch(AbstractPySigLib):
    """Baker-Campbell-Hausdorff step by step: the faster of its methods where levels are small."""

    name = "pysiglib (BCH)"
    method = 3

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Joins displacements to a log-signature."""
        library = self.load()
        library.prepare_log_sig(width, depth, self.method)
        return lambda: _JoinedLog(library, width, depth)


class _Joined(AbstractStream):
    def __init__(self, library: Any, width: int, depth: int) -> None:
        self.join, self.log, self.shape = library.sig_join, library.sig_to_log_sig, (width, depth)
        self.signature = np.zeros(library.sig_length(width, depth), np.float32)

    def update(self, increment: np.ndarray) -> None:
        self.signature = self.join(self.signature, increment, *self.shape)

    def push(self, increment: np.ndarray) -> np.ndarray:
        self.signature = self.join(self.signature, increment, *self.shape)
        return self.log(self.signature, *self.shape, method=PySigLib.method)

    def read(self, logsig: np.ndarray) -> np.ndarray:
        return logsig


class _JoinedLog(AbstractStream):
    def __init__(self, library: Any, width: int, depth: int) -> None:
        self.join, self.shape = library.log_sig_join, (width, depth)
        self.logsig = np.zeros(library.log_sig_length(width, depth), np.float32)

    def update(self, increment: np.ndarray) -> None:
        self.logsig = self.join(self.logsig, increment, *self.shape)

    def push(self, increment: np.ndarray) -> np.ndarray:
        self.logsig = self.join(self.logsig, increment, *self.shape)
        return self.logsig

    def read(self, logsig: np.ndarray) -> np.ndarray:
        return logsig


class IISignature(AbstractPeer):
    """iisignature: one thread, areas at depth 2, compiled BCH or the logarithm of the signature beyond."""

    name = "iisignature"
    module = "iisignature"
    distribution = "iisignature"
    role = Role.PEER
    coordinates = LyndonBrackets()
    parallel = False
    batched = True
    buckets = 64

    def windows(self, width: int, depth: int) -> Engine:
        """One call for each batch."""
        library = self.load()
        # Its compiled formula grows with the number of brackets and is only made where it is the fastest method.
        methods = "A" if depth == 2 else "C" if width**depth <= 1000 else "S"
        prepared = library.prepare(width, depth, methods)
        return Engine(list, lambda batches: [library.logsig(batch, prepared, methods) for batch in batches])

    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """Joins displacements to a signature."""
        library = self.load()
        return lambda: _JoinedSignature(library, width, depth)

    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Not offered."""
        self.load()
        raise CannotDo("has signatures after each of many steps, but no logarithm of a signature")


class _JoinedSignature(AbstractStream):
    def __init__(self, library: Any, width: int, depth: int) -> None:
        self.join, self.depth = library.sigjoin, depth
        self.signature = np.zeros(library.siglength(width, depth), np.float32)

    def update(self, increment: np.ndarray) -> None:
        self.signature = self.join(self.signature, increment, self.depth)

    def push(self, increment: np.ndarray) -> np.ndarray:
        raise CannotDo("has no logarithm of a signature")

    def read(self, logsig: np.ndarray) -> np.ndarray:
        return logsig


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
