"""The stays of one published split, arranged so that learners score all test stays at once, complete and reduced.

Splits are those of the Raindrop paper, as record ids in `PhysioNet2012_splits.npz`.
"""

import dataclasses
import itertools
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Int64

from experiments.physionet2012.models import Given
from logcde.datasets import Split
from logcde.datasets.loading import folder
from logcde.datasets.physionet import ORIGIN, Stays, physionet2012
from logcde.errors import DatasetError, Remedy
from logcde.streams import Schema, Streams
from logcde.streams.ragged import offsets_of, owners
from logcde.streams.transforms import keep_observations, merge_channels

Attributes: TypeAlias = Literal["published", "all"]
Part: TypeAlias = Literal["test", "validation"]
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of the variables that are left out of test stays."""
WEIGHT = "Weight"
FILE = "PhysioNet2012_splits.npz"


@lru_cache(maxsize=1)
def all_stays() -> Stays:
    """The stays, read once in a process."""
    return physionet2012()


def splits_file() -> Path:
    """Where the published splits are."""
    file = folder(None, ORIGIN) / FILE
    if not file.is_file():
        raise DatasetError(f"The published splits of PhysioNet 2012 are not in {file}.", Remedy.DATA_FOLDER)
    return file


def records(split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Record ids of the training, validation and test stays of a split, which are numbered from 1."""
    with np.load(splits_file(), allow_pickle=False) as stored:
        if f"train_{split}" not in stored:
            raise DatasetError(f"{FILE} has no split {split}.", "Splits are numbered from 1.")
        return stored[f"train_{split}"], stored[f"validation_{split}"], stored[f"test_{split}"]


def problem(split: int, part: Part, attributes: Attributes, seed: int = 0) -> Given:
    """Training stays, then those that are scored: once complete, and once for each further share of `SHARES`.

    To score the test stays, learners train on training and validation stays; to score the validation stays, on the
    training stays only. The first complete copy is `split.validation`, the others are `split.test`: no learner of this
    experiment reads the outcome of either.
    """
    stays = with_attributes(all_stays(), attributes)
    train, validation, test = (_places(stays.streams.ids, ids) for ids in records(split))
    known, scored = (np.concatenate([train, validation]), test) if part == "test" else (train, validation)
    copies = [without_variables(stays.streams[scored], share, (seed, split)) for share in SHARES]
    streams = Streams.concatenate([stays.streams[known], *copies])
    order = np.concatenate([known, *[scored] * len(SHARES)])
    arranged = Stays(
        dataclasses.replace(streams, ids=np.arange(len(order))),
        stays.static[order],
        stays.names,
        stays.died[order],
        stays.part[order],
    )
    begins = np.cumsum([0, len(known), len(scored), len(scored) * (len(SHARES) - 1)])
    return Given(arranged, Split(*(np.arange(a, b) for a, b in itertools.pairwise(begins.tolist()))))


def with_attributes(stays: Stays, attributes: Attributes) -> Stays:
    """All variables and static features; or as published: the weight on admission is static, and no variable."""
    if attributes == "all":
        return stays
    streams, weight = stays.streams, stays.streams.schema.channels.index(WEIGHT)
    event = owners(streams.obs_offsets)
    series = owners(streams.offsets)[event]
    first = (streams.channel == weight) & (streams.times[event] == 0)
    known = np.full(len(streams), np.nan)
    known[series[first]] = streams.value[first]
    kept = keep_observations(streams, streams.channel != weight)
    names = tuple(name for name in streams.schema.channels if name != WEIGHT)
    kept = dataclasses.replace(
        kept, schema=dataclasses.replace(kept.schema, channels=names), channel=kept.channel - (kept.channel > weight)
    )
    static = np.concatenate([stays.static, known[:, None]], axis=1)
    return Stays(kept, static, (*stays.names, WEIGHT), stays.died, stays.part)


def without_variables(streams: Streams, share: float, seed: tuple[int, ...]) -> Streams:
    """Leave out a share of the variables, drawn for each stay by itself; a larger share leaves out the same and more.

    >>> streams = Streams.from_dense(np.ones((3, 2, 4)))
    >>> np.diff(without_variables(streams, 0.5, (0,)).obs_offsets)
    array([2, 2, 2, 2, 2, 2])
    """
    channels = len(streams.schema.channels)
    rank = np.random.default_rng(seed).random((len(streams), channels)).argsort(axis=1).argsort(axis=1)
    series = owners(streams.offsets)[owners(streams.obs_offsets)]
    return keep_observations(streams, rank[series, streams.channel] >= round(share * channels))


def with_static_channels(stays: Stays) -> Streams:
    """Static features as channels that are observed once, at time 0; unknown ones are not observed."""
    known = np.isfinite(stays.static)
    row, column = np.nonzero(known)
    some = np.asarray(known.any(axis=1))
    streams = stays.streams
    observed = Streams(
        schema=Schema(stays.names, clock=streams.schema.clock),
        ids=streams.ids,
        offsets=offsets_of(some),
        times=np.zeros(int(some.sum())),
        obs_offsets=offsets_of(known.sum(axis=1)[some]),
        channel=column.astype(np.int32),
        value=stays.static[row, column],
        horizon=streams.horizon,
        terms=np.zeros((int(some.sum()), 0)),
    )
    return merge_channels(streams, observed)


def _places(ids: np.ndarray, wanted: np.ndarray) -> Int64[np.ndarray, "_"]:
    order = np.argsort(ids)
    place = order[np.searchsorted(ids[order], wanted).clip(max=len(ids) - 1)]
    if not np.array_equal(ids[place].astype(np.int64), wanted.astype(np.int64)):
        raise DatasetError(f"Some record ids of {FILE} are not in the data set.", Remedy.DATA_FOLDER)
    return place
