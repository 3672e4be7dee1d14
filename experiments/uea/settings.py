"""Hyper-parameters of the UEA experiments, in the form of the paper's tables, and the models that they describe."""

import importlib.resources
from functools import lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from experiments.uea.models import LinearPath, NeuralPath, Spline, StateSpace, UeaModel

Decoded = TypeVar("Decoded")
Printed: TypeAlias = dict[str, dict[str, dict[str, tuple[float, float]]]]

MODELS = {
    "s5": "S5",
    "lru": "LRU",
    "s6": "S6",
    "mamba": "Mamba",
    "ncde": "NCDE",
    "log_ncde": "Log-NCDE",
    "d_slice": "D-SLiCE",
    "d_slice_euler": "D-SLiCE, flow 1 + A",
    "bd_slice": "BD-SLiCE",
    "lncde": "LNCDE",
}
"""Models by the name that configurations use, with the name that tables show."""
BLOCK = 4
PATH_MODELS = ("d_slice", "d_slice_euler", "bd_slice", "lncde", "log_ncde")


class PathSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of the paper's table of Log-NCDE hyper-parameters, which linear CDEs share.

    `layers` and `width` are those of the vector field of the Log-NCDE, `solver_steps` how many steps of Heun's method
    it takes for each window. `divide` is for linear CDEs.
    """

    rate: float
    time: bool
    hidden: int
    depth: int
    step: int
    penalty: float
    layers: int
    width: int
    solver_steps: int = 1
    divide: float = 1.0


class SplineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The hyper-parameters of the NCDE."""

    rate: float
    time: bool
    hidden: int
    layers: int
    width: int


class StateSpaceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A column of the paper's table of recurrent models."""

    rate: float
    time: bool
    hidden: int
    layers: int
    state: int
    blocks: int = 1
    convolution: int = 4
    expansion: int = 2


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The hyper-parameters of all models for one data set."""

    path: PathSettings
    ncde: SplineSettings
    s5: StateSpaceSettings
    lru: StateSpaceSettings
    s6: StateSpaceSettings
    mamba: StateSpaceSettings


@lru_cache(maxsize=1)
def packaged() -> dict[str, Settings]:
    """The settings of `settings.toml`, for each data set."""
    return _read("settings.toml", dict[str, Settings])


@lru_cache(maxsize=1)
def printed() -> Printed:
    """The paper's accuracies in percent and their standard deviations, by share, model and data set."""
    return _read("printed.toml", Printed)


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of linear CDEs that the paper leaves open, or that differ in the published runs."""

    flow: Literal["exponential", "euler"] = "exponential"
    scaled_by: Literal["train", "all"] = "train"
    skip_first: bool = False


def model_of(settings: Settings, name: str, reading: Reading = Reading()) -> tuple[UeaModel, float, float]:
    """The model of a name, its learning rate and its penalty."""
    if name in PATH_MODELS:
        return path_model_of(settings.path, name, reading), settings.path.rate, settings.path.penalty
    if name == "ncde":
        return spline_of(settings.ncde), settings.ncde.rate, 0.0
    own: StateSpaceSettings = getattr(settings, name)
    return msgspec.convert({"unit": name, **_without_rate(own)}, StateSpace), own.rate, 0.0


def path_model_of(path: PathSettings, name: str, reading: Reading = Reading()) -> LinearPath | NeuralPath:
    """One of the models that share the hyper-parameters of the Log-NCDE."""
    if name == "log_ncde":
        return NeuralPath(**{field: getattr(path, field) for field in NeuralPath.__struct_fields__})
    diagonal = name.startswith("d_slice")
    return LinearPath(
        hidden=path.hidden,
        block=1 if diagonal else BLOCK if name == "bd_slice" else path.hidden,
        depth=1 if diagonal else path.depth,  # brackets of diagonal matrices are zero
        step=path.step,
        time=path.time,
        divide=path.divide,
        flow="euler" if name == "d_slice_euler" else reading.flow,
        scaled_by=reading.scaled_by,
        skip_first=reading.skip_first,
    )


def spline_of(ncde: SplineSettings) -> Spline:
    """The NCDE."""
    return Spline(**_without_rate(ncde))


def _without_rate(settings: SplineSettings | StateSpaceSettings) -> dict[str, Any]:
    return {field: getattr(settings, field) for field in settings.__struct_fields__ if field != "rate"}


def _read(name: str, kind: type[Decoded]) -> Decoded:
    text = importlib.resources.files("experiments.uea").joinpath(name).read_text("utf-8")
    return msgspec.toml.decode(text, type=kind)
