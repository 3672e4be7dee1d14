"""Spread a serial kernel over cores. Numba's own threading layers can abort a user's process; this cannot."""

import functools
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from logcde._machine import cores

SMALL = 20_000
"""Work below this, in events or intervals, runs in the calling thread: waking others would take longer."""


def spread(run: Callable[..., object], work: np.ndarray, *arguments: object, threads: int | None = None) -> None:
    """Call `run(first, last, *arguments)` on pieces of `range(len(work))` with similar work.

    Args:
        run: A function that releases the GIL.
        work: The work of each item, in events or intervals.
        arguments: Further arguments of `run`.
        threads: Number of threads; by default one for each core.

    >>> done = []
    >>> spread(lambda first, last: done.append((first, last)), np.array([1, 1, 2]))
    >>> done
    [(0, 3)]
    """
    if threads == 1 or work.sum() < SMALL or (workers := cores() if threads is None else threads) == 1:
        run(0, len(work), *arguments)
        return
    total = np.cumsum(work)
    # Several pieces for each thread, so that a slow one does not keep the others waiting.
    pieces = 4 * workers
    edges = np.unique([0, *np.searchsorted(total, total[-1] * np.arange(1, pieces) / pieces), len(total)])
    waiting = deque(pairwise(edges.tolist()))

    def work_through() -> None:
        while True:
            try:
                first, last = waiting.popleft()
            except IndexError:
                return
            run(first, last, *arguments)

    # The calling thread takes part, because it is awake. A helper that has not started when all is done is cancelled.
    helpers = [_pool(os.getpid(), workers).submit(work_through) for _ in range(workers - 1)]
    try:
        work_through()
    finally:
        waiting.clear()
        for helper in helpers:
            if not helper.cancel():
                helper.result()


@functools.lru_cache(maxsize=4)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """A pool that is reused, but not across a fork: a child process has none of its parent's threads."""
    return ThreadPoolExecutor(max(1, workers - 1), thread_name_prefix="logcde")
