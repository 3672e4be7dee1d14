"""Serve a ward: a prediction for every patient while events come in, and a restart that loses nothing.

python -m examples.online_serving
"""

import json

import jax
import numpy as np

import logcde as lc
from logcde.models import AbstractOnlineModel

VITALS = ("pulse", "temp")


def trained(patients: int, epochs: int) -> tuple[AbstractOnlineModel, lc.Streams]:
    """A model of the last pulse of a day, and the streams that it was trained on."""
    rng = np.random.default_rng(0)
    events = [
        (f"bed {bed}", hour, {vital: float(rng.normal())})
        for bed in range(patients)
        for vital, count in zip(VITALS, (20, 4), strict=True)
        for hour in rng.uniform(0, 24, count)
    ]
    streams = lc.Streams.from_events(events, horizon=24.0, sort=True)
    last = [one.value[one.channel == one.schema.channels.index("pulse")][-1] for one in streams]
    logsigs = lc.Embedding(depth=2)(streams, lc.Partition.every(6.0))
    model = lc.log_slice(logsigs.basis, hidden=16, outputs=1, key=jax.random.key(0))
    result = lc.fit(model, logsigs, np.array(last), duration=lc.Epochs(epochs), key=jax.random.key(1))
    assert isinstance(result.model, AbstractOnlineModel)
    return result.model, streams


def main(patients: int = 64, epochs: int = 10, beds: int = 8) -> float:
    """Replay some beds event by event. Returns the largest difference between online and offline predictions."""
    model, streams = trained(patients, epochs)
    chosen = streams[:beds]

    # Events of all beds in the order in which they come in.
    channels = chosen.schema.channels
    events = sorted(
        (float(time), str(bed), channels[channel], float(value))
        for bed, one in zip(chosen.ids, chosen, strict=True)
        for time, channel, value in zip(one.times, one.channel, one.value, strict=True)
    )
    ward = lc.Predictors(model)
    for bed in chosen.ids:
        ward.add(str(bed))
    for time, bed, vital, value in events[: len(events) // 2]:
        ward.observe(bed, time, {vital: value})

    # The state of a predictor is plain numbers: after a restart it continues where it was.
    bed = str(chosen.ids[0])
    single = lc.Predictor(model)
    mine = [event for event in events if event[1] == bed]
    for time, _, vital, value in mine[:5]:
        single.observe(time, {vital: value})
    kept = json.dumps(single.state())
    single = lc.Predictor(model).restore(json.loads(kept))
    for time, _, vital, value in mine[5:]:
        single.observe(time, {vital: value})

    for time, bed, vital, value in events[len(events) // 2 :]:
        ward.observe(bed, time, {vital: value})
    online = np.asarray(ward.predict(at=24.0))
    offline = np.asarray(lc.predict(model, lc.Inputs.of(lc.Embedding(depth=2)(chosen, lc.Partition.every(6.0)))))
    difference = max(float(np.abs(online - offline).max()), float(np.abs(single.predict(at=24.0) - offline[0]).max()))
    print(f"{len(events)} events of {beds} beds; online and offline predictions differ by {difference:.0e} at most.")
    return difference


if __name__ == "__main__":
    main()
