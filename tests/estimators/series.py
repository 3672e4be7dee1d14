"""Series of one shape for all tests, so that few programs are compiled."""

import numpy as np

import logcde as lc
from logcde.estimators import LogSLiCE

COUNT, STEPS = 24, 8
QUICK = {"learner": LogSLiCE(steps=20), "random_state": 0}
"""A network that learns little, soon."""


def values(seed: int = 0, missing: float = 0.0) -> np.ndarray:
    """Random walks of two channels."""
    rng = np.random.default_rng(seed)
    array = np.cumsum(rng.normal(size=(COUNT, STEPS, 2)), axis=1)
    array[:, 1:-1][rng.uniform(size=(COUNT, STEPS - 2, 2)) < missing] = np.nan
    return array


def labels(seed: int = 0) -> np.ndarray:
    """Sign of the last value of the first channel."""
    return np.where(values(seed)[:, -1, 0] > 0, "up", "down")


def streams(seed: int = 0, missing: float = 0.0) -> lc.Streams:
    """The same values as streams with ids and channel names; the horizon is one step after the last observation."""
    return lc.Streams.from_dense(
        values(seed, missing), channels=["a", "b"], ids=[f"s{n}" for n in range(COUNT)], horizon=float(STEPS)
    )
