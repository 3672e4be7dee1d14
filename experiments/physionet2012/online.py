"""One trained model of intensive care stays in use: hour by hour, event by event, and what a prediction is made of."""

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
    """An observation of the stay that is explained, and by how much it moves the log odds of death."""

    hour: float
    channel: str
    value: float
    amount: float


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The log odds of a stay: as they are, with ordinary values at the same stamps, and the mean of all test stays."""

    stay: int
    log_odds: float
    ordinary: float
    usual: float
    observations: list[Observation]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Stays event by event: seconds to take all events, seconds to predict, and how far from offline at most."""

    stays: int
    events: int
    observations: int
    predictions: int
    event_seconds: float
    prediction_seconds: float
    difference: float


class Hours(msgspec.Struct, frozen=True, kw_only=True):
    """How good predictions are with what is known after each hour."""

    auroc: list[float]
    auprc: list[float]


def known_by(
    model: Sum, embedding: Embedding, given: Given, which: Int[np.ndarray, "series"], hour: int
) -> Float[np.ndarray, "series"]:
    """Log odds of death of these stays with what was known by this hour, by the model offline.

    What is observed at a full hour is not known by then, but at the end of the stay.
    """
    assert model.spec is not None
    streams = given.stays.streams[which]
    cuts = model.spec.partition.cuts(streams[:1]).points
    logsigs = embedding(streams, Partition.at([*cuts[cuts < hour], float(hour)], partial=True))
    return odds_of(np.asarray(predict(model, Inputs.of(logsigs, _static(model, given, which)))))


def hour_by_hour(
    model: Sum, embedding: Embedding, given: Given, tell: Tell
) -> tuple[Hours, Float[np.ndarray, "hour series"]]:
    """Of all test stays, and the log odds themselves."""
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
    """Give each event of these stays to a predictor when it comes, ask for all after every hour, and compare."""
    streams, static = given.stays.streams[which], _static(model, given, which)
    predictors = Predictors(model)
    for number in range(len(which)):
        predictors.add(number, None if static is None else static[number])
    rows = _events(streams)
    predictors.predict(at=0.0)  # so that compiling is not counted
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
    """What the log odds of one stay are made of."""
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
    """All events of all series as they come in."""
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
