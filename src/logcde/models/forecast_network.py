"""`ForecastNetwork`: one perceptron that forecasts all targets, for what a target has in common with the others."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Float64, Int64

from logcde.kernels import perceptron as kernels
from logcde.kernels.threads import spread
from logcde.models.last_value import ShrunkLast, last_and_age

LIMIT = 5.0
"""Standardised features are clipped to [-LIMIT, LIMIT]."""
WORK = 500
"""Rough cost of a row, in events, by which threads share the work."""


@dataclasses.dataclass(frozen=True, eq=False)
class Standardised:
    """Features of mean 0 and spread 1, 0 where they are missing, and behind them marks of which of them are there.

    Args:
        centre: Mean of each feature.
        spread: Standard deviation of each feature, infinite for those that are not read.
        marked: Features whose presence is marked.

    >>> rows = np.array([[1.0, np.nan], [3.0, 4.0]], np.float32)
    >>> Standardised.of(rows, np.array([1]))(rows)
    array([[-1.,  0.,  0.],
           [ 1.,  0.,  1.]], dtype=float32)
    """

    centre: Float64[np.ndarray, "feature"]
    spread: Float64[np.ndarray, "feature"]
    marked: Int64[np.ndarray, "_"]

    @staticmethod
    def of(rows: Float32[np.ndarray, "row feature"], marked: Int64[np.ndarray, "_"]) -> "Standardised":
        """As these rows are; features that do not vary in them are not read."""
        known = np.isfinite(rows)
        count = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, rows, 0.0).sum(axis=0, dtype=np.float64) / count
        spread = np.sqrt(np.square(np.where(known, rows - centre, 0.0)).sum(axis=0) / count)
        return Standardised(centre, np.where(spread > 1e-6 * np.abs(centre), spread, np.inf), marked)

    def __call__(self, rows: Float32[np.ndarray, "row feature"]) -> Float32[np.ndarray, "row input"]:
        """Clipped features, then the marks."""
        scaled = np.nan_to_num((rows - self.centre) / self.spread, nan=0.0)
        return np.concatenate(
            [np.clip(scaled, -LIMIT, LIMIT), np.isfinite(rows[:, self.marked])], axis=1, dtype=np.float32
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ForecastNetwork:
    """A perceptron from features of all channels and of one question to the change against the shrunk last value.

    Its layers belong to all targets. Each target has factors and shifts of its own for their units, and its own scales.

    Args:
        common: How features of all channels are read.
        own: For each target, how features of its questions are read.
        base: For each target, the shrunk last value.
        unit: For each target, the size of a change.
        first: Weights of the first layer, for what is read of all channels.
        question: Weights of the first layer, for what is read of a question.
        scale: For each target, factors of the first layer's units.
        shift: For each target, what is added to these.
        second: Weights of the second layer, whose outputs are added to those of the first.
        second_scale: For each target, factors of its units.
        second_shift: For each target, what is added to these.
        third: Weights of the third layer.
        bias: What is added to its units.
        last: For each target, the weights of these units in the answer.
    """

    common: Standardised
    own: tuple[Standardised, ...]
    base: tuple[ShrunkLast, ...]
    unit: Float64[np.ndarray, "target"]
    first: Float32[np.ndarray, "input unit"]
    question: Float32[np.ndarray, "given unit"]
    scale: Float32[np.ndarray, "target unit"]
    shift: Float32[np.ndarray, "target unit"]
    second: Float32[np.ndarray, "unit unit"]
    second_scale: Float32[np.ndarray, "target unit"]
    second_shift: Float32[np.ndarray, "target unit"]
    third: Float32[np.ndarray, "unit outer"]
    bias: Float32[np.ndarray, "outer"]
    last: Float32[np.ndarray, "target outer"]

    def encode(self, brief: Float32[np.ndarray, "prefix common"]) -> Float32[np.ndarray, "prefix unit"]:
        """The part of the first layer that all questions about a prefix share."""
        rows = self.common(brief)
        out = np.empty((len(rows), self.first.shape[1]), np.float32)
        spread(kernels.encode, np.full(len(rows), WORK), rows, self.first, out)
        return out

    def values(
        self,
        encoded: Float32[np.ndarray, "prefix unit"],
        place: Int64[np.ndarray, "question"],
        rows: Float32[np.ndarray, "question own"],
        target: int,
        channel: int | None,
    ) -> Float64[np.ndarray, "question"]:
        """Forecasts of one target.

        Args:
            encoded: What `encode` returned.
            place: The prefix of each question.
            rows: The features of each question.
            target: The number of the target.
            channel: The channel that it is a value of; None if it is none of them.
        """
        change = np.empty(len(rows))
        read = self.own[target](with_all(rows, len(self.own[target].centre)))
        mine = self.scale[target], self.shift[target], self.second, self.second_scale[target], self.second_shift[target]
        arrays = encoded, place, read, self.question, *mine, self.third, self.bias, self.last[target], change
        spread(kernels.answer, np.full(len(rows), WORK), *arrays)
        return self.base[target](*last_and_age(rows, channel)) + self.unit[target] * change

    @property
    def size(self) -> int:
        """Weights, factors and shifts."""
        layers = self.first, self.question, self.second, self.third, self.bias, self.last
        films = self.scale, self.shift, self.second_scale, self.second_shift
        return sum(array.size for array in (*layers, *films))


def with_all(rows: Float32[np.ndarray, "question feature"], count: int) -> Float32[np.ndarray, "question own"]:
    """Rows with as many features as those of a target that is a value of a channel; those that it lacks are missing."""
    lacking = count - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, lacking)), constant_values=np.nan) if lacking else rows


def mean_of_networks(values: Sequence[Float64[np.ndarray, "question"]]) -> Float64[np.ndarray, "question"]:
    """The mean of several forecasts, which does not depend on other questions."""
    total = values[0]
    for one in values[1:]:
        total = total + one
    return total / len(values)
