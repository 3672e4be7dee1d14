"""Load on `logcde serve`, embedded and on servers: `python -m benchmarks.serving`.

Services are processes of their own on loopback, and share the machine with the generator, PostgreSQL and NATS, which
come from wheels. Clients post observations of series in turn, with event ids, and wait for each answer, which is
durable and has a prediction for every observation. Over NATS, two workers take what is published, and send predictions
back.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jax
import nats
import numpy as np
import psycopg
import tyro
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import logcde as lc
from examples.serving.servers import Nats, Postgres, running
from logcde._files import write_whole
from logcde._machine import machine, versions
from logcde.serve import partition_of

PARTITIONS = 4


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the measurement."""

    series: int = 10_000
    """Series, which take turns."""
    stores: tuple[str, ...] = ("sqlite", "postgres")
    """Stores of the services that are posted to."""
    posts: tuple[int, ...] = (1, 20, 200)
    """Observations in a post, one measurement for each."""
    clients: int = 16
    """Posts at once."""
    seconds: float = 10.0
    """Duration of each measurement."""
    many: int = 100_000
    """Series of the measurement of memory, with four observations each; 0 for none."""
    published: int = 50_000
    """Observations that are published over NATS as fast as they are taken; 0 for none."""
    rate: float = 500.0
    """Observations in a second that are published to measure how long a prediction takes."""
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

    def observations(self, count: int) -> list[dict[str, Any]]:
        """The next observations."""
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        values = self._rng.normal(size=count).tolist()
        names = ("pulse", "temp", "lactate")
        return [
            {
                "series": f"s{number % self._series}",
                "time": (1 + number // self._series) / 8,
                "values": {names[number % 3]: value},
                "id": str(number),
            }
            for number, value in zip(numbers, values, strict=True)
        ]

    def batch(self, count: int) -> bytes:
        """The next observations as a body."""
        return json.dumps(self.observations(count)).encode()

    async def run(self, url: str, clients: int, count: int, *, seconds: float = np.inf, most: float = np.inf) -> None:
        """Post from many clients for so long, or so many observations."""
        end = time.perf_counter() + seconds
        # A series is posted by one client at a time as long as all posts together have fewer observations than series.
        assert clients * count <= self._series

        async def post(client: httpx.AsyncClient) -> None:
            while time.perf_counter() < end and self._sent < most:
                body, begin = self.batch(count), time.perf_counter()
                answer = await client.post("/observations", content=body, headers={"content-type": "application/json"})
                self.seconds.append(time.perf_counter() - begin)
                assert answer.status_code == 200, answer.text[:500]
                self.taken += count

        async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
            await asyncio.gather(*(post(client) for _ in range(clients)))


@contextlib.contextmanager
def service(*options: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`logcde serve` in a process of its own, and its address."""
    command = [sys.executable, "-m", "logcde", "serve", *map(str, options), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            words = process.stderr.readline().split()
            yield next(word.rstrip(",") for word in words if word.startswith("http")), process
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()


class Measuring:
    """The measurements, on servers that run meanwhile."""

    def __init__(self, options: Options, folder: Path, postgres: Postgres, broker: Nats) -> None:
        self._options, self._folder, self._postgres, self._broker = options, folder, postgres, broker
        self._stores = 0
        save_model(folder / "model")

    def _store(self, kind: str) -> str:
        """A new store."""
        self._stores += 1
        return self._postgres.new() if kind == "postgres" else str(self._folder / f"{self._stores}.db")

    def posted(self, kind: str, count: int) -> dict[str, Any]:
        """Observations in a second and durations of posts, on a new store."""
        store, load = self._store(kind), Load(self._options.series, self._options.seed)
        with service(self._folder / "model", "--store", store) as (url, process):
            begin = time.perf_counter()
            asyncio.run(load.run(url, self._options.clients, count, seconds=self._options.seconds))
            seconds = time.perf_counter() - begin
            memory = _resident(process.pid)
        p50, p99 = np.quantile(load.seconds, [0.5, 0.99]).tolist()
        return {
            "store": kind,
            "observations_in_a_post": count,
            "observations": load.taken,
            "observations_per_second": load.taken / seconds,
            "p50_seconds": p50,
            "p99_seconds": p99,
            "series": min(self._options.series, load.taken),
            "resident_bytes": memory,
            **_sizes(store),
        }

    def many(self) -> dict[str, Any]:
        """Memory and sizes with many series."""
        count, store = self._options.many, self._store("sqlite")
        load = Load(count, self._options.seed)
        with service(self._folder / "model", "--store", store, "--max-series", count) as (url, process):
            empty = _resident(process.pid)
            asyncio.run(load.run(url, 4, min(500, count // 4), most=4 * count))
            memory = _resident(process.pid)
        sizes = {"empty_resident_bytes": empty, "resident_bytes": memory, **_sizes(store)}
        return {"store": "sqlite", "series": count, "observations": load.taken, **sizes}

    def published(self) -> dict[str, Any]:
        """Observations in a second over NATS and two workers on PostgreSQL, and how long predictions take."""
        store, broker = self._store("postgres"), self._broker.url
        options = (
            self._folder / "model", "--store", store, "--from", f"{broker}/vitals", "--to", f"{broker}/risk",
            "--partitions", f"0-{PARTITIONS - 1}",
        )  # fmt: skip
        with service(*options), service(*options):
            return asyncio.run(self._through(broker)) | _sizes(store)

    async def _through(self, broker: str) -> dict[str, Any]:
        connection = await nats.connect(broker)
        context, load = connection.jetstream(), Load(self._options.series, self._options.seed)

        async def publish(count: int, rate: float) -> None:
            begin = time.perf_counter()
            for number, one in enumerate(load.observations(count)):
                subject = f"vitals.{partition_of(one['series'], PARTITIONS)}"
                await connection.publish(subject, json.dumps(one).encode())
                ahead = number / rate - (time.perf_counter() - begin)
                if ahead > 0.001:
                    await asyncio.sleep(ahead)
            await connection.flush()

        async def predicted(count: int) -> None:
            while (await context.stream_info("risk")).state.messages < count:
                await asyncio.sleep(0.01)

        try:
            first = 2000  # until both workers have partitions
            await publish(first, np.inf)
            await predicted(first)
            begin = time.perf_counter()
            await publish(count := self._options.published, np.inf)
            await predicted(first + count)
            seconds = time.perf_counter() - begin
            slow = round(5 * self._options.rate)
            await publish(slow, self._options.rate)
            await predicted(first + count + slow)
            waits = await _waits(context, slow)
        finally:
            await connection.close()
        p50, p99 = np.quantile(waits, [0.5, 0.99]).tolist()
        return {
            "store": "postgres",
            "workers": 2,
            "observations": count,
            "observations_per_second": count / seconds,
            "rate": self._options.rate,
            "p50_seconds": p50,
            "p99_seconds": p99,
        }


async def _waits(context: Any, count: int) -> list[float]:
    """Seconds from an observation in its stream to its prediction in the other, of the last ones."""

    async def times(stream: str) -> dict[tuple[Any, Any], float]:
        last = (await context.stream_info(stream)).state.last_seq
        found = {}
        for begin in range(last - count + 1, last + 1, 50):
            some = range(begin, min(begin + 50, last + 1))
            for message in await asyncio.gather(*(context.get_msg(stream, number) for number in some)):
                content = json.loads(message.data)
                found[content["series"], content["time"]] = message.time.timestamp()
        return found

    observed, predicted = await times("vitals"), await times("risk")
    return [predicted[key] - observed[key] for key in observed]


def _resident(process: int) -> int:
    """Bytes of memory of a process, where the system tells; 0 elsewhere."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), 0)


def _sizes(store: str) -> dict[str, float]:
    """Bytes of a store, and mean bytes of the state of a series."""
    mean = "SELECT avg(length(state)) FROM {}states"
    if store.startswith("postgresql:"):
        with psycopg.connect(store) as connection:
            rows = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            states = connection.execute(mean.format("logcde.").encode()).fetchone()
            return {"store_bytes": rows[0] if rows else 0, "state_bytes": float(states[0]) if states else 0.0}
    with contextlib.closing(sqlite3.connect(store)) as connection:
        return {
            "store_bytes": Path(store).stat().st_size,
            "state_bytes": connection.execute(mean.format("")).fetchone()[0],
        }


def measure(options: Options) -> dict[str, Any]:
    """All measurements, each on a new store."""
    with contextlib.ExitStack() as until_done:
        folder = Path(until_done.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        for name in ("postgres", "nats"):
            (folder / name).mkdir()
        postgres = until_done.enter_context(running(Postgres(folder / "postgres")))
        broker = until_done.enter_context(running(Nats(folder / "nats")))
        measuring = Measuring(options, folder, postgres, broker)
        progress = until_done.enter_context(Progress(console=Console(stderr=True)))
        wanted = [(store, count) for store in options.stores for count in options.posts]
        runs = [measuring.posted(*one) for one in progress.track(wanted, description="posting")]
        found: dict[str, Any] = {"runs": runs}
        if options.published:
            found["published"] = measuring.published()
        if options.many:
            found["many"] = measuring.many()
        return found


def tables(found: dict[str, Any]) -> Iterator[Table]:
    """What was measured, a row for each measurement."""
    shown = Table(
        "store", "in a post", "observations/s", "p50 ms", "p99 ms", "series", "memory MB", "store MB", "state bytes",
        title="logcde serve, generator and servers on the same machine",
    )  # fmt: skip
    rows = [*found["runs"], *(found[name] for name in ("published", "many") if name in found)]
    for one in rows:
        shown.add_row(
            one["store"],
            str(one.get("observations_in_a_post", "NATS" if "workers" in one else "500")),
            _number(one.get("observations_per_second"), ",.0f"),
            _number(one.get("p50_seconds"), ".1f", 1000),
            _number(one.get("p99_seconds"), ".1f", 1000),
            _number(one.get("series"), ",.0f"),
            _number(one.get("resident_bytes"), ",.0f", 1e-6),
            _number(one["store_bytes"], ",.1f", 1e-6),
            _number(one["state_bytes"], ",.0f"),
        )
    yield shown


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "" if value is None else format(scale * value, form)


def main() -> None:
    """Measure, print the table and write the file."""
    options = tyro.cli(Options, description=__doc__)
    found = measure(options)
    kept = {name: value for name, value in vars(options).items() if name != "out"}
    content = {"machine": machine(), "versions": versions(), "options": kept, **found}
    write_whole(options.out, json.dumps(content, indent=1) + "\n")
    for one in tables(found):
        Console().print(one)


if __name__ == "__main__":
    main()
