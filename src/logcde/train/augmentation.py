"""Augmentation: further versions of the training series, from which further observations were dropped."""

from collections.abc import Sequence

from logcde.embedding import Embedding, LogSignatures
from logcde.streams import AbstractDropping, Partition, PerChannel, Streams, drop_observations


def dropped_copies(
    streams: Streams,
    embedding: Embedding,
    partition: Partition,
    *,
    fractions: Sequence[float] = (0.3,) * 8,
    by: AbstractDropping = PerChannel(),
    seed: int,
) -> tuple[LogSignatures, ...]:
    """Log-signatures of the training series after dropping observations at random: the `copies` of `fit`.

    A model that is trained on them learns what stays the same when fewer observations come, and memorises less.

    Args:
        streams: The training series; held-out series may be among them.
        embedding: The embedding of the training inputs. With `dtype=np.float32` copies take half the memory.
        partition: The partition of the training inputs, which does not depend on observations.
        fractions: The fraction of the observations to drop, for each copy.
        by: What is dropped as a unit; streams with higher-order terms need `PerEvent()`.
        seed: Seed of the dropping. Each copy drops other observations.

    Returns:
        One `LogSignatures` for each fraction.

    >>> import numpy as np
    >>> streams = Streams.from_dense(np.random.default_rng(0).normal(size=(3, 20, 2)))
    >>> embedding, partition = Embedding(depth=2), Partition.uniform(4)
    >>> copies = dropped_copies(streams, embedding, partition, fractions=(0.3, 0.6), seed=0)
    >>> len(copies), copies[0].values.shape == embedding(streams, partition).values.shape
    (2, True)
    """
    return tuple(
        embedding(drop_observations(streams, fraction, by, seed=(seed, number)), partition)
        for number, fraction in enumerate(fractions)
    )
