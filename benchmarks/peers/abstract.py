"""The interface of a peer: log-signatures of windows, of a growing path, and of blocks of increments."""

import abc
import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import Engine, NotInstalled, Role
from benchmarks.coordinates import AbstractCoordinates
from logcde._machine import cores


class AbstractStream(abc.ABC):
    """A path that grows by one increment at a time, from Python."""

    @abc.abstractmethod
    def update(self, increment: np.ndarray) -> None:
        """Take one increment in."""

    @abc.abstractmethod
    def push(self, increment: np.ndarray) -> Any:
        """Take one increment in and return the log-signature so far."""

    @abc.abstractmethod
    def read(self, logsig: Any) -> np.ndarray:
        """Convert a log-signature of `push` to a NumPy array; not part of the cost."""


class AbstractPeer(abc.ABC):
    """A library. Each method returns a callable, or raises `NotInstalled` or `CannotDo`.

    Attributes:
        name: Name in the tables.
        module: Name of its module.
        distribution: Name of its distribution.
        role: Its part in the comparison.
        coordinates: The basis of its log-signatures.
        parallel: Whether it uses all cores.
        batched: Whether it takes many paths in one call.
        buckets: Number of lengths that ragged windows are sorted into; few for a library that compiles each shape.
    """

    name: ClassVar[str]
    module: ClassVar[str]
    distribution: ClassVar[str]
    role: ClassVar[Role]
    coordinates: ClassVar[AbstractCoordinates]
    parallel: ClassVar[bool]
    batched: ClassVar[bool]
    buckets: ClassVar[int]

    @abc.abstractmethod
    def windows(self, width: int, depth: int) -> Engine:
        """Log-signatures of batches of equally long paths."""

    @abc.abstractmethod
    def stream(self, width: int, depth: int) -> Callable[[], AbstractStream]:
        """A factory of streams that start at the base point."""

    @abc.abstractmethod
    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Increments (event, letter) to the log-signature after each of them (event, lie)."""

    @property
    def threads(self) -> int:
        """Number of threads that it may use."""
        return cores() if self.parallel else 1

    @property
    def installed(self) -> bool:
        """Whether it is installed; nothing is imported."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str | None:
        """Its version; None if it is not installed."""
        return importlib.metadata.version(self.distribution) if self.installed else None

    def load(self) -> Any:
        """Import its module."""
        if not self.installed:
            raise NotInstalled(f"pip install {self.distribution}")
        return importlib.import_module(self.module)
