"""Cells on several processes at once, each of which runs one cell after another.

Processes speak JSON over pipes. They have a session of their own, so that Ctrl-C reaches only the one that can act on
it, which ends them; when it is killed, they end after their cell, for nobody tells them of another.
"""

import contextlib
import math
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec

from experiments.abstract import AbstractCell
from experiments.messages import Done, Failed, Message, Progress
from logcde.errors import ExperimentError


class Said(msgspec.Struct, frozen=True):
    """What a worker said of its cell."""

    worker: int
    cell: AbstractCell
    message: Message


def run_cells(
    name: str, cells: Sequence[AbstractCell], workers: int, folder: Path, deadline: float = math.inf
) -> Generator[Said]:
    """Run the cells of an experiment, in order as far as several at once allow, and hear of all of them.

    The workers' own output goes to `logs` in the folder, what unfinished cells keep to `unfinished`. Closing the
    iterator ends all workers, and so does the `deadline`, a time of the monotonic clock.
    """
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    waiting: queue.SimpleQueue[AbstractCell] = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    heard: queue.SimpleQueue[Said | None] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for number in range(min(workers, len(cells))):
            log = stack.enter_context((logs / f"worker-{number}.log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, "-m", "experiments.worker", name, str(folder / "unfinished")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(_end, process)
            threading.Thread(target=_serve, args=(number, process, waiting, heard, Path(log.name)), daemon=True).start()
        running = min(workers, len(cells))
        while running:
            try:
                left = deadline - time.monotonic()
                said = heard.get(timeout=max(left, 0.0) if math.isfinite(left) else None)
            except queue.Empty:
                return
            if said is None:
                running -= 1
            else:
                yield said


def _serve(
    number: int, process: subprocess.Popen, waiting: queue.SimpleQueue, heard: queue.SimpleQueue, log: Path
) -> None:
    """Hand cells to one worker and pass on what it says, until there are no more cells or no more worker."""
    decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            cell = waiting.get_nowait()
        except queue.Empty:
            break
        heard.put(Said(number, cell, Progress(0.0)))
        message: Message = Progress(0.0)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(cell) + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                message = decoder.decode(line)
                heard.put(Said(number, cell, message))
                if isinstance(message, Done | Failed):
                    break
        if not isinstance(message, Done | Failed):
            code = process.wait()
            heard.put(Said(number, cell, Failed(f"The worker ended with exit code {code}; its output is in {log}.")))
            break
    process.stdout.close()  # here, for nobody else may close what this thread reads
    heard.put(None)


def _end(process: subprocess.Popen) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.terminate()
        process.wait(timeout=10)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise ExperimentError(f"A worker (process {process.pid}) did not end when asked to, and was killed.") from error
