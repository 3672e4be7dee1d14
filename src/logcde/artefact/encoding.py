"""Modules and plain values as JSON and named tensors, and back.

A module or dataclass becomes {"type": name, field: ...}, an array {"tensor": name, ...} with its path in the tree as
its name, and a value that JSON cannot represent a mapping with a key that names its type. JSON lists are tuples.

Decoding never calls a constructor: fields are set, then the checks of the class run. So a file decides about values,
never about which code is called.
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
from logcde.streams.clock import zone_named
from logcde.streams.stamps import zone_name

Document: TypeAlias = Any
"""A value that JSON can represent."""


def encode(value: object, path: str, tensors: dict[str, np.ndarray], names: Names) -> Document:
    """Encode a value as JSON and add its arrays to `tensors`.

    Args:
        value: A module, dataclass or plain value.
        path: Its place in the tree; empty for the root.
        tensors: Receives the arrays, by path.
        names: The classes and functions that files may name.

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
            return _encode_tensor(value, path, tensors)
        case datetime.timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case datetime.datetime():
            return _encode_datetime(value)
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
        return _encode_object(value, path, tensors, names)
    if callable(value) and not isinstance(value, type):
        return {"function": _name_at(names.of_function, value, path)}
    raise ArtefactError(f"{path or 'The value'} is {value!r}, of a type that cannot be saved.")


def decode(document: Document, tensors: Mapping[str, np.ndarray], names: Names) -> Any:
    """Decode what `encode` returned.

    >>> decode([1, {"float": "inf"}, {"timedelta": [0, 60, 0]}], {}, Names())
    (1, inf, datetime.timedelta(seconds=60))
    """
    match document:
        case list():
            return tuple(decode(item, tensors, names) for item in document)
        case {"type": str(name), **fields}:
            return _decode_object(names.to_class(name), fields, tensors, names)
        case {"tensor": str(name), "dtype": str(dtype), "shape": list(shape), **rest}:
            return _decode_tensor(name, dtype, tuple(shape), "numpy" in rest, tensors)
        case {"enum": str(name), "name": str(member)}:
            return names.to_class(name)[member]  # type: ignore[index]
        case {"function": str(name)}:
            return names.to_function(name)
        case {"float": str(text)}:
            return float(text)
        case {"dtype": str(name)}:
            return jnp.dtype(name)
        case {"timedelta": [days, seconds, microseconds]}:
            return datetime.timedelta(days, seconds, microseconds)
        case {"datetime": str(text), "zone": zone}:
            moment = datetime.datetime.fromisoformat(text)
            return moment if zone is None else moment.replace(tzinfo=datetime.UTC).astimezone(zone_named(zone))
        case {"date": str(text)}:
            return datetime.date.fromisoformat(text)
        case {"datetime64": int(count), "unit": str(unit)}:
            return np.datetime64(count, unit)  # type: ignore[arg-type]
        case {"timedelta64": int(count), "unit": str(unit)}:
            return np.timedelta64(count, unit)  # type: ignore[arg-type]
        case {"list": list(items)}:
            return [decode(item, tensors, names) for item in items]
        case {"mapping": dict(items)}:
            return {key: decode(item, tensors, names) for key, item in items.items()}
        case dict():
            raise ArtefactError(f"{document!r:.200} has no meaning in this version of logcde.")
    return document


def plain(value: object) -> Document:
    """Convert a summary to plain JSON; numbers that are not finite become text."""
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
    raise ArtefactError(f"The summary contains {value!r}.", "Give numbers, text, and lists and mappings of these.")


def _encode_object(value: Any, path: str, tensors: dict[str, np.ndarray], names: Names) -> Document:
    document = {"type": _name_at(names.of_class, type(value), path)}
    for field in stored_fields(type(value)):
        if field.name == "type":
            raise ArtefactError(
                f"{path or 'The value'} has a field named 'type', which files use themselves.", "Rename the field."
            )
        where = f"{path}.{field.name}" if path else field.name
        document[field.name] = encode(getattr(value, field.name), where, tensors, names)
    return document


