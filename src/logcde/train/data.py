"""Training data: checked examples, buckets of similar length, and the mini-batches of every epoch.

Series are sorted into a few buckets by their number of intervals and padded only to the longest of their bucket, so
that few shapes are compiled and little padding is computed. All series of a batch come from one bucket; row -1 pads a
batch. The batches of an epoch depend on the seed and the epoch's number alone, so a resumed run sees the same ones.

A bucket may hold several versions of each series, one version after another; a batch takes one version of each of its
series, drawn with the batches.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Int32, Num

from logcde.embedding import AbstractRaggedSteps, FactorSteps, LogSignatures, SparseLogSignatures
from logcde.embedding.sparse import Form
from logcde.errors import TrainingError, Where
from logcde.models import AbstractModel, Inputs
from logcde.models.model import dtype_of, suited_to
from logcde.train.options import Batching, Validation

Data: TypeAlias = LogSignatures | SparseLogSignatures | Inputs
Targets: TypeAlias = Array | np.ndarray | Sequence

LARGEST_CALL_ROWS = 2**18
LARGEST_CALL_STEPS = 1024
"""Bounds of the row numbers that one call of the compiled program takes."""
SMALL_BYTES = 2**22
"""Data sets are padded up to this size, so that small ones share a compiled program."""


class Examples(eqx.Module):
    """Inputs of many series, their targets and their weights. Targets of padded intervals are zero.

    All arrays are NumPy arrays on the host until the buckets are put on devices. Without weights all series count
    alike.
    """

    inputs: Inputs
    targets: Num[Array | np.ndarray, "series ..."]
    per_interval: bool = eqx.field(static=True)
    weights: Float[Array | np.ndarray, "series"] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, series: np.ndarray) -> "Examples":
        """Some of the series, by position."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    @property
    def predicted(self) -> Int[Array | np.ndarray, "series"]:
        """Number of predictions of each series, for models that predict at each interval or query."""
        return self.inputs.length if self.inputs.queries is None else self.inputs.queries


def examples_of(
    model: AbstractModel, data: Data, targets: Targets, static: Any = None, weights: Any = None
) -> Examples:
    """Check the arguments of `fit` and convert them to the dtype and shape of the model's predictions.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis.of_width(2, 1)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=1, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((2, 3, 2)), np.array([3, 2]), basis)
    >>> examples_of(model, logsigs, [0.5, 1.0]).targets.shape
    (2, 1)
    """
    dtype = dtype_of(model)
    inputs = _inputs_of(model, data, static, dtype)
    if not len(inputs):
        raise TrainingError("There are no series to train on.", "Give at least one.")
    shape = eqx.filter_eval_shape(model, inputs[0]).shape
    checked = _checked_targets(np.asarray(targets), np.asarray(inputs.outputs), shape, dtype)
    given = None if weights is None else checked_weights(weights, len(inputs)).astype(dtype)
    return Examples(jax.tree.map(np.asarray, inputs), checked, len(shape) == 2, given)


def _inputs_of(model: AbstractModel, data: Data, static: Any, dtype: np.dtype, form: Form | None = None) -> Inputs:
    if not isinstance(data, Inputs):
        given = _in_form(suited_to(model, data), form)
        return Inputs.of(given, None if static is None else np.asarray(static, dtype), dtype, factors=True)
    if static is not None:
        raise TrainingError(
            "Inputs contain their static features, but static=... was given as well.",
            "Pass either Inputs, or log-signatures and static=....",
        )
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, data)


def _in_form(data: LogSignatures | SparseLogSignatures, form: Form | None) -> LogSignatures | SparseLogSignatures:
    """Log-signatures in one form; if that is left open, in the fastest one."""
    if isinstance(data, LogSignatures):
        if form == "factors":
            raise TrainingError("A copy is dense, but the training inputs are sparse.", "Embed both with sparse=True.")
        return SparseLogSignatures.of(data) if form == "sparse" else data
    form = form or data.fastest
    if form == "factors":
        return data
    return data.dense() if form == "dense" else dataclasses.replace(data, factors=None)


