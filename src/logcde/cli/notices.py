"""What commands say about single series: far outside of what the model was trained on, or no finite prediction."""

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from logcde.errors import LogcdeWarning, OutOfRangeWarning

NOT_SCORED = "Scores leave such series out."
"""What happens in a score to series without a finite prediction."""


@contextlib.contextmanager
def warnings_to(
    take: Callable[[Any], None], category: type[LogcdeWarning] = LogcdeWarning, *, repeated: bool = True
) -> Iterator[None]:
    """Hand the library's warnings to a function; others are shown as usual.

    Args:
        take: Takes a warning.
        category: Which warnings.
        repeated: Whether to hand over each of them, or each once, as Python shows warnings by default.

    >>> taken = []
    >>> with warnings_to(taken.append):
    ...     warnings.warn(LogcdeWarning("Series 'p1' is long."))
    >>> taken
    [LogcdeWarning("Series 'p1' is long.")]
    """
    with warnings.catch_warnings():
        if repeated:
            warnings.simplefilter("always", category)
        show = warnings.showwarning

        def handed(message: Any, *rest: Any, **options: Any) -> None:
            if isinstance(message, category):
                take(message)
            else:
                show(message, *rest, **options)

        warnings.showwarning = handed
        yield


@dataclasses.dataclass
class Notices:
    """What was found in all series that a command predicts, in one line for each kind.

    Attributes:
        outside: Series far outside of what the model was trained on; None if there are none.
        lost: Ids of the series whose predictions are not finite.
    """

    outside: Any = None
    lost: list[Any] = dataclasses.field(default_factory=list)

    def collecting(self) -> contextlib.AbstractContextManager[None]:
        """A context that collects warnings about series."""
        return warnings_to(self._take, OutOfRangeWarning)

    def lines(self, series: int, what: str) -> list[str]:
        """What to say.

        Args:
            series: Number of all series.
            what: What happens to series without a finite prediction, as a sentence.
        """
        from logcde.streams.faults import not_finite

        outside = [] if self.outside is None else [str(dataclasses.replace(self.outside, total=series))]
        return outside + ([f"{not_finite(self.lost)} {what}"] if self.lost else [])

    def _take(self, warning: OutOfRangeWarning) -> None:
        self.outside = warning.found if self.outside is None else self.outside + warning.found


def tell(lines: Sequence[str]) -> None:
    """Write lines to standard error."""
    for line in lines:
        sys.stderr.write(f"logcde: {line}\n")
