"""`LogSignatureFeatures`: the log-signatures of windows of a series, side by side, as one row of numbers.

Windows are parts of the series, its most recent past, and windows that slide back from its end. A window that reaches
beyond the start of the series is cut off there. Nothing is filled in: without an event, a log-signature is the length
of its window, and zero if nothing of the window is left.

Short series are composed event by event, long ones by an index, and which one it is depends on the number of events
only. So the features of a growing series are to the bit those of the same observations offline.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Mapping
from datetime import timedelta

import numpy as np
from jaxtyping import Float32, Float64

from logcde._typing import Numbers
from logcde.embedding import Coordinates, Embedding, LogSignatureIndex
from logcde.embedding.factors import windows_of
from logcde.embedding.host import compose
from logcde.errors import EmbeddingError, StreamError, Where
from logcde.features.abstract import AbstractFeatures, AbstractFittedFeatures, AbstractOnlineFeatures, distinct
from logcde.features.brackets import AbstractBrackets, AllBrackets, Group, groups_of, restricted
from logcde.features.online import check_event, check_later, row_of
from logcde.streams import ChannelScaler, Clock, Schema, StandardScaler, Streams
from logcde.streams.clock import NumericClock
from logcde.streams.rows import Keep
from logcde.streams.scaling import AbstractScaler
from logcde.streams.schema import listed
from logcde.streams.series_clock import begun_by, length_on, shown, time_on

TYPICAL = 0.9
"""Quantile of the training series' horizons that is the horizon of a typical series."""
LONG = 1024
"""Events of a series above which an index is faster than composing every window event by event."""
NUMBERS_IN_MEMORY = 1 << 22
"""Coordinates that are in memory at once in double precision."""

Duration = int | float | timedelta | np.timedelta64


class AbstractWindow(abc.ABC):
    """A window of a series whose place depends on the horizon only."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What its features are called after the coordinate."""

    @abc.abstractmethod
    def bounds(self, horizon: Float64[np.ndarray, "series"]) -> tuple[np.ndarray, np.ndarray]:
        """Where the window starts and stops in series with these horizons; equal if nothing of it is left."""


@dataclasses.dataclass(frozen=True)
class Part(AbstractWindow):
    """One of `parts` windows of equal length that cover the series; the first has number 1.

    >>> Part(2, 4).name, Part(2, 4).bounds(np.array([6.0]))
    ('2/4', (array([1.5]), array([3.])))
    """

    number: int
    parts: int

    @property
    def name(self) -> str:
        """Number and parts, as in "2/4"."""
        return f"{self.number}/{self.parts}"

    def bounds(self, horizon: Float64[np.ndarray, "series"]) -> tuple[np.ndarray, np.ndarray]:
        """The same cuts as those of `Partition.uniform`, to the bit."""
        # Multiply first: T k / M is a whole number wherever it should be, T (k / M) is not.
        stop = horizon if self.number == self.parts else horizon * self.number / self.parts
        return horizon * (self.number - 1) / self.parts, stop


@dataclasses.dataclass(frozen=True)
class Recent(AbstractWindow):
    """From `begin` before the end of the series to `end` before it.

    >>> Recent(6.0).name, Recent(6.0, 2.0).name, Recent(6.0, 2.0).bounds(np.array([9.0, 5.0]))
    ('last 6.0', 'last 6.0 to 2.0', (array([3., 0.]), array([7., 3.])))
    """

    begin: float
    end: float = 0.0

    @property
    def name(self) -> str:
        """As in "last 6.0" or "last 6.0 to 2.0"."""
        begin, end = (float(f"{back:.6g}") for back in (self.begin, self.end))
        return f"last {begin} to {end}" if end else f"last {begin}"

    def bounds(self, horizon: Float64[np.ndarray, "series"]) -> tuple[np.ndarray, np.ndarray]:
        """Cut off at the start of the series."""
        return np.maximum(horizon - self.begin, 0.0), np.maximum(horizon - self.end, 0.0)


