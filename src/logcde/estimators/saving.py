"""Fitted estimators as directories, in the format of saved models: JSON and safetensors, nothing that is ever run."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator

from logcde import artefact
from logcde.errors import ArtefactError
from logcde.models import SequenceModel

Kind = TypeVar("Kind", bound=BaseEstimator)
LABELS = ("classes_", "feature_names_in_")
"""Arrays that may hold text."""


class Fitted(eqx.Module):
    """What there is to know of a fitted estimator: its class, parameters, model, and all else that it learnt."""

    estimator: str
    parameters: dict[str, Any]
    model: SequenceModel
    learnt: dict[str, Any]


def save(
    estimator: BaseEstimator, path: str | os.PathLike, overwrite: bool, extra_files: Mapping[str, str] | None = None
) -> None:
    """Write it, with `extra_files` in its folder. Checkpoints, and a generator as `random_state`, are left out."""
    parameters = estimator.get_params(deep=False) | {"checkpoints": None}
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    learnt = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name != "model_"}
    for name in LABELS:
        if name in learnt:
            learnt[name] = {"dtype": learnt[name].dtype.str, "items": learnt[name].tolist()}
    kind, model = type(estimator).__name__, vars(estimator)["model_"]
    summary = {"estimator": kind, "choices": {name: repr(choice) for name, choice in learnt["choices_"].items()}}
    artefact.save(
        Fitted(kind, parameters, model, learnt), path, summary=summary, extra_files=extra_files, overwrite=overwrite
    )


def load(cls: type[Kind], path: str | os.PathLike) -> Kind:
    """Read it."""
    found = read(path)
    if found.estimator != cls.__name__:
        raise ArtefactError(f"{path} holds a {found.estimator} and not a {cls.__name__}. Load it as what it is.")
    return restored(cls, found)


def read(path: str | os.PathLike) -> Fitted:
    """What there is to know of the estimator that is saved there."""
    found = artefact.load(path)
    if not isinstance(found, Fitted):
        raise ArtefactError(
            f"{path} holds a {type(found).__name__} and not a fitted estimator. Load it with logcde.load."
        )
    return found


def restored(cls: type[Kind], found: Fitted) -> Kind:
    """The estimator of this class."""
    estimator = cls(**found.parameters)
    for name, value in found.learnt.items():
        if name in LABELS:
            value = np.array(value["items"], value["dtype"])
        setattr(estimator, name, value)
    estimator.model_ = found.model  # type: ignore[attr-defined]
    return estimator
