"""How long training lasts, how often it is looked at, and how many steps go into one call."""

import dataclasses
from typing import TypeAlias

from logcde.errors import TrainingError

SECONDS = 0.5
GROWTH = 8


@dataclasses.dataclass(frozen=True)
class Steps:
    """A number of steps, each on one mini-batch."""

    count: int

    def __post_init__(self) -> None:
        _check(self.count, "steps")

    def steps(self, per_epoch: int) -> int:
        """That many."""
        return self.count


@dataclasses.dataclass(frozen=True)
class Epochs:
    """A number of times that every training series is seen.

    >>> Epochs(3).steps(per_epoch=10)
    30
    """

    count: int

    def __post_init__(self) -> None:
        _check(self.count, "epochs")

    def steps(self, per_epoch: int) -> int:
        """As many as these epochs have."""
        return self.count * per_epoch


Duration: TypeAlias = Steps | Epochs


class Pace:
    """How many steps one call does: as many as take about half a second, found by trying.

    >>> pace = Pace(longest=1000)
    >>> pace.saw(1, seconds=3.0)  # the first call compiles, and says nothing
    >>> pace.saw(1, seconds=0.01)
    >>> pace.count
    8
    """

    def __init__(self, longest: int) -> None:
        self.count = 1
        self._longest = longest
        self._compiled = False

    def saw(self, count: int, seconds: float) -> None:
        """A call of `count` steps took so long."""
        if self._compiled:
            fitting = int(SECONDS * count / max(seconds, 1e-9))
            self.count = max(1, min(fitting, GROWTH * count, self._longest))
        self._compiled = True


def _check(count: int, what: str) -> None:
    if count < 1:
        raise TrainingError(f"{count} {what} are too few. Give at least 1.")
