"""Workers on PostgreSQL and NATS that are killed, stopped and left without servers: `python -m tests.serve.chaos`.

Events of many series are published while workers come and go. In the end every event was taken once, every prediction
was sent once, in order, and each is that of a predictor that nobody disturbed.
"""

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import itertools
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import jax
import nats
import numpy as np
from rich.console import Console

import logcde as lc
from logcde.artefact.files import model_digest
from logcde.serve import partition_of
from logcde.serve.postgres import PostgresStore
from logcde.serve.store import Query, Retention
from tests.cli.streaming import a_model
from tests.serve.servers import Nats, Postgres, running
from tests.serve.serving import POINTS, Server

PARTITIONS = 4
TOGETHER = 20
"""Messages that are read at once."""
WINDOW = 0.5
"""Of reordering, so that an event that is taken twice is not refused."""
DOUBLING = """
from logcde.serve import sql
progress = sql.AbstractSqlStore.progress

def forgetful(*given):
    found = progress(*given)
    return type(found)(max(0, found.position - 12), found.published)

sql.AbstractSqlStore.progress = forgetful
"""
"""What switches off that a worker knows how far a partition was taken."""


@dataclasses.dataclass
class Faults:
    """What happens to workers and servers.

    `points` are kills at named points, `kills` kills at random, `stops` workers that stand still for longer than they
    may have a partition; then how often each server is killed. With `doubling`, workers take events again.
    """

    points: tuple[str, ...] = POINTS
    kills: int = 1
    stops: int = 0
    postgres: int = 1
    nats: int = 1
    doubling: bool = False


@dataclasses.dataclass
class Found:
    """What went wrong, which kills at points did not happen, and how many workers died."""

    lost: list
    doubled: list
    wrong: int
    unordered: int
    dead: list
    unsent: list
    resent: list
    missed: list
    deaths: int

    @property
    def well(self):
        """Whether nothing did."""
        return not any(value for name, value in vars(self).items() if name != "deaths")


def events_of(count, series, seed=0):
    """Events of many series, in order within each, with stamps that no other event of the series has."""
    rng, clock, found = np.random.default_rng(seed), collections.Counter(), []
    for _ in range(count):
        name = f"p{rng.integers(series)}"
        clock[name] += int(rng.integers(1, 4))
        values = {channel: float(rng.normal()) for channel in ("pulse", "temp")[: 1 + rng.integers(2)]}
        found.append({"series": name, "time": clock[name] / 64, "values": values})
    return found


def undisturbed(model, events):
    """The prediction after each event, by a predictor that takes all of its series."""
    fresh, predictors, found = lc.Predictor(model, reorder=WINDOW), {}, {}
    for one in events:
        predictor = predictors.setdefault(one["series"], fresh.copy())
        predictor.observe(one["time"], one["values"])
        found[one["series"], one["time"]] = predictor.predict(at=one["time"]).tolist()
    return found


class Workers:
    """Two workers, each started again when it has died."""

    def __init__(self, folder, postgres, broker, faults, chance):
        self._command = (
            folder, postgres, "--from", f"{broker}/vitals", "--to", f"{broker}/risk", "--partitions",
            f"0-{PARTITIONS - 1}", "--reorder", WINDOW, "--history", 100_000,
        )  # fmt: skip
        self._points, self._chance, self._doubling = list(faults.points), chance, faults.doubling
        self.servers, self.deaths = [None, None], 0

    def see_to(self):
        """Start those that are dead."""
        for place, server in enumerate(self.servers):
            if server is not None and server.process.poll() is None:
                continue
            if server is not None:
                self.deaths += 1
                server.__exit__()
            kill = (self._points.pop(0), self._chance.randint(1, 3)) if self._points else None
            self.servers[place] = Server(*self._command, kill=kill, before=DOUBLING if self._doubling else "")

    @property
    def doomed(self):
        """Whether some are still to be killed at points."""
        return bool(self._points) or any(one.kill is not None and one.process.poll() is None for one in self.servers)

    def signal(self, what):
        """Send a signal to one that runs; returns it."""
        server = self._chance.choice([one for one in self.servers if one.process.poll() is None] or self.servers)
        server.process.send_signal(what)
        return server

    def end(self):
        """End all; returns the points at which none was killed."""
        missed = self._points + [one.kill[0] for one in self.servers if one.kill and one.process.poll() is None]
        for server in self.servers:
            self.deaths += server.process.poll() is not None
            server.__exit__()
        return missed


async def disturb(workers, postgres, broker, faults, chance, over, finished):
    """Let happen what is to happen, one after another, and see to the workers; says when it is over."""
    happening = (
        ["kill"] * faults.kills + ["stop"] * faults.stops + ["postgres"] * faults.postgres + ["nats"] * faults.nats
    )
    chance.shuffle(happening)
    while not finished.is_set():
        await asyncio.to_thread(workers.see_to)
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        if workers.doomed:
            continue
        if not happening:
            over.set()
            continue
        match happening.pop():
            case "kill":
                workers.signal(signal.SIGKILL)
            case "stop":
                server = workers.signal(signal.SIGSTOP)
                await asyncio.sleep(15)
                server.process.send_signal(signal.SIGCONT)
            case "postgres":
                await asyncio.to_thread(postgres.kill)
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                await asyncio.to_thread(postgres.start)
            case "nats":
                await asyncio.to_thread(broker.kill)
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                await asyncio.to_thread(broker.start)


