"""`RangeWatch` follows a growing series, and warns once it lies far outside of what a model was trained on."""

import contextlib
import contextvars
import copy
import dataclasses
import math
import warnings
from collections.abc import Callable, Hashable, Iterator

import numpy as np
from jaxtyping import Float64

from logcde.errors import ModelError, OutOfRangeWarning
from logcde.kernels.watching import DENSITY, GAP, GAPS, HIGH, LOW, VALUES, take_event
from logcde.kernels.watching import STRAYS as KEPT_STRAYS
from logcde.streams import OutOfRange, Schema, TrainingRanges
from logcde.streams.ranges import STRAYS, Excess, Reason
from logcde.streams.schema import listed

_silent = contextvars.ContextVar("silent", default=False)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within this context, watches take no notice of anything: what is replayed was judged before."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


class RangeWatch:
    """Compares a growing series with ranges, event by event; it says what `TrainingRanges.compare` says of the prefix.

    Each reason is given once for all series that share a watch by `begin` or `copy`.

    Args:
        ranges: What the model was trained on.
        series: Id of the series, for the warning.
        given: Reasons that were given already, shared by all watches of these series.
        begun: Whether events were taken that this watch has not seen, so that it does not know the first.

    >>> from logcde import Streams
    >>> ranges = TrainingRanges.of(Streams.from_dense(np.random.default_rng(0).uniform(size=(10, 30, 1))))
    >>> watch = RangeWatch(ranges, "p1")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for number in range(200):
    ...         watch.take(number / 10, np.array([0.5]))
    >>> len(caught), str(caught[0].message).split(". ")[0]
    (1, "Series 'p1' has 9 observations of 'x1' within 0.9063, in training at most 1")
    """

    def __init__(
        self,
        ranges: TrainingRanges,
        series: Hashable = None,
        given: set[Reason] | None = None,
        begun: bool = False,
    ) -> None:
        self._ranges, self._series, self._given = ranges, series, set() if given is None else given
        self._begun = begun
        channels = len(ranges.channels)
        self._first, self._newest = np.nan, -np.inf
        self._limits = np.array([*ranges.values_allowed, ranges.gaps_allowed])
        self._window, self._count = np.full(len(ranges.widths), -1.0), np.zeros(ranges.most.shape)
        self._kept, self._gap = np.array([np.full(channels, np.nan), np.zeros(channels)]), np.zeros(channels)

    def begin(self, series: Hashable = None, begun: bool = False) -> "RangeWatch":
        """The watch of another series."""
        return RangeWatch(self._ranges, series, self._given, begun)

    def copy(self) -> "RangeWatch":
        """An independent watch of the same series."""
        other = copy.copy(self)
        for name in ("_window", "_count", "_kept", "_gap"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def take(self, time: float, row: Float64[np.ndarray, "_"]) -> None:
        """Take one event: the value of each channel, NaN where not observed. Late events do not count."""
        if _silent.get() or not time > self._newest or np.isnan(row).all():
            return
        ranges = self._ranges
        if math.isnan(self._first):
            self._first = time
            if time > ranges.before_allowed and not self._begun:
                self._warn("window", lambda: ranges.late(time))
        self._newest = time
        age = time - self._first
        widths, most = ranges.widths, ranges.most_allowed
        found = take_event(
            age, row, widths, most, self._limits, STRAYS, self._window, self._count, self._kept, self._gap
        )
        if found & DENSITY:
            self._warn("density", self._dense)
        if found & VALUES:
            self._warn("values", lambda: self._wild(row))
        if found & GAPS:
            self._warn("gaps", self._pausing)
        if age > ranges.length_allowed:
            self._warn("length", lambda: ranges.long(age))

    def ask(self, time: float) -> None:
        """Take notice of a prediction at this time."""
        rest = time - self._newest if math.isfinite(self._newest) else 0.0
        if rest > self._ranges.after_allowed:
            self._warn("window", lambda: self._ranges.ended(rest))

    def _warn(self, reason: Reason, excess: Callable[[], Excess]) -> None:
        if reason in self._given or _silent.get():
            return
        self._given.add(reason)
        found = dataclasses.replace(excess(), series=self._series)
        warnings.warn(OutOfRangeWarning(OutOfRange(1, 1, (found,))), stacklevel=4)

    def _dense(self) -> Excess:
        place, channel = np.unravel_index(np.argmax(self._count / self._ranges.most_allowed), self._count.shape)
        return self._ranges.dense(int(place), int(channel), int(self._count[place, channel]))

    def _wild(self, row: np.ndarray) -> Excess:
        strays = self._kept[KEPT_STRAYS]
        channel = int(np.argmax(np.where((row < self._limits[LOW]) | (row > self._limits[HIGH]), strays, 0.0)))
        return self._ranges.wild(channel, float(row[channel]), int(strays[channel]))

    def _pausing(self) -> Excess:
        channel = int(np.nanargmax(self._gap / self._limits[GAP]))
        return self._ranges.pausing(channel, float(self._gap[channel]))


def watch_of(ranges: TrainingRanges | None, schema: Schema) -> RangeWatch | None:
    """The watch of a series with these channels; None if it is not known what the model was trained on."""
    if ranges is None:
        return None
    if ranges.channels != schema.channels:
        raise ModelError(
            f"The ranges are those of the channels {listed(ranges.channels)}, but the model has "
            f"{listed(schema.channels)}.",
            "Give the ranges of its training series.",
        )
    return RangeWatch(ranges)


def begun(watch: RangeWatch | None, series: Hashable = None) -> RangeWatch | None:
    """The watch of another series, if there is any."""
    return None if watch is None else watch.begin(series)


def restored(watch: RangeWatch | None, last: float) -> RangeWatch | None:
    """The watch of a series that was restored, if there is any; `last` is the time of its last event."""
    return None if watch is None else watch.begin(begun=last > -math.inf)


def copied(watch: RangeWatch | None) -> RangeWatch | None:
    """An independent watch of the same series, if there is any."""
    return None if watch is None else watch.copy()
