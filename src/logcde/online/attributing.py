"""On which observations of a growing series a prediction rests: what it would be if some had not been made.

One mechanism for all predictors: the series is replayed without a part of its observations. It costs one replay and one
prediction for each part, all predicted together, so observations are grouped where there are many.
"""

import dataclasses
import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from logcde.embedding.online import Values
from logcde.errors import ModelError
from logcde.features.online import row_of
from logcde.models.attribution import log_odds
from logcde.online.abstract import AbstractPredictor
from logcde.online.predictor import Predictor
from logcde.online.prefix import Event
from logcde.online.watching import quiet
from logcde.streams.clock import Time
from logcde.streams.series_clock import begun_by, time_on

MOST = 48


@dataclasses.dataclass(frozen=True)
class Part:
    """Observations of one channel in a stretch of time, and how far they move the prediction.

    Attributes:
        channel: The channel.
        begin: Time of the first of these observations, on the clock of the series.
        end: Time of the last of them.
        count: Their number.
        amount: The number that is explained minus what it would be without them, in its own units. Amounts do not add
            up to that number: parts may say the same, or something only together.
    """

    channel: str
    begin: float
    end: float
    count: int
    amount: float


def attribute_online(
    fresh: AbstractPredictor,
    events: Sequence[tuple[Any, ...]],
    at: object = None,
    *,
    of: Callable[[Float[np.ndarray, "output"]], Any] = log_odds,
    most: int = MOST,
    closes: Sequence[object] = (),
    knots: Sequence[tuple[object, Values]] = (),
) -> list[Part]:
    """Say on which observations of a series its prediction rests, for predictors of any kind.

    Args:
        fresh: A predictor of the series, with its static features, which has observed nothing.
        events: All that was observed: stamp and values of each event, and its higher-order terms if it has any, which
            are left out with the last of its values.
        at: The stamp of the prediction, by default that of the last event. Later events do not count.
        of: Selects the number to be explained from the outputs; by default the only one, or the second minus the first.
        most: Number of parts, each of which is one replay of the series. With more observations, those of a channel
            that follow one another are one part, so that no part has many more than the others.
        closes: Stamps at which intervals were closed by hand.
        knots: Stamps and values of continuous channels. They are part of every replay.

    Returns:
        The parts, by channel and time. Every observation is in one of them.

    Raises:
        ModelError: The predictor has observed something, or there are more channels than parts.

    >>> import jax
    >>> from logcde import Embedding, log_slice, Partition, Schema
    >>> schema, embedding = Schema(("pulse", "temp")), Embedding(depth=2)
    >>> model = log_slice(embedding.basis(schema), hidden=8, outputs=1, key=jax.random.key(0))
    >>> fresh = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(1.0))
    >>> events = [(0.5, {"pulse": 61.0}), (2.25, {"pulse": 64.0, "temp": 37.2})]
    >>> [(part.channel, part.begin, part.count) for part in attribute_online(fresh, events, at=4.0)]
    [('pulse', 0.5, 1), ('pulse', 2.25, 1), ('temp', 2.25, 1)]
    """
    if fresh.last != -math.inf:
        raise ModelError("This predictor has observed something already.", "Give one that `begin` returns.")
    # Times, not stamps: without its first event, a series with an origin of its own would begin later.
    clock = fresh.schema.clock
    for stamp, *_ in [*knots, *events][:1]:
        clock = begun_by(clock, stamp)
    read = (Event(time_on(clock, stamp), row_of(fresh.schema, values), *terms) for stamp, values, *terms in events)
    known = sorted(read, key=lambda event: event.time)
    until = time_on(clock, at) if at is not None else Time(known[-1].time if known else 0.0)
    known = [one for one in known if one.time <= until]
    if not known:
        return []
    seen = ~np.isnan([one.row for one in known])
    parts = _parts(seen, fresh.schema.channels, most)
    part_of = np.full(seen.shape, -1)
    for place, (channel, chosen) in enumerate(parts):
        part_of[chosen, channel] = place
    whole, without = fresh.copy(), dict[int, AbstractPredictor]()
    ends = [Time(end) for end in sorted(time_on(clock, one) for one in closes) if end <= until]

    def close_until(time: float) -> None:
        while ends and ends[0] <= time:
            end = ends.pop(0)
            for one in (whole, *without.values()):
                one.close(end)

    with quiet():
        for stamp, values in knots:
            if not isinstance(whole, Predictor):
                raise ModelError("This predictor follows no continuous channels.", "Leave out knots=.")
            whole.knot(time_on(clock, stamp), values)
        for number, event in enumerate(known):
            close_until(event.time)
            here = {*part_of[number].tolist()} - {-1}
            for place in here - without.keys():
                without[place] = whole.copy()  # nothing is missing before the first observation of its part
            for place in here:
                row = np.where(part_of[number] == place, np.nan, event.row)
                if not np.isnan(row).all():
                    without[place].observe(event.time, row, event.terms)
            for one in (whole, *(without[place] for place in without.keys() - here)):
                one.observe(event.time, event.row, event.terms)
        close_until(until)
        replays = [whole, *(without[place] for place in range(len(parts)))]
        found = [float(of(one)) for one in whole.predict_each(replays, [until] * len(replays))]
    names, times = fresh.schema.channels, [float(one.time) for one in known]
    return [
        Part(names[channel], times[chosen[0]], times[chosen[-1]], len(chosen), found[0] - one)
        for (channel, chosen), one in zip(parts, found[1:], strict=True)
    ]


def _parts(
    seen: Bool[np.ndarray, "event channel"], channels: Sequence[str], most: int
) -> list[tuple[int, Int64[np.ndarray, "_"]]]:
    """Channel and events of each part: one for each channel, of which the largest is halved while there may be more.

    >>> [(channel, chosen.tolist()) for channel, chosen in _parts(np.ones((4, 2), bool), ("a", "b"), most=3)]
    [(0, [0, 1]), (0, [2, 3]), (1, [0, 1, 2, 3])]
    """
    observed = np.flatnonzero(seen.any(axis=0)).tolist()
    if len(observed) > most:
        raise ModelError(
            f"There are observations of {len(observed)} channels, more than most={most} parts.",
            f"Allow at least {len(observed)}, or {len(channels)} for any series.",
        )
    heap = []
    for channel in observed:
        chosen = np.flatnonzero(seen[:, channel])
        heap.append((-len(chosen), channel, int(chosen[0]), chosen))
    heapq.heapify(heap)
    while len(heap) < most and heap[0][0] < -1:
        _, channel, _, chosen = heapq.heappop(heap)
        for half in np.array_split(chosen, 2):
            heapq.heappush(heap, (-len(half), channel, int(half[0]), half))
    return [(channel, chosen) for _, channel, _, chosen in sorted(heap, key=lambda part: part[1:3])]
