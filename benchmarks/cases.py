"""A case of the benchmark: one computation, the contenders that do it, and the target for this library.

A contender works on the observations as they are (`Direct`), or on batches of equally long paths (`Windowed`), and then
pays for cutting these as well. Nothing here knows how time is measured.
"""

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from benchmarks.data import Windows


class Role(StrEnum):
    """The part of a contender in the comparison: this library, a peer, a baseline, or one step of this library."""

    OURS = "logcde"
    PEER = "peer"
    BASELINE = "baseline"
    PART = "part"


class NotInstalled(Exception):  # noqa: N818 - a state of the machine, not an error
    """A peer is not installed; the table says so instead of a time."""


class CannotDo(Exception):  # noqa: N818 - a property of a library, not an error
    """A library does not offer a computation; the table gives the reason instead of a time."""


class AbstractContender(abc.ABC):
    """One implementation of the computation of a case. `windowed`: whether it takes windows."""

    windowed: ClassVar[bool]

    @abc.abstractmethod
    def load(self, windows: Windows | None) -> Any:
        """Convert the windows to the arrays that `run` takes; part of the cost."""

    @abc.abstractmethod
    def run(self, loaded: Any) -> Any:
        """Compute; returns when the numbers are ready."""

    @abc.abstractmethod
    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray | None:
        """The result in the coordinates and order that all contenders share; None if it is not compared."""

    @abc.abstractmethod
    def memory(self) -> int | None:
        """Bytes of working memory, if a compiler counted them."""


@dataclass(frozen=True)
class Direct(AbstractContender):
    """Works on the observations as they are; `needs` gives its memory."""

    windowed: ClassVar[bool] = False
    call: Callable[[], Any]
    read: Callable[[Any], np.ndarray | None]
    needs: Callable[[], int] | None = None

    def load(self, windows: Windows | None) -> None:
        """Nothing to convert."""

    def run(self, loaded: None) -> Any:
        """Call the function."""
        return self.call()

    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray | None:
        """Convert the result."""
        return self.read(answer)

    def memory(self) -> int | None:
        """Memory from `needs`."""
        return None if self.needs is None else self.needs()


@dataclass(frozen=True)
class Engine:
    """A library on batches of equally long paths: `load` makes its arrays from NumPy's, `run` its log-signatures."""

    load: Callable[[Sequence[np.ndarray]], Any]
    run: Callable[[Any], Sequence[Any]]


@dataclass(frozen=True)
class Windowed(AbstractContender):
    """Works on batches of equally long paths."""

    windowed: ClassVar[bool] = True
    engine: Engine
    read: Callable[[np.ndarray], np.ndarray]

    def load(self, windows: Windows | None) -> Any:
        """Load all batches."""
        assert windows is not None
        return self.engine.load(windows.batches)

    def run(self, loaded: Any) -> Any:
        """Run all batches."""
        return self.engine.run(loaded)

    def canonical(self, answer: Any, windows: Windows | None) -> np.ndarray:
        """Restore the order of the windows and convert the coordinates."""
        assert windows is not None
        return self.read(windows.restore(answer))

    def memory(self) -> int | None:
        """Unknown."""
        return None


@dataclass(frozen=True)
class Entry:
    """A contender in a case.

    Attributes:
        name: Name in the tables.
        role: Its part in the comparison.
        threads: Threads that it may use.
        items: Units of the case that one run computes.
        make: Builds the contender; may raise `NotInstalled` or `CannotDo`.
        buckets: Number of lengths that its windows are sorted into.
    """

    name: str
    role: Role
    threads: int
    items: int
    make: Callable[[], AbstractContender]
    buckets: int = 1


class AbstractTarget(abc.ABC):
    """The target of a case."""

    @abc.abstractmethod
    def met(self, ours: float, rival: float | None) -> bool | None:
        """Whether `ours`, in seconds for each unit, meets the target; None if it cannot be judged."""

    @abc.abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class NoTarget(AbstractTarget):
    """No target; the case is measured for information."""

    def met(self, ours: float, rival: float | None) -> None:
        """None: there is nothing to meet."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True)
class Times(AbstractTarget):
    """At least `ratio` times faster than the fastest rival.

    >>> Times(3.0).met(ours=1.0, rival=3.5)
    True
    """

    ratio: float

    def met(self, ours: float, rival: float | None) -> bool | None:
        """Compare with the seconds of the rival."""
        return None if rival is None else rival >= self.ratio * ours

    def __str__(self) -> str:
        return f"≥ {self.ratio:g} x"


@dataclass(frozen=True)
class Within(AbstractTarget):
    """At most `seconds` for each unit.

    >>> str(Within(3e-7))
    '≤ 0.3 µs'
    """

    seconds: float

    def met(self, ours: float, rival: float | None) -> bool:
        """Compare with a fixed number."""
        return ours <= self.seconds

    def __str__(self) -> str:
        return f"≤ {self.seconds * 1e6:g} µs"


@dataclass(frozen=True)
class Point:
    """The place of a case on a plot: panel, label of the horizontal axis, and position on it."""

    panel: str
    axis: str
    x: float


@dataclass(frozen=True)
class Case:
    """One computation, done by every contender.

    Attributes:
        label: Name in the tables.
        unit: What is counted: window, event, query or step.
        sizes: Coordinates in each level, for the comparison of results.
        entries: The contenders.
        cut: Cuts windows, given the number of buckets.
        target: What this library should reach.
        rival: The role that this library is compared with.
        point: Place on a plot, if any.
        patience: Largest number of seconds for one contender, if less than that of the clock.
    """

    label: str
    unit: str
    sizes: tuple[int, ...]
    entries: tuple[Entry, ...]
    cut: Callable[[int], Windows] | None = None
    target: AbstractTarget = NoTarget()
    rival: Role = Role.PEER
    point: Point | None = None
    patience: float = math.inf
