"""Spreading a serial kernel over the cores. Numba's own threading layers can end a user's process; these cannot."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

SMALL = 20_000
"""Work below this, in events or intervals, is done at once: starting threads would take longer."""


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(run: Callable[..., object], work: np.ndarray, *arguments: object, threads: int | None = None) -> None:
    """Call `run(first, last, *arguments)` on pieces of `range(len(work))` of like work, on all cores or on `threads`.

    `run` must not call `spread` on several threads again: those that it would wait for are busy waiting.

    >>> done = []
    >>> spread(lambda first, last: done.append((first, last)), np.array([1, 1, 2]))
    >>> done
    [(0, 3)]
    """
    total = np.cumsum(work)
    workers = cores() if threads is None else threads
    if not len(total) or workers == 1 or total[-1] < SMALL:
        run(0, len(total), *arguments)
        return
    # Several pieces for each thread, so that one that is slowed down does not keep the others waiting.
    pieces = 4 * workers
    edges = np.unique([0, *np.searchsorted(total, total[-1] * np.arange(1, pieces) / pieces), len(total)])
    pool = _pool(os.getpid(), workers)
    tasks = [pool.submit(run, first, last, *arguments) for first, last in pairwise(edges.tolist())]
    for task in tasks:
        task.result()


@functools.lru_cache(maxsize=4)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Threads are kept, but not across a fork: a child process has none of its parent's."""
    return ThreadPoolExecutor(workers, thread_name_prefix="logcde")
