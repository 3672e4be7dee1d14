"""Load on `logcde serve` with its embedded store: `python -m benchmarks.serving`.

The service is a process of its own on loopback; the generator shares the machine with it. Clients post observations of
series in turn, with event ids, and wait for each answer, which is durable and has a prediction for every observation.
"""

import asyncio
import contextlib
import dataclasses
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import logcde as lc
from logcde._files import write_whole
from logcde._machine import machine, versions


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the measurement."""

    series: int = 10_000
    """Series, which take turns."""
    posts: tuple[int, ...] = (1, 20, 200)
    """Observations in a post, one measurement for each."""
    clients: int = 16
    """Posts at once."""
    seconds: float = 10.0
    """Duration of each measurement."""
    seed: int = 0
    """Seed of the values."""
    out: Path = Path(__file__).parent / "serving.json"
    """File of all measurements."""


def save_model(folder: Path) -> None:
    """A linear CDE of three channels at depth 2, hourly intervals, hidden size 32, as `fit` would return it."""
    rng = np.random.default_rng(0)
    streams = lc.Streams.from_dense(rng.normal(size=(64, 24, 3)), channels=["pulse", "temp", "lactate"], horizon=24.0)
    logsigs = lc.Embedding(depth=2)(streams, lc.Partition.every(1.0))
    model = lc.log_slice(logsigs.basis, hidden=32, outputs=2, scaling=lc.IncrementRMSScaling(), key=jax.random.key(0))
    lc.fit(model, logsigs, rng.normal(size=(64, 2)), duration=lc.Epochs(1), key=jax.random.key(1)).model.save(folder)


class Load:
    """Observations of many series in turn, and what their posts took."""

    def __init__(self, series: int, seed: int) -> None:
        self._series, self._rng = series, np.random.default_rng(seed)
        self._sent, self.seconds, self.taken = 0, [], 0

    def batch(self, count: int) -> bytes:
        """The next observations."""
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        values = self._rng.normal(size=count).tolist()
        names = ("pulse", "temp", "lactate")
        return json.dumps(
            [
                {
                    "series": f"s{number % self._series}",
                    "time": (1 + number // self._series) / 8,
                    "values": {names[number % 3]: value},
                    "id": str(number),
                }
                for number, value in zip(numbers, values, strict=True)
            ]
        ).encode()

    async def run(self, url: str, clients: int, count: int, seconds: float) -> None:
        """Post from many clients for so long."""
        end = time.perf_counter() + seconds
        # A series is posted by one client at a time as long as all posts together have fewer observations than series.
        assert clients * count <= self._series

        async def post(client: httpx.AsyncClient) -> None:
            while time.perf_counter() < end:
                body, begin = self.batch(count), time.perf_counter()
                answer = await client.post("/observations", content=body, headers={"content-type": "application/json"})
                self.seconds.append(time.perf_counter() - begin)
                assert answer.status_code == 200, answer.text[:500]
                self.taken += count

        async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
            await asyncio.gather(*(post(client) for _ in range(clients)))


def measure(options: Options) -> list[dict[str, float]]:
    """Observations in a second and durations of posts, for each size of posts; each on a new store."""
    found = []
    with tempfile.TemporaryDirectory() as name, Progress(console=Console(stderr=True)) as progress:
        folder = Path(name)
        save_model(folder / "model")
        for count in progress.track(options.posts, description="measuring"):
            found.append(_run(folder / "model", folder / f"{count}.db", count, options))
    return found


def _run(model: Path, store: Path, count: int, options: Options) -> dict[str, float]:
    command = [sys.executable, "-m", "logcde", "serve", str(model), "--store", str(store), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        try:
            words = service.stderr.readline().split()
            url = next(word.rstrip(",") for word in words if word.startswith("http"))
            load = Load(options.series, options.seed)
            begin = time.perf_counter()
            asyncio.run(load.run(url, options.clients, count, options.seconds))
            seconds = time.perf_counter() - begin
            memory = _resident(service.pid)
            service.send_signal(signal.SIGTERM)
            service.wait(30)
        finally:
            service.kill()
    p50, p99 = np.quantile(load.seconds, [0.5, 0.99]).tolist()
    return {
        "observations_in_a_post": count,
        "observations": load.taken,
        "observations_per_second": load.taken / seconds,
        "p50_seconds": p50,
        "p99_seconds": p99,
        "series": min(options.series, load.taken),
        "resident_bytes": memory,
        "store_bytes": store.stat().st_size,
        "state_bytes": _state_bytes(store),
    }


def _resident(process: int) -> int:
    """Bytes of memory of a process, where the system tells; 0 elsewhere."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), 0)


def _state_bytes(store: Path) -> float:
    """Mean bytes of the state of a series."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT avg(length(state)) FROM states").fetchone()[0]


def table(found: list[dict[str, float]]) -> Table:
    """One row for each size of posts."""
    shown = Table(
        "in a post", "observations/s", "p50 ms", "p99 ms", "series", "memory MB", "store MB", "state bytes",
        title="logcde serve with SQLite, generator on the same machine",
    )  # fmt: skip
    for one in found:
        shown.add_row(
            f"{one['observations_in_a_post']:,}",
            f"{one['observations_per_second']:,.0f}",
            f"{1000 * one['p50_seconds']:.1f}",
            f"{1000 * one['p99_seconds']:.1f}",
            f"{one['series']:,}",
            f"{one['resident_bytes'] / 1e6:.0f}",
            f"{one['store_bytes'] / 1e6:.1f}",
            f"{one['state_bytes']:.0f}",
        )
    return shown


def main() -> None:
    """Measure, print the table and write the file."""
    options = tyro.cli(Options, description=__doc__)
    found = measure(options)
    kept = {name: value for name, value in vars(options).items() if name != "out"}
    content = {"machine": machine(), "versions": versions(), "options": kept, "runs": found}
    write_whole(options.out, json.dumps(content, indent=1) + "\n")
    Console().print(table(found))


if __name__ == "__main__":
    main()
