"""Callbacks of `fit`: the interface, a log with one JSON line per evaluation, and a progress bar."""

import abc
import dataclasses
import os
import threading
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from logcde.models import AbstractModel
from logcde.train.records import Evaluation, Summary


class AbstractCallback(abc.ABC):
    """Follows a training run. An exception that a callback raises ends the run; with checkpoints it can be resumed.

    Of several processes only the main one runs callbacks.
    """

    @abc.abstractmethod
    def on_start(self, step: int, steps: int) -> None:
        """Called when training starts, or resumes, after `step` of at most `steps` steps."""

    @abc.abstractmethod
    def on_steps(self, step: int, loss: float) -> None:
        """Called about twice a second, after `step` steps, with the loss of the last one."""

    @abc.abstractmethod
    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Called after each evaluation, with the model that was evaluated (not the best one)."""

    @abc.abstractmethod
    def on_end(self, summary: Summary | None) -> None:
        """Called when training is over, with None if it was interrupted or failed."""


@dataclasses.dataclass(frozen=True)
class JsonLog(AbstractCallback):
    """Appends one line of JSON per evaluation to a file.

    A resumed run repeats the lines between its checkpoint and the interruption: the last line of a step counts.

    Args:
        path: The file; its folder is created.
    """

    path: Path | str

    def on_start(self, step: int, steps: int) -> None:
        """Create the folder of the file."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)

    def on_steps(self, step: int, loss: float) -> None:
        """Do nothing: only evaluations are logged."""

    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Append a line in a single write, so that lines of several runs do not mix."""
        line = msgspec.json.encode(evaluation) + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def on_end(self, summary: Summary | None) -> None:
        """Do nothing: every line is on disk already."""


class _Display(threading.local):
    """What a progress bar shows in the current thread."""

    progress: Progress | None = None
    validation: str = ""


class ProgressBar(AbstractCallback):
    """Progress bar with loss, validation scores and remaining time; off when the console is not a terminal.

    One object can serve runs in several threads, as the default of `fit` does.

    Args:
        console: Where to draw; stderr by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._display = _Display()

    def __repr__(self) -> str:
        return "ProgressBar()" if self._console is None else f"ProgressBar({self._console!r})"

    def on_start(self, step: int, steps: int) -> None:
        """Draw the bar."""
        console = Console(stderr=True) if self._console is None else self._console
        if not console.is_terminal:
            return
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        progress = Progress(*columns, *times, console=console)
        progress.add_task("compiling", total=steps, completed=step)
        progress.start()
        self._display.progress, self._display.validation = progress, ""

    def on_steps(self, step: int, loss: float) -> None:
        """Advance the bar and show the loss."""
        progress = self._display.progress
        if progress is not None:
            description = f"loss {loss:.4g}{self._display.validation}"
            progress.update(progress.task_ids[0], completed=step, description=description)

    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Show the validation scores from now on."""
        numbers = ((name, value) for name, value in evaluation.validation.items() if value is not None)
        self._display.validation = "".join(f", validation {name} {value:.4g}" for name, value in numbers)

    def on_end(self, summary: Summary | None) -> None:
        """Stop drawing and leave the bar on the screen."""
        if self._display.progress is not None:
            self._display.progress.stop()
            self._display.progress = None
