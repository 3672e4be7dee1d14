"""`run.json`: everything that is to know about how a model came about, in the folder that `logcde train` writes.

One JSON document. A number that is not finite is null. Readers ignore keys that they do not know; `format` changes when
the meaning of one does.
"""

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from logcde.errors import ArtefactError

FORMAT = 1
RUN, CONFIG = "run.json", "train.toml"
Kind: TypeAlias = Literal["classify", "regress", "forecast"]
Label: TypeAlias = str | int | bool | float
Number: TypeAlias = float | None


class Channel(msgspec.Struct, frozen=True):
    """One channel in the training data, held-out series included."""

    name: str
    observations: int
    lowest: Number
    highest: Number
    median_gap: Number


class Data(msgspec.Struct, frozen=True):
    """The table that was trained on. `trained` and `held_out` are numbers of series; `gap` is the usual time between
    events, in `unit` ("" for plain numbers); a series is looked at for `gap` after its last event."""

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


class Chosen(msgspec.Struct, frozen=True):
    """A setting of the model or its training, and why it is so; "as given" if the user said so."""

    value: str
    why: str


class Look(msgspec.Struct, frozen=True):
    """One look at the model in training: the mean loss since the last, and scores of the series for validation."""

    step: int
    epoch: float
    seconds: float
    loss: Number
    validation: dict[str, Number]
    best: bool


class HeldOut(msgspec.Struct, frozen=True):
    """Predictions for series that training has never seen; row by row, one for each series, of forecasts one for each
    stamp. `time` is when each is for, in the units of `Data.unit` since the start of the series. `truth` and
    `prediction` are classes, or lists with a number for each output; `probabilities` are those of `Run.classes`."""

    series: list[str | int]
    time: list[float]
    truth: list[Label | list[Number]]
    prediction: list[Label | list[Number]]
    probabilities: list[list[float]] | None


class Run(msgspec.Struct, frozen=True):
    """One training run.

    `command` repeats it, and so does `logcde train --config train.toml`, of which `config` is the content. `outputs`
    are the names of what is predicted, `classes` the classes in the order of probabilities, `prior` the share of each
    in training, or the mean of each output. `metrics` are scores of the held-out series, and `baseline` those of
    always answering with the prior; both are empty if none were held out.
    """

    command: str
    created: str
    config: dict[str, Any]
    task: Kind
    why_task: str
    outputs: list[str]
    classes: list[Label] | None
    prior: list[float]
    data: Data
    choices: dict[str, Chosen]
    parameters: int
    history: list[Look]
    metrics: dict[str, Number]
    baseline: dict[str, Number]
    held_out: HeldOut | None
    seconds: dict[str, float]
    versions: dict[str, str]
    machine: dict[str, str | int | float | None]
    format: int = FORMAT


def write_run(run: Run) -> str:
    """As text."""
    return msgspec.json.format(msgspec.json.encode(run), indent=1).decode() + "\n"


def read_run(folder: Path) -> Run | None:
    """The record in the folder of a model; None if there is none, as beside models that were saved from Python."""
    file = folder / RUN
    if not file.exists():
        return None
    try:
        content = file.read_bytes()
        found = msgspec.json.decode(content).get("format")
        if found != FORMAT:
            raise ArtefactError(f"{file} has format {found!r}; this version of logcde reads {FORMAT}.")
        return msgspec.json.decode(content, type=Run)
    except (OSError, msgspec.DecodeError, AttributeError) as error:
        raise ArtefactError(
            f"{file} cannot be read as the record of a training run: {error}. Copy the folder again from where it came."
        ) from error