def checked_weights(weights: Any, series: int) -> Float[np.ndarray, "series"]:
    """Weights of series: one for each, finite, none negative, and not all of them zero."""
    given = np.asarray(weights, np.float64)
    if given.shape != (series,):
        raise TrainingError(
            f"The weights have shape {given.shape}, but there are {series} series.", "Give one weight for each series."
        )
    wrong = np.flatnonzero(~((given >= 0) & (given < np.inf)))
    if len(wrong):
        raise TrainingError(
            f"The weight of series number {wrong[0]} is {given[wrong[0]]}.",
            "Weights are finite and at least 0.",
            where=Where(series=int(wrong[0])),
        )
    if not given.any():
        raise TrainingError("The weights of all series are 0.", "Give at least one series a weight above 0.")
    return given


def copies_of(
    model: AbstractModel, examples: Examples, copies: Sequence[Data], static: Any = None
) -> tuple[Examples, ...]:
    """The same examples with other inputs, one for each copy; each copy is checked against the examples."""
    return tuple(_copy_of(model, examples, number, copy, static) for number, copy in enumerate(copies))


def _copy_of(model: AbstractModel, examples: Examples, number: int, copy: Data, static: Any) -> Examples:
    original = examples.inputs
    steps = original.logsigs
    form: Form = "dense"
    if isinstance(steps, AbstractRaggedSteps):
        form = "factors" if isinstance(steps, FactorSteps) else "sparse"
    inputs = jax.tree.map(np.asarray, _inputs_of(model, copy, static, steps.dtype, form))
    other = dataclasses.replace(examples, inputs=inputs)
    shapes, lengths = zip(*map(_shapes_and_lengths, (other, examples)), strict=True)
    if shapes[0] != shapes[1] or not np.array_equal(lengths[0], lengths[1]):
        raise TrainingError(
            f"Copy {number} does not have the series and intervals of the training inputs: it has {len(inputs)} series "
            f"of up to {inputs.intervals} intervals, they have {len(original)} of up to {original.intervals}.",
            "Make the copies of the same streams with the same embedding and partition, one that does not depend on "
            "observations, such as Partition.uniform or Partition.every.",
        )
    return other


def _shapes_and_lengths(examples: Examples) -> tuple[list[tuple[int, ...]], np.ndarray]:
    steps = examples.inputs.logsigs
    rows = np.empty(steps.shape) if isinstance(steps, AbstractRaggedSteps) else steps
    others = eqx.tree_at(lambda tree: tree.logsigs, examples.inputs, rows)
    return [leaf.shape for leaf in jax.tree.leaves(others)], np.stack([examples.inputs.length, examples.predicted])


def concatenated(versions: Sequence[Examples]) -> Examples:
    """All series of the first version, then all of the second, and so on."""
    if len(versions) == 1:
        return versions[0]
    steps = [one for version in versions if isinstance(one := version.inputs.logsigs, AbstractRaggedSteps)]
    if steps:
        alike = zip(versions, type(steps[0]).of_one_size(steps), strict=True)
        versions = [eqx.tree_at(lambda tree: tree.inputs.logsigs, version, one) for version, one in alike]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *versions)


def held_out_series(examples: Examples, validation: Validation, rng: np.random.Generator) -> np.ndarray:
    """Positions of the validation series: a fraction drawn at random, or the given positions or mask."""
    count = len(examples)
    if isinstance(validation, float | int):
        held_out = round(count * validation)
        if not (0 < validation < 1 and 0 < held_out < count):
            raise TrainingError(
                f"validation={validation} of {count} series leaves {count - held_out} for training and {held_out} for "
                "validation.",
                "Give a fraction that leaves some for both, the positions of series, or None.",
            )
        return np.sort(rng.permutation(count)[:held_out])
    positions = np.asarray(validation)
    chosen = np.flatnonzero(positions) if positions.dtype == bool and len(positions) == count else np.unique(positions)
    if not np.issubdtype(chosen.dtype, np.integer) or not len(chosen) or chosen[0] < 0 or chosen[-1] >= count:
        raise TrainingError(
            f"The validation series are not positions among {count} series.",
            f"Give a fraction, integers from 0 to {count - 1}, a Boolean mask of length {count}, a pair (logsigs, "
            "targets), or None.",
        )
    if len(chosen) == count:
        raise TrainingError(
            f"All {count} series are for validation, which leaves none for training.", "Validate on fewer series."
        )
    return chosen


