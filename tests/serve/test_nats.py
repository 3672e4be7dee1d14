"""Streams of NATS: order, what is delivered and sent again, brokers that stop, and what cannot be used."""

import asyncio
import contextlib
import json

import nats as client
import pytest
from nats.js.api import StreamConfig

from logcde.errors import ModelError
from logcde.serve.feed import PublishError
from logcde.serve.nats import NatsAddress, NatsPublisher
from logcde.serve.nats_feed import NatsFeed
from logcde.serve.store import Lease, Outgoing
from tests.serve.servers import Nats, running

LEASE = Lease("nats:vitals", 0, 1)


@contextlib.asynccontextmanager
async def a_stream(url, name):
    """A new stream, a connection and its context."""
    connection = await client.connect(url)
    try:
        context = connection.jetstream()
        with contextlib.suppress(client.js.errors.NotFoundError):
            await context.delete_stream(name)
        yield NatsAddress.parse(f"{url}/{name}"), context
    finally:
        await connection.close()


async def sent(context, subject, texts):
    """Publish messages."""
    for text in texts:
        await context.publish(subject, text)


async def taken(feed, lease, count):
    """So many messages, and the deliveries."""
    found = []
    while len(found) < count:
        found += await asyncio.wait_for(feed.take(lease), 30)
    return found


def texts_of(deliveries):
    return [text for one in deliveries for text in one.texts]


def test_messages_of_a_partition_come_in_order_from_a_position_on(nats):
    async def run():
        async with a_stream(nats.url, "vitals") as (address, context):
            feed = await NatsFeed.open(address, (0, 1))
            expected = [b"%d" % number for number in range(5000)]
            for number, text in enumerate(expected):
                await context.publish_async(f"vitals.{number % 2}", text)
            await context.publish_async_completed()
            await feed.begin(LEASE, 0)
            first = await taken(feed, LEASE, 1)
            assert feed.lag(LEASE) > 0.0
            for one in first:
                feed.settle(LEASE, one, [])
            rest = await taken(feed, LEASE, 2500 - len(first))
            assert texts_of([*first, *rest]) == expected[::2]
            assert [one.position for one in [*first, *rest]] == list(range(1, 5001, 2))
            # Nothing of the rest was kept: the next owner has it again, and the last consumer is gone.
            await feed.end(LEASE)
            later = Lease("nats:vitals", 0, 2)
            await feed.begin(later, first[-1].position)
            again = await taken(feed, later, len(rest))
            assert texts_of(again) == texts_of(rest)
            assert [one.name for one in await context.consumers_info("vitals")] == ["logcde-0-2"]
            assert feed.waiting(later) == 0
            feed.settle(later, again[-1], [])
            idle = asyncio.create_task(feed.take(later))
            await asyncio.sleep(0.1)
            await context.publish("vitals.0", b"new")
            assert texts_of(await asyncio.wait_for(idle, 10)) == [b"new"]
            assert (await context.consumer_info("vitals", "logcde-0-2")).ack_floor.stream_seq == 4999
            await feed.close()

    asyncio.run(run())


def test_many_requests_deliver_each_message_once(nats, monkeypatch, caplog):
    async def run():
        async with a_stream(nats.url, "vitals") as (address, context):
            feed = await NatsFeed.open(address, (0,))
            expected = [b"%d" % number for number in range(300)]
            await sent(context, "vitals.0", expected)
            await feed.begin(LEASE, 0)
            found = []
            while len(found) < len(expected):
                found += (some := await asyncio.wait_for(feed.take(LEASE), 30))
                assert len(some) <= 7
                feed.settle(LEASE, some[-1], [])
            assert texts_of(found) == expected
            await feed.close()

    caplog.set_level("INFO", "logcde")
    monkeypatch.setattr("logcde.serve.nats_feed.TOGETHER", 7)
    asyncio.run(run())
    assert not caplog.messages  # nothing had to be asked for again


