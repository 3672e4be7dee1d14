"""An index for arbitrary queries: build it once, then any interval [a, b) takes O(log n) products.

The events of a series are divided into buckets; a tree holds the product of the factors of each bucket and of each run
of buckets (Chen's identity). A query composes the few events at its two ends and takes the rest from the tree. An event
that is appended, corrected or retracted changes one or two buckets and the nodes above them.
"""

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64

from logcde._typing import Numbers
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import entries_of, increments_of, observation_entries
from logcde.embedding.host import elements, logarithms, tensor_size
from logcde.errors import EmbeddingError, StreamError, Where
from logcde.kernels import tree
from logcde.kernels.records import Factors, Intervals, TreeQueries
from logcde.kernels.threads import spread
from logcde.streams import Streams
from logcde.streams.labels import read_row
from logcde.streams.streams import changes_of

BUCKET = 32
"""Events in a bucket."""


class LogSignatureIndex:
    """Log-signatures of any series over any interval [a, b). Create it with `Embedding.index`.

    It knows times, as in `Streams.times`: where stamps count from elsewhere than 0, subtract the origin.

    >>> from logcde import Embedding
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"], horizon=4.0)
    >>> index = Embedding(depth=1).index(streams)
    >>> index.query(series=[0, 0], start=[0.0, 0.5], stop=[4.0, 3.0])
    array([[4. , 3. , 4. ],
           [1. , 1. , 2.5]])
    >>> index.correct(0, 1.0, {"pulse": 7.0})
    >>> index.query(series=[0], start=[0.5], stop=[3.0])
    array([[2. , 1. , 2.5]])
    """

    def __init__(self, streams: Streams, coordinates: Coordinates) -> None:
        if coordinates.schema.continuous:
            raise EmbeddingError(
                "An index supports time as the only continuous channel, but these streams also have "
                f"{', '.join(coordinates.schema.continuous)}.",
                "Embed them with a partition instead.",
            )
        self.coordinates = coordinates
        entries = entries_of(streams, coordinates)
        self._series = [_IndexedSeries(streams, *entries, s, coordinates) for s in range(len(streams))]

    def __len__(self) -> int:
        return len(self._series)

    def query(
        self, series: Numbers, start: Numbers, stop: Numbers, *, in_order: bool = False
    ) -> Float64[np.ndarray, "query lie"]:
        """Compute the log-signature of series number `series[q]` over [start[q], stop[q]) for every query q.

        As everywhere, an event at `stop` belongs to the next interval, unless `stop` is the horizon.

        Args:
            series: Number of the series of each query.
            start: Where each interval starts.
            stop: Where it stops.
            in_order: Compose the events of an interval one by one, without the tree, at a cost linear in their number.
                Numbers then do not depend on what else is in the index, and are to the bit those of offline windows.
        """
        which, a, b = np.broadcast_arrays(
            np.atleast_1d(np.asarray(series)), np.asarray(start, np.float64), np.asarray(stop, np.float64)
        )
        out = np.empty((len(which), self.coordinates.basis.dimension))
        order = np.argsort(which, kind="stable")
        edges = np.flatnonzero(np.diff(which[order], prepend=-1, append=-1))
        for rows in np.split(order, edges[1:-1]) if len(order) else ():
            out[rows] = self._at(int(which[rows[0]])).query(a[rows], b[rows], in_order)
        return out

    def sliding(
        self, series: int, width: float, every: float
    ) -> tuple[Float64[np.ndarray, "window"], Float64[np.ndarray, "window lie"]]:
        """Compute log-signatures over sliding windows; each costs a constant number of products, whatever it holds.

        Args:
            series: Number of the series.
            width: Length of a window. Windows near the start of the series are shorter: they start at 0.
            every: Distance between the ends of neighbouring windows.

        Returns:
            The ends of the windows, and their log-signatures.

        >>> from logcde import Embedding
        >>> streams = Streams.from_arrays([[0.5, 1.5, 2.5]], [[[1.0], [3.0], [4.0]]], horizon=3.0)
        >>> Embedding(depth=1, counts=False).index(streams).sliding(0, width=2.0, every=1.0)
        (array([1., 2., 3.]), array([[1., 1.],
               [3., 2.],
               [3., 2.]]))
        """
        return self._at(series).sliding(width, every)

    def append(
        self, series: int, time: float, values: Mapping[str, float], terms: Mapping[str, float] | None = None
    ) -> None:
        """Append one event to a series; its horizon moves to the event if that is later."""
        self._at(series).append(time, values, terms or {})

    def set_horizon(self, series: int, time: float) -> None:
        """Set the horizon of a series, for one that grows: now, at or after its last event.

        >>> from logcde import Embedding
        >>> index = Embedding(depth=1).index(Streams.from_arrays([[1.0]], [[[5.0]]]))
        >>> index.set_horizon(0, 3.0)
        >>> index.query(series=[0], start=[1.0], stop=[3.0])
        array([[5., 1., 2.]])
        """
        self._at(series).set_horizon(time)

    def correct(self, series: int, time: float, values: Mapping[str, float]) -> None:
        """Replace values that were observed at this time."""
        self._at(series).correct(time, values)

    def retract(self, series: int, time: float) -> None:
        """Remove the event at this time, as if nothing had been observed."""
        self._at(series).retract(time)

    def _at(self, series: int) -> "_IndexedSeries":
        if not 0 <= series < len(self._series):
            raise EmbeddingError(f"There is no series number {series}: the index has {len(self._series)}.")
        return self._series[series]


