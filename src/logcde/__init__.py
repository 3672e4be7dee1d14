"""Learning from irregular, asynchronous observation streams, without filling a gap.

The names of `logcde._api` are here, imported when the first of them is asked for: the command line can answer a plain
question without waiting for JAX.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logcde._api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    from logcde import _api

    try:
        return getattr(_api, name)
    except AttributeError:
        raise AttributeError(f"module 'logcde' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from logcde import _api

    return sorted(name for name in dir(_api) if not name.startswith("_"))
