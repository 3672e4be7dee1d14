"""Under which circumstances something was measured."""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from logcde.bench.peers import AbstractPeer, cores


def circumstances(peers: Sequence[AbstractPeer], seed: int, rounds: int) -> dict[str, Any]:
    """Date, machine, versions, seed, and which peers are there with how many threads.

    >>> sorted(circumstances((), seed=0, rounds=3))
    ['date', 'machine', 'peers', 'rounds', 'seed', 'versions']
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "rounds": rounds,
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": cores(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numba", "numpy")},
        },
        "peers": {
            peer.name: {"distribution": peer.distribution, "version": peer.version, "threads": peer.threads}
            for peer in peers
        },
    }
