"""`run.json`: the record of a training run, in the folder that `logcde train` writes.

One JSON document. Numbers that are not finite are null. Readers ignore unknown keys; `format` changes when the meaning
of a key does. Some keys differ from the names of their fields, so that files of earlier versions can be read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from logcde._documents import parse
from logcde.errors import ArtefactError

FORMAT = 1
RUN, CONFIG = "run.json", "train.toml"
Task: TypeAlias = Literal["classify", "regress", "forecast"]
Label: TypeAlias = str | int | bool | float
Number: TypeAlias = float | None


class Channel(msgspec.Struct, frozen=True):
    """Summary of one channel over all series, held-out ones included."""

    name: str
    observations: int
    lowest: Number
    highest: Number
    median_gap: Number


class Data(msgspec.Struct, frozen=True):
    """The data of the run.

    Args:
        file: Path of the table.
        sha256: Checksum of the table.
        rows: Number of rows.
        series: Number of series.
        trained: Number of training series, validation series included.
        held_out: Number of test series.
        events: Number of events.
        observations: Number of observations.
        channels: Summaries of the channels.
        unit: Unit of time, "" for plain numbers.
        gap: Median time between events, in `unit`; the observation window ends one gap after the last event, unless a
            horizon was given.
    """

    file: str
    sha256: str
    rows: int
    series: int
    trained: int
    held_out: int
    events: int
    observations: int
    channels: list[Channel]
    unit: str
    gap: float


class Setting(msgspec.Struct, frozen=True):
    """A setting of the model or its training, and the reason for it, which is "as given" if the user set it."""

    value: str
    reason: str = msgspec.field(name="why")


WEIGHED = "weight; "
"""How the reason of a learner's weight in a mixture begins; its loss on series left out and its time follow."""


def compared(choices: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, weight, and loss with time, of each learner that was compared; none if there was one only.

    >>> compared({"depth": Setting("2", "as given"), "WindowTrees": Setting("0.4", "weight; log loss 0.3 left out")})
    [('WindowTrees', '0.4', 'log loss 0.3 left out')]
    """
    found = {name: one for name, one in choices.items() if one.reason.startswith(WEIGHED)}
    return [(name, str(one.value), one.reason.removeprefix(WEIGHED)) for name, one in found.items()]


class Evaluation(msgspec.Struct, frozen=True):
    """One evaluation during training: the mean loss since the one before, and scores of the validation series."""

    step: int
    epoch: float
    seconds: float
    loss: Number
    validation: dict[str, Number]
    best: bool


class HeldOut(msgspec.Struct, frozen=True):
    """Predictions for the held-out series: one row for each series, or for each stamp of a forecast.

    Args:
        series: Id of the series of each row.
        time: Time of each prediction since the start of the series, in `Data.unit`.
        truth: True classes, or lists with one number for each output.
        prediction: Predictions, as `truth`.
        probabilities: Probabilities of `Run.classes`, or None.
    """

    series: list[str | int]
    time: list[float]
    truth: list[Label | list[Number]]
    prediction: list[Label | list[Number]]
    probabilities: list[list[float]] | None


class Run(msgspec.Struct, frozen=True):
    """One training run.

    Args:
        command: Command line that repeats the run.
        created: Date and time.
        config: Content of `train.toml`, with which `logcde train --config` repeats the run.
        task: The task.
        task_reason: Why it is this task.
        outputs: Names of the predicted columns.
        classes: Classes in the order of probabilities, or None.
        prior: Fraction of each class in the training series, or mean of each output.
        data: The data.
        choices: Settings by name.
        parameters: Number of parameters of the model.
        history: Evaluations during training.
        metrics: Scores on the held-out series; empty if there are none.
        baseline: Scores of always predicting the prior.
        held_out: Predictions for the held-out series, or None.
        seconds: Duration by phase.
        versions: Versions of libraries.
        machine: Description of the machine.
        key: Checksum of the options and tables that determine the model.
        format: Version of this format.
    """

    command: str
    created: str
    config: dict[str, Any]
    task: Task
    task_reason: str = msgspec.field(name="why_task")
    outputs: list[str]
    classes: list[Label] | None
    prior: list[float]
    data: Data
    choices: dict[str, Setting]
    parameters: int
    history: list[Evaluation]
    metrics: dict[str, Number]
    baseline: dict[str, Number]
    held_out: HeldOut | None
    seconds: dict[str, float]
    versions: dict[str, str]
    machine: dict[str, str | int | float | None]
    key: str = ""
    format: int = FORMAT


def write_run(run: Run) -> str:
    """Encode a record as JSON."""
    return msgspec.json.format(msgspec.json.encode(run), indent=1).decode() + "\n"


def read_run(folder: Path) -> Run | None:
    """Read the record in the folder of a model; None if there is none, because the model was saved from Python.

    Raises:
        ArtefactError: It is not the file that was saved with the model.
    """
    from logcde.artefact.files import read_extra  # not before it is needed: it imports JAX

    content = read_extra(folder, RUN)
    if content is None:
        return None
    file = folder / RUN
    try:
        document = parse(content)
        found = document.get("format")
        if found == FORMAT:
            return msgspec.convert(document, Run)
    except (ValueError, AttributeError) as error:
        raise ArtefactError(
            f"{file} cannot be read as the record of a training run: {error}.", "Copy the folder again from its source."
        ) from error
    raise ArtefactError(
        f"{file} has format {found!r}; this version of logcde reads {FORMAT}.",
        "Read it with the version of logcde that wrote it.",
    )
