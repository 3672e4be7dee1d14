"""What is told of a service as a whole: its model, its feeds, and the alerts of the past."""

from collections.abc import Mapping, Sequence
from typing import Any

from logcde.online.predictors import predict_together
from logcde.serve.alerts import Alert, numbers_of
from logcde.serve.live import ServedModel
from logcde.serve.store import AbstractStore
from logcde.serve.worker import Worker
from logcde.streams.clock import Clock, DatetimeClock, NumericClock, unit_name
from logcde.streams.partition import Every, EveryEvents, Partition

ENTRIES_AT_ONCE = 2000
"""Outgoing entries that are read at once."""
MOST_ENTRIES = 100_000
"""Outgoing entries among which past alerts are looked for."""


def model_facts(models: Sequence[ServedModel], alerts: Sequence[Alert], risk: str | None) -> dict[str, Any]:
    """The model: checksum, channels, outputs, clock, the rule by which its intervals end, alerts.

    Args:
        models: The model, and perhaps another one beside it, of which the checksum is told.
        alerts: Thresholds of outputs.
        risk: The output by which series are sorted; None for the last one.
    """
    model, *others = models
    predictor = model.predictor
    schema = predictor.schema
    outputs = list(numbers_of(model.to_json(predict_together([predictor.copy()], [None])[0])))
    return {
        "model": model.digest,
        "beside": others[0].digest if others else None,
        "channels": list(schema.channels),
        "outputs": outputs,
        "risk": risk or outputs[-1],
        "clock": clock_facts(schema.clock),
        "interval": interval_facts(predictor.rule, schema.clock),
        "alerts": [
            {"alert": str(one), "output": one.output, "raised": one.raised, "cleared": one.cleared} for one in alerts
        ],
    }


def clock_facts(clock: Clock) -> dict[str, Any]:
    """What stamps are, and the unit of the model's times.

    >>> clock_facts(NumericClock())
    {'stamps': 'numbers', 'unit': None, 'seconds': None, 'zone': None}
    >>> clock_facts(DatetimeClock(zone="UTC"))
    {'stamps': 'datetimes', 'unit': 'hours', 'seconds': 3600.0, 'zone': 'UTC'}
    """
    datetimes = isinstance(clock, DatetimeClock)
    return {
        "stamps": "datetimes" if datetimes else "numbers",
        "unit": unit_name(clock) or None,
        "seconds": None if isinstance(clock, NumericClock) else clock.unit.total_seconds(),
        "zone": clock.zone if datetimes else None,
    }


def interval_facts(rule: Partition | None, clock: Clock) -> dict[str, Any]:
    """How query intervals end: their length in the unit of the model's times, or their number of events.

    >>> interval_facts(Partition.every(0.5), NumericClock())
    {'length': 0.5, 'events': None}
    >>> interval_facts(Partition.every_events(10), NumericClock())
    {'length': None, 'events': 10}
    """
    return {
        "length": rule.length(clock) if isinstance(rule, Every) else None,
        "events": rule.events if isinstance(rule, EveryEvents) else None,
    }


def feed_facts(worker: Worker) -> list[dict[str, Any]]:
    """The partitions of the feed: how far those that this process has were taken, and what waits; and the others."""
    feed, held = worker.feed, {lease.partition: lease for lease in worker.leases}
    state = "taking" if worker.failure is None else "failing"
    return [
        {
            "name": feed.name,
            "partition": partition,
            "position": None if lease is None else worker.position(lease),
            "lag_seconds": None if lease is None else feed.lag(lease),
            "waiting": None if lease is None else feed.waiting(lease),
            "owner": "another process" if lease is None else "this process",
            "state": "elsewhere" if lease is None else state,
        }
        for partition, lease in ((number, held.get(number)) for number in feed.partitions)
    ]


def refused_by_reason(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Numbers of refused observations since the service was started, the largest first.

    >>> refused_by_reason({("refused", "limit"): 2, ("groups", ""): 9, ("refused", "malformed"): 5})
    {'malformed': 5, 'limit': 2}
    """
    found = [(reason, count) for (name, reason), count in counts.items() if name == "refused"]
    return dict(sorted(found, key=lambda one: -one[1]))


def past_alerts(store: AbstractStore, series: str | None, limit: int) -> dict[str, Any]:
    """Alerts that were raised and cleared, latest first, as far as subscribers could still resume to them.

    Args:
        store: What keeps them.
        series: Only those of the series with this id.
        limit: At most so many.
    """
    oldest, newest = store.outgoing_range()
    first, end = max(oldest, newest + 1 - MOST_ENTRIES), newest + 1
    found: list[dict[str, Any]] = []
    while end > first and len(found) < limit:
        begin = max(first, end - ENTRIES_AT_ONCE)
        for one in reversed(store.outgoing(begin - 1, end - begin)):
            if one.kind == "alert" and one.number < end and (series is None or str(one.series) == series):
                found.append({"number": one.number, **one.content})
        end = begin
    return {"alerts": found[:limit], "complete": end <= oldest and len(found) <= limit}
