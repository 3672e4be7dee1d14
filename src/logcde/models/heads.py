"""Heads: from a row of features to outputs, on the host. Those of classifiers are logits.

They hold plain arrays, so that trained trees and linear models are saved without pickle and served without
scikit-learn. `logcde.estimators` trains them.
"""

import abc
import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int32, Int64

from logcde.errors import ModelError
from logcde.kernels.threads import spread
from logcde.kernels.trees import add_trees

LEAST = 1e-12
"""Probabilities are at least this before their logarithm is taken."""


class AbstractHead(abc.ABC):
    """Maps rows of features to outputs."""

    @abc.abstractmethod
    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """The outputs of each row; each depends on its own row only."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of trained numbers."""


@dataclasses.dataclass(frozen=True, eq=False)
class LinearHead(AbstractHead):
    """Standardised features times weights, limited to the range that training rows had.

    Args:
        centre: Mean of each feature.
        spread: Standard deviation of each feature.
        weight: Weights of the standardised features.
        bias: Added to the outputs.
        limit: Standardised features are clipped to [-limit, limit].

    >>> head = LinearHead(np.zeros(2), np.ones(2), np.array([[1.0], [2.0]]), np.array([0.5]))
    >>> head(np.array([[1.0, 1.0]], np.float32))
    array([[3.5]])
    """

    centre: Float64[np.ndarray, "feature"]
    spread: Float64[np.ndarray, "feature"]
    weight: Float64[np.ndarray, "feature output"]
    bias: Float64[np.ndarray, "output"]
    limit: float = 8.0

    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """One product of matrices for each row, so that other rows do not change its rounding."""
        scaled = np.clip((np.ascontiguousarray(rows) - self.centre) / self.spread, -self.limit, self.limit)
        return np.einsum("sf,fo->so", scaled, self.weight) + self.bias

    @property
    def size(self) -> int:
        """Weights and biases."""
        return self.weight.size + self.bias.size


@dataclasses.dataclass(frozen=True, eq=False)
class TreesHead(AbstractHead):
    """A sum of decision trees, whose nodes are end to end in arrays.

    Args:
        roots: The root of each tree.
        output: The first output to which each tree adds.
        feature: The feature of each node, -1 for leaves.
        threshold: Rows whose feature is at most this go left.
        left: Left child of each node.
        right: Right child of each node.
        missing_left: Whether rows without this feature (NaN) go left.
        value: What a leaf adds to its outputs.
        bias: Sum of no trees.
    """

    roots: Int32[np.ndarray, "tree"]
    output: Int32[np.ndarray, "tree"]
    feature: Int32[np.ndarray, "node"]
    threshold: Float64[np.ndarray, "node"]
    left: Int32[np.ndarray, "node"]
    right: Int32[np.ndarray, "node"]
    missing_left: Bool[np.ndarray, "node"]
    value: Float64[np.ndarray, "node width"]
    bias: Float64[np.ndarray, "output"]

    def __post_init__(self) -> None:
        if not (self._same_lengths() and self._sound_paths()):
            raise ModelError("The arrays of these decision trees do not fit each other.", "Train or save them again.")

    def _same_lengths(self) -> bool:
        nodes = (self.feature, self.threshold, self.left, self.right, self.missing_left, self.value)
        return len({len(array) for array in nodes}) == 1 and len(self.roots) == len(self.output)

    def _sound_paths(self) -> bool:
        """Whether every path ends in a leaf: children come after their parents."""
        nodes, inner = len(self.feature), np.flatnonzero(self.feature >= 0)
        children, outputs = np.stack([self.left[inner], self.right[inner]]), self.output + self.value.shape[1]
        return bool(
            ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.output >= 0) & (outputs <= len(self.bias))).all()
            and ((children > inner) & (children < nodes)).all()
        )

    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """The sum of the leaves that each row reaches."""
        return self.staged(rows, [len(self.roots)])[0]

    def staged(
        self, rows: Float32[np.ndarray, "series feature"], counts: Sequence[int] | Int64[np.ndarray, "count"]
    ) -> Float64[np.ndarray, "count series output"]:
        """The sums of the first trees only, for increasing numbers of them."""
        if rows.shape[1] <= self.feature.max(initial=-1):
            raise ModelError(f"There are {rows.shape[1]} features, but a tree reads feature {self.feature.max()}.")
        out = np.tile(self.bias, (len(counts), len(rows), 1))
        arrays = self.feature, self.threshold, self.left, self.right, self.missing_left, self.value
        for number, (first, last) in enumerate(itertools.pairwise([0, *counts])):
            if number:
                out[number] = out[number - 1]
            work = np.full(len(rows), 4 * (last - first))
            spread(add_trees, work, rows, self.roots[first:last], self.output[first:last], *arrays, out[number])
        return out

    @property
    def size(self) -> int:
        """Thresholds and values of leaves."""
        return int((self.feature >= 0).sum() + self.value[self.feature < 0].size)


