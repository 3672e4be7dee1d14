"""Observations from, and predictions to, streams of NATS JetStream. The only place that imports nats.

A stream is a log, and the store knows how far each partition of it was taken: a new owner begins behind that, whatever
was acknowledged. Each partition is a subject, `STREAM.0`, `STREAM.1` and so on. Every owner has a durable consumer of
its own, named by its epoch, so that nobody takes the messages of another.

What goes out is published in atomic batches, each on condition that the subject ends where its sender has seen it end.
The last message there says up to where this store was published. So nothing is sent twice, however long a broker, a
process or an acknowledgement was away, and whoever else sends the same.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from logcde.errors import ModelError
from logcde.serve.feed import AbstractFeed, AbstractPublisher, Answer, Delivery, FailedError, PublishError
from logcde.serve.store import Lease, Outgoing

SCHEMES = ("nats", "tls")
NUMBER, STORE = "Logcde-Number", "Logcde-Store"
"""Headers of what is published: the number of the entry, and which store numbers it."""
TOGETHER = 2000
"""Messages that are committed together at most."""
REDELIVERY = 60.0
"""Seconds after which a message that was not acknowledged is delivered again."""
PATIENCE = 5.0
"""Seconds in which the broker has to answer."""
WAIT = 1.0
"""Seconds between two looks at a request for messages, and before what failed is tried again."""
EXPIRES = 5.0
"""Seconds after which a request for messages is over."""
LARGEST = 16 << 20
"""Bytes that are asked for at once."""
OVER = ("404", "408")
"""Status of a request that is over because no message came."""
COMPLETED = ("Batch Completed", "Message Size Exceeds MaxBytes")
"""Descriptions of a request that is over because all that it asked for has come."""
PREFIX = "logcde-"
"""Of the names of consumers."""
FAULTS = (nats.errors.Error, OSError, TimeoutError)
"""What a broker that is away, or refuses, may raise."""
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class NatsAddress:
    """A stream of a broker, `nats://host:4222/stream`.

    >>> NatsAddress.parse("nats://me:secret@broker/vitals").name
    'nats://broker/vitals'
    """

    server: str
    name: str
    stream: str

    @staticmethod
    def parse(text: str) -> "NatsAddress":
        """Read an address."""
        try:
            url = urlsplit(text)
            host = f"{url.hostname}:{url.port}" if url.port else url.hostname
        except ValueError:
            url, host = urlsplit(""), None
        stream = url.path.strip("/")
        if url.scheme not in SCHEMES or not host or not stream or set(stream) & set(" .*>/\\") or url.query:
            raise ModelError(f"{text!r} is not the address of a stream.", "Give nats://host:4222/stream.")
        return NatsAddress(f"{url.scheme}://{url.netloc}", f"{url.scheme}://{host}/{stream}", stream)


async def connect(address: NatsAddress) -> Client:
    """A connection that comes back by itself.

    Raises:
        ModelError: The broker cannot be reached.
    """

    async def tell(error: Exception) -> None:
        log.info("%s: %s", address.name, told(error))

    options: dict[str, Any] = {"name": "logcde serve", "error_cb": tell, "connect_timeout": PATIENCE}
    try:
        # Once without trying for long, so that a wrong address is told at once.
        await (await nats.connect(address.server, max_reconnect_attempts=1, reconnect_time_wait=0.1, **options)).close()
        return await nats.connect(address.server, max_reconnect_attempts=-1, reconnect_time_wait=0.25, **options)
    except FAULTS as error:
        raise ModelError(
            f"{address.name} cannot be reached: {told(error)}.",
            "Start the broker with JetStream (nats-server -js), and check the address and the credentials.",
        ) from error


async def _existing(context: JetStreamContext, config: StreamConfig, name: str) -> StreamConfig:
    """The configuration of a stream, which is created if it is missing."""
    assert config.name is not None
    try:
        with contextlib.suppress(nats.js.errors.NotFoundError):
            return (await context.stream_info(config.name)).config
        return (await context.add_stream(config)).config
    except FAULTS as error:
        raise ModelError(
            f"The stream {name} cannot be read or created: {told(error)}.",
            "Start the broker with JetStream (nats-server -js), and allow this user to use it.",
        ) from error


class NatsFeed(AbstractFeed):
    """Observations in a stream, one JSON object in each message.

    Args:
        address: The stream, which is created if it is missing.
        connection: A connection to its broker.
        partitions: The partitions that this process may take.
    """

    replays = True

    def __init__(self, address: NatsAddress, connection: Client, partitions: Sequence[int]) -> None:
        self.name, self.partitions = f"nats:{address.stream}", tuple(partitions)
        self._address, self._connection = address, connection
        self._readers: dict[Lease, _Reader] = {}

    @staticmethod
    async def open(address: NatsAddress, partitions: Sequence[int]) -> "NatsFeed":
        """Connect to the broker.

        Raises:
            ModelError: It cannot be reached, or has no JetStream.
        """
        connection = await connect(address)
        try:
            wanted = StreamConfig(name=address.stream, subjects=[f"{address.stream}.*"])
            await _existing(connection.jetstream(timeout=PATIENCE), wanted, address.name)
        except BaseException:
            await connection.close()
            raise
        return NatsFeed(address, connection, partitions)

    async def begin(self, lease: Lease, position: int) -> None:
        """Read from behind a position on."""
        before = self._readers.get(lease)
        if before is not None:
            await before.close()
        self._readers[lease] = _Reader(self._address, self._connection, lease, position)

    async def take(self, lease: Lease) -> list[Delivery]:
        """The messages that are there."""
        return await self._readers[lease].take()

    def settle(self, lease: Lease, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Acknowledge what was taken with the next request."""
        reader = self._readers.get(lease)
        if reader is not None:
            reader.settle(delivery, outcome)

    async def end(self, lease: Lease) -> None:
        """Remove the consumer."""
        reader = self._readers.pop(lease, None)
        if reader is not None:
            await reader.close()

    def waiting(self, lease: Lease) -> int:
        """Messages that the broker had when it last answered."""
        return self._readers[lease].waiting if lease in self._readers else 0

    def lag(self, lease: Lease) -> float:
        """Age of the oldest message that was delivered and is not settled."""
        return self._readers[lease].lag if lease in self._readers else 0.0

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()


