"""Who takes part in a case.

A contender either works on the observations as they are (`Direct`) or needs them cut into windows first (`Windowed`);
the second pays for the windows as well. Nothing here knows of clocks.
"""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from benchmarks.windows import Windows


class Role(StrEnum):
    """What a contender is to the comparison."""

    OURS = "logcde"
    PEER = "peer"
    BASELINE = "baseline"
    PART = "part"


class NotInstalled(Exception):  # noqa: N818 - a state of the machine, not a mistake
    """A peer that is not there; it is listed instead of a time."""


class CannotDo(Exception):  # noqa: N818 - a statement about a library, not a mistake
    """What a library does not offer, in words; it is listed instead of a time."""


class AbstractContender(abc.ABC):
    """One way to answer the question of a case."""

    windowed: ClassVar[bool]

    @abc.abstractmethod
    def load(self, windows: Windows | None) -> Any:
        """Bring the windows into the form that `run` takes; part of the cost."""

    @abc.abstractmethod
    def run(self, loaded: Any) -> Any:
        """Answer; returns when the numbers are there."""

    @abc.abstractmethod
    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray | None:
        """The answer in coordinates and an order that all contenders share; None if there is nothing to compare."""

    @abc.abstractmethod
    def memory(self) -> int | None:
        """Bytes of working memory, where a compiler has counted them."""


@dataclass(frozen=True)
class Direct(AbstractContender):
    """Takes the observations as they are."""

    windowed: ClassVar[bool] = False
    call: Callable[[], Any]
    read: Callable[[Any], np.ndarray | None]
    needs: Callable[[], int] | None = None

    def load(self, windows: Windows | None) -> None:
        """Nothing to bring."""

    def run(self, loaded: None) -> Any:
        """Call it."""
        return self.call()

    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray | None:
        """Read the answer."""
        return self.read(answer)

    def memory(self) -> int | None:
        """What it says that it needs."""
        return None if self.needs is None else self.needs()


@dataclass(frozen=True)
class Engine:
    """How a library takes batches of equally long paths: its own arrays from NumPy's, then log-signatures."""

    load: Callable[[Sequence[np.ndarray]], Any]
    run: Callable[[Any], Sequence[Any]]


@dataclass(frozen=True)
class Windowed(AbstractContender):
    """Takes batches of equally long paths."""

    windowed: ClassVar[bool] = True
    engine: Engine
    read: Callable[[np.ndarray], np.ndarray]

    def load(self, windows: Windows | None) -> Any:
        """Hand the batches over."""
        assert windows is not None
        return self.engine.load(windows.batches)

    def run(self, loaded: Any) -> Any:
        """Call it on all batches."""
        return self.engine.run(loaded)

    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray:
        """Put the rows back where their windows came from, and read them."""
        assert windows is not None
        return self.read(windows.restore(answer))

    def memory(self) -> int | None:
        """Not known."""
        return None


@dataclass(frozen=True)
class Entry:
    """A contender's place in a case; `make` is called when its turn comes, and may say that it cannot take part.

    `items` is how many units of the case one run works through, `buckets` into how many lengths it wants windows
    sorted.
    """

    name: str
    role: Role
    threads: int
    items: int
    make: Callable[[], AbstractContender]
    buckets: int = 1