@dataclasses.dataclass(frozen=True)
class Sliding:
    """Overlapping windows of one width, from the end of the series back; as many as cover a series of typical length.

    Args:
        width: Length of a window, by default a quarter of the typical horizon.
        every: Distance between neighbouring windows, by default half their width.
    """

    width: Duration | None = None
    every: Duration | None = None

    def windows(self, clock: Clock, typical: float) -> tuple[Recent, ...]:
        """The windows for a horizon of typical length.

        >>> [window.name for window in Sliding(width=2.0).windows(Schema(("a",)).clock, typical=4.0)]
        ['last 2.0', 'last 3.0 to 1.0', 'last 4.0 to 2.0']
        """
        width = typical / 4 if self.width is None else _length(self.width, clock)
        every = width / 2 if self.every is None else _length(self.every, clock)
        count = 1 + max(0, math.ceil((typical - width) / every * (1 - 1e-12)))
        return tuple(Recent(k * every + width, k * every) for k in range(count))


@dataclasses.dataclass(frozen=True)
class LogSignatureFeatures(AbstractFeatures):
    """Log-signatures of windows as features: `fit` to training series, then call with any.

    Args:
        embedding: Letters and depth of the log-signatures. If it has no scaler, one is fitted.
        scales: Numbers of equal parts into which each series is divided; 1 is the whole series.
        sliding: Overlapping windows, if any.
        recent: Lengths of windows that end with the series.
        scaler: How a scaler is fitted; None for values as they are.
        brackets: Which coordinates are features: `AllBrackets()`, or for many channels `OwnBrackets(pairs=...)`.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"], horizon=4.0)
    >>> features = LogSignatureFeatures(Embedding(depth=1), scales=(1, 2), recent=(3.5,), scaler=None).fit(streams)
    >>> dict(zip(features.names, features(streams)[0].tolist())) # doctest: +NORMALIZE_WHITESPACE
    {'pulse in 1/1': 4.0, '#pulse in 1/1': 3.0, 'time in 1/1': 4.0,
     'pulse in 1/2': 6.0, '#pulse in 1/2': 2.0, 'time in 1/2': 2.0,
     'pulse in 2/2': -2.0, '#pulse in 2/2': 1.0, 'time in 2/2': 2.0,
     'pulse in last 3.5': -1.0, '#pulse in last 3.5': 2.0, 'time in last 3.5': 3.5}
    """

    embedding: Embedding = Embedding(depth=2)
    scales: tuple[int, ...] = (1, 2, 4, 8)
    sliding: Sliding | None = None
    recent: tuple[Duration, ...] = ()
    scaler: AbstractScaler | None = StandardScaler()
    brackets: AbstractBrackets = AllBrackets()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", tuple(self.scales))
        object.__setattr__(self, "recent", tuple(self.recent))
        for parts in self.scales:
            if isinstance(parts, bool) or not isinstance(parts, int | np.integer) or parts < 1:
                raise EmbeddingError(f"One of the scales is {parts!r}.", "Give whole numbers, 1 or more.")
        if len({*self.scales}) < len(self.scales):
            raise EmbeddingError(f"The scales {listed(self.scales)} name one twice.", "Give each once.")
        if not self.scales and not self.recent and self.sliding is None:
            raise EmbeddingError("There are no windows.", "Give scales, sliding or recent windows.")

    def fit(self, streams: Streams) -> "FittedLogSignatureFeatures":
        """Fix channels, scales of values and lengths of windows.

        Args:
            streams: Training series, at least one.
        """
        if not len(streams):
            raise StreamError("There are no series to fit features to.", "Give at least one.")
        clock, embedding = streams.schema.clock, self.embedding
        if embedding.scaler is None and self.scaler is not None:
            embedding = dataclasses.replace(embedding, scaler=ChannelScaler.fit(streams, self.scaler))
        windows: list[AbstractWindow] = [Part(k + 1, int(parts)) for parts in self.scales for k in range(parts)]
        if self.sliding is not None:
            windows += self.sliding.windows(clock, float(np.quantile(streams.horizon, TYPICAL)))
        windows += [Recent(_length(length, clock)) for length in self.recent]
        coordinates = embedding.coordinates(streams.schema)
        return FittedLogSignatureFeatures(coordinates, tuple(dict.fromkeys(windows)), self.brackets)


