"""The ingest gate: rows become the events of a `Streams`. Input of every constructor goes through `assemble`.

Rows are grouped by series, checked, and merged where they share a stamp, so that afterwards
0 <= t_0 < ... < t_n <= T with non-empty observed sets s_i, as `sec:procedure` of the paper asks. Nothing here loops
over rows, and nothing is filled in. This module knows arrays and codes, and no data frames; the class that it builds is
an argument of `assemble`.
"""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64, Shaped

from logcde.errors import Remedy, StreamError
from logcde.streams.clock import Stamps
from logcde.streams.faults import (
    Places,
    check_horizon,
    check_numbers,
    check_range,
    check_terms,
    conflict,
    disorder,
    more,
)
from logcde.streams.ragged import offsets_of, stable_order
from logcde.streams.rows import Average, Drop, Earliest, Events, Forbid, Keep, KeepLast, LongRows, WideRows
from logcde.streams.schema import Schema
from logcde.streams.stamps import ClockOptions, Horizon, Origin, read_horizon, time_rows

StreamsT = TypeVar("StreamsT")


@dataclasses.dataclass(frozen=True)
class Rules:
    """Policies for input that can be taken in several ways."""

    sort: bool = False
    duplicates: Forbid | KeepLast | Average = Forbid()
    empty: Forbid | Drop | Keep = Forbid()


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """The options that all constructors of `Streams` share."""

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
    ) -> "ReadOptions":
        """Options as the user gives them; those that contradict the schema are refused."""
        clock = None if schema is None else schema.clock
        if clock is not None and unit is not None:
            raise StreamError(
                "Both a schema and a unit were given.", "The schema's clock has its unit: leave out unit=."
            )
        if clock is not None and not clock.per_series and not isinstance(origin, Earliest):
            raise StreamError(
                "Both a schema and an origin were given.", "The schema's clock has its origin: leave out origin=."
            )
        return cls(horizon, schema, ClockOptions(unit, origin, clock), Rules(sort, duplicates, empty))


class RawRows(NamedTuple):
    """Rows of input, not checked yet, and what `assemble` needs to know about them."""

    rows: LongRows | WideRows
    places: Places
    horizon: Float64[np.ndarray, "series"] | None
    rules: Rules = Rules()


def wide_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    values: Float[np.ndarray, "row channel"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    options: ReadOptions,
) -> RawRows:
    """Rows with one stamp and a value of each channel, NaN where it is not observed."""
    finite = np.isfinite(values)
    # Row by row takes much longer.
    observed = np.ones(len(values), bool) if finite.all() else np.asarray(finite.any(axis=1))
    times, places, horizon = _timed(stamps, series, observed, ids, schema, options)
    return RawRows(WideRows(series, times, values, terms), places, horizon, options.rules)


def long_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    channel: Shaped[np.ndarray, "row"],
    value: Float64[np.ndarray, "row"],
    terms: Float64[np.ndarray, "row terms"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    options: ReadOptions,
) -> RawRows:
    """Rows with one stamp, one channel and one value, NaN where it is not observed."""
    observed = ~np.isnan(value)
    times, places, horizon = _timed(stamps, series, observed, ids, schema, options)
    return RawRows(LongRows(series, times, channel, value, terms), places, horizon, options.rules)


def _timed(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    observed: Bool[np.ndarray, "row"],
    ids: Shaped[np.ndarray, "series"],
    schema: Schema,
    options: ReadOptions,
) -> tuple[np.ndarray, Places, np.ndarray | None]:
    """Times of the rows, places with the clock of these times, and horizons."""
    timing = time_rows(stamps, series, observed, ids, options.clock, options.horizon)
    horizon = read_horizon(options.horizon, ids, timing.clock, timing.origins)
    return timing.times, Places(ids, dataclasses.replace(schema, clock=timing.clock), timing.origins), horizon


