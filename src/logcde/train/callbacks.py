"""Being told about a run while it goes on: a protocol, and a log of one JSON line for each evaluation."""

import abc
import dataclasses
import os
from pathlib import Path

import msgspec

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
