"""Online equals offline through the whole service: `python -m benchmarks.care_replay` with stays in intensive care.

A model is trained on some stays of PhysioNet 2012. Others are replayed in the order of time, as a ward would send them:
over HTTP to a service with an SQLite store, and over NATS to two workers that share a store in PostgreSQL. Two numbers
of each stay are compared with those of the model offline: the prediction that came back after one of its events, with
the series up to that event; and the prediction that is asked for at 48 hours, with the whole stay.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import jax
import numpy as np
import tyro
from rich.console import Console

import logcde as lc
from examples.serving.servers import Nats, Postgres, Service, missing, running
from logcde._files import write_whole
from logcde._machine import machine, versions
from logcde.datasets.physionet import HOURS, PLAUSIBLE
from logcde.models import AbstractOnlineModel
from logcde.serve import partition_of

if TYPE_CHECKING:
    from nats.aio.msg import Msg

PARTITIONS = 4
RULE = lc.Partition.every(1.0)
UNCONFIRMED = 1000
"""Messages that the broker has not confirmed yet."""
AT_ONCE = 8
"""Requests for predictions at once."""
SILENCE = 60.0
"""Seconds without a prediction after which none is expected."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the replay."""

    stays: int = 1000
    """Stays that are replayed; 12,000 are all."""
    training: int = 500
    """Stays, the last ones, on which the model is trained for one epoch."""
    together: int = 500
    """Observations in a post."""
    seed: int = 0
    """Seed of the model and of the events after which predictions are compared."""
    out: Path = Path(__file__).parent / "care_replay.json"
    """File of the results."""


@dataclasses.dataclass(frozen=True)
class Replay:
    """What is replayed, and what offline predictions it has to give.

    Attributes:
        events: Observations, as they are sent, in the order of time.
        chosen: For stays with events after the start, the stamp of the one after which the prediction is compared.
        during: The offline prediction of the stay up to there.
        end: The offline prediction of the whole stay.
    """

    events: list[dict[str, Any]]
    chosen: dict[int, float]
    during: dict[int, float]
    end: dict[int, float]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a way through the service gave. Differences are absolute, and the largest of all stays."""

    way: str
    stays: int
    events: int
    observations: int
    predictions: int
    refused: int
    seconds: float
    difference_during: float
    difference_end: float
    largest_prediction: float


def train(streams: lc.Streams, died: np.ndarray, seed: int) -> tuple[AbstractOnlineModel, lc.Embedding]:
    """A linear CDE of all variables, their counts and time, trained for one epoch."""
    scaler = lc.scaling.ChannelScaler.fit(streams, limits=PLAUSIBLE)
    embedding = lc.Embedding(depth=1, scaler=scaler)
    logsigs = embedding(streams, RULE)
    keys = jax.random.split(jax.random.key(seed))
    model = lc.log_slice(
        logsigs.basis, hidden=16, block=4, outputs=1, scaling=lc.TotalStdScaling(), init_scale=0.05, key=keys[0]
    )
    result = lc.fit(
        model, logsigs, died.astype(float), duration=lc.Epochs(1), batching=lc.train.Batching(size=64),
        callbacks=(), key=keys[1],
    )  # fmt: skip
    assert isinstance(result.model, AbstractOnlineModel)
    return result.model, embedding


def replay_of(streams: lc.Streams, model: AbstractOnlineModel, embedding: lc.Embedding, seed: int) -> Replay:
    """The events of all stays, and their offline predictions."""
    rng, channels = np.random.default_rng(seed), streams.schema.channels
    rows, events, chosen = [], [], {}
    for stay, one in zip(streams.ids.tolist(), streams, strict=True):
        stamps = one.times.tolist()
        if later := [stamp for stamp in stamps if stamp > 0.0]:  # a series up to its start has no interval
            chosen[stay] = later[rng.integers(len(later))]
        for number, stamp in enumerate(stamps):
            pick = slice(one.obs_offsets[number], one.obs_offsets[number + 1])
            names = [channels[channel] for channel in one.channel[pick]]
            values = dict(zip(names, one.value[pick].tolist(), strict=True))
            events.append({"series": stay, "time": stamp, "values": values})
            if stamp <= chosen.get(stay, -1.0):
                rows.append((stay, stamp, values))
    events.sort(key=lambda event: event["time"])
    begun = lc.Streams.from_events(rows, horizon=chosen, schema=streams.schema)

    def offline(given: lc.Streams) -> dict[int, float]:
        found = np.asarray(lc.predict(model, lc.Inputs.of(embedding(given, RULE))))[:, 0]
        return dict(zip(given.ids.tolist(), found.tolist(), strict=True))

    return Replay(events, chosen, offline(begun), offline(streams))


def over_http(folder: Path, replay: Replay, together: int) -> Outcome:
    """Post all events to a service with an SQLite store."""
    began, after, counts = time.perf_counter(), {}, collections.Counter()
    with Service(folder / "model", folder / "state.db") as service:
        with httpx.Client(base_url=service.ready(), timeout=60.0) as client:
            for place in range(0, len(replay.events), together):
                reply = client.post("/observations", json=replay.events[place : place + together])
                for answer in reply.json()["answers"]:
                    counts["error" in answer] += 1
                    if answer.get("time") == replay.chosen.get(answer.get("series"), -1.0):
                        after[answer["series"]] = answer["prediction"][0]
        seconds = time.perf_counter() - began
        end = asyncio.run(predictions_at_end([service.ready()], list(replay.end)))
        service.stop()
    return _outcome("HTTP, SQLite", replay, after, end, counts[False], counts[True], seconds)


def over_nats(folder: Path, replay: Replay) -> Outcome:
    """Publish all events to two workers that share a store in PostgreSQL."""
    with contextlib.ExitStack() as stack:
        for name in ("nats", "postgres"):
            (folder / name).mkdir()
        broker = stack.enter_context(running(Nats(folder / "nats")))
        url = stack.enter_context(running(Postgres(folder / "postgres"))).new()
        began = time.perf_counter()
        workers = [
            stack.enter_context(
                Service(
                    folder / "model", url, "--from", f"{broker.url}/vitals", "--to", f"{broker.url}/risk",
                    "--partitions", f"0-{PARTITIONS - 1}",
                )
            )
            for _ in range(2)
        ]  # fmt: skip
        urls = [worker.ready() for worker in workers]
        sent = asyncio.run(_published(broker.url, replay.events))
        seconds = time.perf_counter() - began
        after = {
            one["series"]: one["prediction"][0] for one in sent if one["time"] == replay.chosen.get(one["series"])
        }  # fmt: skip
        end = asyncio.run(predictions_at_end(urls, list(replay.end)))
        refused = len(httpx.get(f"{urls[0]}dead-letters", timeout=60.0).json()["dead_letters"])
        for worker in workers:
            worker.stop()
    return _outcome("NATS, PostgreSQL, two workers", replay, after, end, len(sent), refused, seconds)


async def _published(url: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Publish events, and receive as many predictions."""
    import nats

    connection = await nats.connect(url)
    context, sent, newest = connection.jetstream(publish_async_max_pending=UNCONFIRMED), [], [time.monotonic()]

    async def take(message: "Msg") -> None:
        sent.append(json.loads(message.data))
        newest[0] = time.monotonic()

    await context.subscribe("risk.*", cb=take, ordered_consumer=True)
    for event in events:
        subject = f"vitals.{partition_of(event['series'], PARTITIONS)}"
        await context.publish_async(subject, json.dumps(event).encode(), wait_stall=SILENCE)
    await context.publish_async_completed()
    while len(sent) < len(events) and time.monotonic() - newest[0] < SILENCE:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)  # for what would be too much
    await connection.close()
    return sent


