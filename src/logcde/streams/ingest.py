"""Rows become events: the one gate through which every constructor's input goes.

Rows are grouped by series, checked, and merged where they share a stamp, so that afterwards
0 <= t_0 < ... < t_n <= T with non-empty observed sets s_i, as `sec:procedure` of the paper asks. Nothing here loops
over rows, and nothing is filled in. This module knows arrays and codes, and no data frames.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64, Shaped

from logcde.errors import Remedy, StreamError
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
from logcde.streams.ragged import offsets_of
from logcde.streams.rows import Average, Drop, Events, Forbid, Keep, KeepLast, Rows, Table, stable_order
from logcde.streams.schema import Schema


class Columns(NamedTuple):
    """The arrays of a `Streams`, in the order of its fields."""

    schema: Schema
    ids: Shaped[np.ndarray, "series"]
    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "event"]
    obs_offsets: Int64[np.ndarray, "_"]
    channel: Int32[np.ndarray, "obs"]
    value: Float[np.ndarray, "obs"]
    horizon: Float64[np.ndarray, "series"]
    terms: Float64[np.ndarray, "event terms"]
    knots: None
    origins: Shaped[np.ndarray, "series"] | None


@dataclasses.dataclass(frozen=True)
class Rules:
    """How to take what can be taken in several ways."""

    sort: bool = False
    duplicates: Forbid | KeepLast | Average = Forbid()
    empty: Forbid | Drop | Keep = Forbid()


def assemble(
    rows: Rows | Table, places: Places, horizon: Float64[np.ndarray, "series"] | None, rules: Rules = Rules()
) -> Columns:
    """Check the input and build the columns of a `Streams` from it."""
    events = _events_of_table(rows, len(places.ids)) if isinstance(rows, Table) else None
    if events is None:
        events = _events_of_rows(rows.long() if isinstance(rows, Table) else rows, places, rules)
    horizon = check_horizon(horizon, events.time, places)
    check_range(events, horizon, places)
    kept = _nonempty(events.counts, places, rules)
    return Columns(
        schema=places.schema,
        ids=places.ids[kept],
        offsets=offsets_of(events.counts[kept]),
        times=events.time,
        obs_offsets=events.obs_offsets,
        channel=events.channel,
        value=events.value,
        horizon=horizon[kept],
        terms=events.terms,
        knots=None,
        origins=None if places.origins is None else places.origins[kept],
    )


def _events_of_table(table: Table, series: int) -> Events | None:
    """Rows of a table that are events as they stand; None where something needs sorting, merging or blaming."""
    missing = np.isnan(table.values)
    complete = not missing.any()
    if not complete:
        bare = np.all(missing, axis=1)
        if bare.any():
            if not np.isnan(table.terms[bare]).all():
                return None
            table, missing = table.pick(~bare), missing[~bare]
    codes, time = table.series, table.time
    sound = (
        bool(np.isfinite(time).all())
        and bool(((time[1:] > time[:-1]) | (codes[1:] > codes[:-1])).all())
        and bool((codes[1:] >= codes[:-1]).all())
        and not np.isinf(table.values).any()
        and not np.isinf(table.terms).any()
    )
    if not sound:
        return None
    rows, width = table.values.shape
    counts, terms = np.bincount(codes, minlength=series), np.nan_to_num(table.terms)
    channel = np.broadcast_to(np.arange(width, dtype=np.int32), (rows, width))
    if complete:
        obs_offsets = np.arange(0, rows * width + 1, width)
        return Events(counts, time, obs_offsets, channel.reshape(-1), table.values.reshape(-1), terms)
    seen = ~missing
    return Events(counts, time, offsets_of(seen.sum(axis=1)), channel[seen], table.values[seen], terms)


def _events_of_rows(rows: Rows, places: Places, rules: Rules) -> Events:
    """Rows in any order of series become events."""
    rows = rows.informative()
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
            rows, starts = rows.pick(observed), offsets_of(lengths)[:-1]
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


def _in_order(rows: Rows, places: Places, rules: Rules) -> Rows:
    """Rows grouped by series, and by time within each: the latter only if they were already, or on request."""
    if (rows.series[1:] < rows.series[:-1]).any():
        rows = rows.pick(stable_order(rows.series, len(places.ids)))
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
    return rows.pick(order)


def _by_channel(rows: Rows, new: np.ndarray, width: int) -> Rows:
    """Rows of each event in the order of channels; rows of one channel stay in the order they came in."""
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
    """Values without those at `repeated`, positions that tell again what the position before has told."""
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
        # Runs of one value keep it to the last bit: only the others are averaged.
        run = np.repeat(np.arange(len(heads)), lengths)
        position = np.arange(len(run)) - np.repeat(offsets_of(lengths)[:-1] - heads, lengths)
        mean = np.bincount(run, value[position] / lengths[run], minlength=len(heads))
        mixed = np.unique(np.searchsorted(heads, differing) - 1)
        resolved[mixed] = mean[mixed]
    value = value.copy()
    value[heads] = resolved
    return np.delete(value, repeated)


def _terms(rows: Rows, new: np.ndarray, places: Places, rules: Rules) -> np.ndarray:
    """One value of each term for each event, zero where there is none."""
    event = np.cumsum(new) - 1
    terms = np.zeros((int(event[-1]) + 1 if len(event) else 0, len(places.schema.terms)))
    for column, term in enumerate(places.schema.terms):
        given = np.flatnonzero(~np.isnan(rows.terms[:, column]))
        value, where = rows.terms[given, column], event[given]
        repeated = np.flatnonzero(where[1:] == where[:-1]) + 1

        def complain(first: int, second: int, others: int, term=term, given=given, value=value) -> StreamError:
            at = places.at(rows.series[given[first]], rows.time[given[first]])
            return StreamError(
                f"{at} has two different values of the term {term.name!r}, {float(value[first])!r} and "
                f"{float(value[second])!r}{more(others)}. An event has one: repeat it in each row of the event or "
                "leave the others empty.",
                Remedy.DUPLICATES,
            )

        terms[np.delete(where, repeated), column] = _resolve(value, repeated, rules.duplicates, complain)
    return terms


def _nonempty(counts: np.ndarray, places: Places, rules: Rules) -> np.ndarray:
    """Which series stay."""
    bare = np.flatnonzero(counts == 0)
    if bare.size and isinstance(rules.empty, Forbid):
        raise StreamError(f"{places.series(bare[0])} has no observation{more(len(bare) - 1)}.", Remedy.EMPTY)
    return counts > 0 if isinstance(rules.empty, Drop) else np.ones(len(counts), bool)
