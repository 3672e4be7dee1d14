"""A ward on real servers in one command: a feed simulator, two workers that share it, and the page.

    python -m examples.serving
    python -m examples.serving --seconds 60 --kill-after 20

It starts NATS and PostgreSQL on free ports of loopback, trains a small model, and ends everything when it ends.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from examples.serving import ward
from examples.serving.servers import Nats, Postgres, Service, missing, running
from logcde.serve import partition_of

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

PARTITIONS = 4
INCOMING, OUTGOING = "vitals", "risk"
EVERY = 2.0
"""Seconds between two lines."""
PATIENCE = 60.0
"""Seconds in which the last predictions have to come."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the example."""

    patients: int = 200
    """Patients in the ward."""
    rate: float = 100.0
    """Events in a second."""
    seconds: float | None = None
    """End after so many seconds; by default with Ctrl-C."""
    kill_after: float | None = None
    """Kill the second worker after so many seconds, by kill -9."""
    model: Path | None = None
    """Folder of a saved model with channels of the ward (pulse, temp, oxygen); by default one is trained."""
    alert: str | None = "ill:0.7:0.5"
    """Alert as of `logcde serve`; `None` for none."""
    seed: int = 0
    """Seed of the ward."""


class Tally:
    """What was published, and what came back."""

    def __init__(self) -> None:
        self.waiting: dict[str, collections.deque[float]] = collections.defaultdict(collections.deque)
        """For each patient, when the events were published whose predictions are to come."""
        self.published = self.refused = self.predicted = self.alerts = self.doubled = 0
        self.lag = 0.0
        self._last: dict[str, int] = {}

    def send(self, event: ward.Event) -> None:
        """Note an event that is published."""
        self.published += 1
        if event.good:
            self.waiting[event.series].append(time.monotonic())
        else:
            self.refused += 1

    def receive(self, subject: str, number: int, content: dict[str, str]) -> None:
        """Note a prediction or an alert. Numbers of a subject grow."""
        if number <= self._last.get(subject, 0):
            self.doubled += 1
            return
        self._last[subject] = number
        if content["kind"] == "alert":
            self.alerts += 1
            return
        times = self.waiting[content["series"]]
        if not times:
            self.doubled += 1
            return
        self.lag = time.monotonic() - times.popleft()
        self.predicted += 1

    @property
    def missing(self) -> int:
        """Predictions that are to come."""
        return self.published - self.refused - self.predicted

    def __str__(self) -> str:
        return (
            f"published {self.published:,}, of them {self.refused:,} impossible or too late; received "
            f"{self.predicted:,} predictions, alerts: {self.alerts:,}; {self.missing:,} to come, "
            f"{1000 * self.lag:.0f} ms behind"
        )