async def predictions_at_end(urls: list[str], stays: list[int]) -> dict[int, float]:
    """The predictions of stays at 48 hours, asked for at one service after another in turn."""
    found: dict[int, float] = {}

    async def ask(client: httpx.AsyncClient, place: int) -> None:
        for number in range(place, len(stays), AT_ONCE):
            address = f"{urls[number % len(urls)]}series/{stays[number]}?at={HOURS}&history=1"
            answer = await client.get(address)
            found[stays[number]] = answer.json()["prediction"][0]

    async with httpx.AsyncClient(timeout=60.0) as client:
        await asyncio.gather(*(ask(client, place) for place in range(AT_ONCE)))
    return found


def _outcome(
    way: str,
    replay: Replay,
    after: dict[int, float],
    end: dict[int, float],
    predictions: int,
    refused: int,
    seconds: float,
) -> Outcome:
    def difference(offline: dict[int, float], online: dict[int, float]) -> float:
        assert offline.keys() == online.keys(), f"{len(online)} of {len(offline)} stays have a prediction."
        return max(abs(offline[stay] - online[stay]) for stay in offline)

    return Outcome(
        way, len(replay.end), len(replay.events), sum(len(one["values"]) for one in replay.events), predictions,
        refused, seconds, difference(replay.during, after), difference(replay.end, end),
        max(map(abs, replay.end.values())),
    )  # fmt: skip


def replayed(options: Options) -> Iterator[Outcome]:
    """Train, and replay in both ways."""
    data = lc.datasets.physionet2012()
    model, embedding = train(
        data.streams[-options.training :], data.died[-options.training :], options.seed
    )  # fmt: skip
    replay = replay_of(data.streams[: options.stays], model, embedding, options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        model.save(folder / "model")
        yield over_http(folder, replay, options.together)
        yield over_nats(folder, replay)


def main(options: Options) -> None:
    """Replay, print what was found and write the file."""
    if (found := missing()) is not None:
        raise SystemExit(found)
    outcomes = []
    for outcome in replayed(options):
        outcomes.append(dataclasses.asdict(outcome))
        Console().print(outcomes[-1])
    kept = {name: value for name, value in vars(options).items() if name != "out"}
    content = {"machine": machine(), "versions": versions(), "options": kept, "ways": outcomes}
    write_whole(options.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
