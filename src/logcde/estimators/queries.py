"""Query times of forecasts: as a caller gives them, or as the stamps of targets."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.errors import PartitionError, TrainingError, Where
from logcde.streams import NumericClock, Partition, Streams
from logcde.streams.clock import Stamps
from logcde.streams.faults import Places
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps


@dataclasses.dataclass(frozen=True)
class Queries:
    """Query times of all series, end to end, and the targets there if they are known.

    Args:
        offsets: Where the times of each series begin in `times`, and the total.
        times: Query times, positive and increasing within a series.
        targets: Targets at these times, NaN where an output is unknown.
        names: The name of each output, empty if they have none.
    """

    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "query"]
    targets: Float64[np.ndarray, "query output"] | None = None
    names: tuple[str, ...] = ()

    @property
    def counts(self) -> Int64[np.ndarray, "series"]:
        """The number of query times of each series."""
        return np.diff(self.offsets)

    @property
    def present(self) -> Bool[np.ndarray, "series time"]:
        """Which entries of a padded array (series, time) belong to query times."""
        return np.arange(self.counts.max(initial=0)) < self.counts[:, None]

    def by_series(self, values: Float64[np.ndarray, "query output"]) -> Float64[np.ndarray, "series time output"]:
        """Return values at the query times as a padded array, with NaN as padding."""
        rows = np.full((*self.present.shape, values.shape[1]), np.nan)
        rows[self.present] = values
        return rows


def queries_at(at: Any, streams: Streams) -> Queries:
    """Read query times: the interval ends of a partition, stamps for all series, or a list for each.

    By default they are the horizons. What has been read already is returned as it is.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], horizon=4.0)
    >>> queries_at([1.0, 2.0], streams).times
    array([1., 2., 1., 2.])
    """
    if isinstance(at, Queries):
        return at
    if at is None:
        return queries_of_times(list(streams.horizon[:, None]), streams)
    if isinstance(at, Partition):
        cuts = at.cuts(streams)
        ends = np.ones(len(cuts.points), bool)
        ends[cuts.offsets[:-1]] = False
        return Queries(offsets_of(np.diff(cuts.offsets) - 1), cuts.points[ends])
    clock, count = streams.schema.clock, len(streams)
    nested = isinstance(at, Sequence | np.ndarray) and len(at) > 0 and np.ndim(at[0]) > 0
    if nested and len(at) != count:
        raise PartitionError(
            f"There are query times for {len(at)} series, but {count} series.",
            "Give a list of times for each series, or one list for all.",
        )
    stamps = [read_stamps(one) for one in at] if nested else [read_stamps(np.atleast_1d(at))] * count
    origins = [None if streams.origins is None else streams.origins[k : k + 1] for k in range(count)]
    return queries_of_times([clock.times(one, own) for one, own in zip(stamps, origins, strict=True)], streams)


def queries_of_times(lists: Sequence[Float64[np.ndarray, "_"]], streams: Streams) -> Queries:
    """Query times of each series, as times on its clock."""
    offsets = offsets_of(np.array([len(one) for one in lists], np.int64))
    queries = Queries(offsets, np.concatenate([np.empty(0), *lists]))
    _check_increasing(queries, streams)
    return queries


def _check_increasing(queries: Queries, streams: Streams) -> None:
    before = np.concatenate([[0.0], queries.times[:-1]])
    before[queries.offsets[:-1][queries.counts > 0]] = 0.0
    wrong = np.flatnonzero(~(np.isfinite(queries.times) & (queries.times > before)))
    if wrong.size:
        place = wrong[0]
        series, time = owners(queries.offsets)[place], float(queries.times[place])
        places = Places(streams.ids, streams.schema, streams.origins)
        raise PartitionError(
            f"{places.series(series)} has the query time {places.stamp(series, time)} after "
            f"{places.stamp(series, before[place])}.",
            f"Query times increase, and the first is after the start, {places.stamp(series, 0.0)}: earlier "
            "observations are needed.",
            where=Where(series=streams.ids[series], stamp=time),
        )


def queries_of_targets(targets: Streams) -> Queries:
    """Take the stamps of target streams as query times, without those at 0, which no observation precedes."""
    owner = owners(targets.offsets)
    values = np.full((len(targets.times), len(targets.schema.channels)), np.nan)
    values[owners(targets.obs_offsets), targets.channel] = targets.value
    later = targets.times > 0
    counts = np.bincount(owner[later], minlength=len(targets))
    return Queries(offsets_of(counts), targets.times[later], values[later], targets.schema.channels)


def align_streams(targets: Streams, streams: Streams) -> Streams:
    """Put target streams into the order of `streams`, by series id."""
    places = {one: number for number, one in enumerate(targets.ids.tolist())}
    missing = [one for one in streams.ids.tolist() if one not in places]
    if missing:
        raise TrainingError(
            f"y has no targets for the series {listed(missing, 3)}.",
            "Give targets for each series.",
            where=Where(series=missing[0]),
        )
    if type(targets.schema.clock) is not type(streams.schema.clock):
        raise TrainingError(
            f"X has a {type(streams.schema.clock).__name__} and y a {type(targets.schema.clock).__name__}.",
            "Give both the same type of stamps.",
        )
    return _on_clock_of(streams, targets[[places[one] for one in streams.ids.tolist()]])


def _on_clock_of(streams: Streams, targets: Streams) -> Streams:
    """Targets of the same series with times on the clock of the series; what is earlier than their start is left out.

    Only plain numbers are converted, which may count from different stamps in the two tables.
    """
    ours, theirs = streams.schema.clock, targets.schema.clock
    if not (isinstance(ours, NumericClock) and isinstance(theirs, NumericClock)):
        return targets
    after, before = streams.origins, targets.origins
    if ours == theirs and (after is None or before is None or np.array_equal(after, before)):
        return targets
    series = owners(targets.offsets)
    stamps = theirs.stamps(targets.times, None if before is None else before[series])
    times = ours.times(Stamps(stamps), None if after is None else after[series])
    ends = ours.times(Stamps(theirs.stamps(targets.horizon, before)), after)
    schema = dataclasses.replace(targets.schema, clock=ours)
    return dataclasses.replace(targets, schema=schema, times=times, horizon=ends, origins=after)
