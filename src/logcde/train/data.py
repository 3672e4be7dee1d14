"""Examples to learn from: the inputs of many series and a target for each, checked and in one dtype.

Mini-batches: series of like length side by side, in an order that follows from a seed and the epoch alone.

Series are sorted into few buckets by their number of intervals, and padded only to the longest of their bucket, so
that few shapes are compiled and little is computed for nothing. All series of a batch are from one bucket. Row -1
fills a batch that is short.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int, Int32, Num

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

    >>> from logcde import Basis, log_slice
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=1, key=jax.random.key(0))
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


MOST_ROWS = 2**18
MOST_STEPS = 1024
LITTLE = 2**22
"""Bytes that data may be filled up to."""


def bucket_edges(lengths: Int[np.ndarray, "series"], batch: int, most: int) -> tuple[int, ...]:
    """The longest series of each bucket: halves of the longest, as long as they leave a full batch in the bucket.

    >>> bucket_edges(np.array([3] * 40 + [4] * 40 + [16] * 50), batch=32, most=4)
    (4, 16)
    >>> bucket_edges(np.array([3] * 2 + [16] * 50), batch=32, most=4)
    (16,)
    """
    ordered = np.sort(lengths)
    edges = [int(ordered[-1])]
    while len(edges) < most and edges[0]:
        shorter = ordered[ordered <= edges[0] // 2]
        if len(shorter) < batch:
            break
        ordered = shorter
        edges.insert(0, int(ordered[-1]))
    return tuple(edges)


def buckets_of(examples: Examples, batch: int, most: int) -> tuple[Examples, ...]:
    """The same examples in buckets, each padded no more than it needs."""
    lengths = np.asarray(examples.inputs.length)
    edges = bucket_edges(lengths, batch, most)
    owner = np.searchsorted(edges, lengths)
    return tuple(_cropped(examples[np.flatnonzero(owner == k)], edge) for k, edge in enumerate(edges))


def _cropped(examples: Examples, edge: int) -> Examples:
    """Without the intervals that no series of these has."""
    inputs = examples.inputs
    queries = edge if inputs.queries is None else int(np.max(examples.predicted))
    cropped = eqx.tree_at(lambda tree: tree.inputs.logsigs, examples, inputs.logsigs[:, :edge])
    if inputs.ends is not None:
        ends = np.clip(inputs.ends[:, :queries], 0, max(edge - 1, 0))
        cropped = eqx.tree_at(lambda tree: tree.inputs.ends, cropped, ends)
    if examples.each:
        cropped = eqx.tree_at(lambda tree: tree.targets, cropped, examples.targets[:, :queries])
    return cropped


def filled(examples: Examples) -> Examples:
    """The same examples and some that no row of a batch names, so that data sets of like size share a program."""
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(examples)) // len(examples)
    missing = rounded(len(examples), min(256, LITTLE // max(size, 1))) - len(examples)
    return jax.tree.map(lambda leaf: np.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1)), examples)


def rounded(count: int, least: int) -> int:
    """A little more, one of few numbers: the least, or a multiple of a quarter of the power of two below.

    >>> rounded(10, 64), rounded(151, 64), rounded(1000, 64)
    (64, 160, 1024)
    """
    unit = 1 << max(count.bit_length() - 3, 0)
    return max(least, -(-count // unit) * unit)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which series make up each step: `sizes` are those of the buckets, `width` a batch and what fills it up.

    >>> plan = Plan(sizes=(5, 2), batch=2, width=2, seed=(7,))
    >>> plan.per_epoch
    4
    >>> bucket, rows = plan.epoch(0)
    >>> rows.shape, sorted(rows[bucket == 0].ravel().tolist())
    ((4, 2), [-1, 0, 1, 2, 3, 4])
    """

    sizes: tuple[int, ...]
    batch: int
    width: int
    seed: tuple[int, ...]

    @property
    def per_epoch(self) -> int:
        """Steps in an epoch; short batches are kept."""
        return sum(-(-size // self.batch) for size in self.sizes)

    @property
    def longest(self) -> int:
        """The most steps that `steps` gives at once."""
        return max(1, min(MOST_STEPS, MOST_ROWS // self.width))

    def epoch(self, number: int) -> tuple[Int32[np.ndarray, "step"], Int32[np.ndarray, "step row"]]:
        """The bucket and the rows in it of every step of an epoch."""
        return _epoch(self, number)

    def steps(self, first: int, count: int) -> tuple[Int32[np.ndarray, "longest"], Int32[np.ndarray, "longest row"]]:
        """The same of `count` steps from number `first` on, in arrays of one size whatever the count."""
        bucket = np.zeros(self.longest, np.int32)
        rows = np.full((self.longest, self.width), -1, np.int32)
        done = 0
        while done < count:
            number, start = divmod(first + done, self.per_epoch)
            part = slice(start, start + count - done)
            buckets_here, rows_here = self.epoch(number)
            size = len(buckets_here[part])
            bucket[done : done + size] = buckets_here[part]
            rows[done : done + size] = rows_here[part]
            done += size
        return bucket, rows


@functools.lru_cache(maxsize=2)
def _epoch(plan: Plan, number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng((*plan.seed, number))
    bucket = np.repeat(np.arange(len(plan.sizes), dtype=np.int32), [-(-size // plan.batch) for size in plan.sizes])
    rows = np.concatenate([batched(rng.permutation(size), plan.batch, plan.width) for size in plan.sizes])
    order = rng.permutation(len(bucket))
    return bucket[order], rows[order]


def batched(rows: Int[np.ndarray, "series"], batch: int, width: int) -> Int32[np.ndarray, "step row"]:
    """Rows cut into batches, filled up with -1.

    >>> batched(np.arange(3), batch=2, width=4).tolist()
    [[0, 1, -1, -1], [2, -1, -1, -1]]
    """
    steps = -(-len(rows) // batch)
    filled = np.full(steps * batch, -1, np.int32)
    filled[: len(rows)] = rows
    return np.pad(filled.reshape(steps, batch), ((0, 0), (0, width - batch)), constant_values=-1)
