"""Real data, if LOGCDE_DATA has it: irregular stays in intensive care, and hourly air quality with gaps."""

import os
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars
import pytest

from logcde.streams import Average, Calendar, Drop, Partition, Streams

FOLDER = os.environ.get("LOGCDE_DATA")


def load(name):
    if FOLDER is None or not Path(FOLDER, name).exists():
        pytest.skip(f"{name} is not in LOGCDE_DATA")
    return np.load(Path(FOLDER, name), allow_pickle=False)


def test_streams_of_physionet2012():
    data = load("PhysioNet2012.npz")
    stay = np.repeat(np.arange(len(data["ids_a"])), np.diff(data["offsets_a"]))
    frame = polars.DataFrame(
        {
            "series": data["ids_a"][stay],
            "time": data["t_min_a"] / 60,
            "channel": data["variables"][data["var_a"]].astype(object),
            "value": data["value_a"],
        }
    )
    options = {"channels": data["variables"].tolist(), "horizon": 48.0, "duplicates": Average(), "empty": Drop()}
    streams = Streams.from_frame(frame, **options)
    stamp = stay * 10_000 + data["t_min_a"]
    assert len(streams.value) == len(np.unique(stamp * 100 + data["var_a"]))
    assert len(streams.times) == len(np.unique(stamp))
    assert np.isin(streams.ids, data["ids_a"]).all()
    summary = streams.describe()
    assert summary.observations == summary.channel_observations.sum() == len(streams.value)
    assert Streams.from_frame(streams.to_frame(), horizon=48.0) == streams
    assert len(Partition.every(1.0).cuts(streams).points) == 49 * len(streams)


def test_streams_of_beijing_pm25():
    data = load("BeijingPM25.npz")
    year, month, day, hour = (data[name].tolist() for name in ("year", "month", "day", "hour"))
    stamps = [datetime(*parts) for parts in zip(year, month, day, hour, strict=True)]
    stamps = np.array(stamps, "datetime64[h]")
    streams = Streams.from_dense(data["values"][None], stamps, data["columns"].tolist(), unit=timedelta(days=1))
    assert len(streams.times) == 43_824
    assert len(streams.value) == 43_824 * 7 - 2_067
    assert np.array_equal(streams.to_frame()["time"].unique(maintain_order=True).to_numpy(), stamps)
    months = Partition.calendar(Calendar.MONTH).cuts(streams).points
    assert len(months) == 61
    assert months[1] == 31.0