def assemble(make: Callable[..., StreamsT], raw: RawRows) -> StreamsT:
    """Check rows, turn them into events, and build `Streams` of them.

    Args:
        make: The class `Streams`, called with its fields by keyword.
        raw: Rows of any constructor.
    """
    rows, places, horizon, rules = raw
    events = _events_of_wide(rows, len(places.ids)) if isinstance(rows, WideRows) else None
    if events is None:
        events = _events_of_long(rows.long() if isinstance(rows, WideRows) else rows, places, rules)
    horizon = check_horizon(horizon, events.time, places)
    check_range(events, horizon, places)
    kept = _nonempty(events.counts, places, rules)
    return make(
        schema=places.schema,
        ids=places.ids[kept],
        offsets=offsets_of(events.counts[kept]),
        times=events.time,
        obs_offsets=events.obs_offsets,
        channel=events.channel,
        value=events.value,
        horizon=horizon[kept],
        terms=events.terms,
        origins=None if places.origins is None else places.origins[kept],
    )


def _events_of_wide(wide: WideRows, series: int) -> Events | None:
    """Rows that are events as they stand, by a fast path; None where rows need sorting, merging or an error."""
    missing = np.isnan(wide.values)
    complete = not missing.any()
    if not complete:
        bare = np.all(missing, axis=1)
        if bare.any():
            if not np.isnan(wide.terms[bare]).all():
                return None
            wide, missing = wide.take(~bare), missing[~bare]
    codes, time = wide.series, wide.time
    sound = (
        bool(np.isfinite(time).all())
        and bool(((time[1:] > time[:-1]) | (codes[1:] > codes[:-1])).all())
        and bool((codes[1:] >= codes[:-1]).all())
        and not np.isinf(wide.values).any()
        and not np.isinf(wide.terms).any()
    )
    if not sound:
        return None
    rows, width = wide.values.shape
    counts, terms = np.bincount(codes, minlength=series), np.nan_to_num(wide.terms)
    channel = np.broadcast_to(np.arange(width, dtype=np.int32), (rows, width))
    if complete:
        obs_offsets = np.arange(0, rows * width + 1, width)
        return Events(counts, time, obs_offsets, channel.reshape(-1), wide.values.reshape(-1), terms)
    seen = ~missing
    return Events(counts, time, offsets_of(seen.sum(axis=1)), channel[seen], wide.values[seen], terms)


def _events_of_long(rows: LongRows, places: Places, rules: Rules) -> Events:
    """Events of rows in any order of series."""
    rows = rows.observed()
    check_numbers(rows, places)
    rows = _in_order(rows, places, rules)
    new = np.ones(len(rows.time), bool)
    np.not_equal(rows.time[1:], rows.time[:-1], out=new[1:])
    new[1:] |= rows.series[1:] != rows.series[:-1]
    starts = np.flatnonzero(new)
    times = rows.time if len(starts) == len(new) else rows.time[starts]
    counts = np.diff(np.searchsorted(starts, np.searchsorted(rows.series, np.arange(len(places.ids) + 1))))
    terms = np.zeros((len(starts), 0))
    if places.schema.terms:
        terms, observed = _terms(rows, new, places, rules), ~np.isnan(rows.value)
        if not observed.all():
            check_terms(rows, starts, observed, places)
            lengths = np.add.reduceat(observed.astype(np.int64), starts)
            rows, starts = rows.take(observed), offsets_of(lengths)[:-1]
            new = np.zeros(len(rows.time), bool)
            new[starts] = True
    rows = _by_channel(rows, new, len(places.schema.channels))
    same = rows.channel[1:] == rows.channel[:-1]
    same &= ~new[1:]
    repeated = np.flatnonzero(same) + 1

    def complain(first: int, second: int, others: int) -> StreamError:
        return conflict(rows, first, second, others, places)

    value = _resolve(rows.value, repeated, rules.duplicates, complain)
    kept = np.delete(rows.channel, repeated) if repeated.size else rows.channel
    starts = starts - np.searchsorted(repeated, starts) if repeated.size else starts
    obs_offsets = np.append(starts, len(value))
    return Events(counts, times, obs_offsets, kept.astype(np.int32, copy=False), value, terms)


