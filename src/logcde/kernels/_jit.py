"""How kernels are compiled: serial, without the GIL, cached on disk.

Products may be fused with sums; the arithmetic is not relaxed in any other way, so the same factors give the same
numbers wherever they are composed. Three things decide the speed of the machine code that Numba makes of a loop here:
an unsigned index spares the check for negative ones; arrays that may overlap are checked for it before each loop, see
`_simd`; and a call passes every field of every array, so kernels take ranges of events rather than single ones.

Numba finds a function in its cache by its code and by a hash of the values that it closes over. Numbers, types and
arrays have the same hash in every process; compiled functions and intrinsics do not. So a function that is specialised
to some constants closes over these only, and looks up the kernels that it calls in its module.

Numba judges whether a cached kernel is stale by the one file that defines it, although the machine code also contains
every kernel that it calls. `PackageLocator` therefore makes a kernel's stamp depend on all files of this package.
"""

import functools
import hashlib
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
from numba.core import caching, config, errors

from logcde._cache import use_chosen_folder

LOG = logging.getLogger("logcde")
PACKAGE = Path(__file__).resolve().parent

index = nb.uint64


@functools.cache
def package_stamp() -> str:
    """A hash of the names and contents of all source files of this package."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


class PackageLocator:
    """A cache locator for the kernels of this package: the place that Numba would choose, with `package_stamp` added.

    It declines functions of all other files, which keep Numba's own locators.
    """

    def __init__(self, chosen: Any) -> None:
        self._chosen = chosen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen, name)

    def get_source_stamp(self) -> tuple[Any, str]:
        """Numba's stamp of the file, and that of the package. A cached kernel with another stamp is compiled again."""
        return self._chosen.get_source_stamp(), package_stamp()

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> "PackageLocator | None":
        """The first of Numba's locators that finds a place for a kernel, wrapped; None for any other function."""
        if Path(file).resolve().parent != PACKAGE:
            return None
        locators = (locator for locator in caching.CacheImpl._locator_classes if locator is not cls)
        found = (locator.from_function(function, file) for locator in locators)
        return next((cls(locator) for locator in found if locator is not None), None)


def _use_package_stamps() -> None:
    """Put `PackageLocator` before Numba's own locators. The list is not a public interface, so it may be missing."""
    try:
        caching.CacheImpl._locator_classes.insert(0, PackageLocator)
    except AttributeError:
        LOG.warning(
            "This version of Numba does not let logcde watch its kernels: after editing one, delete %s.",
            PACKAGE / "__pycache__",
        )


def _has_cache() -> bool:
    """Whether Numba finds a place for its cache: next to the source, or in the user's home directory."""
    try:
        nb.njit(cache=True)(_has_cache)
    except RuntimeError as error:
        warnings.warn(
            f"Compiled kernels cannot be cached ({error}), so every process spends about a minute compiling them. "
            "Set LOGCDE_CACHE_DIR to a writable directory.",
            stacklevel=2,
        )
        return False
    return True


def _leave_standard_output_alone() -> None:
    """Have Numba format its errors without colorama, unless colours are wanted.

    Compilation makes and drops such errors when it tries one type after another. To format one, colorama exchanges
    `sys.stdout` for a moment, and takes away what another thread has put there meanwhile, such as a notebook.
    """
    scheme: Any = errors.termcolor()
    if getattr(config, "COLOR_SCHEME", "no_color") == "no_color" and hasattr(scheme, "_markup"):
        scheme._markup = lambda message, *_: message


_leave_standard_output_alone()
_use_package_stamps()
use_chosen_folder()
OPTIONS: dict[str, Any] = {"cache": _has_cache(), "fastmath": {"contract", "nsz"}, "error_model": "numpy"}
RELAXED: dict[str, Any] = {**OPTIONS, "fastmath": {"contract", "nsz", "reassoc"}}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call, or take it from the cache on disk."""
    return nb.njit(nogil=True, **OPTIONS)(function)


def quick(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, but holding the GIL: for functions that take less time than releasing and acquiring it."""
    return nb.njit(**OPTIONS)(function)


def relaxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, with sums in any order, so that they can be vectorised."""
    return nb.njit(nogil=True, **RELAXED)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of kernels that is inlined into each of its callers, so that constants reach it."""
    return nb.njit(nogil=True, forceinline=True, **OPTIONS)(function)


def merged(function: Callable[..., Any]) -> Callable[..., Any]:
    """The body of a single function, or a line: it becomes part of its callers before they are compiled."""
    return nb.njit(nogil=True, inline="always", **OPTIONS)(function)


@kernel
def scratch(n):
    """Zeros that begin at a cache line: rows that straddle lines would cost up to half of a kernel's speed."""
    raw = np.zeros(n + 8)
    skip = (64 - raw.ctypes.data % 64) % 64 // 8
    return raw[skip : skip + n]