class _Column:
    """An array that grows at its end, with amortised constant cost."""

    def __init__(self, start: np.ndarray) -> None:
        self._buffer = np.array(start)
        self.size = len(start)

    @property
    def array(self) -> np.ndarray:
        return self._buffer[: self.size]

    def extend(self, more: Numbers) -> None:
        rows = np.asarray(more, self._buffer.dtype)
        if self.size + len(rows) > len(self._buffer):
            buffer = np.empty((2 * (self.size + len(rows)), *self._buffer.shape[1:]), self._buffer.dtype)
            buffer[: self.size] = self.array
            self._buffer = buffer
        self._buffer[self.size : self.size + len(rows)] = rows
        self.size += len(rows)


class _IndexedSeries:
    """One series: its events in columns that grow, and the tree over its buckets.

    All observations have the same number of entries: one, or four with soft bins, and one more with roughness.
    """

    def __init__(
        self, streams: Streams, letters: np.ndarray, amounts: np.ndarray, series: int, coordinates: Coordinates
    ) -> None:
        events = slice(streams.offsets[series], streams.offsets[series + 1])
        first, last = streams.obs_offsets[events.start], streams.obs_offsets[events.stop]
        self._coordinates = coordinates
        self._id = streams.ids[series : series + 1].tolist()[0]
        self._name = f"series {self._id!r}"
        self._horizon = float(streams.horizon[series])
        self._times = _Column(streams.times[events])
        self._entries = letters.shape[1]
        self._entry_offsets = _Column((streams.obs_offsets[events.start : events.stop + 1] - first) * self._entries)
        self._channel = _Column(streams.channel[first:last])
        self._letter = _Column(letters[first:last])
        self._value = _Column(streams.value[first:last].astype(np.float64, copy=False))
        # What differences of values lack to changes that were given.
        given = streams.change is not None
        lacking = increments_of(streams) - changes_of(streams, streams.value) if given else np.zeros(len(streams.value))
        self._lacking = _Column(lacking[first:last])
        self._amount = _Column(amounts[first:last])
        self._terms = _Column(streams.terms[events] @ coordinates.term_coordinates[:, coordinates.term_support])
        # Neighbours of each observation within its channel, -1 where there is none.
        before, self._last = _neighbours(self._channel.array, coordinates.channels)
        self._before, after = _Column(before), np.full(len(before), -1, np.int64)
        after[before[before >= 0]] = np.flatnonzero(before >= 0)
        self._after = _Column(after)
        self._buckets = 0
        self._nodes = np.zeros((2, self._size))
        self._fill()

    @property
    def _size(self) -> int:
        width, depth = self._coordinates.basis.width, self._coordinates.depth
        return self._coordinates.basis.dimension if depth == 2 else tensor_size(width, depth)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._coordinates.basis.width, self._coordinates.depth

    def query(self, start: np.ndarray, stop: np.ndarray, in_order: bool) -> np.ndarray:
        bad = np.flatnonzero(~((start >= 0) & (start < stop) & (stop <= self._horizon)))
        if len(bad):
            others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            raise EmbeddingError(
                f"[{start[bad[0]]}, {stop[bad[0]]}){others} is not an interval within [0, {self._horizon}], the span "
                f"of {self._name}.",
                where=Where(series=self._id),
            )
        times = self._times.array
        begin = np.searchsorted(times, start)
        end = np.where(stop == self._horizon, len(times), np.searchsorted(times, stop))
        # Whole buckets strictly inside, if there are any; the events at the two ends are composed here.
        low = begin // BUCKET + 1
        high = np.minimum(end // BUCKET, self._buckets)
        inside = (low < high) & (not in_order)
        low, high = np.where(inside, low, 0), np.where(inside, high, 0)
        left_end, right_begin = np.where(inside, low * BUCKET, end), np.where(inside, high * BUCKET, end)
        stamps = np.append(times, np.inf)
        left = self._compose(begin, left_end, start, np.where(inside, stamps[left_end - 1], stop))
        right = self._compose(right_begin, end, np.where(inside, stamps[right_begin - 1], stop), stop)
        joined = np.empty_like(left)
        work = np.full(len(start), 1 + 20 * self._size // 64)  # about twenty products for each query
        spread(tree.join, work, TreeQueries(left, low, high, right), self._nodes, *self._shape, joined)
        return self._log(joined)

    def sliding(self, width: float, every: float) -> tuple[np.ndarray, np.ndarray]:
        if not (0 < width < np.inf and 0 < every < np.inf):
            raise EmbeddingError(
                f"The windows have width {width} and distance {every}.", "Choose positive, finite numbers for both."
            )
        ends = every * np.arange(1, int(self._horizon / every) + 1)
        ends = np.minimum(ends, self._horizon)
        starts = np.maximum(ends - width, 0.0)
        cuts = np.union1d(starts, ends)
        begin = np.searchsorted(self._times.array, cuts)
        begin[cuts == self._horizon] = self._times.size
        pieces = self._compose(begin[:-1], begin[1:], cuts[:-1], cuts[1:])
        out = np.empty((len(ends), self._size))
        tree.slide(pieces, np.searchsorted(cuts, starts), np.searchsorted(cuts, ends), *self._shape, out)
        return ends, self._log(out)

    def append(self, time: float, values: Mapping[str, float], terms: Mapping[str, float]) -> None:
        reached = self._times.array[-1] if self._times.size else -np.inf
        if not reached < time < np.inf or time < 0:
            raise StreamError(
                f"An event at {time} cannot be appended to {self._name}, whose last event is at {reached}.",
                where=Where(series=self._id, stamp=time),
            )
        found = sorted((self._channel_of(name), self._scaled(name, value, time)) for name, value in values.items())
        if not found:
            raise StreamError(
                f"The event at {time} has no observations, so it cannot be appended to {self._name}.",
                where=Where(series=self._id, stamp=time),
            )
        given = np.zeros(len(self._coordinates.schema.terms))
        names = [term.name for term in self._coordinates.schema.terms]
        for name, value in terms.items():
            if name not in names:
                raise StreamError(
                    f"There is no term {name!r}. The terms are {', '.join(names) or 'none'}.",
                    where=Where(series=self._id, stamp=time),
                )
            given[names.index(name)] = value
        for channel, value in found:
            before, here = self._last[channel], self._value.size
            if before >= 0:
                self._after.array[before] = here
            self._before.extend([before])
            self._after.extend([-1])
            self._channel.extend([channel])
            self._value.extend([value])
            self._lacking.extend([0.0])
            self._letter.extend(np.zeros((1, self._entries)))
            self._amount.extend(np.zeros((1, self._entries)))
            self._move(here)
            self._last[channel] = here
        coordinates = self._coordinates
        self._terms.extend([given @ coordinates.term_coordinates[:, coordinates.term_support]])
        self._times.extend([time])
        self._entry_offsets.extend([self._value.size * self._entries])
        self._horizon = max(self._horizon, time)
        self._fill()

    def set_horizon(self, time: float) -> None:
        reached = self._times.array[-1] if self._times.size else 0.0
        if not (reached <= time < np.inf and time > 0):
            raise StreamError(
                f"The horizon of {self._name} cannot be {time}: its last event is at {reached}.",
                "Choose a positive, finite time, at or after the last event.",
                where=Where(series=self._id, stamp=time),
            )
        self._horizon = float(time)

    def correct(self, time: float, values: Mapping[str, float]) -> None:
        event, entries = self._find(time)
        rows = {}
        for name, value in values.items():
            channel = self._channel_of(name)
            match = [o for o in range(*entries) if self._channel.array[o] == channel and self._live(o)]
            if not match:
                raise StreamError(
                    f"Channel {name!r} was not observed at {time} in {self._name}: nothing to correct.",
                    where=Where(series=self._id, channel=name, stamp=time),
                )
            rows[match[0]] = self._scaled(name, value, time)
        for row, value in rows.items():
            after = int(self._after.array[row])
            self._value.array[row] = value
            self._lacking.array[row] = 0.0
            if after >= 0:
                self._lacking.array[after] = 0.0
            self._move(row)
            self._move(after)
        self._refresh([event, *(self._event_of(int(self._after.array[row])) for row in rows)])

    def retract(self, time: float) -> None:
        event, entries = self._find(time)
        touched = [event]
        for row in range(*entries):
            before, after = int(self._before.array[row]), int(self._after.array[row])
            if before >= 0:
                self._after.array[before] = after
            if after >= 0:
                self._before.array[after] = before
                self._lacking.array[after] += self._lacking.array[row]
            else:
                self._last[self._channel.array[row]] = before
            # A factor without effect: amount zero, and a letter that has no count.
            self._letter.array[row] = self._coordinates.channels if self._coordinates.counted else 0
            self._amount.array[row] = 0.0
            self._channel.array[row] = -1
            self._move(after)
            touched.append(self._event_of(after))
        self._terms.array[event] = 0.0
        self._refresh(touched)
        self._trim()

    def _trim(self) -> None:
        """Drop retracted events at the end, so that others can be appended there."""
        size = self._times.size
        while size and not self._live(self._first_row(size) - 1):
            size -= 1
        rows = self._first_row(size)
        for column in (self._times, self._terms):
            column.size = size
        columns = (self._channel, self._letter, self._value, self._lacking, self._amount, self._before, self._after)
        for column in columns:
            column.size = rows
        self._entry_offsets.size = size + 1
        if size // BUCKET < self._buckets:
            leaves = len(self._nodes) // 2
            self._nodes[leaves + size // BUCKET : leaves + self._buckets] = 0.0
            tree.grow(self._nodes, size // BUCKET, self._buckets, *self._shape)
            self._buckets = size // BUCKET

    def _find(self, time: float) -> tuple[int, tuple[int, int]]:
        event = int(np.searchsorted(self._times.array, time))
        if event < self._times.size and self._times.array[event] == time:
            rows = (self._first_row(event), self._first_row(event + 1))
            if any(self._live(row) for row in range(*rows)):
                return event, rows
        raise StreamError(f"There is no event at {time} in {self._name}.", where=Where(series=self._id, stamp=time))

    def _first_row(self, event: int) -> int:
        return int(self._entry_offsets.array[event]) // self._entries

    def _live(self, row: int) -> bool:
        return bool(self._channel.array[row] >= 0)

    def _channel_of(self, name: str) -> int:
        channels = self._coordinates.schema.channels
        if name not in channels:
            raise StreamError(
                f"There is no channel {name!r}. The channels are {', '.join(channels)}.",
                where=Where(series=self._id, channel=name),
            )
        return channels.index(name)

    def _scaled(self, name: str, value: float, time: float) -> float:
        value = float(read_row({name: 0}, {name: value})[0])
        if not math.isfinite(value):
            raise StreamError(
                f"Channel {name!r} of {self._name} is {value} at {time}.",
                "Pass a finite number.",
                where=Where(series=self._id, channel=name, stamp=time),
            )
        scaler = self._coordinates.scaler
        return float(value) if scaler is None else scaler.one(name, value)

    def _event_of(self, row: int) -> int:
        return -1 if row < 0 else int(np.searchsorted(self._entry_offsets.array, row * self._entries, side="right")) - 1

    def _move(self, row: int) -> None:
        """Recompute which letters an observation moves, and how far."""
        if row < 0:
            return
        before, channel, value = self._before.array[row], self._channel.array[row], self._value.array[row]
        change = value - (self._value.array[before] if before >= 0 else 0.0) + self._lacking.array[row]
        if self._entries == 1:
            self._letter.array[row], self._amount.array[row] = channel, change
        else:
            square = np.array([change**2 if before >= 0 else 0.0]) if self._coordinates.roughness else None
            given = (np.array([channel]), np.array([value]), np.array([change]), square)
            letters, amounts = observation_entries(*given, self._coordinates)
            self._letter.array[row], self._amount.array[row] = letters[0], amounts[0]

    def _fill(self) -> None:
        """Put every full bucket into the tree; the events after the last full bucket stay outside."""
        full = self._times.size // BUCKET
        if full == self._buckets:
            return
        if 2 * full > len(self._nodes):
            leaves = 1 << (full - 1).bit_length()
            self._nodes = np.zeros((2 * leaves, self._size))
            self._buckets = 0
        first, self._buckets = self._buckets, full
        self._refresh_buckets(np.arange(first, full))

    def _refresh(self, events: list[int]) -> None:
        buckets = np.unique(np.array(events) // BUCKET)
        for bucket in buckets[(buckets >= 0) & (buckets < self._buckets)]:
            self._refresh_buckets(np.array([bucket]))

    def _refresh_buckets(self, buckets: np.ndarray) -> None:
        begin, end = buckets * BUCKET, (buckets + 1) * BUCKET
        times = self._times.array
        start = times[np.maximum(begin - 1, 0)]  # the first event has no gap before it
        leaves = len(self._nodes) // 2 + buckets
        self._nodes[leaves[0] : leaves[-1] + 1] = self._compose(begin, end, start, times[end - 1])
        tree.grow(self._nodes, buckets[0], buckets[-1] + 1, *self._shape)

    def _compose(self, begin: np.ndarray, end: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        factors = Factors(
            self._times.array,
            self._entry_offsets.array,
            self._letter.array.reshape(-1),
            self._amount.array.reshape(-1),
            self._terms.array,
        )
        out = np.empty((len(begin), self._size))
        elements(factors, Intervals(np.zeros_like(begin), begin, end, start, stop), self._coordinates, out)
        return out

    def _log(self, group: np.ndarray) -> np.ndarray:
        out = np.empty((len(group), self._coordinates.basis.dimension))
        logarithms(group, self._coordinates, out)
        return out


def _neighbours(channel: np.ndarray, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """The previous observation of each observation's channel, and the last one of each channel; -1 for none."""
    order = np.argsort(channel, kind="stable")
    same = np.diff(channel[order], prepend=-1) == 0
    before = np.full(len(channel), -1, np.int64)
    before[order[same]] = order[np.flatnonzero(same) - 1]
    last = np.full(channels, -1, np.int64)
    last[channel[order]] = order  # in order, so the last one stays
    return before, last
