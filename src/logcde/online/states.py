"""What the predictors of estimators share: states that are restored or refused."""

from collections.abc import Callable
from typing import Any

from logcde.errors import LogcdeError, ModelError

FORMAT = 1
"""Of the states of predictors."""


FAULTS = (LogcdeError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, MemoryError)
"""What reading a state that is not as expected may raise."""


def restoring(restore: Callable[[], None]) -> None:
    """Report any fault of a state as one error."""
    try:
        restore()
    except FAULTS as error:
        raise ModelError(f"This state cannot be restored: it belongs to another model or schema ({error}).") from error


def check_format(state: dict[str, Any], kind: str) -> None:
    """Refuse the state of a predictor of another kind or version."""
    if state.get("format") != FORMAT or state.get("kind") != kind:
        raise ModelError(f"it is of kind {state.get('kind')!r} and format {state.get('format')!r}")
