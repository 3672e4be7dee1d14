"""From JSON and named tensors back to a tree of modules and plain values.

Objects are made without their constructors: fields are set, then the class's own checks run. So a file decides about
values, never about what is called.
"""

import datetime
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from logcde.artefact.encoding import Document, stored_fields
from logcde.artefact.registry import Names
from logcde.errors import ArtefactError
from logcde.streams.clock import zone_named


def decode(document: Document, tensors: Mapping[str, np.ndarray], names: Names) -> Any:
    """The value that `encode` was given.

    >>> decode([1, {"float": "inf"}, {"timedelta": [0, 60, 0]}], {}, Names())
    (1, inf, datetime.timedelta(seconds=60))
    """
    match document:
        case list():
            return tuple(decode(item, tensors, names) for item in document)
        case {"type": str(name), **fields}:
            return _object(names.to_class(name), fields, tensors, names)
        case {"tensor": str(name), "dtype": str(dtype), "shape": list(shape), **rest}:
            return _tensor(name, dtype, tuple(shape), "numpy" in rest, tensors)
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
            raise ArtefactError(f"{document!r} means nothing to this version of logcde.")
    return document


def _object(cls: type, fields: dict[str, Document], tensors: Mapping[str, np.ndarray], names: Names) -> Any:
    known = {field.name for field in stored_fields(cls)}
    for what, odd in (("lacks", known - fields.keys()), ("has an unknown", fields.keys() - known)):
        if odd:
            raise ArtefactError(
                f"A {cls.__name__} in the file {what} field {sorted(odd)[0]!r}: it comes from another version of "
                "logcde, or of your own class. Load it with that version."
            )
    made = object.__new__(cls)
    for name, document in fields.items():
        object.__setattr__(made, name, decode(document, tensors, names))
    for check in _checks(cls):
        check(made)
    return made


def _checks(cls: type) -> list[Any]:
    """The methods that check an object after its fields are set."""
    if not issubclass(cls, eqx.Module):
        return [cls.__post_init__] if hasattr(cls, "__post_init__") else []
    return [vars(part)["__check_init__"] for part in cls.__mro__ if "__check_init__" in vars(part)]


def _tensor(name: str, dtype: str, shape: tuple[int, ...], host: bool, tensors: Mapping[str, np.ndarray]) -> Any:
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
            f"The tensor {name!r} is {dtype}, but JAX is in single precision. Call "
            'jax.config.update("jax_enable_x64", True) before loading.'
        )
    return jnp.asarray(array)
