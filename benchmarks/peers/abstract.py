"""What the benchmark asks of a library, whatever it is called."""

import abc
import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.contenders import Engine, NotInstalled, Role
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
        """That log-signature as a NumPy array; not part of the cost."""


class AbstractPeer(abc.ABC):
    """A library. Each question is answered by something to call, or by `CannotDo` and the reason.

    `batched`: whether it takes many paths in one call. `buckets`: into how many lengths it likes ragged windows
    sorted; a library that compiles for each shape wants few.
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
        """Makes streams that start at the base point."""

    @abc.abstractmethod
    def blocks(self, width: int, depth: int) -> Callable[[np.ndarray], Any]:
        """Increments (event, letter) to the log-signature after each of them (event, lie)."""

    @property
    def threads(self) -> int:
        """Threads that it may use here."""
        return cores() if self.parallel else 1

    @property
    def installed(self) -> bool:
        """Whether it can be found; nothing is imported."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str | None:
        """Its version, None if it is not installed."""
        return importlib.metadata.version(self.distribution) if self.installed else None

    def load(self) -> Any:
        """Its module."""
        if not self.installed:
            raise NotInstalled(f"pip install {self.distribution}")
        return importlib.import_module(self.module)
