"""Stamps of any kind, as arrays or as Python objects, become arrays of one of three kinds.

Numbers become float64, datetimes `datetime64` (in UTC, with their zone noted), durations `timedelta64`. What is missing
(None, NaN, NaT) stays missing and is dealt with by `ingest`, which knows whether it matters.
"""

from datetime import UTC, date, datetime, timedelta

import numpy as np
from jaxtyping import Float64

from logcde.errors import StreamError
from logcde.streams.clock import Stamps
from logcde.streams.numeric import as_array

LARGEST_WHOLE = 2**53


def read_stamps(stamps: object) -> Stamps:
    """Stamps from an array, a list or a single one. An array of float64 is not copied.

    >>> read_stamps([1, 2.5])
    Stamps(array=array([1. , 2.5]), zone=None)
    >>> read_stamps([datetime(2024, 1, 1, tzinfo=UTC)]).zone
    'UTC'
    """
    array = as_array(stamps)
    if array.dtype.kind == "O":
        return _read_objects(array)
    if array.dtype.kind in "mM":
        return Stamps(_in_known_resolution(array))
    if array.dtype.kind in "fiu":
        return Stamps(_as_floats(array))
    raise StreamError(
        f"The stamps are of type {array.dtype.name}, which is no kind of time. Use numbers, datetimes or timedeltas."
    )


def on_grid(array: np.ndarray, resolution: str) -> np.ndarray:
    """Stamps in another resolution, refused where that would change them.

    >>> on_grid(np.array(["2024-01-01T00:01"], "datetime64[m]"), "s")
    array(['2024-01-01T00:01:00'], dtype='datetime64[s]')
    """
    dtype = np.dtype(f"{_family(array)}[{resolution}]")
    if array.dtype == dtype:
        return array
    cast = array.astype(dtype)
    changed = (cast != array) & ~np.isnat(array)
    if changed.any():
        first = array.reshape(-1)[np.argmax(changed.reshape(-1))]
        raise StreamError(
            f"The stamp {first} is finer than {dtype}, the resolution of these streams. "
            "Round it, or cast all stamps to the finer resolution first."
        )
    return cast


def zone_name(zone: object) -> str:
    """The name under which `clock.zone_named` finds a time zone again.

    >>> from datetime import timezone
    >>> zone_name(timezone(timedelta(hours=2))), zone_name(UTC), zone_name("Europe/Paris")
    ('+02:00', 'UTC', 'Europe/Paris')
    """
    return str(zone).removeprefix("UTC") or "UTC"


def _family(array: np.ndarray) -> str:
    return "datetime64" if array.dtype.kind == "M" else "timedelta64"


def _as_floats(array: np.ndarray) -> Float64[np.ndarray, "..."]:
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > LARGEST_WHOLE:
        raise StreamError(
            f"The stamps go from {int(array.min())} to {int(array.max())}, too large for float64 to hold exactly. Turn "
            "them into datetimes, or subtract the first one."
        )
    return array.astype(np.float64, copy=False)


def _in_known_resolution(array: np.ndarray) -> np.ndarray:
    unit, count = np.datetime_data(array.dtype)
    family = _family(array)
    if unit in ("s", "ms", "us", "ns"):
        return array if count == 1 else array.astype(f"{family}[{unit}]")
    if unit in ("m", "h", "D", "W") or (family == "datetime64" and unit in ("M", "Y")):
        return array.astype(f"{family}[s]")
    raise StreamError(
        f"Stamps of type {array.dtype} cannot be counted in seconds. Cast them to {family}[ns] or coarser."
    )


def _read_objects(array: np.ndarray) -> Stamps:
    # NaN and NaT are the values that differ from themselves.
    flat = [None if item is None or item != item else item for item in array.reshape(-1)]
    given = [item for item in flat if item is not None]
    if not given:
        return Stamps(np.full(array.shape, np.nan))
    kind = next((kind for kind in (datetime, date, timedelta) if isinstance(given[0], kind)), (int, float, np.number))
    for item in given:
        if not isinstance(item, kind):
            found = f"The stamp {item!r} is no kind of time"
            beside = "" if item is given[0] else f" that goes with the stamp {given[0]!r}"
            raise StreamError(
                f"{found}{beside}. Use numbers, datetimes or timedeltas, the same throughout; "
                "text must be parsed first."
            )
        if getattr(item, "nanosecond", 0) or getattr(item, "nanoseconds", 0):
            raise StreamError(
                f"The stamp {item} has nanoseconds, which Python's own types have not. Pass such stamps as an array of "
                "type datetime64[ns] or timedelta64[ns]."
            )
    if kind is datetime:
        return _read_datetimes(flat, array.shape)
    if kind is date:
        return Stamps(np.array(flat, "datetime64[s]").reshape(array.shape))
    if kind is timedelta:
        return Stamps(np.array(flat, "timedelta64[us]").reshape(array.shape))
    return Stamps(np.array([np.nan if item is None else item for item in flat], np.float64).reshape(array.shape))


def _read_datetimes(items: list[datetime | None], shape: tuple[int, ...]) -> Stamps:
    zones = {None if item.tzinfo is None else zone_name(item.tzinfo) for item in items if item is not None}
    if len(zones) > 1:
        named = ", ".join(sorted(str(zone) for zone in zones))
        raise StreamError(f"The stamps mix the time zones {named}. Convert them to one zone first.")
    plain = [
        item if item is None or item.tzinfo is None else item.astimezone(UTC).replace(tzinfo=None) for item in items
    ]
    return Stamps(np.array(plain, "datetime64[us]").reshape(shape), zones.pop())
