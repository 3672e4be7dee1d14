"""A feed that is denser or wilder than those of training degrades predictions gracefully."""

import functools
from contextlib import nullcontext

import numpy as np
import pytest

from logcde.errors import OutOfRangeWarning
from logcde.estimators import DeepSLiCE, LogCDEClassifier, LogSLiCE
from logcde.models import IncrementRMSScaling, SoftLimit
from logcde.streams import Streams

CLASSES, EVENTS = 3, 20
LEARNERS = {
    "default": None,
    "deep": DeepSLiCE(hidden=16, layers=2, steps=150, rate=1e-2),
    "slice": LogSLiCE(hidden=16, widths=(16,), steps=150),
}


def labels(count: int) -> np.ndarray:
    return np.arange(count) % CLASSES


def waves(count: int, seed: int, density: float = 1.0, wildness: float = 1.0) -> Streams:
    """Noisy waves whose frequency is that of their class; two channels with observation times of their own."""
    rng = np.random.default_rng(seed)
    events = []
    for series, of in enumerate(labels(count)):
        phase = rng.uniform(0, 2 * np.pi)
        for channel, shift in (("a", 0.0), ("b", 1.0)):
            times = rng.uniform(0, 10, round(density * EVENTS))
            values = np.sin(0.6 * (1 + of) * times + phase + shift) + 0.3 * rng.normal(size=len(times))
            events += [(series, time, {channel: wildness * value}) for time, value in zip(times, values, strict=True)]
    return Streams.from_events(events, channels=["a", "b"], horizon=10.0, sort=True)


@functools.cache
def fitted(learner: str) -> LogCDEClassifier:
    return LogCDEClassifier(learner=LEARNERS[learner], random_state=0).fit(waves(90, 0), labels(90))


def measured(learner: str, **feed: float) -> tuple[float, float]:
    """Accuracy and log loss. A feed that is not that of training is warned of."""
    expected = pytest.warns(OutOfRangeWarning, match="^1[45]. of 150 series lie far") if feed else nullcontext()
    with expected:
        probabilities = fitted(learner).predict_proba(waves(150, 1, **feed))
    assert np.isfinite(probabilities).all()
    assert (probabilities > 0).all()
    own = probabilities[np.arange(150), labels(150)]
    return float((probabilities.argmax(axis=1) == labels(150)).mean()), float(-np.log(own).mean())


@pytest.mark.parametrize("learner", LEARNERS)
def test_five_times_the_observations(learner):
    accuracy, _ = measured(learner)
    assert accuracy > 0.75
    dense, loss = measured(learner, density=5.0)
    assert dense >= accuracy - 0.05
    assert loss < np.log(CLASSES)


@pytest.mark.parametrize("learner", LEARNERS)
def test_values_ten_times_wilder(learner):
    assert measured(learner, wildness=10.0)[1] < np.log(CLASSES)
    assert measured(learner, wildness=10.0, density=5.0)[1] < np.log(CLASSES)
    measured(learner, wildness=1e6)


@pytest.mark.parametrize("stable", [True, False])
def test_only_networks_with_bounded_states_limit_their_inputs(stable):
    network = LogSLiCE(hidden=8, widths=(8,), steps=2, stable=stable)
    scaling = LogCDEClassifier(learner=network, random_state=0).fit(waves(30, 0), labels(30)).model_.sequence.scaling
    assert isinstance(scaling, SoftLimit if stable else IncrementRMSScaling)
