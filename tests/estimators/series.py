"""Series of one shape for all tests, so that little has to be compiled."""

import numpy as np

import logcde as lc

COUNT, STEPS = 24, 8
QUICK = {"max_iter": 20, "random_state": 0}


def values(seed: int = 0, missing: float = 0.0) -> np.ndarray:
    """Two channels that wander."""
    rng = np.random.default_rng(seed)
    array = np.cumsum(rng.normal(size=(COUNT, STEPS, 2)), axis=1)
    array[:, 1:-1][rng.uniform(size=(COUNT, STEPS - 2, 2)) < missing] = np.nan
    return array


def labels(seed: int = 0) -> np.ndarray:
    """Where the first channel ends."""
    return np.where(values(seed)[:, -1, 0] > 0, "up", "down")


def streams(seed: int = 0, missing: float = 0.0) -> lc.Streams:
    """The same as streams with names, which end one step after their last observation."""
    return lc.Streams.from_dense(
        values(seed, missing), channels=["a", "b"], ids=[f"s{n}" for n in range(COUNT)], horizon=float(STEPS)
    )
