"""The conditions of a measurement: cores, machine and versions."""

import importlib.metadata
import os
import platform
from pathlib import Path

CPU = Path("/proc/cpuinfo")
CORES = "LOGCDE_CORES"
"""The environment variable that limits the threads of a process, which is one of several on its machine."""
LIBRARIES = ("jax", "jaxlib", "numba", "numpy")
"""Packages that decide numbers and speed."""


def cores() -> int:
    """Number of cores that this process may use; fewer if the environment variable LOGCDE_CORES says so.

    >>> cores() >= 1
    True
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get(CORES, "")
    return min(there, max(1, int(wanted))) if wanted.isdigit() else there


def machine() -> dict[str, str | int | float | None]:
    """The machine and its load.

    >>> sorted(machine())
    ['cores', 'load', 'processor', 'system']
    """
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    """The model of the processor, or as much as the system tells."""
    if CPU.is_file():
        for line in CPU.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions(*more: str) -> dict[str, str]:
    """Versions of Python, of the numerical libraries, and of `more` packages.

    >>> sorted(versions("optax"))
    ['jax', 'jaxlib', 'numba', 'numpy', 'optax', 'python']
    """
    named = {name: importlib.metadata.version(name) for name in (*LIBRARIES, *more)}
    return {"python": platform.python_version(), **named}
