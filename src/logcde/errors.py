"""Errors that a person can act on: what was found, where, and what to do about it.

An error carries these three as data, so that every front end can phrase them: Python names arguments, the command line
names options, a server answers with JSON. `str(error)` is the Python phrasing.
"""

import dataclasses
import enum
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any


class Remedy(enum.Enum):
    """What to do about an error, where the advice names arguments that are called otherwise in other front ends.

    The value is the advice for Python users. Advice that is the same everywhere is plain text instead.
    """

    DATA_FOLDER = "Pass the folder of data sets as path=, or set the environment variable LOGCDE_DATA to it."
    SORT = "Sort the rows by time, or pass sort=True."
    DUPLICATES = "Keep one of them, or pass duplicates=KeepLast() or duplicates=Average()."
    EMPTY = "Leave it out, or pass empty=Drop() to leave out all such series, or empty=Keep() to keep them."
    HORIZON = "Pass horizon=."
    LATER_HORIZON = "Give a later horizon, or leave it out."
    ORIGIN = "Pass origin=, a datetime."
    EARLIER_ORIGIN = "Subtract the first stamp, or give an earlier origin, or leave it out."
    COMMON_ORIGIN = "Read the streams of that clock with origin=FirstStamp(), or with an earlier origin."
    NEARER_ORIGIN = (
        "Round the stamps to a coarser resolution, such as microseconds, or give an origin nearer to them, for example "
        "origin=FirstStamp()."
    )
    EPOCH = (
        "If they count from 1970, read an array of them as datetimes with stamps.astype('datetime64[ns]'), where ns is "
        "their unit; otherwise subtract the first one."
    )
    EMPTY_INTERVALS = (
        "If time should count from where series begin, read them with origin=FirstStamp(); otherwise give horizon= or "
        "another partition."
    )
    LONGER_INTERVALS = "Choose longer ones; or if the stamps count from 1970, turn them into datetimes."
    NO_EPOCH = "Leave out the epoch."
    CHANNELS = "Choose other columns of values, or leave the field empty where nothing was observed."
    LEAVE_CHANNELS = "Leave such channels out."
    UNKNOWN_CHANNEL = "Add it to the channels, or leave out its rows."
    CALENDAR = "Use Partition.every, or make the streams from datetimes."
    PARTIAL = "Add it, or pass partial=True to embed only a part of the horizon."
    BINS_NEED_COUNTS = "Pass counts=True, or leave soft_bins out."
    TOO_LARGE = "Scale the values, for example with a ChannelScaler, leave such values out, or choose dtype=np.float64."
    OVERWRITE = "Choose another name, or pass overwrite=True to replace it."
    FRESH = "Remove the folder to train from the start."
    OTHER_FOLDER = "Pass the options of that run to resume it, or another folder to train anew."


@dataclasses.dataclass(frozen=True)
class Where:
    """The place of a fault in the user's own terms. Fields that do not apply are None, or empty.

    Attributes:
        series: The id of the series.
        channel: The name of the channel.
        stamp: The stamp, as the user would write it.
        detail: Any further place, such as "event 3, coordinate 1".

    >>> str(Where(series="p2", channel="pulse", stamp="2.5"))
    "Series 'p2', channel 'pulse', at 2.5"
    """

    series: Any = None
    channel: str | None = None
    stamp: Any = None
    detail: str = ""

    def __str__(self) -> str:
        parts = (
            "" if self.series is None else f"series {self.series!r}",
            "" if self.channel is None else f"channel {self.channel!r}",
            self.detail,
            "" if self.stamp is None else f"at {self.stamp}",
        )
        text = ", ".join(part for part in parts if part)
        return text[:1].upper() + text[1:]


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
        return _phrased(self.found, self.remedy, advice)


def _phrased(found: str, remedy: Remedy | str, advice: Mapping[Remedy, str]) -> str:
    text = advice.get(remedy, remedy.value) if isinstance(remedy, Remedy) else remedy
    return f"{found} {text}".rstrip()


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


class ScanError(LogcdeError):
    """A scan that does not fit what it is to compose, or options of a scan that make no sense."""


class ModelError(LogcdeError):
    """Options of a model that do not fit each other, or input that does not fit a model."""


class TrainingError(LogcdeError):
    """Data or options that cannot be trained with."""


class CheckpointError(TrainingError):
    """A checkpoint that cannot be read, or that belongs to another training run."""


class NonFinitePredictionError(ModelError):
    """Predictions that are not finite. `where` is the first such series; the others can be predicted without it.

    Attributes:
        series: Ids of these series.
        predictions: What would have been returned, with NaN for these series; for classifiers probabilities.
    """

    def __init__(self, found: str, remedy: Remedy | str = "", *, series: Sequence[Any], predictions: Any) -> None:
        super().__init__(found, remedy, where=Where(series=series[0]))
        self.series, self.predictions = tuple(series), predictions


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


class InUseError(LogcdeError):
    """A file or folder that another process is writing."""


class CheckFailed(LogcdeError, AssertionError):  # noqa: N818
    """A law that a model breaks."""


class DatasetError(LogcdeError):
    """A data set that cannot be made, found or read."""


class ExperimentError(LogcdeError):
    """A configuration or a folder of results that an experiment cannot work with."""


class LogcdeWarning(UserWarning):
    """Something that is probably not meant, but may be; with the data of a `LogcdeError`."""

    def __init__(self, found: str, remedy: Remedy | str = "") -> None:
        self.found: Any = found
        self.remedy = remedy
        super().__init__(self.phrased({}))

    def phrased(self, advice: Mapping[Remedy, str]) -> str:
        """The message, with a front end's own advice for some remedies."""
        return _phrased(self.found, self.remedy, advice)


class OutOfRangeWarning(LogcdeWarning):
    """Series that lie far outside of what a model was trained on; `found` says which and how far, as data."""

    def __init__(self, found: Any) -> None:
        super().__init__(str(found))
        self.found: Any = found


class NonFiniteWarning(LogcdeWarning):
    """A growing series whose prediction is not finite."""


def check_whole(option: str, name: str, number: object, least: int = 1) -> None:
    """Refuse an option that is not a whole number of at least `least`.

    >>> check_whole("WindowRidge", "units", 0)
    Traceback (most recent call last):
    logcde.errors.ModelError: WindowRidge(units=0) is not possible. Give a whole number of at least 1.
    """
    if isinstance(number, bool) or not isinstance(number, numbers.Integral) or number < least:
        raise ModelError(f"{option}({name}={number!r}) is not possible.", f"Give a whole number of at least {least}.")


def check_positive(option: str, name: str, number: object) -> None:
    """Refuse an option that is not a positive, finite number.

    >>> check_positive("Shrinkage", "weight", 0.1)
    """
    if isinstance(number, bool) or not isinstance(number, numbers.Real) or not 0 < float(number) < math.inf:
        raise ModelError(f"{option}({name}={number!r}) is not possible.", "Give a positive, finite number.")
