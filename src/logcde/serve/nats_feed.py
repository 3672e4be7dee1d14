"""Observations from streams of NATS JetStream.

A stream is a log, and the store knows how far each partition of it was taken: a new owner begins behind that, whatever
was acknowledged. Each partition is a subject, `STREAM.0`, `STREAM.1` and so on. Every owner has a durable consumer of
its own, named by its epoch, so that nobody takes the messages of another.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Sequence

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from logcde.serve.feed import AbstractFeed, Answer, Delivery, FailedError
from logcde.serve.nats import FAULTS, PATIENCE, NatsAddress, connect, existing, told
from logcde.serve.store import Lease

TOGETHER = 2000
"""Messages that are committed together at most."""
REDELIVERY = 60.0
"""Seconds after which a message that was not acknowledged is delivered again."""
WAIT = 1.0
"""Seconds between two looks at a request for messages, and before what failed is tried again."""
EXPIRES = 5.0
"""Seconds after which a request for messages is over."""
LARGEST = 16 << 20
"""Bytes that are asked for at once."""
OVER = ("404", "408")
"""Status of a request that is over because no message came."""
COMPLETE = ("Batch Completed", "Message Size Exceeds MaxBytes")
"""Description of a request that is over because all messages have come."""
PREFIX = "logcde-"
"""Of the names of consumers."""
log = logging.getLogger(__name__)


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
            await existing(connection.jetstream(timeout=PATIENCE), wanted, address.name)
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
        self._numbered = self._requested = self._reconnects = 0
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
        if self._subscription is not None and self._connection.stats["reconnects"] != self._reconnects:
            await self._again("connected again, and messages may have been lost on the way")
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
        found = []
        for message in messages:
            if status := (message.headers or {}).get("Status"):
                self._requested, why = 0, (message.headers or {}).get("Description", status)
                if status in OVER or why in COMPLETE:
                    continue
                await self._again(why)
                break
            self._requested -= 1
            place = message.metadata
            self._numbered += 1
            if place.sequence.consumer != self._numbered:
                await self._again(f"{place.sequence.consumer} came in place of {self._numbered}")
                break
            if place.sequence.stream > self._taken:  # otherwise it was delivered again
                self._taken = place.sequence.stream
                self._unsettled[self._taken] = message
                found.append(Delivery([message.data], self._taken))
            self.waiting = place.num_pending
        return found

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
        self._reconnects = self._connection.stats["reconnects"]
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

    async def _again(self, why: str) -> None:
        """Read from behind what was taken again; what has come so far stays taken."""
        log.info("%s, partition %d: %s", self._address.name, self._lease.partition, why)
        await self._leave()

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
