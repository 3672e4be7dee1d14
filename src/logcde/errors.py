"""Errors that a person can act on: what was found, where, and what to do about it."""

from typing import Any


class LogcdeError(ValueError):
    """Base class of every error that this library raises about its input."""


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
    """Training met a number that is not finite. `step` is when, `model` the last one before it."""

    def __init__(self, message: str, model: Any, step: int) -> None:
        super().__init__(message)
        self.model = model
        self.step = step


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by hand. `model` is the one after `step` steps."""

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
