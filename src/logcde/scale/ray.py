"""Ray as the engine: one task for each file, or a sort-based shuffle and one task for each bucket.

Ray runs tasks again that die with their node, and makes objects again that were lost with one. Everything here is a
task: pools of actors may wait for each other for ever when nodes go.
"""

import contextlib
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from logcde._machine import CORES, cores
from logcde.errors import TableError
from logcde.scale.engines import AbstractEngine
from logcde.scale.parts import Failure, Part, PartFile, split_file, write_bucket_part
from logcde.scale.plans import Plan
from logcde.streams.locations import Location

RETRIES = 10
"""How often a task is run again after the death of its process or of its node."""
PATIENCE = 10.0
"""Seconds that a cluster has to answer."""
MOST_TASKS = 1_000
"""Tasks that are submitted at once; Ray lets them wait for cores."""


class Ray(AbstractEngine):
    """The cluster that `connected` has joined."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def each(
        self, function: Callable[..., Any], shared: Mapping[str, Any], items: Sequence[tuple]
    ) -> Iterator[tuple[int, Any]]:
        """A task for each item. Shared arguments are sent to each node once."""
        task = self._task(function)
        sent = {name: self.ray.put(value) for name, value in shared.items()}
        yield from self._finished(len(items), lambda number: task.remote(function, *items[number], **sent))

    def gathered(
        self, plan: Plan, files: Sequence[Location], buckets: int, parts: dict[int, PartFile], rows: int
    ) -> Iterator[Part | Failure]:
        """A task for each file sorts its rows by bucket; one for each bucket takes its rows of all files."""
        wanted = tuple(parts)
        reader, planned = self.ray.put(plan.reader), self.ray.put(plan)
        split = self._task(split_file, num_returns=len(wanted) + 1)
        made = [split.remote(split_file, reader, file, buckets, wanted) for file in files]
        for failure in self.ray.get([returned[-1] for returned in made]):
            if failure is not None:
                yield failure
                return
        join = self._task(write_bucket_part)

        def write(number: int) -> Any:
            rows = [returned[number] for returned in made]
            return join.remote(write_bucket_part, planned, parts[wanted[number]], *rows)

        for _, part in self._finished(len(wanted), write):
            yield part

    def _task(self, function: Callable[..., Any], **options: Any) -> Any:
        return self.ray.remote(_on_one_core).options(name=function.__name__, num_cpus=1, max_retries=RETRIES, **options)

    def _finished(self, count: int, submit: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
        """Results of submitted tasks as they finish, a bounded number of tasks at a time."""
        waiting: dict[Any, int] = {}
        started = 0
        while started < count or waiting:
            while started < count and len(waiting) < MOST_TASKS:
                waiting[submit(started)] = started
                started += 1
            finished, _ = self.ray.wait(list(waiting))
            for one in finished:
                yield waiting.pop(one), self.ray.get(one)


@contextlib.contextmanager
def connected(address: str) -> Iterator[Ray]:
    """Join a cluster, and leave it at the end.

    Args:
        address: "local" starts one on this machine, which ends with the context; "auto" is the one that runs here, or
            that RAY_ADDRESS names; anything else is an address, such as `ray://head:10001` or `10.0.0.1:6379`.
    """
    # Nothing is reported to anyone, unless the user wants that.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise TableError("--ray needs Ray, which is not installed.", 'pip install "logcde[ray]".') from error
    # Workers write to the log files of Ray; what a person has to know is returned.
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "error"}
    if address == "local":
        options |= {"num_cpus": cores(), "include_dashboard": False}
    before = signal.getsignal(signal.SIGTERM)
    try:
        _check_there(address)
        with warnings.catch_warnings():
            # The processes of Ray are other programs: they use nothing of JAX that a fork breaks.
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(**options)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has one of its own, which ends the process without a word.
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise TableError(
            f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0].rstrip('.')}.",
            "Start one with `ray start --head`, or pass --ray local.",
        ) from error
    try:
        yield Ray(ray)
    finally:
        ray.shutdown()


def _check_there(address: str) -> None:
    """Refuse an address at which nothing listens at once; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address in ("local", "auto"):
        return
    if not host or not port.isdigit():
        raise ValueError("that is neither local nor auto, nor an address with a port")
    socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _on_one_core(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function in a worker, of which there are as many as cores."""
    os.environ[CORES] = "1"
    return function(*arguments, **named)
