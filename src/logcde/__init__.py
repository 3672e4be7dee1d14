"""Learn from irregular, asynchronous observation streams without interpolation.

The names of `logcde._api` and the packages of `logcde` are imported on first access, so `import logcde` and
`logcde --help` do not wait for JAX.
"""

import importlib
import importlib.util
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logcde import algebra as algebra
    from logcde import artefact as artefact
    from logcde import baselines as baselines
    from logcde import datasets as datasets
    from logcde import embedding as embedding
    from logcde import errors as errors
    from logcde import estimators as estimators
    from logcde import export as export
    from logcde import features as features
    from logcde import flows as flows
    from logcde import models as models
    from logcde import online as online
    from logcde import paths as paths
    from logcde import plot as plot
    from logcde import scale as scale
    from logcde import scaling as scaling
    from logcde import scans as scans
    from logcde import streams as streams
    from logcde import testing as testing
    from logcde import train as train
    from logcde._api import *  # noqa: F403

    __version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("logcde")
    if name.startswith("_"):
        raise AttributeError(f"module 'logcde' has no attribute {name!r}")
    # Packages of `logcde` import each other in this way: they must not trigger the import of `_api`.
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    from logcde._renamed import RENAMED

    if name in RENAMED:
        raise AttributeError(
            f"module 'logcde' has no attribute {name!r}. Since version 0.2.0 it is lc.{RENAMED[name]}."
        )
    try:
        value = getattr(importlib.import_module("logcde._api"), name)
    except AttributeError:
        raise AttributeError(f"module 'logcde' has no attribute {name!r}") from None
    globals()[name] = value  # the next access takes nanoseconds
    return value


def __dir__() -> list[str]:
    namespaces = [module.name for module in pkgutil.iter_modules(__path__)]  # noqa: F405
    names = {*namespaces, *dir(importlib.import_module("logcde._api"))}
    return sorted({"__version__", *(name for name in names if not name.startswith("_"))})