def _encode_tensor(value: jax.Array | np.ndarray, path: str, tensors: dict[str, np.ndarray]) -> Document:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        raise ArtefactError(f"{path} is an array of {value.dtype}, which cannot be saved.")
    array = np.asarray(value)
    document = {"tensor": path, "dtype": array.dtype.name, "shape": list(array.shape)}
    if isinstance(value, np.ndarray):
        document["numpy"] = True
    if array.dtype.kind in "OUSV" and array.dtype.name != "bfloat16":
        raise ArtefactError(f"{path} is an array of {array.dtype}, which cannot be saved.", "Use numbers.")
    # Stamps are stored as integers; the dtype names their unit.
    tensors[path] = np.require(array.view(np.int64) if array.dtype.kind in "mM" else array, requirements="C")
    return document


def _encode_datetime(value: datetime.datetime) -> Document:
    if value.tzinfo is None:
        return {"datetime": value.isoformat(), "zone": None}
    moment = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return {"datetime": moment.isoformat(), "zone": zone_name(value.tzinfo)}


def _name_at(name: Callable[..., str], thing: Any, path: str) -> str:
    """The name of a class or function in files; if it has none, the error says where in the tree it is."""
    try:
        return name(thing)
    except ArtefactError as error:
        raise ArtefactError(f"{path or 'The model'} cannot be saved. {error.found}", error.remedy) from error


def _decode_object(cls: type, fields: dict[str, Document], tensors: Mapping[str, np.ndarray], names: Names) -> Any:
    known = {field.name for field in stored_fields(cls)}
    for fault, odd in (("lacks", known - fields.keys()), ("has an unknown", fields.keys() - known)):
        if odd:
            raise ArtefactError(
                f"A {cls.__name__} in the file {fault} field {sorted(odd)[0]!r}: the file comes from another version "
                "of logcde, or of your own class.",
                "Load it with that version.",
            )
    decoded = object.__new__(cls)
    for name, document in fields.items():
        object.__setattr__(decoded, name, decode(document, tensors, names))
    for check in _checks(cls):
        check(decoded)
    return decoded


def _checks(cls: type) -> list[Any]:
    """The methods of a class that check an object after its fields are set."""
    if not issubclass(cls, eqx.Module):
        return [cls.__post_init__] if hasattr(cls, "__post_init__") else []
    return [vars(part)["__check_init__"] for part in cls.__mro__ if "__check_init__" in vars(part)]


def _decode_tensor(name: str, dtype: str, shape: tuple[int, ...], host: bool, tensors: Mapping[str, np.ndarray]) -> Any:
    if name not in tensors:
        raise ArtefactError(f"The tensor {name!r} is missing.")
    stamps = dtype.startswith(("datetime64", "timedelta64"))
    stored = "int64" if stamps else dtype
    array = tensors[name]
    if array.dtype.name != stored or array.shape != shape:
        raise ArtefactError(
            f"The tensor {name!r} is {array.dtype.name} {list(array.shape)}, but {stored} {list(shape)} is expected."
        )
    if host:
        return array.view(dtype) if stamps else array
    if array.dtype.itemsize == 8 and array.dtype.kind in "fiu" and not jax.config.jax_enable_x64:  # type: ignore
        raise ArtefactError(
            f"The tensor {name!r} is {dtype}, but JAX is in single precision.",
            'Call jax.config.update("jax_enable_x64", True) before loading.',
        )
    return jnp.asarray(array)


def stored_fields(cls: type) -> list[dataclasses.Field]:
    """The fields to store: all but constants of the class, which no constructor sets."""
    constants = [field for field in dataclasses.fields(cls) if not field.init and hasattr(cls, field.name)]
    return [field for field in dataclasses.fields(cls) if field not in constants]