@dataclasses.dataclass(frozen=True, eq=False)
class ProbabilityHead(AbstractHead):
    """Logits of a head that gives probabilities: mixed with the class frequencies, and sharpened or flattened.

    Args:
        head: Gives the probability of each class.
        prior: Frequencies of the classes.
        share: Weight of the frequencies.
        power: Power of the mixed probabilities, which are then made to add up to one.
    """

    head: AbstractHead
    prior: Float64[np.ndarray, "class"]
    share: float
    power: float

    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """The logarithm of the probabilities, up to a number for each row."""
        return sharpen(self.head(rows), self.prior, self.share, self.power)

    @property
    def size(self) -> int:
        """Numbers of the inner head."""
        return self.head.size


def sharpen(
    probabilities: Float[np.ndarray, "series class"], prior: Float[np.ndarray, "class"], share: float, power: float
) -> Float64[np.ndarray, "series class"]:
    """Logits of probabilities that are mixed with a prior and raised to a power.

    >>> sharpen(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), share=0.5, power=1.0).round(3)
    array([[-0.288, -1.386]])
    """
    return power * np.log(np.maximum((1 - share) * probabilities + share * prior, LEAST))


@dataclasses.dataclass(frozen=True, eq=False)
class CalibratedHead(AbstractHead):
    """Logits of another head, multiplied by one number: the inverse of a temperature."""

    head: AbstractHead
    factor: float

    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """The scaled logits."""
        return self.head(rows) * self.factor

    @property
    def size(self) -> int:
        """Numbers of the inner head."""
        return self.head.size


@dataclasses.dataclass(frozen=True, eq=False)
class PairHead(AbstractHead):
    """Logits of two classes from the log-odds of the second."""

    head: AbstractHead

    def __call__(self, rows: Float32[np.ndarray, "series feature"]) -> Float64[np.ndarray, "series output"]:
        """Half of the log-odds for the second class, and against the first."""
        return pair_logits(self.head(rows))

    @property
    def size(self) -> int:
        """Numbers of the inner head."""
        return self.head.size


def pair_logits(odds: Float64[np.ndarray, "*series 1"]) -> Float64[np.ndarray, "*series 2"]:
    """Logits of two classes from the log-odds of the second: half for it, half against the first.

    >>> pair_logits(np.array([[2.0]]))
    array([[-1.,  1.]])
    """
    return np.concatenate([-odds / 2, odds / 2], axis=-1)


def log_softmax(logits: Float[np.ndarray, "series class"]) -> Float64[np.ndarray, "series class"]:
    """Logarithms of probabilities.

    >>> np.exp(log_softmax(np.array([[0.0, 0.0]])))
    array([[0.5, 0.5]])
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def mix_logits(
    logits: list[Float64[np.ndarray, "series class"]], weight: Float[np.ndarray, "model"]
) -> Float64[np.ndarray, "series class"]:
    """Logits of the weighted mean of probabilities.

    >>> np.exp(mix_logits([np.array([[0.0, 0.0]]), np.array([[0.0, -99.0]])], np.array([0.5, 0.5]))).round(3)
    array([[0.75, 0.25]])
    """
    mixed = sum(share * np.exp(log_softmax(one)) for share, one in zip(weight, logits, strict=True))
    return np.log(np.maximum(mixed, LEAST))
