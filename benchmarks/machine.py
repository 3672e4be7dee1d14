"""Under which circumstances something was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.peers import AbstractPeer
from logcde._machine import machine, versions


def circumstances(peers: Sequence[AbstractPeer], seed: int, rounds: int) -> dict[str, Any]:
    """Date, machine, versions, seed, and which peers are there with how many threads.

    >>> sorted(circumstances((), seed=0, rounds=3))
    ['date', 'machine', 'peers', 'rounds', 'seed', 'versions']
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "rounds": rounds,
        "machine": machine(),
        "versions": versions(),
        "peers": {
            peer.name: {"distribution": peer.distribution, "version": peer.version, "threads": peer.threads}
            for peer in peers
        },
    }
