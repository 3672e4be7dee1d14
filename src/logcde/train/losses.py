"""Losses and metrics: measures of one prediction against one target, and their weighted mean over many.

Every measure gives a weighted value and the weight of a single prediction. Over a data set, or over a batch that
devices share, the result is the sum of weighted values divided by the sum of weights; padded intervals and padded rows
count in neither. For `mse` this is the objective of `app:sinusoid` in the paper,
sum_{b,k} m_{b,k} |p_{b,k} - y_{b,k}|^2 / (d_out sum_{b,k} m_{b,k}). Losses and metrics differ in their use only.
"""

import abc
from collections.abc import Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from logcde.errors import TrainingError

WeightedValue: TypeAlias = tuple[Float[Array, ""], Float[Array, ""]]
"""Weight times value, and the weight; or the sums of both over many predictions."""


class AbstractMeasure(eqx.Module):
    """Compares one prediction with its target: a number for each output, or a class label.

    Subclasses have no array fields: they are part of the compiled program.

    Attributes:
        name: Key of the measure in `Evaluation.validation`.
        maximise: Whether larger is better.
    """

    name: eqx.AbstractVar[str]
    maximise: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """Weight times value, and the weight, of one prediction."""


class MeanSquaredError(AbstractMeasure):
    """Squared error, averaged over outputs.

    >>> value, weight = mse(jnp.array([1.0, 2.0]), jnp.array([1.0, 4.0]))
    >>> float(value), float(weight)
    (2.0, 1.0)
    """

    name: str = eqx.field(default="mse", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """The squared error with weight 1."""
        _check_values(self, prediction, target)
        return jnp.mean(jnp.square(prediction - target)), jnp.ones((), prediction.dtype)


class CrossEntropy(AbstractMeasure):
    """Negative log-probability of the target class; predictions are logits.

    Args:
        weights: One weight for each class; equal weights by default.
        smoothing: Label smoothing: this share of the target is spread evenly over all classes. The measure is then
            named "smoothed cross-entropy", so that `cross_entropy` can be a metric beside it.

    >>> value, weight = CrossEntropy(weights=(1.0, 3.0))(jnp.array([0.0, 0.0]), jnp.array(1))
    >>> round(float(value), 4), float(weight)
    (2.0794, 3.0)
    >>> value, _ = CrossEntropy(smoothing=0.1)(jnp.array([9.0, 0.0]), jnp.array(0))  # too sure of it
    >>> round(float(value), 2)
    0.45
    """

    weights: tuple[float, ...] | None = eqx.field(static=True)
    smoothing: float = eqx.field(static=True)
    name: str = eqx.field(init=False, static=True)
    maximise: bool = eqx.field(init=False, static=True)

    def __init__(self, weights: Sequence[float] | None = None, smoothing: float = 0.0) -> None:
        if not 0 <= smoothing < 1:
            raise TrainingError(f"smoothing={smoothing} is no share.", "Give at least 0 and less than 1.")
        if weights is not None:
            _check_class_weights(weights)
        self.weights = None if weights is None else tuple(map(float, weights))
        self.smoothing = float(smoothing)
        self.name = "smoothed cross-entropy" if smoothing else "cross-entropy"
        self.maximise = False

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """The cross-entropy with the weight of the target class."""
        _check_label(self, prediction, target)
        weight = jnp.ones((), prediction.dtype)
        if self.weights is not None:
            if len(self.weights) != len(prediction):
                raise TrainingError(
                    f"Cross-entropy has weights for {len(self.weights)} classes, but the model predicts "
                    f"{len(prediction)}.",
                    "Give one weight for each class.",
                )
            weight = jnp.asarray(self.weights, prediction.dtype)[target]
        logs = jax.nn.log_softmax(prediction)
        if not self.smoothing:
            return -weight * logs[target], weight
        return -weight * ((1 - self.smoothing) * logs[target] + self.smoothing * jnp.mean(logs)), weight


class Binary(AbstractMeasure):
    """Binary cross-entropy of each output separately; predictions are logits, targets 0 or 1.

    Args:
        positive: Weight of targets that are 1.
        negative: Weight of targets that are 0.

    >>> value, weight = Binary(positive=3.0)(jnp.array([0.0]), jnp.array([1.0]))
    >>> round(float(value), 4), float(weight)
    (2.0794, 3.0)
    """

    positive: float = eqx.field(default=1.0, static=True)
    negative: float = eqx.field(default=1.0, static=True)
    name: str = eqx.field(default="binary", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """The binary cross-entropy and the weight, both averaged over outputs."""
        _check_values(self, prediction, target)
        ones = self.positive * target
        zeros = self.negative * (1 - target)
        value = ones * jax.nn.softplus(-prediction) + zeros * jax.nn.softplus(prediction)
        return jnp.mean(value), jnp.mean(ones + zeros)


class Accuracy(AbstractMeasure):
    """Share of predictions whose largest output is that of the target class.

    >>> float(accuracy(jnp.array([0.0, 2.0]), jnp.array(1))[0])
    1.0
    """

    name: str = eqx.field(default="accuracy", init=False, static=True)
    maximise: bool = eqx.field(default=True, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """1 if the predicted class is right and 0 if not, with weight 1."""
        _check_label(self, prediction, target)
        right = jnp.argmax(prediction).astype(target.dtype) == target
        return right.astype(prediction.dtype), jnp.ones((), prediction.dtype)


class BinaryAccuracy(AbstractMeasure):
    """Share of outputs with the right sign; predictions are logits, targets 0 or 1.

    >>> float(binary_accuracy(jnp.array([0.3, -0.1]), jnp.array([1.0, 1.0]))[0])
    0.5
    """

    name: str = eqx.field(default="accuracy", init=False, static=True)
    maximise: bool = eqx.field(default=True, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> WeightedValue:
        """The share of outputs that are right, with weight 1."""
        _check_values(self, prediction, target)
        right = (prediction > 0) == (target > 0.5)
        return jnp.mean(right.astype(prediction.dtype)), jnp.ones((), prediction.dtype)


mse = MeanSquaredError()
cross_entropy = CrossEntropy()
binary = Binary()
accuracy = Accuracy()
binary_accuracy = BinaryAccuracy()


def total_over_series(
    measure: AbstractMeasure,
    predictions: Float[Array, "series *interval output"],
    targets: Num[Array | np.ndarray, "series ..."],
    lengths: Int[Array | np.ndarray, "series"],
    counted: Bool[Array, "series"],
    weights: Float[Array | np.ndarray, "series"] | None = None,
) -> WeightedValue:
    """Sums of weighted values and of weights over the counted series and over their intervals without padding.

    `weights` multiply both, for each series.

    >>> predictions = jnp.array([[[1.0], [9.0]], [[3.0], [2.0]]])  # two series, two intervals
    >>> lengths, counted = jnp.array([1, 2]), jnp.array([True, True])
    >>> value, weight = total_over_series(mse, predictions, jnp.zeros((2, 2, 1)), lengths, counted)
    >>> float(value), float(weight)
    (14.0, 3.0)
    """
    each = jax.vmap(measure)
    valid = counted
    if predictions.ndim == 3:
        each = jax.vmap(each)
        valid = counted[:, None] & (jnp.arange(predictions.shape[1], dtype=lengths.dtype) < lengths[:, None])
    value, weight = each(predictions, jnp.asarray(targets))
    if weights is not None:
        factor = jnp.asarray(weights, value.dtype).reshape(-1, *[1] * (value.ndim - 1))
        value, weight = factor * value, factor * weight
    return jnp.sum(jnp.where(valid, value, 0)), jnp.sum(jnp.where(valid, weight, 0))


def _check_class_weights(weights: Sequence[float]) -> None:
    wrong = [weight for weight in weights if not 0 <= weight < float("inf")]
    if wrong or not any(weights):
        found = f"A class has the weight {wrong[0]}." if wrong else "No class has a weight above 0."
        raise TrainingError(found, "Give each class a finite weight of at least 0, and one of them more.")


def _check_values(measure: AbstractMeasure, prediction: Array, target: Array) -> None:
    if target.shape != prediction.shape:
        raise TrainingError(
            f"{measure.name} compares a number with each of the {len(prediction)} outputs, but the targets are class "
            "labels.",
            "Use lc.losses.cross_entropy or lc.losses.accuracy, or one column of targets for each output.",
        )


def _check_label(measure: AbstractMeasure, prediction: Array, target: Array) -> None:
    if target.ndim:
        raise TrainingError(
            f"{measure.name} needs one class label for each prediction, but the targets have {len(target)} numbers for "
            "each.",
            "Give integer labels to a model with one output for each class, or use lc.losses.binary and "
            "lc.losses.binary_accuracy.",
        )
