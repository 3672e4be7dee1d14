"""How much of a last value is left, by its age."""

import numpy as np
from jaxtyping import Float, Float64, Int64

from logcde.estimators.learners.questions import AbstractForecastLoss
from logcde.models.last_value import ShrunkLast

SHARES = np.linspace(0.0, 1.0, 21)
"""Candidates of the share of a difference that is left, and of the weights of heads."""
AGES, FEWEST, PRIOR = 8, 50, 20.0
"""Most ages with a share of their own, fewest questions for each, and how many questions all ages count for in each."""


def groups_of(numbers: Float[np.ndarray, "_"], most: int) -> tuple[Int64[np.ndarray, "_"], Int64[np.ndarray, "_"]]:
    """The order of numbers, and where groups of similar ones begin in it; equal numbers are in one group.

    >>> groups_of(np.repeat([3.0, 1.0], FEWEST), most=4)[1].tolist()
    [0, 50]
    """
    order = np.argsort(numbers, kind="stable")
    count = int(np.clip(len(order) // FEWEST, 1, most))
    edges = numbers[order][np.arange(count) * len(order) // count]
    return order, np.unique(np.searchsorted(numbers[order], edges))


def fit_shrunk(
    last: Float64[np.ndarray, "question"],
    age: Float64[np.ndarray, "question"],
    values: Float64[np.ndarray, "question"],
    loss: AbstractForecastLoss,
) -> ShrunkLast:
    """The shares of the last value with the least loss, each for questions with a similar age.

    >>> from logcde.estimators import MeanLoss
    >>> values = np.random.default_rng(0).normal(size=400)
    >>> fit_shrunk(values, np.ones(400), values, MeanLoss()).share
    array([1.])
    """
    centre = loss.centre(values)
    known = np.isfinite(last)
    if not known.any():
        return ShrunkLast(centre, np.zeros(1), np.zeros(1))
    off, wanted, age = last[known] - centre, values[known] - centre, age[known]
    losses = np.stack([loss(wanted - share * off) for share in SHARES], axis=1)
    order, parts = groups_of(age, AGES)
    sums = np.add.reduceat(losses[order], parts, axis=0) + PRIOR * losses.mean(axis=0)
    knots = np.array([np.median(part) for part in np.split(age[order], parts[1:])])
    return ShrunkLast(centre, knots, SHARES[np.argmin(sums, axis=1)])