@contextlib.asynccontextmanager
async def a_reader(url, first):
    """A feed that has taken the first message of a stream, and what writes to the stream."""
    async with a_stream(url, "vitals") as (address, context):
        feed = await NatsFeed.open(address, (0,))
        await feed.begin(LEASE, 0)
        await sent(context, "vitals.0", [first])
        assert texts_of(await taken(feed, LEASE, 1)) == [first]
        yield feed, context
        await feed.close()


def test_a_message_that_is_lost_on_the_way_is_asked_for_again(nats, monkeypatch):
    async def run():
        async with a_reader(nats.url, b"a") as (feed, context):
            for lost in range(3):
                await sent(context, "vitals.0", [b"b", b"c", b"d"])
                await asyncio.sleep(0.2)  # they are here
                subscription = feed._readers[LEASE]._subscription
                here = [await subscription.next_msg() for _ in range(3)]
                for message in here[:lost] + here[lost + 1 :]:
                    subscription._pending_queue.put_nowait(message)
                assert texts_of(await taken(feed, LEASE, 3)) == [b"b", b"c", b"d"]
            # A consumer that somebody removes is made again.
            await context.delete_consumer("vitals", "logcde-0-1")
            await sent(context, "vitals.0", [b"e"])
            assert texts_of(await taken(feed, LEASE, 1)) == [b"e"]

    monkeypatch.setattr("logcde.serve.nats_feed.WAIT", 0.05)
    monkeypatch.setattr("logcde.serve.nats_feed.REDELIVERY", 1.0)  # by which the last of all is found
    asyncio.run(run())


@pytest.mark.parametrize("fault", ["lost", "refused"])
def test_messages_that_came_before_a_fault_are_delivered(nats, monkeypatch, fault):
    """All of them are there when they are looked at, and one in the middle is lost, or the broker refuses more."""

    async def run():
        async with a_reader(nats.url, b"0") as (feed, context):
            await sent(context, "vitals.0", [b"%d" % number for number in range(1, 9)])
            await asyncio.sleep(0.2)  # they are here
            subscription = feed._readers[LEASE]._subscription
            receive, count = subscription.next_msg, 0

            async def faulty(**given):
                nonlocal count
                count += 1
                message = await receive(**given)
                if count == 4:
                    if fault == "lost":
                        return await receive(**given)
                    message.headers = {"Status": "409", "Description": "no more"}
                return message

            monkeypatch.setattr(subscription, "next_msg", faulty)
            assert texts_of(await taken(feed, LEASE, 8)) == [b"%d" % number for number in range(1, 9)]

    monkeypatch.setattr("logcde.serve.nats_feed.WAIT", 0.05)
    asyncio.run(run())


def entries(first, last):
    return [Outgoing("prediction", "p1", {"series": "p1", "value": n}, n) for n in range(first, last + 1)]


async def published(context, subject):
    """What is in a stream."""
    subscription = await context.subscribe(subject, ordered_consumer=True)
    found = []
    with contextlib.suppress(client.errors.TimeoutError):
        while True:
            found.append(json.loads((await subscription.next_msg(timeout=0.3)).data)["value"])
    await subscription.unsubscribe()
    return found


def test_what_goes_out_is_there_once_whoever_sends_it_again(nats):
    async def run():
        async with a_stream(nats.url, "risk") as (address, context):
            one, two = await NatsPublisher.open(address, "s"), await NatsPublisher.open(address, "s")
            assert await one.last(0) == await two.last(0) == 0
            await one.publish(0, entries(1, 1000))
            with pytest.raises(PublishError, match="Nothing can be sent to .*wrong last sequence"):
                await two.publish(0, entries(1, 3))  # it has seen the end of before
            assert await two.last(0) == 1000
            await two.publish(0, entries(1001, 1002))
            with pytest.raises(PublishError):
                await one.publish(0, entries(1001, 1003))
            await one.last(0)
            await one.publish(0, entries(1003, 1003))
            assert await one.last(1) == 0
            assert await published(context, "risk.0") == list(range(1, 1004))
            other = await NatsPublisher.open(address, "another store")
            assert await other.last(0) == 0
            for publisher in (one, two, other):
                await publisher.close()

    asyncio.run(run())


