"""What a model of depth two costs as channels are added: `python -m benchmarks.channels`.

Series of the same number of observations, spread over more and more channels, are embedded in sparse form and train a
Log-BD-SLiCE for an epoch. Each number of channels is measured in a process of its own, whose peak memory is then known;
a finished one is kept in `channels.json`, so that an interrupted run goes on where it was. With `--data`, stays of
PhysioNet 2012 train the same model at depth one and two.
"""

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

import logcde as lc
from logcde._files import write_whole
from logcde._machine import machine, versions
from logcde.datasets.physionet import physionet2012
from logcde.embedding import SparseLogSignatures
from logcde.models import SequenceModel
from logcde.plot.style import figure_of, save

CHANNELS = (10, 30, 100, 300, 1000)
HOURS = (1, 4)
STAYS = 4_000
MEGABYTE = 2**20


@dataclasses.dataclass(frozen=True)
class Size:
    """What all numbers of channels have in common."""

    series: int = 10_000
    observations: int = 300
    intervals: int = 24
    hidden: int = 64
    block: int = 4
    epochs: int = 3
    seed: int = 0


def streams_of(size: Size, channels: int) -> lc.Streams:
    """Series of one asynchronous observation at a time, at random times in random channels.

    >>> streams_of(Size(series=3, observations=5), 100)
    Streams: 3 series, 15 events, 15 observations
      channels  c0, c1, c2, c3, c4, c5, ... (100)
      horizon   24
    """
    rng = np.random.default_rng(size.seed)
    times = np.sort(rng.uniform(0, 24, (size.series, size.observations)))
    channel, value = rng.integers(0, channels, times.shape), rng.normal(size=times.shape)
    return lc.Streams(
        schema=lc.Schema(tuple(f"c{number}" for number in range(channels))),
        ids=np.arange(size.series),
        offsets=np.arange(size.series + 1) * size.observations,
        times=times.ravel(),
        obs_offsets=np.arange(times.size + 1),
        channel=channel.ravel().astype(np.int32),
        value=value.ravel(),
        horizon=np.full(size.series, 24.0),
        terms=np.zeros((times.size, 0)),
    )


def measure(size: Size, channels: int) -> dict[str, Any]:
    """Seconds and peak memory of embedding, and seconds of an epoch without compiling."""
    streams, partition = streams_of(size, channels), lc.Partition.uniform(size.intervals)
    embedding = lc.Embedding(depth=2, dtype=np.float32)
    embedding(streams[:50], partition, sparse=True)  # compiles
    before = _peak()
    logsigs = embedding(streams, partition, sparse=True)
    after, seconds = _peak(), []
    for _ in range(3):
        start = time.perf_counter()
        embedding(streams, partition, sparse=True)
        seconds.append(time.perf_counter() - start)
    labels = np.random.default_rng(size.seed).integers(0, 2, size.series)
    # Scaled by totals: letters that seldom move would have large increments otherwise, and states would overflow.
    model = lc.log_slice(
        logsigs.basis, size.hidden, 2, block=size.block, scaling=lc.scaling.TotalStdScaling(), init_scale=0.02,
        key=jax.random.key(0),
    )  # fmt: skip

    epoch, _ = epoch_of(size, model, logsigs, labels)
    return {
        "channels": channels,
        "coordinates": logsigs.basis.dimension,
        "kept_per_interval": float(len(logsigs.values) / len(logsigs.counts)),
        "embed_seconds": float(np.median(seconds)),
        "embed_megabytes": (after - before) / MEGABYTE,
        "result_megabytes": sum(leaf.nbytes for leaf in (logsigs.values, logsigs.letters, logsigs.counts)) / MEGABYTE,
        "dense_megabytes": len(logsigs.counts) * logsigs.basis.dimension * 4 / MEGABYTE,
        "epoch_seconds": epoch,
    }


def epoch_of(
    size: Size, model: SequenceModel, logsigs: lc.LogSignatures | SparseLogSignatures, labels: np.ndarray
) -> tuple[float, float]:
    """Seconds, and seconds of processors, of an epoch without compiling."""

    def train(epochs: int) -> np.ndarray:
        start = np.array([time.perf_counter(), time.process_time()])
        lc.fit(
            model, logsigs, labels, loss=lc.losses.cross_entropy, duration=lc.Epochs(epochs), key=jax.random.key(1),
            selection=lc.train.Selection(validation=None), callbacks=(),
        )  # fmt: skip
        return np.array([time.perf_counter(), time.process_time()]) - start

    train(1)  # compiles
    seconds = (train(1 + size.epochs) - train(1)) / size.epochs
    return float(seconds[0]), float(seconds[1])


