"""The learners that are compared, by name."""

import dataclasses
from types import MappingProxyType

from logcde.estimators.learners import (
    AbstractLearner,
    Blend,
    WindowBoosting,
    WindowRidge,
    WindowTrees,
)
from logcde.features.smoothing import GaussianProcess, Shrinkage

RIDGE, TREES, BOOSTING = WindowRidge(), WindowTrees(), WindowBoosting()
SMOOTHED, LINEAR = WindowRidge(smoother=GaussianProcess()), WindowRidge(units=0)

LARGER = WindowBoosting(leaves=15, fewest=30, share=0.3)

VARIANTS: MappingProxyType[str, AbstractLearner] = MappingProxyType(
    {
        "ridge": RIDGE,
        "smoothed ridge": SMOOTHED,
        "statistics ridge": LINEAR,
        "trees": TREES,
        "boosting": BOOSTING,
        "ridge + trees": Blend((RIDGE, TREES)),
        "ridge + smoothed ridge": Blend((RIDGE, SMOOTHED)),
        "ridge + smoothed ridge + trees": Blend((RIDGE, SMOOTHED, TREES)),
        "ridge + statistics ridge + boosting": Blend((RIDGE, LINEAR, BOOSTING)),
        **{
            f"ridge, shrinkage {weight:g}": dataclasses.replace(RIDGE, smoother=Shrinkage(weight))
            for weight in (0.03, 0.3, 1.0)
        },
        **{f"ridge, {units} units": dataclasses.replace(RIDGE, units=units) for units in (500, 4000)},
        **{f"ridge, {biases} biases": dataclasses.replace(RIDGE, biases=biases) for biases in (1, 5)},
        **{
            f"smoothed ridge, rank {rank}": dataclasses.replace(SMOOTHED, smoother=GaussianProcess(rank=rank))
            for rank in (50, 100)
        },
        **{
            f"smoothed ridge, noise {noise:g}": dataclasses.replace(SMOOTHED, smoother=GaussianProcess(noise=noise))
            for noise in (0.1, 1.0)
        },
        "boosting, larger trees": LARGER,
        "ridge + statistics ridge + boosting, larger trees": Blend((RIDGE, LINEAR, LARGER)),
    }
)
"""Learners by name. The line of a variant whose results are committed is never changed; the defaults may be."""
