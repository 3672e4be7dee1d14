"""A trained model of intensive care stays online: hour by hour, event by event, and attributions."""

import time
from collections.abc import Sequence

import msgspec
import numpy as np
from jaxtyping import Float, Int

from experiments.physionet2012.models import Given, odds_of
from experiments.runner.abstract import Tell
from logcde.embedding import Embedding
from logcde.models import Inputs, Sum, attribute, predict
from logcde.online import Predictors
from logcde.streams import Partition, Streams

HOURS = tuple(range(1, 49))


class Observation(msgspec.Struct, frozen=True, array_like=True):
    """An observation of the explained stay, and the amount by which it moves the log odds of death."""

    hour: float
    channel: str
    value: float
    amount: float


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Log odds of a stay, those with `ordinary` values at the same stamps, and the mean over test stays (`usual`)."""

    stay: int
    log_odds: float
    ordinary: float
    usual: float
    observations: list[Observation]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Stays event by event: seconds to observe and to predict, and the largest difference from offline log odds."""

    stays: int
    events: int
    observations: int
    predictions: int
    event_seconds: float
    prediction_seconds: float
    difference: float


class Hours(msgspec.Struct, frozen=True, kw_only=True):
    """AUROC and AUPRC from the observations before each full hour."""

    auroc: list[float]
    auprc: list[float]


def known_by(
    model: Sum, embedding: Embedding, given: Given, which: Int[np.ndarray, "series"], hour: int
) -> Float[np.ndarray, "series"]:
    """Log odds of death from the observations before `hour`, predicted offline.

    An observation at a full hour is not known by then, except at the end of the stay.
    """
    assert model.spec is not None
    streams = given.stays.streams[which]
    cuts = model.spec.partition.cuts(streams[:1]).points
    logsigs = embedding(streams, Partition.at([*cuts[cuts < hour], float(hour)], partial=True))
    return odds_of(np.asarray(predict(model, Inputs.of(logsigs, _static(model, given, which)))))


def hour_by_hour(
    model: Sum, embedding: Embedding, given: Given, tell: Tell
) -> tuple[Hours, Float[np.ndarray, "hour series"]]:
    """Scores on all test stays for each hour, and the log odds."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    test, odds = given.split.test, []
    for hour in HOURS:
        odds.append(known_by(model, embedding, given, test, hour))
        tell(hour / HOURS[-1])
    died = given.stays.died[test]
    auroc = [round(float(roc_auc_score(died, one)), 5) for one in odds]
    auprc = [round(float(average_precision_score(died, one)), 5) for one in odds]
    return Hours(auroc=auroc, auprc=auprc), np.stack(odds)


def replay(
    model: Sum, given: Given, which: Int[np.ndarray, "series"], offline: Float[np.ndarray, "hour series"], tell: Tell
) -> Replay:
    """Observe the events of stays in order of time, predict all stays after every hour, and compare with offline."""
    streams, static = given.stays.streams[which], _static(model, given, which)
    predictors = Predictors(model)
    for number in range(len(which)):
        predictors.add(number, None if static is None else static[number])
    rows = _events(streams)
    predictors.predict(at=0.0)  # compiles
    taken, asked, difference, place = 0.0, 0.0, 0.0, 0
    for hour, expected in zip(HOURS, offline, strict=True):
        began = time.perf_counter()
        while place < len(rows) and (rows[place][0] < hour or hour == HOURS[-1]):
            stamp, number, values = rows[place]
            predictors.observe(number, stamp, values)
            place += 1
        then = time.perf_counter()
        found = odds_of(predictors.predict(at=float(hour)))
        taken, asked = taken + then - began, asked + time.perf_counter() - then
        difference = max(difference, float(np.abs(found - expected).max()))
        tell(hour / HOURS[-1])
    return Replay(
        stays=len(which),
        events=place,
        observations=sum(len(values) for _, _, values in rows[:place]),
        predictions=len(which) * len(HOURS),
        event_seconds=round(taken, 3),
        prediction_seconds=round(asked, 3),
        difference=difference,
    )


def explain(model: Sum, given: Given, stay: int, odds: Sequence[float]) -> Explained:
    """Attribute the log odds of one stay to its observations."""
    streams = given.stays.streams[[stay]]
    static = _static(model, given, np.array([stay]))
    found = attribute(model, streams, static=None if static is None else static[0], pieces=32)
    hours = np.repeat(streams.times, np.diff(streams.obs_offsets))
    names = np.array(streams.schema.channels)[streams.channel]
    return Explained(
        stay=int(streams.ids[0]),
        log_odds=found.prediction,
        ordinary=found.ordinary,
        usual=float(np.mean(odds)),
        observations=[
            Observation(round(float(hour), 3), str(name), round(float(value), 4), round(float(amount), 5))
            for hour, name, value, amount in zip(hours, names, streams.value, found.amounts, strict=True)
        ],
    )


def _events(streams: Streams) -> list[tuple[float, int, dict[str, float]]]:
    """All events of all series in order of time."""
    rows = []
    names = streams.schema.channels
    for number in range(len(streams)):
        for event in range(streams.offsets[number], streams.offsets[number + 1]):
            pick = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
            values = {names[c]: float(v) for c, v in zip(streams.channel[pick], streams.value[pick], strict=True)}
            rows.append((float(streams.times[event]), number, values))
    return sorted(rows, key=lambda row: row[0])


def _static(model: Sum, given: Given, which: np.ndarray) -> np.ndarray | None:
    return given.static[which] if model.statics else None
