"""The online engine: observe one event, close an interval. Constant memory, and the same numbers as offline.

Every event costs O(d_X^(N-1)) for each of its entries. The factors are those of the host engine and are composed by the
same functions (`eq:interval_log_signature_method`), one at a time.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeVar

import numpy as np
from jaxtyping import Float64
from numpy import empty, ndarray  # by name: `step` is so short that an attribute look-up is noticeable
from numpy.typing import NDArray

from logcde._typing import Numbers
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.host import log_map, tensor_size, term_map
from logcde.errors import EmbeddingError, StreamError, Where
from logcde.kernels import online as kernels
from logcde.kernels.depth2 import area_state
from logcde.kernels.online import step_area
from logcde.streams.clock import NumericClock
from logcde.streams.labels import as_numbers, read_row
from logcde.streams.schema import listed
from logcde.streams.series_clock import time_on
from logcde.streams.stamps import read_stamps

Values = Mapping[str, float] | Sequence[float | None] | NDArray
"""Values of one event: by channel name, or one for each channel, NaN = not observed."""
FLOAT = np.dtype(np.float64)
CLOCK = NumericClock()
NOT_OBSERVED = "Leave it out: NaN = not observed."


T = TypeVar("T")


def shallow_copy(one: T) -> T:
    """An object with the same attributes, as `copy.copy` makes it, in a fifth of the time."""
    other = object.__new__(type(one))
    for name, value in vars(one).items():
        setattr(other, name, value)
    return other


class OnlineEmbedding:
    """One series, event by event: the log-signature of its open interval is available at any moment.

    This is the one mutable object of the package. Create it with `Embedding.online`; `state` and `restore` move it
    between processes. It knows times, as in `Streams.times`: where stamps count from elsewhere than 0, subtract the
    origin.

    >>> from logcde import Embedding, Schema
    >>> online = Embedding(depth=1).online(Schema(("pulse", "temp")))
    >>> online.observe(0.5, {"pulse": 61.0})
    >>> online.observe(2.0, {"pulse": 64.0, "temp": 37.2})
    >>> online.close(3.0)
    array([64. , 37.2,  2. ,  1. ,  3. ])
    >>> online.observe(3.0, {"pulse": 60.0})  # at the end of an interval: belongs to the next
    >>> online.logsig(at=4.0)
    array([-4.,  0.,  1.,  0.,  1.])
    """

    def __init__(self, coordinates: Coordinates, start: float = 0.0, continuous: Numbers | None = None) -> None:
        self.coordinates = coordinates
        self._names = coordinates.schema.places
        self._as_is = coordinates.scaler is None
        self._area = coordinates.depth == 2
        self._continuous_channels = bool(coordinates.schema.continuous)
        self._hat_basis = coordinates.hat_basis
        self._letters_as_given = not self._continuous_channels and coordinates.plain
        self._plain = self._area and self._letters_as_given
        self._dimension = coordinates.basis.dimension
        self._row = np.full(coordinates.channels, np.nan)
        self._support = coordinates.term_support
        self._log_map = None if self._area else log_map(coordinates.basis.width, coordinates.depth)
        self._term_map = None if self._area else term_map(coordinates.basis, tuple(coordinates.term_support.tolist()))
        self._no_terms = np.zeros(len(self._support))
        self._areas = self._support - coordinates.basis.width
        alphabet = coordinates.alphabet
        if not coordinates.plain:
            # Kernels take counts, bins and roughness as further channels.
            alphabet = alphabet._replace(channels=coordinates.discrete, counted=False)
        self._seen = np.zeros(coordinates.channels if coordinates.roughness else 0)
        # Letters of observations other than their values: kernels get what an event adds to them, not totals.
        self._further = slice(kernels.HEAD + coordinates.channels, kernels.HEAD + alphabet.channels)
        if self._area:
            rest = sum(part.size for part in area_state(alphabet.width - alphabet.timed))
            rest += alphabet.width * (alphabet.width - 1) // 2 if len(self._support) else 0
        else:
            rest = tensor_size(alphabet.width, alphabet.depth)
        self._body = int(kernels.body(alphabet.channels))
        self._state = np.zeros(self._body + rest)
        self._state[: kernels.HEAD] = (start, -np.inf, start, *alphabet)
        self._here = self._position(start, continuous)
        if self._continuous_channels and start == 0.0:
            self._push(start, self._here)  # B_C

    @property
    def start(self) -> float:
        """Start of the open interval."""
        return float(self._state[kernels.START])

    @property
    def last(self) -> float:
        """Time of the last event; minus infinity before the first."""
        return float(self._state[kernels.LAST])

    @property
    def composed(self) -> float:
        """The time up to which continuous channels other than time are composed."""
        return float(self._state[kernels.NOW])

    def observe(
        self, time: float, values: Values, terms: Numbers | None = None, continuous: Numbers | None = None
    ) -> None:
        """Compose one event: everything that was observed at this time.

        Args:
            time: Time of the event, after that of the previous one.
            values: Channel names to numbers, or one number for each channel, NaN = not observed. If nothing was
                observed, there is no event.
            terms: Amounts of the schema's higher-order terms.
            continuous: Values of the schema's continuous channels at this time, which they reach along a straight line.
        """
        time = time if isinstance(time, float) else float(time_on(CLOCK, time))
        if self._as_is and type(values) is ndarray and values.ndim == 1 and values.dtype is FLOAT:
            self.take(time, values, terms, continuous)
        else:
            self.take(time, self.row(values), terms, continuous)

    def take(
        self,
        time: float,
        row: Float64[np.ndarray, "channel"],
        terms: Numbers | None = None,
        continuous: Numbers | None = None,
    ) -> None:
        """`observe` for values that `row` has prepared."""
        if self._plain and terms is None:  # the common case, as fast as possible
            code = kernels.observe_area(self._state, time, row)
        else:
            if not self._letters_as_given:
                row = self._prepare(time, row, continuous)
            given = self._no_terms if terms is None else self._lie(terms)
            if self._term_map is None:
                code = kernels.observe_area(self._state, time, row)
                if code > 0:
                    kernels.add_areas(self._state, given, self._areas)
            else:
                code = kernels.observe_tensor(self._state, time, row, given, *self._term_map)
            if code > 0:
                self._state[self._further] = 0.0
                self._seen[~np.isnan(row[: self._seen.size])] = 1.0
        if code < 0:
            self._refuse(code, time, row)

    def step(self, time: float, values: Values) -> Float64[np.ndarray, "lie"]:
        """Compose one event and return the log-signature of the open interval up to it: `observe`, then `logsig`.

        >>> from logcde import Embedding, Schema
        >>> Embedding(depth=1).online(Schema(("pulse",))).step(0.5, [61.0])
        array([61. ,  1. ,  0.5])
        """
        if not self._plain:
            self.observe(time, values)
            return self.logsig()
        time = time if isinstance(time, float) else float(time_on(CLOCK, time))
        if self._as_is and type(values) is ndarray and values.ndim == 1 and values.dtype is FLOAT:
            row = values
        else:
            row = self.row(values)
        out = empty(self._dimension)
        code = step_area(self._state, time, row, out)
        if code < 0:
            self._refuse(code, time, row)
        return out

    def observe_many(
        self, times: Numbers, values: Numbers, terms: Numbers | None = None
    ) -> Float64[np.ndarray, "event lie"]:
        """Compose a block of events and return the log-signature of the open interval after each of them.

        Args:
            times: Time of each event.
            values: One row for each event, one column for each channel, NaN = not observed.
            terms: Amounts of the schema's higher-order terms, one row for each event.
        """
        if self._continuous_channels:
            raise EmbeddingError(
                f"Blocks of events have no values of the continuous channels {listed(self._continuous_names)}.",
                "Call observe for each event, with its `continuous`.",
            )
        rows = np.ascontiguousarray(as_numbers(values, lambda at: Where(detail=f"event {at[0] if at else 0}")))
        stamps = CLOCK.times(read_stamps(times))
        if stamps.ndim != 1:
            raise StreamError(f"The times have shape {stamps.shape}.", "Pass one time for each event.")
        if rows.shape != (len(stamps), len(self._row)):
            raise StreamError(
                f"Values of shape {rows.shape} do not fit {len(stamps)} times and {len(self._row)} channels.",
                f"Pass values of shape {(len(stamps), len(self._row))}.",
            )
        if self.coordinates.scaler is not None:
            rows = np.where(np.isinf(rows), rows, self.coordinates.scaler.row(rows))
        given = np.zeros((len(stamps), len(self._support)))
        if terms is not None:
            given = self._lie(terms, (len(stamps),))
        if not self.coordinates.plain:
            rows = self._further_channels(rows)
        bad = kernels.first_bad(self._state, stamps, rows)
        if bad >= 0:
            infinite = np.flatnonzero(np.isinf(rows[bad]))
            code = kernels.INFINITE - int(infinite[0]) if len(infinite) else kernels.BACKWARDS
            self._refuse(code, float(stamps[bad]), rows[bad])
        out = np.empty((len(stamps), self._dimension))
        channels = len(self._row)
        if self._area:
            kernels.follow_area(self._state, stamps, rows, channels, given, self._areas, out)
        else:
            kernels.follow_tensor(self._state, stamps, rows, channels, given, self._term_map, self._log_map, out)
        self._seen[~np.isnan(rows[:, : self._seen.size]).all(axis=0)] = 1.0
        return out

    def knot(self, time: float, continuous: Numbers | None) -> None:
        """Move the continuous channels along a straight line to these values, at a time without an event."""
        here = self._position(time, continuous)
        if not time >= self._state[kernels.NOW]:
            raise StreamError(
                f"The knot at {time} is before {self._state[kernels.NOW]}, the time that the path has reached.",
                where=Where(stamp=time),
            )
        step = here - self._here
        self._push(time, step)
        self._here = here

    def logsig(self, at: float | None = None, continuous: Numbers | None = None) -> Float64[np.ndarray, "lie"]:
        """The log-signature of the open interval up to `at`, by default up to the last event. Does not change state."""
        out = np.empty(self._dimension)
        if self._plain and at is None:
            kernels.read_area(self._state, -math.inf, out)
            return out
        time = self._reached if at is None else at
        if not time >= self._reached:
            raise StreamError(
                f"The open interval has already reached {self._reached}, after the time {time}.",
                "Choose `at` at or after the last event.",
                where=Where(stamp=time),
            )
        if self._continuous_channels and time > self._state[kernels.NOW]:
            ahead = self.copy()
            ahead.knot(time, continuous)
            return ahead.logsig()
        if self._log_map is None:
            kernels.read_area(self._state, time, out)
        else:
            kernels.read_tensor(self._state, time, *self._log_map, out)
        return out

    def close(self, at: float, final: bool = False, continuous: Numbers | None = None) -> Float64[np.ndarray, "lie"]:
        """End the open interval, start the next one, and return the log-signature of the one that ended.

        Args:
            at: End of the interval.
            final: Whether this is the horizon. An event at the end of an interval belongs to the next one, so close
                before observing it; only at the horizon does it belong to the interval that ends.
            continuous: Values of the schema's continuous channels at the end.
        """
        if not math.isfinite(at) or at <= self.start:
            raise StreamError(f"An interval that starts at {self.start} cannot end at {at}.", where=Where(stamp=at))
        if at == self.last and not final:
            raise StreamError(
                f"There is already an event at {at}, which belongs to the interval that starts there.",
                "Close first, then observe; or pass final=True if this is the horizon.",
                where=Where(stamp=at),
            )
        if self._continuous_channels:
            self.knot(at, continuous)
        out = self.logsig(at)
        self._state[self._body :] = 0.0
        self._state[kernels.START] = self._state[kernels.NOW] = at
        return out

    def state(self) -> Float64[np.ndarray, "state"]:
        """The whole state as one array of numbers, for `restore`."""
        if not (self._here.size or self._seen.size):
            return self._state.copy()
        return np.concatenate([self._state, self._here, self._seen])

    def restore(self, state: Float64[np.ndarray, "state"]) -> "OnlineEmbedding":
        """Continue from a saved `state` of the same embedding and schema."""
        alphabet = slice(kernels.CHANNELS, kernels.HEAD)
        body, here = len(self._state), len(self._state) + len(self._here)
        if len(state) != here + len(self._seen) or (state[alphabet] != self._state[alphabet]).any():
            raise EmbeddingError(
                "This state belongs to another embedding or schema.", "Restore it with the embedding that saved it."
            )
        own = np.array(state, np.float64)
        self._state, self._here, self._seen = own[:body], own[body:here], own[here:]
        self._state[self._further] = 0.0  # earlier versions had totals there
        return self

    def copy(self) -> "OnlineEmbedding":
        """An independent copy, with the same state."""
        other = shallow_copy(self)
        other._state, other._seen = self._state.copy(), self._seen.copy()
        return other

    @property
    def _continuous_names(self) -> tuple[str, ...]:
        return self.coordinates.schema.continuous

    @property
    def _reached(self) -> float:
        return float(max(self._state[kernels.START], self._state[kernels.LAST], self._state[kernels.NOW]))

    def _lie(self, given: Numbers, events: tuple[int, ...] = ()) -> np.ndarray:
        """Terms as amounts of the coordinates that some term changes."""
        terms, names = as_numbers(given, lambda at: Where(detail="a term")), self.coordinates.schema.terms
        if terms.shape != (*events, len(names)):
            raise StreamError(
                f"The amounts of terms have shape {terms.shape}.",
                f"Pass an array of shape {(*events, len(names))}, one number for each term of the schema.",
            )
        return terms @ self.coordinates.term_coordinates[:, self._support]

    def row(self, values: Values) -> Float64[np.ndarray, "channel"]:
        """Values of an event in the units of the path, one for each channel, NaN = not observed."""
        if self._as_is and type(values) is ndarray and values.dtype is FLOAT and values.ndim == 1:
            return values
        row = read_row(self._names, values)
        scaler = self.coordinates.scaler
        if scaler is None or row.shape != self._row.shape:
            return row
        for channel in np.flatnonzero(np.isinf(row)):  # the scaler's limits would hide it
            name = scaler.channels[channel]
            raise StreamError(f"Channel {name!r} is infinite.", NOT_OBSERVED, where=Where(channel=name))
        return scaler.row(row)

    def _prepare(self, time: float, row: np.ndarray, continuous: Numbers | None) -> np.ndarray:
        """Move the continuous channels to the time of an event and return the row that kernels take."""
        if not self.coordinates.plain and row.shape != self._row.shape:
            self._refuse(kernels.MISFIT, time, row)
        if self._continuous_channels:
            self.knot(time, continuous)
        return row if self.coordinates.plain else self._further_channels(row[None])[0]

    def _further_channels(self, rows: np.ndarray) -> np.ndarray:
        """Append to each row of values what other letters get from it, NaN where they do not change.

        These are changes, exact however much came before: kernels take them for values, and their last values are set
        to zero after each event.
        """
        channels, coordinates = len(self._row), self.coordinates
        out = np.empty((len(rows), coordinates.discrete))
        out[:, :channels] = rows
        if self._hat_basis is not None:
            weights = self._hat_basis.weights(np.where(np.isinf(rows), np.nan, rows))
            out[:, channels : coordinates.first_roughness] = np.where(weights > 0, weights, np.nan)
        if coordinates.roughness:
            kernels.fill_further(self._state, self._seen, coordinates.counted, out)
        return out

    def _position(self, time: float, continuous: Numbers | None) -> np.ndarray:
        """The position of the continuous letters, time included if it is one of several."""
        names = self._continuous_names
        here = np.zeros(0) if continuous is None else np.atleast_1d(np.asarray(continuous, np.float64))
        if here.shape != (len(names),) or not np.isfinite(here).all():
            raise StreamError(
                f"At {time}, `continuous` needs one finite number for each continuous channel: "
                f"{', '.join(names) or 'there are none'}.",
                where=Where(stamp=time),
            )
        return np.append(here, time) if self._continuous_channels and self.coordinates.time else here

    def _push(self, time: float, step: np.ndarray) -> None:
        letters = np.arange(self.coordinates.discrete, self.coordinates.basis.width, dtype=np.float64)
        if self._area:
            kernels.push_area(self._state, letters, step)
        else:
            offsets, none = np.array([0.0, len(letters)]), self._no_terms[None]
            kernels.push_tensor(self._state, time, letters, step, offsets, 0, none, self._term_map)
        self._state[kernels.NOW] = time

    def _refuse(self, code: int, time: float, row: np.ndarray) -> NoReturn:
        """Raise the error for a negative return value of a kernel."""
        if code == kernels.MISFIT:
            raise StreamError(
                f"{row.size} values for {len(self._row)} channels.",
                "Pass one value for each channel, NaN = not observed.",
                where=Where(stamp=time),
            )
        if code <= kernels.INFINITE:
            name = self.coordinates.letters[kernels.INFINITE - code]
            raise StreamError(
                f"Channel {name!r} is infinite at {time}.", NOT_OBSERVED, where=Where(channel=name, stamp=time)
            )
        raise StreamError(
            f"The event at {time} is not after the previous one (the last event is at {self.last}), or it is before "
            f"the open interval, which starts at {self.start}.",
            "Pass events in order, and all observations of one stamp in one call.",
            where=Where(stamp=time),
        )


def open_logsigs(
    series: Sequence[OnlineEmbedding], times: Float64[np.ndarray, "series"]
) -> Float64[np.ndarray, "series lie"]:
    """The log-signatures of the open intervals of series of one embedding, in one kernel call.

    Args:
        series: At least one, without continuous channels besides time.
        times: For each the time up to which it is read, not before the one that it has reached.

    >>> from logcde import Embedding, Schema
    >>> online = Embedding(depth=1).online(Schema(("pulse",)))
    >>> online.observe(0.5, [61.0])
    >>> open_logsigs([online, online], np.array([0.5, 2.0]))
    array([[61. ,  1. ,  0.5],
           [61. ,  1. ,  2. ]])
    """
    first = series[0]
    states = np.concatenate([one._state for one in series]).reshape(len(series), -1)
    out = np.empty((len(series), first._dimension))
    if first._log_map is None:
        kernels.read_areas(states, times, out)
    else:
        kernels.read_tensors(states, times, *first._log_map, out)
    return out
