"""What all features have in common: options are fitted to training series, and then turn series into named rows."""

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Num

from logcde.features.windows import Windows
from logcde.streams import ChannelScaler, Schema, Streams
from logcde.streams.ragged import owners

FEW = 10
"""Observations within the range of training that are added to those of a series, when the share outside is computed."""


class AbstractFeatures(abc.ABC):
    """Options of features, a frozen dataclass: `fit` to training series, then call with any."""

    @abc.abstractmethod
    def fit(self, streams: Streams) -> "AbstractFittedFeatures":
        """Learn from training series what the features need, such as scales and lengths."""


class AbstractFittedFeatures(abc.ABC):
    """Features as fitted to training series: called with streams, they return a row for each series."""

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """The name of each feature, all different."""

    @abc.abstractmethod
    def __call__(self, streams: Streams) -> Float32[np.ndarray, "series feature"]:
        """Compute the features of streams with the channels of the training series."""

    @abc.abstractmethod
    def online(self) -> "AbstractOnlineFeatures":
        """Start a series that is observed one event at a time."""


class AbstractOnlineFeatures(abc.ABC):
    """One series, event by event: its features at any time are those of the same observations offline."""

    @abc.abstractmethod
    def observe(self, time: object, values: Mapping[str, float]) -> None:
        """Take one event, later than all before: its stamp on the clock of the training series, values by channel."""

    @abc.abstractmethod
    def features(self, at: object = None) -> Float32[np.ndarray, "feature"]:
        """The features as if the series ended at this time, by default with the last event. Changes nothing."""


class AbstractWindowed(abc.ABC):
    """What is computed from sums over windows of scaled values.

    Attributes:
        schema: The channels of the training series.
        scaler: Scaler of their values.
        width: Length of a window.
    """

    schema: Schema
    scaler: ChannelScaler
    width: float

    @abc.abstractmethod
    def of_windows(self, windows: Windows) -> Any:
        """Compute from sums over windows of scaled values."""

    def strangeness(self, streams: Streams) -> Float64[np.ndarray, "series"]:
        """The share of the observations of each series that were clipped to the range of those in training."""
        series = owners(streams.offsets)[owners(streams.obs_offsets)]
        outside = self.scaler.outside(streams.value, streams.channel)
        count = len(streams)
        return strangeness_of(np.bincount(series, outside, minlength=count), np.bincount(series, minlength=count))

    @functools.cached_property
    def digest(self) -> str:
        """Identifies what sums over windows depend on: the width, the channels and their scales."""
        scales = np.array([dataclasses.astuple(one) for one in self.scaler.each], np.float64).tolist()
        return hashlib.sha256(repr((float(self.width), self.scaler.channels, scales)).encode()).hexdigest()


def strangeness_of(
    outside: Num[np.ndarray, "series"], observations: Num[np.ndarray, "series"]
) -> Float64[np.ndarray, "series"]:
    """The share of observations that lie outside of the range of training, shrunk to 0 where there are few.

    >>> strangeness_of(np.array([0, 1, 200]), np.array([400, 2, 390])).round(3)
    array([0.   , 0.083, 0.5  ])
    """
    return outside / (observations + FEW)


def distinct(names: list[str]) -> tuple[str, ...]:
    """The same names, numbered from the second on where features would have one name.

    >>> distinct(["mean", "share", "share", "share"])
    ('mean', 'share', 'share (2)', 'share (3)')
    """
    taken, found = {*names}, []
    seen: dict[str, int] = {}
    for name in names:
        number = seen[name] = seen.get(name, 0) + 1
        unique = name
        while number > 1 and (unique := f"{name} ({number})") in taken:
            number += 1
        seen[name] = number
        taken.add(unique)
        found.append(unique)
    return tuple(found)
