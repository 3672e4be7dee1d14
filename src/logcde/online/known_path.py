"""What is known of the continuous channels of a growing series: a piecewise linear path, given knot by knot.

Offline, a path is known up to the horizon of its series; online, up to its last knot. It is linear between knots, so
intervals may end, and events may be, anywhere. Pieces that the series has passed are forgotten.
"""

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64

from logcde.embedding.online import Values
from logcde.errors import ModelError, StreamError, Where
from logcde.streams.labels import read_row
from logcde.streams.schema import listed


class KnownPath:
    """The pieces of a path from where a series is onwards.

    >>> path = KnownPath(("load",))
    >>> path.add(0.0, path.row({"load": 1.0}))
    >>> path.add(2.0, path.row([3.0]))
    >>> path.until, path.at(0.5)
    (2.0, array([1.5]))
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._places = {name: place for place, name in enumerate(names)}
        self._times: list[float] = []
        self._values: list[Float64[np.ndarray, "continuous"]] = []

    @property
    def until(self) -> float:
        """The time of the last knot; minus infinity before the first."""
        return self._times[-1] if self._times else -math.inf

    def row(self, values: Values) -> Float64[np.ndarray, "continuous"]:
        """One finite number for each channel, by name or in order."""
        row = read_row(self._places, values)
        if row.shape != (len(self.names),) or not np.isfinite(row).all():
            raise StreamError(
                f"The continuous channels {listed(self.names)} got the values {row.tolist()}.",
                "Give one finite number for each of them.",
            )
        return row

    def check_known(self, time: float, show: Callable[[float], str] = str) -> None:
        """Refuse a time up to which the path is not known."""
        if time > self.until:
            known = "not known yet" if self.until == -math.inf else f"known up to {show(self.until)} only"
            raise StreamError(
                f"The continuous channels {listed(self.names)} are {known}, but must be known up to {show(time)}.",
                'Give their values at that time or later first: knot(time, values), or "continuous" in a line.',
                where=Where(stamp=show(time)),
            )

    def add(
        self,
        time: float,
        row: Float64[np.ndarray, "continuous"],
        passed: float = 0.0,
        show: Callable[[float], str] = str,
    ) -> None:
        """Add a knot; it may come after later ones, unless the series has `passed` a part of the piece that it cuts."""
        stamp = show(time)
        if not self._times and time != 0.0:
            raise StreamError(
                f"The first knot of the continuous channels {listed(self.names)} is at {stamp}.",
                f"Begin with their values at the start of the series, {show(0.0)}.",
                where=Where(stamp=stamp),
            )
        place = bisect.bisect_left(self._times, time)
        if place < len(self._times) and self._times[place] == time:
            if not np.array_equal(self._values[place], row):
                raise StreamError(
                    f"The continuous channels {listed(self.names)} have the values {self._values[place].tolist()} at "
                    f"{stamp} already, and now got {row.tolist()}.",
                    "Keep one of them.",
                    where=Where(stamp=stamp),
                )
            return
        if place == 0 < len(self._times) or (place < len(self._times) and passed > self._times[place - 1]):
            raise StreamError(
                f"The knot at {stamp} comes too late: the series is at {show(passed)}, on a straight line to the knot "
                f"at {show(self._times[place])}.",
                "Give knots in order, each before the first event after it.",
                where=Where(stamp=stamp),
            )
        self._times.insert(place, time)
        self._values.insert(place, row)

    def at(self, time: float) -> Float64[np.ndarray, "continuous"]:
        """The values at a time that is known and not passed."""
        return self.along(np.array([time]))[0]

    def along(self, times: Float64[np.ndarray, "time"]) -> Float64[np.ndarray, "time continuous"]:
        """The values at several times, in order."""
        first = max(bisect.bisect_right(self._times, times[0]) - 1, 0)
        last = bisect.bisect_left(self._times, times[-1]) + 1
        knots, values = self._times[first:last], np.array(self._values[first:last])
        return np.stack([np.interp(times, knots, column) for column in values.T], axis=1)

    def between(self, after: float, before: float) -> list[tuple[float, Float64[np.ndarray, "continuous"]]]:
        """The knots between two times, without these."""
        first, last = bisect.bisect_right(self._times, after), bisect.bisect_left(self._times, before)
        return list(zip(self._times[first:last], self._values[first:last], strict=True))

    def next_knot(self, after: float) -> float:
        """The time of the first knot after a time; infinity without any."""
        place = bisect.bisect_right(self._times, after)
        return self._times[place] if place < len(self._times) else math.inf

    def forget(self, before: float) -> None:
        """Drop the pieces that end before a time."""
        passed = bisect.bisect_right(self._times, before) - 1
        if passed > 0:
            del self._times[:passed], self._values[:passed]

    def state(self, arrays: bool) -> list[Any]:
        """Times and values of the knots."""
        values = np.array(self._values)
        return [np.array(self._times), values] if arrays else [self._times.copy(), values.tolist()]

    def restore(self, state: list[Any]) -> None:
        """Restore what `state` returned."""
        times, values = (np.array(part, np.float64) for part in state)
        if times.size and (values.shape != (len(times), len(self.names)) or (np.diff(times) <= 0).any()):
            raise ModelError("The knots of the continuous channels are not those of this model.")
        self._times, self._values = times.tolist(), list(values)

    def copy(self) -> "KnownPath":
        """An independent copy."""
        other = KnownPath(self.names)
        other._times, other._values = self._times.copy(), self._values.copy()
        return other
