"""Under which circumstances a number came about: cores, machine and versions."""

import importlib.metadata
import os
import platform

LIBRARIES = ("jax", "jaxlib", "numba", "numpy")


def cores() -> int:
    """Cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, str | int | float | None]:
    """The machine and how busy it is.

    >>> sorted(machine())
    ['cores', 'load', 'processor', 'system']
    """
    return {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def versions(*more: str) -> dict[str, str]:
    """Of Python, of the libraries that compute, and of some more.

    >>> sorted(versions("optax"))
    ['jax', 'jaxlib', 'numba', 'numpy', 'optax', 'python']
    """
    named = {name: importlib.metadata.version(name) for name in (*LIBRARIES, *more)}
    return {"python": platform.python_version(), **named}