@dataclasses.dataclass(frozen=True)
class FittedLogSignatureFeatures(AbstractFittedFeatures):
    """Log-signatures of fixed windows as features, see `LogSignatureFeatures`.

    Args:
        coordinates: Letters of the log-signatures.
        windows: The windows.
        brackets: Which coordinates are features.
    """

    coordinates: Coordinates
    windows: tuple[AbstractWindow, ...]
    brackets: AbstractBrackets = AllBrackets()

    def __post_init__(self) -> None:
        if self.schema.continuous:
            raise EmbeddingError(
                "These features support time as the only continuous channel, but the streams also have "
                f"{listed(self.schema.continuous)}.",
                "Embed them with a partition instead.",
            )
        groups_of(self.coordinates, self.brackets)

    @functools.cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups of channels that are embedded together."""
        return groups_of(self.coordinates, self.brackets)

    @property
    def schema(self) -> Schema:
        """Channels and clock of the series."""
        return self.coordinates.schema

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature: a coordinate of the log-signature and a window, as in "[pulse, temp] in 2/4"."""
        labels = [group.coordinates.basis.labels[place] for group in self.groups for place in group.kept]
        return distinct([f"{label} in {window.name}" for window in self.windows for label in labels])

    def __call__(self, streams: Streams, *, threads: int | None = None) -> Float32[np.ndarray, "series feature"]:
        """Compute one row for each series.

        Args:
            streams: Series with the channels of the training series.
            threads: Number of threads; by default one for each core.
        """
        self._check(streams)
        scaled = self.coordinates.scaled(streams)
        width, first = sum(len(group.kept) for group in self.groups), 0
        out = np.zeros((len(streams), len(self.windows), width), np.float32)
        for group, own in zip(self.groups, restricted(scaled, self.groups), strict=True):
            self._fill(out[:, :, first : first + len(group.kept)], own, group, threads)
            first += len(group.kept)
        return out.reshape(len(streams), len(self.windows) * width)

    def online(self) -> "OnlineLogSignatureFeatures":
        """Start a series that is observed one event at a time.

        >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[5.0], [6.0]]], channels=["pulse"])
        >>> online = LogSignatureFeatures(Embedding(depth=1), scales=(2,), scaler=None).fit(streams).online()
        >>> online.observe(0.0, {"pulse": 5.0})
        >>> online.observe(1.0, {"pulse": 6.0})
        >>> online.features(at=4.0)
        array([6., 2., 2., 0., 0., 2.], dtype=float32)
        """
        return OnlineLogSignatureFeatures(self)

    def _check(self, streams: Streams) -> None:
        for field in ("channels", "terms", "continuous"):
            ours, theirs = getattr(self.schema, field), getattr(streams.schema, field)
            if ours != theirs:
                raise StreamError(
                    f"The streams have the {field} {listed(theirs) or 'none'}, but these features were fitted to "
                    f"{listed(ours) or 'none'}.",
                    "Read the streams with the schema of the training series.",
                )

    def _fill(
        self, out: Float32[np.ndarray, "series window kept"], scaled: Streams, group: Group, threads: int | None
    ) -> None:
        events = np.diff(scaled.offsets)
        short = np.flatnonzero(events <= LONG)
        step = max(1, NUMBERS_IN_MEMORY // (len(self.windows) * group.coordinates.basis.dimension))
        for first in range(0, len(short), step):
            some = short[first : first + step]
            out[some] = self._in_order(scaled[some], group, threads)
        for series in np.flatnonzero(events > LONG).tolist():
            index = LogSignatureIndex(scaled[series], group.coordinates)
            out[series] = self.query(index, group, float(scaled.horizon[series]), in_order=False)

    def _in_order(self, scaled: Streams, group: Group, threads: int | None) -> Float64[np.ndarray, "series window _"]:
        bounds = np.array([window.bounds(scaled.horizon) for window in self.windows])
        start, stop = bounds.transpose(1, 2, 0).reshape(2, -1)
        series = np.repeat(np.arange(len(scaled)), len(self.windows))
        intervals = windows_of(scaled, series, start, stop)
        flat = compose(scaled, intervals, group.coordinates, np.float64, threads, in_order=True)
        return flat.reshape(len(scaled), len(self.windows), -1)[..., group.kept]

    def query(
        self, index: LogSignatureIndex, group: Group, horizon: float, in_order: bool
    ) -> Float64[np.ndarray, "window _"]:
        """The features of a group in each window of the only series of an index, which has this horizon."""
        start, stop = np.array([window.bounds(np.array([horizon])) for window in self.windows])[..., 0].T
        out = np.zeros((len(start), group.coordinates.basis.dimension))
        kept = start < stop
        out[kept] = index.query(np.zeros(kept.sum(), np.int64), start[kept], stop[kept], in_order=in_order)
        return out[:, group.kept]


class OnlineLogSignatureFeatures(AbstractOnlineFeatures):
    """One series, event by event: its features at any moment are those of the same observations offline.

    Create it with `FittedLogSignatureFeatures.online`. It keeps all events; the time to compute the features of a long
    series grows with the logarithm of their number.
    """

    def __init__(self, fitted: FittedLogSignatureFeatures) -> None:
        self._fitted = fitted
        self._last: float | None = None
        self._clock: Clock = fitted.schema.clock
        self._events = [0] * len(fitted.groups)
        self._indexes = [_empty_index(group.coordinates) for group in fitted.groups]

    def observe(
        self, time: object, values: Mapping[str, float] | Numbers, terms: Mapping[str, float] | None = None
    ) -> None:
        """Take one event: everything that was observed at one stamp.

        Args:
            time: The stamp of the event on the clock of the training series, after that of the previous one.
            values: Channel names to numbers, or one number for each channel, as measured; NaN = not observed.
            terms: Amounts of the schema's higher-order terms.
        """
        clock, names = begun_by(self._clock, time), self._fitted.schema.channels
        time = float(time_on(clock, time))
        row = row_of(self._fitted.schema, values)
        # An event is refused before any group has taken its part of it.
        check_event(clock, time, row, len(names))
        check_later(clock, time, -math.inf if self._last is None else self._last)
        known = {name: x for name, x in zip(names, row.tolist(), strict=True) if x == x}
        if not known:
            stamp = shown(clock, time)
            raise StreamError(f"The event at {stamp} has no observations.", "Leave it out.", where=Where(stamp=stamp))
        for number, group in enumerate(self._fitted.groups):
            own = {names[channel]: known[names[channel]] for channel in group.channels if names[channel] in known}
            if own:
                self._indexes[number].append(0, time, own, terms)
                self._events[number] += 1
        self._last, self._clock = time, clock

    def features(self, at: object = None) -> Float32[np.ndarray, "feature"]:
        """The features of the series up to `at`, by default up to its last event. Nothing changes.

        Args:
            at: The horizon of the series as a stamp: after the start, at or after the last event.
        """
        horizon = (self._last or 0.0) if at is None else float(time_on(self._clock, at))
        if horizon == 0:
            raise StreamError(
                "The series has no length yet: nothing was observed after time 0.",
                "Pass `at`, a time after 0.",
                where=Where(stamp=horizon),
            )
        if self._last is not None and not self._last <= horizon < math.inf:
            raise StreamError(
                f"Features at {horizon} are not possible: the last event is at {self._last}.",
                "Choose a finite time, at or after the last event.",
                where=Where(stamp=horizon),
            )
        parts = []
        for group, index, events in zip(self._fitted.groups, self._indexes, self._events, strict=True):
            index.set_horizon(0, horizon)
            parts.append(self._fitted.query(index, group, horizon, in_order=events <= LONG))
        return np.concatenate(parts, axis=1).astype(np.float32).reshape(-1)


def _empty_index(coordinates: Coordinates) -> LogSignatureIndex:
    """An index of one series that has not been observed."""
    schema = dataclasses.replace(coordinates.schema, clock=NumericClock())
    terms = {term: [np.zeros(0)] for term in schema.terms}
    nothing = np.zeros((0, len(schema.channels)))
    empty = Streams.from_arrays([[]], [nothing], horizon=1.0, terms=terms, schema=schema, empty=Keep())
    return LogSignatureIndex(empty, coordinates)


def _length(duration: Duration, clock: Clock) -> float:
    """A duration as time of this clock."""
    length = length_on(clock, duration)
    if not 0 < length < np.inf:
        raise EmbeddingError(f"The length of a window is {duration!r}.", "Choose a positive, finite one.")
    return length
