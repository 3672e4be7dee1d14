"""Mini-batches: series of like length side by side, in an order that follows from a seed and the epoch alone.

Series are sorted into few buckets by their number of intervals, and padded only to the longest of their bucket, so
that few shapes are compiled and little is computed for nothing. All series of a batch are from one bucket. Row -1
fills a batch that is short.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Int, Int32

from logcde.train.examples import Examples

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
    cropped = eqx.tree_at(lambda tree: tree.inputs.steps, examples, inputs.steps[:, :edge])
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
