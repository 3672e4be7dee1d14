"""Errors that a person can act on: what was found, where, and what to do about it.

An error carries these three as data, so that every front end can phrase them: Python names arguments, the command line
names options, a server answers with JSON. `str(error)` is the Python phrasing.
"""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any


class Remedy(enum.Enum):
    """What to do about an error, where the advice names arguments that are called otherwise in other front ends.

    The value is the advice for Python users. Advice that is the same everywhere is plain text instead.
    """

    SORT = "Sort the rows by time, or pass sort=True."
    DUPLICATES = "Keep one of them, or pass duplicates=KeepLast() or duplicates=Average()."
    EMPTY = "Leave it out, or pass empty=Drop() to leave out all such series, or empty=Keep() to keep them."
    HORIZON = "Pass horizon=."
    LATER_HORIZON = "Give a later horizon, or leave it out."
    ORIGIN = "Pass origin=, a datetime."
    EARLIER_ORIGIN = "Subtract the first stamp, or give an earlier origin, or leave it out."
    NEARER_ORIGIN = (
        "Round the stamps to a coarser resolution, such as microseconds, or give an origin nearer to them, for example "
        "origin=FirstStamp()."
    )
    EPOCH = "Turn them into datetimes, or subtract the first one."
    NO_EPOCH = "Leave out the epoch."
    CHANNELS = "Choose other columns of values, or leave the field empty where nothing was observed."
    LEAVE_CHANNELS = "Leave such channels out."
    UNKNOWN_CHANNEL = "Add it to the channels, or leave out its rows."
    CALENDAR = "Use Partition.every, or make the streams from datetimes."
    PARTIAL = "Add it, or pass partial=True to embed only a part of the horizon."
    OVERWRITE = "Choose another name, or pass overwrite=True to replace it."
    FRESH = "Remove the folder to train from the start."
    OTHER_FOLDER = "Pass the options of that run to resume it, or another folder to train anew."


@dataclasses.dataclass(frozen=True)
class Where:
    """The place of a fault in the user's own terms: series id, channel name, stamp. None where it does not apply."""

    series: Any = None
    channel: str | None = None
    stamp: Any = None


class LogcdeError(ValueError):
    """Base class of every error that this library raises about its input.

    Attributes:
        found: What is wrong, in one or more sentences, the place included.
        remedy: What to do about it; empty if that is plain from what was found.
        where: The place as data, if the fault has one.

    >>> error = StreamError("Time goes back after row 3.", Remedy.SORT, where=Where(series="p1"))
    >>> str(error)
    'Time goes back after row 3. Sort the rows by time, or pass sort=True.'
    >>> error.phrased({Remedy.SORT: "Pass --sort."})
    'Time goes back after row 3. Pass --sort.'
    """

    def __init__(self, found: str, remedy: Remedy | str = "", *, where: Where | None = None) -> None:
        self.found, self.remedy, self.where = found, remedy, where
        super().__init__(self.phrased({}))

    def phrased(self, advice: Mapping[Remedy, str]) -> str:
        """The message, with a front end's own advice for some remedies."""
        remedy = advice.get(self.remedy, self.remedy.value) if isinstance(self.remedy, Remedy) else self.remedy
        return f"{self.found} {remedy}".rstrip()


class StreamError(LogcdeError):
    """Observations that cannot be taken as they are."""


class TableError(StreamError):
    """A file with a table that cannot be read, or one that cannot be written."""


class PartitionError(LogcdeError):
    """Query points that do not cut a series' horizon into intervals."""


class BasisError(LogcdeError):
    """Coordinates that belong to different bases, or to none."""


class EmbeddingError(LogcdeError):
    """Options of an embedding that do not fit each other or the data."""


class ModelError(LogcdeError):
    """Options of a model that do not fit each other, or input that does not fit a model."""


class TrainingError(LogcdeError):
    """Data or options that cannot be trained with."""


class CheckpointError(TrainingError):
    """A checkpoint that cannot be read, or that belongs to another training run."""


class NonFiniteError(TrainingError):
    """Training met a non-finite number at `step`; `model` is the last finite one."""

    def __init__(self, found: str, remedy: Remedy | str = "", *, model: Any, step: int) -> None:
        super().__init__(found, remedy)
        self.model = model
        self.step = step


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by hand after `step` steps; `model` is the state then."""

    def __init__(self, message: str, model: Any, step: int) -> None:
        super().__init__(message)
        self.model = model
        self.step = step


class ArtefactError(LogcdeError):
    """A saved model that cannot be read, or something that cannot be saved."""


class CheckFailed(LogcdeError, AssertionError):  # noqa: N818
    """A law that a model breaks."""


class DatasetError(LogcdeError):
    """A data set that cannot be made, found or read."""


class ExperimentError(LogcdeError):
    """A configuration or a folder of results that an experiment cannot work with."""
