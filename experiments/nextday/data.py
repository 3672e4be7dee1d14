"""Stays, their split, questions about hours 24 to 48, and the units in which errors are counted."""

import dataclasses
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float64, Int64
from sklearn.model_selection import train_test_split

from experiments.mortality.data import with_static_channels
from logcde.datasets.physionet import physionet2012
from logcde.estimators import Questions
from logcde.streams import Streams
from logcde.streams.ragged import owners

KNOWN, AHEAD = 24.0, 24.0
CUTS = (12.0, 18.0, 30.0, 36.0)
"""Further times at which training series are cut: what comes within a day after them is asked for too."""
SEEN, TRAIN = 0.8, 0.75


@dataclasses.dataclass(frozen=True, eq=False)
class Observed:
    """All observations of all stays, one by one; static features are further channels, observed at time 0."""

    streams: Streams
    variables: int
    series: Int64[np.ndarray, "obs"]
    time: Float64[np.ndarray, "obs"]
    channel: Int64[np.ndarray, "obs"]
    value: Float64[np.ndarray, "obs"]

    def questions(self, stays: Int64[np.ndarray, "_"], cut: float) -> Questions:
        """What is observed within a day after a cut; stays are numbered by their place in `stays`."""
        place = np.full(len(self.streams), -1)
        place[stays] = np.arange(len(stays))
        wanted = (place[self.series] >= 0) & (self.time >= cut) & (self.channel < self.variables)
        if cut != KNOWN:  # the protocol's last observation is at hour 48
            wanted &= self.time < cut + AHEAD
        found = np.flatnonzero(wanted)
        return Questions.about(place[self.series[found]], cut, self.time[found], self.channel[found], self.value[found])


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Places of the stays for training, for validation and for testing."""

    train: Int64[np.ndarray, "_"]
    validation: Int64[np.ndarray, "_"]
    test: Int64[np.ndarray, "_"]

    @property
    def seen(self) -> Int64[np.ndarray, "_"]:
        """Training and validation stays."""
        return np.concatenate([self.train, self.validation])


@dataclasses.dataclass(frozen=True, eq=False)
class Scale:
    """Least value and range of each variable in the seen part, by which errors are divided."""

    least: Float64[np.ndarray, "variable"]
    range: Float64[np.ndarray, "variable"]

    @staticmethod
    def of(observed: Observed, seen: Int64[np.ndarray, "_"]) -> "Scale":
        """The scale of stays that are seen; a variable that is constant has the range 1."""
        inside = np.zeros(len(observed.streams), bool)
        inside[seen] = True
        chosen: Bool[np.ndarray, "obs"] = inside[observed.series] & (observed.channel < observed.variables)
        least, greatest = np.full(observed.variables, np.inf), np.full(observed.variables, -np.inf)
        np.minimum.at(least, observed.channel[chosen], observed.value[chosen])
        np.maximum.at(greatest, observed.channel[chosen], observed.value[chosen])
        return Scale(least, np.where(greatest > least, greatest - least, 1.0))


@lru_cache(maxsize=1)
def observed() -> Observed:
    """All stays, read once in a process."""
    stays = physionet2012()
    streams = with_static_channels(stays)
    event = owners(streams.obs_offsets)
    return Observed(
        streams,
        len(stays.streams.schema.channels),
        owners(streams.offsets)[event],
        streams.times[event],
        streams.channel.astype(np.int64),
        streams.value.astype(np.float64),
    )


def split(ids: np.ndarray, seed: int) -> Split:
    """The protocol's split: sorted record ids, 80 % seen, of which the first 75 % are for training.

    >>> found = split(np.arange(10)[::-1], seed=42)
    >>> len(found.train), len(found.validation), len(found.test)
    (6, 2, 2)
    """
    order = np.argsort(ids.astype(np.int64), kind="stable")
    seen, test = map(np.asarray, train_test_split(order, train_size=SEEN, random_state=seed, shuffle=True))
    count = round(TRAIN * len(seen))
    return Split(seen[:count], seen[count:], test)


def training_questions(
    observed: Observed, stays: Int64[np.ndarray, "_"], most: Sequence[int], seed: int, cuts: Sequence[float] = CUTS
) -> Questions:
    """Questions after hour 24 and after further cuts; of each variable at most some, half of them after hour 24."""
    rng = np.random.default_rng(seed)
    first = observed.questions(stays, KNOWN)
    others = _joined([observed.questions(stays, cut) for cut in cuts]) if cuts else first[np.zeros(0, np.int64)]
    kept = []
    for variable, count in enumerate(most):
        mine, more = (np.flatnonzero(some.target == variable) for some in (first, others))
        own = min(len(mine), max(count // 2, count - len(more)))
        kept.append(first[rng.choice(mine, own, replace=False)])
        kept.append(others[rng.choice(more, min(len(more), count - own), replace=False)])
    return _joined(kept)


def _joined(parts: list[Questions]) -> Questions:
    return Questions(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in dataclasses.fields(Questions))
    )