def measure_stays(size: Size, data: str | None) -> list[dict[str, Any]]:
    """Seconds of an epoch on stays of intensive care, for each length of interval, depth and form."""
    stays = physionet2012(data)
    streams, rows = stays.streams[:STAYS], []
    scaler = lc.ChannelScaler.fit(streams)
    for hours in HOURS:
        partition = lc.Partition.uniform(48 // hours)
        for depth, sparse in ((1, False), (2, True), (2, False)):
            logsigs = lc.Embedding(depth, scaler=scaler, dtype=np.float32)(streams, partition, sparse=sparse)
            model = lc.log_slice(
                logsigs.basis, size.hidden, 2, block=size.block, scaling=lc.IncrementRMSScaling(), init_scale=0.02,
                key=jax.random.key(0),
            )  # fmt: skip
            epoch, processor = epoch_of(size, model, logsigs, stays.died[:STAYS].astype(int))
            form = logsigs.fastest if isinstance(logsigs, SparseLogSignatures) else "dense"
            rows.append(
                {"hours": hours, "depth": depth, "form": form, "coordinates": logsigs.basis.dimension,
                 "epoch_seconds": epoch, "epoch_processor_seconds": processor}
            )  # fmt: skip
    return rows


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document, indent=1).encode() + b"\n")


def plot(rows: Sequence[dict[str, Any]], file: Path) -> Path:
    """Draw seconds against the number of channels."""
    figure = figure_of(6.4, 3.6)
    axes = figure.subplots()
    channels = [row["channels"] for row in rows]
    for name, label in (("embed_seconds", "embed"), ("epoch_seconds", "an epoch of training")):
        axes.loglog(channels, [row[name] for row in rows], marker="o", label=label)
    axes.set_xlabel("channels, with 300 observations of each series")
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0.1)
    axes.legend(frameon=False)
    return save(figure, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, print a line for each number of channels, write the file and the figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.channels", description="What a model of depth two costs as channels are added."
    )
    parser.add_argument("--series", type=int, default=Size.series, help="number of series")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of channels.json and .png")
    parser.add_argument("--channels", type=int, nargs="+", default=CHANNELS, help="numbers of channels")
    parser.add_argument("--one", type=int, help="measure one number of channels in this process and print JSON")
    parser.add_argument("--data", help="folder with PhysioNet 2012: train on its stays as well")
    options = parser.parse_args(arguments)
    size = Size(series=options.series)
    if options.one is not None:
        sys.stdout.write(json.dumps(measure(size, options.one)))
        return 0
    path, console = options.out / "channels.json", Console(width=150)
    found = json.loads(path.read_text()) if path.exists() else {}
    rows = found.get("rows", []) if found.get("size") == dataclasses.asdict(size) else []
    for channels in options.channels:
        if channels not in [row["channels"] for row in rows]:
            command = [
                sys.executable,
                "-m",
                "benchmarks.channels",
                "--series",
                str(size.series),
                "--one",
                str(channels),
            ]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ)
            rows = sorted([*rows, json.loads(done.stdout)], key=lambda row: row["channels"])
            document = {"size": dataclasses.asdict(size), "machine": machine(), "versions": versions(), "rows": rows}
            found = {**found, **document}
            _write(path, found)
        row = next(row for row in rows if row["channels"] == channels)
        console.print(
            f"{channels:>5} channels, {row['coordinates']:>9,} coordinates: embedded in {row['embed_seconds']:.1f} s "
            f"and {row['embed_megabytes']:,.0f} MB (dense {row['dense_megabytes']:,.0f} MB), "
            f"an epoch {row['epoch_seconds']:.1f} s",
            highlight=False,
        )
    if options.data:
        found["stays"] = measure_stays(size, options.data)
        _write(path, found)
        for row in found["stays"]:
            console.print(
                f"stays, {row['hours']} h, depth {row['depth']}, {row['form']}: an epoch {row['epoch_seconds']:.2f} s, "
                f"processor {row['epoch_processor_seconds']:.2f} s",
                highlight=False,
            )
    plot(rows, options.out / "channels.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
