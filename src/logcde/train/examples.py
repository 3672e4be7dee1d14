"""Examples to learn from: the inputs of many series and a target for each, checked and in one dtype."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int, Num

from logcde.embedding import LogSignatures
from logcde.errors import TrainingError
from logcde.models import AbstractModel, Inputs
from logcde.models.model import dtype_of

Data: TypeAlias = LogSignatures | Inputs
Targets: TypeAlias = Array | np.ndarray | Sequence
Validation: TypeAlias = float | int | np.ndarray | Sequence
"""A fraction, positions or a mask, or a pair of data and targets."""


class Examples(eqx.Module):
    """Series and their targets, one for each interval if `each`. Targets of padded intervals are zero.

    All arrays are NumPy's, until they are put on devices as buckets.
    """

    inputs: Inputs
    targets: Num[Array | np.ndarray, "series ..."]
    each: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, series: np.ndarray) -> "Examples":
        """Some of them, by position."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    @property
    def predicted(self) -> Int[Array | np.ndarray, "series"]:
        """How many intervals of each series have a prediction, if each one has."""
        return self.inputs.length if self.inputs.queries is None else self.inputs.queries


def examples_of(model: AbstractModel, data: Data, targets: Targets, static: Any = None) -> Examples:
    """What `fit` was given, in the dtype of the model and in the form that its predictions have.

    >>> from logcde import Basis, LogSLiCE
    >>> basis = Basis.of_width(2, 1)
    >>> model = LogSLiCE(basis, hidden=4, block=1, outputs=1, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((2, 3, 2)), np.array([3, 2]), basis)
    >>> examples_of(model, logsigs, [0.5, 1.0]).targets.shape
    (2, 1)
    """
    dtype = dtype_of(model)
    if isinstance(data, Inputs):
        if static is not None:
            raise TrainingError(
                "Inputs have their static features in them. Give either Inputs or static=..., not both."
            )
        inputs = jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, data)
    else:
        inputs = Inputs.of(data, None if static is None else np.asarray(static, dtype), dtype)
    if not len(inputs):
        raise TrainingError("There are no series to learn from. Give at least one.")
    shape = eqx.filter_eval_shape(model, inputs[0]).shape
    checked = _targets_of(np.asarray(targets), np.asarray(inputs.outputs), shape, dtype)
    return Examples(jax.tree.map(np.asarray, inputs), checked, len(shape) == 2)


def split(examples: Examples, validation: Validation, rng: np.random.Generator) -> np.ndarray:
    """The positions of series that are held out: a fraction of them, drawn at random, or those that are given."""
    count = len(examples)
    if isinstance(validation, float | int):
        held_out = round(count * validation)
        if not (0 < validation < 1 and 0 < held_out < count):
            raise TrainingError(
                f"validation={validation} of {count} series leaves {count - held_out} for training and {held_out} for "
                "validation. Give a fraction that leaves some for both, the positions of series, or None."
            )
        return np.sort(rng.permutation(count)[:held_out])
    positions = np.asarray(validation)
    chosen = np.flatnonzero(positions) if positions.dtype == bool and len(positions) == count else np.unique(positions)
    if not np.issubdtype(chosen.dtype, np.integer) or not len(chosen) or chosen[0] < 0 or chosen[-1] >= count:
        raise TrainingError(
            f"The validation series are not positions among {count} series. Give a fraction, whole numbers from 0 to "
            f"{count - 1}, a mask of {count}, a pair (logsigs, targets), or None."
        )
    if len(chosen) == count:
        raise TrainingError(f"All {count} series are for validation, which leaves none for training.")
    return chosen


def _targets_of(targets: np.ndarray, lengths: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Targets with one axis for each of predictions' (`shape`, of one series), or one less for class labels."""
    *intervals, outputs = shape
    count = len(lengths)
    fits = targets.ndim in (len(shape), len(shape) + 1) and len(targets) == count
    if fits and intervals:
        fits = targets.shape[1] >= lengths.max(initial=0)
    whole = targets.dtype.kind in "iub"
    labels = targets.ndim == len(shape)
    if fits and labels and outputs == 1:
        targets, labels = targets[..., None], False
    if not fits or (not labels and targets.shape[-1] != outputs) or (labels and not whole):
        wanted = " x ".join(["series", *(["interval"] if intervals else []), f"{outputs} outputs"])
        sizes = f"{count} series" + (f" of up to {lengths.max()} intervals" if intervals else "")
        raise TrainingError(
            f"The targets have shape {targets.shape} and dtype {targets.dtype}, but the model predicts {wanted} for "
            f"{sizes}. Give one number for each, or whole numbers without the last axis if they are class labels."
        )
    if not labels:
        targets = targets.astype(dtype)
    if intervals:
        valid = np.arange(targets.shape[1]) < lengths[:, None]
        targets = np.where(valid if labels else valid[..., None], targets, np.zeros((), targets.dtype))
        targets = targets[:, : intervals[0]]
        missing = intervals[0] - targets.shape[1]
        targets = np.pad(targets, [(0, 0), (0, missing)] + [(0, 0)] * (targets.ndim - 2))
    _check_contents(targets, labels, outputs)
    return targets.astype(np.int32) if labels else targets


def _check_contents(targets: np.ndarray, labels: bool, outputs: int) -> None:
    wrong = (targets < 0) | (targets >= outputs) if labels else ~np.isfinite(targets)
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        where = f"series number {place[0]}" + (f", interval {place[1]}" if targets.ndim + labels == 3 else "")
        what = f"Class labels go from 0 to {outputs - 1}" if labels else "Targets have to be finite"
        raise TrainingError(f"The target of {where} is {targets[place]}. {what}; leave out series without a target.")
