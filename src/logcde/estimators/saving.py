"""Fitted estimators as directories of JSON and safetensors, the format of saved models. Nothing in them is executed."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator

from logcde import artefact
from logcde.artefact.files import SAVE_AGAIN
from logcde.errors import ArtefactError
from logcde.models.series import AbstractSeriesModel

EstimatorT = TypeVar("EstimatorT", bound=BaseEstimator)
LABELS = ("classes_", "feature_names_in_")
"""Arrays that may hold text, which safetensors cannot store."""

LARGEST_LABELS = 1 << 28
"""Bytes of such an array, in which the longest text decides the size of all."""

_LOADABLE: dict[str, type[BaseEstimator]] = {}


class Fitted(eqx.Module):
    """The stored form of a fitted estimator: class name, constructor parameters, model, and other learnt attributes.

    A transformer has no model.
    """

    estimator: str
    parameters: dict[str, Any]
    model: AbstractSeriesModel | None
    learnt: dict[str, Any]


def loadable(cls: type[EstimatorT]) -> type[EstimatorT]:
    """Class decorator: lets `load` find the estimator class by its name.

    The classes register themselves, because they import this module and it cannot import them.
    """
    _LOADABLE[cls.__name__] = cls
    return cls


def save(
    estimator: BaseEstimator, path: str | os.PathLike, overwrite: bool, extra_files: Mapping[str, str] | None = None
) -> None:
    """Write a fitted estimator, with `extra_files` (names and contents) in its folder.

    `checkpoints` is saved as None, and so is a `RandomState` as `random_state`.
    """
    parameters = estimator.get_params(deep=False)
    if "checkpoints" in parameters:
        parameters["checkpoints"] = None
    if isinstance(parameters.get("random_state"), np.random.RandomState):
        parameters["random_state"] = None
    learnt = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name != "model_"}
    for name in LABELS:
        if name in learnt:
            learnt[name] = {"dtype": learnt[name].dtype.str, "items": learnt[name].tolist()}
    name, model = type(estimator).__name__, vars(estimator).get("model_")
    summary = {"estimator": name, "choices": {key: repr(one) for key, one in learnt.get("choices_", {}).items()}}
    artefact.save(
        Fitted(name, parameters, model, learnt), path, summary=summary, extra_files=extra_files, overwrite=overwrite
    )


def load(path: str | os.PathLike) -> Any:
    """Read a fitted estimator that `save` or `logcde train` wrote.

    Returns:
        A `LogCDEClassifier`, `LogCDERegressor`, `LogCDEForecaster` or `LogCDETransformer`, whichever was saved.

    >>> import tempfile
    >>> from logcde.estimators import LogCDERegressor
    >>> X = np.random.default_rng(0).normal(size=(8, 5, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LogCDERegressor().fit(X, X[:, -1, 0]).save(f"{folder}/mine")
    ...     type(load(f"{folder}/mine")).__name__
    'LogCDERegressor'
    """
    stored = _read(path)
    if stored.estimator not in _LOADABLE:
        raise ArtefactError(
            f"{path} holds a {stored.estimator}, which is not an estimator of logcde.",
            "Read it with the `load` method of that class.",
        )
    return _restored(_LOADABLE[stored.estimator], stored, path)


def load_as(cls: type[EstimatorT], path: str | os.PathLike) -> EstimatorT:
    """Read a fitted estimator of this class, which may be a user's subclass."""
    stored = _read(path)
    if stored.estimator != cls.__name__:
        raise ArtefactError(
            f"{path} holds a {stored.estimator} and not a {cls.__name__}.", "Read it with logcde.estimators.load."
        )
    return _restored(cls, stored, path)


def _read(path: str | os.PathLike) -> Fitted:
    stored = artefact.load(path)
    if not isinstance(stored, Fitted):
        raise ArtefactError(
            f"{path} holds a {type(stored).__name__} and not a fitted estimator.", "Load it with logcde.load."
        )
    return stored


def _restored(cls: type[EstimatorT], stored: Fitted, path: str | os.PathLike) -> EstimatorT:
    try:
        estimator = cls(**stored.parameters)
        for name, value in stored.learnt.items():
            setattr(estimator, name, _labels(**value) if name in LABELS else value)
    except (TypeError, ValueError, AttributeError) as error:
        raise ArtefactError(f"{path} cannot be loaded as a {cls.__name__}: {error!r:.300}.", SAVE_AGAIN) from error
    if stored.model is not None:
        estimator.model_ = stored.model  # type: ignore[attr-defined]
    return estimator


def _labels(items: list[Any], dtype: str) -> np.ndarray:
    size = len(items) * np.dtype(dtype).itemsize
    if size > LARGEST_LABELS:
        raise ValueError(f"labels of type {dtype} would take {size:,} bytes")
    return np.array(items, dtype)
