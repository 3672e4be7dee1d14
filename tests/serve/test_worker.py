"""The loop: deliveries that come again, engines that fail, owners that change, publishers that are away, standbys."""

import asyncio
import contextlib
import json

import pytest

from logcde.serve import SqliteStore
from logcde.serve.feed import AbstractFeed, AbstractPublisher, Delivery, PostFeed, PublishError
from logcde.serve.http import Limits, application
from logcde.serve.store import Claim, StoreError
from logcde.serve.worker import Worker
from tests.cli.streaming import GOOD
from tests.serve.serving import service_on


class Log(AbstractFeed):
    """Observations in memory, one in each delivery, from any position on."""

    name = "log"
    replays = True

    def __init__(self, lines, partitions=(0,)):
        self.partitions, self.texts = partitions, [json.dumps(line).encode() for line in lines]
        self.settled, self.begun, self.ended = [], [], []
        self._next = {}

    async def begin(self, lease, position):
        self.begun.append((lease.partition, lease.epoch, position))
        self._next[lease] = position

    async def take(self, lease):
        while self._next[lease] >= len(self.texts):
            await asyncio.sleep(0.005)
        first, self._next[lease] = self._next[lease], min(self._next[lease] + 2, len(self.texts))
        return [Delivery([self.texts[place]], place + 1) for place in range(first, self._next[lease])]

    def settle(self, lease, delivery, outcome):
        self.settled.append((delivery.position, outcome))

    async def end(self, lease):
        self.ended.append((lease.partition, lease.epoch))

    def waiting(self, lease):
        return len(self.texts) - self._next[lease]

    def lag(self, lease):
        return 0.0

    async def close(self):
        self.texts = []


class Sink(AbstractPublisher):
    """What goes out, in memory. Fails a number of times, half of them after it has taken the entries."""

    name = "sink"

    def __init__(self, failures=0):
        self.entries, self._failures = [], failures

    async def last(self, partition):
        if self._failures % 3 == 1:
            self._failures -= 1
            raise PublishError("The sink is away.", "It comes back.")
        return self.entries[-1].number if self.entries else 0

    async def publish(self, partition, entries):
        self._failures, fails = max(0, self._failures - 1), self._failures
        if not fails or fails % 2:
            self.entries += entries
        if fails:
            raise PublishError("The sink is away.", "It comes back.")

    async def close(self):
        """Nothing is left open."""


LINES = [GOOD | {"time": (number + 1) / 8} for number in range(9)]


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    for name in ("PAUSE", "CLAIMING", "LOOK"):
        monkeypatch.setattr(f"logcde.serve.worker.{name}", 0.02)


async def until(condition):
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def run(service, feed, done, publisher=None):
    """Run a service until something is done."""

    async def running():
        worker = Worker(service, feed, publisher)
        async with worker.running():
            await until(lambda: done(worker))

    asyncio.run(running())


def taken(service):
    record = service.store.find("p1")
    return 0 if record is None else record.events


def test_what_could_not_be_kept_is_delivered_again(tmp_path, monkeypatch):
    with service_on(tmp_path / "state.db") as service:
        commit, calls = service.store.commit, []

        def failing(group):
            calls.append(group)
            if len(calls) % 2:
                raise StoreError("The disk is full.", "Make room.")
            return commit(group)

        monkeypatch.setattr(service.store, "commit", failing)
        feed = Log(LINES)
        run(service, feed, lambda worker: taken(service) == len(LINES) and worker.failure is None)
        assert service.store.dead_letters(9) == []
        errors = [position for position, outcome in feed.settled if isinstance(outcome, StoreError)]
        assert errors
        assert {position for position, outcome in feed.settled if isinstance(outcome, list)} == set(range(1, 10))
        assert feed.ended == [(0, 1)], (feed.begun, feed.ended)


def test_an_observation_at_which_the_engine_fails_for_ever_is_kept_and_passed_over(tmp_path, monkeypatch):
    with service_on(tmp_path / "state.db") as service:
        rules = type(service.models[0].rules)
        observe = rules.observe

        def failing(self, line, event):
            if event.time == 0.5:
                raise ZeroDivisionError
            observe(self, line, event)

        monkeypatch.setattr(rules, "observe", failing)
        run(service, Log(LINES), lambda worker: taken(service) == len(LINES) - 1 and worker.failure is None)
        (letter,) = service.store.dead_letters(9)
        assert (letter.reason, json.loads(letter.text)["time"]) == ("failure", 0.5)
        assert "The service failed at this observation (ZeroDivisionError)" in letter.error