def _checked_targets(targets: np.ndarray, lengths: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Targets with the axes of predictions (`shape`, of one series), without the last axis for class labels."""
    *intervals, outputs = shape
    count = len(lengths)
    fits = targets.ndim in (len(shape), len(shape) + 1) and len(targets) == count
    if fits and intervals:
        fits = targets.shape[1] >= lengths.max(initial=0)
    integers = targets.dtype.kind in "iub"
    labels = targets.ndim == len(shape)
    if fits and labels and outputs == 1:
        targets, labels = targets[..., None], False
    if not fits or (not labels and targets.shape[-1] != outputs) or (labels and not integers):
        wanted = " x ".join(["series", *(["interval"] if intervals else []), f"{outputs} outputs"])
        sizes = f"{count} series" + (f" of up to {lengths.max()} intervals" if intervals else "")
        raise TrainingError(
            f"The targets have shape {targets.shape} and dtype {targets.dtype}, but the model predicts {wanted} for "
            f"{sizes}.",
            "Give one number for each prediction, or integers without the last axis if they are class labels.",
        )
    if not labels:
        targets = targets.astype(dtype)
    if intervals:
        valid = np.arange(targets.shape[1]) < lengths[:, None]
        targets = np.where(valid if labels else valid[..., None], targets, np.zeros((), targets.dtype))
        targets = targets[:, : intervals[0]]
        missing = intervals[0] - targets.shape[1]
        targets = np.pad(targets, [(0, 0), (0, missing)] + [(0, 0)] * (targets.ndim - 2))
    _check_values(targets, labels, outputs)
    return targets.astype(np.int32) if labels else targets


def _check_values(targets: np.ndarray, labels: bool, outputs: int) -> None:
    wrong = (targets < 0) | (targets >= outputs) if labels else ~np.isfinite(targets)
    if wrong.any():
        index = tuple(int(k) for k in np.argwhere(wrong)[0])
        place = f"series number {index[0]}" + (f", interval {index[1]}" if targets.ndim + labels == 3 else "")
        allowed = f"Class labels go from 0 to {outputs - 1}" if labels else "Targets have to be finite"
        raise TrainingError(
            f"The target of {place} is {targets[index]}.",
            f"{allowed}; leave out series without a target.",
            where=Where(series=index[0]),
        )


def bucket_edges(lengths: Int[np.ndarray, "series"], batching: Batching) -> tuple[int, ...]:
    """The longest length of each bucket: the longest of all, then at most half of it while that leaves a full batch.

    >>> bucket_edges(np.array([3] * 40 + [4] * 40 + [16] * 50), Batching(size=32, buckets=4))
    (4, 16)
    >>> bucket_edges(np.array([3] * 2 + [16] * 50), Batching(size=32, buckets=4))
    (16,)
    """
    ordered = np.sort(lengths)
    edges = [int(ordered[-1])]
    while len(edges) < batching.buckets and edges[0]:
        shorter = ordered[ordered <= edges[0] // 2]
        if len(shorter) < batching.size:
            break
        ordered = shorter
        edges.insert(0, int(ordered[-1]))
    return tuple(edges)


def buckets_of(examples: Examples, batching: Batching) -> tuple[Examples, ...]:
    """The examples sorted into buckets, each padded to its own longest series."""
    lengths = np.asarray(examples.inputs.length)
    edges = bucket_edges(lengths, batching)
    owner = np.searchsorted(edges, lengths)
    return tuple(_cropped(examples[np.flatnonzero(owner == k)], edge) for k, edge in enumerate(edges))


def _cropped(examples: Examples, edge: int) -> Examples:
    """The examples without the intervals beyond `edge`, which are padding in all of them."""
    inputs = examples.inputs
    queries = edge if inputs.queries is None else int(np.max(examples.predicted))
    steps = inputs.logsigs
    kept = steps.cropped(edge) if isinstance(steps, AbstractRaggedSteps) else steps[:, :edge]
    cropped = eqx.tree_at(lambda tree: tree.inputs.logsigs, examples, kept)
    if inputs.ends is not None:
        ends = np.clip(inputs.ends[:, :queries], 0, max(edge - 1, 0))
        cropped = eqx.tree_at(lambda tree: tree.inputs.ends, cropped, ends)
    if examples.per_interval:
        cropped = eqx.tree_at(lambda tree: tree.targets, cropped, examples.targets[:, :queries])
    return cropped


def pad_series(examples: Examples) -> Examples:
    """Append empty series that no batch contains, so that data sets of similar size share a compiled program."""
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(examples)) // len(examples)
    missing = round_up_coarsely(len(examples), min(256, SMALL_BYTES // max(size, 1))) - len(examples)
    return jax.tree.map(lambda leaf: np.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1)), examples)


def round_up_coarsely(count: int, least: int) -> int:
    """Round up to one of a few sizes: `least`, or a multiple of a quarter of the power of two below.

    >>> round_up_coarsely(10, 64), round_up_coarsely(151, 64), round_up_coarsely(1000, 64)
    (64, 160, 1024)
    """
    unit = 1 << max(count.bit_length() - 3, 0)
    return max(least, -(-count // unit) * unit)


@dataclasses.dataclass(frozen=True)
class BatchOrder:
    """The series of each step's mini-batch, for every epoch.

    Attributes:
        sizes: Number of series in each bucket.
        batch: Series in a mini-batch.
        width: Rows of a mini-batch with padding: a multiple of the number of devices.
        seed: Seed of the shuffling.
        versions: Versions of each series in a bucket, one of which is drawn whenever the series is in a batch.
        one_by_one: Whether all steps of a bucket come one after another, and the buckets in a new order every epoch.

    >>> order = BatchOrder(sizes=(5, 2), batch=2, width=2, seed=(7,))
    >>> order.per_epoch
    4
    >>> bucket, rows = order.epoch(0)
    >>> rows.shape, sorted(rows[bucket == 0].ravel().tolist())
    ((4, 2), [-1, 0, 1, 2, 3, 4])
    """

    sizes: tuple[int, ...]
    batch: int
    width: int
    seed: tuple[int, ...]
    versions: int = 1
    one_by_one: bool = False

    @property
    def per_epoch(self) -> int:
        """Steps in an epoch; the last batch of a bucket may be short."""
        return sum(-(-size // self.batch) for size in self.sizes)

    @property
    def longest(self) -> int:
        """The largest number of steps that `steps` returns."""
        return max(1, min(LARGEST_CALL_STEPS, LARGEST_CALL_ROWS // self.width))

    def epoch(self, number: int) -> tuple[Int32[np.ndarray, "step"], Int32[np.ndarray, "step row"]]:
        """The bucket of every step of an epoch, and the rows in that bucket."""
        return _shuffled_epoch(self, number)

    def steps(self, first: int, count: int) -> tuple[Int32[np.ndarray, "longest"], Int32[np.ndarray, "longest row"]]:
        """Bucket and rows of `count` steps from step `first` on, in arrays of one size whatever the count."""
        bucket = np.zeros(self.longest, np.int32)
        rows = np.full((self.longest, self.width), -1, np.int32)
        done = 0
        while done < count:
            number, start = divmod(first + done, self.per_epoch)
            part = slice(start, start + count - done)
            epoch_bucket, epoch_rows = self.epoch(number)
            size = len(epoch_bucket[part])
            bucket[done : done + size] = epoch_bucket[part]
            rows[done : done + size] = epoch_rows[part]
            done += size
        return bucket, rows


@functools.lru_cache(maxsize=2)
def _shuffled_epoch(order: BatchOrder, number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng((*order.seed, number))
    bucket = np.repeat(np.arange(len(order.sizes), dtype=np.int32), [-(-size // order.batch) for size in order.sizes])
    rows = np.concatenate([cut_into_batches(rng.permutation(size), order.batch, order.width) for size in order.sizes])
    shuffled = rng.permutation(len(bucket))
    if order.one_by_one:
        turn = rng.permutation(len(order.sizes))
        shuffled = shuffled[np.argsort(turn[bucket[shuffled]], kind="stable")]
    bucket, rows = bucket[shuffled], rows[shuffled]
    if order.versions > 1:
        version = rng.integers(order.versions, size=rows.shape, dtype=np.int32)
        size = np.array(order.sizes, np.int32)[bucket]
        rows = np.where(rows >= 0, rows + version * size[:, None], rows)
    return bucket, rows


def cut_into_batches(rows: Int[np.ndarray, "series"], batch: int, width: int) -> Int32[np.ndarray, "step row"]:
    """Cut row numbers into batches and pad each to `width` with -1.

    >>> cut_into_batches(np.arange(3), batch=2, width=4).tolist()
    [[0, 1, -1, -1], [2, -1, -1, -1]]
    """
    steps = -(-len(rows) // batch)
    padded = np.full(steps * batch, -1, np.int32)
    padded[: len(rows)] = rows
    return np.pad(padded.reshape(steps, batch), ((0, 0), (0, width - batch)), constant_values=-1)