def test_an_outage_longer_than_the_window_of_duplicates_doubles_nothing(tmp_path, monkeypatch):
    """The broker forgets ids of messages after a second; the acknowledgement of a batch is lost, and it is killed."""

    async def run(server):
        async with a_stream(server.url, "risk") as (address, context):
            config = StreamConfig(name="risk", subjects=["risk.*"], allow_atomic=True, duplicate_window=0.1)
            await context.add_stream(config)
            publisher = await NatsPublisher.open(address, "s")
            await publisher.last(0)
            request = publisher._connection.request

            async def deaf(*given, **more):
                await request(*given, **more)
                server.kill()
                raise client.errors.TimeoutError

            with monkeypatch.context() as patched:
                patched.setattr(publisher._connection, "request", deaf)
                with pytest.raises(PublishError, match="It is kept, and sent once the broker answers"):
                    await publisher.publish(0, entries(1, 10))
            with pytest.raises(PublishError):
                await asyncio.wait_for(publisher.last(0), 10)
            await asyncio.sleep(0.3)
            server.start()
            while True:
                with contextlib.suppress(PublishError):
                    assert await publisher.last(0) == 10
                    break
            await publisher.publish(0, entries(11, 12))
            await publisher.close()
            assert await published(context, "risk.0") == list(range(1, 13))

    monkeypatch.setattr("logcde.serve.nats.PATIENCE", 1.0)
    with running(Nats(tmp_path)) as server:
        asyncio.run(run(server))


def test_a_feed_goes_on_when_its_broker_comes_back(tmp_path, monkeypatch):
    async def run(server):
        async with a_stream(server.url, "vitals") as (address, context):
            feed = await NatsFeed.open(address, (0,))
            await feed.begin(LEASE, 0)
            await sent(context, "vitals.0", [b"a", b"b"])
            assert texts_of(await taken(feed, LEASE, 2)) == [b"a", b"b"]
            waiting = asyncio.create_task(taken(feed, LEASE, 1))
            await asyncio.sleep(0.1)
            server.kill()
            await asyncio.sleep(0.2)
            server.start()
            while True:
                with contextlib.suppress(client.errors.Error, TimeoutError):
                    await context.publish("vitals.0", b"c", timeout=1)
                    break
            assert texts_of(await waiting)[0] == b"c"
            await feed.close()

    monkeypatch.setattr("logcde.serve.nats_feed.WAIT", 0.1)
    monkeypatch.setattr("logcde.serve.nats_feed.EXPIRES", 0.5)
    with running(Nats(tmp_path)) as server:
        asyncio.run(run(server))


def test_what_cannot_be_used_is_told(nats):
    for text in (
        "vitals",
        "nats://host",
        "http://host/x",
        "nats://host/a.b",
        "nats://host/a/b",
        "nats:///x",
        "nats://[/x",
    ):
        with pytest.raises(ModelError, match=r"is not the address of a stream. Give nats://host:4222/stream"):
            NatsAddress.parse(text)

    async def run():
        wrong = NatsAddress.parse("nats://me:secret@127.0.0.1:1/vitals")
        with pytest.raises(
            ModelError, match=r"^nats://127.0.0.1:1/vitals cannot be reached.*Start the broker"
        ) as caught:
            await NatsFeed.open(wrong, (0,))
        assert "secret" not in str(caught.value)
        async with a_stream(nats.url, "plain") as (address, context):
            await context.add_stream(StreamConfig(name="plain", subjects=["plain.*"]))
            with pytest.raises(ModelError, match=r"takes no atomic batches. Allow them with `nats stream edit plain"):
                await NatsPublisher.open(address, "s")

    asyncio.run(run())


def test_a_stream_that_is_not_the_one_of_before_is_told(nats, caplog):
    caplog.set_level("INFO")

    async def run():
        async with a_stream(nats.url, "vitals") as (address, _):
            feed = await NatsFeed.open(address, (0,))
            await feed.begin(LEASE, 17)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(feed.take(LEASE), 0.5)
            await feed.close()

    asyncio.run(run())
    assert "the stream ends at 0, but 17 was taken already: it is another stream" in caplog.text