def _in_order(rows: LongRows, places: Places, rules: Rules) -> LongRows:
    """Rows grouped by series and ordered by time; times that go back are sorted if the rules say so, else refused."""
    if (rows.series[1:] < rows.series[:-1]).any():
        rows = rows.take(stable_order(rows.series, len(places.ids)))
    back = rows.time[1:] < rows.time[:-1]
    back &= rows.series[1:] == rows.series[:-1]
    if not back.any():
        return rows
    if not rules.sort:
        raise disorder(rows, np.flatnonzero(back), places)
    order = np.arange(len(rows.time))
    offsets = np.searchsorted(rows.series, np.arange(len(places.ids) + 1))
    # Series by series: short sorts stay in the cache, and series that are in order cost nothing.
    for series in np.unique(rows.series[:-1][back]):
        start, stop = offsets[series], offsets[series + 1]
        order[start:stop] = start + np.argsort(rows.time[start:stop], kind="stable")
    return rows.take(order)


def _by_channel(rows: LongRows, new: np.ndarray, width: int) -> LongRows:
    """Rows of each event in the order of channels; rows of one channel stay in the order of the input."""
    back = rows.channel[1:] < rows.channel[:-1]
    back &= ~new[1:]
    if not back.any():
        return rows
    key = (np.cumsum(new) - 1) * width + rows.channel
    order = np.argsort(key, kind="stable")
    return rows._replace(channel=rows.channel[order], value=rows.value[order])


def _resolve(
    value: Float64[np.ndarray, "row"],
    repeated: Int64[np.ndarray, "_"],
    policy: Forbid | KeepLast | Average,
    complain: Callable[[int, int, int], StreamError],
) -> Float64[np.ndarray, "_"]:
    """Values without the `repeated` positions, each of which has the same place as the position before it."""
    if not repeated.size:
        return value
    differing = repeated[value[repeated] != value[repeated - 1]]
    if differing.size and isinstance(policy, Forbid):
        raise complain(int(differing[0]) - 1, int(differing[0]), len(differing) - 1)
    begins = np.ones(len(repeated), bool)
    begins[1:] = repeated[1:] != repeated[:-1] + 1
    heads = repeated[begins] - 1
    lengths = np.diff(np.flatnonzero(begins), append=len(repeated)) + 1
    resolved = value[heads]
    if isinstance(policy, KeepLast):
        resolved = value[heads + lengths - 1]
    elif differing.size:
        # Runs of equal values keep them to the last bit: only the others are averaged.
        run = np.repeat(np.arange(len(heads)), lengths)
        position = np.arange(len(run)) - np.repeat(offsets_of(lengths)[:-1] - heads, lengths)
        mean = np.bincount(run, value[position] / lengths[run], minlength=len(heads))
        mixed = np.unique(np.searchsorted(heads, differing) - 1)
        resolved[mixed] = mean[mixed]
    value = value.copy()
    value[heads] = resolved
    return np.delete(value, repeated)


def _terms(rows: LongRows, new: np.ndarray, places: Places, rules: Rules) -> np.ndarray:
    """The terms of each event, zero where there are none."""
    event = np.cumsum(new) - 1
    terms = np.zeros((int(event[-1]) + 1 if len(event) else 0, len(places.schema.terms)))
    for column, term in enumerate(places.schema.terms):
        given = np.flatnonzero(~np.isnan(rows.terms[:, column]))
        value, owner = rows.terms[given, column], event[given]
        repeated = np.flatnonzero(owner[1:] == owner[:-1]) + 1

        def complain(first: int, second: int, others: int, term=term, given=given, value=value) -> StreamError:
            where = places.where(rows.series[given[first]], rows.time[given[first]])
            return StreamError(
                f"{where} has two different values of the term {term.name!r}, {float(value[first])!r} and "
                f"{float(value[second])!r}{more(others)}. An event has one, given in one of its rows or in all.",
                Remedy.DUPLICATES,
                where=where,
            )

        terms[np.delete(owner, repeated), column] = _resolve(value, repeated, rules.duplicates, complain)
    return terms


def _nonempty(counts: np.ndarray, places: Places, rules: Rules) -> np.ndarray:
    """The mask of series that stay."""
    bare = np.flatnonzero(counts == 0)
    if bare.size and isinstance(rules.empty, Forbid):
        raise StreamError(
            f"{places.series(bare[0])} has no observation{more(len(bare) - 1)}.",
            Remedy.EMPTY,
            where=places.where(bare[0]),
        )
    return counts > 0 if isinstance(rules.empty, Drop) else np.ones(len(counts), bool)
