"""Streams of NATS JetStream: addresses, connections, and what is published. `nats_feed` has what is read.

What goes out is published in atomic batches, each on condition that the subject ends where its sender has seen it end.
The last message there says up to where this store was published. So nothing is sent twice, however long a broker, a
process or an acknowledgement was away, and whoever else sends the same.
"""

import contextlib
import dataclasses
import json
import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig

from logcde.errors import ModelError
from logcde.serve.feed import AbstractPublisher, PublishError
from logcde.serve.store import Outgoing

SCHEMES = ("nats", "tls")
NUMBER, STORE = "Logcde-Number", "Logcde-Store"
"""Headers of what is published: the number of the entry, and which store numbers it."""
PATIENCE = 5.0
"""Seconds in which the broker has to answer."""
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
        """Take server and stream apart; the name has no user and no password."""
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


async def existing(context: JetStreamContext, config: StreamConfig, name: str) -> StreamConfig:
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
            found = await existing(connection.jetstream(timeout=PATIENCE), wanted, address.name)
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
