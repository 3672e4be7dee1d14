"""The classes and functions that a saved model may name.

A file names a class by package and class, such as "models.SequenceModel" or "scans.Chunked". It may name classes of
`logcde`, `equinox.nn` and `diffrax` that are modules, dataclasses or enumerations and have been imported already, some
functions of JAX, and what a user registers. Nothing is ever imported because a file names it.
"""

import dataclasses
import enum
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from logcde.errors import ArtefactError

T = TypeVar("T")
HOMES = ("logcde.", "equinox.nn", "diffrax")
ACTIVATIONS = (
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "squareplus",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {f"jax.nn.{name}": getattr(jax.nn, name) for name in ACTIVATIONS}
FUNCTIONS |= {"jax.numpy.tanh": jnp.tanh, "jax.numpy.sin": jnp.sin, "jax.lax.tanh": jax.lax.tanh}
# The default final activation of `equinox.nn.MLP` is a function without a public name.
FUNCTIONS["equinox.nn.identity"] = inspect.signature(eqx.nn.MLP.__init__).parameters["final_activation"].default

_REGISTERED: dict[str, Any] = {}


def register(thing: T) -> T:
    """Let models that contain this class or function of yours be saved and loaded. Works as a decorator.

    Register it in every process that loads such a model, under the same module and name.

    Args:
        thing: A function, or a class that is an `equinox.Module`, a dataclass or an enumeration.

    Returns:
        The same class or function.

    >>> @register
    ... class Sine(eqx.Module):
    ...     frequency: float = eqx.field(static=True)
    >>> names = Names()
    >>> names.to_class(names.of_class(Sine)) is Sine
    True
    """
    if isinstance(thing, type) and not _is_storable(thing):
        raise ArtefactError(
            f"{thing.__qualname__} is neither an equinox.Module, a dataclass nor an enumeration, so its fields are not "
            "known.",
            "Make it one of these.",
        )
    if not callable(thing):
        raise ArtefactError(f"{thing!r} is neither a class nor a function.")
    _REGISTERED[f"{thing.__module__}.{thing.__qualname__}"] = thing  # type: ignore[attr-defined]
    return thing


class Names:
    """The classes and functions that files may name now. Made for each file: imports and `register` add to them."""

    def __init__(self) -> None:
        self._classes = _classes()
        self._functions = FUNCTIONS | {name: it for name, it in _REGISTERED.items() if not isinstance(it, type)}

    def of_class(self, cls: type) -> str:
        """The name of a class in files."""
        for name, known in self._classes.items():
            if known is cls:
                return name
        raise ArtefactError(
            f"The class {cls.__module__}.{cls.__qualname__} is not registered.", "Call logcde.register on it first."
        )

    def of_function(self, function: Callable[..., Any]) -> str:
        """The name of a function in files."""
        for name, known in self._functions.items():
            if known is function:
                return name
        raise ArtefactError(
            f"The function {function!r} is not registered.",
            "Use one of jax.nn, or call logcde.register on it first.",
        )

    def to_class(self, name: str) -> type:
        """The class that a file names."""
        found = self._classes.get(name)
        if found is None:
            if name.startswith("estimators."):
                raise ArtefactError("It is a fitted estimator.", "Load it with logcde.estimators.load.")
            raise ArtefactError(
                f"The type {name!r} is unknown.",
                "If it is a class of yours, import its module and call logcde.register on it; if not, the file comes "
                "from another version of logcde.",
            )
        return found

    def to_function(self, name: str) -> Callable[..., Any]:
        """The function that a file names."""
        found = self._functions.get(name)
        if found is None:
            raise ArtefactError(
                f"The function {name!r} is unknown.", "If it is yours, call logcde.register on it first."
            )
        return found


def _classes() -> dict[str, type]:
    found = {name: thing for name, thing in _REGISTERED.items() if isinstance(thing, type)}
    for module in [module for name, module in sys.modules.items() if name.startswith(HOMES)]:
        for thing in vars(module).values():
            if isinstance(thing, type) and thing.__module__ == module.__name__ and _is_storable(thing):
                found[short_name(thing)] = thing
    return found


def _is_storable(cls: type) -> bool:
    # Modules of Equinox are dataclasses; asking `issubclass` about them would ask every class that Equinox knows.
    return dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum)


def short_name(cls: type) -> str:
    """Package and class: the name stays the same when a class moves to another module of its package.

    >>> from logcde.models import SequenceModel
    >>> from logcde.scans import Chunked
    >>> short_name(SequenceModel), short_name(Chunked), short_name(eqx.nn.MLP)
    ('models.SequenceModel', 'scans.Chunked', 'equinox.nn.MLP')
    """
    module = cls.__module__.split("._")[0].removeprefix("logcde.")
    package = module if module in HOMES else module.split(".")[0]
    return f"{package}.{cls.__qualname__.removeprefix('_')}"
