"""Libraries of compiled code that take NumPy arrays: pysiglib and iisignature."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.contenders import CannotDo, Engine, Role
from benchmarks.coordinates import LyndonBrackets
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
