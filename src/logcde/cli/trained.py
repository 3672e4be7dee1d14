"""The folder that `logcde train` writes, as the commands that use a trained model read it."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from logcde.cli.config import from_options
from logcde.cli.table import TableOptions
from logcde.cli.tasks import TASKS, AbstractTask
from logcde.errors import ArtefactError
from logcde.report.record import RUN, Run, read_run

TRAIN_FOLDER = "Name the folder that logcde train wrote."


@dataclasses.dataclass(frozen=True)
class TableOverrides:
    """How the table differs from the training table."""

    series: str | None = None
    """Column of series ids. By default this and the following options are as in training."""
    single: bool = False
    """The table has no such column: all rows are one series."""
    time: str | None = None
    """Column of stamps."""
    channel: str | None = None
    """Long tables: column of channel names."""
    value: str | None = None
    """Long tables: column of values."""
    horizon: str | None = None
    """End of the observation window; if training had none, one typical gap after the last stamp of each series."""
    sort: bool = False
    """Sort rows by time, instead of refusing stamps that go back."""
    duplicates: Literal["refuse", "last", "mean"] | None = None
    """Different values of one channel at one stamp: refuse them, keep the last, or take the mean."""
    drop_empty: bool = False
    """Drop series without observations, instead of refusing them."""

    def table(self, file: Path, training: TableOptions) -> TableOptions:
        """The options of the training table for another file, with these overrides."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(training, file=file, **{name: value for name, value in given.items() if value})


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained estimator and the record of its training; None for estimators that were saved from Python."""

    folder: Path
    estimator: Any
    run: Run | None
    task: AbstractTask

    @property
    def classes(self) -> list[Any] | None:
        """The classes in the order of probabilities; None if the model predicts numbers."""
        return self.estimator.classes_.tolist() if self.task.name == "classify" else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the predicted targets."""
        if self.run is not None:
            return tuple(self.run.outputs)
        width = self.estimator.outputs_
        return ("value",) if width == 1 else tuple(f"value{number}" for number in range(1, width + 1))

    @property
    def table(self) -> TableOptions:
        """The options of the training table."""
        if self.run is None:
            return TableOptions(tyro.MISSING, channels=self.estimator.schema_.channels)
        return from_options(self.run.config, TableOptions, f"{self.folder / RUN}")

    def to_json(self) -> Callable[[np.ndarray], Any]:
        """The function from the model's outputs to a prediction in JSON."""
        return self.task.to_json(self.outputs, self.classes)


def load_trained(folder: Path) -> Trained:
    """Load the estimator in a folder.

    Raises:
        ArtefactError: If the folder has no saved estimator.
    """
    if not saved_type(folder).startswith("estimators."):
        raise ArtefactError(
            f"{folder} holds a model that was saved from Python, without its preprocessing and task.",
            "Use it with logcde stream, or save an estimator of logcde.estimators instead.",
        )
    with needing_estimators():
        from logcde import estimators
    estimator = estimators.load(folder)
    task = next(task for task in TASKS.values() if task.estimator == type(estimator).__name__)
    return Trained(folder, estimator, read_run(folder), task)


def saved_type(folder: Path) -> str:
    """The type name of the object that is saved in a folder, such as "estimators.LogCDEClassifier".

    Raises:
        ArtefactError: If nothing is saved there.
    """
    from logcde.artefact.files import MODEL_JSON, UNFINISHED, saved_class_name

    if not folder.exists():
        raise ArtefactError(f"There is no folder {folder}.", TRAIN_FOLDER)
    if (folder / UNFINISHED).exists() and not (folder / MODEL_JSON).exists():
        raise ArtefactError(
            f"There is no model in {folder} yet: its training was interrupted, or is still running.",
            "Repeat the same logcde train command to resume it.",
        )
    if folder.is_dir() and not (folder / MODEL_JSON).exists():
        raise ArtefactError(f"{folder} is not the folder of a model: it has no {MODEL_JSON}.", TRAIN_FOLDER)
    if folder.is_file():
        raise ArtefactError(f"{folder} is a file, not the folder of a model.", TRAIN_FOLDER)
    return saved_class_name(folder)


def needing_estimators() -> AbstractContextManager[None]:
    """Name the extra to install where scikit-learn is missing."""
    return needing("sklearn", "Trained models need scikit-learn", "sklearn")


@contextlib.contextmanager
def needing(module: str, sentence: str, extra: str) -> Iterator[None]:
    """Name the extra to install where an import within the context does not find `module`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ArtefactError(f"{sentence}, which is not installed.", f'pip install "logcde[{extra}]".') from error
