"""Classify patients by two vitals that are observed at different times, then predict event by event.

python -m examples.quickstart
"""

import tempfile

import jax
import numpy as np

import logcde as lc


def main(patients: int = 200, epochs: int = 20) -> np.ndarray:
    """Train, save, load and predict. Returns the predicted probabilities of a fall and of a rise."""
    # A pulse is observed 30 times and a lactate 5 times a day, at times of their own; both rise, or both fall.
    rng = np.random.default_rng(0)
    rising = rng.random(patients) < 0.5
    events = [
        (patient, hour, {vital: (0.2 if rising[patient] else -0.2) * hour + rng.normal()})
        for patient in range(patients)
        for vital, count in (("pulse", 30), ("lactate", 5))
        for hour in rng.uniform(0, 24, count)
    ]
    streams = lc.Streams.from_events(events, horizon=24.0, sort=True)
    print(streams)

    # One log-signature for each interval of four hours, whenever observations came.
    logsigs = lc.Embedding(depth=2)(streams, lc.Partition.every(4.0))
    scaling = lc.IncrementRMSScaling()
    model = lc.log_slice(logsigs.basis, hidden=32, outputs=2, scaling=scaling, key=jax.random.key(0))
    loss, duration = lc.losses.cross_entropy, lc.Epochs(epochs)
    result = lc.fit(model, logsigs, rising.astype(int), loss=loss, duration=duration, key=jax.random.key(1))

    # A saved model knows its embedding, so that it predicts from events.
    with tempfile.TemporaryDirectory() as folder:
        result.model.save(f"{folder}/model")
        predictor = lc.Predictor(lc.load(f"{folder}/model"))
    predictor.observe(0.5, {"pulse": 0.2})
    predictor.observe(7.5, {"lactate": 1.7})
    fall, rise = probabilities = np.asarray(jax.nn.softmax(predictor.predict(at=8.0)))
    print(f"After two observations: falling {fall:.0%}, rising {rise:.0%}.")
    return probabilities


if __name__ == "__main__":
    main()
