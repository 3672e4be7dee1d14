"""Being told about a run while it goes on: a protocol, and a log of one JSON line for each evaluation.

A bar for people who wait: loss, validation, time left. Quiet where nobody looks.
"""

import abc
import dataclasses
import os
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from logcde.models import AbstractModel
from logcde.train.records import Evaluation, Summary


class AbstractCallback(abc.ABC):
    """Told about a run. An exception that it raises ends the run; with checkpoints, it can be resumed.

    In runs over several processes only those of the first one are called.
    """

    @abc.abstractmethod
    def on_start(self, step: int, steps: int) -> None:
        """Training begins, or resumes after `step` steps, of `steps` at most."""

    @abc.abstractmethod
    def on_steps(self, step: int, loss: float) -> None:
        """Some more steps are done, the last one with this loss. Called about twice a second."""

    @abc.abstractmethod
    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """The model has been looked at; it is the one of this step, not the best one."""

    @abc.abstractmethod
    def on_end(self, summary: Summary | None) -> None:
        """Training is over; None if it was interrupted or failed."""


@dataclasses.dataclass(frozen=True)
class JsonLog(AbstractCallback):
    """One line of JSON for each evaluation, put at the end of a file.

    A resumed run repeats the lines between its checkpoint and the interruption: the last line of a step counts.
    """

    path: Path | str

    def on_start(self, step: int, steps: int) -> None:
        """Make the folder."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)

    def on_steps(self, step: int, loss: float) -> None:
        """Nothing."""

    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Add a line, in a single write."""
        line = msgspec.json.encode(evaluation) + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def on_end(self, summary: Summary | None) -> None:
        """Nothing."""


class ProgressBar(AbstractCallback):
    """A line that moves, if `console` is a terminal; nothing at all otherwise."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._validation = ""

    def on_start(self, step: int, steps: int) -> None:
        """Show it."""
        console = Console(stderr=True) if self._console is None else self._console
        if not console.is_terminal:
            return
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
        self._validation = ""
        self._bar.add_task("compiling", total=steps, completed=step)
        self._bar.start()

    def on_steps(self, step: int, loss: float) -> None:
        """Move it."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step, description=f"loss {loss:.4g}{self._validation}")

    def on_evaluation(self, evaluation: Evaluation, model: AbstractModel) -> None:
        """Show how the validation series do from now on."""
        numbers = ((name, value) for name, value in evaluation.validation.items() if value is not None)
        self._validation = "".join(f", validation {name} {value:.4g}" for name, value in numbers)

    def on_end(self, summary: Summary | None) -> None:
        """Leave it as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