class _Reader:
    """The messages of one partition, in order, from behind a position on."""

    def __init__(self, address: NatsAddress, connection: Client, lease: Lease, position: int) -> None:
        self._address, self._connection, self._lease = address, connection, lease
        self._context = connection.jetstream(timeout=PATIENCE)
        self._consumer = f"{PREFIX}{lease.partition}-{lease.epoch}"
        self._taken = position
        self._subscription: Subscription | None = None
        self._numbered = self._requested = 0
        self._until = 0.0
        self._unsettled: dict[int, Msg] = {}
        self._unacknowledged: Msg | None = None
        self.waiting = 0

    @property
    def lag(self) -> float:
        """Age of the oldest message that is not settled."""
        oldest = next(iter(self._unsettled.values()), None)
        return 0.0 if oldest is None else max(0.0, time.time() - oldest.metadata.timestamp.timestamp())

    async def take(self) -> list[Delivery]:
        """Messages that follow what was taken; waits for the first."""
        while True:
            try:
                if found := await self._next():
                    return found
            except FAULTS as error:
                log.info("%s: %s", self._address.name, told(error))
                await self._leave()
                await asyncio.sleep(WAIT)

    async def _next(self) -> list[Delivery]:
        """The messages that have arrived, after asking for more; none if none comes for a while."""
        subscription = self._subscription or await self._begin()
        if self._unacknowledged is not None:
            await self._unacknowledged.ack()
            self._unacknowledged = None
        if self._requested <= 0 or time.monotonic() > self._until:
            asked = {"batch": TOGETHER, "expires": int(EXPIRES * 1e9), "max_bytes": LARGEST}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._address.stream}.{self._consumer}"
            await self._connection.publish(subject, json.dumps(asked).encode(), subscription.subject)
            self._requested, self._until = TOGETHER, time.monotonic() + EXPIRES + WAIT
        try:
            messages = [await subscription.next_msg(timeout=WAIT)]
        except nats.errors.TimeoutError:
            return []
        while len(messages) < TOGETHER and subscription.pending_msgs:
            messages.append(await subscription.next_msg(timeout=WAIT))
        found: list[Delivery] = []
        try:
            for message in messages:
                self._receive(message, found)
        except nats.errors.Error as error:
            if not found:
                raise
            # What came before is taken: the next consumer begins behind it.
            log.info("%s: %s", self._address.name, told(error))
            await self._leave()
        return found

    def _receive(self, message: Msg, found: list[Delivery]) -> None:
        """Add a message to those that are found, unless it was delivered again or says that a request is over."""
        if status := (message.headers or {}).get("Status"):
            self._requested = 0
            description = (message.headers or {}).get("Description", status)
            if status not in OVER and description not in COMPLETED:
                raise nats.errors.Error(description)
            return
        self._requested -= 1
        place = message.metadata
        self._numbered += 1
        if place.sequence.consumer != self._numbered:
            raise nats.errors.Error("a message was lost on the way")
        if place.sequence.stream > self._taken:
            self._taken = place.sequence.stream
            self._unsettled[self._taken] = message
            found.append(Delivery([message.data], self._taken))
        self.waiting = place.num_pending

    async def _begin(self) -> Subscription:
        """A consumer that begins behind what was taken. Those of earlier owners are removed."""
        stream = self._address.stream
        state = (await self._context.stream_info(stream)).state
        if state.last_seq < self._taken:
            raise nats.errors.Error(
                f"the stream ends at {state.last_seq}, but {self._taken} was taken already: it is another stream"
            )
        if self._taken and state.first_seq > self._taken + 1:
            log.warning("%s lost the messages from %d to %d.", self._address.name, self._taken + 1, state.first_seq - 1)
        prefix = f"{PREFIX}{self._lease.partition}-"
        for name in await self._consumers():
            if name.startswith(prefix) and int(name.removeprefix(prefix)) <= self._lease.epoch:
                with contextlib.suppress(nats.js.errors.NotFoundError):
                    await self._context.delete_consumer(stream, name)
        await self._context.add_consumer(
            stream,
            ConsumerConfig(
                durable_name=self._consumer,
                filter_subject=f"{stream}.{self._lease.partition}",
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._taken + 1,
                ack_policy=AckPolicy.ALL,
                ack_wait=REDELIVERY,
                max_ack_pending=4 * TOGETHER,
            ),
        )
        self._numbered = self._requested = 0
        self._unacknowledged = None
        self._subscription = await self._connection.subscribe(self._connection.new_inbox())
        return self._subscription

    async def _consumers(self) -> list[str]:
        found: list[str] = []
        while page := await self._context.consumers_info(self._address.stream, offset=len(found)):
            found += [one.name for one in page]
        return found

    def settle(self, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Note the last message that is durable; one that the engine failed at is, as a dead letter."""
        message = self._unsettled.pop(delivery.position, None)
        if message is not None and (isinstance(outcome, list | FailedError)):
            self._unacknowledged = message

    async def _leave(self) -> None:
        """Leave the consumer; the next one begins behind what was taken."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(*FAULTS):
                await subscription.unsubscribe()

    async def close(self) -> None:
        """Acknowledge what was taken, and read no more."""
        with contextlib.suppress(*FAULTS):
            if self._unacknowledged is not None:
                await self._unacknowledged.ack()
                self._unacknowledged = None
        await self._leave()


class NatsPublisher(AbstractPublisher):
    """What goes out, in a stream that takes atomic batches, one JSON object in each message.

    Args:
        address: The stream.
        connection: A connection to its broker.
        store: Identifies the store, which numbers what goes out.
    """

    def __init__(self, address: NatsAddress, connection: Client, store: str) -> None:
        self.name = address.name
        self._address, self._connection, self._store = address, connection, store
        self._context = connection.jetstream(timeout=PATIENCE)
        self._ends: dict[int, tuple[int, int]] = {}

    @staticmethod
    async def open(address: NatsAddress, store: str) -> "NatsPublisher":
        """Connect to the broker, and create the stream if it is missing.

        Raises:
            ModelError: It cannot be reached, or the stream takes no batches.
        """
        connection = await connect(address)
        try:
            wanted = StreamConfig(name=address.stream, subjects=[f"{address.stream}.*"], allow_atomic=True)
            found = await _existing(connection.jetstream(timeout=PATIENCE), wanted, address.name)
            if not found.allow_atomic:
                raise ModelError(
                    f"The stream {address.name} takes no atomic batches.",
                    f"Allow them with `nats stream edit {address.stream} --allow-batch` (a broker of version 2.12 or "
                    "newer), or name a stream that does not exist yet.",
                )
        except BaseException:
            await connection.close()
            raise
        return NatsPublisher(address, connection, store)

    async def last(self, partition: int) -> int:
        """Read the last message of the subject."""
        if partition not in self._ends:
            number = sequence = 0
            try:
                with contextlib.suppress(nats.js.errors.NotFoundError):
                    message = await self._context.get_last_msg(
                        self._address.stream, f"{self._address.stream}.{partition}"
                    )
                    headers, sequence = message.headers or {}, message.seq or 0
                    number = int(headers.get(NUMBER, 0)) if headers.get(STORE) == self._store else 0
            except FAULTS as error:
                raise self._failed(error) from error
            self._ends[partition] = sequence, number
        return self._ends[partition][1]

    async def publish(self, partition: int, entries: Sequence[Outgoing]) -> None:
        """Send one atomic batch."""
        end, _ = self._ends.pop(partition)
        reply: dict[str, Any] = {}
        subject, batch = f"{self._address.stream}.{partition}", self._connection.new_inbox().rpartition(".")[2]
        try:
            for place, one in enumerate(entries, 1):
                headers = {
                    "Nats-Batch-Id": batch,
                    "Nats-Batch-Sequence": str(place),
                    NUMBER: str(one.number),
                    STORE: self._store,
                }
                if place == 1:
                    headers["Nats-Expected-Last-Subject-Sequence"] = str(end)
                if place < len(entries):
                    await self._connection.publish(subject, _content(one), headers=headers)
                else:
                    headers["Nats-Batch-Commit"] = "1"
                    answer = await self._connection.request(subject, _content(one), PATIENCE, headers=headers)
                    reply = json.loads(answer.data)
        except FAULTS as error:
            raise self._failed(error) from error
        if fault := reply.get("error"):
            raise self._failed(nats.errors.Error(fault.get("description", str(fault))))
        self._ends[partition] = reply["seq"], entries[-1].number

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    def _failed(self, error: Exception) -> PublishError:
        return PublishError(
            f"Nothing can be sent to {self.name}: {told(error)}.", "It is kept, and sent once the broker answers."
        )


def _content(entry: Outgoing) -> bytes:
    return msgspec.json.encode({"kind": entry.kind, **entry.content})


def told(error: Exception) -> str:
    """An error in words."""
    return str(error).removeprefix("nats: ") or type(error).__name__
