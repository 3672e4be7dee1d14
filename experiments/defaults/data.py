"""The data of the comparison: archive sets with dropped observations, stays in intensive care, Beijing's air."""

import dataclasses
import itertools
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from experiments.archive import load
from experiments.defaults.cells import BEIJING, SEPSIS
from logcde.datasets.loading import available, folder
from logcde.errors import DatasetError, Remedy

TRAIN_SEED, TEST_SEED = 1000, 2000
FEWEST = 2
DAY = 24
TRAINED, TESTED = 4000, 6000
TEST_YEAR = 2014
REGRESSION_HOURS, REGRESSION_EVERY, TARGET_HOURS = 48, 12, 6
FORECAST_HOURS, FORECAST_EVERY, FORECAST_KEPT = 72, 24, 2
AHEAD = (1, 3, 6, 12, 24)
"""Hours from the last of a window to the forecast ones."""
FORECAST = {"pm2.5": 0, "TEMP": 2}
"""Forecast channels and their columns."""


def dropped(
    values: Float64[np.ndarray, "series channel step"], share: float, seed: int
) -> Float64[np.ndarray, "series channel step"]:
    """Drop each observation with a probability of `share`; a channel keeps at least two of its observations.

    >>> left = dropped(np.arange(12.0).reshape(1, 2, 6), 0.9, seed=0)
    >>> bool((np.isfinite(left).sum(axis=2) >= 2).all())
    True
    """
    random = np.random.default_rng(seed)
    left = np.where(random.random(values.shape) < share, np.nan, values)
    for place in zip(*np.nonzero(np.isfinite(left).sum(axis=2) < FEWEST), strict=True):
        kept = random.choice(np.flatnonzero(np.isfinite(values[place])), FEWEST, replace=False)
        left[(*place, kept)] = values[(*place, kept)]
    return left


@dataclasses.dataclass(frozen=True, eq=False)
class Labelled:
    """Series (series, channel, step), NaN where not observed, and classes 0, 1, ..., in the archive's two parts."""

    train: Float64[np.ndarray, "series channel step"]
    train_labels: Int64[np.ndarray, "series"]
    test: Float64[np.ndarray, "more channel step"]
    test_labels: Int64[np.ndarray, "more"]

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.train_labels.max()) + 1

    def dropped(self, share: float, seed: int) -> "Labelled":
        """Drop observations from both parts."""
        return dataclasses.replace(
            self,
            train=dropped(self.train, share, TRAIN_SEED + seed),
            test=dropped(self.test, share, TEST_SEED + seed),
        )


@lru_cache(maxsize=1)
def labelled(name: str) -> Labelled:
    """A classification set of the archive; cached, because most cells follow one of the same set."""
    data = load(name)
    streams = data.streams
    values = np.full((len(data), len(streams.schema.channels), data.length), np.nan)
    step = np.rint(streams.times * data.length).astype(np.int64)
    event = np.repeat(np.arange(len(streams.times)), np.diff(streams.obs_offsets))
    series = np.repeat(np.arange(len(data)), np.diff(streams.offsets))
    values[series[event], streams.channel, step[event]] = streams.value
    return Labelled(values[~data.tested], data.labels[~data.tested], values[data.tested], data.labels[data.tested])


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """Equally long windows of hours (series, hour, channel), NaN where not observed, with targets, in two parts."""

    channels: tuple[str, ...]
    train: Float64[np.ndarray, "series hour channel"]
    train_targets: Float64[np.ndarray, "series *target"]
    test: Float64[np.ndarray, "more hour channel"]
    test_targets: Float64[np.ndarray, "more *target"]


