"""Where observations come from: deliveries that are taken together, and settled once they are durable."""

import abc
import asyncio
import collections
import dataclasses
import time
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from logcde.errors import LogcdeError
from logcde.online.lines import Id
from logcde.serve.store import Lease, Outgoing

Answer: TypeAlias = dict[str, Any]
"""What is said of one observation, in JSON."""


@dataclasses.dataclass(frozen=True, eq=False)
class Delivery:
    """Observations that are settled together.

    Attributes:
        texts: JSON objects, one for each observation.
        position: How far the partition has been taken with this delivery.
        received: When it arrived, on the clock of `time.monotonic`.
    """

    texts: Sequence[bytes]
    position: int
    received: float = dataclasses.field(default_factory=time.monotonic)


def partition_of(series: Id, partitions: int) -> int:
    """The partition of a series, among so many: what sends observations of one series to one subject.

    >>> partition_of("p7", 4), partition_of(7, 4)
    (1, 2)
    """
    return zlib.crc32(msgspec.json.encode(series)) % partitions


class AbstractFeed(abc.ABC):
    """Delivers observations in partitions: in order within each, and each at least once.

    Attributes:
        name: Identifies the feed in the store, which keeps how far each partition was taken.
        partitions: Those that this process may take.
        replays: Whether deliveries that could not be taken come again.
    """

    name: str
    partitions: tuple[int, ...]
    replays: bool

    @abc.abstractmethod
    async def begin(self, lease: Lease, position: int) -> None:
        """Deliver what follows a position of a partition, again if it was delivered before, settled or not."""

    @abc.abstractmethod
    async def take(self, lease: Lease) -> list[Delivery]:
        """Wait for deliveries, and return those that are there, as many as are well committed together."""

    @abc.abstractmethod
    def settle(self, lease: Lease, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Tell the sender: the answers, once they are durable; or an error, after which nothing of it was taken."""

    @abc.abstractmethod
    async def end(self, lease: Lease) -> None:
        """Deliver nothing more of a partition."""

    @abc.abstractmethod
    def waiting(self, lease: Lease) -> int:
        """Deliveries of a partition that are known to wait."""

    @abc.abstractmethod
    def lag(self, lease: Lease) -> float:
        """Seconds for which the oldest delivery of a partition has waited that is not settled."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Leave the source."""


class AbstractPublisher(abc.ABC):
    """Sends what goes out to a place where others read it, in order and each entry once.

    Attributes:
        name: Tells people where that is; without passwords.
    """

    name: str

    @abc.abstractmethod
    async def last(self, partition: int) -> int:
        """Number of the last entry of this store that is there, 0 if there is none."""

    @abc.abstractmethod
    async def publish(self, partition: int, entries: Sequence[Outgoing]) -> None:
        """Send entries that follow the last one, all or none of them.

        Raises:
            PublishError: They are not there, or it is not known. `last` tells, once it can be asked.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Leave that place."""


class PublishError(LogcdeError):
    """Entries that could not be sent."""


class BusyError(LogcdeError):
    """More observations are waiting than a service accepts, or another process takes them."""


class FailedError(LogcdeError):
    """Observations that broke the engine. Nothing of their delivery was taken."""


class PostFeed(AbstractFeed):
    """Observations that clients post, who wait for the answers. It has one partition.

    Args:
        together: Observations that are committed together at most, except for those of one post.
        waiting: Observations that may wait; further posts are refused.
    """

    name = "http"
    partitions = (0,)
    replays = False

    def __init__(self, together: int = 2000, waiting: int = 50_000) -> None:
        self._position, self._together, self.limit = 0, together, waiting
        self._queue: collections.deque[Delivery] = collections.deque()
        self._answers: dict[Delivery, asyncio.Future[list[Answer]]] = {}
        self._waiting = 0
        self._open = False
        self._arrived = asyncio.Event()

    async def begin(self, lease: Lease, position: int) -> None:
        """Accept posts."""
        self._position, self._open = max(self._position, position), True

    async def post(self, texts: Sequence[bytes]) -> list[Answer]:
        """Deliver observations, and wait until they are durable or refused.

        Raises:
            BusyError: Too many are waiting, or another process takes observations.
        """
        if not self._open:
            raise BusyError(
                "Another process takes the observations of this store.",
                "Post to that one; this one takes over when it ends.",
            )
        if self._waiting + len(texts) > self.limit:
            raise BusyError(
                f"{self._waiting:,} observations are waiting, and at most {self.limit:,} may.",
                "Send them again in a second; fewer clients at once, or more observations in a post, are faster.",
            )
        self._position += len(texts)
        delivery = Delivery(texts, self._position)
        self._waiting += len(texts)
        self._queue.append(delivery)
        answers = self._answers[delivery] = asyncio.get_running_loop().create_future()
        self._arrived.set()
        return await answers

    async def take(self, lease: Lease) -> list[Delivery]:
        """All posts that are waiting, up to the number of observations that are committed together."""
        await self._arrived.wait()
        taken, count = [], 0
        while self._queue and (not taken or count + len(self._queue[0].texts) <= self._together):
            taken.append(self._queue.popleft())
            count += len(taken[-1].texts)
        if not self._queue:
            self._arrived.clear()
        return taken

    def settle(self, lease: Lease, delivery: Delivery, outcome: list[Answer] | Exception) -> None:
        """Answer the client, if it is still there."""
        self._waiting -= len(delivery.texts)
        answers = self._answers.pop(delivery)
        if answers.done():
            return
        if isinstance(outcome, Exception):
            answers.set_exception(outcome)
        else:
            answers.set_result(outcome)

    async def end(self, lease: Lease) -> None:
        """Refuse posts, also those that are waiting."""
        self._open = False
        gone = BusyError("Another process has taken over the observations of this store.", "Post to that one.")
        while self._queue:
            self.settle(lease, self._queue.popleft(), gone)
        self._arrived.clear()

    def waiting(self, lease: Lease) -> int:
        """Observations that were not answered yet."""
        return self._waiting

    def lag(self, lease: Lease) -> float:
        """How long the oldest post has waited."""
        oldest = next(iter(self._answers), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.received

    async def close(self) -> None:
        """Do nothing: clients were answered."""
