"""Losses and metrics: one prediction against one target, and how many of them become one number.

Every measure gives a value and a weight for a single prediction; over a data set, or over a batch that is spread over
devices, the result is the sum of values divided by the sum of weights. Intervals beyond a series' own and series that
only fill a batch count in neither. For `mse` this is the objective of `app:sinusoid` in the paper,
sum_{b,k} m_{b,k} |p_{b,k} - y_{b,k}|^2 / (d_out sum_{b,k} m_{b,k}). A loss and a metric differ in their use only.
"""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from logcde.errors import TrainingError

Share: TypeAlias = tuple[Float[Array, ""], Float[Array, ""]]
"""A value, with its weight in it, and the weight."""


class AbstractMeasure(eqx.Module):
    """Compares one prediction with its target: a number for each output, or one whole number for the right class.

    A class of your own has no arrays in it. `maximise` says which of two results is the better one.
    """

    name: eqx.AbstractVar[str]
    maximise: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """The value and its weight."""


class MeanSquaredError(AbstractMeasure):
    """The squared error, mean over outputs.

    >>> value, weight = mse(jnp.array([1.0, 2.0]), jnp.array([1.0, 4.0]))
    >>> float(value), float(weight)
    (2.0, 1.0)
    """

    name: str = eqx.field(default="mse", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """The mean over outputs, with weight 1."""
        _check_values(self, prediction, target)
        return jnp.mean(jnp.square(prediction - target)), jnp.ones((), prediction.dtype)


class CrossEntropy(AbstractMeasure):
    """Minus the log-probability of the right class; predictions are logits. `weights` has one number for each class.

    >>> value, weight = CrossEntropy(weights=(1.0, 3.0))(jnp.array([0.0, 0.0]), jnp.array(1))
    >>> round(float(value), 4), float(weight)
    (2.0794, 3.0)
    """

    weights: tuple[float, ...] | None = eqx.field(default=None, static=True)
    name: str = eqx.field(default="cross-entropy", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """With the weight of the right class."""
        _check_label(self, prediction, target)
        weight = jnp.ones((), prediction.dtype)
        if self.weights is not None:
            if len(self.weights) != len(prediction):
                raise TrainingError(
                    f"Cross-entropy has weights for {len(self.weights)} classes, but the model predicts "
                    f"{len(prediction)}. Give one weight for each class."
                )
            weight = jnp.asarray(self.weights, prediction.dtype)[target]
        return -weight * jax.nn.log_softmax(prediction)[target], weight


class Binary(AbstractMeasure):
    """Cross-entropy of yes or no, for each output by itself; predictions are logits, targets 0 or 1.

    Targets that are 1 weigh `positive`, those that are 0 weigh `negative`.

    >>> value, weight = Binary(positive=3.0)(jnp.array([0.0]), jnp.array([1.0]))
    >>> round(float(value), 4), float(weight)
    (2.0794, 3.0)
    """

    positive: float = eqx.field(default=1.0, static=True)
    negative: float = eqx.field(default=1.0, static=True)
    name: str = eqx.field(default="binary", init=False, static=True)
    maximise: bool = eqx.field(default=False, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """The mean over outputs."""
        _check_values(self, prediction, target)
        for_yes = self.positive * target
        for_no = self.negative * (1 - target)
        value = for_yes * jax.nn.softplus(-prediction) + for_no * jax.nn.softplus(prediction)
        return jnp.mean(value), jnp.mean(for_yes + for_no)


class Accuracy(AbstractMeasure):
    """How often the largest output is that of the right class.

    >>> float(accuracy(jnp.array([0.0, 2.0]), jnp.array(1))[0])
    1.0
    """

    name: str = eqx.field(default="accuracy", init=False, static=True)
    maximise: bool = eqx.field(default=True, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """1 if it is right, 0 if not."""
        _check_label(self, prediction, target)
        right = jnp.argmax(prediction).astype(target.dtype) == target
        return right.astype(prediction.dtype), jnp.ones((), prediction.dtype)


class BinaryAccuracy(AbstractMeasure):
    """How often an output is on the right side of 0, for targets that are 0 or 1.

    >>> float(binary_accuracy(jnp.array([0.3, -0.1]), jnp.array([1.0, 1.0]))[0])
    0.5
    """

    name: str = eqx.field(default="accuracy", init=False, static=True)
    maximise: bool = eqx.field(default=True, init=False, static=True)

    def __call__(self, prediction: Float[Array, "output"], target: Num[Array, "*output"]) -> Share:
        """The share of outputs that are right."""
        _check_values(self, prediction, target)
        right = (prediction > 0) == (target > 0.5)
        return jnp.mean(right.astype(prediction.dtype)), jnp.ones((), prediction.dtype)


mse = MeanSquaredError()
cross_entropy = CrossEntropy()
binary = Binary()
accuracy = Accuracy()
binary_accuracy = BinaryAccuracy()


def totals(
    measure: AbstractMeasure,
    predictions: Float[Array, "series *interval output"],
    targets: Num[Array | np.ndarray, "series ..."],
    lengths: Int[Array | np.ndarray, "series"],
    counted: Bool[Array, "series"],
) -> Share:
    """The sums of values and of weights over the series that are counted, and over their own intervals.

    >>> predictions = jnp.array([[[1.0], [9.0]], [[3.0], [2.0]]])  # two series, two intervals
    >>> value, weight = totals(mse, predictions, jnp.zeros((2, 2, 1)), jnp.array([1, 2]), jnp.array([True, True]))
    >>> float(value), float(weight)
    (14.0, 3.0)
    """
    each = jax.vmap(measure)
    valid = counted
    if predictions.ndim == 3:
        each = jax.vmap(each)
        valid = counted[:, None] & (jnp.arange(predictions.shape[1], dtype=lengths.dtype) < lengths[:, None])
    value, weight = each(predictions, jnp.asarray(targets))
    return jnp.sum(jnp.where(valid, value, 0)), jnp.sum(jnp.where(valid, weight, 0))


def _check_values(measure: AbstractMeasure, prediction: Array, target: Array) -> None:
    if target.shape != prediction.shape:
        raise TrainingError(
            f"{measure.name} compares a number with each of the {len(prediction)} outputs, but the targets are class "
            "labels. Use lc.losses.cross_entropy or lc.losses.accuracy, or one column of targets for each output."
        )


def _check_label(measure: AbstractMeasure, prediction: Array, target: Array) -> None:
    if target.ndim:
        raise TrainingError(
            f"{measure.name} needs one class label, a whole number, for each prediction, but the targets have "
            f"{len(target)} numbers for each. Give labels to a model with one output for each class, or use "
            "lc.losses.binary and lc.losses.binary_accuracy."
        )