@lru_cache(maxsize=1)
def sepsis() -> Windows:
    """The first day of stays of set A without sepsis so far; the target is sepsis later, 0 or 1.

    A random 4,000 train and another 6,000 test. Variables that no training stay has are left out.
    """
    with np.load(_file(SEPSIS), allow_pickle=False) as file:
        rows, labels = file["row_offsets_A"], file["label_hourly_A"].astype(bool)
        offsets, hour, variable, value = (file[f"{name}_A"] for name in ("offsets", "hour", "var", "value"))
        channels = tuple(file["variables"].tolist())
    stays = [
        stay
        for stay, (begin, end) in enumerate(itertools.pairwise(rows))
        if end - begin >= DAY and not labels[begin : begin + DAY].any()
    ]
    target = np.array([labels[rows[stay] : rows[stay + 1]].any() for stay in stays], np.float64)
    values = np.full((len(stays), DAY, len(channels)), np.nan)
    for number, stay in enumerate(stays):
        of = slice(offsets[stay], offsets[stay + 1])
        early = hour[of] < DAY
        values[number, hour[of][early], variable[of][early]] = value[of][early]
    order = np.random.default_rng(0).permutation(len(stays))
    train, test = order[:TRAINED], order[-TESTED:]
    seen = np.flatnonzero(np.isfinite(values[train]).any(axis=(0, 1)))
    known = tuple(channels[channel] for channel in seen)
    return Windows(known, values[train][..., seen], target[train], values[test][..., seen], target[test])


def regression(share: float, seed: int) -> Windows:
    """48 hours of all columns; the target is the mean of pm2.5 in the following 6 hours, where there is one."""
    hours = _hours()
    starts = np.arange(0, len(hours.values) - REGRESSION_HOURS - TARGET_HOURS + 1, REGRESSION_EVERY)
    windows = np.stack([hours.values[start : start + REGRESSION_HOURS] for start in starts])
    after = np.stack([hours.values[start + REGRESSION_HOURS :][:TARGET_HOURS, 0] for start in starts])
    known = np.isfinite(after).any(axis=1) & np.isfinite(windows[..., 0]).any(axis=1)
    windows, after, years = windows[known], after[known], hours.years[starts[known]]
    left = np.where(np.random.default_rng(seed).random(windows.shape) < share, np.nan, windows)
    return _by_year(hours.channels, left, np.nanmean(after, axis=1), years)


def forecasting(share: float, seed: int) -> Windows:
    """72 hours of the first five columns; the targets (hour ahead, channel) are `FORECAST` after `AHEAD` hours."""
    hours, count = _hours(), 5
    starts = np.arange(0, len(hours.values) - FORECAST_HOURS - max(AHEAD) + 1, FORECAST_EVERY)
    windows = np.stack([hours.values[start : start + FORECAST_HOURS, :count] for start in starts])
    asked = starts[:, None] + FORECAST_HOURS - 1 + np.array(AHEAD)
    targets = hours.values[asked][..., list(FORECAST.values())]
    drop = np.random.default_rng(1 + seed).random(windows.shape) < share
    drop[:, :FORECAST_KEPT] = False
    return _by_year(hours.channels[:count], np.where(drop, np.nan, windows), targets, hours.years[starts])


def is_available(dataset: str) -> bool:
    """Whether a data set is in the folder of data sets."""
    try:
        return dataset in _there(folder()) or _file(dataset).is_file()
    except DatasetError:
        return False


@dataclasses.dataclass(frozen=True, eq=False)
class _Hours:
    """Beijing's air, hour by hour."""

    channels: tuple[str, ...]
    values: Float64[np.ndarray, "hour channel"]
    years: Int64[np.ndarray, "hour"]


@lru_cache(maxsize=1)
def _hours() -> _Hours:
    with np.load(_file(BEIJING), allow_pickle=False) as file:
        return _Hours(tuple(file["columns"].tolist()), file["values"].astype(np.float64), file["year"].astype(np.int64))


def _by_year(channels: tuple[str, ...], windows: np.ndarray, targets: np.ndarray, years: np.ndarray) -> Windows:
    """Windows that start before the test year train."""
    train: Bool[np.ndarray, "series"] = years < TEST_YEAR
    test: Bool[np.ndarray, "series"] = years == TEST_YEAR
    return Windows(channels, windows[train], targets[train], windows[test], targets[test])


def _file(name: str) -> Path:
    file = folder() / f"{name}.npz"
    if not file.is_file():
        raise DatasetError(f"The data set {name!r} is not in {folder()}: there is no {name}.npz.", Remedy.DATA_FOLDER)
    return file


@lru_cache(maxsize=1)
def _there(top: Path) -> frozenset[str]:
    return frozenset(available(top))
