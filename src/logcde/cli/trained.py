"""The folder that `logcde train` writes, as it is read again by the commands that use a model."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tyro

from logcde.cli.config import from_options
from logcde.cli.table import Table, in_options
from logcde.cli.tasks import TASKS, AbstractTask
from logcde.errors import ArtefactError
from logcde.report.record import RUN, Run, read_run

if TYPE_CHECKING:
    from logcde.models import SequenceModel


@dataclasses.dataclass(frozen=True)
class Columns:
    """How a further table differs from the one that the model was trained on; the same if nothing is given."""

    series: str | None = None
    """Column of series ids, if it has another name than in training. So with the options that follow."""
    single: bool = False
    """There is no such column: all rows are one series."""
    time: str | None = None
    """Column of stamps."""
    channel: str | None = None
    """Long tables: column of channel names."""
    value: str | None = None
    """Long tables: column of values."""
    horizon: str | None = None
    """Up to where series are looked at; by default, if training was given none, a usual gap after the last stamp of
    each."""
    sort: bool = False
    """Put rows whose stamps go back in order, instead of refusing them."""
    duplicates: Literal["refuse", "last", "mean"] | None = None
    """Different values of one channel at one stamp: refuse them, keep the last, or take the mean."""
    drop_empty: bool = False
    """Leave out series without a single observation, instead of refusing them."""

    def table(self, file: Path, before: Table) -> Table:
        """How to read it."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(before, file=file, **{name: value for name, value in given.items() if value})


@dataclasses.dataclass(frozen=True)
class Trained:
    """A model, and what is known of its training; that is nothing for estimators that were saved from Python."""

    folder: Path
    estimator: Any
    run: Run | None
    task: AbstractTask

    @property
    def model(self) -> "SequenceModel":
        """The model itself."""
        return self.estimator.model_

    @property
    def classes(self) -> list[Any] | None:
        """The classes in the order of probabilities."""
        return self.estimator.classes_.tolist() if self.task.name == "classify" else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what is predicted."""
        if self.run is not None:
            return tuple(self.run.outputs)
        width = len(self.model.readout.layers[-1].weight)
        return ("value",) if width == 1 else tuple(f"value{number}" for number in range(1, width + 1))

    @property
    def table(self) -> Table:
        """How the table was read that it was trained on."""
        if self.run is None:
            return Table(tyro.MISSING, channels=self.estimator.schema_.channels)
        return from_options(self.run.config, Table, f"{self.folder / RUN}")

    def present(self) -> Callable[[np.ndarray], Any]:
        """From what the model gives to what is written of it in JSON."""
        return self.task.present(self.outputs, self.classes)


def as_trained() -> AbstractContextManager[None]:
    """Let errors about a table advise what can be done where the model is given."""
    unknown = "The model was not trained on it: leave out its rows, or train a model with it"
    lacking = "It is a channel of the model: rename the column that is meant, or add an empty one"
    return in_options(
        {"Add it to the channels, or leave out its rows": unknown, "Name columns of values with --channels": lacking}
    )


def load_trained(folder: Path) -> Trained:
    """Read the folder of a trained model."""
    if not kind(folder).startswith("estimators."):
        raise ArtefactError(
            f"{folder} holds a model that was saved from Python, without what it was trained on. Use it with logcde "
            "stream, or save an estimator of logcde.estimators instead."
        )
    with needing_estimators():
        from logcde import estimators
    estimator = estimators.load(folder)
    task = next(task for task in TASKS.values() if task.estimator == type(estimator).__name__)
    return Trained(folder, estimator, read_run(folder), task)


def kind(folder: Path) -> str:
    """The name of what is saved in a folder; refused if nothing is."""
    from logcde.artefact.files import MODEL_JSON, UNFINISHED, saved_class_name

    if not folder.exists():
        raise ArtefactError(f"There is no folder {folder}. {WRITTEN}")
    if (folder / UNFINISHED).exists() and not (folder / MODEL_JSON).exists():
        raise ArtefactError(
            f"There is no model in {folder} yet: its training was stopped, or goes on. Give the same logcde train "
            "command again to finish it."
        )
    if folder.is_dir() and not (folder / MODEL_JSON).exists():
        raise ArtefactError(f"{folder} is a folder, but not one of a model: it has no {MODEL_JSON}. {WRITTEN}")
    if folder.is_file():
        raise ArtefactError(f"{folder} is a file, and not the folder of a model. {WRITTEN}")
    return saved_class_name(folder)


def needing_estimators() -> AbstractContextManager[None]:
    """Say what to install where scikit-learn is missing."""
    return needing("sklearn", "Trained models need scikit-learn", "sklearn")


@contextlib.contextmanager
def needing(module: str, sentence: str, extra: str) -> Iterator[None]:
    """Say which extra to install where a module is missing that is imported within."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ArtefactError(f'{sentence}, which is not installed: pip install "logcde[{extra}]".') from error


WRITTEN = "Name the folder that logcde train wrote."
