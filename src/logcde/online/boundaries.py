"""Where intervals end while a series is still coming in: the rule of the partition that a model was trained with.

An interval ends at the `edge` once time has passed it, not when time has reached it: at the horizon itself an event
belongs to the last interval, and until something later is known, now is the horizon.
"""

import abc
import copy
import math
from typing import Any

import numpy as np
from jaxtyping import Float64

from logcde.errors import ModelError
from logcde.streams import Clock, Partition
from logcde.streams.partition import Every, EveryEvents

AT_ONCE = 256


class AbstractBoundaries(abc.ABC):
    """The next end of an interval.

    `quiet`: events before that time need no attention. `told`: up to where the user said that intervals end.
    `rule` is the partition that says it otherwise.
    """

    rule: Partition | None
    edge: float
    quiet: float
    told: float = 0.0
    changing: tuple[str, ...]

    @abc.abstractmethod
    def passed(self, time: float) -> bool:
        """Whether the interval that ends at the edge is over at this time."""

    @abc.abstractmethod
    def move(self, count: int = 1) -> None:
        """Go on to the next edge, or by some more."""

    @abc.abstractmethod
    def arrive(self, time: float) -> None:
        """Take note of an event, all edges before which are passed."""

    @abc.abstractmethod
    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """Edges from the next one on, as many as are passed at this time and known already, and not too many."""

    def state(self) -> dict[str, Any]:
        """The numbers that change, None for an edge that is not known yet."""
        return {
            name: None if number == math.inf else number for name, number in vars(self).items() if name in self.changing
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        if not isinstance(state, dict) or state.keys() != set(self.changing):
            raise ModelError("This state belongs to another partition rule. Restore it with the same model.")
        vars(self).update({name: math.inf if number is None else number for name, number in state.items()})

    def copy(self) -> "AbstractBoundaries":
        """Independent of this one."""
        return copy.copy(self)


class AtMultiples(AbstractBoundaries):
    """Edges at multiples of a step, as `Partition.every` cuts."""

    changing = ("number", "edge", "quiet")

    def __init__(self, rule: Every, clock: Clock) -> None:
        self.rule = self._every = rule
        self.clock, self.length = clock, rule.length(clock)
        self.number = self._first = 0
        self._points: list[float] = []
        self.move()

    def passed(self, time: float) -> bool:
        """As offline, where a last interval that is shorter than rounding is none."""
        return time >= self.edge and self._inner(time) >= self.number

    def move(self, count: int = 1) -> None:
        """The next multiple."""
        self.number += count
        # Some at a time: the exact multiple of a decimal step takes longer than all else about an interval.
        if not 0 <= self.number - self._first < len(self._points):
            self._first = self.number
            self._points = self._every.points(np.arange(self.number, self.number + AT_ONCE), self.clock).tolist()
        self.edge = self.quiet = self._points[self.number - self._first]

    def arrive(self, time: float) -> None:
        """Events change nothing."""

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """As many multiples as there are."""
        stop = min(self._inner(time), self.number + most - 1)
        if stop < self.number:
            return np.empty(0)
        return self._every.points(np.arange(self.number, stop + 1), self.clock)

    def _inner(self, time: float) -> int:
        return math.ceil(time / self.length * (1 - 1e-12)) - 1


class AtEvents(AbstractBoundaries):
    """A new interval begins at events number k, 2 k, ..., as `Partition.every_events` cuts."""

    changing = ("count", "edge")
    quiet = -math.inf

    def __init__(self, rule: EveryEvents) -> None:
        self.rule = rule
        self._events = rule.events
        self.count = 0
        self.edge = math.inf

    def passed(self, time: float) -> bool:
        """After the event at which a new interval begins."""
        return time > self.edge

    def move(self, count: int = 1) -> None:
        """Not known before the event comes."""
        self.edge = math.inf

    def arrive(self, time: float) -> None:
        """Count it."""
        if self.count and self.count % self._events == 0:
            self.edge = time
        self.count += 1

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """None."""
        return np.empty(0)


class WhereTold(AbstractBoundaries):
    """Intervals end where the user says."""

    rule = None
    changing = ("edge", "quiet", "told")

    def __init__(self) -> None:
        self.told = 0.0
        self.move()

    def passed(self, time: float) -> bool:
        """After what was said."""
        return time > self.edge

    def move(self, count: int = 1) -> None:
        """Not known before it is said."""
        self.edge = self.quiet = math.inf

    def arrive(self, time: float) -> None:
        """Events change nothing."""

    def run(self, time: float, most: int) -> Float64[np.ndarray, "edge"]:
        """None."""
        return np.empty(0)

    def close(self, time: float) -> None:
        """An edge. Until it is passed every event needs attention: none may come before it any more."""
        self.edge = self.told = time
        self.quiet = 0.0


def boundaries_of(partition: Partition | None, clock: Clock) -> AbstractBoundaries:
    """The rule that a series still coming in can follow; where there is none, the user ends intervals.

    >>> from logcde.streams import NumericClock
    >>> boundaries_of(Partition.every(0.5), NumericClock()).edge
    0.5
    """
    match partition:
        case Every():
            return AtMultiples(partition, clock)
        case EveryEvents():
            return AtEvents(partition)
        case _:
            return WhereTold()
