"""How kernels are compiled: serial, without the GIL, cached on disk.

Products may be fused with sums, nothing else of the arithmetic is relaxed: the same factors give the same numbers
wherever they are composed. Three things decide the speed of what Numba makes of a loop here: an unsigned index spares
the check for negative ones; arrays that may overlap are checked for it before each loop, see `_simd`; and a call passes
every field of every array, so kernels take ranges of events rather than one.

Numba finds a function in its cache by its code and by a hash of what it closes over. Numbers, types and arrays have the
same hash in every process; compiled functions and intrinsics never do. So a function that is made for some constants
closes over these, and finds the kernels that it calls in its module.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np

index = nb.uint64


def _has_cache() -> bool:
    """Whether Numba finds a place for its cache: beside the source, or in the home of the user."""
    try:
        nb.njit(cache=True)(_has_cache)
    except RuntimeError as error:
        warnings.warn(
            f"Compiled kernels cannot be kept ({error}), so that every process compiles them anew, for a minute or so. "
            "Set NUMBA_CACHE_DIR to a folder that can be written to.",
            stacklevel=2,
        )
        return False
    return True


OPTIONS: dict[str, Any] = {"cache": _has_cache(), "fastmath": {"contract", "nsz"}, "error_model": "numpy"}
RELAXED: dict[str, Any] = {**OPTIONS, "fastmath": {"contract", "nsz", "reassoc"}}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call, or take it from the cache on disk."""
    return nb.njit(nogil=True, **OPTIONS)(function)


def quick(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, for what takes less time than letting go of the GIL and taking it back."""
    return nb.njit(**OPTIONS)(function)


def relaxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, with sums in any order, so that they can be taken several at a time."""
    return nb.njit(nogil=True, **RELAXED)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of kernels that becomes one with each of its callers, so that constants reach it."""
    return nb.njit(nogil=True, forceinline=True, **OPTIONS)(function)


@kernel
def scratch(n):
    """Zeros that begin at a cache line: rows that straddle lines would cost up to half of a kernel's speed."""
    raw = np.zeros(n + 8)
    skip = (64 - raw.ctypes.data % 64) % 64 // 8
    return raw[skip : skip + n]
