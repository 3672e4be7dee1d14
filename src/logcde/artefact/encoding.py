"""From a tree of modules and plain values to JSON and named tensors.

A module or dataclass becomes {"type": name, field: ...}, an array {"tensor": name, ...} with its path as its name, and
what JSON has no words for a mapping with one key that says what it is. JSON's lists are tuples.
"""

import dataclasses
import datetime
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from logcde.artefact.registry import Names
from logcde.errors import ArtefactError
from logcde.streams.stamps import zone_name

Document: TypeAlias = Any
"""What JSON can hold."""


def encode(value: object, path: str, tensors: dict[str, np.ndarray], names: Names) -> Document:
    """One value as JSON; its arrays go into `tensors`.

    >>> encode((1, 2.5, float("inf"), jax.nn.silu), "value", {}, Names())
    [1, 2.5, {'float': 'inf'}, {'function': 'jax.nn.silu'}]
    """
    match value:
        case enum.Enum():
            return {"enum": names.of_class(type(value)), "name": value.name}
        case None | bool() | str():
            return value
        case np.datetime64() | np.timedelta64():
            unit = np.datetime_data(value.dtype)[0]
            return {type(value).__name__: int(value.astype(np.int64)), "unit": unit}
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        case np.bool_():
            return bool(value)
        case np.dtype():
            return {"dtype": value.name}
        case jax.Array() | np.ndarray():
            return _tensor(value, path, tensors)
        case datetime.timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case datetime.datetime():
            return _moment(value)
        case datetime.date():
            return {"date": value.isoformat()}
        case tuple() if type(value) is tuple:
            return [encode(item, f"{path}.{n}", tensors, names) for n, item in enumerate(value)]
        case list():
            return {"list": [encode(item, f"{path}.{n}", tensors, names) for n, item in enumerate(value)]}
        case dict() if all(isinstance(key, str) for key in value):
            return {"mapping": {key: encode(item, f"{path}.{key}", tensors, names) for key, item in value.items()}}
        case type() if issubclass(value, np.generic):
            return {"dtype": np.dtype(value).name}
    if isinstance(value, eqx.Module) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return _object(value, path, tensors, names)
    if callable(value) and not isinstance(value, type):
        return {"function": _located(names.of_function, value, path)}
    raise ArtefactError(f"{path or 'This'} is {value!r}, of a type that cannot be saved.")


def plain(value: object) -> Document:
    """A summary as plain JSON: mappings, sequences, numbers and text; numbers that are not finite become text."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else repr(value)
        case np.generic() | np.ndarray() | jax.Array():
            return plain(np.asarray(value).tolist())
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    raise ArtefactError(f"The summary contains {value!r}. Give numbers, text, and lists and mappings of these.")


def stored_fields(cls: type) -> list[dataclasses.Field]:
    """The fields that differ between objects; those that no constructor sets belong to the class."""
    constants = [field for field in dataclasses.fields(cls) if not field.init and hasattr(cls, field.name)]
    return [field for field in dataclasses.fields(cls) if field not in constants]


def _object(value: Any, path: str, tensors: dict[str, np.ndarray], names: Names) -> Document:
    document = {"type": _located(names.of_class, type(value), path)}
    for field in stored_fields(type(value)):
        if field.name == "type":
            raise ArtefactError(f"{path or 'This'} has a field named 'type', which files use themselves. Rename it.")
        where = f"{path}.{field.name}" if path else field.name
        document[field.name] = encode(getattr(value, field.name), where, tensors, names)
    return document


def _tensor(value: jax.Array | np.ndarray, path: str, tensors: dict[str, np.ndarray]) -> Document:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        raise ArtefactError(f"{path} is an array of {value.dtype}, which cannot be saved.")
    array = np.asarray(value)
    document = {"tensor": path, "dtype": array.dtype.name, "shape": list(array.shape)}
    if isinstance(value, np.ndarray):
        document["numpy"] = True
    if array.dtype.kind in "OUSV" and array.dtype.name != "bfloat16":
        raise ArtefactError(f"{path} is an array of {array.dtype}, which cannot be saved. Use numbers.")
    # Stamps are whole numbers of their unit, which the dtype names.
    tensors[path] = np.require(array.view(np.int64) if array.dtype.kind in "mM" else array, requirements="C")
    return document


def _moment(value: datetime.datetime) -> Document:
    if value.tzinfo is None:
        return {"datetime": value.isoformat(), "zone": None}
    moment = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return {"datetime": moment.isoformat(), "zone": zone_name(value.tzinfo)}


def _located(name: Callable[..., str], thing: Any, path: str) -> str:
    try:
        return name(thing)
    except ArtefactError as error:
        raise ArtefactError(f"{path or 'The model'} cannot be saved. {error}") from error
