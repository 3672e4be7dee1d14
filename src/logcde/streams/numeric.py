"""Values of any numeric kind become float64; anything else is refused by name."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64

from logcde.errors import StreamError

LARGEST_WHOLE = 2**53


def as_numbers(array: object, place: Callable[[tuple[int, ...]], str]) -> Float64[np.ndarray, "..."]:
    """Values as float64, None as NaN. `place` puts the position of an offending entry into words.

    >>> as_numbers([1, None], place=str)
    array([ 1., nan])
    """
    array = as_array(array)
    kind = array.dtype.kind
    if kind in "fbiu":
        if kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > LARGEST_WHOLE:
            large = np.abs(array.astype(np.float64)) > LARGEST_WHOLE
            index = _position(large)
            raise StreamError(
                f"{place(index)} has the value {int(array[index])}, too large for float64 to hold exactly. "
                "Scale it first."
            )
        return array.astype(np.float64, copy=False)
    if kind == "O":
        items = array.reshape(-1).tolist()
        offending = np.array([not _is_number(item) for item in items], bool)
        if not offending.any():
            return np.array([np.nan if item is None else item for item in items], np.float64).reshape(array.shape)
        index = _position(offending.reshape(array.shape))
    elif array.size:
        index = (0,) * array.ndim
    else:
        return np.empty(array.shape)
    item = array[index]
    found = item.item() if isinstance(item, np.generic) else item
    raise StreamError(
        f"{place(index)} has the value {found!r}, which is not a number. "
        "Convert it to one, or use NaN for not observed."
    )


def as_values(array: object, place: Callable[[tuple[int, ...]], str]) -> Float[np.ndarray, "..."]:
    """As `as_numbers`, but values of single precision stay as they are: they are half as much to read.

    >>> as_values(np.float32([0.1]), place=str)
    array([0.1], dtype=float32)
    """
    array = as_array(array)
    return array if array.dtype == np.float32 else as_numbers(array, place)


def as_array(items: object) -> np.ndarray:
    """An array of what there is, where NumPy would turn numbers into text that stand beside text.

    >>> as_array([1.5, "high"])
    array([1.5, 'high'], dtype=object)
    """
    array = np.asarray(items)
    return np.asarray(items, object) if array.dtype.kind in "US" else array


def _is_number(item: object) -> bool:
    return item is None or isinstance(item, int | float | np.integer | np.floating | np.bool_)


def _position(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
