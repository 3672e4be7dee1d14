"""One question with several contenders, and what the answer should cost."""

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.contenders import Entry, Role
from benchmarks.windows import Windows


class AbstractTarget(abc.ABC):
    """What is to be reached."""

    @abc.abstractmethod
    def met(self, ours: float, rival: float | None) -> bool | None:
        """Whether these seconds for each unit meet it; None if that cannot be said."""

    @abc.abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class NoTarget(AbstractTarget):
    """Measured for information."""

    def met(self, ours: float, rival: float | None) -> None:
        """Nothing to meet."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True)
class Times(AbstractTarget):
    """So many times faster than the fastest rival.

    >>> Times(3.0).met(ours=1.0, rival=3.5)
    True
    """

    ratio: float

    def met(self, ours: float, rival: float | None) -> bool | None:
        """Compare with the rival's seconds."""
        return None if rival is None else rival >= self.ratio * ours

    def __str__(self) -> str:
        return f"≥ {self.ratio:g} x"


@dataclass(frozen=True)
class Within(AbstractTarget):
    """At most so many seconds for each unit.

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
    """Where a case stands on a plot: which curve family, the name of its horizontal axis, and the place on it."""

    panel: str
    axis: str
    x: float


@dataclass(frozen=True)
class Case:
    """What all contenders of `entries` compute, counted in units (windows, events, queries).

    `sizes` are the numbers of coordinates in each level, for the comparison of answers; `cut` makes the windows;
    `patience` is for cases that are many and need less than the clock would give them.
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