class Ward:
    """The feed simulator and its audience, on a broker.

    Args:
        broker: Address of the broker.
        workers: The services.
        options: What is to happen.
    """

    def __init__(self, broker: str, workers: list[Service], options: Options) -> None:
        self.tally, self._broker, self._workers, self._options = Tally(), broker, workers, options
        self._over = asyncio.Event()
        self._taking_over = False

    @property
    def _served(self) -> bool:
        return any(one.runs for one in self._workers)

    async def run(self) -> None:
        """Publish events until the time is over or a signal arrives, and wait for all predictions."""
        import nats

        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._over.set)
        connection = await nats.connect(self._broker)
        await connection.jetstream().subscribe(f"{OUTGOING}.*", cb=self._take, ordered_consumer=True)
        tasks = [loop.create_task(self._show())]
        if self._options.kill_after is not None:
            loop.call_later(self._options.kill_after, lambda: tasks.append(loop.create_task(self._kill())))
        if self._options.seconds is not None:
            loop.call_later(self._options.seconds, self._over.set)
        try:
            await self._publish(connection)
            end = time.monotonic() + PATIENCE
            while (self.tally.missing or self._taking_over) and time.monotonic() < end and self._served:
                await asyncio.sleep(0.05)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await connection.close()
            for one in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(one)

    async def _publish(self, connection: "Client") -> None:
        context, began = connection.jetstream(), time.monotonic()
        for number, (_, event) in enumerate(ward.feed(self._options.patients, self._options.seed)):
            ahead = began + number / self._options.rate - time.monotonic()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), max(ahead, 0.0))
            if self._over.is_set() or not self._served:
                return
            self.tally.send(event)
            # All events of a patient go to one partition, and the broker takes an event that is sent again once.
            await context.publish(
                f"{INCOMING}.{partition_of(event.series, PARTITIONS)}",
                json.dumps(event.content).encode(),
                headers={"Nats-Msg-Id": event.content["id"]},
            )

    async def _take(self, message: "Msg") -> None:
        headers = message.headers or {}
        self.tally.receive(message.subject, int(headers["Logcde-Number"]), json.loads(message.data))

    async def _show(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(EVERY)
            held = await asyncio.gather(*(asyncio.to_thread(partitions_of, one) for one in self._workers))
            shared = " and ".join(map(str, held))
            _tell(f"{time.monotonic() - began:4.0f} s: {self.tally}; partitions: {shared}")

    async def _kill(self) -> None:
        self._taking_over, began = True, time.monotonic()
        heir, victim = self._workers
        os.kill(victim.process.pid, signal.SIGKILL)
        _tell(f"kill -9 of worker 2 (process {victim.process.pid}).")
        while await asyncio.to_thread(partitions_of, heir) < PARTITIONS:
            await asyncio.sleep(0.05)
        _tell(f"Worker 1 has all partitions, {time.monotonic() - began:.1f} s after that.")
        self._taking_over = False


def partitions_of(worker: Service) -> int:
    """How many partitions a worker has; none if it does not answer."""
    try:
        with urllib.request.urlopen(f"{worker.url}feeds", timeout=5.0) as answer:
            feeds = json.load(answer)["feeds"]
    except OSError:
        return 0
    return sum(one["owner"] == "this process" for one in feeds)


@contextlib.contextmanager
def two_workers(options: Options) -> Iterator[tuple[Nats, list[Service]]]:
    """All servers, within this context."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # PostgreSQL may run as another user
        for name in ("nats", "postgres"):
            (folder / name).mkdir()
        _tell("Starting NATS and PostgreSQL.")
        broker = stack.enter_context(running(Nats(folder / "nats")))
        database = stack.enter_context(running(Postgres(folder / "postgres")))
        model = options.model
        if model is None:
            model = folder / "model"
            _tell(f"Training a model. It is right about {ward.train(model):.0%} of other patients.")
        more = [] if options.alert is None else ["--alert", options.alert]
        url = database.new()
        workers = [
            stack.enter_context(
                Service(
                    model, url, "--from", f"{broker.url}/{INCOMING}", "--to", f"{broker.url}/{OUTGOING}",
                    "--partitions", f"0-{PARTITIONS - 1}", "--reorder", ward.REORDER, *more,
                )
            )
            for _ in range(2)
        ]  # fmt: skip
        for number, one in enumerate(workers, 1):
            _tell(f"Worker {number} (process {one.process.pid}) shows the ward on {one.ready()}")
        yield broker, workers
        for one in workers:
            if one.runs:
                one.stop()


def main(options: Options) -> int:
    """Run the ward. Returns 0 if every event that can be taken came back as one prediction."""
    if (found := missing()) is not None:
        _tell(found)
        return 1
    try:
        with two_workers(options) as (broker, workers):
            simulated = Ward(broker.url, workers, options)
            asyncio.run(simulated.run())
            tally = simulated.tally
    except KeyboardInterrupt:
        return 130  # while it was starting
    _tell(f"{tally}.")
    _tell(f"{tally.missing or 'Nothing'} lost, {tally.doubled or 'nothing'} doubled.")
    return int(bool(tally.missing or tally.doubled))


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it has started, also while that starts
    sys.exit(main(tyro.cli(Options, description=__doc__)))
