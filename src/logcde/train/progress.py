"""A bar for people who wait: loss, validation, time left. Quiet where nobody looks."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from logcde.models import AbstractModel
from logcde.train.callbacks import AbstractCallback
from logcde.train.records import Evaluation, Summary


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