def test_nothing_is_taken_before_what_could_not_be_kept(tmp_path, monkeypatch):
    """Deliveries that break the engine together are tried one by one; the store fails at the first of them."""
    with service_on(tmp_path / "state.db") as service:
        apply, calls = service.apply, []

        def failing(lease, deliveries):
            calls.append(len(deliveries))
            if len(calls) == 1:
                raise ZeroDivisionError
            if len(calls) == 2:
                raise StoreError("The disk is full.", "Make room.")
            return apply(lease, deliveries)

        monkeypatch.setattr(service, "apply", failing)
        run(service, Log(LINES), lambda worker: taken(service) == len(LINES) and worker.failure is None)
        assert calls[:2] == [2, 1]
        assert service.store.dead_letters(9) == []


def test_a_partition_that_another_process_takes_is_left(tmp_path):
    with (
        service_on(tmp_path / "state.db") as service,
        contextlib.closing(SqliteStore(tmp_path / "state.db", [service.models[0].digest])) as other,
    ):
        feed = Log(LINES[:4])

        async def running():
            worker = Worker(service, feed)
            async with worker.running():
                await until(lambda: taken(service) == 4)
                other.claim("log", [0])
                feed.texts += [json.dumps(line).encode() for line in LINES[4:]]
                # It takes the partition back, as an owner of its own.
                await until(lambda: taken(service) == len(LINES))
                assert feed.ended == [(0, 1)], (feed.begun, feed.ended)
                assert feed.begun == [(0, 1, 0), (0, 3, 4)]
                assert worker.failure is None

        asyncio.run(running())


def test_partitions_beyond_a_fair_share_are_left_to_others(tmp_path, monkeypatch):
    with service_on(tmp_path / "state.db") as service:
        claim, released, share = service.store.claim, [], [4]
        monkeypatch.setattr(
            service.store,
            "claim",
            lambda *given: Claim([one for one in claim(*given).leases if one not in released], share[0]),
        )
        monkeypatch.setattr(service.store, "release", released.append)
        feed = Log([], partitions=(0, 1, 2, 3))

        async def running():
            worker = Worker(service, feed)
            async with worker.running():
                assert [lease.partition for lease in worker.leases] == [0, 1, 2, 3]
                share[0] = 2
                await until(lambda: len(released) == 2)
                assert [lease.partition for lease in worker.leases] == [0, 1]
                assert [lease.partition for lease in released] == [2, 3]

        asyncio.run(running())
        assert feed.ended == [(2, 1), (3, 1), (0, 1), (1, 1)]


def test_what_goes_out_is_published_once_and_in_order(tmp_path):
    with service_on(tmp_path / "state.db") as service:
        sink = Sink(failures=7)
        run(service, Log(LINES), lambda worker: len(sink.entries) >= len(LINES) and worker.failure is None, sink)
        assert [one.content["time"] for one in sink.entries] == [line["time"] for line in LINES]
        assert service.metrics.counts["published", ""] <= len(LINES)
    with service_on(tmp_path / "state.db") as service:  # nothing is sent again
        run(service, Log([*LINES, GOOD | {"time": 2.0}]), lambda worker: len(sink.entries) == len(LINES) + 1, sink)
        assert sink.entries[-1].content["time"] == 2.0


def test_a_standby_tells_so_and_takes_over(tmp_path, monkeypatch):
    import httpx

    with service_on(tmp_path / "state.db") as service:
        claim, free = service.store.claim, []
        monkeypatch.setattr(service.store, "claim", lambda *given: claim(*given) if free else Claim([], 1))

        async def running():
            worker = Worker(service, PostFeed())
            transport = httpx.ASGITransport(app=application(worker, Limits(), None, ("127.0.0.1",)))
            async with worker.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                health, post = await client.get("/healthz"), await client.post("/observations", json=GOOD)
                assert (health.status_code, health.json()["status"]) == (503, "standby")
                assert (post.status_code, post.headers["retry-after"]) == (503, "1")
                assert "this one takes over when it ends" in post.json()["error"]
                free.append(True)
                await until(lambda: worker.leases)
                assert (await client.get("/healthz")).json()["status"] == "ok"
                assert (await client.post("/observations", json=GOOD)).status_code == 200

        asyncio.run(running())


def test_posts_to_a_service_that_reads_a_stream_are_refused(tmp_path):
    import httpx

    with service_on(tmp_path / "state.db") as service:

        async def running():
            worker = Worker(service, Log([]))
            transport = httpx.ASGITransport(app=application(worker, Limits(), None, ("127.0.0.1",)))
            async with worker.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                answer = await client.post("/observations", json=GOOD)
                assert answer.status_code == 409
                assert answer.json()["error"] == "This service takes its observations from log. Publish them there."

        asyncio.run(running())
