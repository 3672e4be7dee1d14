"""Networks whose flows may grow a state without bounds, and a feed with one series that makes them."""

import functools

import numpy as np

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, LogSLiCE
from logcde.estimators.training import Regularisation
from logcde.streams import Partition, Streams

NETWORK = LogSLiCE(
    stable=False,
    counts=True,
    hidden=8,
    widths=(8,),
    steps=1,
    init_scale=2.0,
    partition=Partition.every(1.0),
    depth=1,
    validation=0.0,
    folds=2,
    regularisation=Regularisation((), 0.0, 0.0, 0.0),
)
LOST = "p1"


def series_of(lengths: list[int], seed: int = 0) -> Streams:
    rng = np.random.default_rng(seed)
    times = [np.arange(float(one)) for one in lengths]
    values = [rng.normal(size=(one, 1)) for one in lengths]
    ids = [f"p{number}" for number in range(len(lengths))]
    return Streams.from_arrays(times, values, ["a"], [float(one) for one in lengths], ids=ids)


def feed() -> Streams:
    """Three series, of which the second one is forty times as long as those of training."""
    return series_of([8, 320, 8], seed=1)


@functools.cache
def classifier() -> LogCDEClassifier:
    return LogCDEClassifier(learner=NETWORK, random_state=0).fit(series_of([8] * 12), ["ill", "well"] * 6)


@functools.cache
def regressor() -> LogCDERegressor:
    return LogCDERegressor(learner=NETWORK, random_state=0).fit(series_of([8] * 12), np.arange(12.0))


@functools.cache
def forecaster() -> LogCDEForecaster:
    return LogCDEForecaster(learner=NETWORK, random_state=0).fit(series_of([8] * 12))
