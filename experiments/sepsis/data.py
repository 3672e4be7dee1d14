"""Stays of both hospitals, their hours, labels and splits."""

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float32, Float64, Int64

from logcde.datasets.loading import folder
from logcde.errors import DatasetError, Remedy
from logcde.models.forecast import ForecastModel
from logcde.streams import Schema, Streams
from logcde.streams.ragged import offsets_of, owners

FILE = "PhysioNet2019.npz"
ORIGIN = "https://physionet.org/content/challenge-2019"
HOSPITALS = ("A", "B")
Protocol: TypeAlias = Literal["A to B", "B to A", "random"]


@dataclasses.dataclass(frozen=True, eq=False)
class Hospitals:
    """Stays of both hospitals: observations as streams in hours, one row for each hour, and its label.

    Static features are further channels, observed at hour 0.
    """

    streams: Streams
    rows: Int64[np.ndarray, "stay+1"]
    label: Int64[np.ndarray, "row"]
    hospital: Int64[np.ndarray, "stay"]

    def hours_of(self, stays: Int64[np.ndarray, "_"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The place in `stays`, the hour and the label of each row of some stays, stay by stay."""
        counts = np.diff(self.rows)[stays]
        offsets = offsets_of(counts)
        place = owners(offsets)
        hour = np.arange(offsets[-1]) - offsets[place]
        return place, hour, self.label[self.rows[stays[place]] + hour]


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Places of stays."""

    train: Int64[np.ndarray, "_"]
    validation: Int64[np.ndarray, "_"]
    test: Int64[np.ndarray, "_"]


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """Log odds of each hour of the validation and the test stays, seconds of training, and a model if it is served."""

    known: Float64[np.ndarray, "hour"]
    found: Float64[np.ndarray, "hour"]
    seconds: float
    setting: str = ""
    model: ForecastModel | None = None


def where() -> Path:
    """The file of both hospitals."""
    file = folder(None, ORIGIN) / FILE
    if not file.is_file():
        raise DatasetError(f"The data set PhysioNet 2019 is not in {file}.", Remedy.DATA_FOLDER)
    return file


@lru_cache(maxsize=1)
def hospitals() -> Hospitals:
    """Read both hospitals, once in a process."""
    with np.load(where(), allow_pickle=False) as file:
        parts = [{key: file[f"{key}_{name}"] for key in KEYS} for name in HOSPITALS]
        variables, names = tuple(file["variables"].tolist()), tuple(file["static_names"].tolist())
    counts = np.concatenate([np.diff(part["offsets"]) for part in parts])
    static = np.concatenate([part["static"] for part in parts]).astype(np.float64)
    known = np.isfinite(static)
    stays, columns = np.nonzero(known)
    series = np.concatenate([np.repeat(np.arange(len(counts)), counts), stays])
    hour = np.concatenate([*(part["hour"] for part in parts), np.zeros(len(stays))]).astype(np.float64)
    channel = np.concatenate([*(part["var"] for part in parts), len(variables) + columns]).astype(np.int32)
    value = np.concatenate([*(part["value"] for part in parts), static[known]]).astype(np.float32)
    order = np.lexsort((channel, hour, series))
    series, hour, channel, value = series[order], hour[order], channel[order], value[order]
    first = np.append(True, (np.diff(series) != 0) | (np.diff(hour) != 0))
    rows = [np.diff(part["row_offsets"]) for part in parts]
    lengths = np.concatenate(rows)
    streams = Streams(
        schema=Schema((*variables, *names)),
        ids=np.concatenate([part["ids"] for part in parts]),
        offsets=offsets_of(np.bincount(series[first], minlength=len(counts))),
        times=hour[first],
        obs_offsets=np.append(np.flatnonzero(first), len(first)),
        channel=channel,
        value=value,
        horizon=lengths.astype(np.float64),
        terms=np.zeros((int(first.sum()), 0)),
    )
    return Hospitals(
        streams,
        offsets_of(lengths),
        np.concatenate([part["label_hourly"] for part in parts]).astype(np.int64),
        np.repeat(np.arange(len(parts)), [len(one) for one in rows]),
    )


KEYS = ("ids", "offsets", "row_offsets", "hour", "var", "value", "label_hourly", "static")


def split(hospital: Int64[np.ndarray, "stay"], protocol: Protocol, seed: int, stays: int = 0) -> Split:
    """From one hospital to the other, with a tenth of the first for validation; or 80/10/10 of both at random.

    `stays` limits how many of each part are used, 0 for all.
    """
    rng = np.random.default_rng(seed)
    if protocol == "random":
        order = rng.permutation(len(hospital))
        parts = np.split(order, [int(0.8 * len(order)), int(0.9 * len(order))])
    else:
        first = HOSPITALS.index(protocol[0])
        order = rng.permutation(np.flatnonzero(hospital == first))
        parts = [*np.split(order, [int(0.9 * len(order))]), np.flatnonzero(hospital != first)]
    return Split(*(np.sort(part[: stays or None]) for part in parts))


def inner(split: Split, seed: int) -> Split:
    """A split that scores the validation stays; a tenth of the training stays takes their place."""
    order = np.random.default_rng((seed, 1)).permutation(split.train)
    rest, known = np.split(order, [int(0.9 * len(order))])
    return Split(np.sort(rest), np.sort(known), split.validation)


def hourly(streams: Streams, rows: Int64[np.ndarray, "stay+1"]) -> Float32[np.ndarray, "row feature"]:
    """Last value, its age, count, mean, and change over 6 hours of each channel, at each hour, and the hour.

    Args:
        streams: Stays with observations at whole hours.
        rows: Where the hours of each stay begin, and the total.

    >>> streams = Streams.from_arrays([[0.0, 2.0]], [[[5.0], [9.0]]], horizon=8.0)
    >>> hourly(streams, np.array([0, 8]))[[1, 2, 7]].tolist()
    [[5.0, 1.0, 1.0, 5.0, nan, 1.0], [9.0, 0.0, 2.0, 7.0, nan, 2.0], [9.0, 5.0, 2.0, 7.0, 4.0, 7.0]]
    """
    total, channels = int(rows[-1]), len(streams.schema.channels)
    event = owners(streams.obs_offsets)
    place = rows[owners(streams.offsets)[event]] + streams.times[event].astype(np.int64)
    stay = owners(rows)
    start, hour = rows[stay], np.arange(total) - rows[stay]
    out = np.empty((total, PER_CHANNEL * channels + 1), np.float32)
    out[:, -1] = hour
    for channel in range(channels):
        mine = streams.channel == channel
        latest = np.full(total, -1)
        latest[place[mine]] = place[mine]
        value: Float64[np.ndarray, "row"] = np.zeros(total)
        value[place[mine]] = streams.value[mine]
        sums, counts = _since(value, start), _since(latest >= 0, start)
        latest = np.maximum.accumulate(latest)
        seen = latest >= start
        last = np.where(seen, value[latest], np.nan)
        before = np.full(total, np.nan)
        before[CHANGE:] = last[:-CHANGE]
        before[hour < CHANGE] = np.nan
        mean = np.divide(sums, counts, out=np.full(total, np.nan), where=seen)
        columns = last, np.where(seen, np.arange(total) - latest, np.nan), counts, mean, last - before
        out[:, PER_CHANNEL * channel : PER_CHANNEL * (channel + 1)] = np.stack(columns, axis=1)
    return out


CHANGE, PER_CHANNEL = 6, 5
"""Hours of the change, and features of each channel."""


def _since(values: np.ndarray, start: np.ndarray) -> Float64[np.ndarray, "row"]:
    """Sums from the first hour of a stay on."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return sums[1:] - sums[start]