async def insist(call):
    """Ask a broker until it answers."""
    while True:
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            return await call()
        await asyncio.sleep(0.1)


async def publish(url, events, seconds, over):
    """Publish events over so many seconds, each once, by its place, which the broker knows to be taken.

    Partitions are published side by side, each in order. The last quarter comes slowly while faults are to happen.
    """
    connection = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=_quiet)
    context = connection.jetstream(timeout=2)
    began = time.monotonic()

    async def publish_partition(partition):
        for number, one in enumerate(events):
            if partition_of(one["series"], PARTITIONS) != partition:
                continue
            content, named = json.dumps(one).encode(), {"Nats-Msg-Id": str(number)}
            await insist(lambda c=content, n=named: context.publish(f"vitals.{partition}", c, headers=n))
            ahead = number / len(events) * seconds - (time.monotonic() - began)
            if ahead > 0 or number > 0.75 * len(events):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), max(ahead, 0.1))

    await asyncio.gather(*map(publish_partition, range(PARTITIONS)))
    await connection.close()


async def _quiet(error):
    """Brokers go and come."""


async def received(url, count, patience):
    """What is sent, until all is there or nothing comes for so many seconds."""
    connection = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=_quiet)
    context, found, last, place = connection.jetstream(timeout=2), [], time.monotonic(), 1
    while len(found) < count + 50 and time.monotonic() - last < (patience if len(found) < count else 2.0):
        some = await asyncio.gather(
            *(context.get_msg("risk", place + number) for number in range(TOGETHER)), return_exceptions=True
        )
        there = list(itertools.takewhile(lambda one: not isinstance(one, BaseException), some))
        found += [json.loads(message.data) for message in there]
        if there:
            last, place = time.monotonic(), place + len(there)
        else:
            await asyncio.sleep(0.05)
    await connection.close()
    return found


def attempt(folder, events, faults, seed=0, seconds=5.0, patience=60.0):
    """Publish events while all that happens, and see what was kept and sent."""
    chance, model = random.Random(seed), a_model()
    model.save(folder / "model")
    with running(Postgres(_made(folder / "postgres"))) as postgres, running(Nats(_made(folder / "nats"))) as broker:
        url = postgres.new()
        workers = Workers(folder / "model", url, broker.url, faults, chance)

        async def run():
            over, finished = asyncio.Event(), asyncio.Event()
            await asyncio.to_thread(workers.see_to)
            disturbing = asyncio.create_task(disturb(workers, postgres, broker, faults, chance, over, finished))
            publishing = asyncio.create_task(publish(broker.url, events, seconds, over))
            try:
                sent = await received(broker.url, len(events), patience)
                await publishing
            finally:
                finished.set()
                await disturbing
            return sent

        try:
            sent = asyncio.run(run())
        finally:
            missed = workers.end()
        return compare(url, folder / "model", model, events, sent, missed, workers.deaths)


def compare(url, folder, model, events, sent, missed, deaths):
    """What was kept and sent beside what was published."""
    expected = undisturbed(model, events)
    digest, facts = [model_digest(folder)], {"reordering": "yes"}
    with contextlib.closing(PostgresStore(url, digest, facts, Retention(history=100_000))) as store:
        series = [one for offset in range(0, 100_000, 1000) for one in store.page(Query(limit=1000, offset=offset))[1]]
        kept = collections.Counter((one.name, seen.stamp) for one in series for seen in store.history(one.key, 100_000))
        dead = [one.error for one in store.dead_letters(1000)]
    published = collections.Counter((one["series"], one["time"]) for one in events)
    out = collections.Counter((one["series"], one["time"]) for one in sent)
    latest, unordered = {}, 0
    for one in sent:
        unordered += latest.get(one["series"], -1.0) > one["time"]
        latest[one["series"]] = one["time"]
    known = [one for one in sent if (one["series"], one["time"]) in expected]
    wrong = sum(
        not np.allclose(one["prediction"], expected[one["series"], one["time"]], rtol=1e-9, atol=1e-12) for one in known
    )
    return Found(
        sorted((published - kept).elements()), sorted((kept - published).elements()), wrong, unordered, dead,
        sorted((published - out).elements()), sorted((out - published).elements()), missed, deaths,
    )  # fmt: skip


def _made(folder):
    folder.mkdir()
    return folder


def main():
    """Run once, with everything."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--events", type=int, default=20_000)
    given.add_argument("--series", type=int, default=200)
    given.add_argument("--seconds", type=float, default=120.0, help="over which events are published")
    given.add_argument("--kills", type=int, default=6)
    given.add_argument("--stops", type=int, default=2)
    given.add_argument("--servers", type=int, default=3, help="kills of each server")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--doubling", action="store_true", help="let workers forget how far they are: must fail")
    options = given.parse_args()
    jax.config.update("jax_enable_x64", True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the servers as well
    faults = Faults(
        kills=options.kills, stops=options.stops, postgres=options.servers, nats=options.servers,
        doubling=options.doubling,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        began = time.monotonic()
        events = events_of(options.events, options.series, options.seed)
        found = attempt(Path(name), events, faults, options.seed, options.seconds)
    console = Console()
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        console.print(f"{field.name}: {len(value) if isinstance(value, list) else value}")
    console.print(
        f"{options.events} events in {time.monotonic() - began:.0f} s: {'well' if found.well else 'NOT WELL'}"
    )
    raise SystemExit(found.well == options.doubling)


if __name__ == "__main__":
    main()
