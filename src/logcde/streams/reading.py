"""From rows with stamps of any kind, through the clock and the gate, to the columns of a `Streams`."""

import dataclasses
from datetime import timedelta

import numpy as np
from jaxtyping import Float, Float64, Shaped

from logcde.errors import StreamError
from logcde.streams.clock import DatetimeClock, Stamps
from logcde.streams.ingest import Columns, Rules, assemble
from logcde.streams.places import Places
from logcde.streams.policies import Average, Drop, Earliest, Forbid, Keep, KeepLast
from logcde.streams.rows import Rows, Table
from logcde.streams.schema import Schema
from logcde.streams.timing import ClockOptions, Horizon, Origin, read_horizon, time_rows


@dataclasses.dataclass(frozen=True)
class Reading:
    """The options that every constructor has."""

    horizon: Horizon | None = None
    schema: Schema | None = None
    clock: ClockOptions = ClockOptions()
    rules: Rules = Rules()

    @classmethod
    def of(
        cls,
        horizon: Horizon | None,
        schema: Schema | None,
        unit: timedelta | None,
        origin: Origin,
        sort: bool,
        duplicates: Forbid | KeepLast | Average,
        empty: Forbid | Drop | Keep,
    ) -> "Reading":
        """Options as the user gives them, with those that contradict a schema refused."""
        clock = None if schema is None else schema.clock
        if clock is not None and unit is not None:
            raise StreamError(
                "Both a schema and a unit were given. The schema's clock has its unit: leave out the other."
            )
        if isinstance(clock, DatetimeClock) and clock.origin is not None and not isinstance(origin, Earliest):
            raise StreamError(
                "Both a schema and an origin were given. The schema's clock has its origin: leave out the other."
            )
        return cls(horizon, schema, ClockOptions(unit, origin, clock), Rules(sort, duplicates, empty))


def read_table(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    values: Float[np.ndarray, "row channel"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    reading: Reading,
) -> Columns:
    """Wide rows: one stamp and a value of each channel, NaN where it is not observed."""
    numeric = stamps.array.dtype.kind == "f"
    observed = np.ones(len(values), bool) if numeric else np.any(np.isfinite(values), axis=1)
    timing = time_rows(stamps, series, observed, ids, reading.clock)
    horizon = read_horizon(reading.horizon, ids, timing.clock, timing.origins)
    places = Places(ids, dataclasses.replace(schema, clock=timing.clock), timing.origins)
    return assemble(Table(series, timing.times, values, terms), places, horizon, reading.rules)


def read_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    channel: Shaped[np.ndarray, "row"],
    value: Float64[np.ndarray, "row"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    reading: Reading,
) -> Columns:
    """Long rows: one stamp, one channel, one value."""
    numeric = stamps.array.dtype.kind == "f"
    observed = np.ones(len(value), bool) if numeric else ~np.isnan(value)
    timing = time_rows(stamps, series, observed, ids, reading.clock)
    horizon = read_horizon(reading.horizon, ids, timing.clock, timing.origins)
    places = Places(ids, dataclasses.replace(schema, clock=timing.clock), timing.origins)
    return assemble(Rows(series, timing.times, channel, value, terms), places, horizon, reading.rules)
