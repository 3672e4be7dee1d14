"""The online engine: observe one event, close an interval. Constant memory, the same numbers as offline.

Every event costs O(d_X^(N-1)) for each of its entries. The factors and the functions that compose them are those of the
host engine (`eq:interval_log_signature_method`), taken one at a time.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
from jaxtyping import Float64
from numpy import empty, ndarray  # by name, because `step` is short enough to feel a look-up
from numpy.typing import NDArray

from logcde._typing import Numbers
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.host import log_map, tensor_size, term_map
from logcde.errors import EmbeddingError, StreamError
from logcde.kernels import online as kernels
from logcde.kernels.depth2 import state as area_state
from logcde.kernels.online import step_area

Values = Mapping[str, float] | Sequence[float | None] | NDArray
FLOAT = np.dtype(np.float64)


class OnlineEmbedding:
    """One series as it comes in: the log-signature of the open interval, at any moment.

    The one object here that changes. Make it with `Embedding.online`; `state` and `restore` keep it across processes.

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
        self._names = {name: k for k, name in enumerate(coordinates.schema.channels)}
        self._as_is = coordinates.scaler is None
        self._area = coordinates.depth == 2
        self._woven = bool(coordinates.schema.continuous)
        self._hats = coordinates.hat_basis
        self._usual = not self._woven and self._hats is None
        self._plain = self._area and self._usual
        self._dimension = coordinates.basis.dimension
        self._row = np.full(coordinates.channels, np.nan)
        self._support = coordinates.term_support
        self._maps = () if self._area else log_map(coordinates.basis.width, coordinates.depth).arrays
        self._terms = () if self._area else term_map(coordinates).arrays
        self._no_terms = np.zeros(len(self._support))
        self._areas = self._support - coordinates.basis.width
        # With levels, kernels take them as further channels whose values are how much was counted so far.
        width = coordinates.basis.width
        d = coordinates.channels if self._hats is None else coordinates.discrete
        timed = coordinates.time and not self._woven
        if self._area:
            rest = sum(part.size for part in area_state(width - timed))
            rest += width * (width - 1) // 2 if len(self._support) else 0
        else:
            rest = tensor_size(width, coordinates.depth)
        self._body = int(kernels.body(d))
        self._state = np.zeros(self._body + rest)
        self._state[: kernels.HEAD] = (start, -np.inf, start, d, coordinates.counted, timed, width, coordinates.depth)
        self._here = self._continuous(start, continuous)
        if self._woven and start == 0.0:
            self._push(start, self._here)  # B_C

    @property
    def start(self) -> float:
        """Where the open interval began."""
        return float(self._state[kernels.START])

    @property
    def last(self) -> float:
        """The last event's stamp; minus infinity before the first."""
        return float(self._state[kernels.LAST])

    def observe(
        self, time: float, values: Values, terms: Numbers | None = None, continuous: Numbers | None = None
    ) -> None:
        """Take one event: everything that was observed at this stamp.

        `values` maps channels to numbers, or has one number for each channel, NaN for those not observed; if nothing
        was observed it is no event. `terms` are the schema's higher-order terms, `continuous` the values of its
        continuous channels at this stamp, which they reach along a straight line since the last one given.
        """
        row = values if self._as_is and type(values) is ndarray and values.dtype is FLOAT else self.row(values)
        self.take(time, row, terms, continuous)

    def take(
        self,
        time: float,
        row: Float64[np.ndarray, "channel"],
        terms: Numbers | None = None,
        continuous: Numbers | None = None,
    ) -> None:
        """`observe` of values that `row` has prepared."""
        if self._plain and terms is None:  # the usual case, without detours
            answer = kernels.observe_area(self._state, time, row)
        else:
            if not self._usual:
                row = self._before(time, row, continuous)
            given = self._no_terms if terms is None else self._lie(np.asarray(terms, np.float64))
            if self._area:
                answer = kernels.observe_area(self._state, time, row)
                if answer > 0:
                    kernels.add_areas(self._state, given, self._areas)
            else:
                answer = kernels.observe_tensor(self._state, time, row, given, *self._terms)
        if answer < 0:
            self._refuse(answer, time, row)

    def step(self, time: float, values: Values) -> Float64[np.ndarray, "lie"]:
        """`observe`, then `logsig`: take one event and return the log-signature of the open interval up to it.

        >>> from logcde import Embedding, Schema
        >>> Embedding(depth=1).online(Schema(("pulse",))).step(0.5, [61.0])
        array([61. ,  1. ,  0.5])
        """
        if not self._plain:
            self.observe(time, values)
            return self.logsig()
        row = values if self._as_is and type(values) is ndarray and values.dtype is FLOAT else self.row(values)
        out = empty(self._dimension)
        answer = step_area(self._state, time, row, out)
        if answer < 0:
            self._refuse(answer, time, row)
        return out

    def observe_many(
        self, times: Numbers, values: Numbers, terms: Numbers | None = None
    ) -> Float64[np.ndarray, "event lie"]:
        """Take a block of events, and return the log-signature of the open interval after each of them.

        `values` has one row for each event, NaN = not observed.
        """
        if self._woven:
            raise EmbeddingError("With continuous channels, give events one at a time, each with its `continuous`.")
        stamps, rows = np.asarray(times, np.float64), np.ascontiguousarray(values, np.float64)
        if rows.shape != (len(stamps), len(self._row)):
            raise StreamError(f"{len(stamps)} stamps and {len(self._row)} channels do not fit values {rows.shape}.")
        if self.coordinates.scaler is not None:
            rows = np.where(np.isinf(rows), rows, self.coordinates.scaler.row(rows))
        given = np.zeros((len(stamps), len(self._support)))
        if terms is not None:
            given = self._lie(np.asarray(terms, np.float64))
        bad = kernels.first_bad(self._state, stamps, rows)
        if bad >= 0:
            infinite = np.flatnonzero(np.isinf(rows[bad]))
            answer = kernels.INFINITE - int(infinite[0]) if len(infinite) else kernels.BACKWARDS
            self._refuse(answer, float(stamps[bad]), rows[bad])
        if self._hats is not None:
            rows = self._with_levels(rows)
        out = np.empty((len(stamps), self._dimension))
        if self._area:
            kernels.follow_area(self._state, stamps, rows, given, self._areas, out)
        else:
            kernels.follow_tensor(self._state, stamps, rows, given, *self._terms, *self._maps, out)
        return out

    def knot(self, time: float, continuous: Numbers | None) -> None:
        """Let the continuous channels go on along a straight line to these values, at a knot that is no event."""
        here = self._continuous(time, continuous)
        if not time >= self._state[kernels.NOW]:
            raise StreamError(f"The knot at {time} is before {self._state[kernels.NOW]}, where the path already is.")
        step = here - self._here
        self._push(time, step)
        self._here = here

    def logsig(self, at: float | None = None, continuous: Numbers | None = None) -> Float64[np.ndarray, "lie"]:
        """The log-signature of the open interval up to `at`, by default up to the last event. Changes nothing."""
        out = np.empty(self._dimension)
        if self._plain and at is None:
            kernels.read_area(self._state, -math.inf, out)
            return out
        time = self._reached if at is None else at
        if not time >= self._reached:
            raise StreamError(f"The interval is already known up to {self._reached}; asked for {time}.")
        if self._woven and time > self._state[kernels.NOW]:
            ahead = self.copy()
            ahead.knot(time, continuous)
            return ahead.logsig()
        if self._area:
            kernels.read_area(self._state, time, out)
        else:
            kernels.read_tensor(self._state, time, *self._maps, out)
        return out

    def close(self, at: float, final: bool = False, continuous: Numbers | None = None) -> Float64[np.ndarray, "lie"]:
        """End the open interval and begin the next one; returns the log-signature of the one that ended.

        An event at the end of an interval belongs to the next: close before observing it. At the horizon it belongs to
        the last interval: `final=True` allows that.
        """
        if not math.isfinite(at) or at <= self.start:
            raise StreamError(f"An interval that began at {self.start} cannot end at {at}.")
        if at == self.last and not final:
            raise StreamError(
                f"There is already an event at {at}, which belongs to the interval that begins there. Close first, "
                "then observe; or pass final=True if this is the horizon."
            )
        if self._woven:
            self.knot(at, continuous)
        out = self.logsig(at)
        self._state[self._body :] = 0.0
        self._state[kernels.START] = self._state[kernels.NOW] = at
        return out

    def state(self) -> Float64[np.ndarray, "state"]:
        """Everything there is to know of the stream so far, as one array of numbers."""
        return np.concatenate([self._state, self._here])

    def restore(self, state: Float64[np.ndarray, "state"]) -> "OnlineEmbedding":
        """Go on from what `state` returned, with the same embedding and schema."""
        mine = self._state[kernels.CHANNELS : kernels.HEAD]
        if len(state) != len(self._state) + len(self._here) or not np.array_equal(
            state[kernels.CHANNELS : kernels.HEAD], mine
        ):
            raise EmbeddingError("This state belongs to another embedding or schema. Restore it with the same ones.")
        self._state, self._here = np.split(np.array(state, np.float64), [len(self._state)])
        return self

    def copy(self) -> "OnlineEmbedding":
        """An independent stream that has seen the same."""
        return OnlineEmbedding(self.coordinates, continuous=self._here if self._woven else None).restore(self.state())

    @property
    def _reached(self) -> float:
        return float(max(self._state[kernels.START], self._state[kernels.LAST], self._state[kernels.NOW]))

    def _lie(self, terms: np.ndarray) -> np.ndarray:
        return terms @ self.coordinates.term_coordinates[:, self._support]

    def row(self, values: Values) -> Float64[np.ndarray, "channel"]:
        """The values of an event in the units of the path, one for each channel, NaN for those not observed."""
        if self._as_is and type(values) is ndarray and values.dtype is FLOAT:
            return values
        if isinstance(values, Mapping):
            row = self._row.copy()
            for name, value in values.items():
                if name not in self._names:
                    raise StreamError(f"There is no channel {name!r}. The channels are {', '.join(self._names)}.")
                row[self._names[name]] = value
        else:
            row = np.array(values, np.float64)
        scaler = self.coordinates.scaler
        if scaler is None or row.shape != self._row.shape:
            return row
        for channel in np.flatnonzero(np.isinf(row)):  # which limits would hide
            raise StreamError(f"Channel {scaler.channels[channel]!r} is infinite. Leave it out: NaN = not observed.")
        return scaler.row(row)

    def _before(self, time: float, row: np.ndarray, continuous: Numbers | None) -> np.ndarray:
        """What continuous channels and levels need before an event; returns the row that kernels take."""
        if self._hats is not None and row.shape != self._row.shape:
            self._refuse(kernels.MISFIT, time, row)
        if self._woven:
            self.knot(time, continuous)
        return row if self._hats is None else self._with_levels(row[None])[0]

    def _with_levels(self, rows: np.ndarray) -> np.ndarray:
        """Rows of values, and beside them how much each level has counted after each row, NaN if it does not change."""
        assert self._hats is not None
        weights = self._hats.weights(np.where(np.isinf(rows), np.nan, rows))
        known = self._state[kernels.HEAD + len(self._row) : kernels.HEAD + self.coordinates.discrete]
        totals = known + np.cumsum(np.nan_to_num(weights), axis=0)
        return np.concatenate([rows, np.where(weights > 0, totals, np.nan)], axis=1)

    def _continuous(self, time: float, continuous: Numbers | None) -> np.ndarray:
        names = self.coordinates.schema.continuous
        here = np.zeros(0) if continuous is None else np.atleast_1d(np.asarray(continuous, np.float64))
        if here.shape != (len(names),) or not np.isfinite(here).all():
            raise StreamError(f"At {time}, give the values of the continuous channels: {', '.join(names) or 'none'}.")
        return np.append(here, time) if self._woven and self.coordinates.time else here

    def _push(self, time: float, step: np.ndarray) -> None:
        letters = np.arange(self.coordinates.discrete, self.coordinates.basis.width, dtype=np.float64)
        if self._area:
            kernels.push_area(self._state, letters, step)
        else:
            offsets, none = np.array([0.0, len(letters)]), self._no_terms[None]
            kernels.push_tensor(self._state, time, letters, step, offsets, 0, none, *self._terms)
        self._state[kernels.NOW] = time

    def _refuse(self, answer: int, time: float, row: np.ndarray) -> NoReturn:
        if answer == kernels.MISFIT:
            raise StreamError(
                f"{row.size} values for {len(self._row)} channels. Give one for each, NaN = not observed."
            )
        if answer <= kernels.INFINITE:
            name = self.coordinates.schema.channels[kernels.INFINITE - answer]
            raise StreamError(f"Channel {name!r} is infinite at {time}. Leave it out: NaN = not observed.")
        raise StreamError(
            f"The event at {time} is not after the one before it (the last one taken was at {self.last}), or before "
            f"the open interval, which began at {self.start}. Give events in order, and all "
            "observations of one stamp in one call."
        )
