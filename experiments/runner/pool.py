"""Run cells on several worker processes, each of which runs one cell after another.

Workers (`experiments.runner.worker`) read cells and write messages as lines of JSON over pipes. Each has a session of
its own, so that Ctrl-C reaches the parent only, which then ends them. If the parent is killed, a worker finishes its
cell and ends at the end of its input.
"""

import contextlib
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from experiments.runner.abstract import AbstractCell
from logcde.errors import ExperimentError

ROOT = Path(__file__).parents[2]
"""The folder that holds the package `experiments`."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    """A cell is running; `part` of it is done, from 0 to 1."""

    part: float


class Done(msgspec.Struct, frozen=True, tag=True):
    """A cell is finished; `record` is its `Record` as JSON."""

    record: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A cell raised an exception, or its worker died."""

    trace: str


Message: TypeAlias = Progress | Done | Failed
"""One line of JSON from a worker."""


class Report(msgspec.Struct, frozen=True):
    """A message of a worker about the cell that it runs."""

    worker: int
    cell: AbstractCell
    message: Message


def run_cells(
    name: str,
    cells: Sequence[AbstractCell],
    workers: int,
    folder: Path,
    deadline: float = math.inf,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Generator[Report]:
    """Run cells of the experiment `name` and yield what their workers report.

    Cells start in the given order. Closing the iterator ends all workers.

    Args:
        name: Name of the experiment.
        cells: The cells.
        workers: Largest number of processes.
        folder: Folder of results: output of the workers goes to `logs`, files of unfinished cells to `unfinished`.
        deadline: Time of `time.monotonic` at which workers are ended.
        environment: Further environment variables of the workers.
    """
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    waiting: queue.SimpleQueue[AbstractCell] = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for number in range(min(workers, len(cells))):
            log = stack.enter_context((logs / f"worker-{number}.log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, "-m", "experiments.runner.worker", name, str(folder / "unfinished")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**_environment(), **environment},
            )
            stack.callback(_end, process)
            threading.Thread(
                target=_serve, args=(number, process, waiting, reports, Path(log.name)), daemon=True
            ).start()
        running = min(workers, len(cells))
        while running:
            try:
                left = deadline - time.monotonic()
                report = reports.get(timeout=max(left, 0.0) if math.isfinite(left) else None)
            except queue.Empty:
                return
            if report is None:
                running -= 1
            else:
                yield report


def _serve(
    number: int, process: subprocess.Popen, waiting: queue.SimpleQueue, reports: queue.SimpleQueue, log: Path
) -> None:
    """Hand cells to one worker and forward its messages, until there are no more cells or the worker ends."""
    decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            cell = waiting.get_nowait()
        except queue.Empty:
            break
        reports.put(Report(number, cell, Progress(0.0)))
        message: Message = Progress(0.0)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(cell) + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                message = decoder.decode(line)
                reports.put(Report(number, cell, message))
                if isinstance(message, Done | Failed):
                    break
        if not isinstance(message, Done | Failed):
            code = process.wait()
            reports.put(
                Report(number, cell, Failed(f"The worker ended with exit code {code}; its output is in {log}."))
            )
            break
    process.stdout.close()  # in this thread, which is the one that reads it
    reports.put(None)


def _end(process: subprocess.Popen) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.terminate()
        process.wait(timeout=10)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise ExperimentError(f"Worker process {process.pid} did not end within 10 s and was killed.") from error


def _environment() -> dict[str, str]:
    """The environment of this process, in which `experiments` can be imported from any working directory."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
